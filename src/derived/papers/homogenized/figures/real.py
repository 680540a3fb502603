"""The figure of real models: their tokens before and after training, on the clock's prediction and off it."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, GREEN, ORANGE, RED, THEORY, beside, largest, panel_label, plain_log, points

ARMS = {"trained": (BLUE, "o"), "fresh": (GREEN, "s"), "shared": (RED, "D"), "grafted": (ORANGE, "^")}
WORDS = {"trained": "trained", "fresh": "untrained, fresh layers", "shared": "untrained, one layer"}
WORDS |= {"grafted": "trained tokens, untrained layer"}


def courses(reactions: pd.DataFrame, sentences: pd.DataFrame) -> Figure:
    """Mean overlap over depth, ALBERT on reactions and MiniLM on passages; rows of ``Reactions``, ``Sentences``."""
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.3), sharey=True)
    said = []
    for ax, title, table in zip(axes, ("ALBERT on reactions", "MiniLM on novels"), (reactions, sentences), strict=True):
        rows = largest(table)
        theory = rows[rows["weights"] == "fresh"].groupby("layer")["m_theory"].mean()
        ax.plot(theory.index, theory, **THEORY)
        for name, part in rows.groupby("weights", sort=False):
            color, marker = ARMS[name]
            one = part.groupby(["recorded", "replicate", "layer"], as_index=False)["m"].mean()
            drawn = points(ax, one, "layer", "m", color, marker)
            beside(ax, drawn["layer"].iloc[-1], drawn["value"].iloc[-1], WORDS[name], color, fontsize=8)
            said.append(f"{title}, {WORDS[name]}: from {drawn['value'].iloc[0]:.2f} to {drawn['value'].iloc[-1]:.2f}")
        panel_label(ax, title)
        ax.set(xlabel="layer", xlim=(0, rows["layer"].max() * 1.75))
    axes[0].set(ylabel="mean overlap of different tokens")
    figure.set_label(f"Mean overlap of different tokens over depth. {'; '.join(said)}. The line is the recurrence.")
    return figure


def passes(rows: pd.DataFrame) -> Figure:
    """Layers to overlap one half over the step, for fresh layers and one shared layer; rows of ``OneLayer``."""
    rows = largest(rows)
    figure, ax = plt.subplots(figsize=(5.6, 3.2))
    said = []
    for name, part in rows.groupby("weights", sort=False):
        color, marker = ARMS[name]
        drawn = points(ax, part, "eta", "layers", color, marker)
        first, last = drawn.iloc[-1], drawn.iloc[0]
        power = 1 if name == "shared" else 2
        ax.plot(
            [first["eta"], last["eta"]],
            [first["value"], first["value"] * (first["eta"] / last["eta"]) ** power],
            **THEORY,
        )
        beside(ax, first["eta"], first["value"], {"fresh": "fresh layers", "shared": "one shared layer"}[name], color)
        said.append(
            f"{name}: {last['value']:.0f} layers at step {last['eta']:g}, {first['value']:.0f} at {first['eta']:g}"
        )
    ax.set(
        xscale="log", yscale="log", xlabel=r"step $\eta$", ylabel=r"layers to overlap $\frac{1}{2}$", xlim=(None, 0.5)
    )
    plain_log(ax.xaxis, sorted(rows["eta"].unique()))
    figure.set_label(f"Layers to overlap one half over the step, with lines of slope -2 and -1. {'; '.join(said)}.")
    return figure
