"""How long the path of ideal predictions is: rows in, a figure with its alt text as label out.

mark           meaning
line, marker   Fisher-Rao length at one width of the label, computed by quadrature
dashed line    the bound pi (K - 1)
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import DASHED, beside, largest, panel_label, shades


def staircase(rows: pd.DataFrame) -> Figure:
    """Length against the number of bins, one line per width; rows of ``FisherRao``."""
    table = largest(rows).sort_values("K")
    figure, ax = plt.subplots(figsize=(5.2, 3.5))
    widths = sorted(table["sigma"].unique())
    for sigma, color in zip(widths, shades(len(widths)), strict=True):
        part = table[table["sigma"] == sigma]
        ax.plot(part["K"], part["length"], "o-", color=color, markersize=3)
        beside(ax, part["K"].iloc[-1], part["length"].iloc[-1], f"$\\sigma$ = {sigma:g}", color, fontsize=9)
    bound = table.drop_duplicates("K")
    ax.plot(bound["K"], bound["steps_cap"], **DASHED)
    first = bound.iloc[len(bound) // 2]
    beside(ax, first["K"], first["steps_cap"], r"$\pi(K-1)$", shift=(-12, 8), ha="right")
    ax.set(xscale="log", yscale="log", xlabel="bins $K$", ylabel=r"length $\Lambda$")
    ax.set_xlim(bound["K"].min() / 1.2, bound["K"].max() * 5)
    panel_label(ax, "Finer bins lengthen the path,\nuntil the label's width $\\sigma$ caps it")
    ends = table.groupby("sigma")["length"].last()
    said = ", ".join(f"{length:.4g} at sigma {sigma:g}" for sigma, length in ends.items())
    figure.set_label(
        f"Fisher-Rao length of the path of predictions against the number of bins, on logarithmic axes: each line "
        f"follows pi times K less one, and levels off. With {table['K'].max()} bins: {said}."
    )
    return figure
