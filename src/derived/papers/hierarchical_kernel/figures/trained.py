"""Trained models: accuracy and paired gains."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import DASHED, MUTED, largest, mean_and_reach, plain_log

from .marks import KIND_COLOURS, NAMES, TUNED_COLOURS, TUNED_NAMES


def _accuracies(rows: pd.DataFrame) -> pd.DataFrame:
    """Replicates by kinds."""
    first = rows[(rows["block"] == 0) & (rows["level"] == 0)]
    return first.pivot(index=["part", "replicate"], columns="kind", values="accuracy")


def comparison(rows: pd.DataFrame, rules: pd.DataFrame, length: str) -> Figure:
    """Accuracy of each kind with shallow rules, and HKT's paired gain; rows of ShortListOps and of Rules."""
    best, rules = largest(rows), largest(rules)
    wide = _accuracies(best)
    kinds = [kind for kind in NAMES if kind in wide.columns]
    recorded = bool(best["recorded"].iloc[0])
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.1), sharey=True, width_ratios=[1.25, 1])
    heights, words, gains = np.arange(len(kinds))[::-1], [], []
    for height, kind in zip(heights, kinds, strict=True):
        color, face = KIND_COLOURS[kind], KIND_COLOURS[kind] if recorded else "none"
        axes[0].plot(wide[kind], np.full(len(wide), height - 0.22), "|", color=color, alpha=0.6, markersize=6)
        value, reach = mean_and_reach(wide[kind])
        axes[0].errorbar(value, height, xerr=reach, fmt="o", color=color, markerfacecolor=face)
        words.append(f"{NAMES[kind]} {100 * value:.1f} %")
        if kind != "hkt":
            difference = 100 * (wide["hkt"] - wide[kind])
            value, reach = mean_and_reach(difference)
            axes[1].plot(difference, np.full(len(wide), height - 0.22), "|", color=color, alpha=0.6, markersize=6)
            axes[1].errorbar(value, height, xerr=reach, fmt="o", color=color, markerfacecolor=face)
            gains.append(f"{value:+.1f} ± {reach:.1f} over {NAMES[kind]}")
    lines = rules[rules["range"] == length].set_index("rule")
    for name, row in (lines["right"] / lines["trees"]).items():
        if name in ("majority", "root", "depth 1"):
            axes[0].axvline(row, **DASHED)
            axes[0].annotate(
                name, (row, len(kinds) - 0.25), fontsize=8, color=MUTED, ha="center", annotation_clip=False
            )
    axes[0].set(yticks=heights, yticklabels=[NAMES[kind] for kind in kinds], xlabel="test accuracy")
    axes[0].set_ylim(-0.6, len(kinds) - 0.3)
    axes[1].axvline(0, **DASHED)
    axes[1].set_xlabel("HKT less the other, points")
    figure.set_label(
        f"Test accuracy over {len(wide)} replicates: {', '.join(words)}. Paired gains of HKT in points with 99.9 % "
        f"intervals: {', '.join(gains)}."
    )
    return figure


def tuned(rows: pd.DataFrame) -> Figure:
    """Validation accuracy of each arm by learning rate, and test accuracy at its best one against compute; rows of
    TunedListOps."""
    best = largest(rows)
    tuning, curves = (best[best["stage"] == stage] for stage in ("validation", "test"))
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.3), sharey=True)
    words = []
    for kind, name in TUNED_NAMES.items():
        color = TUNED_COLOURS[kind]
        by_rate = tuning[tuning["kind"] == kind].groupby("rate")["accuracy"].mean()
        axes[0].plot(by_rate.index, by_rate, "o-", color=color, markersize=3)
        own = curves[curves["kind"] == kind]
        by_flop = own.groupby("flop")["accuracy"].mean()
        axes[1].plot(by_flop.index / 1e9, by_flop, color=color, label=name)
        value, reach = mean_and_reach(own.loc[own["step"] == own["step"].max(), "accuracy"])
        axes[1].errorbar(by_flop.index[-1] / 1e9, value, reach, fmt="o", color=color)
        words.append(f"{name} {100 * value:.1f} % at rate {own['rate'].iloc[0]:g}")
    rule = curves["rule"].mean()
    for ax in axes:
        ax.axhline(rule, **DASHED)
    axes[0].annotate("depth 1", (tuning["rate"].min(), rule), fontsize=8, color=MUTED, va="bottom")
    axes[0].set(xscale="log", xlabel="learning rate", ylabel="validation accuracy")
    plain_log(axes[0].xaxis, sorted(tuning["rate"].unique()))
    axes[1].set(xlabel=r"$10^9$ operations of training", ylabel="test accuracy")
    axes[1].yaxis.set_tick_params(labelleft=True)
    axes[1].legend(fontsize=7, loc="lower right")
    figure.set_label(
        "Accuracy by learning rate and, at the chosen rate, against compute. "
        f"Test accuracy at the end: {', '.join(words)}; "
        f"the depth-1 rule has {100 * rule:.1f} %."
    )
    return figure
