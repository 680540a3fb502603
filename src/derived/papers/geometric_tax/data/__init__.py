"""Generated systems and sequences, and a reader of real ones."""
