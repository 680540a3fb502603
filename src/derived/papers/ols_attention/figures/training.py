"""Training: courses of the weights, where they end, and what the loss does not see."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, COLOURS, DASHED, MUTED, RED, THEORY, beside, largest, panel_label

NEAR = 0.1  # of the end, in units of 1/s
ALIKE = 0.9  # of the data sets end where the flow ends
FOUND, FITTED = 1e-2, 1e-4  # gap and relative loss, as OLS-10.e and OLS-10.f ask
ASH = "#8c8c8c"  # at zero
TRAINED = {"": "the flow", "adam": "Adam", "gd": "descent"}
SMALLEST = 1e-17  # what a logarithmic axis shows in place of zero


def courses(rows: pd.DataFrame) -> Figure:
    """The scalar weight over the epochs, read-out frozen and recomputed, Adam; where recomputed also plain descent
    from the farthest start; rows of ``Courses``."""
    figure, axes = plt.subplots(1, 2, figsize=(6.4, 2.9), sharey=True)
    rows = rows[~rows["recorded"]].sort_values("epoch")
    leap = rows[(rows["optimizer"] == "gd") & (rows["read_out"] == "recomputed") & (rows["l0"] == rows["l0"].max())]
    rows = rows[rows["optimizer"] == "adam"]
    root, last, ends = float(rows["inverse_root"].iloc[0]), int(rows["epoch"].max()), {}
    for ax, read_out, text in zip(axes, ("frozen", "recomputed"), (r"at $s\hat\beta$", "from $l$"), strict=True):
        for level in (root, -root):
            ax.axhline(level, **THEORY)
        for (l0, course), color in zip(rows[rows["read_out"] == read_out].groupby("l0"), COLOURS, strict=False):
            ax.plot(course["epoch"], course["l"], color=color)
            ax.plot(0, l0, "o", color=color, clip_on=False)
            ends[read_out, l0] = float(course["l"].iloc[-1])
        ax.set(xlabel="epoch", xlim=(0, last))
        panel_label(ax, f"$P$ {read_out} {text}")
    axes[1].plot(leap["epoch"], leap["l"], color=MUTED, linestyle="--")
    turn = leap[leap["l"] > leap["l"].min() / 2].iloc[-1]
    beside(axes[1], turn["epoch"], turn["l"], "plain descent", MUTED, (10, 0))
    beside(axes[1], last, root, "$1/s$")
    beside(axes[1], last, -root, "$-1/s$")
    axes[0].set_ylabel("weight $l$")
    positive = [end for (_, l0), end in ends.items() if l0 > 0]
    negative = ", ".join(f"{end:.3f} with the read-out {kind}" for (kind, l0), end in ends.items() if l0 < 0)
    figure.set_label(
        f"Weight against epoch in two panels. From positive starts it ends between {min(positive):.3f} and "
        f"{max(positive):.3f}, where 1/s is {root:.3f}; from negative ones at {negative}. "
        f"Plain descent from {leap['l0'].iloc[0]:g}, recomputed, ends at {leap['l'].iloc[-1]:.3f}."
    )
    return figure


def where_it_ends(rows: pd.DataFrame) -> Figure:
    """Shares of data sets by the end of training, over the start, below the end of the flow; rows of ``Starts``."""
    figure, ax = plt.subplots(figsize=(5.5, 4.3))
    starts, at = np.sort(rows["l0"].unique()), rows["l"] * rows["s"]
    ends = {"$-1/s$": (at + 1).abs() < NEAR, "$0$": at.abs() < NEAR, "$1/s$": (at - 1).abs() < NEAR}
    colours, said, ticks, base = dict(zip(ends, (RED, ASH, BLUE), strict=True)), [], {}, 0.0
    for read_out, left in (("frozen", "$0$"), ("recomputed", "$-1/s$")):
        ax.annotate(f"read-out $P$ {read_out}", (starts[0], base + 1.1))
        for x, name in ((starts[0] / 2, left), (starts[-1] / 2, "$1/s$")):
            ax.annotate(f"ends at {name}", (x, base + 0.8), color=colours[name], ha="center")
        flow = {name: np.where(starts < 0, name == left, name == "$1/s$") for name in ends}
        for optimizer, words in TRAINED.items():
            part = (rows["optimizer"] == optimizer) & (rows["read_out"] == read_out)
            shares = {name: np.asarray(ended[part].groupby(rows["l0"][part]).mean()) for name, ended in ends.items()}
            filled, ticks[base + 0.37] = np.full(len(starts), base), words
            style = {"width": 0.95 * np.diff(starts).min(), "linewidth": 0.4}
            for name, share in (shares if optimizer else flow).items():
                some = share > 0  # a bar of no height would be a line
                ax.bar(
                    starts[some], 0.75 * share[some], bottom=filled[some], fc=colours[name], ec=colours[name], **style
                )
                filled = filled + 0.75 * share
            if optimizer:
                alike = sum(int((shares[name] > ALIKE)[flow[name]].sum()) for name in ends)
                said.append(f"{words}, P {read_out}, from {alike} of {len(starts)} starts")
            told = f"{alike} of {len(starts)}" if optimizer else "as the flow"
            ax.annotate(told, (1.08 * starts[-1], base + 0.37), va="center", annotation_clip=False)
            base -= 1.0
        base -= 0.8
    ax.set_yticks([*ticks], [*ticks.values()])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set(xlabel="start $L_0$", ylabel="share of data sets", xlim=1.05 * starts[[0, -1]], ylim=(base + 1.6, 1.5))
    panel_label(ax, "Training ends where the flow does only from some starts")
    figure.set_label(f"Where the flow, Adam and descent end, by start. As the flow end {'; '.join(said)}.")
    return figure


def end_points(rows: pd.DataFrame) -> Figure:
    """Courses in the plane of both trained numbers: hyperbolas that meet the curve of zero loss; ``Courses``."""
    rows = rows[(rows["read_out"] == "trained") & (rows["optimizer"] == "gd") & ~rows["recorded"]]
    s, beta = float(rows["s"].iloc[0]), float(rows["beta"].iloc[0])
    figure, ax = plt.subplots(figsize=(5.4, 3.8))
    reach = 1.15 * max(1.6, float(rows["l"].abs().max()))
    curve, l = np.linspace(0.35, reach, 200), np.linspace(-reach, reach, 801)
    ax.plot(curve, beta / (s**2 * curve**3), **THEORY | {"linewidth": 1.6})
    ends = []
    for (l0, course), color in zip(rows.groupby("l0"), COLOURS, strict=False):
        course = course.sort_values("epoch")
        P0 = float(course["P"].iloc[0])
        square = (l**2 - l0**2) / 3 + P0**2
        branch = np.where(square >= 0, np.sqrt(np.maximum(square, 0)), np.nan)
        ax.plot(l, branch, color=color, linewidth=0.8, linestyle=":")
        ax.plot(course["l"], course["P"], color=color, linewidth=2.2)
        ax.plot(l0, P0, "o", color=color, markerfacecolor="none")
        ax.plot(course["l"].iloc[-1], course["P"].iloc[-1], "o", color=color)
        ends.append(f"from {l0:g} to {course['l'].iloc[-1]:.3f}")
    ax.axvline(1 / s, color=MUTED, linewidth=0.9, linestyle="--")
    ax.set(xlabel="weight $l$", ylabel="read-out $P$", xlim=(-reach, reach), ylim=(0, 2.6))
    beside(ax, 1 / s, 0.12, "$1/s$", MUTED)
    top = 2.3
    beside(ax, (beta / (s**2 * top)) ** (1 / 3), top, r"zero loss: $l^3P=\hat\beta/s^2$", shift=(-8, 0), ha="right")
    figure.set_label(
        f"The plane of weight and read-out. Each course follows its own hyperbola, {', '.join(ends)}. Those "
        f"that reach the curve of zero loss do so at different weights; 1/s is {1 / s:.3f}."
    )
    return figure


def structure(rows: pd.DataFrame) -> Figure:
    """How far the trained map is from whitening, a point a run, by rank; rows of ``Structure``."""
    rows = largest(rows)
    figure, ax = plt.subplots(figsize=(5.5, 3.0))
    said = []
    for height, full, color, words in ((1, True, BLUE, r"rank $\hat B=p$"), (0, False, RED, r"rank $\hat B<p$")):
        part = rows[(rows["rank"] == rows["p"]) == full]
        gap, fitted = part["structure_gap"], part["relative_loss"] < FITTED
        place = height + 0.24 * np.sin(2.4 * np.arange(len(part)))
        ax.plot(gap.clip(lower=SMALLEST), place, ".", color=color, markersize=5, alpha=0.6)
        found = f"{fitted.sum()} of {len(part)} fit, {(gap < FOUND).sum()} found the map"
        ax.annotate(f"{words}: {found}", (0.02, height + 0.34), xycoords=("axes fraction", "data"), color=color)
        said.append(f"with rank B {'=' if full else '<'} p {found}, median gap {gap.median():.1e}")
    ax.axvline(FOUND, **DASHED)
    beside(ax, FOUND, -0.45, "← counts as found", MUTED, (-5, 0), ha="right")
    ax.set(xscale="log", xlim=(SMALLEST / 3, 10), ylim=(-0.6, 1.6), yticks=[], ylabel="runs")
    ax.spines["left"].set_visible(False)
    ax.set_xlabel("gap of the trained map $L$ from whitening")
    panel_label(ax, "A good fit tells the map only where the rank is full")
    figure.set_label(f"Structure gap of {len(rows)} runs: {'; '.join(said)}.")
    return figure
