"""Rules on a trained verifier: what is kept, and how far the text goes for it."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, DASHED, GREEN, MUTED, RED, beside, mean_and_reach, panel_label

RULES = {"interp": (GREEN, "s", "interpolation"), "cactus": (RED, "o", "Cactus"), "lenience": (BLUE, "^", "lenience")}


def kept_and_spent(rows: pd.DataFrame) -> Figure:
    """KL per drafted token against the share of drafts kept, means over texts; rows of ``Novels``."""
    figure, ax = plt.subplots(figsize=(5.2, 3.4))
    rows = rows[rows["recorded"]] if rows["recorded"].any() else rows
    means = rows[rows["draft"] == "table"].groupby(["rule", "delta"])[["acceptance", "kl"]].mean()
    exact = means.loc["exact"].iloc[0]
    said = []
    for rule, (color, marker, name) in RULES.items():
        course = pd.concat([exact.to_frame().T, means.loc[rule]])
        ax.plot(course["acceptance"], course["kl"], color=color, marker=marker)
        last = course.iloc[-1]
        beside(ax, last["acceptance"], last["kl"], name, color)
        said.append(f"{name} {last['kl']:.2f}")
    for delta, point in means.loc["interp"].iterrows():  # the highest curve: nothing lies to its left
        beside(ax, point["acceptance"], point["kl"], rf"$\delta={delta:g}$", shift=(-4, 8), ha="right")
    ax.set(xlabel="share of drafts kept", ylabel="KL from the verifier, nats per token", ylim=(0, None))
    ax.margins(x=0.12)
    most = means.loc["cactus"]["acceptance"].iloc[-1]
    figure.set_label(
        f"Divergence against the share of drafts kept. Exact sampling keeps {exact['acceptance']:.2f} at none; where "
        f"Cactus with the largest budget keeps {most:.2f}, it is in nats per token: {', '.join(said)}."
    )
    return figure


DRAFTS = {
    "self": (MUTED, "its own 350 likeliest tokens"),
    "exit": (BLUE, "its first six layers"),
    "table": (RED, "word counts"),
    "lookup": (GREEN, "prompt lookup"),
    "alien": (MUTED, "six layers on another page"),
}


def no_longer_asked(rows: pd.DataFrame) -> Figure:
    """The budget with which Cactus keeps 99 of 100 drafts, a dot for each page, by draft; rows of ``Novels``."""
    figure, ax = plt.subplots(figsize=(5.2, 2.8))
    rows = rows[rows["recorded"]] if rows["recorded"].any() else rows
    found = np.log10(rows[rows["rule"] == "exact"].set_index("draft")["enough"])
    said, least = [], np.inf
    for height, (draft, (color, name)) in enumerate(DRAFTS.items()):
        pages = found.loc[[draft]].sort_values()
        middle, reach = mean_and_reach(pages)
        spread = height + 0.22 * np.linspace(-1, 1, len(pages))
        ax.plot(10**pages, spread, ".", color=color, markersize=4, alpha=0.6)
        ax.plot(10 ** (middle + reach * np.array([-1, 1])), [height, height], color=color)
        ax.plot(10**middle, height, "o", color=color)
        said.append(f"{name} {10**middle:.2g}")
        least = min(least, 10**middle) if color != MUTED else least
    ax.axvline(1.0, **DASHED)
    ax.set_yticks(range(len(DRAFTS)), [name for _, name in DRAFTS.values()])
    ax.set(xscale="log", xlabel=r"smallest $\delta$ that keeps 99 of 100 drafts")
    panel_label(ax, f"To keep 99 of 100 takes a budget of {least:.2g} and more")
    figure.set_label(f"The budget at which the verifier is hardly asked, geometric mean over pages: {', '.join(said)}.")
    return figure
