"""How fast the iteration is: rows in, a figure with its alt text as label out.

mark                    meaning
blue, green             Sinkhorn's iteration, over-relaxed
line in INK, dashed     predicted rate, global bound
sequential colours      standard deviation of the scores
filled, open marker     recorded, live
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, DASHED, GREEN, THEORY, beside, largest, panel_label, plain_log, points, shades

SHOWN = (1.0, 3.0)  # spreads of the two panels


def contraction(rows: pd.DataFrame) -> Figure:
    """Distance of the potential from its limit against the iteration; rows of ``Contraction``."""
    rows = largest(rows)
    rows = rows[rows["instance"] == 0]
    figure, axes = plt.subplots(1, len(SHOWN), figsize=(7.4, 3.3), sharey=True)
    words = []
    for ax, spread in zip(axes, SHOWN, strict=True):
        part = rows[rows["spread"] == spread]
        facts, start = part.iloc[0], float(part.query("iteration == 0 and omega == 'plain'")["distance"].iloc[0])
        for omega, color, name in (("plain", BLUE, "Sinkhorn"), ("best", GREEN, r"over-relaxed, $\omega^\star$")):
            way = part[(part["omega"] == omega) & (part["distance"] > 1e-12)]
            ax.plot(way["iteration"], way["distance"], "o", color=color, markersize=3, label=name)
            rate, last = way["predicted"].iloc[0], way.iloc[-1]
            steps = np.arange(last["iteration"] + 1)
            ax.plot(steps, last["distance"] * rate ** (steps - last["iteration"]), **THEORY)
        steps = np.arange(part["iteration"].max() + 1)
        ax.plot(steps, start * facts["kappa2"] ** steps, **DASHED)
        if facts["kappa2"] > 0.9:
            beside(ax, steps[-1], start * facts["kappa2"] ** steps[-1], r"$\kappa^{2T}$", shift=(-22, -10))
        ax.set(yscale="log", ylim=(1e-12, 1e2), xlabel="iteration $T$")
        panel_label(ax, f"scores of standard deviation {spread:g}")
        words.append(
            f"at {spread:g} the factors are {facts['kappa2']:.4f} (bound), {facts['sigma2']:.3f} (local rate), "
            f"{facts['omega_star'] - 1:.3f} (over-relaxed)"
        )
    axes[0].set(ylabel=r"$\operatorname{osc}(f^T-f)$".replace(r"\operatorname{osc}", r"\mathrm{osc}"))
    axes[0].legend(fontsize=8, loc="upper right")
    figure.set_label(
        "Distance from the limit against the iteration, logarithmic, for two spreads of the scores. Measured points "
        f"run along straight lines of the predicted slopes: {'; '.join(words)}."
    )
    return figure


def random_scores(rows: pd.DataFrame) -> Figure:
    """Local rate of independent scores against the length; rows of ``RandomScores``."""
    figure, ax = plt.subplots(figsize=(6.2, 3.6))
    rows = rows[rows["s"] <= 1]
    spreads, words = sorted(rows["s"].unique()), []
    sizes = np.geomspace(rows["n"].min() / 1.2, rows["n"].max() * 1.2, 30)
    for s, color in zip(spreads, shades(len(spreads)), strict=True):
        drawn = points(ax, rows[rows["s"] == s], "n", "sigma2", color)
        ax.plot(sizes, 4 * np.expm1(s**2) / sizes, **(THEORY | {"color": color}))
        beside(ax, sizes[-1], 4 * np.expm1(s**2) / sizes[-1], f"$s={s:g}$", color)
        last = drawn.iloc[-1]
        words.append(f"{last['value']:.4f} for s = {s:g} at n = {last['n']:.0f}")
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="tokens $n$",
        ylabel=r"local rate $\sigma_2^2$",
        xlim=(sizes[0], 1.5 * sizes[-1]),
    )
    plain_log(ax.xaxis, sorted(rows["n"].unique()))
    figure.set_label(
        "Local rate against the number of tokens, both logarithmic, along lines 4(exp(s squared) - 1)/n. Measured: "
        f"{', '.join(words)}."
    )
    return figure
