"""Curves for the page to draw: ``plot(x, {name: y, …}, label)``; ``shown`` holds what was asked for."""

shown = []


def plot(x, curves, label=""):
    """A curve for each name, over x; ``label`` is for the axis below."""
    shown.append({"x": list(x), "curves": {name: list(y) for name, y in curves.items()}, "label": label})
