"""What a trained pair gains and pays: rows in, a figure with its alt text as label out.

mark                   meaning
filled, open marker    recorded, live; means over the pairs of models
sequential colours     a swept parameter
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from derived.lab.plot import INK, SEQUENTIAL, beside, largest, panel_label, shades

from .marks import RULES


def trained_pair(rows: pd.DataFrame) -> Figure:
    """Share of texts without fault against drafts kept per block; rows of ``TrainedPair``."""
    rows = largest(rows)
    rows = rows[rows["draft"] == "trained"]
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.8), sharey=True)
    words, recorded = [], bool(rows["recorded"].iloc[0])
    for ax, shape in zip(axes, ("truncated", "plain"), strict=True):
        others = []
        for rule, (name, color, marker) in RULES.items():
            part = rows[(rows["rule"] == rule) & (rows["shape"] == shape)]
            points = sorted((_kept(group), _share(group)) for _, group in part.groupby(delta_of(part)))
            al, value = np.array(points).T
            style = {"color": color, "marker": marker, "markersize": 6}
            style |= {"markerfacecolor": color if recorded else "none", "linestyle": "-" if rule == "cactus" else ""}
            ax.plot(al, value, **style)
            if rule == "cactus":
                beside(ax, al[0], value[0], "Cactus", color, (-4, 9), ha="right")
                half = len(al) // 2
                ends = {"xy": (al[half], value[half] - 0.08), "xytext": (al[0], value[0] - 0.08)}
                ax.annotate("", **ends, arrowprops={"arrowstyle": "->", "color": color, "linewidth": 0.8})
                beside(ax, al[0], value[0] - 0.08, r"$\delta$ grows", color, (-4, -5), ha="right", fontsize=9)
            else:
                others.append((value[-1], al[-1], name))
            words.append(f"{shape} {name} " + ", ".join(f"{v:.2f} at {a:.1f}" for v, a in zip(value, al, strict=True)))
        _beside_each(ax, sorted(others))
        ax.set(xlabel="drafts kept per block")
        ax.set_xlim(ax.get_xlim()[0] - 0.5, ax.get_xlim()[1] + 0.8)
        panel_label(ax, "temperature 0.6, top-p 0.95" if shape == "truncated" else "temperature 1")
    axes[0].set(ylabel="texts without fault", ylim=(-0.03, 1.03))
    figure.set_label(
        "Share of texts without fault against drafts kept per block, truncated laws and temperature 1. Share at "
        f"drafts kept: {'; '.join(words)}."
    )
    return figure


def _beside_each(ax: Axes, marks: list[tuple[float, float, str]]) -> None:
    """Name marks (height, place, name) from below, one name for those that lie together."""
    heaps: list[list[tuple[float, float, str]]] = []
    for mark in marks:
        near = heaps and mark[0] - heaps[-1][-1][0] < 0.05
        heaps[-1].append(mark) if near else heaps.append([mark])
    for heap in heaps:
        height, place = np.mean([mark[:2] for mark in heap], axis=0)
        names = [name for *_, name in heap]
        beside(ax, place, height, ",\n".join(names), INK, (8, 0), fontsize=9)


def delta_of(rows: pd.DataFrame) -> pd.Series:
    """delta of each row: Cactus's own, or for a rival that of the Cactus whose acceptance it has."""
    return rows["knob"].where(rows["matched"] == 0, rows["matched"])


def _kept(rows: pd.DataFrame) -> float:
    """Drafts kept per block, total over total."""
    return rows["kept"].sum() / rows["blocks"].sum()


def _share(rows: pd.DataFrame) -> float:
    """The share of texts without fault."""
    return rows["valid"].mean()


def where_faults_begin(rows: pd.DataFrame) -> Figure:
    """Texts still without fault against tokens written, temperature 1; rows of ``TrainedPair``."""
    rows = largest(rows)
    rows = rows[(rows["draft"] == "trained") & (rows["shape"] == "plain") & (rows["rule"] == "cactus")]
    figure, ax = plt.subplots(figsize=(6.0, 3.3))
    deltas, words = sorted(rows["knob"].unique()), []
    at = np.arange(int(rows["fault"].max()) + 1)
    for delta, color in zip(deltas, shades(len(deltas)), strict=True):
        fault = np.sort(rows.loc[rows["knob"] == delta, "fault"].to_numpy())
        alive = 1 - np.searchsorted(fault, at, side="left") / len(fault)
        ax.plot(at, alive, color=color)
        beside(ax, at[-1], alive[-1], rf"$\delta={delta:g}$", color, (4, 0))
        words.append(f"{alive[-1]:.2f} at {delta:g}")
    ax.set(xlabel="tokens written", ylabel="texts still without fault", ylim=(0, 1.03), xlim=(0, 1.25 * at[-1]))
    figure.set_label(
        f"Share of texts still without fault against tokens written, by budget. At the end {', '.join(words)}."
    )
    return figure


def heat_of_rules(rows: pd.DataFrame) -> Figure:
    """Validity of each rule at nearly the acceptance of Cactus, with the drafts kept per block, as a table of colours;
    rows of ``TrainedPair``."""
    rows = largest(rows)
    chosen = rows[rows["draft"] == "trained"]
    valid, kept = {}, {}
    for shape in ("truncated", "plain"):
        part = chosen[chosen["shape"] == shape]
        for delta in sorted(set(part["matched"]) - {0.0}):
            own = (part["rule"] == "cactus") & (part["knob"] == delta)
            cells = part[own | (part["matched"] == delta)].groupby("rule")[["valid", "kept", "blocks"]].mean()
            cells = cells.assign(al=cells["kept"] / cells["blocks"]).loc[list(RULES)]
            cells, name = cells.rename(index={rule: RULES[rule][0] for rule in RULES}), f"{shape}, δ = {delta:g}"
            valid[name], kept[name] = cells["valid"], cells["al"]
    valid, kept = pd.DataFrame(valid).T, pd.DataFrame(kept).T
    notes = valid.map("{:.2f}".format) + "\n(" + kept.map("{:.2f}".format) + ")"
    figure, ax = plt.subplots(figsize=(7.6, 0.9 + 0.6 * len(valid)))
    bar = {"label": "without fault"}
    sns.heatmap(valid, ax=ax, cmap=SEQUENTIAL, annot=notes, fmt="", vmin=0, vmax=1, cbar_kws=bar, annot_kws={"size": 9})
    ax.set(xlabel="rule, its knob set for nearly the acceptance of Cactus", ylabel="")
    ax.tick_params(axis="both", labelrotation=0)
    words = "; ".join(
        f"{name}: " + ", ".join(f"{rule} {row[rule]:.2f} ({kept.loc[name, rule]:.2f} kept)" for rule in row.index)
        for name, row in valid.iterrows()
    )
    figure.set_label(f"Share of texts without fault for each rule, and drafts kept per block. {words}.")
    return figure
