"""The universal approximator at work: relations whose answer is known, rebuilt from blocks.

symbol   name    meaning                                                              axes
m        m       blocks per side; m + 1 hats                                          scalar
tau      tau     what keeps the kernel continuous where a block is empty              scalar
t        floor   share of the product coupling                                        scalar
W_1      w1      between the target and the plan of the block kernel                  (instances,)
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import torch
from plotly.subplots import make_subplots
from torch import Tensor

from derived.lab import measure
from derived.lab.claims import at_least, computed, on_page
from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream
from derived.lab.stats import Estimate

from .data.points import Problem, coupling_problems
from .model.blocks import block_bound, block_kernel, block_plan
from .model.couplings import comonotone, coupling_w1, crossed, total_variation
from .model.plan import sinkhorn
from .plans import map_and_bars

RELATIONS = ("comonotone", "crossed", "hidden")


def problems(relation: str, num: int, n: int, seed: int) -> Problem:
    """Random texts on the line; in the first of them, one token of each text has weight 1e-8."""
    drawn = coupling_problems(relation, num, n, stream(seed, "blocks", relation))
    if relation == "hidden":
        return drawn
    weights = [drawn.a.clone(), drawn.b.clone()]
    for each in weights:
        each[0, 0] = 1e-8
        each[0] /= each[0].sum()
    rule = {"comonotone": comonotone, "crossed": crossed}[relation]
    return Problem(drawn.x, drawn.y, *weights, rule(drawn.x, drawn.y, *weights))


@dataclass(frozen=True, kw_only=True)
class Blocks(Experiment):
    """SK-7: W_1 of the block kernel's Sinkhorn plan from its target, by linear programs, against the bound.

    Rows: target, m, instance, tau; w1 (of the smallest tau only, else NaN), bound; alone: the same where the blocks are
    those of the product coupling (of the first instance only); tv (from the block plan with its floor), tv_bound;
    floor, residual.
    """

    instances: int = 10
    n: int = 16
    m: tuple[int, ...] = (2, 4, 8, 16)
    taus: tuple[float, ...] = (1e-6, 1e-3, 1e-1)
    floor: float = 1e-3
    iterations: int = 3000

    tiers: ClassVar = {"ci": {"instances": 2, "n": 10}, "cpu": {"instances": 6}}
    tiny: ClassVar = {"instances": 2, "n": 7, "iterations": 1500}

    def conditions(self) -> list[dict]:
        return [{"target": target, "m": m} for target in RELATIONS for m in self.m]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        m, tables = condition["m"], []
        x, y, a, b, target = problems(condition["target"], self.instances, self.n, seed)
        blocks = block_plan(x, y, a, b, target, m, self.floor)
        for tau in self.taus:
            scores = block_kernel(x, y, a, b, target, m, tau, self.floor)
            found = sinkhorn(scores, a, b, tol=1e-8, max_iterations=self.iterations)
            columns = {"w1": torch.nan, "alone": torch.nan, "residual": found.residual}
            columns["bound"] = block_bound(m, tau, self.floor)
            if tau == min(self.taus):
                columns["w1"] = [coupling_w1(*each) for each in zip(found.plan, target, x, y, strict=True)]
                columns["alone"] = [
                    self._alone(x[0], y[0], a[0], b[0], target[0], m),
                    *(self.instances - 1) * [torch.nan],
                ]
            columns |= {"tv": total_variation(found.plan, blocks), "tv_bound": ((m + 1) * tau) ** 0.5}
            index = {"instance": range(self.instances)}
            tables.append(rows(index, columns).assign(tau=tau, floor=self.floor))
        return pd.concat(tables, ignore_index=True)

    def _alone(self, x: Tensor, y: Tensor, a: Tensor, b: Tensor, target: Tensor, m: int) -> float:
        scores = block_kernel(x, y, a, b, a.unsqueeze(-1) * b, m, min(self.taus), self.floor)
        return coupling_w1(sinkhorn(scores, a, b, tol=1e-8, max_iterations=self.iterations).plan, target, x, y)


# Claims: SK-7 and SK-9: the universal approximator, rebuilt from blocks. Written before the run.


def exponent(column: str = "w1") -> measure.Measure:
    """e in mean W_1 ~ M^-e from the coarsest blocks to the finest, the least over the targets."""

    def least(rows: pd.DataFrame) -> Estimate:
        means = rows.dropna(subset=[column]).groupby(["target", "m"])[column].mean().unstack("m")
        few, many = means.columns.min(), means.columns.max()
        return measure.smallest("e")(pd.DataFrame({"e": np.log(means[few] / means[many]) / np.log(many / few)}))

    return least


FALL = computed(
    "SK-7.b",
    r"From $M=2$ to $M=16$ the distance from the target falls like $M^{-e}$ with $e$ at least $\frac34$, for every target tried.",
    Blocks,
    exponent(),
    r"$e$ by the mean $W_1$ at $M=2$ over that at $M=16$, the least of three targets",
    at_least(0.75),
    unit="exponent",
    where="the bound falls like $1/M$, but for its floor; the exponent is that between two sizes, no power law: the steps between fall unevenly, and texts have 16 tokens",
    horizon="$M=16$, not tried further",
    control=exponent("alone"),
)

CLAIMS = (
    on_page(
        "SK-7.a",
        plain="Every continuous rule that couples two texts is approximated, however well, by normalising the rows and columns of one table of scores, which continuous maps compute.",
        source="paper",
        where="abstract of v1 and v3; bound and proof ours; that a transformer can compute the scores is cited (Furuya et al. 2025), not proved here",
    ),
    on_page(
        "SK-9.a",
        plain="Every continuous rule that gives each token a distribution over its context is approximated, however well, by normalising the rows of one table of scores, which continuous maps compute.",
        source="paper",
        where="abstract of v3; bound and proof ours; that a transformer can compute the scores is cited (Furuya et al. 2025), not proved here",
    ),
    FALL,
)
EXPERIMENTS = (Blocks,)


# Explorer: a target in the shape of an X, rebuilt from M cells a side.


def rebuilt(n: int = 20, cells: tuple[int, ...] = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)) -> go.Figure:
    """One slider, the number of cells: the crossed relation, its construction, and W_1 against the bound."""
    x = (torch.arange(n, dtype=torch.float64) + 0.5) / n
    a = torch.full_like(x, 1 / n)
    target = crossed(x, x, a, a)
    drawn = {}
    for m in cells:
        plan = sinkhorn(block_kernel(x, x, a, a, target, m), tol=1e-6, max_iterations=2000).plan
        numbers = [round(coupling_w1(plan, target, x, x), 4), round(min(block_bound(m, 1e-6, 1e-3), 2**0.5), 4)]
        drawn[(m,)] = (plan * n * n).numpy().round(3), numbers, [f"{each:.3f}" for each in numbers]
    panels, titles = [[{}, {}], [{"colspan": 2}, None]], ["target", "rebuilt: the more blocks, the nearer"]
    figure = make_subplots(2, 2, specs=panels, row_heights=[0.72, 0.28], subplot_titles=titles)
    scale = {"zmin": 0, "zmax": float(target.max()) * n * n / 2, "showscale": False}
    figure.add_trace(go.Heatmap(z=(target * n * n).numpy().round(3), colorscale="Viridis", **scale), 1, 1)
    alt = (
        f"Left the target, an X of {n} tokens a side; right what scores from M cells make of it. Its distance from the "
        f"target falls from {drawn[min(drawn)][2][0]} with one cell to {drawn[max(drawn)][2][0]} with {max(cells)}."
    )
    figure.update_layout(height=480, margin_t=30, meta={"alt": alt})
    figure.update_xaxes(title_text="token of the second text", row=1)
    figure.update_yaxes(title_text="token of the first text", row=1, col=1)
    figure.update_xaxes(range=[0, 1.7], row=2, col=1)
    return map_and_bars(figure, (1, 2), drawn, ["distance", "bound"], "M = ", (4,), **scale)
