"""Rules on a trained verifier: what is kept, and how far the text goes for it."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, GREEN, RED, beside

RULES = {"interp": (GREEN, "s", "interpolation"), "cactus": (RED, "o", "Cactus"), "lenience": (BLUE, "^", "lenience")}


def kept_and_spent(rows: pd.DataFrame) -> Figure:
    """KL per drafted token against the share of drafts kept, means over texts; rows of ``Novels``."""
    figure, ax = plt.subplots(figsize=(5.2, 3.4))
    rows = rows[rows["recorded"]] if rows["recorded"].any() else rows
    means = rows.groupby(["rule", "delta"])[["acceptance", "kl"]].mean()
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
