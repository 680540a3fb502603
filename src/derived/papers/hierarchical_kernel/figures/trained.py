"""Trained models: nested lists, and strings grouped like the levels."""

import pandas as pd
from matplotlib.figure import Figure

from .marks import compared


def tuned(rows: pd.DataFrame) -> Figure:
    """The arms on nested lists; rows of TunedListOps."""
    return compared(rows, {"rule": "depth 1"})


def trees(rows: pd.DataFrame) -> Figure:
    """The arms on strings whose groups are the blocks of the levels; rows of Trees."""
    return compared(rows, {"last": "last letter"})
