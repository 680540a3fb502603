"""Capacities against the number of spins."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, COLOURS, RED, THEORY, beside, largest, plain_log, points

from .words import fitted_slope, runs_shown


def polynomial_capacity(rows: pd.DataFrame) -> Figure:
    """Patterns at 1 % bit error against spins, one line per degree; rows of ``PolynomialCapacity``."""
    figure, ax = plt.subplots(figsize=(5.6, 3.6))
    slopes = {}
    for degree, color in zip(sorted(rows["degree"].unique()), COLOURS, strict=False):
        part = rows[rows["degree"] == degree]
        theory = part.groupby("N")["theory"].first()
        ax.plot(theory.index, theory, **THEORY)
        points(ax, part, "N", "K", color)
        means = largest(part).groupby("N")["K"].mean()
        slopes[degree] = fitted_slope(np.log(means.index), np.log(means))
        beside(ax, theory.index[-1], theory.iloc[-1], f"$u^{degree}$: slope {slopes[degree]:.2f}", color, (9, 0))
    low, high = rows["N"].min(), rows["N"].max()
    ax.set(xscale="log", yscale="log", xlabel="spins $N$", ylabel="patterns $K$ at 1 % error")
    plain_log(ax.xaxis, [2**k for k in range(3, 12) if low <= 2**k <= high])
    ax.set_xlim(low / 1.15, high * 2.6)
    said = ", ".join(f"{slope:.2f} for degree {degree}" for degree, slope in slopes.items())
    figure.set_label(
        f"Number of patterns against number of spins on logarithmic axes, {runs_shown(rows)}: lines of slope {said}. "
        f"The measured points lie on the curves of signal to noise."
    )
    return figure


def exponential_capacity(rows: pd.DataFrame) -> Figure:
    """log2 of the capacity for F = e^u in both notions against spins; rows of ``ExponentialCapacity``."""
    figure, ax = plt.subplots(figsize=(5.6, 3.6))
    rates = {}
    for notion, words, color in (("typical", "a typical pattern stays", BLUE), ("all", "all patterns stay", RED)):
        part = rows[rows["notion"] == notion].assign(bits=lambda some: np.log2(some["K"]))
        theory = np.log2(part.groupby("N")["theory"].first())
        ax.plot(theory.index, theory, **THEORY)
        points(ax, part, "N", "bits", color)
        means = largest(part).groupby("N")["bits"].mean()
        rates[notion] = fitted_slope(means.index, means)
        beside(ax, theory.index[-1], theory.iloc[-1], f"{words}:\nslope {rates[notion]:.2f}", color, (9, 0))
    low, high = rows["N"].min(), rows["N"].max()
    ax.set(xlabel="spins $N$", ylabel=r"$\log_2 K$", xlim=(low - 0.6, high + 0.55 * (high - low)))
    ax.set_xticks(sorted(rows["N"].unique()))
    figure.set_label(
        f"Logarithm to base 2 of the number of patterns against spins, {runs_shown(rows)}. A typical pattern stays "
        f"up to a line of slope {rates['typical']:.2f} bits per spin, all patterns at once only up to one of "
        f"{rates['all']:.2f}."
    )
    return figure
