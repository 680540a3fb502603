"""Selection in populations: rows in, a figure with its alt text as label out.

mark                  meaning
filled, open marker   recorded, live; bars are 99.9 % intervals over replicates
line in INK           theory
dashed                zero, or a published value
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from derived.lab.plot import (
    BLUE,
    DASHED,
    GREEN,
    MUTED,
    RED,
    THEORY,
    apart,
    beside,
    largest,
    mean_and_reach,
    panel_label,
)


def coverage(rows: pd.DataFrame) -> Figure:
    """The standardised selection change where fitness is the loss and where it is noise; rows of ``Sampling``."""
    rows = largest(rows)
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 2.9), sharex=True, sharey=True)
    grid, words = np.linspace(-4, 4, 161), []
    names = {"loss": "fitness $e^{-R}$", "noise": "fitness pure noise"}
    for ax, (fitness, name), color in zip(axes, names.items(), (BLUE, RED), strict=True):
        part = rows[rows["fitness"] == fitness]
        ax.hist(part["z"], bins=np.linspace(-4, 4, 49), density=True, color=color, alpha=0.5)
        ax.plot(grid, stats.norm.pdf(grid), **THEORY)
        share = part["covered"].mean()
        ax.annotate(f"{share:.3f} within ±1.96", (0.03, 0.9), xycoords="axes fraction", fontsize=8, color=color)
        ax.set_xlabel("realised less expected, in standard deviations")
        panel_label(ax, name)
        words.append(f"fitness by {fitness}: {share:.3f} within 1.96, standard deviation {part['z'].std():.3f}")
    axes[0].set_ylabel("density")
    figure.set_label(f"Standardised selection change over {len(part)} generations each; {'; '.join(words)}.")
    return figure


def quasispecies(rows: pd.DataFrame) -> Figure:
    """Left: relative error of the first order in the mutation rate. Right: what codes of no excess keep at equal
    fitness; rows of ``Quasispecies``."""
    rows = largest(rows)
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.1))
    one = rows[(rows["case"] == "one optimum") & (rows["type"] == 0)]
    for _, part in one.groupby("instance"):
        left.plot(part["epsilon"], part["error"], "o-", color=BLUE, alpha=0.4, markersize=3, linewidth=0.8)
    ends = np.array([one["epsilon"].min(), one["epsilon"].max()])
    left.plot(ends, ends * float(np.median(one["error"] / one["epsilon"])), **THEORY)
    left.set(xscale="log", yscale="log", xlabel=r"mutation rate $\varepsilon$", ylabel="largest relative error")
    free = rows[(rows["case"] == "planted") & (rows["excess"] == 0)]
    shares = {}
    for quotient, name, color in ((True, "quotient", GREEN), (False, "identity map", RED)):
        share = free[free["quotient"] == quotient].groupby("epsilon")["share"].mean()
        right.plot(share.index, share, "o-", color=color)
        beside(right, share.index[0], share.iloc[0], name, color, (4, 9))
        shares[name] = share.iloc[0]
    right.set(xscale="log", xlabel=r"mutation rate $\varepsilon$", ylabel="share of the population", ylim=(0, 1))
    panel_label(left, "one fittest code")
    panel_label(right, "two codes without excess")
    figure.set_label(
        f"Left: the error of the first order falls in proportion to the mutation rate, to {one['error'].min():.1g}. "
        f"Right: at the smallest rate the quotient has {shares['quotient']:.2f} of the population and the equally fit "
        f"identity map {shares['identity map']:.2f}: mutation, not selection, sets these shares."
    )
    return figure


def drift(rows: pd.DataFrame) -> Figure:
    """Where mixing shares end without selection and with the published fitness curve; rows of ``Drift``."""
    rows = largest(rows)
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.0), sharex=True, sharey=True)
    words = []
    for ax, (name, part) in zip(axes, rows.groupby("published"), strict=True):
        for arm, color in (("neutral", MUTED), ("selected", BLUE)):
            final = part[part["arm"] == arm]["final"]
            ax.hist(final, bins=np.linspace(0, 1, 41), density=True, histtype="step", color=color, label=arm)
            reached = part[part["arm"] == arm]["reached"].mean()
            words.append(f"{name} {arm} mean {final.mean():.2f}, {reached:.3f} reach the published value")
        ax.axvline(part["reported"].iloc[0], **DASHED)
        beside(ax, part["reported"].iloc[0], 0.3, "published", MUTED, (-4, 0), ha="right", fontsize=8)
        ax.set_xlabel(r"final mean share $\bar\alpha$")
        panel_label(ax, name.replace("exp", "experiment"))
    axes[0].set_ylabel("density of runs")
    axes[0].legend(fontsize=8, loc="upper left")
    figure.set_label(f"Final mean shares of simulated recipe populations: {'; '.join(words)}.")
    return figure


PARTS = (("selection", BLUE), ("development", GREEN), ("mutation", RED))
NAMES = {"selection": "selection", "development": "training", "mutation": "perturbation"}


def changes(rows: pd.DataFrame) -> Figure:
    """What selection, training and noise add to the mean risk since the founders; rows of ``Population``."""
    rows = largest(rows)
    strengths, drawn = sorted(rows["strength"].unique()), {}
    figure, axes = plt.subplots(1, len(strengths), figsize=(7.6, 3.4), sharey=True, squeeze=False)
    words = []
    for ax, strength in zip(axes[0], strengths, strict=True):
        for arm, style, face in (("selected", "-", None), ("shuffled", ":", "none")):
            part = rows[(rows["strength"] == strength) & (rows["arm"] == arm)]
            for name, color in PARTS:
                total = part.pivot(index="replicate", columns="generation", values=name).cumsum(axis="columns")
                ax.plot(total.columns + 1, total.mean(), style, color=color)
                mean, reach = mean_and_reach(total.iloc[:, -1])
                place = total.columns[-1] + (1.3 if arm == "selected" else 1.7)
                ax.errorbar(place, mean, reach, fmt="o", color=color, markerfacecolor=face or color, markersize=4)
                words.append(f"strength {strength:g}, {arm}, {NAMES[name]} {mean:+.3f}")
                if arm == "selected":
                    drawn[name] = mean
        ax.plot([1, place], [0, 0], **DASHED)
        ax.set_xlabel("generation")
    low, high = axes[0, 0].get_ylim()
    for (name, color), height in zip(PARTS, apart(list(drawn.values()), 0.07 * (high - low)), strict=True):
        beside(axes[0, -1], place, height, NAMES[name], color, (10, 0), fontsize=8)
    axes[0, -1].set_xlim(right=1.45 * place)
    for ax in axes[0]:
        ax.set_xticks([*range(0, int(place) + 1, max(1, int(place) // 6))][1:])
    for ax, strength in zip(axes[0], strengths, strict=True):
        panel_label(ax, rf"fitness $e^{{-{strength:g}R}}$" if strength != 1 else "fitness $e^{-R}$")
    axes[0, 0].set_ylabel("change of the mean risk (nats)")
    figure.set_label(
        f"Change of the mean risk since the founders by its three causes, under selection (solid) and with fitness "
        f"dealt out at random (dotted); at the end {'; '.join(words)}."
    )
    return figure
