"""Trained models: nested lists, strings grouped like the levels, real pictures and speeches."""

import pandas as pd
from matplotlib.figure import Figure

from .marks import compared


def tuned(rows: pd.DataFrame) -> Figure:
    """The arms on nested lists; rows of TunedListOps."""
    return compared(rows, {"rule": "depth 1"})


def trees(rows: pd.DataFrame) -> Figure:
    """The arms on strings whose groups are the blocks of the levels; rows of Trees."""
    return compared(rows, {"last": "last letter"})


def clothes(rows: pd.DataFrame) -> Figure:
    """The arms on pictures of clothes, read pixel by pixel; rows of Clothes."""
    return compared(rows, {"pixels": "linear in pixels"})


def speeches(rows: pd.DataFrame) -> Figure:
    """The arms on speeches, read letter by letter; rows of Speeches."""
    return compared(rows, {"fives": "linear in runs of five letters"})
