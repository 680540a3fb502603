"""One folder per paper; papers never import each other."""
