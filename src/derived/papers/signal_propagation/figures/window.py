"""The window of small alpha."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import DASHED, largest, panel_label, shades


def small_alpha(rows: pd.DataFrame) -> Figure:
    """ln J over its exponential law against b / b_*; rows of ``Window``."""
    rows = largest(rows)
    figure, ax = plt.subplots(figsize=(6.0, 3.2))
    alphas, words = sorted(rows["alpha"].unique()), []
    for alpha, color in zip(alphas, shades(len(alphas)), strict=True):
        part = rows[rows["alpha"] == alpha].sort_values("b")
        x = part["b"] / part["predicted"]
        ax.plot(x, part["log_J"] / part["high"], color=color, label=f"α = {alpha:g}")
        ratio = float((part["crossover"] / part["predicted"]).iloc[0])
        ax.axvline(ratio, color=color, linewidth=0.8, linestyle=":")
        words.append(f"{ratio:.2f} for {alpha:g}")
    ax.axhline(1, **DASHED)
    ax.legend(fontsize=8)
    ax.set(xlabel=r"$b/b_*$", ylabel=r"$\ln J^{b,0}$ over $b\,\ln(1+\frac{s}{2}\ell)$", xlim=(0, 1.6), ylim=(0, 1.05))
    panel_label(ax, r"Well below $b_*$ growth is exponential, the closer the smaller $\alpha$")
    figure.set_label(
        f"Logarithm of J over its exponential law against depth over b*: near 1 in the window, falling below it after. "
        f"The window ends at b/b* = {', '.join(words)}."
    )
    return figure
