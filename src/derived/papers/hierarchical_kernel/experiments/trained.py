"""Kinds of attention trained on equal data: a pilot with one schedule for all, and a comparison with a rate for each.

plain        ordinary attention, query/key width d_k
wide         ordinary attention, query/key width L d_k
equal        ordinary attention, a feed-forward part that is three times as wide: as many numbers as hkt
conv-qk      ordinary attention after one causal convolution of length 2^(L-1) on the input of queries and keys
hkt          L levels with trainable downsampling
hkt-average  L levels, downsampling frozen at averages

Replicate r of each kind has the same data, the same order of items and the same initial values of all shared weights,
so differences are paired; replicates share nothing.
"""

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import torch
from scipy.linalg import helmert
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from derived.lab.experiment import Experiment, rows
from derived.lab.nets import layer_norm
from derived.lab.rng import stream

from ..data.listops import CODES, OPEN, VOCABULARY, ListOps, parse
from ..data.sequences import Data, Sequences, stack
from ..data.shallow import ShallowPredictor, operator_law
from ..model.classifier import SequenceClassifier
from ..model.information import excess_kurtosis, mardia_kurtosis
from ..model.layers import HKTAttention
from .training import evaluate, train

KINDS = ("plain", "wide", "conv-qk", "hkt", "hkt-average")


