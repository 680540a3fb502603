"""Small transformers on many streams or one: rows in, a figure with its alt text as label out.

mark              meaning
blue, orange      trained on many streams, on one
line in INK       the exact Bayes mixture; dashed: a reader of single tokens
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import (
    BLUE,
    COLOURS,
    DASHED,
    INK,
    RED,
    THEORY,
    beside,
    largest,
    mean_and_reach,
    panel_label,
    plain_log,
)

TESTS = {"excess": "fresh streams", "own": "own component", "other": "the other"}


def coins(rows: pd.DataFrame) -> Figure:
    """Excess of each trained model over the exact predictor, at the chosen rate, and the rates; rows of
    ``Bernoulli``."""
    rows = largest(rows)
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.4), width_ratios=(1.3, 1))
    words = []
    for place, (arm, color) in enumerate((("many", BLUE), ("one", RED))):
        part = rows[(rows["arm"] == arm) & rows["chosen"]]
        for x, test in enumerate(TESTS):
            spread = np.linspace(-0.08, 0.08, len(part)) + 0.3 * place - 0.15
            left.plot(x + spread, part[test], "o", color=color, markersize=4, alpha=0.8, label=arm if x == 0 else None)
            words.append(f"trained on {arm}, on {TESTS[test]}: {part[test].mean():.4f}")
        swept = rows[rows["arm"] == arm].groupby("rate")["validation"]
        means = swept.mean() - rows.loc[rows["arm"] == arm, "validation"].min()
        right.plot(means.index, means, "o-", color=color)
        best = part["rate"].iloc[0]
        right.plot(best, means[best], "o", color=color, markersize=9, markerfacecolor="none")
    left.set(
        yscale="symlog", xticks=range(len(TESTS)), xticklabels=TESTS.values(), ylabel="excess loss (nats per token)"
    )
    left.set_yscale("symlog", linthresh=0.01)
    left.set_yticks([0, 0.01, 0.1, 1], ["0", "0.01", "0.1", "1"])
    left.set_ylim(min(-0.004, rows[[*TESTS]].min().min()), 3)
    left.axhline(0, **THEORY)
    left.set(xlabel="tested on", xlim=(-0.5, 2.5))
    left.legend(title="streams", fontsize=8, title_fontsize=8, loc="upper center")
    right.set(xscale="log", xlabel="learning rate", ylabel="validation loss over its least (nats)")
    plain_log(right.xaxis, sorted(rows["rate"].unique()))
    panel_label(left, "excess, one point a model")
    panel_label(right, "the choice of the rate")
    figure.set_label(
        f"Mean excess loss of trained models over the exact predictor, in nats per token: {'; '.join(words)}."
    )
    return figure


def contexts(rows: pd.DataFrame) -> Figure:
    """Loss against the place in the context, at the chosen rate of each context; rows of ``Markov``."""
    rows = largest(rows)
    figure, ax = plt.subplots(figsize=(6.4, 3.4))
    words = []
    for color, (context, part) in zip(COLOURS, rows[rows["chosen"]].groupby("context"), strict=False):
        loss = part.assign(loss=part["excess"] + part["bayes"]).groupby("place")["loss"]
        drawn = pd.DataFrame(
            [(place + 1, *mean_and_reach(each)) for place, each in loss], columns=["t", "mean", "reach"]
        )
        style = {"fmt": "o", "color": color, "markersize": 3.5, "elinewidth": 0.8, "label": f"$C={context}$"}
        ax.errorbar(drawn["t"], drawn["mean"], drawn["reach"], **style)
        words.append(f"context {context}: excess {part['excess'].mean():.4f}")
        longest = part
    bayes = longest.groupby("place")["bayes"].mean()
    ax.plot(bayes.index + 1, bayes, **THEORY)
    blind = (longest["bayes"] + longest["blind"]).mean()
    ax.axhline(blind, **DASHED)
    beside(ax, bayes.index[-1] + 1, blind, "reader of single tokens", INK, (0, -9), ha="right", fontsize=9)
    beside(ax, bayes.index[-1] + 1, bayes.iloc[-1], "exact Bayes mixture", INK, (0, -9), ha="right", fontsize=9)
    ax.set(xlabel="place in the context", ylabel="loss (nats per token)", ylim=(bayes.min() - 0.07, None))
    ax.legend(fontsize=8, loc="center right")
    figure.set_label(
        f"Loss of trained models against the place in the context, in nats per token; {'; '.join(words)}. The exact "
        f"mixture falls from {bayes.iloc[0]:.2f} to {bayes.iloc[-1]:.2f}; a reader of single tokens stays at "
        f"{blind:.2f}."
    )
    return figure
