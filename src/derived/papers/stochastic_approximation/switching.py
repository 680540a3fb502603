"""A world that changes: a running mean at constant step, and a small transformer that learns as it lives (SA-11).

symbol    name      meaning                                                                            axes
epsilon   epsilon   probability per step that the world is redrawn                                    scalar
a         a, rate   constant step; the networks of a model differ in it                                scalar, (rates,)
y         tokens    one life of tokens, cut into texts; an update reads ``batch`` texts of it          (models, N)
k_n       heard     the coin that is heard                                                             (models, N)
-         excess    expected log loss on texts of one coin over the entropy of that coin, in nats      (R, 2)
"""

from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from derived.lab import measure, stats, training
from derived.lab.claims import RECORDED, at_least, on_page, statistic, unseen
from derived.lab.experiment import Experiment, rows
from derived.lab.plot import BLUE, GREEN, ORANGE, RED, THEORY, beside, largest, mean_and_reach, panel_label, plain_log
from derived.lab.rng import stream
from derived.lab.stats import Estimate

from .data import Coins, Telegraph, single_stream, switching_stream
from .model.core import StepSize, robbins_monro
from .model.networks import TinyAttention
from .model.predictors import both
from .model.theory import telegraph_variance

COINS = Coins((0.2, 0.8))


@dataclass(frozen=True, kw_only=True)
class Tracking(Experiment):
    """SA-11: variance at constant step. Rows: epsilon, a, replicate, square (mean of x^2 over the later steps), exact,
    ratio (square / exact)."""

    replicas: int = 1000
    steps: int = 6000
    burn_in: int = 1500
    every: int = 20

    tiny: ClassVar = {"replicas": 30, "steps": 400, "burn_in": 200}

    def conditions(self) -> list[dict]:
        return [{"epsilon": epsilon, "a": a} for epsilon in (0.001, 0.01, 0.1) for a in (0.01, 0.1)]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        epsilon, a = condition["epsilon"], condition["a"]
        y = Telegraph(epsilon).draw(self.steps, self.replicas, stream(seed, "telegraph", a)).y.to(device)
        times = range(self.burn_in, self.steps + 1, self.every)
        x = robbins_monro(lambda x, y: y - x, y, StepSize.constant(a), torch.zeros_like(y[0]), record=times).x
        square, exact = x.square().mean(dim=0), float(telegraph_variance(a, epsilon))
        return rows({"replicate": range(self.replicas)}, {"square": square, "exact": exact, "ratio": square / exact})


