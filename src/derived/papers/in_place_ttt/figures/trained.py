"""Small trained models: rows in, a figure with its alt text as label out.

mark                   meaning
filled, open marker    recorded, live; bars are 99.9 % intervals over trained models
small points           single models
dashed                 chance, or the floor of the loss
"""

from collections.abc import Callable, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

from derived.lab.plot import BLUE, COLOURS, DASHED, MUTED, apart, beside, largest, mean_and_reach, panel_label

WRITES = {
    "none": "no memory",
    "both": "taps, projection",
    "conv": "taps",
    "proj": "projection only",
    "neither": "the source itself",
    "past": "past taps only",
}
ARMS = {"window": "window", "ttt": "In-Place TTT", "gla": "GLA", "delta": "DeltaNet", "lact": "LaCT"}
ARMS |= {"placebo": "placebo"}
STARTS = {
    "static": "as it was",
    "placebo": "another text's\nwrites",
    "zero": "released start",
    "random": "random start",
}


def at_chosen_rate(rows: pd.DataFrame, arms: Sequence[str], better: str) -> pd.DataFrame:
    """The rows of each arm at the rate whose mean ``valid`` is best ("max" or "min"); a rate that diverged is none."""
    kept = []
    for _, part in rows.groupby(list(arms), sort=False):
        valid = part.groupby("rate")["valid"].agg(lambda each: each.mean(skipna=False)).dropna()
        if len(valid):
            kept.append(part[part["rate"] == (valid.idxmax() if better == "max" else valid.idxmin())])
    return pd.concat(kept, ignore_index=True)


def single_models(ax: Axes, x: float, values: pd.Series, color: str, recorded: bool) -> float:
    """Single models beside each other, and their mean with its interval; returns the mean."""
    mean, reach = mean_and_reach(values)
    shifts = 0.12 * np.sin(np.arange(len(values)) * 2.4)
    ax.plot(x + shifts, values, ".", color=color, alpha=0.4, markersize=4, zorder=2)
    face = color if recorded else "none"
    ax.errorbar(x, mean, reach, fmt="o", color=color, markerfacecolor=face, capsize=3, zorder=3)
    return mean


def recall(rows: pd.DataFrame, chance: float) -> Figure:
    """Recall beyond the window, by depth, window and what is written; rows of ``Recall``; ``chance``: a blind guess."""
    rows = at_chosen_rate(largest(rows), ["depth", "window", "arm"], "max")
    last = rows.groupby(["depth", "window", "arm", "replicate"], sort=False).last().reset_index()
    wide = last["window"].max()
    panels = {"one block": (1, wide), "one block, keys of the token alone": (1, 1), "two blocks": (2, wide)}
    counts = [len(last[(last["depth"] == D) & (last["window"] == w)]["arm"].unique()) for D, w in panels.values()]
    figure, axes = plt.subplots(1, 3, figsize=(7.8, 3.6), sharey=True, width_ratios=[n + 0.4 for n in counts])
    words = []
    for ax, (name, (depth, window)) in zip(axes, panels.items(), strict=True):
        part = last[(last["depth"] == depth) & (last["window"] == window)]
        arms = [arm for arm in WRITES if arm in set(part["arm"])]
        for x, arm in enumerate(arms):
            one = part[part["arm"] == arm]
            mean = single_models(ax, x, one["test"], COLOURS[[*WRITES].index(arm)], bool(one["recorded"].iloc[0]))
            words.append(f"{name}, {WRITES[arm]} {mean:.2f}")
        ax.axhline(chance, **DASHED)
        if ax is axes[0]:
            beside(ax, -0.5, chance, "commonest value", MUTED, (0, 8))
        ax.set(xticks=range(len(arms)), xlim=(-0.6, len(arms) - 0.4), ylim=(-0.03, 1.05))
        ax.set_xticklabels([WRITES[arm] for arm in arms], rotation=40, ha="right", fontsize=8)
        panel_label(ax, name if depth == 2 or window > 1 else "one block, bare keys")
    axes[0].set_ylabel("recall beyond the window")
    figure.set_label(
        f"Recall of trained models, means: {'; '.join(words)}. "
        f"Dashed: naming the commonest value of the text, {chance:.2f}."
    )
    return figure


