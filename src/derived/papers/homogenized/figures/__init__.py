"""From rows to figures, by topic."""