@dataclass(frozen=True, kw_only=True)
class ShortListOps(Experiment):
    """HKT-E1, the pilot: ListOps of 9 to 24 symbols, two blocks of width 32, every kind at one learning rate.

    Rows: kind, part, replicate, block, level: accuracy and loss on test data, first_loss and last_loss (means over a
    tenth of the steps), rule (accuracy of the root rule on the same test data), parameters, alpha (mean over heads),
    kurtosis (mean over features, at the middle of each test sequence), mardia (its z) and variance.
    """

    kinds: tuple[str, ...] = KINDS
    parts: int = 2
    replicates: int = 8
    width: int = 32
    depth: int = 2
    heads: int = 2
    levels: int = 3
    steps: int = 2000
    batch_size: int = 32
    lr: float = 2e-3
    num_train: int = 24_000
    num_test: int = 2_000
    min_length: int = 8
    max_length: int = 25

    tiers: ClassVar = {
        "ci": {
            **{"parts": 1, "replicates": 2, "width": 16, "steps": 12, "batch_size": 8},
            **{"num_train": 64, "num_test": 400},
        },
        "cpu": {},
    }
    tiny: ClassVar = {"width": 8, "steps": 2, "batch_size": 2, "num_train": 8, "num_test": 70}
    dtype: ClassVar = torch.float32

    def conditions(self) -> list[dict]:
        return [{"kind": kind, "part": part} for part in range(self.parts) for kind in self.kinds]

    def task(self, generator: torch.Generator, num: int) -> Data:
        """``num`` labelled expressions without the axis of replicates."""
        return compact(ListOps(min_length=self.min_length, max_length=self.max_length).sample(num, generator))

    def rule(self, test: Data) -> Tensor:
        """What the root rule answers, (R, items): 0 for MIN, 9 for MAX, 4 for MED and for SM."""
        best = torch.tensor([0, 9, 4, 4], device=test.tokens.device)
        return best[test.tokens[..., 0].long() - OPEN]

    def model(self, kind: str, *, seed: int, device: torch.device, dtype: torch.dtype) -> SequenceClassifier:
        """The networks of a condition, with initial weights that the kinds share."""
        sizes = {"vocabulary": VOCABULARY, "classes": 10, "max_length": self.max_length - 1, "width": self.width}
        sizes |= {"depth": self.depth, "heads": self.heads, "levels": self.levels, "num_networks": self.replicates}
        options = {"impl": "reference", "seed": seed, "dtype": dtype, "device": device}
        return SequenceClassifier(**sizes, attention=kind, **options)

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        kind, part = condition["kind"], condition["part"]
        own = seed * 1000 + part  # the seed of this part's weights, the same for every kind: differences are paired
        sets = [
            stack([self.task(stream(seed, name, part, r), num) for r in range(self.replicates)]).to(device)
            for name, num in (("train", self.num_train), ("test", self.num_test))
        ]
        model = self.model(kind, seed=own, device=device, dtype=dtype)
        schedule = {"steps": self.steps, "batch_size": self.batch_size, "lr": self.lr}
        losses = train(model, sets[0], **schedule, generator=stream(seed, "batches", part))
        loss, accuracy = evaluate(model, sets[1])
        tenth = max(1, self.steps // 10)
        columns = {"accuracy": accuracy, "loss": loss, "first_loss": losses[:, :tenth].mean(dim=-1)}
        columns |= {"last_loss": losses[:, -tenth:].mean(dim=-1)}
        columns["rule"] = (self.rule(sets[1]) == sets[1].labels).double().mean(dim=-1)
        by_replicate = rows({"replicate": range(self.replicates)}, columns)
        by_level = levels_of(model, sets[1].first(4096))
        return by_level.merge(by_replicate, on="replicate").assign(parameters=model.num_parameters())


def compact(sequences: Sequences) -> Data:
    """Tokens, lengths and labels in few bytes, since a data set stays in memory."""
    return Data(
        *(each.to(dtype) for each, dtype in zip(sequences, (torch.uint8, torch.int16, torch.int16), strict=True))
    )


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
            columns |= {"mardia": mardia_kurtosis(_free(at)).z, "alpha": alphas[:, level].double()}
            tables.append(rows({"replicate": range(len(h)), "block": b, "level": level}, columns))
        h = block(h)
    return pd.concat(tables, ignore_index=True)


def _free(at: Tensor) -> Tensor:
    """Features (R, items, p) in coordinates of their own: p - 1 of them where all sum to zero but for rounding.

    A layer norm leaves such features, and so do averages of them: one of their p directions is rounding alone, which a
    statistic that whitens would blow up to the size of the others.
    """
    if (at.sum(dim=-1).abs() > 1e-4 * at.abs().sum(dim=-1)).any():
        return at
    return at @ torch.as_tensor(helmert(at.shape[-1]), dtype=at.dtype, device=at.device).mT


@dataclass(frozen=True, kw_only=True)
class TunedListOps(Experiment):
    """HKT-E1, E5 by the rules for trained models: a learning rate for each arm, and training beyond the depth-1 rule.

    Lists of MIN, MAX and MED with two or three arguments, half of whose arguments are lists, 9 to 24 symbols: so short
    and so nested that two small blocks pass the rule that evaluates the outermost list alone. SM is left out, since in
    a pilot no network learned to sum modulo ten. An arm's rate is the one of ``rates`` with the highest mean accuracy
    on validation data over ``tuning`` networks of its own, trained for as many steps as all others.

    Rows: kind, stage; "validation": rate, replicate, accuracy, loss; "test": rate, replicate, step, flop (of all matrix
    products of training a network so far), accuracy, loss, rule (accuracy of the depth-1 rule on the same test data),
    known (share of test strings that occur in the training set), parameters; "level": replicate, block, level and what
    ``levels_of`` measures. Replicate r of all kinds has the same data, order of items and shared initial weights.
    """

    kinds: tuple[str, ...] = ("plain", "equal", "conv-qk", "hkt", "hkt-average")
    rates: tuple[float, ...] = (1.5e-3, 4e-3, 1e-2, 2.5e-2)
    tuning: int = 2
    replicates: int = 12
    width: int = 32
    depth: int = 2
    heads: int = 2
    levels: int = 3
    alpha0: float = 0.9  # of level 0 at the start; equal weights would begin with flatter scores than the other arms
    steps: int = 1600
    checks: int = 4  # of the test accuracy, at equal distances
    batch_size: int = 32
    num_train: int = 24_000
    num_test: int = 2_000
    min_length: int = 8
    max_length: int = 25
    max_args: int = 3
    branch: float = 0.5

    tiers: ClassVar = {
        "ci": {
            **{"rates": (4e-3, 1e-2), "tuning": 1, "replicates": 2, "width": 16, "steps": 12, "checks": 2},
            **{"batch_size": 8, "num_train": 64, "num_test": 200},
        },
        "cpu": {},
    }
    tiny: ClassVar = {"width": 8, "steps": 4, "batch_size": 2, "num_train": 40, "num_test": 70}
    dtype: ClassVar = torch.float32

    def conditions(self) -> list[dict]:
        return [{"kind": kind} for kind in self.kinds]

    def task(self, generator: torch.Generator, num: int) -> Data:
        """``num`` labelled expressions without SM, no axis of replicates."""
        sizes = {"min_length": self.min_length, "max_length": self.max_length, "max_args": self.max_args}
        law, found = ListOps(**sizes, branch=self.branch), []
        while sum(len(each.labels) for each in found) < num:
            drawn = law.sample(4 * num, generator)  # about a third has no SM
            kept = (drawn.tokens != CODES["[SM"]).all(dim=-1)
            found.append(compact(Sequences(*(each[kept] for each in drawn))))
        return Data(*(torch.cat(each)[:num] for each in zip(*found, strict=True)))

    def model(self, kind: str, networks: int, *, seed: int, device, dtype) -> SequenceClassifier:
        """Networks of an arm, with initial weights that the arms share."""
        sizes = {"vocabulary": VOCABULARY, "classes": 10, "max_length": self.max_length - 1, "width": self.width}
        sizes |= {"depth": self.depth, "heads": self.heads, "levels": self.levels, "num_networks": networks}
        sizes |= {"mlp_ratio": 6, "attention": "plain"} if kind == "equal" else {"attention": kind}
        options = {"impl": "reference", "alpha0": self.alpha0, "seed": seed, "dtype": dtype, "device": device}
        return SequenceClassifier(**sizes, **options)

    def sets(self, stage: str, networks: int, seed: int, device) -> list[Data]:
        """Training data and data to judge by, one set per network."""
        numbers = {"train": self.num_train, "judge": self.num_test}
        draws = ((name, num, range(networks)) for name, num in numbers.items())
        return [
            stack([self.task(stream(seed, "tuned longer", stage, name, r), num) for r in each]).to(device)
            for name, num, each in draws
        ]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        kind, places = condition["kind"], {"device": device, "dtype": dtype}
        sets, tables = self.sets("validation", self.tuning, seed, device), []
        for rate in self.rates:
            model = self.model(kind, self.tuning, seed=1000 * seed + 3, **places)  # the same start at every rate
            self._train(model, sets[0], rate, stream(seed, "tuned longer batches", "validation"))
            loss, accuracy = evaluate(model, sets[1])
            index = {"stage": "validation", "rate": rate, "replicate": range(self.tuning)}
            tables.append(rows(index, {"accuracy": accuracy, "loss": loss}))
        best = pd.concat(tables).groupby("rate")["accuracy"].mean().idxmax()
        model = self.model(kind, self.replicates, seed=1000 * seed + 2, **places)
        sets = self.sets("test", self.replicates, seed, device)
        curve = self._curve(model, sets, best, stream(seed, "tuned longer batches", "test"))
        levels = levels_of(model, sets[1]).assign(stage="level")
        return pd.concat([*tables, curve.assign(parameters=float(model.num_parameters())), levels], ignore_index=True)

    def _train(self, model: SequenceClassifier, data: Data, rate: float, generator, **watch) -> None:
        train(model, data, steps=self.steps, batch_size=self.batch_size, lr=rate, generator=generator, **watch)

    def _curve(self, model: SequenceClassifier, sets: list[Data], rate: float, generator) -> pd.DataFrame:
        """Trains at a rate and judges on the way: the rows of stage "test"."""
        every, found = self.steps // self.checks, {}

        def check(step: int) -> None:
            if step % every == 0:
                found[step] = evaluate(model, sets[1])

        self._train(model, sets[0], rate, generator, watch=check)
        check(self.steps)
        loss, accuracy = (torch.stack(each, dim=-1) for each in zip(*found.values(), strict=True))
        index = {"stage": "test", "rate": rate, "replicate": range(self.replicates), "step": list(found)}
        columns = {"accuracy": accuracy, "loss": loss, "flop": self._flop(model, sets[0]) * torch.tensor(list(found))}
        fixed = {"rule": self.depth_1(*sets), "known": known(*sets)}
        return rows(index, columns | {name: each.unsqueeze(-1) for name, each in fixed.items()})

    def _flop(self, model: SequenceClassifier, data: Data) -> float:
        """Of the matrix products of one step of one network, there and back; counted, not timed."""
        batch = data.first(self.batch_size)
        # by plain matrix products, since the counter does not see into every fused kernel
        with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
            model(batch.tokens.long(), batch.lengths.long()).sum().backward()
        return counter.get_total_flops() / self.replicates

    def depth_1(self, train: Data, test: Data) -> Tensor:
        """Accuracy (R,) of the rule that evaluates the outermost list and knows the operators of those inside."""
        shares = []
        for seen, tokens, labels in zip(train.tokens.cpu(), test.tokens.cpu(), test.labels.cpu(), strict=True):
            trees = [parse(codes.long()) for codes in seen[:1500]]
            law = operator_law([*trees, ("SM", (0,))])  # SM never occurs, and every operator needs a list
            shares.append((torch.as_tensor(ShallowPredictor(1, law)(tokens.long().numpy())) == labels).double().mean())
        return torch.stack(shares)


def known(train: Data, test: Data) -> Tensor:
    """The share of a replicate's test strings that occur in its training set, (R,)."""
    sets = zip(train.tokens.cpu().numpy(), test.tokens.cpu().numpy(), strict=True)
    shares = [len(drawn & seen) / len(drawn) for seen, drawn in (({*map(bytes, a)}, {*map(bytes, b)}) for a, b in sets)]
    return torch.tensor(shares, dtype=torch.float64)
