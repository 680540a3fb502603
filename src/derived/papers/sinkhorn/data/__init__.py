"""Generated texts: weighted points with a known relation, pairs to match, and reactions with their atom maps."""
