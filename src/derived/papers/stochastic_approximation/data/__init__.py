"""Generated data: environments with known answers, and streams of tokens."""
