"""The layer at its own data and at other tokens: identities, ridge, and inputs that shift (OLS-1 to 6, 8, 11).

error   distance from the least-squares prediction, relative
amount  how far the inputs shift, in the unit of the kind of shift

All but OLS-8 are decided by the check cells of their statements on the page.
"""

from collections.abc import Callable
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
import torch
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from torch import Tensor
from torch.linalg import matrix_norm as norm

from derived.lab import measure
from derived.lab.claims import on_page, reported
from derived.lab.experiment import Experiment, rows
from derived.lab.plot import BLUE, DASHED, DIVERGING, GREEN, MUTED, RED, THEORY, beside, panel_label, plain_log, points
from derived.lab.rng import stream

from .data.problems import random_rotation
from .model import theory
from .model.mechanism import OLSTransformer, in_context_ols

SMALLEST = 1e-17  # what a logarithmic axis shows in place of zero


@dataclass(frozen=True, kw_only=True)
class Shift(Experiment):
    """OLS-8: distance from the least-squares prediction, relative, when the inference inputs shift.

    ``scale``: fresh tokens times c · ``same tokens``: the training tokens times c · ``rotation``: the covariance turned
    by an angle in units of pi/2 · ``condition``: its condition number times a factor.
    """

    amounts: tuple[float, ...] = (0.25, 0.3536, 0.5, 0.7071, 1.0, 1.4142, 2.0, 2.8284, 4.0)
    angles: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 1.0)
    n: int = 2000
    p: int = 4
    kappa: float = 10.0
    replicates: int = 32

    def conditions(self) -> list[dict]:
        kinds = {"scale": self.amounts, "same tokens": self.amounts, "rotation": self.angles, "condition": self.amounts}
        return [{"shift": kind, "amount": amount} for kind, amounts in kinds.items() for amount in amounts]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        generator = stream(seed, "shift")  # the same draws for every condition: the curves are paired
        shape, kind, amount = (self.replicates, self.n, self.p), condition["shift"], condition["amount"]
        frame = random_rotation(self.p, batch=(self.replicates,), generator=generator, dtype=dtype)
        exponent = torch.linspace(0, 0.5, self.p, dtype=dtype)
        base, fresh = torch.randn(2, *shape, generator=generator, dtype=dtype)
        B = torch.randn(self.replicates, self.p, 1, generator=generator, dtype=dtype)
        noise = 0.3 * torch.randn(self.replicates, self.n, 1, generator=generator, dtype=dtype)
        X = base * self.kappa**exponent @ frame.mT
        kappa = self.kappa * amount if kind == "condition" else self.kappa
        turned = frame @ _turn(self.p, amount if kind == "rotation" else 0.0, dtype)
        factor = amount if kind in ("scale", "same tokens") else 1.0
        Xq = factor * (X if kind == "same tokens" else fresh * kappa**exponent @ turned.mT)
        X, Xq, Y = X.to(device), Xq.to(device), (X @ B + noise).to(device)
        target = Xq @ theory.ols_coefficients(X, Y, method="full rank")
        layer = OLSTransformer.from_data(X, Y)
        predictions = {"self": layer(Xq), "cross": layer(Xq, context=X), "labels": in_context_ols(Xq, X, Y)}
        size = norm(target)
        error = [norm(predicted - target) / size for predicted in predictions.values()]
        gains = [theory.rounding_bound(X, Xq, self_attention=method == "self") for method in predictions]
        bound = [2 * gain * norm(Y) / size for gain in gains]
        index = {"method": [*predictions], "replicate": range(self.replicates)}
        return rows(index, {"error": torch.stack(error), "bound": torch.stack(bound)})


def _turn(p: int, amount: float, dtype: torch.dtype) -> Tensor:
    """A rotation by ``amount`` quarter turns in the plane of the first and the last axis."""
    turn, angle = torch.eye(p, dtype=dtype), torch.tensor(amount * np.pi / 2, dtype=dtype)
    turn[0, 0] = turn[-1, -1] = angle.cos()
    turn[0, -1], turn[-1, 0] = -angle.sin(), angle.sin()
    return turn


EXPERIMENTS = (Shift,)

# Claims ---------------------------------------------------------------------------------------------------------------

CLAIMS = (
    on_page(
        "OLS-1.a",
        source="paper",
        where="abstract; the weights from a summary, which assumes full column rank",
        plain="One layer of linear attention, with the right weights, gives exactly the fit of least squares.",
        paper_value="equality",
    ),
    on_page("OLS-3.b"),
    on_page("OLS-5.b"),
    on_page("OLS-6.a"),
    on_page("OLS-11.b"),
    reported(
        "OLS-8.a",
        r"The prediction of the trained layer is very sensitive to a shift of the inference inputs: doubled, fresh "
        r"tokens of the training distribution have this relative error, near $|2^2-1|=3$.",
        Shift,
        measure.mean("error", "shift == 'scale' and method == 'self' and amount == 2"),
        "of the least-squares prediction",
        criterion="mean relative distance from the least-squares prediction at $c=2$; “very sensitive” is no number, "
        "so nothing passes or fails",
        source="digest",
        where="limitations",
        paper_value="“highly sensitive”",
        plain="The trained layer is very sensitive to inputs that differ from those of its training.",
    ),
)

# Figures --------------------------------------------------------------------------------------------------------------


