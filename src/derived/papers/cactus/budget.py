"""The target of one drafted token and what its budget is worth: rows in, a figure with its alt text as label out.

mark                   meaning
blue, orange, green    verifier q, draft p, emitted law
line in INK            theory; dashed: a bound or a limit
sequential colours     a swept parameter
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, DASHED, DIVERGING, GREEN, INK, MUTED, RED, SKY, THEORY, beside, panel_label, shades


def overlap(rows: pd.DataFrame) -> Figure:
    """Bars of p and q with their overlap, and one raised target; rows: token, p, q, h (the target), drafted."""
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 2.9), sharey=True)
    x = rows["token"].to_numpy()
    axes[0].bar(x, rows["q"], 0.8, facecolor="none", edgecolor=BLUE, linewidth=1.6, label="verifier $q$")
    axes[0].bar(x, rows["p"], 0.5, facecolor="none", edgecolor=RED, linewidth=1.6, label="draft $p$")
    shared = np.minimum(rows["p"], rows["q"])
    axes[0].bar(x, shared, 0.5, color=MUTED, alpha=0.45, label="kept")
    axes[0].legend(fontsize=8, loc="upper right")
    drafted = int(rows.loc[rows["drafted"], "token"].iloc[0])
    axes[1].bar(x, rows["q"], 0.8, facecolor="none", edgecolor=BLUE, linewidth=1.6, label="verifier $q$")
    axes[1].bar(x, rows["h"], 0.5, color=np.where(rows["drafted"], GREEN, SKY), alpha=0.8)
    raised = float(rows.loc[rows["drafted"], "h"].iloc[0])
    beside(axes[1], drafted, raised, rf"$\gamma={raised:.2f}$", GREEN, (-8, 8))
    for ax, text in zip(axes, ("exact", rf"the target after drafting token {drafted}"), strict=True):
        ax.set(xlabel="token", xticks=x)
        panel_label(ax, text)
    axes[0].set(ylabel="probability", ylim=(0, 1.15 * max(rows[["p", "q", "h"]].max())))
    figure.set_label(
        f"Left: bars of draft and verifier over {len(x)} tokens; their overlap, the acceptance, is {shared.sum():.2f}. "
        f"Right: the target after drafting token {drafted}, its bar raised to {raised:.2f}, the others shrunk alike."
    )
    return figure


def raised_probability(rows: pd.DataFrame) -> Figure:
    """gamma against q_n for several budgets; rows: delta, q_n, second_order, exact."""
    figure, ax = plt.subplots(figsize=(6.0, 3.6))
    deltas, words = sorted(rows["delta"].unique()), []
    for delta, color in zip(deltas, shades(len(deltas)), strict=True):
        part = rows[rows["delta"] == delta].sort_values("q_n")
        ax.plot(part["q_n"], part["second_order"], color=color)
        ax.plot(part["q_n"], part["exact"], color=color, linestyle=":", linewidth=1.2)
        ax.plot([], [], color=color, label=rf"$\delta={delta:g}$")
        words.append(f"{(part['second_order'] - part['exact']).abs().max():.3f} at {delta:g}")
    ax.plot([0, 1], [0, 1], **DASHED)
    ax.legend(fontsize=8, loc="lower right")
    ax.set(xlabel="verifier's probability $q_n$ of the drafted token", ylabel=r"raised to $\gamma_n$", xlim=(0, 1))
    ax.set_ylim(0, 1.03)
    panel_label(ax, "solid: Cactus; dotted: what KL allows")
    figure.set_label(
        "Raised probability against the verifier's, solid the second-order rule, dotted the exact root for KL. Largest "
        f"distance of the two: {', '.join(words)}."
    )
    return figure


def budget_map(rows: pd.DataFrame) -> Figure:
    """KL over its budget on a grid; rows: delta, q_n, ratio."""
    grid = rows.pivot(index="delta", columns="q_n", values="ratio")
    largest = float(grid.to_numpy().max())
    if largest > 2:
        raise ValueError(f"{largest:.4g} budgets are spent: a target spends less than twice its budget (cac-budget)")
    figure, ax = plt.subplots(figsize=(6.4, 3.8))
    norm = TwoSlopeNorm(1.0, 0.0, 2.0)
    mesh = ax.pcolormesh(grid.columns, grid.index, grid, cmap=DIVERGING, norm=norm, shading="nearest", rasterized=True)
    figure.colorbar(mesh, ax=ax, label=r"spent over budget, $D_{\mathrm{KL}}(h^{(n)}\|q)\,/\,\delta$")
    low = np.linspace(1e-3, 0.499, 400)
    edge = (1 - 2 * low) ** 2 / (2 * low * (1 - low))  # gamma = 1 - q
    ax.plot(low, edge, **THEORY)
    ax.axvline(0.28467, **DASHED)
    ax.plot(1 / (1 + 2 * grid.index), grid.index, color=INK, linestyle=":", linewidth=1.2)
    ax.set(yscale="log", ylim=(grid.index.min(), grid.index.max()), xlim=(0, 1))
    beside(ax, 0.36, 0.004, "kept:\n$\\gamma<1-q_n$", INK, ha="center")
    beside(ax, 0.68, 0.03, "broken", INK, ha="center")
    beside(ax, 0.28467, 0.0016, "$q_0$", INK, (-16, 0))
    beside(ax, 1 / (1 + 2 * 0.5), 0.5, "worst", INK, (6, 10))
    ax.set(xlabel="verifier's probability $q_n$ of the drafted token", ylabel=r"budget $\delta$ (nats)")
    broken = float((grid > 1 + 1e-6).to_numpy().mean())
    panel_label(ax, f"Red: a target spends more than its budget, up to {largest:.2f} times")
    figure.set_label(
        f"Heat map of KL over its budget: up to {largest:.2f}. On {100 * broken:.0f} % of the map the budget is "
        "broken, nowhere left of the line where gamma is 1 - q, and nowhere left of q0 = 0.285."
    )
    return figure
