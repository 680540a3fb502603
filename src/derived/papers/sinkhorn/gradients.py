"""The derivative of a plan after few half-steps, and what a detach does to it.

symbol   name           meaning                                                              axes
S bar    -              derivative in the scores of <W, P>, W i.i.d. N(0, 1)                 (instances, n, m)
K        num_half_steps half-steps of the forward pass, rows first                           int
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

from derived.lab.claims import on_page
from derived.lab.experiment import Experiment, rows
from derived.lab.plot import BLUE, RED, largest, panel_label
from derived.lab.rng import stream

from .model.backward import sinkhorn_plan
from .model.plan import half_steps

EXACT = {"tol": 1e-14, "max_iterations": 4000}


def gradient(plan_of: Callable[[Tensor], Tensor], scores: Tensor, W: Tensor) -> Tensor:
    """d <W, P(S)> / dS."""
    leaf = scores.detach().clone().requires_grad_()
    return torch.autograd.grad((W * plan_of(leaf)).sum(), leaf)[0]


def _relative(found: Tensor, truth: Tensor) -> Tensor:
    return ((found - truth).norm(dim=(-2, -1))) / truth.norm(dim=(-2, -1))


@dataclass(frozen=True, kw_only=True)
class Truncated(Experiment):
    """SK-14: gradients of a forward pass of K half-steps, as autograd has it and with the column potential detached.

    ``own``: against the gradient of the same forward pass; ``limit``: against that of the converged plan. Uniform
    weights, n = m. Rows: method (unrolled, detached, implicit), instance, num_half_steps (0 for implicit), spread,
    own_error, own_cosine, limit_error, limit_cosine.
    """

    instances: int = 100
    n: int = 8
    halves: tuple[int, ...] = (1, 3, 5, 7, 11, 21, 41, 81)
    spreads: tuple[float, ...] = (1.0, 2.0)

    tiers: ClassVar = {"ci": {"instances": 12}, "cpu": {}}
    tiny: ClassVar = {"instances": 4, "halves": (1, 3, 5, 81)}

    def conditions(self) -> list[dict]:
        return [{"spread": spread} for spread in self.spreads]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        generator, num = stream(seed, "truncated"), self.instances
        noise, W = torch.randn(2, num, self.n, self.n, generator=generator, dtype=torch.float64)
        scores, tables = condition["spread"] * noise, []
        limit = gradient(lambda S: sinkhorn_plan(S, **EXACT), scores, W)
        for half in self.halves:
            own = gradient(lambda S, K=half: half_steps(S, K).exp(), scores, W)
            cut = gradient(lambda S, K=half: half_steps(S, K, detach_columns=True).exp(), scores, W)
            for method, found in (("unrolled", own), ("detached", cut)):
                tables.append(self._rows(found, own, limit).assign(method=method, num_half_steps=half))
        tables.append(self._rows(limit, limit, limit).assign(method="implicit", num_half_steps=0))
        return pd.concat(tables, ignore_index=True)

    def _rows(self, found: Tensor, own: Tensor, limit: Tensor) -> pd.DataFrame:
        columns = {}
        for name, truth in (("own", own), ("limit", limit)):
            columns[f"{name}_error"] = _relative(found, truth)
            columns[f"{name}_cosine"] = torch.cosine_similarity(found.flatten(1), truth.flatten(1), dim=-1)
        return rows({"instance": range(self.instances)}, columns)


# Claims: SK-13 and SK-14: the derivative of a plan. Each is decided by the check cell of its statement on the page.

ROWS = (
    on_page("SK-13.a", source="prior", where="Luise et al. 2018, Eisenberger et al. 2022"),
    on_page("SK-13.b"),
    on_page("SK-14", where="the public text classifier does so"),
)


# Figures: Three gradients of a plan: rows in, a figure with its alt text as label out.
#
# mark                  meaning
# blue, red             unrolled, with the column potential detached
# solid, dotted         the two spreads of the scores
# bars                  from the lower to the upper quartile over problems

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
