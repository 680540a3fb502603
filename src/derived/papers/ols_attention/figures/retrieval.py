"""The noise of each read-out of a stored pattern."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, GREEN, MUTED, PINK, RED, THEORY, beside, plain_log, points

from .words import shown


def read_out_noise(rows: pd.DataFrame) -> Figure:
    """Noise energy of each read-out against the patterns; rows: memory, num_patterns, noise, theory, naive."""
    figure, ax = plt.subplots(figsize=(5.8, 3.7))
    said = []
    for memory, words, color, marker, height in (
        ("hebb", "Hebb (linear)", RED, "^", 7),
        ("projection", "projection (whitened)", BLUE, "o", -7),
        ("cubic", "cubic kernel", GREEN, "s", 0),
        ("softmax", "softmax", PINK, "D", 0),
    ):
        part = rows[rows["memory"] == memory]
        if part.empty:
            continue
        theory = part.groupby("num_patterns")["theory"].first().dropna()
        ax.plot(theory.index, theory, **THEORY)
        last = shown(points(ax, part, "num_patterns", "noise", color, marker)).iloc[-1]
        beside(ax, last["num_patterns"], last["value"], words, color, (9, height))
        said.append(f"{words} {last['value']:.2g}")
    naive = rows[rows["memory"] == "hebb"].groupby("num_patterns")["naive"].first()
    ax.plot(naive.index, naive, color=MUTED, linewidth=0.9, linestyle="--")
    middle = naive.index[len(naive) // 2]
    beside(ax, middle, naive[middle], "Hebb without the\ncoherent part", MUTED, (6, -18))
    ax.set(xscale="log", yscale="log", xlabel="stored patterns $K$", ylabel="noise energy (signal: 1)")
    plain_log(ax.xaxis, sorted(rows["num_patterns"].unique())[::2])
    ax.set_xlim(right=rows["num_patterns"].max() * 6)
    figure.set_label(
        f"Noise energy against the number of stored patterns on logarithmic axes. At the largest number: "
        f"{', '.join(said)}. The Hebb points follow the exact line and leave the dashed one, which forgets the "
        f"coherent part."
    )
    return figure
