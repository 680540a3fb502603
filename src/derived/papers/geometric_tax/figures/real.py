"""Real genes and real DNA: rows in, a figure with its alt text as label out.

mark                   meaning
filled, open marker    recorded, live; bars are 99.9 % intervals over genes or stretches
thin line              the law of a diluted step, through the shortest window
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, GREEN, INK, RED, THEORY, largest, mean_and_reach, panel_label

ENCODERS = {
    "heavy": ("trained, heavy chain", RED),
    "light": ("trained, light chain", BLUE),
    "heavy, untrained": ("untrained, heavy", GREEN),
    "light, untrained": ("untrained, light", INK),
}
ARMS = {"human": "human", "shuffled": "each\nshuffled", "matched": "one chain\nfor all", "uniform": "uniform"}


def real(walks: pd.DataFrame, strands: pd.DataFrame) -> Figure:
    """Steps of mutation walks against the window (left; rows of ``AntibodyWalks``), and similarity of distance matrices
    under the reverse complement (right; rows of ``HumanStrands``)."""
    figure, axes = plt.subplots(1, 2, figsize=(7.8, 3.5))
    table, said = largest(walks), []
    steps = np.log(table.set_index(["encoder", "L"])["cosine"]).groupby(["encoder", "L"]).mean()
    for name, (label, color) in ENCODERS.items():
        mean = np.exp(steps[name])
        face = color if table["recorded"].iloc[0] else "none"
        axes[0].plot(mean.index, mean, "o", color=color, markerfacecolor=face, label=label)
        said.append(f"{label} {mean.iloc[0]:.2g} to {mean.iloc[-1]:.2g}")
    L = np.array(sorted(table["L"].unique()), dtype=float)
    axes[0].plot(L, np.exp(steps.xs(L[0], level="L").mean()) * (L / L[0]) ** -2.0, **THEORY)
    axes[0].set(xscale="log", yscale="log", xlabel="window $L$, residues", ylabel="cosine step")
    axes[0].legend(frameon=False, fontsize=8)
    panel_label(axes[0], "longer window, smaller step")
    table, means = largest(strands), []
    for x, arm in enumerate(ARMS):
        mean, reach = mean_and_reach(table.loc[table["arm"] == arm, "similarity"])
        face = RED if table["recorded"].iloc[0] else "none"
        axes[1].errorbar(x, mean, reach, fmt="o", color=RED, markerfacecolor=face, capsize=3)
        means.append(mean)
    axes[1].set_xticks(range(len(ARMS)), ARMS.values())
    axes[1].set(ylabel="similarity after\nreverse complement", xlabel="DNA", ylim=(0, None))
    panel_label(axes[1], "human DNA and its shuffles alike")
    figure.set_label(
        f"Cosine step from the shortest to the longest window: {'; '.join(said)}. Similarity of distance matrices "
        f"under the reverse complement: human {means[0]:.2f}, each window shuffled {means[1]:.2f}, one chain for all "
        f"{means[2]:.2f}, uniform letters {means[3]:.2f}."
    )
    return figure
