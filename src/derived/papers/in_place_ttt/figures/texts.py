"""Models on needles and on real text: rows in, a figure with its alt text as label out.

mark                   meaning
filled, open marker    recorded, live; bars are 99.9 % intervals over trained models
small points           single models
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, MUTED, RED, beside, largest, mean_and_reach, panel_label

from .trained import at_chosen_rate, single_models

TASKS = {"needle": "one needle", "needles": "four needles", "tracking": "tracking", "common": "common word"}


def needles(rows: pd.DataFrame) -> Figure:
    """Share of the answers missed, by task with and without the memory, and by chunk size; rows of ``Needles``."""
    rows = at_chosen_rate(largest(rows), ["chunk"], "min")
    recorded = bool(rows["recorded"].iloc[0])
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.8, 3.3), sharey=True, width_ratios=[1.2, 1])
    words = []
    for x, (task, name) in enumerate(TASKS.items()):
        part = rows[(rows["task"] == task) & rows["usual"]]
        means = [
            single_models(left, x + shift, part[(part["chunk"] > 0) == written]["test"], color, recorded)
            for shift, color, written in ((-0.15, MUTED, False), (0.15, BLUE, True))
        ]
        words.append(f"{name} {means[0]:.2f} without and {means[1]:.2f} with it")
    left.set(xticks=range(len(TASKS)), ylabel="share of the answers missed", ylim=(-0.03, 1.05))
    left.set_xticklabels(list(TASKS.values()), fontsize=8)
    left.text(-0.3, 0.03, "without", color=MUTED, fontsize=8)
    left.text(0.25, 0.03, "with the memory", color=BLUE, fontsize=8)
    part = rows[(rows["task"] == "needles") & (rows["chunk"] > 0)]
    sizes, ends = sorted(part["chunk"].unique()), []
    for x, size in zip(np.log2(sizes), sizes, strict=True):
        ends.append(f"{single_models(right, x, part[part['chunk'] == size]['test'], BLUE, recorded):.2f} at {size}")
    right.set_xticks(np.log2(sizes), sizes)
    right.set(xlabel="tokens per chunk $C$")
    panel_label(left, "four tasks")
    panel_label(right, "four needles")
    figure.set_label(
        f"Share of the answers missed by trained models, means: {'; '.join(words)}. Four needles by chunk size: "
        f"{', '.join(ends)}."
    )
    return figure


def real_text(rows: pd.DataFrame) -> Figure:
    """Loss of the last block of bytes against the context before it, with and without; rows of ``SourceBytes``."""
    rows = at_chosen_rate(largest(rows), ["chunk"], "min")
    recorded, contexts = bool(rows["recorded"].iloc[0]), sorted(rows["context"].unique())
    figure, ax = plt.subplots(figsize=(5.6, 3.2))
    words = []
    for written, name, color in ((False, "window", MUTED), (True, "window + written matrix", RED)):
        part = rows[(rows["chunk"] > 0) == written]
        found = [mean_and_reach(part[part["context"] == at]["loss"]) for at in contexts]
        value, reach = (np.array(each) for each in zip(*found, strict=True))
        style = {"color": color, "markerfacecolor": color if recorded else "none", "markersize": 5}
        ax.errorbar(contexts, value, reach, fmt="-o", capsize=3, **style)
        beside(ax, contexts[-1], value[-1], name, color, (6, 0), fontsize=9)
        words.append(f"{name} {value[0]:.3f} without context and {value[-1]:.3f} with {contexts[-1]} bytes")
    ax.set(xlabel="context before the last block (bytes)", ylabel="loss of the last block (nats per byte)")
    ax.set_xlim(-0.05 * contexts[-1], 1.7 * contexts[-1])
    ax.set_xticks(contexts)
    figure.set_label(f"Loss of a last block of Python sources, means over trained models: {'; '.join(words)}.")
    return figure
