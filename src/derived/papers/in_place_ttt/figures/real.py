"""Keys of a trained model: rows in, a figure with its alt text as label out.

mark                   meaning
filled, open marker    recorded, live; bars are 99.9 % intervals over texts
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, MUTED, RED, beside, largest, mean_and_reach

LINES = (("fresh", "cosine", "before training", MUTED), ("trained", "cosine", "trained", RED))
LINES += (("trained", "centred", "trained, mean subtracted", BLUE),)


def keys(rows: pd.DataFrame) -> Figure:
    """The mean cosine of keys of different tokens by layer; rows of ``TrainedKeys``."""
    rows = largest(rows)
    figure, ax = plt.subplots(figsize=(6.2, 3.1))
    words, layers = [], sorted(rows["layer"].unique())
    for weights, column, name, color in LINES:
        part = rows[rows["weights"] == weights]
        found = [mean_and_reach(part[part["layer"] == layer][column]) for layer in layers]
        value, reach = (np.array(each) for each in zip(*found, strict=True))
        face = color if rows["recorded"].iloc[0] else "none"
        ax.errorbar(layers, value, reach, fmt="-o", color=color, markerfacecolor=face, markersize=4, capsize=3)
        beside(ax, layers[-1], value[-1], name, color, (6, 0), fontsize=9)
        words.append(f"{name} {value.min():.2f} to {value.max():.2f}")
    ax.set(xlabel="layer", ylabel="mean cosine of unlike tokens' keys", xlim=(-0.2, 1.55 * layers[-1]))
    ax.set_xticks(layers)
    figure.set_label(f"Mean cosine of the keys of different tokens of a text, by layer: {'; '.join(words)}.")
    return figure
