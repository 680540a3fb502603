"""The figures: rows in, a figure with its alt text out."""
