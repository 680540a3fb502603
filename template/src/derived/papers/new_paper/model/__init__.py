"""Theory and mechanism: what the paper is about."""
