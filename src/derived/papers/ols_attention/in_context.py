"""Random tasks with labels in the tokens: the best fixed layer, computed, fitted and trained (OLS-11, OLS-12).

symbol    name          meaning                                              axes
Gamma     Gamma         in-context predictor x~^T Gamma (1/N) sum_i x_i y_i  (*batch, p, p)
Lambda    Lambda        covariance of the features of the tasks              (p, p)
N         N             context points of a task                             scalar

risk is the expected squared error at the query, optimal_risk that of the best fixed layer Gamma*, exactly.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.linalg import matrix_norm as norm

from derived.lab import measure
from derived.lab.checks import check_choice, check_count
from derived.lab.claims import Claim, at_least, at_most, reported, statistic, within
from derived.lab.experiment import Experiment, rows
from derived.lab.measure import Measure, farthest_from
from derived.lab.rng import stream
from derived.lab.stats import Estimate
from derived.lab.training import train

from .data.problems import Tasks, random_tasks, spectrum
from .model import theory
from .model.mechanism import linear_attention
from .model.theory import check_covariance

BALANCED = 0.3  # both factors of a balanced start


def context_moment(tasks: Tasks) -> Float[Tensor, "*batch p"]:
    """(1/N) sum_i x_i y_i, all that the best fixed layer reads of its context."""
    return (tasks.X.mT @ tasks.y.unsqueeze(-1)).squeeze(-1) / tasks.X.shape[-2]


def regress_linear_attention(tasks: Tasks) -> Float[Tensor, "*batch p p"]:
    """The Gamma that fits y~ = x~^T Gamma (1/N) sum_i x_i y_i best over a set of tasks: least squares in p^2 unknowns.

    Shapes: the last batch axis of ``tasks`` is the set, earlier ones are independent sets. Raises ValueError for fewer
    than p^2 tasks. [ours]
    """
    p = tasks.X.shape[-1]
    if tasks.X.ndim < 3 or tasks.X.shape[-3] < p * p:
        raise ValueError(f"tasks of shape {tuple(tasks.X.shape)} leave Gamma undetermined; give at least {p * p} tasks")
    features = (tasks.x_query.unsqueeze(-1) * context_moment(tasks).unsqueeze(-2)).flatten(-2)
    return torch.linalg.lstsq(features, tasks.y_query.unsqueeze(-1)).solution.unflatten(-2, (p, p)).squeeze(-1)


class LinearAttentionTraining(NamedTuple):
    """A linear-attention layer trained on random tasks."""

    Gamma: Tensor  # (*batch, p, p), the part of the layer that multiplies (1/N) sum_i x_i y_i
    rest: Tensor  # (*batch,), norm of its other coefficients over that of Gamma; 0 at the optimum
    loss: Tensor  # (*batch, steps), each on the fresh tasks of its step


def train_linear_attention(
    Lambda: Float[Tensor, "p p"],
    N: int,
    *,
    num_tasks: int = 64,
    steps: int = 50_000,
    lr: float = 1e-2,
    start: Literal["random", "aligned", "balanced"] = "random",
    batch: tuple[int, ...] = (),
    generator: torch.Generator,
) -> LinearAttentionTraining:
    """Train v^T G W x~ on fresh random tasks with Adam, step size falling linearly to zero (OLS-12).

    Tokens are z_i = (x_i, y_i) and the query is (x~, 0); linear attention over the context returns
    (W_V-row v)^T (1/N sum_i z_i z_i^T) W x~ in the label's slot, with v in R^{p+1}, W in R^{(p+1) x p}. Of its
    coefficients only Gamma^T = v_y W_x + v_x W_y can help: the others multiply quadratic statistics of x or of y.
    ``batch`` holds independent runs, each with its own tasks and initial values. An "aligned" start has v_x = 0 and
    W_y = 0, which the exact gradient keeps and sampling noise does not; a "balanced" one has in addition v_y = 0.3
    and W_x = 0.3 Theta Theta^T, a random positive semidefinite matrix of norm 0.3, as the theorem of Zhang et al.
    asks. Away from it v can turn towards the leading axis of x: runs stay there, with v_x W_y serving this axis and
    v_y W_x the others.
    [prior: Ahn et al. 2023; von Oswald et al. 2023; the balanced start: Zhang, Frei and Bartlett 2024]
    """
    check_choice("start", start, ("random", "aligned", "balanced"))
    check_covariance(Lambda)
    for name, value in (("N", N), ("num_tasks", num_tasks)):
        check_count(name, value)
    p = len(Lambda)
    scale = (p + 1) ** -0.5
    shapes = (*batch, p + 1), (*batch, p + 1, p)
    v, W = (
        nn.Parameter((torch.randn(shape, generator=generator, dtype=Lambda.dtype) * scale).to(Lambda.device))
        for shape in shapes
    )
    with torch.no_grad():
        if start != "random":
            v[..., :p], W[..., p, :] = 0.0, 0.0
        if start == "balanced":
            form = W[..., :p, :] @ W[..., :p, :].mT
            v[..., p], W[..., :p, :] = BALANCED, BALANCED * form / norm(form)[..., None, None]

    def loss(step: int) -> Tensor:
        tasks = random_tasks(Lambda, N, batch=(*batch, num_tasks), generator=generator)
        z = torch.cat([tasks.X, tasks.y.unsqueeze(-1)], dim=-1)
        q = torch.einsum("...jp,...tp->...tj", W, tasks.x_query).unsqueeze(-2)
        mixed = linear_attention(q, z, z, order="state").squeeze(-2)  # z^T z / N needs no gradient
        predicted = torch.einsum("...j,...tj->...t", v, mixed)
        return (predicted - tasks.y_query).square().mean(dim=-1)

    losses = train(loss, torch.optim.Adam([v, W]), steps=steps, rate=lambda step: lr * (1 - step / steps))
    v, W = v.detach(), W.detach()
    products = v[..., :, None, None] * W.unsqueeze(-3)  # (..., p+1, p+1, p): coefficient of (1/N) z_a z_b x~_j
    symmetric = (products + products.transpose(-3, -2)) / 2  # z_a z_b is symmetric in a and b
    Gamma = 2 * symmetric[..., p, :p, :].mT
    rest = torch.cat([symmetric[..., :p, :p, :].flatten(-3), symmetric[..., p, p, :]], dim=-1)
    size = torch.linalg.vector_norm(rest, dim=-1) / torch.linalg.matrix_norm(Gamma)
    return LinearAttentionTraining(Gamma, size, losses)


@dataclass(frozen=True, kw_only=True)
class RandomTasks(Experiment):
    """OLS-11: the best fixed layer on random tasks by regression, against Gamma*, and its measured risk."""

    p: int = 5
    N: int = 20
    num_tasks: int = 16384
    replicates: int = 24

    def conditions(self) -> list[dict]:
        return [{"spectrum": name} for name in ("identity", "geometric")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        Lambda = spectrum(condition["spectrum"], self.p, dtype)
        generator = stream(seed, "random tasks", condition["spectrum"])
        best = theory.optimal_linear_attention(Lambda, self.N)
        fitted, risks = [], []
        for _ in range(self.replicates):  # one set after the other: all of them fill 400 MB
            tasks = random_tasks(Lambda, self.N, batch=(self.num_tasks,), generator=generator)
            fitted.append(regress_linear_attention(tasks))
            predicted = torch.einsum("ti,ij,tj->t", tasks.x_query, best.Gamma, context_moment(tasks))
            risks.append((predicted - tasks.y_query).square().mean())
        return rows(
            {"replicate": range(self.replicates)},
            {
                "distance": norm(torch.stack(fitted) - best.Gamma) / norm(best.Gamma),
                "endless": float(norm(Lambda.inverse() - best.Gamma) / norm(best.Gamma)),
                "risk": torch.stack(risks),
                "optimal_risk": float(best.risk),
                "risk_of_zero": float(Lambda.trace()),
            },
        )


@dataclass(frozen=True, kw_only=True)
class LearnedInContext(Experiment):
    """OLS-12: one linear-attention layer trained on fresh random tasks, its exact risk beside that of Gamma*."""

    p: int = 5
    N: int = 20
    steps: int = 20_000
    num_tasks: int = 64
    replicates: int = 80

    tiers: ClassVar = {"ci": {"steps": 300, "replicates": 8}, "cpu": {}}

    def conditions(self) -> list[dict]:
        return [
            {"spectrum": name, "start": start} for name in ("identity", "geometric") for start in ("random", "aligned")
        ]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        Lambda = spectrum(condition["spectrum"], self.p, dtype)
        generator = stream(seed, "learned in context", condition["spectrum"])
        sizes = {"num_tasks": self.num_tasks, "steps": self.steps, "batch": (self.replicates,)}
        trained = train_linear_attention(Lambda, self.N, start=condition["start"], generator=generator, **sizes)
        best = theory.optimal_linear_attention(Lambda, self.N)
        risk = theory.linear_attention_risk(trained.Gamma, Lambda, self.N)
        last = trained.loss[..., -(self.steps // 100) :]  # the last hundredth of the steps
        return rows(
            {"replicate": range(self.replicates)},
            {
                "loss": last.mean(dim=-1),  # of the whole layer
                "risk": risk,  # exact, of its Gamma alone
                "rest": trained.rest,
                "optimal_risk": float(best.risk),
            },
        )


@dataclass(frozen=True, kw_only=True)
class BalancedStart(LearnedInContext):
    """OLS-12: the same from the start of Zhang, Frei and Bartlett, whose theorem says that gradient flow arrives."""

    steps: int = 6000

    tiers: ClassVar = {"ci": {"steps": 300, "replicates": 8}, "cpu": {}}

    def conditions(self) -> list[dict]:
        return [{"spectrum": "geometric", "start": "balanced"}]


EXPERIMENTS = (RandomTasks, LearnedInContext, BalancedStart)

# Claims ---------------------------------------------------------------------------------------------------------------

ARRIVED = 0.03  # of a risk to the optimal one, relative
OWN = 0.2  # of the layer's own loss to the optimal risk; five standard deviations of a mean over the last steps
THEORY = {"source": "prior", "where": "Ahn et al. 2023; Zhang, Frei and Bartlett 2024"}


def of_both_spectra(value: str) -> Measure:
    """The mean at the spectrum where it lies farther from 1; the interval of each is taken by itself."""
    spectra = [measure.mean(value, f"spectrum == '{name}'") for name in ("identity", "geometric")]

    def one(rows: pd.DataFrame) -> Estimate:
        return farthest_from(1.0)([spectrum(rows) for spectrum in spectra])

    return one


TRACE = {"identity": 5.0, "geometric": 7.75}  # tr Lambda at p = 5, the risk of a layer of zeros


def arrives(spectrum: str, start: str, risk: str = "risk", loss: str = "loss") -> Measure:
    """The share of replicates whose Gamma has the optimal risk, and whose whole layer about that loss."""
    return measure.share(
        f"abs({risk} / optimal_risk - 1) < {ARRIVED} and abs({loss} / optimal_risk - 1) < {OWN}",
        f"spectrum == '{spectrum}' and start == '{start}'",
    )


def trained(
    id: str, spectrum: str, start: str, covariance: str, experiment: type[LearnedInContext], **facts: str
) -> Claim:
    """What training on random tasks of one spectrum, from one kind of start, comes to."""
    return statistic(
        id,
        rf"Trained on random tasks ({covariance}, {start} start), one linear-attention layer comes to the risk of "
        r"the best fixed layer $\Gamma^\star$, not to that of least squares.",
        experiment,
        arrives(spectrum, start),
        rf"share of replicates whose $\Gamma$ has a risk within ${100 * ARRIVED:g}$ % of that of $\Gamma^\star$, and "
        rf"whose whole layer a loss within ${100 * OWN:g}$ % of it over the last steps (least squares: 0)",
        at_least(0.9),
        control=arrives(spectrum, start, *[f"{TRACE[spectrum]}"] * 2),  # a layer of zeros
        unit="share of replicates",
        judged_at=("cpu",),
        **facts,
    )


CLAIMS = (
    statistic(
        "OLS-11.c",
        r"With labels without noise in the tokens the best fixed layer on random Gaussian tasks is "
        r"$\Gamma^\star=[(1+\frac1N)\Lambda+\frac{\operatorname{tr}\Lambda}NI]^{-1}$.",
        RandomTasks,
        measure.mean("distance", by=["spectrum"], decides=measure.highest),
        r"$\|\hat\Gamma-\Gamma^\star\|_F/\|\Gamma^\star\|_F$ of the layer fitted to 16,384 tasks, both spectra jointly",
        at_most(0.1),
        control=measure.mean(
            "endless", by=["spectrum"], decides=measure.highest
        ),  # the best layer of an endless context
        unit="of Γ*",
        **THEORY,
    ),
    statistic(
        "OLS-11.d",
        r"The risk of the layer $\Gamma^\star$ itself on random Gaussian tasks without noise is "
        r"$\operatorname{tr}\Lambda-\operatorname{tr}(\Lambda\Gamma^\star\Lambda)>0$, while least squares has risk 0 "
        r"there for $N\ge p$.",
        RandomTasks,
        of_both_spectra("risk / optimal_risk"),
        "measured over exact at both spectra",
        within(1, 0.05),
        control=of_both_spectra("risk_of_zero / optimal_risk"),
        unit="of the exact risk",
        **THEORY,
    ),
    trained(
        *("OLS-12.a", "identity", "random", r"$\Lambda=I$", LearnedInContext),
        source="prior",
        where="von Oswald et al. 2023; Ahn et al. 2023",
    ),
    reported(
        "OLS-12.b",
        r"Of random starts on tasks with unequal variances (eigenvalues from $\frac14$ to 4), this share comes to the "
        r"risk of the best fixed layer; the others end in a worse one.",
        LearnedInContext,
        arrives("geometric", "random"),
        "share of replicates",
        criterion=r"share of replicates, by the same two numbers as OLS-12.a; nothing passes or fails",
        judged_at=("cpu",),
    ),
    trained(
        *("OLS-12.c", "geometric", "balanced", r"$\Lambda$ geometric", BalancedStart),
        source="prior",
        where="Zhang, Frei and Bartlett 2024, for gradient flow; their start",
    ),
)
