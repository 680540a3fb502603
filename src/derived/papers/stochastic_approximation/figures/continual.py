"""Learners in a world that changes: rows in, a figure with its alt text as label out.

mark              meaning
line in INK       theory: 1 / (1 + epsilon/a), the variance of a mean
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, GREEN, INK, RED, THEORY, beside, largest, panel_label, plain_log


def trade_off(tracking: pd.DataFrame, average: pd.DataFrame) -> Figure:
    """Variance at constant step and at 1/n; rows of ``Tracking`` and ``Average``."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.3), sharey=True)
    grid = np.geomspace(0.005, 20, 200)
    left.plot(grid, 1 / (1 + grid), **THEORY)
    means = largest(tracking).groupby(["a", "epsilon"])["square"].mean()
    for (a, part), color in zip(means.groupby("a"), (BLUE, RED), strict=True):
        epsilon = part.index.get_level_values("epsilon")
        left.plot(epsilon / a, part, "o", color=color, markerfacecolor="none", label=f"$a={a:g}$")
    left.set(xscale="log", xlabel=r"$\epsilon/a$", ylabel="variance of $x$", ylim=(0, 1.08))
    left.legend(fontsize=9)
    panel_label(left, "large step: follows the world,\nsmall step: averages")
    best = largest(average)
    points = best.assign(square=best["x"] ** 2).groupby("n").agg(square=("square", "mean"), exact=("exact", "first"))
    right.plot(points.index, points["square"], "o", color=GREEN, markerfacecolor="none")
    right.plot(points.index, points["exact"], **THEORY)
    epsilon = best["epsilon"].iloc[0]
    right.axvline(1 / epsilon, color=INK, linewidth=0.8, linestyle=":")
    beside(right, 1 / epsilon, 1.0, rf"$1/\epsilon={1 / epsilon:g}$", INK, (4, 0))
    right.set(xscale="log", xlabel="$n$")
    plain_log(right.xaxis, (1, 10, 100, 1000))
    panel_label(right, "step $1/n$: two worlds up to $1/\\epsilon$,\nthen one")
    words = [f"epsilon over a {e / a:.2g}: {value:.3f}" for (a, e), value in means.items()]
    figure.set_label(
        f"Left: variance of the iterate at constant step, on the curve 1/(1 + epsilon/a); {'; '.join(words)}. Right: "
        f"variance at step 1/n, from {points['square'].iloc[0]:.2f} at n = 1 to {points['square'].iloc[-1]:.3f} at "
        f"n = {points.index[-1]}; it falls once n passes 1/epsilon = {1 / epsilon:.0f}."
    )
    return figure
