"""Three gradients of a plan: rows in, a figure with its alt text as label out.

mark                  meaning
blue, red             unrolled, with the column potential detached
solid, dotted         the two spreads of the scores
bars                  from the lower to the upper quartile over problems
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, RED, largest, panel_label

TITLES = ("unrolled converges, detached does not", "detached against the same forward pass")
METHODS = {"unrolled": BLUE, "detached": RED}


def truncated(rows: pd.DataFrame) -> Figure:
    """Distance from the gradient of the limit, and cosine with one's own; rows of ``Truncated``."""
    rows = largest(rows)
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.2))
    words = []
    for spread, line in zip(sorted(rows["spread"].unique()), ("-", ":"), strict=False):
        for method, color in METHODS.items():
            part = rows[(rows["spread"] == spread) & (rows["method"] == method)].groupby("num_half_steps")
            for ax, column in zip(axes, ("limit_error", "own_cosine"), strict=True):
                low, middle, high = (part[column].quantile(each) for each in (0.25, 0.5, 0.75))
                style = {"color": color, "linestyle": line, "marker": "o", "markersize": 3.5, "elinewidth": 0.8}
                name = f"{method}, scores of s.d. {spread:g}"
                if method == "detached" or column == "limit_error":
                    ax.errorbar(middle.index, middle, (middle - low, high - middle), label=name, **style)
            end = part["limit_error"].median().iloc[-1]
            words.append(f"{method} at spread {spread:g}: {end:.1e}")
    axes[0].set(yscale="log", ylabel="relative error of the gradient", ylim=(1e-9, 10))
    axes[1].set(ylabel="cosine of the two gradients", ylim=(0, 1.03))
    for ax, text in zip(axes, TITLES, strict=True):
        ax.set(xscale="log", xlabel="half-steps $K$")
        panel_label(ax, text)
    axes[0].legend(fontsize=7.5, loc="lower left")
    figure.set_label(
        "Left: median relative error of unrolled and detached gradients against the number of half-steps. At the "
        f"largest number: {'; '.join(words)}. Right: cosine of the detached gradient with the true one of the same "
        "forward pass."
    )
    return figure
