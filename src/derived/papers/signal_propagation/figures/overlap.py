"""Clouds of two tokens over depth, with the ellipses of the recurrence."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse

from derived.lab.plot import RED, panel_label

from .marks import NAMES, NORM_COLOURS


def token_clouds(rows: pd.DataFrame) -> Figure:
    """One channel of two tokens; rows: norm, b, u, v (channels of one network) and q, p of the recurrence."""
    norms, depths = list(rows["norm"].unique()), sorted(rows["b"].unique())
    figure, axes = plt.subplots(len(norms), len(depths), figsize=(7.0, 2.2 * len(norms)), squeeze=False)
    overlaps = {}
    for line, norm in zip(axes, norms, strict=True):
        for ax, b in zip(line, depths, strict=True):
            part = rows[(rows["norm"] == norm) & (rows["b"] == b)]
            q, p = float(part["q"].iloc[0]), float(part["p"].iloc[0])
            scale = q**0.5
            ax.scatter(part["u"] / scale, part["v"] / scale, s=3, color=NORM_COLOURS[norm], alpha=0.35, linewidths=0)
            for reach in (1, 2):
                size = [2 * reach * (max(1 + sign * p / q, 0.0)) ** 0.5 for sign in (1, -1)]
                ax.add_patch(Ellipse((0, 0), *size, angle=45, fill=False, edgecolor=RED, linewidth=1.1))
            ax.set(xlim=(-3.3, 3.3), ylim=(-3.3, 3.3), aspect="equal", xticks=[], yticks=[])
            panel_label(ax, rf"$b={b}$, $\rho={p / q:.2f}$")
            overlaps[norm, b] = p / q
        line[0].set_ylabel(f"{NAMES[norm]}\ntoken 2, standardised")
    for ax in axes[-1]:
        ax.set_xlabel("token 1, standardised")
    words = "; ".join(f"{NAMES[norm]} " + ", ".join(f"{overlaps[norm, b]:.2f}" for b in depths) for norm in norms)
    blocks = ", ".join(str(b) for b in depths)
    figure.set_label(
        f"Clouds of the channels of two tokens with ellipses of the theory at blocks {blocks}. Overlaps: {words}. The "
        "cloud of LayerNorm shrinks towards a line, that of Derf does not."
    )
    return figure
