"""Training: courses of the weights, where they end, and what the loss does not see."""

from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, COLOURS, MUTED, RED, THEORY, beside, panel_label

NEAR = 0.1  # of the end, in units of 1/s
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
    """Shares of data sets by the end of training, over the start; rows of ``Starts``."""
    figure, axes = plt.subplots(2, 2, figsize=(6.4, 4.4), sharex=True, sharey=True)
    at = rows["l"] * rows["s"]
    ends = {"$1/s$": (at - 1).abs() < NEAR, "$0$": at.abs() < NEAR, "$-1/s$": (at + 1).abs() < NEAR}
    colours, said = dict(zip(ends, (BLUE, MUTED, RED), strict=True)), []
    for ax, (optimizer, read_out) in zip(axes.flat, product(("adam", "gd"), ("frozen", "recomputed")), strict=True):
        part = (rows["optimizer"] == optimizer) & (rows["read_out"] == read_out)
        for name, ended in ends.items():
            share = ended[part].groupby(rows["l0"][part]).mean()
            for side in (share[share.index < 0], share[share.index > 0]):
                ax.plot(side.index, side, color=colours[name], marker=".")
            most = share[share > 0.5].index
            if len(most):
                said.append(f"{optimizer}, {read_out}: {name} from {most.min():g} to {most.max():g}")
        panel_label(ax, f"{'Adam' if optimizer == 'adam' else 'descent'}, $P$ {read_out}")
    beside(axes[0, 0], 0.6, 1.0, "ends at $1/s$", BLUE, shift=(0, -14))
    beside(axes[0, 0], -0.8, 1.0, "at $0$", MUTED, shift=(0, -14), ha="center")
    beside(axes[0, 1], -1.6, 1.0, "at $-1/s$", RED, shift=(0, -14))
    for ax in axes[1]:
        ax.set_xlabel("start $L_0$")
    for ax in axes[:, 0]:
        ax.set_ylabel("share of data sets")
    figure.set_label(
        "Four panels: where training ends, as a share of data sets, against the start. More than half end, "
        f"{'; '.join(said)}."
    )
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
    """Relative loss against distance from the whitening map, by rank; rows of ``Structure``."""
    figure, ax = plt.subplots(figsize=(5.6, 3.4))
    said = []
    for full, color, marker, words in ((True, BLUE, "o", "rank B = p"), (False, RED, "^", "rank B < p")):
        part = rows[(rows["rank"] == rows["p"]) == full]
        for recorded, some in part.groupby("recorded"):
            x, y = some["relative_loss"].clip(lower=SMALLEST), some["structure_gap"].clip(lower=SMALLEST)
            ax.plot(x, y, marker, color=color, markerfacecolor=color if recorded else "none", linestyle="none")
        gap, loss = part["structure_gap"].median(), part["relative_loss"].median()
        said.append(f"with {words} the median gap is {gap:.1e} at a median relative loss of {loss:.0e}")
    ax.set(xscale="log", yscale="log", xlabel=r"loss, relative to $\|Y\|^2/n$")
    ax.set_ylabel(r"gap $\|L^{\top}\Sigma L-I\|_F/\sqrt{p}$")
    ax.set_ylim(SMALLEST / 5, 300)
    at = {"xycoords": "axes fraction", "ha": "right"}
    ax.annotate(r"rank $\hat B<p$: fitted, not found", (0.97, 0.93), color=RED, **at)
    ax.annotate(r"rank $\hat B=p$: fitted and found", (0.97, 0.1), color=BLUE, **at)
    figure.set_label(f"Structure gap against relative loss, {len(rows)} runs: {'; '.join(said)}.")
    return figure
