"""The experiments: frozen sizes, and one function from a condition to rows."""
