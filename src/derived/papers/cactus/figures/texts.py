"""Speed of blocks: rows in, a figure with its alt text as label out.

mark                   meaning
sequential colours     a swept parameter
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import beside, shades


def speed(rows: pd.DataFrame) -> Figure:
    """Tokens per verifier pass and speed over plain decoding against m; rows: alpha, m, tokens, speedup."""
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.1))
    alphas, words = sorted(rows["alpha"].unique()), []
    for alpha, color in zip(alphas, shades(len(alphas)), strict=True):
        part = rows[rows["alpha"] == alpha].sort_values("m")
        for ax, column in zip(axes, ("tokens", "speedup"), strict=True):
            ax.plot(part["m"], part[column], color=color)
        best = part.loc[part["speedup"].idxmax()]
        axes[1].plot(best["m"], best["speedup"], "o", color=color, markersize=4)
        beside(axes[0], part["m"].iloc[-1], part["tokens"].iloc[-1], rf"$\alpha={alpha:g}$", color, (3, 0))
        words.append(f"{best['speedup']:.2f} at m = {best['m']:.0f} for {alpha:g}")
    axes[0].set(xlabel="drafts per block $m$", ylabel=r"tokens per verifier pass", xlim=(0, 1.3 * rows["m"].max()))
    axes[1].set(xlabel="drafts per block $m$", ylabel="speed over plain decoding")
    figure.set_label(
        "Tokens per verifier pass, and modelled speed, against drafts per block for several acceptance rates. Largest "
        f"speeds: {', '.join(words)}."
    )
    return figure
