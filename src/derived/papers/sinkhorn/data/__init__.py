"""Generated texts: weighted points with a known relation, pairs to match, and surfaces to tell apart."""
