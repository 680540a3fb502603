"""Real pictures."""
