"""A small transformer in a world that changes: constant steps down one stream, across the switches of its coin (SA-11).

symbol    name      meaning                                                                            axes
y         tokens    one life of tokens, cut into texts; an update reads ``batch`` texts of it          (models, N)
k_n       heard     the coin that is heard, drawn anew with probability epsilon a token                (models, N)
a         rate      constant step of plain gradient descent; the networks of a model differ in it      (rates,)
-         excess    expected log loss on texts of one coin over the entropy of that coin, in nats      (R, 2)
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from derived.lab import measure, stats, training
from derived.lab.claims import RECORDED, at_least, statistic
from derived.lab.experiment import Experiment, rows
from derived.lab.plot import GREEN, ORANGE, beside, largest, mean_and_reach, plain_log
from derived.lab.rng import stream
from derived.lab.stats import Estimate

from .data.environments import MarkovMixture
from .data.streams import single_stream, switching_stream
from .model.networks import TinyAttention

#: Two coins, of bias 0.2 and 0.8.
COINS = MarkovMixture((((0.8, 0.2), (0.8, 0.2)), ((0.2, 0.8), (0.2, 0.8))), (0.5, 0.5))


@dataclass(frozen=True, kw_only=True)
class Switches(Experiment):
    """SA-11: one life per model, learned from as it comes, each text once. Arms: "context" (texts of ``context``
    tokens) and "blind" (the same network on the same tokens, each a text of its own, so that it sees no past). Both
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
    law = torch.tensor(COINS.matrices[:, 0])  # (coins, S)
    each = texts.flatten(1, 2).repeat(len(net.readout) // len(texts), 1, 1)
    logits = net(each.to(net.readout.device))
    log_p = torch.log_softmax(logits.double().cpu(), dim=-1).unflatten(1, texts.shape[1:3])
    return (law * law.log()).sum(dim=-1) - (law[:, None, None] * log_p).sum(dim=-1).mean(dim=(-2, -1))


# Claims: SA-11: a small transformer across switches. Criteria and expected verdicts were written before the recorded
# run.
#
# A pilot of four networks of another seed, and runs of eight and twenty-four whose lives are not judged, had been
# seen.

FACTS = {"judged_at": RECORDED, "unit": "nats"}
SMALL, LARGE = 1e-3, 1e-1  # the two steps that are compared
LIVES = "the second half of lives of 128,000 tokens"


def trade(rows: pd.DataFrame) -> Estimate:
    """What the small step loses on the coin that is heard, and what the large one loses on the other coin, each against
    the other step and paired by model: of both differences in both arms, judged jointly, the least."""
    some = measure.chosen(rows, "part == 'test'")
    coins = {name: measure.by_draw(some[name], some, ["rate", "arm", "model"]) for name in ("current", "other")}
    means = pd.DataFrame({name: each.mean() for name, each in coins.items()})
    small, large = means.loc[SMALL], means.loc[LARGE]
    losses = (small["current"] - large["current"], large["other"] - small["other"])
    found = [each for loss in losses for _, each in loss.groupby("arm")]
    level = 1 - (1 - stats.LEVEL) / len(found)
    return measure.lowest([stats.mean(each, level) for each in found])


def guess() -> float:
    """The excess of an even guess, the same on both coins."""
    return math.log(2) + sum(p * math.log(p) for p in COINS.matrices[0][0])


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


def hardly_larger(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the small step, and those of the next one that was tried in the place of the large one's."""
    others = rows[rows["rate"] != LARGE]
    following = others.loc[others["rate"] > SMALL, "rate"].min()
    return others.assign(rate=others["rate"].replace({following: LARGE}))


CLAIMS = (
    statistic(
        "SA-11.f",
        r"Trained at constant step along one stream whose coin changes, a small transformer is worse at $a=0.001$ than at $a=0.1$ on the coin that is heard, and better on the other, on single tokens and with a context of 32 tokens.",
        Switches,
        trade,
        "the smallest of four differences in excess loss over paired networks: without and with a context, the small step's less the large one's on the coin that is heard, and the large step's less the small one's on the other coin",
        at_least(0),
        **FACTS,
        where="an even guess, which learns nothing, lies at the far end of the same trade and would pass in the place of the small step",
        horizon=LIVES,
        control=lambda rows: trade(hardly_larger(rows)),
    ),
    statistic(
        "SA-11.g",
        r"Along one stream whose coin changes, the network that sees a context of 32 tokens serves both coins better than the same network on single tokens, each at the best of twelve constant steps, and than an even guess.",
        Switches,
        relief("context"),
        "mean excess loss on both coins without a context, and that of an even guess, less that with a context, over paired networks, the lesser",
        at_least(0.05),
        **FACTS,
        horizon=LIVES,
        control=relief("context", "rate == rate.min()", "first"),  # it has hardly learned; trained on, it would pass
    ),
)


# Figures: A small transformer across switches of its world: rows in, a figure with its alt text as label out.
#
# mark                   meaning
# circles, squares       without and with a context

ARMS = {"blind": ("single tokens", ORANGE, "o"), "context": ("with a context", GREEN, "s")}
BINS = 20


def switches(rows: pd.DataFrame) -> Figure:
    """Excess on both coins against what was read, each arm at its best step; rows of ``Switches``."""
    rows = largest(rows)
    figure, ax = plt.subplots(figsize=(6.4, 3.6))
    words = []
    for arm, (name, color, marker) in ARMS.items():
        part = rows[rows["arm"] == arm]
        _read(ax, part[part["chosen"]], color, marker)
        late = part[part["part"] == "test"].groupby("rate")[["current", "other"]].mean()
        told = late.loc[sorted({late.index[0], part.loc[part["chosen"], "rate"].iloc[0], late.index[-1]})]
        steps = (f"{here:.3f} here and {there:.3f} there at {step:g}" for step, (here, there) in told.T.items())
        words.append(f"{name}, {', '.join(steps)}")
        last = ax.containers[-1].lines[0]
        beside(ax, last.get_xdata()[-1], last.get_ydata()[-1], name, color)
    ax.set(yscale="log", xlabel="thousand tokens read", ylabel="excess on both coins (nats)")
    ax.set_xlim(0, 1.3 * ax.get_xlim()[1])
    plain_log(ax.yaxis, (0.01, 0.02, 0.05, 0.1, 0.2, 0.5))
    figure.set_label(
        "A small transformer along a stream whose coin changes. Mean excess in nats on the coin that is heard (here) "
        f"and on the other (there), at the least, the best and the largest constant step: {'; '.join(words)}."
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
