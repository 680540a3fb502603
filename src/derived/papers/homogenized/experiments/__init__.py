"""What the chapter runs, by topic: frozen sizes, and one batched function per condition."""
