"""What a number format keeps of a write: rows in, a figure with its alt text as label out.

mark                  meaning
filled, open marker   recorded, live
line in INK           theory; dashed: the clip as printed
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, DASHED, THEORY, beside


def survival(rows: pd.DataFrame, printed: float = 1e-5) -> Figure:
    """Share of bf16 weights that a write changes against its norm; rows: tau, changed, theory, recorded."""
    figure, ax = plt.subplots(figsize=(5.8, 3.1))
    for recorded, part in rows.groupby("recorded"):
        face = BLUE if recorded else "none"
        ax.plot(part["tau"], part["changed"], "o", color=BLUE, markerfacecolor=face)
    theory = rows.groupby("tau")["theory"].first()
    ax.plot(theory.index, theory, **THEORY)
    ax.axvline(printed, **DASHED)
    beside(ax, printed, theory.max(), "clip as printed", shift=(4, -4))
    ax.set(xscale="log", yscale="log", xlabel=r"Frobenius norm $\tau$ of the write", ylabel="bf16 weights changed")
    at = rows[rows["tau"] == printed]["changed"]
    figure.set_label(
        "Share of bf16 weights that a write changes, against its norm, both axes logarithmic; proportional to the norm "
        f"until all change. At {printed:g}: {at.mean():.1e}."
        if len(at)
        else "Share of bf16 weights that a write changes."
    )
    return figure
