"""Which limit a learner finds: one world or many, early data and late data (SA-1, SA-2, SA-3).

symbol     name       meaning                                                                 axes
x_n        x          iterate at the last step, or at the step n of the row                   (R,)
k          world      the world that a learner's stream is from                               (R,)
x*_k       root       root of the mean field of that world                                    (R,)
-          annealed   root of the mean field of the mixture                                   number
"""

from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

from derived.lab import measure
from derived.lab.claims import at_most, on_page, statistic
from derived.lab.experiment import Experiment, rows
from derived.lab.measure import highest
from derived.lab.plot import COLOURS, DASHED, INK, MUTED, THEORY, beside, largest, panel_label, plain_log
from derived.lab.rng import stream

from .data import Coins, Mixture
from .model.core import StepSize, record_times, robbins_monro
from .model.theory import agreement, coupled_worlds, mean_field_root

SHOWN = 100  # paths in a panel


def to_data(x: Tensor, y: Tensor) -> Tensor:
    """h(x, y) = y - x: at a_n = 1/n the running mean."""
    return y - x


@dataclass(frozen=True, kw_only=True)
class Mixtures(Experiment):
    """SA-2: h = b - A x with A = (2, 1/2), b = (1, 2) plus noise, weights (.3, .7), at 2 / (n + 4).

    feed "one": a learner keeps its world; "many": a fresh world at each step. Rows: feed, replicate, world, n, x, root
    (of the learner's own world), annealed. Both share the noise.
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
        return [{"feed": feed} for feed in ("one", "many")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        around = Mixture(self.b, (self.noise, self.noise), self.weights)
        y, own = around.draw(self.steps, self.replicas, stream(seed, "mixtures"))
        A, b = torch.tensor(self.A, dtype=torch.float64), torch.tensor(self.b, dtype=torch.float64)
        heard = own.expand(self.steps, -1)
        if condition["feed"] == "many":
            fresh = torch.rand(self.steps, self.replicas, generator=stream(seed, "order", "many"), dtype=torch.float64)
            heard = (fresh >= self.weights[0]).long()
        fed = torch.stack([A[heard], y - b[own] + b[heard]], dim=-1).to(device)
        times, start = record_times(self.steps, self.points), torch.full((self.replicas,), 3.0, dtype=dtype)
        step = StepSize.power(2.0, n0=4.0)
        x = robbins_monro(lambda x, y: y[..., 1] - y[..., 0] * x, fed, step, start.to(device), record=times).x
        columns = {"world": own, "root": mean_field_root(self.A, self.b)[own.numpy()], "x": x}
        columns["annealed"] = mean_field_root(self.A, self.b, self.weights)
        table = rows({"n": times, "replicate": range(self.replicas)}, columns)
        return table[(table["replicate"] < self.paths) | (table["n"] == self.steps)].reset_index(drop=True)


@dataclass(frozen=True, kw_only=True)
class Worlds(Experiment):
    """SA-2: two worlds whose learners converge, and the learner of both. h = b - A_k x with A_1 = [[1, -c], [0, 1]],
    A_2 its transpose and b = (1, 1), at 1/n, from starts in [1, 5]^2. Learners: "first", "second", and "both", which
    meets a fair fresh world at each step; c = 4, and for "both" the control c = 1, whose mean slope is stable. Rows: c,
    learner, replicate, n, x1, x2, root1, root2 (of the learner's own world; of the mean field).
    """

    replicas: int = 200
    steps: int = 2**14
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
        heard = {"first": torch.zeros_like(fresh), "second": torch.ones_like(fresh), "both": fresh}
        mean = {"first": A[0], "second": A[1], "both": A.mean(dim=0)}[condition["learner"]]

        def field(x: Tensor, coupling: Tensor) -> Tensor:
            return b - (x - coupling * x.flip(-1))  # b - A_k x

        couplings = (torch.eye(2, dtype=dtype, device=device) - A).sum(dim=-1)  # of each world, c or 0 by coordinate
        times, data = record_times(self.steps, self.points), couplings[heard[condition["learner"]].to(device)]
        x = robbins_monro(field, data, StepSize.power(), start.to(device), record=times).x
        root = torch.linalg.solve(mean, b)
        columns = {"x1": x[..., 0], "x2": x[..., 1], "root1": root[0], "root2": root[1]}
        return rows({"n": times, "replicate": range(self.replicas)}, columns)


@dataclass(frozen=True, kw_only=True)
class EarlyData(Experiment):
    """SA-3: what data before a gap say of the limit that data after it lead to. The two coins, one of them redrawn
    with probability epsilon at each step, in the gap and among the data as well; at epsilon = 0 the coin is kept.

    Rows: epsilon, gap, replicate, named (the bias nearer to the early mean), x (running mean of the late data), agrees
    (x is nearer to the bias that was named), predicted (the share that agrees, by the exact distribution).
    """

    replicas: int = 4000
    early: int = 101
    gaps: tuple[int, ...] = (0, 200, 2000, 20_000)
    late: int = 701

    tiny: ClassVar = {"replicas": 400}
    deterministic: ClassVar = {"predicted": 1e-9}

    def conditions(self) -> list[dict]:
        return [{"epsilon": epsilon} for epsilon in (0.0, 1e-3)]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        epsilon, coins = condition["epsilon"], Coins()
        generator = stream(seed, "early", epsilon)
        coin = torch.randint(2, (self.replicas,), generator=generator)
        early, coin = self.listen(coins, coin, self.early, epsilon, generator)
        named, found = early.mean(dim=0) > 0.5, []
        for gap in self.gaps:
            kept = torch.rand(self.replicas, generator=generator) < (1 - epsilon) ** gap
            after = torch.where(kept, coin, torch.randint(2, coin.shape, generator=generator))
            late = self.listen(coins, after, self.late, epsilon, generator)[0].to(device, dtype)
            found.append(robbins_monro(to_data, late, StepSize.power(), torch.zeros_like(late[0])).x[-1].cpu())
        x = torch.stack(found)
        exact = np.array([[agreement(self.early, gap, self.late, epsilon)] for gap in self.gaps])
        columns = {"named": torch.where(named, *coins.biases), "x": x, "agrees": (x > 0.5) == named, "predicted": exact}
        return rows({"gap": self.gaps, "replicate": range(self.replicas)}, columns)

    def listen(
        self, coins: Coins, coin: Tensor, steps: int, epsilon: float, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Tosses (N, R) of coins that change, and the coins at the end, from those before the first step."""
        place = torch.arange(steps).unsqueeze(-1)
        redrawn = torch.rand(steps, len(coin), generator=generator) < epsilon
        drawn = torch.randint(2, redrawn.shape, generator=generator)
        heard = coin.expand(steps, -1)
        if epsilon:
            since = torch.where(redrawn, place, -1).cummax(dim=0).values  # the last step at which the coin was drawn
            heard = torch.where(since < 0, coin, drawn.gather(0, since.clamp(min=0)))
        return coins.toss(heard, generator), heard[-1]


EXPERIMENTS = (Mixtures, Worlds, EarlyData)

# Claims: criteria and expected verdicts were written before the run ---------------------------------------------------

DISTANCE = {"unit": "distance; the roots are 3.5 apart", "horizon": "$n=4{,}000$"}
END = "n == n.max() and feed == '{}'"

CLAIMS = (
    on_page(
        "SA-1.a",
        source="digest",
        where="digest: Doeblin decomposition of the chain of pasts; proved on the page",
        plain="The worlds of the data are the sets of pasts that can never be left.",
    ),
    statistic(
        "SA-2.a",
        r"On one stream, with steps of order $1/n$ and one stable root in each world, iterates converge to the root of the world that was drawn.",
        Mixtures,
        measure.mean("abs(x - root)", END.format("one"), by=["world"], decides=highest),
        r"mean $\lvert x_n-x^*_k\rvert$ at the last step, the farther world",
        at_most(0.05),
        source="digest",
        **DISTANCE,
        where="digest: non-ergodicity shows in the limit ODE; that it is the average over the world that was drawn is our reading",
        plain="A single stream takes the iterate to the equilibrium of its own world: the limit is random.",
        control=measure.mean("abs(x - root)", END.format("many"), by=["world"], decides=highest),  # no world is its own
    ),
    statistic(
        "SA-2.b",
        r"On many streams, a fresh world at each step, iterates converge to the root of the mixture's mean field.",
        Mixtures,
        measure.mean("abs(x - annealed)", END.format("many")),
        r"mean distance to $\sum w_kb_k/\sum w_kA_k$ at the last step",
        at_most(0.05),
        **DISTANCE,
        control=measure.mean("abs(x - annealed)", END.format("one")),
    ),
    on_page("SA-2.f", horizon="$n=2^{14}$"),
    on_page(
        "SA-3.a",
        source="digest",
        where="digest: randomness from the tail at minus infinity; proved on the page",
        plain="Which limit is found was settled in the remote past.",
        horizon="a gap of $20{,}000$ steps",
    ),
    on_page("SA-3.b", source="prior"),
)


# Figures: rows in, a figure with its alt text as label out ------------------------------------------------------------


def lives(seed: int, learners: int = 10, steps: int = 4000) -> Figure:
    """Running averages of learners that each read one stream of one of the two coins; small, and live in every build."""
    coins, times = Coins(), record_times(steps, 150)
    y, coin = coins.draw(steps, learners, stream(seed, "lives"))
    x = robbins_monro(to_data, y, StepSize.power(), torch.zeros(learners, dtype=torch.float64), record=times).x
    figure, ax = plt.subplots(figsize=(5.4, 2.6))
    for k, bias in enumerate(coins.biases):
        own = x[:, coin == k]
        ax.plot(times, own, color=COLOURS[k], linewidth=0.9)
        beside(ax, steps, bias, f"{own.shape[1]} streams of the\ncoin {bias:g} end here", COLOURS[k])
    ax.set(xscale="log", xlabel="data seen", ylabel="average so far", xlim=(1, steps), ylim=(-0.03, 1.03))
    plain_log(ax.xaxis, [10**k for k in range(4)])
    panel_label(ax, f"{learners} learners, two coins: each ends where its own stream leads")
    ends = ", ".join(f"{end:.2f} on the coin {coins.biases[k]:g}" for end, k in zip(x[-1], coin.tolist(), strict=True))
    figure.set_label(f"Running averages of {learners} learners, one stream each, after {steps} tosses: {ends}.")
    return figure


def fan(rows: pd.DataFrame) -> Figure:
    """Paths of learners, each with its own stream and with a fresh world at each step; rows of ``Mixtures``."""
    rows = largest(rows)
    figure, axes = plt.subplots(1, 2, figsize=(6.4, 3.5), sharex=True, sharey=True)
    names = {
        "one": "a world each, kept:\neach learner finds its own root",
        "many": "a fresh world at each step:\nall find one other point",
    }
    annealed, words = rows["annealed"].iloc[0], []
    for ax, (feed, name) in zip(axes, names.items(), strict=True):
        part = rows[(rows["feed"] == feed) & (rows["replicate"] < SHOWN)]
        for _, path in part.groupby("replicate"):
            color = COLOURS[path["world"].iloc[0]] if feed == "one" else MUTED
            ax.plot(path["n"], path["x"], color=color, linewidth=0.5, alpha=0.45)
        for root in sorted(rows["root"].unique()):
            ax.axhline(root, **THEORY)
        ax.axhline(annealed, **DASHED)
        last = rows[(rows["feed"] == feed) & (rows["n"] == rows["n"].max())]
        ends = last.groupby("world")["x"].mean() if feed == "one" else [last["x"].mean()]
        words.append(f"{name}: " + " and ".join(f"{end:.2f}" for end in ends))
        panel_label(ax, name)
        ax.set(xscale="log", xlabel="$n$")
    axes[0].set_ylabel("$x_n$")
    for k, root in rows.groupby("world")["root"].first().items():
        beside(
            axes[0], rows["n"].max(), root, f"world {k + 1}: {root:g}", COLOURS[k], (-4, -18 if k else 18), ha="right"
        )
    beside(axes[1], rows["n"].max(), annealed, f"mean field: {annealed:.2f}", INK, (-4, -28), ha="right")
    plain_log(axes[0].xaxis, [10**k for k in range(5) if 10**k <= rows["n"].max()])
    figure.set_label(
        f"Paths of learners against time. Mean ends, {'; '.join(words)}. The root of the mean field is {annealed:.2f}; "
        "learners of one stream do not go there, learners with a fresh world at each step do.".replace("\n", " ")
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
    low = min(ends.values()) / 3  # room for the words below the lowest path
    ax.set(xscale="log", yscale="log", xlabel="$n$", ylabel="sum of the coordinates of $x_n$", ylim=(low, None))
    panel_label(ax, "each world settles its learner, both together drive it away")
    medians = ", ".join(f"{name} {end:.3g}" for name, end in ends.items())
    figure.set_label(f"Sum of the coordinates of learners against time; medians at the end: {medians}.")
    return figure
