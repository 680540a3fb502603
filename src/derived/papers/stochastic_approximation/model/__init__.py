"""The loop, the head, a small transformer, and the closed forms of the chapter."""
