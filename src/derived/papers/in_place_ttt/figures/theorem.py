"""What one write does to logits: rows in, a figure with its alt text as label out.

mark                meaning
green, red, grey    the right answer v*, the token that asks k*, another token
line in INK         the theorem's expectation; dashed: zero
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import DASHED, GREEN, MUTED, RED, THEORY, largest, panel_label

TOKENS = {"v": ("right answer $v^*$", GREEN), "k": ("asking token $k^*$", RED), "other": ("another token", MUTED)}


def shifts(rows: pd.DataFrame) -> Figure:
    """Histograms of Delta l by target; rows of ``Logits``: target, token, delta, expected."""
    rows = largest(rows)
    targets = {"next": "next token", "reconstruction": "reconstruction"}
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 2.9), sharex=True, sharey=True)
    edges = np.histogram_bin_edges(rows["delta"], 60)
    words = []
    for ax, (target, name) in zip(axes, targets.items(), strict=True):
        for token, (label, color) in TOKENS.items():
            part = rows[(rows["target"] == target) & (rows["token"] == token)]
            ax.hist(part["delta"], edges, density=True, histtype="stepfilled", color=color, alpha=0.45, label=label)
            ax.axvline(part["expected"].mean(), **THEORY)
            words.append(f"{name}, {label.split(' $')[0]}: {part['delta'].mean():.2f}")
        ax.axvline(0, **DASHED)
        ax.set(xlabel=r"change of the logit $\Delta\ell_n$", yticks=[])
        panel_label(ax, name)
    axes[0].set_ylabel("density over draws")
    axes[1].legend(fontsize=8)
    figure.set_label(f"Histograms of the change of three logits under two targets. Means: {'; '.join(words)}.")
    return figure
