"""What the figures of several topics say of their rows.

recorded  made once and kept, or live: made with this page
"""

import numpy as np
import pandas as pd


def shown(points: pd.DataFrame) -> pd.DataFrame:
    """The recorded points, or the live ones if nothing is recorded."""
    return points[points["recorded"] == points["recorded"].max()]


def fitted_slope(x: pd.Index, y: pd.Series) -> float:
    """The slope of the least-squares line of y in x."""
    return float(np.polyfit(x.to_numpy(float), y.to_numpy(float), 1)[0])


def runs_shown(rows: pd.DataFrame) -> str:
    """Which runs a figure shows, in words."""
    return "live and recorded runs" if rows["recorded"].any() else "the live run"
