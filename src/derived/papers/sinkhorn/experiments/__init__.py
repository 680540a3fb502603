"""Experiments: frozen sizes, run() -> rows."""
