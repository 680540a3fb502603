"""Attention over the whole past: rows in, a figure with its alt text as label out.

mark               meaning
blue, orange       components, or uniform and fading scores
dashed             the limits V (m + Sigma theta)
line in INK        predicted size of the error; density of the Beta law
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from derived.lab.plot import BLUE, COLOURS, DASHED, RED, THEORY, beside, panel_label, plain_log, points


def readouts(rows: pd.DataFrame) -> Figure:
    """What a head reads from two components, and its error; rows of ``Readout``."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.4))
    words = []
    for component, part in rows.groupby("component"):
        color, limit = COLOURS[component], part["limit"].iloc[0]
        for _, path in part.groupby("group"):
            left.plot(path["t"], path["reading"], color=color, linewidth=0.7, alpha=0.5)
        left.axhline(limit, **DASHED)
        beside(left, part["t"].max(), limit, f"component {component + 1}", color, (0, 9), ha="right", fontsize=9)
        points(right, part, "t", "rmse", color)
        t = np.array([part["t"].min(), part["t"].max()], dtype=float)
        predicted = float((part["rmse"] ** 2 * part["t"] / part["scaled"]).mean()) ** 0.5
        right.plot(t, predicted * t**-0.5, **THEORY)
        last = part[part["t"] == part["t"].max()]
        words.append(f"component {component + 1}: limit {limit:.2f}, error {last['rmse'].mean():.3f} at the end")
    left.set(xscale="log", xlabel="tokens $t$", ylabel="first coordinate of $o_t$")
    right.set(xscale="log", yscale="log", xlabel="tokens $t$", ylabel="root mean square error")
    for ax in (left, right):
        plain_log(ax.xaxis, (128, 512, 2048))
    plain_log(right.yaxis, (0.02, 0.05, 0.1))
    panel_label(left, "what one head reads")
    panel_label(right, "and how far it is off")
    figure.set_label(
        f"Read-out of one head against the number of tokens, on two components; {'; '.join(words)}. Errors lie on the "
        "predicted lines of slope minus one half."
    )
    return figure


def self_fed(rows: pd.DataFrame, paths: pd.DataFrame) -> Figure:
    """Heads that feed on their own samples; rows of ``SelfFed``, and paths: feed, replicate, n, read."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.3), sharey=True, width_ratios=(1.6, 1))
    words, edges = [], np.linspace(0, 1, 41)
    for color, feed in ((BLUE, "uniform"), (RED, "fading")):
        for _, path in paths[paths["feed"] == feed].groupby("replicate"):
            left.plot(path["n"], path["read"], color=color, linewidth=0.6, alpha=0.5)
        ends = rows.loc[rows["feed"] == feed, "x"]
        style = {"density": True, "orientation": "horizontal", "histtype": "step", "color": color}
        right.hist(ends, edges, label=f"{feed} scores", **style)
        words.append(f"{feed} scores: mean {ends.mean():.2f}, standard deviation {ends.std():.3f}")
    grid = np.linspace(0, 1, 201)
    right.plot(stats.beta.pdf(grid, 2, 3), grid, **THEORY)
    left.set(xscale="log", xlabel="tokens written, $n$", ylabel="share of ones")
    plain_log(left.xaxis, (1, 10, 100, 1000))
    right.set(xlabel="density of the end", xlim=(0, 6))
    right.legend(fontsize=8)
    panel_label(left, "from one prompt")
    panel_label(right, "1000 tokens on")
    figure.set_label(
        f"Heads that read the share of ones among their own samples, after the same prompt. At the end, "
        f"{'; '.join(words)}. With uniform scores the ends have the density of Beta(2, 3)."
    )
    return figure
