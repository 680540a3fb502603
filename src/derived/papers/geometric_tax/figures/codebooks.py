"""What a codebook loses, and what bins with a constant each lose: rows in, a figure with its alt text as label out.

mark                   meaning
filled, open marker    recorded, live; bars are 99.9 % intervals over replicates
thin line              a power of K, slope -2 / d, through the last point
dashed line            Shannon's bound (left); the fit a / ln K + b, by least squares (right)
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import (
    BLUE,
    COLOURS,
    DASHED,
    INK,
    RED,
    THEORY,
    apart,
    beside,
    largest,
    panel_label,
    points,
    shades,
)

SOURCES = {"line": "line", "square": "square", "cube": "cube", "lorenz": "Lorenz attractor"}


def rates(rows: pd.DataFrame) -> Figure:
    """Error against K for four sources (left); on the attractor a power of K and the fit a / ln K + b (right); rows of
    ``Clouds``."""
    rows = rows[rows["codebook"] == "k-means"]
    figure, axes = plt.subplots(1, 2, figsize=(7.8, 3.5))
    slopes = {}
    for (source, name), color in zip(SOURCES.items(), COLOURS, strict=False):
        part = rows[rows["source"] == source]
        shown = part.assign(distortion=part["distortion"] / (1 if source != "lorenz" else _size(part)))
        points(axes[0], shown, "K", "distortion", color)
        mean = largest(shown).groupby("K")[["distortion", "slb", "d"]].mean()
        K = mean.index.to_numpy(float)
        axes[0].plot(K, mean["distortion"].iloc[-1] * (K / K[-1]) ** (-2 / mean["d"].iloc[0]), **THEORY)
        if source != "lorenz":
            axes[0].plot(K, mean["slb"], **DASHED)
        beside(axes[0], K[-1], mean["distortion"].iloc[-1], name, color, fontsize=9)
        slopes[name] = np.polyfit(np.log(K), np.log(mean["distortion"]), 1)[0]
    axes[0].set(xscale="log", yscale="log", xlabel="codes $K$", ylabel=r"error $\Delta_K$")
    axes[0].set_xlim(None, rows["K"].max() * 6)
    panel_label(axes[0], "power laws, and Shannon's bound")
    off = _fits(axes[1], rows[rows["source"] == "lorenz"])
    said = ", ".join(f"{name} {slope:.2f}" for name, slope in slopes.items())
    figure.set_label(
        f"Error of k-means codes against their number, on logarithmic axes, with slopes {said}; all lie above "
        f"Shannon's bound. On the attractor the fit of a constant over ln K is off by {off['log']:.0%} at its worst "
        f"point, the power of K by {off['power']:.0%}."
    )
    return figure


def _size(part: pd.DataFrame) -> float:
    """What makes the coarsest error of the attractor 0.4: its units are none of the cubes'."""
    return 2.5 * part.loc[part["K"] == part["K"].min(), "distortion"].mean()


def _fits(ax, part: pd.DataFrame) -> dict[str, float]:
    """Both fits by least squares on the attractor, as shares of what was measured; returns their worst errors."""
    mean = largest(part).groupby("K")["distortion"].mean()
    K, D = mean.index.to_numpy(float), mean.to_numpy()
    a, b = np.polyfit(1 / np.log(K), D, 1)
    slope, level = np.polyfit(np.log(K), np.log(D), 1)
    fits = {"log": a / np.log(K) + b, "power": np.exp(level) * K**slope}
    ax.plot(K[[0, -1]], [1, 1], color=INK, linewidth=0.8)  # no farther, or it would run through the labels
    shares = [fit / D for fit in fits.values()]
    places = apart([share[-1] for share in shares], 0.08 * np.ptp(shares))
    for share, color, words, place in zip(shares, (RED, BLUE), ("$a/\\ln K+b$", "power of $K$"), places, strict=True):
        ax.plot(K, share, "o-", color=color, markersize=4)
        beside(ax, K[-1], place, words, color, fontsize=9)
    ax.set(xscale="log", xlabel="codes $K$", ylabel="fit over measured error")
    ax.set_xlim(None, K[-1] * 8)
    panel_label(ax, "two fits, on the attractor")
    return {name: float(np.abs(fit / D - 1).max()) for name, fit in fits.items()}


def risk(rows: pd.DataFrame) -> Figure:
    """Risk of bins with one constant each against their number, for several N; rows of ``Regressogram``."""
    table = largest(rows)
    figure, ax = plt.subplots(figsize=(5.2, 3.5))
    samples, best = sorted(table["N"].unique()), {}
    for N, color in zip(samples, shades(len(samples)), strict=True):
        part = table[table["N"] == N]
        mean = part.groupby("K")["mean_risk"].mean()
        best[N] = part["K_best"].mean()
        ax.plot(mean.index, mean, color=color)
        ax.plot(best[N], part["risk"].mean(), "o", color=color)
        beside(ax, mean.index[-1], mean.iloc[-1], f"$N$ = {N}", color, fontsize=9)
    exact = table.drop_duplicates("K").sort_values("K")
    ax.plot(exact["K"], exact["reconstruction"], **DASHED)
    ax.set(xscale="log", yscale="log", xlabel="bins $K$", ylabel="risk")
    ax.set_xlim(None, table["K"].max() * 3.2)
    ax.set_ylim(max(exact["reconstruction"].min(), table["mean_risk"].min() / 6), None)
    said = ", ".join(f"{K:.0f} for N = {N}" for N, K in best.items())
    figure.set_label(
        f"Risk of one constant per bin against the number of bins, a valley for each number of samples, while the "
        f"error of the bins alone falls. Least at {said}."
    )
    return figure
