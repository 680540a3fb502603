"""Memory against the step: rows in, a figure with its alt text as label out.

mark                 meaning
blue, orange         the smaller and the larger step exponent on the same stream
line in INK          the threshold alpha = 1/beta
map                  share of streams with an excursion in [N, 2N]
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from derived.lab.plot import (
    BLUE,
    COLOURS,
    INK,
    RED,
    SEQUENTIAL,
    THEORY,
    beside,
    largest,
    panel_label,
    plain_log,
    points,
)


def phase(diagram: pd.DataFrame, paths: pd.DataFrame, beta: float = 1.5, alphas: tuple = (0.55, 0.9)) -> Figure:
    """Two learners on one stream, and the phase diagram; rows of ``PhaseDiagram`` and ``SamplePaths``."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.5), width_ratios=(1.25, 1))
    one = largest(paths)
    one = one[one["beta"] == beta]
    far = []
    for alpha, color, shift in zip(alphas, (RED, BLUE), (0.0, 0.0), strict=True):
        path = one[one["alpha"] == alpha].sort_values("n")
        left.plot(path["n"], path["x"] + shift, color=color, linewidth=1.1, label=rf"$\alpha={alpha:g}$")
        late = path[path["n"] > path["n"].max() / 2]["x"]
        far.append(f"alpha {alpha:g}: from {late.min():.2f} to {late.max():.2f}")
    left.axhline(0.5, **THEORY)
    left.set(xlabel="$n$", ylabel="$x_n$", ylim=(-0.03, 1.03))
    left.legend(fontsize=8, loc="lower right", framealpha=0.8, frameon=True)
    panel_label(left, rf"one stream, $\beta={beta:g}$")
    best = largest(diagram)
    top = best[best["N"] == best["N"].max()]
    wide = top.pivot_table(index="alpha", columns="beta", values="share")
    drawn = right.pcolormesh(*_edges(wide), wide.to_numpy(), cmap=SEQUENTIAL, vmin=0, vmax=1)
    figure.colorbar(drawn, ax=right)
    line = np.linspace(wide.columns.min(), 2.0, 100)
    right.plot(line, 1 / line, color="white", linewidth=2.4)
    right.plot(line, 1 / line, color=INK, linewidth=1.2)
    beside(right, 1.6, 0.66, r"$\alpha=1/\beta$", "white")
    right.set(xlabel=r"memory: tail exponent $\beta$", ylabel=r"step exponent $\alpha$")
    low, high = _sides(top)
    panel_label(right, f"share that swings late:\n{100 * low:.0f} % below the line, {100 * high:.0f} % above")
    figure.set_label(
        f"Left: two learners on one stream with beta {beta:g}, second half of the run; {'; '.join(far)}. Right: share "
        f"of streams with an excursion beyond 0.3 in [N, 2N] at N = {top['N'].iloc[0]}, by beta and alpha; mean share "
        f"{low:.2f} on and below the line alpha = 1/beta, {high:.2f} above it."
    )
    return figure


def _edges(wide: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Edges of the cells around the grid's values, for columns and rows."""
    found = []
    for values in (wide.columns.to_numpy(dtype=float), wide.index.to_numpy(dtype=float)):
        middle = (values[1:] + values[:-1]) / 2
        found.append(np.concatenate([[2 * values[0] - middle[0]], middle, [2 * values[-1] - middle[-1]]]))
    return found[0], found[1]


def _sides(rows: pd.DataFrame) -> tuple[float, float]:
    below = rows["alpha"] * rows["beta"] <= 1
    return float(rows.loc[below, "share"].mean()), float(rows.loc[~below, "share"].mean())


def _times(ax: Axes, rows: pd.DataFrame) -> None:
    """Plain numbers on the axis of time, and room for labels at its end."""
    first, last = rows["n"].min(), rows["n"].max()
    plain_log(ax.xaxis, [n for n in (500, 1000, 2000, 4000, 8000, 16000) if first <= 1.1 * n and n <= 1.1 * last])
    ax.set_xlim(0.85 * first, last * (last / first) ** 0.45)


def typical_and_root(rows: pd.DataFrame) -> Figure:
    """Median and root mean square error at steps 1/n under heavy tails; rows of ``Renewal``."""
    figure, ax = plt.subplots(figsize=(5.4, 3.3))
    words = []
    for column, color, name in (("rmse", RED, "root mean square"), ("median", BLUE, "median")):
        drawn = points(ax, rows, "n", column, color)
        best = largest(rows).groupby("n")[column].mean()
        slope = np.polyfit(np.log(best.index), np.log(best), 1)[0]
        words.append(f"{name}: slope {slope:.2f}")
        end = drawn.loc[drawn["n"].idxmax()]
        beside(ax, end["n"], end["value"], name, color, (9, 0))
    exact = rows.drop_duplicates("n").sort_values("n")
    ax.plot(exact["n"], exact["exact"], **THEORY)
    start = drawn.sort_values("n").iloc[0]
    n = np.array([drawn["n"].min(), drawn["n"].max()])
    slow = start["value"] * (n / n[0]) ** (1 / rows["beta"].iloc[0] - 1)
    ax.plot(n, slow, **{**THEORY, "linestyle": ":"})
    beside(ax, *np.exp(np.log([n, slow]).mean(axis=1)), "$n^{-1/3}$", INK, (-4, -9), ha="right")
    ax.set(xscale="log", yscale="log", xlabel="$n$", ylabel=r"error of the mean, $\beta=1.5$")
    panel_label(ax, "The typical stream errs less than the root mean square")
    _times(ax, rows)
    plain_log(ax.yaxis, (0.02, 0.05, 0.1))
    figure.set_label(
        f"Errors of the mean of a heavy-tailed stream against time. {'; '.join(words)}. The exact root mean square is "
        "a line through its points; the median falls faster, as n to minus one third."
    )
    return figure


def long_range(rows: pd.DataFrame) -> Figure:
    """Errors under fractional noise; rows of ``LongRange``."""
    figure, ax = plt.subplots(figsize=(5.4, 3.3))
    words = []
    for place, ((H, alpha), part) in enumerate(rows.groupby(["H", "alpha"])):
        points(ax, part, "n", "rmse", COLOURS[place])
        exact = part.drop_duplicates("n").sort_values("n")
        ax.plot(exact["n"], exact["exact"], **THEORY)
        end = exact.iloc[-1]
        beside(
            ax,
            end["n"],
            end["exact"],
            rf"$H={H:g}$, $\alpha={alpha:g}$",
            COLOURS[place],
            (9, 0),
            fontsize=9,
        )
        slope = np.polyfit(np.log(exact["n"]), np.log(exact["exact"]), 1)[0]
        words.append(f"H {H:g}, alpha {alpha:g}: slope {slope:.3f}, predicted {part['target'].iloc[0]:.3f}")
    ax.set(xscale="log", yscale="log", xlabel="$n$", ylabel="root mean square error")
    _times(ax, rows)
    plain_log(ax.yaxis, (0.02, 0.05, 0.1, 0.2, 0.4))
    figure.set_label(f"Errors under fractional noise against time, on their exact curves. {'; '.join(words)}.")
    return figure
