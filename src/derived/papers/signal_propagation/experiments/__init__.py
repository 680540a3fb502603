"""What the chapter runs, a file for each topic."""