def doubled(rows: pd.DataFrame) -> Figure:
    """What a layer that holds one fit answers at its own inputs and at twice these; rows: x, y, fit, doubled."""
    figure, ax = plt.subplots(figsize=(5.2, 2.7))
    x = rows["x"].to_numpy()
    ends = np.array([x.min(), x.max()])
    slope = float(rows["fit"] @ x / (x @ x))
    times = float((rows["doubled"] / rows["fit"]).median())
    ax.plot(x, rows["y"], "o", color=MUTED, markersize=4)
    ax.plot(ends, slope * ends, color=BLUE, linewidth=2.2)
    ax.plot(2 * x, rows["y"], "o", color=MUTED, markersize=4, markerfacecolor="none")
    ax.plot(2 * ends, slope * ends, **DASHED | {"linewidth": 1.4})
    ax.plot(2 * x, rows["doubled"], "o-", color=RED, linewidth=1.2, markersize=4)
    at = {"xycoords": "axes fraction", "annotation_clip": False}
    ax.annotate("the same layer,\ninputs doubled", (0.64, 0.86), color=RED, ha="right", **at)
    ax.annotate("the layer, inputs as fitted:\nthe regression line", (0.02, 0.69), color=BLUE, **at)
    beside(ax, 2 * ends[1], slope * ends[1], "least squares,\nfitted again", MUTED, (8, 0))
    ax.set(xlabel="input", ylabel="answer", xlim=(2.1 * ends[0], 3.1 * ends[1]))
    panel_label(ax, f"Double the inputs, and the layer answers {times:g} times too much")
    figure.set_label(
        f"Regression line of slope {slope:.2f} and the layer's answers on it. At doubled inputs least squares has half "
        f"that slope; the layer's answers lie {times:g} times too far from zero."
    )
    return figure


def attention_is_projection(rows: pd.DataFrame) -> Figure:
    """Attention matrix, hat matrix and their difference; rows: i, j, attention, hat."""
    A, H = (rows.pivot(index="i", columns="j", values=name) for name in ("attention", "hat"))
    worst, reach = float((A - H).abs().to_numpy().max()), float(H.abs().to_numpy().max())
    power = int(np.floor(np.log10(worst))) if worst > 0 else -16
    gap = ((A - H) / 10.0**power, max(worst / 10.0**power, 1.0), rf"$(A-H)\,/\,10^{{{power}}}$")
    figure, axes = plt.subplots(1, 3, figsize=(6.0, 3.1))
    figure.suptitle("The layer's attention is the hat matrix; they differ by rounding", x=0.02, ha="left", size=10)
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
    beside(ax, ridge, 0.92, r"$\sigma_i^2/n=\lambda$", MUTED)
    panel_label(ax, "Regularised in all places, the layer applies ridge twice")
    ax.legend(loc="lower right", fontsize=9)
    ax.set(
        xscale="log",
        xlabel=r"eigenvalue $\sigma_i^2/n$ of $\Sigma$",
        ylabel="factor on the fitted value",
        ylim=(0, 1.08),
    )
    figure.set_label(
        f"Factor against eigenvalue. Least squares multiplies by 1 everywhere. The repaired layer is within "
        f"{worst['repaired']:.0e} of the ridge factor, the layer with the regularised map in all places within "
        f"{worst['regularised']:.0e} of its square: 0.5 against 0.25 where the eigenvalue equals the penalty {ridge:g}."
    )
    return figure


def shown(points: pd.DataFrame) -> pd.DataFrame:
    """The recorded points, or those of this build if nothing is recorded."""
    return points[points["recorded"] == points["recorded"].max()]


def shift(rows: pd.DataFrame) -> Figure:
    """Distance from the least-squares prediction when the inputs are scaled or turned; rows of ``Shift``."""
    figure, axes = plt.subplots(1, 2, figsize=(6.2, 3.4), sharey=True)
    title = "Self-attention errs on shifted inputs; attention to stored tokens does not"
    figure.suptitle(title, x=0.02, ha="left", size=10)
    kinds, drawn = (("scale", "scale $c$ of the inputs"), ("rotation", "rotation, quarter turns")), {}
    for ax, (kind, words) in zip(axes, kinds, strict=True):
        part = rows[rows["shift"] == kind].assign(error=lambda some: some["error"].clip(lower=SMALLEST))
        for method, color, marker in (("self", RED, "^"), ("cross", BLUE, "o"), ("labels", GREEN, "s")):
            drawn[kind, method] = points(ax, part[part["method"] == method], "amount", "error", color, marker)
        ax.set(xlabel=words, yscale="log", ylim=(SMALLEST, 300))
    c = np.geomspace(rows["amount"].replace(0, np.nan).min(), rows["amount"].max(), 400)
    axes[0].plot(c, np.abs(c**2 - 1), **THEORY)
    axes[0].set_xscale("log")
    plain_log(axes[0].xaxis, (0.25, 0.5, 1, 2, 4))
    axes[0].set_ylabel("relative error")
    at = {"xycoords": "axes fraction", "ha": "right"}
    axes[0].annotate(r"self-attention: $|c^2-1|$", (0.97, 0.64), color=RED, **at)
    axes[1].annotate("self-attention", (0.97, 0.64), color=RED, **at)
    axes[1].annotate("attention to the\ntraining tokens", (0.97, 0.3), color=BLUE, **at)
    axes[1].annotate("labels as values", (0.97, 0.21), color=GREEN, **at)
    scale, turned = (shown(drawn[kind, "self"]).set_index("amount")["value"] for kind in ("scale", "rotation"))
    safe = max(each["value"].max() for (_, method), each in drawn.items() if method != "self")
    figure.set_label(
        f"Relative error on a logarithmic axis. Self-attention with frozen weights errs by "
        f"{scale.iloc[-1]:.1f} at scale {scale.index[-1]:g} and by {turned.iloc[-1]:.2f} after "
        f"{turned.index[-1]:g} quarter turns; attention to the training tokens and labels as values stay "
        f"below {safe:.0e}."
    )
    return figure
