"""How kinds of attention are trained and compared: a learning rate is chosen for each, data are drawn for each network.

symbol     name     meaning                                                      axes
s, n, y    data     symbols, lengths, labels of each network's set               as in ``data.sequences``
eta(t)     rate     up over the first tenth, held for a share, then half a cosine to zero

plain        ordinary attention, query/key width d_k
wide         ordinary attention, query/key width L d_k
conv-qk      ordinary attention after one causal convolution of length 2^(L-1) on the input of queries and keys
hkt          L levels with trainable downsampling
hkt-average  L levels, downsampling frozen at averages
hkt-every    hkt with a summary at each token, by the same taps
hkt-fixed    hkt whose weights of the levels stay at their start

Replicate r of each kind has the same data, the same order of items and the same initial values of all shared weights,
so differences are paired; replicates share nothing.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd
import torch
from jaxtyping import Float
from scipy.linalg import helmert
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from derived.lab import training
from derived.lab.checks import check_count
from derived.lab.experiment import Experiment, rows
from derived.lab.nets import layer_norm
from derived.lab.rng import stream

from .data.sequences import Data, stack
from .model.classifier import SequenceClassifier
from .model.layers import HKTAttention


@dataclass(frozen=True, kw_only=True)
class Compared(Experiment, ABC):
    """Kinds of attention on one task. A subclass gives ``shape`` and ``rules``, and ``sets`` or a ``task(generator, num)``
    that draws ``num`` labelled sequences.

    A kind's rate is the one of ``rates`` with the highest mean accuracy on validation data over ``tuning`` other
    networks, trained for as many steps.

    Rows: kind, stage; "validation": rate, replicate, accuracy, loss; "test": rate, replicate, step, flop (of all matrix
    products of training a network so far), accuracy, loss, parameters, and what ``rules`` say; "level": replicate,
    block, level and what ``levels_of`` measures.
    """

    kinds: tuple[str, ...] = ("plain", "wide", "conv-qk", "hkt", "hkt-average")
    rates: tuple[float, ...]
    tuning: int = 2
    replicates: int
    width: int = 32
    depth: int = 2
    heads: int = 2
    levels: int = 3
    alpha0: float = 0.9  # of level 0 at the start; equal weights would begin with flatter scores than the other arms
    steps: int
    checks: int  # of the test accuracy, at equal distances
    batch_size: int = 32
    num_train: int
    num_test: int

    dtype: ClassVar = torch.float32
    label: ClassVar[str]  # of the random streams
    weights: ClassVar[int] = 0  # added to the seed of the initial weights, so that a later run has others
    held: ClassVar[float] = 0.6  # the share of the steps at the full rate
    alpha_rate: ClassVar[float] = 10.0  # of the logits of the levels, in learning rates
    # widths of the feed-forward part, in widths: at these the last three have as many numbers as hkt
    feed_forward: ClassVar[Mapping[str, int]] = {"plain": 2, "hkt": 2, "wide": 4, "conv-qk": 4, "hkt-average": 4}
    feed_forward |= {"hkt-every": 2, "hkt-fixed": 2}

    @abstractmethod
    def shape(self) -> dict[str, Any]:
        """Vocabulary, classes and whatever else of a network the task decides."""

    @abstractmethod
    def rules(self, train: Data, test: Data) -> dict[str, Tensor]:
        """What says how hard the task is: numbers (R,) by name."""

    def conditions(self) -> list[dict]:
        return [{"kind": kind} for kind in self.kinds]

    def model(self, kind: str, networks: int, *, seed: int, device, dtype) -> SequenceClassifier:
        """Networks of an arm, with initial weights that the arms share."""
        sizes = {"width": self.width, "depth": self.depth, "heads": self.heads, "levels": self.levels}
        options = {"impl": "reference", "alpha0": self.alpha0, "seed": seed, "dtype": dtype, "device": device}
        options |= {"attention": kind, "mlp_ratio": self.feed_forward[kind]}
        return SequenceClassifier(**sizes, **self.shape(), num_networks=networks, **options)

    def sets(self, stage: str, networks: int, seed: int, device) -> list[Data]:
        """Training data and data to judge by, one set per network."""
        draws = {"train": self.num_train, "judge": self.num_test}
        return [
            stack([self.task(stream(seed, self.label, stage, name, r), num) for r in range(networks)]).to(device)
            for name, num in draws.items()
        ]

    def steps_of(self, kind: str) -> int:
        """How long a kind of attention is trained."""
        return self.steps

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        kind, places = condition["kind"], {"device": device, "dtype": dtype}
        start = 1000 * (seed + self.weights)
        sets, tables = self.sets("validation", self.tuning, seed, device), []
        for rate in self.rates:
            model = self.model(kind, self.tuning, seed=start + 3, **places)  # the same start at every rate
            batches = stream(seed, f"{self.label} batches", "validation")
            index = {"stage": "validation", "rate": rate, "replicate": range(self.tuning)}
            tables.append(rows(index, self._validate(model, kind, sets, rate, batches)))
        best = self._best(pd.concat(tables))
        model = self.model(kind, self.replicates, seed=start + 2, **places)
        sets = self.sets("test", self.replicates, seed, device)
        curve = self._curve(model, kind, sets, best, stream(seed, f"{self.label} batches", "test"))
        levels = levels_of(model, sets[1]).assign(stage="level")
        return pd.concat([*tables, curve.assign(parameters=float(model.num_parameters())), levels], ignore_index=True)

    def _validate(self, model, kind: str, sets: list[Data], rate: float, generator) -> dict[str, Tensor]:
        """Trains at a rate; what is known of it on validation data."""
        self._train(model, kind, sets[0], rate, generator)
        loss, accuracy = evaluate(model, sets[1])
        return {"accuracy": accuracy, "loss": loss}

    def _best(self, tried: pd.DataFrame) -> float:
        """The rate that validation data choose."""
        return tried.groupby("rate")["accuracy"].mean().idxmax()

    def _train(self, model: SequenceClassifier, kind: str, data: Data, rate: float, generator, **watch) -> None:
        schedule = {"steps": self.steps_of(kind), "batch_size": self.batch_size, "lr": rate, "held": self.held}
        train(model, data, **schedule, alpha_rate=self.alpha_rate, generator=generator, **watch)

    def _course(self, model, kind: str, sets: list[Data], rate: float, generator) -> dict[int, tuple[Tensor, Tensor]]:
        """Trains at a rate; loss and accuracy on the way, by step."""
        every, found = self.steps_of(kind) // self.checks, {}

        def check(step: int) -> None:
            if step % every == 0:
                found[step] = evaluate(model, sets[1])

        self._train(model, kind, sets[0], rate, generator, watch=check)
        check(self.steps_of(kind))
        return found

    def _curve(self, model: SequenceClassifier, kind: str, sets: list[Data], rate: float, generator) -> pd.DataFrame:
        """Trains at a rate and judges on the way: the rows of stage "test"."""
        found = self._course(model, kind, sets, rate, generator)
        loss, accuracy = (torch.stack(each, dim=-1) for each in zip(*found.values(), strict=True))
        index = {"stage": "test", "rate": rate, "replicate": range(self.replicates), "step": list(found)}
        columns = {"accuracy": accuracy, "loss": loss, "flop": self._flop(model, sets[0]) * torch.tensor(list(found))}
        return rows(index, columns | {name: each.unsqueeze(-1) for name, each in self.rules(*sets).items()})

    def _flop(self, model: SequenceClassifier, data: Data) -> float:
        """Of the matrix products of one step of one network, there and back; counted, not timed."""
        batch = data.first(self.batch_size)
        # by plain matrix products, since the counter does not see into every fused kernel
        with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
            model(batch.tokens.long(), batch.lengths.long()).sum().backward()
        return counter.get_total_flops() / self.replicates


@torch.no_grad()
def levels_of(model: SequenceClassifier, data: Data) -> pd.DataFrame:
    """alpha, excess kurtosis, Mardia's z and variance of each block and level; one row of features per sequence.

    The row of level l is that of the middle token, so that samples are independent.
    """
    h, middle, tables = model.embed(data.tokens.long()), data.lengths.long() // 2, []
    network = torch.arange(len(h), device=h.device).unsqueeze(-1)
    items = torch.arange(h.shape[1], device=h.device)
    for b, (block, alphas) in enumerate(zip(model.blocks, model.alphas().mean(dim=2).unbind(1), strict=True)):
        z = layer_norm(h)
        levels = block.attention.scores.pyramid(z) if isinstance(block.attention, HKTAttention) else [z]
        for level, features in enumerate(levels):
            at = features[network, items, middle >> level].double()
            columns = {"kurtosis": excess_kurtosis(at.mT).mean(dim=-1), "variance": at.var(dim=1).mean(dim=-1)}
            columns |= {"mardia": mardia(_free(at)), "alpha": alphas[:, level].double()}
            tables.append(rows({"replicate": range(len(h)), "block": b, "level": level}, columns))
        h = torch.cat([block(part) for part in h.split(256, dim=1)], dim=1)  # all at once would be all score tables
    return pd.concat(tables, ignore_index=True)


def excess_kurtosis(x: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch"]:
    """m_4 / m_2^2 - 3 over the last axis, moments about the mean with divisor n."""
    square = (x - x.mean(dim=-1, keepdim=True)).square()
    return square.square().mean(dim=-1) / square.mean(dim=-1).square() - 3


def mardia(X: Float[Tensor, "*batch n p"]) -> Float[Tensor, "*batch"]:
    """Mardia's kurtosis, less its mean under normality, over its asymptotic deviation. [prior: Mardia 1970]"""
    n, p = X.shape[-2:]
    Q = torch.linalg.qr(X - X.mean(dim=-2, keepdim=True)).Q  # squared Mahalanobis distances are n |Q_i|^2
    b = (n * Q.square().sum(dim=-1)).square().mean(dim=-1)
    return (b - p * (p + 2) * (n - 1) / (n + 1)) / math.sqrt(8 * p * (p + 2) / n)


