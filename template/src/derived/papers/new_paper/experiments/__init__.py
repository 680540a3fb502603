"""What is measured: frozen sizes, run() -> rows."""
