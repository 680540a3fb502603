"""Queries on which the layer was not made: shifted inputs, and fresh batches."""

from collections.abc import Callable

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import (
    BLUE,
    DASHED,
    GREEN,
    MUTED,
    RED,
    THEORY,
    beside,
    largest,
    panel_label,
    plain_log,
    points,
    shades,
)

from .words import shown

SMALLEST = 1e-17  # what a logarithmic axis shows in place of zero


def shift(rows: pd.DataFrame) -> Figure:
    """Distance from the least-squares prediction when the inputs are scaled or turned; rows of ``Shift``."""
    figure, axes = plt.subplots(1, 2, figsize=(6.4, 3.1), sharey=True)
    kinds, drawn = (("scale", "scale $c$ of the inputs"), ("rotation", "rotation, quarter turns")), {}
    for ax, (kind, words) in zip(axes, kinds, strict=True):
        part = rows[rows["shift"] == kind].assign(error=lambda some: some["error"].clip(lower=SMALLEST))
        for method, color, marker in (("self", RED, "^"), ("cross", BLUE, "o"), ("labels", GREEN, "s")):
            drawn[kind, method] = points(ax, part[part["method"] == method], "amount", "error", color, marker)
        ax.set(xlabel=words, yscale="log", ylim=(SMALLEST, 300))
    c = np.geomspace(rows["amount"].replace(0, np.nan).min(), rows["amount"].max(), 400)
    axes[0].plot(c, np.abs(c**2 - 1), **THEORY)
    axes[0].set_xscale("log")
    plain_log(axes[0].xaxis, (0.25, 0.5, 1, 2, 4))
    axes[0].set_ylabel("relative error")
    at = {"xycoords": "axes fraction", "ha": "right"}
    axes[0].annotate(r"self-attention: $|c^2-1|$", (0.97, 0.64), color=RED, **at)
    axes[1].annotate("self-attention", (0.97, 0.64), color=RED, **at)
    axes[1].annotate("attention to the\ntraining tokens", (0.97, 0.3), color=BLUE, **at)
    axes[1].annotate("labels as values", (0.97, 0.21), color=GREEN, **at)
    scale, turned = (shown(drawn[kind, "self"]).set_index("amount")["value"] for kind in ("scale", "rotation"))
    safe = max(each["value"].max() for (_, method), each in drawn.items() if method != "self")
    figure.set_label(
        f"Relative error on a logarithmic axis. Self-attention with frozen weights errs by "
        f"{scale.iloc[-1]:.1f} at scale {scale.index[-1]:g} and by {turned.iloc[-1]:.2f} after "
        f"{turned.index[-1]:g} quarter turns; attention to the training tokens and labels as values stay "
        f"below {safe:.0e}."
    )
    return figure


def batch_error(rows: pd.DataFrame, exact: Callable[[int, int], float]) -> Figure:
    """Squared error on fresh batches against the batch size; rows of ``BatchError``; ``exact(p, n)`` is its mean."""
    figure, ax = plt.subplots(figsize=(5.6, 3.4))
    sizes, dimensions, worst = sorted(rows["num_tokens"].unique()), sorted(rows["p"].unique()), 0.0
    n = np.unique(np.geomspace(sizes[0] / 1.5, sizes[-1] * 1.5, 60).astype(int).clip(min=1))
    for p, color in zip(dimensions, shades(len(dimensions)), strict=True):
        curve = [exact(int(p), int(size)) for size in n]
        ax.plot(n, curve, **THEORY)
        beside(ax, n[-1], curve[-1], f"$p={p}$")
        drawn = points(ax, rows[rows["p"] == p], "num_tokens", "error", color)
        means = np.array([exact(int(p), int(size)) for size in drawn["num_tokens"]])
        worst = max(worst, float(np.abs(drawn["value"] / means - 1).max()))
    ax.set(xscale="log", yscale="log", xlabel=r"tokens $\tilde n$ in the new batch", ylabel="relative squared error")
    plain_log(ax.xaxis, sizes)
    panel_label(ax, r"A fresh batch errs like $(p+1)/\tilde n$")
    figure.set_label(
        f"Relative squared error against the number of tokens on logarithmic axes, a falling line for each of p = "
        f"{', '.join(map(str, dimensions))}. The measured means lie on the exact curves, the farthest {worst:.1%} off."
    )
    return figure


def quarters(rows: pd.DataFrame) -> Figure:
    """Error of a quarter against how much its second moment has changed; rows of ``Quarters``."""
    figure, ax = plt.subplots(figsize=(5.4, 3.4))
    rows = rows[(rows["method"] == "self") & (rows["order"] == "in order")]
    one = rows[~rows["recorded"]] if (~rows["recorded"]).any() else rows
    gap = (one["growth"] - 1).abs()
    ax.plot(gap, one["error"], "o", color=RED, markersize=4)
    line = np.geomspace(gap.min(), gap.max(), 50)
    ax.plot(line, line, **THEORY)
    top = one.loc[one["error"].idxmax()]
    beside(ax, abs(top["growth"] - 1), top["error"], f"until {top['until']}", RED, shift=(-8, -2), ha="right")
    ax.set(xscale="log", yscale="log", xlabel=r"$|c^2-1|$, with $c^2$ the growth of the second moment")
    ax.set_ylabel("error, of the least-squares forecast")
    figure.set_label(
        f"Relative error of {len(one)} quarters against the change of their second moment, along the line error = "
        f"change, from {one['error'].min():.2f} to {one['error'].max():.1f}, in the quarter until {top['until']}."
    )
    return figure


def eras(rows: pd.DataFrame) -> Figure:
    """Error of frozen over that of refitted weights, speech by speech over the years; rows of ``Eras``."""
    figure, ax = plt.subplots(figsize=(5.6, 3.4))
    rows = largest(rows).assign(ratio=lambda some: some["frozen"] / some["refitted"])
    ax.axhline(1, **DASHED)
    for order, color, marker, size in (("shuffled", MUTED, ".", 3), ("in order", RED, "o", 4)):
        part = rows[rows["order"] == order]
        ax.plot(part["year"], part["ratio"], marker, color=color, markersize=size)
    part = rows[rows["order"] == "in order"]["ratio"]
    logs = np.log(rows["ratio"]).groupby([rows["order"], rows["era"]]).mean()
    times, dealt = (np.exp(logs[order].mean()) for order in ("in order", "shuffled"))
    panel_label(ax, f"Frozen weights err {times:.2f} times as much; grey: order shuffled, {dealt:.2f}")
    ax.set(yscale="log", xlabel="year of the speech", ylabel="error, frozen over refitted")
    plain_log(
        ax.yaxis, [tick for tick in (0.25, 0.5, 1, 2, 4, 8) if rows["ratio"].min() / 2 < tick < rows["ratio"].max() * 2]
    )
    figure.set_label(
        f"Error of frozen over that of refitted weights for each of {len(part)} speeches, on a logarithmic axis: "
        f"{times:.2f} in the geometric mean, above one for {(part > 1).mean():.0%}. Grey, the speeches dealt to the "
        f"eras by chance: {dealt:.2f}."
    )
    return figure
