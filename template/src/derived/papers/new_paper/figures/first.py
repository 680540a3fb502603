"""The figures of the topic: rows in, a matplotlib figure out, its alt text computed from the data."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import COLOURS


def gaps(rows: pd.DataFrame) -> Figure:
    """Gaps against their bounds."""
    figure, ax = plt.subplots(figsize=(4, 3))
    ax.plot(rows["bound"], rows["gap"], "o", color=COLOURS[0])
    ax.set(xlabel="bound", ylabel="gap")
    figure.set_label(f"{len(rows)} gaps, the largest {rows['gap'].max():.1e}")
    return figure
