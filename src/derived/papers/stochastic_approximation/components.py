"""Which limit an iterate finds: components, absorbing classes, the remote past (SA-1, SA-2, SA-3).

symbol     name       meaning                                                           axes
x_n        x          iterate at the last step, or at the step n of the row             (R,)
x*_k       root       root of the mean field of the replicate's component               (R,)
q_k        predicted  probability of that component                                     (R,)
"""

from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

from derived.lab import measure, stats
from derived.lab.claims import at_least, at_most, on_page, statistic, within
from derived.lab.experiment import Experiment, rows
from derived.lab.measure import farthest_from, highest, lowest
from derived.lab.plot import COLOURS, DASHED, INK, THEORY, beside, largest, panel_label, plain_log
from derived.lab.rng import stream
from derived.lab.stats import LEVEL, Estimate

from .data.environments import AbsorbingChain, MarkovMixture, Mixture
from .model.chains import absorption_probabilities, invariant_laws, kl_rate
from .model.core import StepSize, record_times, robbins_monro
from .model.linear import coupled_worlds
from .model.theory import mean_field_root

#: Two transient states, then classes {2, 3}, {4} and {5, 6, 7}.
CHAIN = (
    (0.2, 0.3, 0.2, 0.0, 0.1, 0.2, 0.0, 0.0),
    (0.3, 0.1, 0.1, 0.1, 0.2, 0.0, 0.2, 0.0),
    (0.0, 0.0, 0.6, 0.4, 0.0, 0.0, 0.0, 0.0),
    (0.0, 0.0, 0.3, 0.7, 0.0, 0.0, 0.0, 0.0),
    (0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0),
    (0.0, 0.0, 0.0, 0.0, 0.0, 0.1, 0.9, 0.0),
    (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.2, 0.8),
    (0.0, 0.0, 0.0, 0.0, 0.0, 0.7, 0.0, 0.3),
)
VALUES = (9.0, -9.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0)
#: Two chains on {0, 1} with the same marginal.
STICKY, FAIR = ((0.8, 0.2), (0.2, 0.8)), ((0.5, 0.5), (0.5, 0.5))
EQUAL = (STICKY[0][0], FAIR[0][0])  # how probable it is that neighbours are equal


def to_data(x: Tensor, y: Tensor) -> Tensor:
    """h(x, y) = y - x: at a_n = 1/n the running mean."""
    return y - x


@dataclass(frozen=True, kw_only=True)
class Absorbed(Experiment):
    """SA-1: running means on one chain with three closed classes. Rows: replicate, component, predicted, x, root."""

    replicas: int = 6000
    steps: int = 2000

    tiny: ClassVar = {"replicas": 200, "steps": 200}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        y, component = AbsorbingChain(CHAIN, 0, VALUES).draw(self.steps, self.replicas, stream(seed, "absorbed anew"))
        x = robbins_monro(to_data, y.to(device), StepSize.power(), y[0].to(device)).x[-1]
        P = np.asarray(CHAIN)
        chosen = component.numpy()
        predicted, root = absorption_probabilities(P)[0][chosen], (invariant_laws(P) @ np.asarray(VALUES))[chosen]
        columns = {"component": chosen, "predicted": predicted, "x": x, "root": root}
        return rows({"replicate": range(self.replicas)}, columns)


