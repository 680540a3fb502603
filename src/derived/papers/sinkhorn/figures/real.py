"""Trained weights: rows in, a figure with its alt text as label out.

mark                   meaning
bars                   99.9 % intervals over mechanisms
filled, open marker    recorded, live
solid, dashed          after training, before
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, RED, largest, mean_and_reach, panel_label

WAYS = {
    ("rows", 1.0): "rows",
    ("equal", 1.0): "equal shares",
    ("coupling", 4.0): "coupling, temperature 4",
    ("coupling", 1.0): "coupling, temperature 1",
    ("coupling", 0.0): "assignment",
    ("greedy", 1.0): "greedy mask",
}


def weights(mapped: pd.DataFrame, sentences: pd.DataFrame) -> Figure:
    """Atoms mapped wrongly by each way to read one head, and column errors by layer; rows of ``AtomMaps`` and
    ``Sentences``."""
    mapped, sentences = largest(mapped), largest(sentences)
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.2))
    words = _maps(axes[0], mapped[mapped["stage"] == "maps"])
    for name, color, rows in (
        ("reactions", BLUE, mapped[mapped["stage"] == "columns"]),
        ("sentences", RED, sentences),
    ):
        by_layer = rows.groupby(rows["layer"] + 1)[["trained", "untrained"]].mean()
        axes[1].plot(by_layer["trained"], color=color, marker=".", label=name)
        axes[1].plot(by_layer["untrained"], color=color, linestyle="--", label=f"{name}, untrained")
        ends = by_layer.mean()
        words.append(f"column error, {name}: {ends['untrained']:.2f} untrained, {ends['trained']:.2f} trained")
    layers = range(2, mapped["layer"].dropna().astype(int).max() + 2, 2)
    axes[1].set(xlabel="layer", ylabel="column error of attention", ylim=(0, None), xticks=layers)
    axes[1].legend(fontsize=7, loc=(0.36, 0.13))
    panel_label(axes[0], "one head, six ways to read it")
    panel_label(axes[1], "how far from doubly stochastic")
    figure.set_label(f"Share of atoms mapped wrongly, and column errors by layer. {'; '.join(words)}.")
    return figure


def _maps(ax, rows: pd.DataFrame) -> list[str]:
    face, words = BLUE if rows["recorded"].iloc[0] else "none", []
    cases = {name: rows[(rows["way"] == way) & (rows["temperature"] == t)] for (way, t), name in WAYS.items()}
    cases = {name: part for name, part in cases.items() if len(part)}
    for place, (name, part) in enumerate(cases.items()):
        wrong, reach = mean_and_reach(1 - part.groupby("mechanism")["right"].mean())
        ax.errorbar(wrong, place, xerr=reach, fmt="o", color=BLUE, markerfacecolor=face)
        words.append(f"{name}: {wrong:.4f}")
    ax.set(xlabel="share of atoms mapped wrongly", xlim=(0, None), yticks=range(len(cases)), yticklabels=[*cases])
    ax.invert_yaxis()
    return words
