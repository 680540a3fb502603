"""Networks of the shape of a vision transformer on the recurrences: moments of the stream, and gradients."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import INK, RED, THEORY, apart, beside, largest, mean_and_reach, panel_label, points, shades

from .marks import amplification_axis

GROWTH = "growth of the squared gradient,\nfrom the output to block $b$"


def stream_moments(rows: pd.DataFrame) -> Figure:
    """q and rho by block, networks against the recurrences; rows of ``VisionTransformer``."""
    rows = largest(rows)
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.2))
    rows = rows.assign(rho=rows["p"] / rows["q"], rho_theory=rows["p_theory"] / rows["q_theory"])
    ends, labels, last_block = [], [], rows["b"].max()
    for name, color, part in _cases(rows):
        first = part.groupby("b").first()
        for ax, column in zip(axes, ("q", "rho"), strict=True):
            ax.plot(first.index, first[f"{column}_theory"], **THEORY | {"color": color})
            points(ax, _some(part), "b", column, color)
        beside(axes[0], last_block, first["q_theory"].iloc[-1], name, color, fontsize=9)
        last = part[part["b"] == last_block]
        ends.append(f"{name}: {last['rho'].mean():.3f} measured, {last['rho_theory'].iloc[0]:.3f} predicted")
        labels.append((name, color, first["rho_theory"].iloc[-1]))
    for (name, color, _), place in zip(labels, apart([end for *_, end in labels], 0.03), strict=True):
        beside(axes[1], last_block, place, name, color, fontsize=9)
    axes[0].set(xlabel="block $b$", ylabel="second moment $q$")
    axes[1].set(xlabel="block $b$", ylabel=r"overlap $\rho=p/q$")
    for ax in axes:
        ax.set_xlim(right=1.55 * last_block)
        ax.set_xticks(np.unique(np.linspace(0, last_block, 5).round()))
    panel_label(axes[0], "Networks (dots) on the recurrence (lines)")
    figure.set_label(
        f"Second moment and overlap against block, markers on the theory's lines. At the end {'; '.join(ends)}."
    )
    return figure


def _cases(rows: pd.DataFrame):
    """(name, colour, rows) of pre-LayerNorm and of each alpha."""
    alphas = sorted(rows.loc[rows["norm"] == "erf", "alpha"].unique())
    yield "LayerNorm", INK, rows[rows["norm"] == "layernorm"]
    for alpha, color in zip(alphas, shades(len(alphas)), strict=True):
        yield f"Derf, α = {alpha:g}", color, rows[(rows["norm"] == "erf") & (rows["alpha"] == alpha)]


def _some(part: pd.DataFrame) -> pd.DataFrame:
    """About nine of the blocks, the input among them."""
    return part[part["b"] % max(1, part["b"].nunique() // 8) == 0]


def vision_gradients(rows: pd.DataFrame) -> Figure:
    """J^{B,b} of networks of ViT-Base shape; rows of ``VisionTransformer``."""
    rows = largest(rows)
    figure, ax = plt.subplots(figsize=(6.4, 3.6))
    ends = []
    for name, color, part in _cases(rows):
        first = part.groupby("b").first()
        ax.plot(first.index, first["J_theory"], **THEORY | {"color": color})
        points(ax, _some(part), "b", "J", color)
        start = part[part["b"] == 0]
        ends.append(f"{name} {start['J'].mean():.3g} ({start['J_theory'].iloc[0]:.3g})")
        beside(ax, 0, first["J_theory"].iloc[0], name, color, (-7, 0), ha="right", fontsize=9)
    ax.set(xlabel="block $b$", ylabel=GROWTH)
    amplification_axis(ax, rows["J"].max())
    ax.set_xlim(left=-0.25 * rows["b"].max())
    ax.set_xticks(np.unique(np.linspace(0, rows["b"].max(), 5).round()))
    figure.set_label(
        "Gradient norm against block on a logarithmic axis; it grows from right, the output, to left, the input. "
        f"At the input, measured and in brackets predicted: {', '.join(ends)}."
    )
    return figure


def real_gradients(rows: pd.DataFrame) -> Figure:
    """J^{B,b} of a real network, trained and drawn anew, on the recurrence: geometric means over photographs and their
    99.9 % intervals; rows of ``TrainedVision``."""
    rows = largest(rows)
    recorded = bool(rows["recorded"].iloc[0])
    figure, ax = plt.subplots(figsize=(6.4, 3.6))
    ends = []
    for weights, color, b, offset in (("trained", RED, 9, (8, 6)), ("drawn anew", INK, 10, (-40, -26))):
        part = rows[rows["weights"] == weights]
        each = np.log(part[["J", "J_theory"]]).groupby([part["b"], part["replicate"]]).mean()
        logs = each.groupby("b").mean()
        reach = each["J"].groupby("b").apply(lambda one: mean_and_reach(one)[1])
        J = np.exp(logs["J"])
        bars = [J - np.exp(logs["J"] - reach), np.exp(logs["J"] + reach) - J]
        ax.errorbar(J.index, J, bars, fmt="o", color=color, markerfacecolor=color if recorded else "none", markersize=4)
        if weights == "drawn anew":
            ax.plot(logs.index, np.exp(logs["J_theory"]), **THEORY)
        ends.append(f"{weights} {np.exp(logs['J'].iloc[0]):.0f} ({np.exp(logs['J_theory'].iloc[0]):.0f})")
        beside(ax, b, np.exp(logs["J"].loc[b]), weights, color, offset, fontsize=9)  # clear of the bars
    ax.set(xlabel="block $b$", ylabel=GROWTH, yscale="log")
    figure.set_label(
        "Gradient norm against block on a logarithmic axis, markers of a real network as trained and with matrices "
        "drawn anew, the recurrence as a line. At the input, geometric means and in brackets predicted: "
        f"{', '.join(ends)}."
    )
    return figure