@dataclass(frozen=True, kw_only=True)
class Mixtures(Experiment):
    """SA-2: h = b - A x with A = (2, 1/2), b = (1, 2) plus noise, weights (.3, .7), at 2 / (n + 4), fed in four ways.

    feed "one": a replicate keeps its component; "many": a fresh component each step; "shuffled": each replicate's own
    samples in random order; "exchanged": at each time the replicates' samples change hands at random. Rows: feed,
    replicate, component, n, x, root (of its component), annealed (of the mixture; of the weights that were drawn,
    where samples change hands). All four share samples.
    """

    replicas: int = 1000
    steps: int = 4000
    points: int = 24
    paths: int = 200  # replicates whose whole path is kept; of the others the last step
    A: tuple[float, float] = (2.0, 0.5)
    b: tuple[float, float] = (1.0, 2.0)
    weights: tuple[float, float] = (0.3, 0.7)
    noise: float = 0.5

    tiny: ClassVar = {"replicas": 60, "steps": 400, "paths": 5}

    def conditions(self) -> list[dict]:
        return [{"feed": feed} for feed in ("one", "many", "shuffled", "exchanged")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        A, y, component = self.samples(condition["feed"], seed)
        fed = torch.stack([A, y], dim=-1).to(device)
        times = record_times(self.steps, self.points)
        start = torch.full((self.replicas,), 3.0, dtype=dtype, device=device)
        step = StepSize.power(2.0, n0=4.0)
        x = robbins_monro(lambda x, y: y[..., 1] - y[..., 0] * x, fed, step, start, record=times).x
        weights = self.weights
        if condition["feed"] == "exchanged":
            weights = np.bincount(component.numpy(), minlength=2) / self.replicas
        annealed = mean_field_root(self.A, self.b, weights)
        columns = {"component": component.numpy(), "root": mean_field_root(self.A, self.b)[component.numpy()]}
        table = rows({"n": times, "replicate": range(self.replicas)}, {**columns, "x": x, "annealed": annealed})
        return table[(table["replicate"] < self.paths) | (table["n"] == self.steps)].reset_index(drop=True)

    def samples(self, feed: str, seed: int) -> tuple[Tensor, Tensor, Tensor]:
        """A and b + noise, (N, R) each, and the component of each replicate."""
        around = Mixture(self.b, (self.noise, self.noise), self.weights)
        y, component = around.draw(self.steps, self.replicas, stream(seed, "mixtures"))
        A, b = torch.tensor(self.A, dtype=torch.float64), torch.tensor(self.b, dtype=torch.float64)
        order = stream(seed, "order", feed)
        kept = component.expand(self.steps, -1)
        if feed == "many":
            heads = torch.rand(self.steps, self.replicas, generator=order, dtype=torch.float64)
            fresh = (heads >= self.weights[0]).long()
            return A[fresh], y - b[kept] + b[fresh], component
        if feed in ("shuffled", "exchanged"):
            keys = torch.rand(self.steps, self.replicas, generator=order)
            places = keys.argsort(dim=0 if feed == "shuffled" else 1)
            dim = 0 if feed == "shuffled" else 1
            return A[kept].gather(dim, places), y.gather(dim, places), component
        return A[kept], y, component


@dataclass(frozen=True, kw_only=True)
class Worlds(Experiment):
    """SA-2: two worlds whose learners converge, and the learner of both. h = b - A_k x with A_1 = [[1, -c], [0, 1]],
    A_2 its transpose and b = (1, 1), at 1/n, from starts in [1, 5]^2. Learners: "first", "second", and "both", which
    meets a fair fresh world at each step; c = 4, and for "both" the control c = 1, whose mean slope is stable. Rows: c,
    learner, replicate, n, x1, x2, root1, root2 (of the learner's own world; of the mean field).
    """

    replicas: int = 200
    steps: int = 2**15
    points: int = 16

    tiny: ClassVar = {"replicas": 5, "steps": 256}
    deterministic: ClassVar = {"root1": 1e-12, "root2": 1e-12}

    def conditions(self) -> list[dict]:
        cases = ((4.0, "first"), (4.0, "second"), (4.0, "both"), (1.0, "both"))
        return [{"c": c, "learner": learner} for c, learner in cases]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        A, b = coupled_worlds(condition["c"]).to(device, dtype), torch.ones(2, dtype=dtype, device=device)
        start = 1 + 4 * torch.rand(self.replicas, 2, generator=stream(seed, "starts"), dtype=dtype)
        fresh = torch.randint(2, (self.steps, self.replicas), generator=stream(seed, "worlds"))
        worlds = {"first": torch.zeros_like(fresh), "second": torch.ones_like(fresh), "both": fresh}
        mean = {"first": A[0], "second": A[1], "both": A.mean(dim=0)}[condition["learner"]]

        def field(x: Tensor, k: Tensor) -> Tensor:
            return b - (A[k.long()] @ x.unsqueeze(-1)).squeeze(dim=-1)

        times, heard = record_times(self.steps, self.points), worlds[condition["learner"]].to(device, dtype)
        x = robbins_monro(field, heard, StepSize.power(), start.to(device), record=times).x
        root = torch.linalg.solve(mean, b)
        columns = {"x1": x[..., 0], "x2": x[..., 1], "root1": root[0], "root2": root[1]}
        return rows({"n": times, "replicate": range(self.replicas)}, columns)


@dataclass(frozen=True, kw_only=True)
class EarlyData(Experiment):
    """SA-3: what data before a gap say of the limit that data after it lead to. Two chains on {0, 1} with one law of a
    token; a learner averages whether neighbours are equal, which they are with probability 0.8 or 0.5, independently.

    feed "one": a replicate keeps its chain; "switching": it is drawn anew with probability epsilon at each step, so
    that the stream is ergodic; "many": at every step. Rows: feed, gap, replicate, named (the root nearer to the early
    mean), x (running mean of the late data), agrees (x is nearer to the named root).
    """

    replicas: int = 4000
    early: int = 100
    gaps: tuple[int, ...] = (200, 2000, 20_000)
    late: int = 700
    epsilon: float = 1e-3

    tiny: ClassVar = {"replicas": 400}

    def conditions(self) -> list[dict]:
        return [{"feed": feed} for feed in ("one", "switching", "many")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        epsilon = {"one": 0.0, "switching": self.epsilon, "many": 1.0}[condition["feed"]]
        generator, half = stream(seed, "early", condition["feed"]), sum(EQUAL) / 2
        equal, last = self.neighbours(
            torch.randint(2, (self.replicas,), generator=generator), self.early, epsilon, generator
        )
        named, found = equal.mean(dim=0) > half, []
        for gap in self.gaps:
            kept = torch.rand(self.replicas, generator=generator) < (1 - epsilon) ** gap
            chain = torch.where(kept, last, torch.randint(2, last.shape, generator=generator))
            late = self.neighbours(chain, self.late, epsilon, generator)[0].to(device, dtype)
            found.append(robbins_monro(to_data, late, StepSize.power(), torch.zeros_like(late[0])).x[-1].cpu())
        x = torch.stack(found)
        columns = {"named": torch.where(named, *EQUAL), "x": x, "agrees": (x > half) == named}
        return rows({"gap": self.gaps, "replicate": range(self.replicas)}, columns)

    def neighbours(
        self, chain: Tensor, steps: int, epsilon: float, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Whether neighbours are equal, (N, R), and the chains at the end, from those before the first step."""
        place = torch.arange(steps).unsqueeze(-1)
        fresh = torch.rand(steps, len(chain), generator=generator) < epsilon
        drawn = torch.randint(2, fresh.shape, generator=generator)
        since = torch.where(fresh, place, -1).cummax(dim=0).values  # the last step at which the chain was drawn
        heard = torch.where(since < 0, chain, drawn.gather(0, since.clamp(min=0)))
        chance = torch.tensor(EQUAL, dtype=torch.float64)[heard]
        return (torch.rand(fresh.shape, generator=generator, dtype=torch.float64) < chance).double(), heard[-1]


@dataclass(frozen=True, kw_only=True)
class LogOdds(Experiment):
    """SA-3: two chains with the same marginal; log-odds of the true one. Rows: replicate, component, rate (per step),
    kl (the rate of Kullback and Leibler), ratio."""

    replicas: int = 2000
    steps: int = 1000

    tiny: ClassVar = {"replicas": 100, "steps": 300}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        drawn = MarkovMixture((STICKY, FAIR), (0.5, 0.5)).draw(self.steps + 1, self.replicas, stream(seed, "odds"))
        y, component = drawn.y.to(device).long(), drawn.component.to(device)
        chains = torch.tensor((STICKY, FAIR), dtype=dtype, device=device)
        log = chains.log()[:, y[:-1], y[1:]].sum(dim=1)  # (chains, R)
        own, other = log.gather(0, component[None])[0], log.gather(0, 1 - component[None])[0]
        A, B = np.asarray(STICKY), np.asarray(FAIR)
        kl = np.asarray([kl_rate(A, B), kl_rate(B, A)])[drawn.component.numpy()]
        rate = (own - other).cpu().numpy() / self.steps
        columns = {"component": drawn.component, "rate": rate, "kl": kl, "ratio": rate / kl}
        return rows({"replicate": range(self.replicas)}, columns)


# Claims: SA-1, SA-2, SA-3 and SA-12: which limit is found. Criteria and expected verdicts were written before the run,
# unless a claim says otherwise.

DIGEST = {"source": "digest"}
END = "n == n.max() and feed == '{}'"


def frequencies(rows: pd.DataFrame) -> Estimate:
    """Share of a class less its absorption probability, for the class whose interval reaches farthest from 0.

    ValueError for a replica without a class, or a class without its probability.
    """
    cases = [case for _, case in measure.by_draw(rows["predicted"], rows, ["component"])]
    level, found = 1 - (1 - LEVEL) / len(cases), []
    for case in cases:
        one, predicted = stats.proportion(len(case), len(rows), level), case.iloc[0]
        ends = (one.value - predicted, one.n, one.low - predicted, one.high - predicted, one.error)
        found.append(Estimate(*ends))
    return farthest_from(0)(found)


def wrong_way(rows: pd.DataFrame) -> Estimate:
    """The log-odds per token over the divergence of the other chain from the true one, the farther of two chains."""
    kl = rows.groupby("component")["kl"].first()
    some = rows.assign(ratio=rows["rate"] / (1 - rows["component"]).map(kl))
    return measure.mean("ratio", by=["component"], decides=farthest_from(1))(some)


COMPONENTS = (
    on_page(
        "SA-1.a",
        source="digest",
        where="digest: Doeblin decomposition of the chain of pasts; that theorem is proved on the page, this row is its finite mirror image",
        plain="The components of the data are the sets of pasts that can never be left (checked where there are finitely many).",
    ),
    statistic(
        "SA-1.c",
        r"Running means on a chain with three closed classes settle in each of them with its absorption probability.",
        Absorbed,
        frequencies,
        "share of replicas less the probability, of three classes judged jointly",
        within(0, 0.05),
        unit="share",
        control=lambda rows: frequencies(rows.assign(predicted=1 / rows["component"].nunique())),
    ),
    statistic(
        "SA-2.a",
        r"On one stream, with steps of order $1/n$ and one stable root in each component, iterates converge to the root of the component that was drawn.",
        Mixtures,
        measure.mean("abs(x - root)", END.format("one"), by=["component"], decides=highest),
        r"mean $\lvert x_n-x^*_k\rvert$ at the last step, the farther component",
        at_most(0.05),
        unit="distance; the roots are 3.5 apart",
        **DIGEST,
        where="digest: non-ergodicity shows in the limit ODE; that it is the average over the component drawn is our reading",
        plain="A single stream takes the iterate to the equilibrium of its own component: the limit is random.",
        control=measure.mean("abs(x - root)", END.format("many"), by=["component"], decides=highest),
        horizon="$n=4{,}000$",
    ),
    statistic(
        "SA-2.b",
        r"On many streams, a fresh component at each step, iterates converge to the root of the mixture's mean field.",
        Mixtures,
        measure.mean("abs(x - annealed)", END.format("many")),
        r"mean distance to $\sum w_kb_k/\sum w_kA_k$ at the last step",
        at_most(0.05),
        unit="distance; the roots are 3.5 apart",
        control=measure.mean("abs(x - annealed)", END.format("one")),
        horizon="$n=4{,}000$",
    ),
    on_page("SA-2.d"),
    on_page(
        "SA-2.f",
        horizon="$n=2^{15}$",
    ),
    statistic(
        "SA-2.e",
        r"Streams that exchange their samples at each time, at random, all go to the limit of many streams.",
        Mixtures,
        measure.mean("abs(x - annealed)", END.format("exchanged")),
        "mean distance to the root of the mixture at the weights that were drawn",
        at_most(0.05),
        unit="distance; the roots are 3.5 apart",
        control=measure.mean("abs(x - annealed)", END.format("shuffled")),
        horizon="$n=4{,}000$",
    ),
)

REMOTE = (
    statistic(
        "SA-3.a",
        r"The limit can be told from the remote past: data before a gap of $200$, $2{,}000$ or $20{,}000$ steps name the root to which the data after it lead, in a world of two chains that have the same law of a single datum.",
        EarlyData,
        measure.share("agrees", "feed == 'one'", by=["gap"], decides=lowest),
        "share of streams whose late iterate is nearer to the root that early data name, the least of three gaps",
        at_least(0.99),
        unit="share",
        **DIGEST,
        where="digest: randomness from the tail at minus infinity",
        plain="Which limit is found was settled in the remote past.",
        control=measure.share("agrees", "feed == 'switching'", by=["gap"], decides=lowest),
        horizon="a gap of $20{,}000$ steps where the chain switches; where it is kept no gap is simulated, since none can matter",
    ),
    on_page("SA-3.b"),
    statistic(
        "SA-3.d",
        r"The log-odds of the true chain among two of equal marginals grow by the rate $\sum_i\pi_i\sum_jA_{ij}\ln(A_{ij}/B_{ij})$ per token.",
        LogOdds,
        measure.mean("ratio", by=["component"], decides=farthest_from(1)),
        "log-odds per token over the rate, the farther of two chains",
        within(1, 0.03),
        unit="ratio",
        control=wrong_way,
        horizon="$1{,}000$ tokens",
    ),
)

INCLUSION = on_page("SA-12", horizon="$n=2^{16}$")


# Figures: Which limit a learner finds: rows in, a figure with its alt text as label out.
#
# mark               meaning
# blue, orange       components
# grey dashed        root of the mean field of the mixture

SHOWN = 100  # paths in a panel


def fan(rows: pd.DataFrame) -> Figure:
    """Paths of learners, each with its own stream and with the data dealt anew; rows of ``Mixtures``."""
    rows = largest(rows)
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.4), sharex=True, sharey=True)
    names = {"one": "each keeps its stream", "exchanged": "data dealt anew at each time"}
    annealed = rows.loc[rows["feed"] == "many", "annealed"].iloc[0]
    words = []
    for ax, (feed, name) in zip(axes, names.items(), strict=True):
        part = rows[(rows["feed"] == feed) & (rows["replicate"] < SHOWN)]
        for _, path in part.groupby("replicate"):
            ax.plot(path["n"], path["x"], color=COLOURS[path["component"].iloc[0]], linewidth=0.5, alpha=0.45)
        for root in sorted(rows["root"].unique()):
            ax.axhline(root, **THEORY)
        ax.axhline(annealed, **DASHED)
        ends = rows[(rows["feed"] == feed) & (rows["n"] == rows["n"].max())].groupby("component")["x"].mean()
        words.append(f"{name}: " + " and ".join(f"{end:.2f}" for end in ends))
        panel_label(ax, name)
        ax.set(xscale="log", xlabel="$n$")
    axes[0].set_ylabel("$x_n$")
    for k, root in rows.groupby("component")["root"].first().items():
        beside(axes[0], rows["n"].max(), root, f"world {k + 1}", COLOURS[k], (-4, 6), ha="right")
    beside(axes[0], 1, annealed, "mean field", INK, (2, 5), fontsize=8)
    plain_log(axes[0].xaxis, [10**k for k in range(5) if 10**k <= rows["n"].max()])
    figure.set_label(
        f"Paths of learners against time, by world. Mean ends of the two worlds: {'; '.join(words)}. The root of the "
        f"mean field is {annealed:.2f}; with streams of their own nobody goes there, with dealt data all do."
    )
    return figure


def worlds_apart(rows: pd.DataFrame) -> Figure:
    """Learners of one world each, and of both; rows of ``Worlds``."""
    rows = largest(rows).query("c == c.max()")
    rows = rows.assign(total=rows["x1"] + rows["x2"])
    figure, ax = plt.subplots(figsize=(5.6, 3.4))
    names = {"first": ("world 1 alone", COLOURS[0]), "second": ("world 2 alone", COLOURS[1]), "both": ("both", INK)}
    ends = {}
    for learner, (name, color) in names.items():
        part = rows[(rows["learner"] == learner) & (rows["replicate"] < SHOWN // 4)]
        for _, path in part.groupby("replicate"):
            ax.plot(path["n"], path["total"], color=color, linewidth=0.6, alpha=0.5)
        last = part[part["n"] == part["n"].max()]
        ends[name] = last["total"].median()
        shift = (-4, 6 if learner != "second" else -9)
        beside(ax, last["n"].iloc[0], last["total"].max(), name, color, shift, ha="right")
    floor = min(ends.values()) / 3  # room for the words below the lowest path
    ax.set(xscale="log", yscale="log", xlabel="$n$", ylabel="sum of the coordinates of $x_n$", ylim=(floor, None))
    told = ", ".join(f"{name} {end:.3g}" for name, end in ends.items())
    figure.set_label(f"Sum of the coordinates of learners against time; medians at the end: {told}.")
    return figure
