"""Mutual information by a critic: rows in, a figure with its alt text as label out.

mark                   meaning
filled, open marker    recorded, live; bars are 99.9 % intervals over data sets
black bar              the true value
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, DASHED, INK, RED, beside, largest, mean_and_reach, panel_label

CASES = {"isotropic": "independent\nnoise", "curve": "independent\ncurve", "dependent": "dependent\n(control)"}
VALUES = {"in_sample": ("in sample", RED), "held_out": ("held out", BLUE)}


def critics(rows: pd.DataFrame) -> Figure:
    """In-sample and held-out values beside the truth in three cases; rows of ``Mine``."""
    table = largest(rows)
    recorded, said = bool(table["recorded"].iloc[0]), []
    figure, ax = plt.subplots(figsize=(5.6, 3.4))
    for x, (case, name) in enumerate(CASES.items()):
        part = table[table["case"] == case]
        truth = part["truth"].mean()
        ax.plot([x - 0.3, x + 0.3], [truth, truth], color=INK, linewidth=2.5, zorder=2)
        words = [f"truth {truth:.2g}"]
        for shift, (column, (label, color)) in zip((-0.14, 0.14), VALUES.items(), strict=True):
            mean, reach = mean_and_reach(part[column])
            face = color if recorded else "none"
            ax.errorbar(x + shift, mean, reach, fmt="o", color=color, markerfacecolor=face, capsize=3, zorder=3)
            words.append(f"{label} {mean:.2f}")
            if x == 0:
                beside(ax, x + shift, mean, label, color, shift=(8, 0))
        said.append(f"{name.replace(chr(10), ' ')}: {', '.join(words)}")
    ax.axhline(0, **DASHED)
    none = mean_and_reach(table[table["case"] == "isotropic"]["in_sample"])[0]
    panel_label(ax, f"In sample a critic finds {none:.1f} nats where there are none")
    beside(ax, len(CASES) - 1, truth, "truth", INK, (-24, -10))
    ax.set_xticks(range(len(CASES)), CASES.values())
    ax.set(xlabel="data", ylabel="information, nats", xlim=(-0.5, 2.5))
    figure.set_label(f"Mutual information by a critic, in nats. {'; '.join(said)}.")
    return figure
