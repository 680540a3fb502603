"""Generated texts and readers of real ones."""