@dataclass(frozen=True, kw_only=True)
class Switches(Experiment):
    """SA-11: one life per model, learned from as it comes, each text once. Arms: "context" (texts of ``context``
    tokens) and "blind" (the same network on the same tokens, each as a separate text, so that it sees no past). Both
    have the same weights, starts and data.

    Rows, every ``every`` updates: arm, rate, model, tokens (read so far), age (tokens since the coin changed), part
    ("first", "validation" or "test": the first and the second quarter and the second half of the life), heard (the
    coin), current and other (excess on fresh texts of the coin that is heard and of the other), chosen (the rate of
    least mean of both in the validation quarter, one for the arm).
    """

    models: int = 24
    rates: tuple[float, ...] = (1e-4, 1.6e-4, 2.5e-4, 4e-4, 6.3e-4, 1e-3, 1.6e-3, 2.5e-3, 4e-3, 6.3e-3, 1e-2, 1e-1)
    epsilon: float = 1 / 1600
    context: int = 32
    batch: int = 2
    updates: int = 2000
    every: int = 10
    texts: int = 8

    tiers: ClassVar = {
        "ci": {"models": 2, "rates": (1e-3, 1e-1), "updates": 80, "texts": 4, "epsilon": 1 / 400},
        "cpu": {},
    }
    tiny: ClassVar = {"updates": 12, "every": 2, "texts": 2, "context": 8}
    dtype: ClassVar = torch.float32

    def conditions(self) -> list[dict]:
        return [{"arm": arm} for arm in ("blind", "context")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        context = self.context if condition["arm"] == "context" else 1
        sizes = {"num_networks": self.models, "copies": len(self.rates), "seed": seed}
        net = TinyAttention(2, context, **sizes, dtype=dtype, device=device)
        length = self.updates * self.batch * self.context
        lives = [switching_stream(COINS, length, self.epsilon, stream(seed, "own life", r)) for r in range(self.models)]
        tokens, heard = (torch.stack(each) for each in zip(*lives, strict=True))
        excess = torch.stack(self.live(net, tokens.view(self.models, self.updates, -1, context), seed)).to(dtype)
        excess = excess.unflatten(1, (len(self.rates), self.models))  # (times, rates, models, 2)
        read = torch.arange(self.every, self.updates + 1, self.every) * self.batch * self.context
        now = heard[:, read - 1].T  # (times, models)
        pick = now[:, None, :, None].expand(*excess.shape[:3], 1)
        quarter = 4 * torch.arange(len(read)) // len(read)
        columns = {
            "heard": now[:, None],
            "age": ages(heard)[:, read - 1].T[:, None],
            "current": excess.gather(-1, pick).squeeze(dim=-1),
            "other": excess.gather(-1, 1 - pick).squeeze(dim=-1),
        }
        best = excess[quarter == 1].mean(dim=(0, 2, 3)).argmin()
        columns["chosen"] = (torch.arange(len(self.rates)) == best)[:, None]
        names = ["first", "validation", "test", "test"]
        times = {("tokens", "part"): (read.tolist(), [names[each] for each in quarter])}
        return rows(times | {"rate": self.rates, "model": range(self.models)}, columns)

    def live(self, net: TinyAttention, texts: Tensor, seed: int) -> list[Tensor]:
        """One step of gradient descent on each update of ``texts`` (models, updates, B, T); the excess after every
        ``every`` of them. A network's step is its rate times its gradient, so that its loss is weighted by its rate."""
        device, found = net.readout.device, []
        step = torch.tensor(self.rates, dtype=net.readout.dtype, device=device).repeat_interleave(self.models)
        probes = self.probes(texts.shape[-1], seed)

        def loss(update: int) -> Tensor:
            if update and update % self.every == 0:
                found.append(excess_on(net, probes))
            tokens = texts[:, update].repeat(len(self.rates), 1, 1).to(device)
            return step * training.mean_cross_entropy(net(tokens), tokens)

        optimiser = torch.optim.SGD(net.parameters())
        training.train(loss, optimiser, steps=self.updates, rate=lambda update: 1.0)
        return [*found, excess_on(net, probes)]

    def probes(self, length: int, seed: int) -> Tensor:
        """Texts of each coin to judge by, a model's own, the same at all its rates: (models, coins, B, T)."""
        coins = [
            [single_stream(COINS, k, self.texts, length, stream(seed, "own probe", k, r)).tokens for k in (0, 1)]
            for r in range(self.models)
        ]
        return torch.stack([torch.stack(each) for each in coins])


def ages(heard: Tensor) -> Tensor:
    """Tokens since the coin changed, 1 at the first of a coin: (models, N) to the same.

    >>> ages(torch.tensor([[0, 0, 1, 1, 1, 0]]))
    tensor([[1, 2, 1, 2, 3, 1]])
    """
    place = torch.arange(heard.shape[-1]).expand_as(heard)
    new = torch.ones_like(heard, dtype=torch.bool)
    new[:, 1:] = heard[:, 1:] != heard[:, :-1]
    return place - torch.where(new, place, 0).cummax(dim=-1).values + 1


@torch.no_grad()
def excess_on(net: TinyAttention, texts: Tensor) -> Tensor:
    """KL(coin | network) at every place, mean over a model's texts of that coin (models, coins, B, T): (R, coins)."""
    truth = both(torch.tensor(COINS.biases, dtype=torch.float64))  # (coins, 2)
    each = texts.flatten(1, 2).repeat(len(net.readout) // len(texts), 1, 1)
    logits = net(each.to(net.readout.device))
    log_p = torch.log_softmax(logits.double().cpu(), dim=-1).unflatten(1, texts.shape[1:3])
    return (truth * truth.log()).sum(dim=-1) - (truth[:, None, None] * log_p).sum(dim=-1).mean(dim=(-2, -1))


EXPERIMENTS = (Tracking, Switches)

# Claims: criteria and expected verdicts were written before the recorded run ------------------------------------------


def guess() -> float:
    """The excess of an even guess, the same on both coins."""
    p = np.array([COINS.biases[0], 1 - COINS.biases[0]])
    return float(np.log(2) + p @ np.log(p))


def relief(arm: str, step: str = "chosen", part: str = "test") -> measure.Measure:
    """What an arm saves of the mean excess on both coins, at its step or at another: against the network that sees no
    past, at its step and paired by model, and against an even guess, judged jointly; the lesser."""

    def saved(rows: pd.DataFrame) -> Estimate:
        arms = f"(arm == '{arm}' and ({step}) or arm == 'blind' and chosen)"
        some = measure.chosen(rows, f"part == '{part}' and {arms}")
        both = measure.by_draw((some["current"] + some["other"]) / 2, some, ["arm", "model"]).mean()
        level = 1 - (1 - stats.LEVEL) / 2
        return measure.lowest([stats.mean(each - both[arm], level) for each in (both["blind"], guess())])

    return saved


CLAIMS = (
    on_page(
        "SA-11.b",
        source="prior",
        plain="A constant step is plastic or rigid by one ratio: that of the rate of change to the step.",
    ),
    statistic(
        "SA-11.g",
        r"Along one stream whose coin changes, the network that sees a context of 32 tokens serves both coins better than the same network on single tokens, each at the best of twelve constant steps, and than an even guess.",
        Switches,
        relief("context"),
        "mean excess loss on both coins without a context, and that of an even guess, less that with a context, over paired networks, the lesser",
        at_least(0.05),
        unit="nats",
        judged_at=RECORDED,
        plain="In a world that changes, a small transformer serves both worlds if it sees a context.",
        horizon="the second half of lives of 128,000 tokens",
        control=relief("context", "rate == rate.min()", "first"),  # it has hardly learned; trained on, it would pass
    ),
    unseen(
        "SA-13",
        r"Stochastic approximation in non-Markovian environments is an analytic frame for attention in transformers and for continual learning.",
        "it is a programme, and not a statement that could be checked; our statements SA-8 to SA-11 test what could follow from it",
        source="paper",
        where="abstract",
        plain="The theory frames what attention and continual learning do.",
    ),
)


# Figures: rows in, a figure with its alt text as label out ------------------------------------------------------------

ARMS = {"blind": ("single tokens", ORANGE, "o"), "context": ("with a context", GREEN, "s")}
BINS = 20


def trade_off(rows: pd.DataFrame) -> Figure:
    """Variance at constant step against epsilon/a; rows of ``Tracking``."""
    figure, ax = plt.subplots(figsize=(5.6, 3.3))
    grid = np.geomspace(0.005, 20, 200)
    ax.plot(grid, 1 / (1 + grid), **THEORY)
    means = largest(rows).groupby(["a", "epsilon"])["square"].mean()
    for (a, part), color in zip(means.groupby("a"), (BLUE, RED), strict=True):
        epsilon = part.index.get_level_values("epsilon")
        ax.plot(epsilon / a, part, "o", color=color, markerfacecolor="none", label=f"step $a={a:g}$")
    ax.set(xscale="log", xlabel=r"changes per step over step size, $\varepsilon/a$", ylabel="variance of $x$")
    ax.set_ylim(0, 1.08)
    ax.legend(fontsize=9, loc="lower left")
    beside(ax, 0.006, 0.82, "plastic: follows\nits world", BLUE, (0, 0), fontsize=9)
    beside(ax, 1.3, 0.16, "rigid: averages\nthe worlds", RED, (0, 0), fontsize=9, ha="right")
    panel_label(ax, "one ratio says whether a learner is plastic or rigid")
    words = [f"epsilon over a {e / a:.2g}: {value:.3f}" for (a, e), value in means.items()]
    figure.set_label(f"Variance of the iterate at constant step, on the curve 1/(1 + epsilon/a); {'; '.join(words)}.")
    return figure


def switches(rows: pd.DataFrame) -> Figure:
    """Excess on both coins against what was read, each arm at its best step; rows of ``Switches``."""
    rows = largest(rows)
    figure, ax = plt.subplots(figsize=(6.4, 3.6))
    words = []
    for arm, (name, color, marker) in ARMS.items():
        part = rows[rows["arm"] == arm]
        _read(ax, part[part["chosen"]], color, marker)
        late = part[part["chosen"] & (part["part"] == "test")]
        words.append(
            f"{name}, {late['current'].mean():.3f} on the coin that is heard, {late['other'].mean():.3f} on the other"
        )
        last = ax.containers[-1].lines[0]
        beside(ax, last.get_xdata()[-1], last.get_ydata()[-1], name, color, (6, 3))
    ax.axhline(guess(), **THEORY)
    beside(ax, rows["tokens"].max() / 1000, guess(), "even guess", shift=(6, -9), fontsize=10)
    ax.set(yscale="log", xlabel="thousand tokens read", ylabel="excess on both coins (nats)")
    ax.set_xlim(0, 1.3 * ax.get_xlim()[1])
    plain_log(ax.yaxis, (0.01, 0.02, 0.05, 0.1, 0.2, 0.5))
    panel_label(ax, "only the network that sees a context beats an even guess")
    figure.set_label(
        "A small transformer along a stream whose coin changes. Mean excess in nats in the second half of its life, "
        f"{'; '.join(words)}; an even guess has {guess():.3f}."
    )
    return figure


def _read(ax: Axes, part: pd.DataFrame, color: str, marker: str) -> None:
    """Mean excess on both coins in each twentieth of a life, over models, with its interval."""
    edges = pd.cut(part["tokens"], BINS, labels=False)
    both = part.assign(both=(part["current"] + part["other"]) / 2, bin=edges)
    means = both.groupby(["bin", "model"])["both"].mean()
    at = both.groupby("bin")["tokens"].max() / 1000
    value, reach = zip(*(mean_and_reach(each) for _, each in means.groupby("bin")), strict=True)
    ax.errorbar(at, value, reach, color=color, marker=marker, markersize=3.5, elinewidth=0.8)
