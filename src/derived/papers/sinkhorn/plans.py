"""The explorer's plans: the same points at every temperature."""

from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

import matplotlib.pyplot as plt
import pandas as pd
import torch
from matplotlib.figure import Figure
from scipy import optimize

from derived.lab.claims import on_page
from derived.lab.experiment import Experiment, rows
from derived.lab.plot import BLUE, SEQUENTIAL, THEORY, panel_label
from derived.lab.rng import stream

from .model.plan import iterates, problem


@dataclass(frozen=True, kw_only=True)
class PlanGrid(Experiment):
    """The explorer: n points against n on half the line, each in a cell of its own, over a sweep of temperatures.

    The two texts do not lie on top of each other, so that softmax alone is no assignment however cold it is.

    Rows: epsilon, i, j, x, y, P; of the plan, the same in all its rows: cost, assignment, entropy, residual and
    iterations (the first with a column error of at most ``tol``, or all that were run).
    """

    n: int = 12
    points: int = 29
    tol: float = 1e-3
    iterations: int = 4000

    tiny: ClassVar = {"n": 5, "points": 4, "iterations": 200}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        noise = torch.rand(2, self.n, generator=stream(seed, "grid"), dtype=torch.float64)
        x, y = (torch.arange(self.n) + 0.5 + 0.25 * noise) / self.n
        y = y / 2
        cost, epsilon = (x.unsqueeze(-1) - y).square(), torch.logspace(-3.5, 0, self.points, dtype=torch.float64)
        best = cost.numpy()[optimize.linear_sum_assignment(cost.numpy())].mean()
        scores, iterations = -cost / epsilon.view(-1, 1, 1), torch.full((self.points,), self.iterations)
        for step, found in enumerate(islice(iterates(*problem(scores, None, None)), self.iterations + 1)):
            iterations = torch.where(found.residual <= self.tol, iterations.clamp(max=step), iterations)
        plan = (scores + found.f.unsqueeze(-1) + found.g.unsqueeze(-2)).exp()
        columns = {"cost": (cost * plan).sum(dim=(-2, -1)), "entropy": torch.special.entr(plan).sum(dim=(-2, -1))}
        columns |= {"iterations": iterations, "residual": found.residual}
        columns = {name: each.view(-1, 1, 1) for name, each in columns.items()} | {"P": plan, "assignment": best}
        return rows({"epsilon": epsilon, ("i", "x"): (range(self.n), x), ("j", "y"): (range(self.n), y)}, columns)


# Claims: SK-1, SK-2, SK-4, SK-10.a, SK-19: what softmax and Sinkhorn solve, what a half-step gains, what the
# temperature does.
#
# Each is decided by the check cell of its statement on the page.

ROWS = (
    on_page(
        "SK-1",
        plain="Normalising rows and columns gives the coupling that solves entropic optimal transport.",
        source="paper",
        where="abstract and introduction",
    ),
    on_page(
        "SK-2.a",
        plain="Normalising rows alone is softmax: the same problem with half of its constraints.",
        source="paper",
        where="abstract (a natural connection); the exact statement is earlier",
    ),
    on_page("SK-2.b", source="prior", where="folklore of entropic transport"),
    on_page(
        "SK-2.c",
        where='the README of the public code of Sinkformers says it of a toy at its first weights; "whatever the scores" is ours',
    ),
    on_page("SK-4.a", source="prior", where="Altschuler, Weed and Rigollet 2017"),
    on_page(
        "SK-10.a",
        plain="The normaliser decides the kind of relation: rows alone a conditional distribution, rows and columns a coupling.",
        source="paper",
        where="abstract of v3",
    ),
    on_page("SK-19.a", source="prior", where="Peyré and Cuturi 2019"),
)


# Figures: Scores and their two normalisations: rows in, a figure with its alt text as label out.
#
# mark                 meaning
# sequential colours   an entry of a matrix, 1 where attention is even
# bars below           column sums; the line is 1


def three_matrices(rows: pd.DataFrame) -> Figure:
    """Matrices side by side, each above the sums of its columns over their number; rows: matrix, i, j, value."""
    names = list(dict.fromkeys(rows["matrix"]))
    sizes = {"height_ratios": [3, 1], "hspace": 0.08}
    figure, axes = plt.subplots(2, len(names), figsize=(7.4, 3.6), sharex=True, sharey="row", gridspec_kw=sizes)
    high, words = rows["value"].quantile(0.97), []
    for (top, below), name in zip(axes.T, names, strict=True):
        table = rows[rows["matrix"] == name].pivot(index="i", columns="j", values="value")
        mesh = top.imshow(table, cmap=SEQUENTIAL, vmin=0, vmax=high, aspect="auto")
        sums = table.sum(axis=0) / len(table)
        below.bar(table.columns, sums, 0.75, color=BLUE)
        below.axhline(1.0, **THEORY)
        top.set(xticks=[], yticks=[])
        below.set(xlabel="token $j$", xticks=table.columns, xticklabels=[str(j + 1) for j in table.columns])
        panel_label(top, name)
        words.append(f"{name.replace('$', '')}: {sums.min():.2f} to {sums.max():.2f}")
    axes[0, 0].set(ylabel="token $i$")
    axes[1, 0].set(ylabel="column mean")
    figure.colorbar(mesh, ax=axes[0].tolist(), label="entry", extend="max", aspect=12)
    figure.set_label(f"Three matrices from the same scores, and the means of their columns: {'; '.join(words)}.")
    return figure