def learning(rows: pd.DataFrame) -> Figure:
    """Recall of the training texts against steps, at the chosen rate; rows of ``Recall``."""
    rows = at_chosen_rate(largest(rows), ["depth", "window", "arm"], "max")
    rows = rows[rows["window"] == rows["window"].max()]
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.0), sharey=True)
    words = []
    for ax, depth in zip(axes, (1, 2), strict=True):
        curves = rows[(rows["depth"] == depth) & rows["arm"].isin(["both", "conv", "proj", "neither"])]
        ends = curves[curves["step"] == curves["step"].max()].groupby("arm", sort=False)["recall"].mean()
        places = apart(ends.to_numpy(), 0.075)
        places = dict(zip(ends.index, places - max(0.0, places.max() - 1.03), strict=True))  # none above the panel
        for arm, part in curves.groupby("arm", sort=False):
            color = COLOURS[[*WRITES].index(arm)]
            ax.plot(*_fan(part, "recall"), color=color)
            for _, one in part.groupby("replicate"):
                ax.plot(one["step"], one["recall"], color=color, alpha=0.18, linewidth=0.7)
            beside(ax, part["step"].max(), places[arm], WRITES[arm], color, (4, 0), fontsize=8)
            words.append(f"{depth} deep, {WRITES[arm]} {ends[arm]:.2f}")
        ax.set(xlabel="training step", ylim=(-0.03, 1.05), xlim=(0, 1.42 * curves["step"].max()))
        panel_label(ax, "one block" if depth == 1 else "two blocks")
    axes[0].set_ylabel("recall")
    figure.set_label(
        f"Recall of training texts against steps, single models and their means; at the end {'; '.join(words)}."
    )
    return figure


def _fan(rows: pd.DataFrame, column: str) -> tuple[np.ndarray, np.ndarray]:
    mean = rows.groupby("step")[column].mean()
    return mean.index.to_numpy(), mean.to_numpy()


def documents(rows: pd.DataFrame) -> Figure:
    """Loss of the last block against the context before it, after few steps and after all; rows of ``Documents``."""
    rows = at_chosen_rate(largest(rows), ["steps", "arm"], "min")
    steps, contexts = sorted(rows["steps"].unique()), sorted(rows["context"].unique())
    figure, axes = plt.subplots(1, len(steps), figsize=(8.0, 3.5), sharey=True)
    words = []
    for ax, count in zip(axes, steps, strict=True):
        part = rows[rows["steps"] == count]
        ends = part[part["context"] == contexts[-1]].groupby("arm", sort=False)["loss"].mean()
        places = dict(zip(ends.index, apart(ends.to_numpy(), 0.06 * (np.ptp(rows["loss"]) or 1)), strict=True))
        for color, arm in ((COLOURS[[*ARMS].index(arm)], arm) for arm in ends.index):
            _against_context(ax, part[part["arm"] == arm], color)
            beside(ax, contexts[-1], places[arm], ARMS[arm], color, (6, 0), fontsize=8)
        ax.axhline(part["floor"].iloc[0], xmax=1.02 / 1.52, **DASHED)  # as far as the curves
        ax.set(xlabel="context before the last block (tokens)", xlim=(-0.02 * contexts[-1], 1.5 * contexts[-1]))
        ax.set_xticks(contexts)
        panel_label(ax, f"{count:,} steps")
        words.append(f"after {count} steps {', '.join(f'{ARMS[arm]} {ends[arm]:.3f}' for arm in ends.index)}")
    axes[0].set_ylabel("loss of the last block (nats per token)")
    beside(axes[0], 0, rows["floor"].iloc[0], "floor", MUTED, (0, 6))
    figure.set_label(
        f"Loss of a fixed last block against the context before it. With {contexts[-1]} tokens before it: "
        f"{'; '.join(words)}. Floor {rows['floor'].iloc[0]:.3f}."
    )
    return figure


def _against_context(ax: Axes, rows: pd.DataFrame, color: str) -> None:
    face = color if rows["recorded"].iloc[0] else "none"
    found = [(at, *mean_and_reach(one["loss"])) for at, one in rows.groupby("context")]
    at, value, reach = (np.array(each) for each in zip(*found, strict=True))
    ax.errorbar(at, value, reach, fmt="-o", color=color, markerfacecolor=face, markersize=4)


