"""The ledger of the layer at the data it was made from: least squares in one pass, any rank, ridge (OLS-1 to 6, 11).

Each is decided by the check cell of its statement on the page.
"""

from collections.abc import Callable

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from derived.lab.claims import on_page
from derived.lab.plot import BLUE, DASHED, DIVERGING, GREEN, MUTED, RED, THEORY, beside, panel_label

CLAIMS = (
    on_page(
        "OLS-1.a",
        source="paper",
        where="abstract; the weights as retold",
        plain="One layer of linear attention, with the right weights, gives exactly the least-squares fit.",
        paper_value="equality",
    ),
    on_page("OLS-2"),
    on_page("OLS-3.a"),
    on_page("OLS-3.b"),
    on_page("OLS-4.a", where="the paper assumes full column rank (as retold)", paper_value="full rank assumed"),
    on_page("OLS-5.a", where="a tempting step"),
    on_page("OLS-5.b", amends="OLS-5.a"),
    on_page("OLS-6.a"),
    on_page("OLS-11.a", where="a misreading to prevent"),
    on_page("OLS-11.b", amends="OLS-11.a"),
)


# Figures: The layer at its own data: attention is a projection, and ridge acts on the spectrum.
#
# Each function takes the rows of an experiment and returns a figure with its alt text as label.


def doubled(rows: pd.DataFrame) -> Figure:
    """What a layer that holds one fit answers at its own inputs and at twice these; rows: x, y, fit, doubled."""
    figure, ax = plt.subplots(figsize=(5.4, 3.7))
    x = rows["x"].to_numpy()
    ends = np.array([x.min(), x.max()])
    slope, wrong = (float(rows[name] @ x / (x @ x)) for name in ("fit", "doubled"))
    times = float((rows["doubled"] / rows["fit"]).median())
    ax.plot(x, rows["y"], "o", color=MUTED, markersize=4)
    ax.plot(ends, slope * ends, color=BLUE, linewidth=2.2)
    ax.plot(2 * x, rows["y"], "o", color=MUTED, markersize=4, markerfacecolor="none")
    ax.plot(2 * ends, slope * ends, **DASHED | {"linewidth": 1.4})
    ax.plot(2 * x, rows["doubled"], "o-", color=RED, linewidth=1.2, markersize=4)
    beside(
        ax,
        2 * ends[1],
        wrong * ends[1],
        f"the same layer, inputs doubled:\n{times:g} times too much",
        RED,
        (-8, -4),
        ha="right",
    )
    beside(ax, 2 * ends[1], slope * ends[1], "least squares,\ninputs doubled", MUTED, (8, 0))
    beside(
        ax, ends[0], slope * ends[0], "the layer, inputs as fitted:\nthe regression line", BLUE, (0, 30), ha="center"
    )
    ax.set(xlabel="input", ylabel="answer", xlim=(2.1 * ends[0], 3.1 * ends[1]))
    figure.set_label(
        f"Points and their regression line of slope {slope:.2f}, on which the layer's answers lie. At doubled inputs "
        f"the line of least squares has half the slope; the layer's answers lie {times:g} times too far from zero."
    )
    return figure


def attention_is_projection(rows: pd.DataFrame) -> Figure:
    """Attention matrix, hat matrix and their difference; rows: i, j, attention, hat."""
    A, H = (rows.pivot(index="i", columns="j", values=name) for name in ("attention", "hat"))
    worst, reach = float((A - H).abs().to_numpy().max()), float(H.abs().to_numpy().max())
    power = int(np.floor(np.log10(worst))) if worst > 0 else -16
    gap = ((A - H) / 10.0**power, max(worst / 10.0**power, 1.0), rf"$(A-H)\,/\,10^{{{power}}}$")
    figure, axes = plt.subplots(1, 3, figsize=(6.6, 2.8))
    panels = ((A, reach, "attention $A$"), (H, reach, "hat matrix $H$"), gap)
    for ax, (matrix, top, text) in zip(axes, panels, strict=True):
        bar = {"orientation": "horizontal", "shrink": 0.8, "pad": 0.03}
        ticks = {"xticklabels": False, "yticklabels": False}
        sns.heatmap(matrix, ax=ax, cmap=DIVERGING, vmin=-top, vmax=top, square=True, cbar_kws=bar, **ticks)
        ax.set(xlabel="token $j$", ylabel="token $i$" if ax is axes[0] else "")
        panel_label(ax, text)
    leverage = A.to_numpy().diagonal()
    figure.set_label(
        f"Three heat maps over {len(A)} tokens. Attention matrix and hat matrix look the same; their largest "
        f"difference is {worst:.1e}. On the diagonal stand the leverages, from {leverage.min():.2f} to "
        f"{leverage.max():.2f}, with sum {leverage.sum():.3f}."
    )
    return figure


def spectral_filters(rows: pd.DataFrame, exact: Callable[[ArrayLike, float, str], np.ndarray]) -> Figure:
    """Factor on the fitted value along each eigenvector; rows: eigenvalue, weights, factor (measured), ridge.

    ``exact(eigenvalues, ridge, weights)`` is the factor that theory gives.
    """
    figure, ax = plt.subplots(figsize=(5.6, 3.4))
    ridge, worst = float(rows["ridge"].iloc[0]), {}
    x = np.geomspace(rows["eigenvalue"].min() / 2, rows["eigenvalue"].max() * 2, 200)
    for weights, text, color, marker in (
        ("ols", "least squares", BLUE, "o"),
        ("repaired", "repaired: ridge once", GREEN, "s"),
        ("regularised", r"$L_\lambda$ everywhere: ridge twice", RED, "^"),
    ):
        part = rows[rows["weights"] == weights]
        ax.plot(x, exact(x, ridge, weights), **THEORY)
        ax.plot(part["eigenvalue"], part["factor"], marker, color=color, markerfacecolor="none", label=text)
        worst[weights] = np.abs(part["factor"] - exact(part["eigenvalue"], ridge, weights)).max()
    ax.axvline(ridge, color=MUTED, linestyle=":", linewidth=0.9)
    beside(ax, ridge, 0.92, r"$\lambda_i=\lambda$", MUTED)
    ax.legend(loc="lower right", fontsize=9)
    ax.set(
        xscale="log", xlabel=r"eigenvalue $\lambda_i$ of $\Sigma$", ylabel="factor on the fitted value", ylim=(0, 1.08)
    )
    figure.set_label(
        f"Factor against eigenvalue. Least squares multiplies by 1 everywhere. The repaired layer is within "
        f"{worst['repaired']:.0e} of the ridge factor, the layer with the regularised map in all places within "
        f"{worst['regularised']:.0e} of its square: 0.5 against 0.25 where the eigenvalue equals the penalty {ridge:g}."
    )
    return figure