def _free(at: Tensor) -> Tensor:
    """Features (R, items, p) in independent coordinates: p - 1 of them where all sum to zero but for rounding.

    A layer norm leaves such features, and so do averages of them: one of their p directions is rounding alone, which a
    statistic that whitens would blow up to the size of the others.
    """
    if (at.sum(dim=-1).abs() > 1e-4 * at.abs().sum(dim=-1)).any():
        return at
    return at @ torch.as_tensor(helmert(at.shape[-1]), dtype=at.dtype, device=at.device).mT


def rate(step: int, steps: int, held: float = 0.0) -> float:
    """The learning rate's factor at a step: up over the first tenth, held for a share, then half a cosine to zero."""
    warmup, hold = max(1, steps // 10), round(held * steps)
    if step < warmup:
        return (step + 1) / warmup
    if step < warmup + hold:
        return 1.0
    return 0.5 * (1 + math.cos(math.pi * (step - warmup - hold) / max(1, steps - warmup - hold)))


def train(
    model: SequenceClassifier,
    data: Data,
    *,
    steps: int,
    batch_size: int,
    lr: float,
    held: float = 0.0,
    alpha_rate: float = 1.0,
    weight_decay: float = 0.01,
    generator: torch.Generator,
    watch: Callable[[int], None] = lambda step: None,
) -> Float[Tensor, "R steps"]:
    """AdamW on the sum of the networks' losses; returns each network's loss at each step.

    Weight decay acts on all weights but the logits ``a`` of the levels, which learn at ``alpha_rate`` times the rate.
    Batches are drawn with replacement from ``generator``: models trained with equal generators and data see the same
    items in the same order. ``watch`` is called with the number of each step before that step.
    """
    check_count("batch_size", batch_size)
    networks, items, _ = data.tokens.shape

    def loss(step: int) -> Tensor:
        watch(step)
        index = torch.randint(items, (networks, batch_size), generator=generator, device=generator.device)
        batch = data.take(index.to(data.tokens.device))
        return training.mean_cross_entropy(model(batch.tokens, batch.lengths), batch.labels)

    logits = {id(weight) for name, weight in model.named_parameters() if name.endswith(".a")}

    def hasten(optimiser: torch.optim.Optimizer, *_) -> None:
        for group in optimiser.param_groups:
            group["lr"] *= alpha_rate if id(group["params"][0]) in logits else 1.0

    # a, the logits of the levels, are spared: decay would pull them towards equal weights
    optimiser = training.adamw(
        model, betas=(0.9, 0.99), weight_decay=weight_decay, decays=lambda name, _: not name.endswith(".a")
    )
    optimiser.register_step_pre_hook(hasten)
    return training.train(loss, optimiser, steps=steps, rate=lambda step: lr * rate(step, steps, held))


def evaluate(model: SequenceClassifier, data: Data, *, batch_size: int = 256) -> tuple[Tensor, Tensor]:
    """Mean cross-entropy and share of right answers of each network, (R,) each, in float64 on the CPU."""
    items = torch.arange(data.tokens.shape[1], device=data.tokens.device)
    batches = (data.take(index.expand(len(data.tokens), -1)) for index in items.split(batch_size))
    return training.evaluate((model(batch.tokens, batch.lengths), batch.labels) for batch in batches)