def sizes(chunks: pd.DataFrame, layers: pd.DataFrame | None = None) -> Figure:
    """Loss of the last block against chunk size, and number of memories; rows of ``ChunkSizes`` and of ``Layers``."""
    panels = [(chunks, "chunk")] + ([] if layers is None else [(layers, "memories")])
    figure, axes = plt.subplots(1, len(panels), figsize=(3.9 * len(panels), 3.0), squeeze=False)
    labels, words = {"chunk": "tokens per chunk $C$", "memories": "blocks of four that write"}, []
    for ax, (rows, column) in zip(axes[0], panels, strict=True):
        rows = largest(rows)
        rows = at_chosen_rate(rows[rows["writes"] == "own"] if "writes" in rows else rows, [column], "min")
        found, means, values = [], [], sorted(rows[column].unique())
        places = np.log2(values) if column == "chunk" else values
        for x, value in zip(places, values, strict=True):
            part = rows[rows[column] == value]
            mean = single_models(ax, x, part["test"], BLUE, bool(part["recorded"].iloc[0]))
            found.append(f"{mean:.3f} at {value}")
            means.append(mean)
        if "floor" in rows:
            ax.axhline(rows["floor"].iloc[0], **DASHED)
            if ax is axes[0, 0]:
                beside(ax, places[0], rows["floor"].iloc[0], "least possible loss", MUTED, (0, 7))
        if column == "chunk":
            panel_label(ax, f"in the mean, chunks of {values[int(np.argmin(means))]} tokens do best")
        else:
            panel_label(ax, f"one block that writes: {means[1]:.2f}, {values[-1]} blocks: {means[-1]:.2f}")
        ax.set_xticks(places, values)
        ax.set(xlabel=labels[column])
        words.append(f"{column}: {', '.join(found)}")
    axes[0, 0].set_ylabel("loss of the last block (nats per token)")
    figure.set_label(f"Loss of the last block, means over trained models, by {'; by '.join(words)}.")
    return figure


def warm(rows: pd.DataFrame) -> Figure:
    """Loss above that of the trained model, right after the insertion and after further training; rows of
    ``WarmStart``."""
    rows = at_chosen_rate(largest(rows), ["start"], "min")
    figure, ax = plt.subplots(figsize=(6.2, 3.4))
    words, base = [], rows["base"].mean()
    recorded = bool(rows["recorded"].iloc[0])
    for x, (start, name) in enumerate(STARTS.items()):
        part = rows[rows["start"] == start]
        first = single_models(ax, x - 0.18, part["first"] - part["base"], MUTED, recorded)
        after = single_models(ax, x + 0.18, part["test"] - part["base"], BLUE, recorded)
        words.append(f"{name.replace(chr(10), ' ')} {first:+.3f}, then {after:+.3f}")
        if x == len(STARTS) - 1:
            beside(ax, x - 0.18, first, "right after\nthe insertion", MUTED, (-8, 0), ha="right")
            beside(ax, x + 0.18, after, "trained further", BLUE, (-8, 0), ha="right")
    ax.axhline(0, **DASHED)
    ax.set(
        xticks=range(len(STARTS)),
        xlim=(-0.6, len(STARTS) - 0.4),
        ylabel="loss above the trained\nmodel's (nats per token)",
    )
    ax.set_xticklabels(list(STARTS.values()))
    figure.set_label(f"Loss less that of the trained model, {base:.3f}: {'; '.join(words)}.")
    return figure


def of_recall(depth: int, window: int, arm: str) -> str:
    """An arm of ``Recall`` in words.

    >>> of_recall(1, 8, "conv"), of_recall(1, 1, "past")
    ('one block: taps', 'one block, bare keys: past taps only')
    """
    blocks = "one block" if depth == 1 else "two blocks"
    return f"{blocks}{', bare keys' if window == 1 else ''}: {WRITES[arm]}"


def compared(
    rows: pd.DataFrame, arms: Sequence[str], column: str, better: str, against: Any, words: Callable[..., str] = str
) -> pd.DataFrame:
    """Each arm at its rate: mean of a column over models, and its difference, model by model, from the arm ``against``,
    each with half its 95 % and its 99.9 % interval; the last is the smallest difference that could have been seen.
    ``words`` says what an arm is called, from its values in the columns ``arms``."""
    last = at_chosen_rate(rows, arms, better).groupby([*arms, "replicate"], sort=False).last().reset_index()
    values = last.pivot(index="replicate", columns=list(arms), values=column)
    rate = last.groupby(list(arms), sort=False)["rate"].first()
    reference, table = values[against], []
    for arm in rate.index:
        name = words(*(arm if isinstance(arm, tuple) else (arm,)))
        own, gap = values[arm], values[arm] - reference
        row = {"arm": name, "rate": rate[arm], "mean": own.mean(), **_reaches(own)}
        table.append(row | {"difference": gap.mean(), **_reaches(gap, "its ")})
    return pd.DataFrame(table).set_index("arm")


def _reaches(values: pd.Series, prefix: str = "") -> dict[str, float]:
    error, n = values.std() / len(values) ** 0.5, len(values)
    return {f"{prefix}± {level:.3g} %": stats.t.ppf(0.5 + level / 200, n - 1) * error for level in (95, 99.9)}
