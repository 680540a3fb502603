"""What networks tell apart and what an imposed code lets them reach: rows in, a figure with its alt text as label out.

mark            meaning
points          one trained network (a code of one ecology), or one pair of observations
line in INK     the loss that the reader allows
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, DASHED, GREEN, MUTED, RED, THEORY, beside, largest, panel_label

ARMS = {
    "imposed": (BLUE, "o", "context and cell"),
    "blind": (GREEN, "s", "cell alone"),
    "scrambled": (RED, "^", "context and a random cell"),
}


def trained_against_optimum(rows: pd.DataFrame) -> Figure:
    """Trained loss above the floor against the excess of the code that was imposed; rows of ``Imposed``."""
    rows = largest(rows)
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.4), sharey=True)
    words = []
    for ax, against in ((left, "target"), (right, "reach")):
        for arm, (color, marker, name) in ARMS.items():
            part = rows[rows["arm"] == arm]
            x, y = part[against] - part["floor"], part["loss"] - part["floor"]
            ax.plot(x, y, marker, color=color, markersize=3.5, alpha=0.7, label=name)
            if against == "target":
                gap = (part["loss"] - part["target"]).abs().max()
                words.append(f"{name}: largest distance from the diagonal {gap:.2g}")
        end = float(np.max(rows["loss"] - rows["floor"]))
        ax.plot([0, end], [0, end], **THEORY)
    left.set(xlabel=r"excess $\Delta(p)$ of the imposed code (nats)", ylabel="trained loss less the floor (nats)")
    right.set(xlabel="what the reader can see allows (nats)")
    right.legend(*left.get_legend_handles_labels(), fontsize=8, loc="lower right")
    panel_label(left, "who sees context and cell\nreaches the theorem")
    panel_label(right, "each reaches what it can see")
    figure.set_label(
        f"Left: trained loss above the floor against the excess of the code; {'; '.join(words)} nats. Right: against "
        f"what each reader allows all {len(rows)} networks lie on the diagonal, within "
        f"{(rows['loss'] - rows['reach']).abs().max():.1g}; over the last tenth of the steps no loss fell by more than "
        f"{(rows['before'] - rows['loss']).max():.1g}."
    )
    return figure


def separations(rows: pd.DataFrame) -> Figure:
    """How far apart fixed networks put two observations in their best context; rows of ``Frozen``."""
    rows = largest(rows)
    names = {
        ("dense", "distinct"): "dense,\ndistinct texts",
        ("experts", "distinct"): "experts,\ndistinct texts",
        ("dense", "same"): "dense,\nsame text",
        ("experts", "same"): "experts,\nsame text",
        ("adapted", "same"): "adapted,\nsame text",
    }
    figure, ax = plt.subplots(figsize=(6.8, 3.2))
    words = []
    for x, ((network, observed), name) in enumerate(names.items()):
        l1 = rows[(rows["network"] == network) & (rows["observed"] == observed)]["l1"].to_numpy()
        color = BLUE if l1.min() > 0 else MUTED
        ax.plot(x + 0.15 * np.sin(2.4 * np.arange(len(l1))), l1, ".", color=color, alpha=0.35, markersize=4)
        beside(ax, x, l1.max(), f"least {l1.min():.2g}", color, (0, 8), ha="center", fontsize=8)
        words.append(f"{' '.join(name.split())} from {l1.min():.2g} to {l1.max():.2g}")
    ax.axhline(0, **DASHED)
    ax.set(xticks=range(len(names)), ylabel="largest $L_1$ distance of outputs", xlabel="network and what worlds show")
    ax.set_xticklabels(names.values(), fontsize=8)
    ax.margins(y=0.15)
    figure.set_label(f"Largest distance of two worlds' outputs over contexts, untrained networks: {'; '.join(words)}.")
    return figure
