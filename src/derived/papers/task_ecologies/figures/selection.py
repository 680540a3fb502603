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
    INK,
    MUTED,
    RED,
    THEORY,
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
        called = name if quotient else f"{name}, finer"
        beside(right, share.index[0], share.iloc[0], called, color, (4, 9))
        shares[name] = share.iloc[0]
    right.set(xscale="log", xlabel=r"mutation rate $\varepsilon$", ylabel="share of the population", ylim=(0, 1))
    panel_label(left, "first-order formula: its error\nfalls with the mutation rate")
    panel_label(right, f"rare mutation: a finer code\nkeeps a share of {shares['identity map']:.2f}")
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


PARTS = {"selection": ("selection", BLUE), "development": ("training", GREEN), "mutation": ("perturbation", RED)}


def changes(rows: pd.DataFrame) -> Figure:
    """What selection, training and noise take off the mean risk in a run; rows of ``Population``."""
    rows = largest(rows)
    figure, ax = plt.subplots(figsize=(5.5, 3.6))
    words, totals, ticks, place = [], [], {}, 0.0
    for strength in sorted(rows["strength"].unique()):
        power = "R" if strength == 1 else f"{strength:g}R"
        ax.annotate(rf"fitness $e^{{-{power}}}$", (0, place - 0.5), va="center")
        for arm, name in (("selected", "true fitness"), ("shuffled", "dealt out")):
            part = rows[(rows["strength"] == strength) & (rows["arm"] == arm)]
            taken, begin = -part.groupby("replicate")[[*PARTS]].sum(), 0.0
            for cause, (said, color) in PARTS.items():
                mean = taken[cause].mean()
                ax.barh(place, mean, 0.62, begin, color=color, edgecolor=color, alpha=0.8)
                if mean > 0.03:
                    beside(ax, begin, place, said, "#ffffff", (5, 0))
                begin += mean
                words.append(f"strength {strength:g}, {arm}, {said} {-mean:+.3f}")
            mean, reach = mean_and_reach(taken.sum(axis="columns"))
            ax.errorbar(mean, place, xerr=reach, fmt="D", color=INK, markersize=4, capsize=3)
            totals.append(mean)
            ticks[place] = name
            place += 1
        place += 0.8
    ax.set_yticks([*ticks], [*ticks.values()])
    ax.set(ylim=(place - 1.2, -1.0), xlim=(min(0, ax.get_xlim()[0]), None))
    ax.tick_params(axis="y", length=0)
    ax.set(xlabel="taken off the mean risk in a run (nats)", ylabel="parents drawn by")
    panel_label(ax, f"Selected or not, the risk falls by {min(totals):.3f} to {max(totals):.3f} nats")
    figure.set_label(
        "Change of the mean risk since the founders by its three causes, under selection and with fitness dealt out at "
        f"random: {'; '.join(words)}; in all it falls by {min(totals):.3f} to {max(totals):.3f}."
    )
    return figure
