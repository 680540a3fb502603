"""What the paper is about: the pyramid, attention over it, its theory, and a small transformer."""
