"""Small models trained from scratch: recall beyond the window, chunk sizes, numbers of memories, rivals, a warm start.

Stands in for the paper's runs of 0.5 to 14 billion parameters. A replicate is one trained model with its own draw of
texts to train, to choose and to judge by; every arm reads the same at every rate, from the same initial weights, with
as many parameters as the largest arm. ``valid`` chooses the rate, ``test`` is judged.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats as scipy_stats
from torch import Tensor
from torch.nn.functional import normalize

from derived.lab import stats
from derived.lab.claims import RECORDED, at_least, at_most, computed, refuted, statistic, unseen
from derived.lab.experiment import rows
from derived.lab.measure import Measure, chosen, highest, largest, lowest
from derived.lab.plot import BLUE, COLOURS, DASHED, MUTED, apart, beside, mean_and_reach, panel_label
from derived.lab.plot import largest as largest_tier
from derived.lab.rng import stream
from derived.lab.stats import LEVEL, Estimate
from derived.lab.training import mean_cross_entropy

from .data.documents import bigram_documents, bigram_floor
from .data.recall import NONE, blind_guess, mqar
from .fits import CI, CPU, FINE, Trained, as_many_parameters, build, ends_of, fit
from .model.network import Memory, Size, SmallLM, moved, of_another_text

#: What writes in the last block: taps and projection.
WRITERS = {"both": ("conv", True), "conv": ("conv", False), "proj": ("none", True), "neither": ("none", False)}
WRITERS["past"] = ("past", True)


SHORT = {"length": 32, "window": 4, "chunk": 4}


def tenths(values: Tensor) -> tuple[list[int], Tensor]:
    """The step at which each tenth of a run ends, and the mean over it of values (R, steps)."""
    steps = values.shape[-1]
    parts = np.array_split(np.arange(steps), min(10, steps))
    return [int(part[-1]) + 1 for part in parts], torch.stack([values[:, part].mean(dim=-1) for part in parts], dim=-1)


@torch.no_grad()
def key_cosine(model: SmallLM, ids: Tensor) -> Tensor:
    """The mean cosine (R,) of the last block's keys of two different tokens that stand at one place of two texts."""
    keys, unlike = normalize(model.last_keys(ids), dim=-1), ids != ids.roll(1, dims=-2)
    cosines = (keys * keys.roll(1, dims=-3)).sum(dim=-1)
    return ((cosines * unlike).sum(dim=(-2, -1)) / unlike.sum(dim=(-2, -1))).double().cpu()


@dataclass(frozen=True, kw_only=True)
class Recall(Trained):
    """IPT-10, after Figure 3c: recall of pairs that no window reaches, by what is written and by depth; the last block
    writes. Window 1 ties each key to its own token, as the theorem does; "past" has no tap ahead. At tier cpu two
    blocks of window 8 reach 14 tokens back together, and a few pairs stand 13 before their query.

    Rows: depth, window, arm, rate, replicate, step (end of a tenth of the run), recall (of the training texts in that
    tenth, each seen once), valid, test, shuffled (test with the values moved by one chunk), reached (first step from
    which ten batches in a row have mean recall 0.9; all steps + 1 where none), parameters.
    """

    pairs: int = 64
    queries: int = 32
    keys: int = 128
    steps: int = 4000

    tiers: ClassVar = {
        "ci": {**CI, "pairs": 4, "queries": 3, "keys": 6, "steps": 10},
        "cpu": {
            **{**CPU, "networks": 16, "rates": (2.5e-3, 4e-3, *FINE), "judged": 256, "steps": 900},
            **{"length": 48, "pairs": 6, "queries": 6, "keys": 16},
        },
        "gpu": {},
    }
    tiny: ClassVar = {"steps": 2}

    def conditions(self) -> list[dict]:
        deep = [(depth, self.window, arm) for depth in (1, 2) for arm in ("both", "conv", "proj", "neither")]
        arms = [(1, self.window, "none"), *deep, *((1, 1, arm) for arm in ("both", "past", "proj"))]
        return [{"depth": D, "window": w, "arm": arm, "rate": rate} for D, w, arm in arms for rate in self.rates]

    def chance(self) -> float:
        """The best guess that knows no pair: the commonest value of a text."""
        return blind_guess(self.pairs, self.keys)

    def arm(self, depth: int, window: int, arm: str) -> Size:
        """The size of an arm, with as many parameters as the fullest."""
        vocabulary = 2 * self.keys + 8
        full = self.size(vocabulary, depth, {depth - 1: Memory("conv", True, self.chunk)})
        memories = {depth - 1: Memory(*WRITERS[arm], self.chunk)} if arm in WRITERS else {}
        return as_many_parameters(self.size(vocabulary, depth, memories, window=window), full)

    def texts(self, batch: int, generator, device) -> tuple[Tensor, Tensor]:
        """Tokens and labels of each network's own texts, (R, B, length)."""
        sizes = {"pairs": self.pairs, "queries": self.queries, "keys": self.keys}
        ids, labels, _ = mqar(self.networks * batch, self.length, **sizes, generator=generator)
        return self.own(ids.to(device)), self.own(labels.to(device))

    def asked(self, model: SmallLM, ids: Tensor, labels: Tensor, change=None) -> tuple[Tensor, Tensor]:
        """Logits (R, B Q, V) at the places that have a label, and these labels (R, B Q)."""
        there = labels != NONE
        return self.own(model(ids, change)[there]), self.own(labels[there])

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        size = self.arm(*(condition[name] for name in ("depth", "window", "arm")))
        model, generator, right = build(size, self.networks, seed, device, dtype), stream(seed, "recall texts"), []

        def loss(step: int) -> Tensor:
            logits, labels = self.asked(model, *self.texts(self.batch, generator, device))
            right.append((logits.argmax(dim=-1) == labels).float().mean(dim=-1))
            return mean_cross_entropy(logits, labels)

        fit(model, loss, steps=self.steps, rate=condition["rate"])
        recall = torch.stack(right, dim=-1).double().cpu()  # (R, steps)
        moving = recall.unfold(-1, min(10, self.steps), 1).mean(dim=-1) >= 0.9
        reached = torch.where(moving.any(dim=-1), moving.double().argmax(dim=-1), self.steps) + 1
        steps, means = tenths(recall)
        columns = {
            "recall": means,
            **{name: each.unsqueeze(-1) for name, each in self.judge(model, seed, device).items()},
            "reached": reached.unsqueeze(-1),
            "parameters": model.parameters_each,
        }
        return rows({"replicate": range(self.networks), "step": steps}, columns)

    @torch.no_grad()
    def judge(self, model: SmallLM, seed: int, device) -> dict[str, Tensor]:
        """Recall (R,) of the texts that choose the rate, of those that judge, and of these with chunks mixed up."""
        found, later = {}, moved(self.chunk)
        for name, texts, change in (("valid", "valid", None), ("test", "test", None), ("shuffled", "test", later)):
            drawn = self.texts(self.judged, stream(seed, "recall", texts), device)
            logits, labels = self.asked(model, *drawn, change)
            found[name] = (logits.argmax(dim=-1) == labels).double().mean(dim=-1).cpu()
        return found


@dataclass(frozen=True, kw_only=True)
class Bigrams(Trained):
    """Models of documents with private bigrams; what they share."""

    vocabulary: int = 128
    depth: int = 4
    final: int = 64  # tokens of the last block, whose loss is judged

    def texts(self, batch: int, generator, device) -> Tensor:
        """Each network's own documents, (R, B, length + 1)."""
        sizes = {"batch": self.networks * batch, "length": self.length + 1, "size": self.vocabulary}
        return self.own(bigram_documents(**sizes, generator=generator).to(device))

    def train(
        self, model: SmallLM, seed: int, device, rate: float, steps: int, name: str = "documents", change=None
    ) -> Tensor:
        """Next-token training on documents that are the same for all arms: losses (R, steps)."""
        generator = stream(seed, name)

        def loss(step: int) -> Tensor:
            ids = self.texts(self.batch, generator, device)
            return mean_cross_entropy(model(ids[..., :-1], change), ids[..., 1:])

        return fit(model, loss, steps=steps, rate=rate)

    @torch.no_grad()
    def final_loss(self, model: SmallLM, ids: Tensor, context: int, change=None) -> Tensor:
        """Nats per token of the last block of each document after ``context`` tokens before it, (R,)."""
        logits = model(ids[..., -1 - self.final - context : -1], change)[:, :, -self.final :]
        return mean_cross_entropy(logits, ids[..., -self.final :]).double().cpu()

    def judge(self, model: SmallLM, seed: int, device, change=None) -> dict[str, Tensor]:
        """The loss of the last block after all that is before it, for choosing and for judging, (R, 1)."""
        whole = self.length - self.final
        names = ("valid", "test")
        sets = {name: self.texts(self.judged, stream(seed, "documents", name), device) for name in names}
        return {name: self.final_loss(model, ids, whole, change).unsqueeze(-1) for name, ids in sets.items()}


@dataclass(frozen=True, kw_only=True)
class ChunkSizes(Bigrams):
    """IPT-11, after Figure 3b: the loss of documents' last blocks against the size of the chunk; one block that writes
    its own text, or, at three sizes, what another text would have written.

    Rows: writes ("own", "another"), chunk, rate, replicate, valid, test (nats per token), floor, parameters, late,
    before (of ``ends_of``).
    """

    chunks: tuple[int, ...] = (4, 8, 16, 32, 64, 128, 256)

    tiers: ClassVar = {
        "ci": {**CI, "vocabulary": 6, "final": 8, "chunks": (2, 8)},
        "cpu": {
            **{**CPU, "rates": (4e-3, 6.3e-3, 1e-2), "steps": 1200},
            **{"vocabulary": 16, "final": 16, "chunks": (2, 4, 8, 16, 32)},
        },
        "gpu": {},
    }
    tiny: ClassVar = {"chunks": (2, 4, 8)}

    def conditions(self) -> list[dict]:
        three = {self.chunks[0], self.chunks[len(self.chunks) // 2], self.chunks[-1]}
        arms = [("own", chunk) for chunk in self.chunks] + [("another", chunk) for chunk in sorted(three)]
        return [{"writes": writes, "chunk": chunk, "rate": rate} for writes, chunk in arms for rate in self.rates]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        size = self.size(self.vocabulary, 1, {0: Memory(chunk=condition["chunk"])})
        change = of_another_text if condition["writes"] == "another" else None
        model = build(size, self.networks, seed, device, dtype)
        losses = self.train(model, seed, device, condition["rate"], self.steps, change=change)
        columns = {name: each.squeeze(-1) for name, each in self.judge(model, seed, device, change).items()}
        facts = {"floor": bigram_floor(self.vocabulary), "parameters": model.parameters_each}
        return rows({"replicate": range(self.networks)}, columns | facts | ends_of(losses))


@dataclass(frozen=True, kw_only=True)
class Layers(Bigrams):
    """IPT-12, after Figure 3a: the loss of documents' last blocks against how many of four blocks write.

    Rows: memories, rate, replicate, valid, test (nats per token), floor, parameters, late, before (of ``ends_of``).
    """

    tiers: ClassVar = {
        "ci": {**CI, "vocabulary": 6, "final": 8},
        "cpu": {
            **{**CPU, "networks": 12, "rates": (4e-3, 6.3e-3, 1e-2), "steps": 1200},
            **{"vocabulary": 16, "final": 16, "width": 16, "inner": 32},
        },
        "gpu": {},
    }

    def conditions(self) -> list[dict]:
        return [{"memories": count, "rate": rate} for count in (0, 1, 2, 4) for rate in self.rates]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        places = {0: (), 1: (3,), 2: (1, 3), 4: (0, 1, 2, 3)}
        full, size = (
            self.size(self.vocabulary, 4, {i: Memory(chunk=self.chunk) for i in places[count]})
            for count in (4, condition["memories"])
        )
        model = build(as_many_parameters(size, full), self.networks, seed, device, dtype)
        losses = self.train(model, seed, device, condition["rate"], self.steps)
        columns = {name: each.squeeze(-1) for name, each in self.judge(model, seed, device).items()}
        facts = {"floor": bigram_floor(self.vocabulary), "parameters": model.parameters_each}
        return rows({"replicate": range(self.networks)}, columns | facts | ends_of(losses))


@dataclass(frozen=True, kw_only=True)
class Documents(Bigrams):
    """IPT-13, after Figure 2: the loss of a fixed last block against the context before it, beside four rivals: window
    attention alone, GLA and DeltaNet in its place, LaCT and In-Place TTT on it; and a placebo, In-Place TTT that writes
    what another text would have written. Each arm is trained for few steps and anew for many, each time at rates a
    factor of 1.6 around the one that a pilot preferred for it.

    Rows: arm, steps, rate, replicate, context, loss (nats per token), valid, test, off, floor, parameters, the mean
    training loss of the last tenth (late) and of the tenth before it (before), to see whether the curve is flat, and
    the mean cosine of the last block's keys of different tokens in different texts, at the start and in the end.
    """

    contexts: tuple[int, ...] = (0, 64, 128, 256, 448)
    depth: int = 2
    few: int = 2000
    steps: int = 20_000
    rates: tuple[float, ...] = (1 / 1.6, 1.0, 1.6)  # of the arm's in RATE

    RATE: ClassVar = {"window": 1e-2, "ttt": 4e-3, "placebo": 4e-3, "gla": 4e-3, "delta": 1e-2, "lact": 1e-2}
    tiers: ClassVar = {
        "ci": {**CI, "vocabulary": 6, "final": 8, "contexts": (0, 24), "few": 5, "steps": 10, "rates": (1.0,)},
        "cpu": {
            **{**CPU, **SHORT, "length": 40, "vocabulary": 6, "final": 8, "contexts": (0, 4, 8, 16, 32)},
            **{"few": 240, "steps": 1200, "rates": (1 / 1.6, 1.0, 1.6)},
        },
        "gpu": {},
    }
    tiny: ClassVar = {"few": 2, "steps": 10}

    def conditions(self) -> list[dict]:
        trained = itertools.product((self.few, self.steps), self.RATE, self.rates)
        return [{"arm": arm, "steps": steps, "rate": self.RATE[arm] * factor} for steps, arm, factor in trained]

    def arm(self, arm: str) -> Size:
        """The size of an arm, with the parameters of the one that has most: LaCT."""
        largest = self.size(self.vocabulary, self.depth, {}, mixer="lact")
        writes = arm in ("ttt", "placebo")
        memories = {i: Memory(chunk=self.chunk) for i in range(self.depth)} if writes else {}
        mixer = "window" if writes else arm
        return as_many_parameters(self.size(self.vocabulary, self.depth, memories, mixer=mixer), largest)

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        arm, steps = condition["arm"], condition["steps"]
        change = of_another_text if arm == "placebo" else None
        model = build(self.arm(arm), self.networks, seed, device, dtype)
        ids = self.texts(self.judged, stream(seed, "documents", "test"), device)
        untrained = key_cosine(model, ids)
        losses = self.train(model, seed, device, condition["rate"], steps, change=change)
        columns = {
            "loss": torch.stack([self.final_loss(model, ids, context, change) for context in self.contexts], dim=-1),
            **self.judge(model, seed, device, change),
            "off": self.judge(model, seed, device, torch.zeros_like)["test"],
            "floor": bigram_floor(self.vocabulary),
            "parameters": model.parameters_each,
            **{name: each.unsqueeze(-1) for name, each in ends_of(losses).items()},
            "cosine_untrained": untrained.unsqueeze(-1),
            "cosine": key_cosine(model, ids).unsqueeze(-1),
        }
        return rows({"replicate": range(self.networks), "context": self.contexts}, columns)


@dataclass(frozen=True, kw_only=True)
class CatchUp(Documents):
    """IPT-13.b, f: In-Place TTT and DeltaNet alone, as in ``Documents``, with more networks, trained for longer; every
    draw is another one than there. Rows as there."""

    networks: int = 12
    few: int = 0  # none are trained for few steps

    RATE: ClassVar = {arm: Documents.RATE[arm] for arm in ("ttt", "delta")}
    tiers: ClassVar = {"ci": Documents.tiers["ci"] | {"few": 0}}
    tiers |= {"cpu": Documents.tiers["cpu"] | {"networks": 12, "few": 0, "steps": 1500}}
    tiny: ClassVar = {"steps": 10}

    def conditions(self) -> list[dict]:
        return [each for each in super().conditions() if each["steps"]]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        return super().run(condition, seed=seed + 1, device=device, dtype=dtype)


@dataclass(frozen=True, kw_only=True)
class Tuned(Documents):
    """IPT-13.a, g: as in ``Documents``, with draws and rates of its own: after all steps window attention, In-Place TTT
    and the placebo; after few In-Place TTT with its taps and without ("token"), and the rivals. Rows as there."""

    rates: tuple[float, ...] = (1 / 1.6, 1.0, 1.6, 2.56)

    RATE: ClassVar = {"window": 2.5e-3, "ttt": 2.5e-3, "placebo": 2.5e-3}
    SOON: ClassVar = {"ttt": 4e-3, "token": 4e-3, "gla": 2.5e-3, "delta": 1e-2, "lact": 6.3e-3}
    tiers: ClassVar = {"ci": Documents.tiers["ci"], "gpu": {}}
    tiers |= {"cpu": Documents.tiers["cpu"] | {"rates": (1 / 1.6, 1.0, 1.6, 2.56), "steps": 2400}}

    def conditions(self) -> list[dict]:
        trained = ((self.few, self.SOON), (self.steps, self.RATE))
        arms = [(arm, steps, rate) for steps, rates in trained for arm, rate in rates.items()]
        return [{"arm": arm, "steps": steps, "rate": rate * by} for arm, steps, rate in arms for by in self.rates]

    def arm(self, arm: str) -> Size:
        if arm != "token":
            return super().arm(arm)
        bare = {i: Memory("none", chunk=self.chunk) for i in range(self.depth)}
        return as_many_parameters(self.size(self.vocabulary, self.depth, bare), super().arm("lact"))

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        return super().run(condition, seed=seed + 2, device=device, dtype=dtype)


@dataclass(frozen=True, kw_only=True)
class WarmStart(Bigrams):
    """IPT-17: a window model is trained; then it is continued as it is ("static"), with memories at the released start
    ("zero": kernel 0, diagonal projection) or at an arbitrary one ("random": taps of variance 1/5, dense projection),
    or at the released start with what another text would have written ("placebo").

    Rows: start, rate, replicate, base (loss of the trained model on the test set), first (the same set, right after the
    insertion), valid, test (after continuing), floor.
    """

    pretraining: int = 20_000
    pretraining_rate: float = 6.3e-3
    depth: int = 2
    rates: tuple[float, ...] = (2.5e-3, 4e-3, 6.3e-3)

    tiers: ClassVar = {"ci": {**CI, "vocabulary": 6, "final": 8, "pretraining": 3}, "gpu": {}}
    tiers |= {"cpu": {**CPU, **SHORT, "length": 40, "vocabulary": 6, "final": 8, "steps": 600, "pretraining": 1200}}
    tiers["cpu"]["rates"] = (2.5e-3, 4e-3, 6.3e-3)

    def conditions(self) -> list[dict]:
        return [{"start": start} for start in ("static", "zero", "random", "placebo")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        base = build(self.size(self.vocabulary, self.depth, {}), self.networks, seed, device, dtype)
        self.train(base, seed, device, self.pretraining_rate, self.pretraining, "before")
        start, change = condition["start"], None
        if start == "placebo":
            start, change = "zero", of_another_text
        memories = {} if start == "static" else {self.depth - 1: Memory(chunk=self.chunk, start=start)}
        tables = []
        for rate in self.rates:
            model = build(self.size(self.vocabulary, self.depth, memories), self.networks, seed, device, dtype)
            model.load_state_dict(base.state_dict(), strict=False)  # all but kernel and projection
            columns = {"base": self.judge(base, seed, device)["test"]}
            columns["first"] = self.judge(model, seed, device, change)["test"]
            self.train(model, seed, device, rate, self.steps, "after", change)
            columns |= self.judge(model, seed, device, change)
            columns = {name: each.squeeze(-1) for name, each in columns.items()}
            tables.append(rows({"replicate": range(self.networks)}, columns).assign(rate=rate))
        return pd.concat(tables, ignore_index=True).assign(floor=bigram_floor(self.vocabulary))


# Claims: IPT-10 to 13, 15 and 17: small trained models; criteria and expected verdicts were written before the run,
# unless a claim says otherwise.
#
# An arm stands at the rate that its validation texts choose; two arms are compared model by model, on the test texts.


def best_rate(rows: pd.DataFrame, arm: str, better: str = "max") -> float:
    """The rate of an arm's best mean ``valid``, the largest if several have it; none at which a model diverged.
    ValueError where no rate is left."""
    scores = chosen(rows, arm).groupby("rate")["valid"].agg(lambda each: each.mean(skipna=False)).dropna()[::-1]
    if scores.empty:
        raise ValueError(f"at every rate a model diverged where {arm}")
    return scores.idxmax() if better == "max" else scores.idxmin()


def at_best_rate(rows: pd.DataFrame, arm: str, better: str = "max") -> pd.DataFrame:
    """The rows of an arm at its best rate, one a model: the last, where a model has several."""
    best = chosen(rows, f"({arm}) and rate == {best_rate(rows, arm, better)}")
    return best.groupby("replicate").last(skipna=False)  # the last number of each column, and not the last before NaN


def mean_of(arms: Sequence[str], column: str, decides) -> Measure:
    """The mean of a column over the models of each arm, and the arm that decides; recall chooses the rate."""

    def measure(rows: pd.DataFrame):
        level = 1 - (1 - LEVEL) / len(arms)
        return decides([stats.mean(at_best_rate(rows, arm)[column], level) for arm in arms])

    return measure


def least_difference(pairs: Sequence[tuple[str, str]], column: str = "test", better: str = "min") -> Measure:
    """The mean of the first arm less that of the second, model by model, in the pair where it is least."""

    def measure(rows: pd.DataFrame):
        level, found = 1 - (1 - LEVEL) / len(pairs), []
        for one, other in pairs:
            first, second = (at_best_rate(rows, arm, better)[column] for arm in (one, other))
            found.append(stats.mean(first - second, level))
        return lowest(found)

    return measure


def least_factor(pairs: Sequence[tuple[str, str]]) -> Measure:
    """The geometric mean of the steps of the first arm over those of the second, in the pair where it is least."""
    logs = least_difference(pairs, "log_reached", "max")

    def measure(rows: pd.DataFrame):
        found = logs(rows.assign(log_reached=np.log(rows["reached"])))
        return Estimate(float(np.exp(found.value)), found.n, *np.exp([found.low, found.high]).tolist())

    return measure


def ends_over_middle(rows: pd.DataFrame) -> Estimate:
    """The loss at the smallest and at the largest chunk less that at the middle chunk which validation chooses."""
    sizes = sorted(rows["chunk"].unique())
    inner = {size: at_best_rate(rows, f"chunk == {size}", "min")["valid"].mean() for size in sizes[1:-1]}
    if not inner:
        raise ValueError(f"chunks of {sizes} have no middle")
    middle = f"chunk == {min(inner, key=inner.get)}"
    return least_difference([(f"chunk == {size}", middle) for size in (sizes[0], sizes[-1])])(rows)


def ends_of_own(rows: pd.DataFrame) -> Estimate:
    """``ends_over_middle`` of memories that write their own text, all of which are to be flat in training."""
    own = chosen(rows, "writes == 'own'")
    return if_flat(ends_over_middle, *(f"chunk == {size}" for size in sorted(own["chunk"].unique())))(own)


def last_lengthening(arm: str) -> Measure:
    """The loss of an arm at the longest context but one less that at the longest, model by model."""

    def measure(rows: pd.DataFrame):
        best = f"{arm} and rate == {best_rate(rows, arm, 'min')}"
        table = chosen(rows, best).pivot(index="replicate", columns="context", values="loss").sort_index(axis="columns")
        return stats.mean(table.iloc[:, -2] - table.iloc[:, -1])

    return measure


def if_flat(measure: Measure, *arms: str) -> Measure:
    """The measure; ValueError unless each of its arms is flat in training: the last tenth of the steps may take PLATEAU
    at most off its mean training loss."""

    def judged(rows: pd.DataFrame):
        for arm in arms:
            last = at_best_rate(rows, arm, "min")
            fall = (last["before"] - last["late"]).mean(skipna=False)
            if not fall <= PLATEAU:
                raise ValueError(f"{arm} is not at a plateau: the last tenth of the steps took {fall:.3f} off its loss")
        return measure(rows)

    return judged


def at_plateau(measure: Measure, *arms: str) -> Measure:
    """The measure on models that were trained for all steps, if they are flat there."""
    flat = if_flat(measure, *(f"arm == '{arm}'" for arm in arms))
    return lambda rows: flat(chosen(rows, "steps == steps.max()"))


def if_settled(measure: Measure, *arms: str) -> Measure:
    """The measure; ValueError where the last tenth of the steps adds more than PLATEAU to an arm's recall in training."""

    def judged(rows: pd.DataFrame):
        for arm in arms:
            some = chosen(rows, f"({arm}) and rate == {best_rate(rows, arm)}")
            means = some.pivot(index="replicate", columns="step", values="recall").sort_index(axis="columns").mean()
            if not means.iloc[-1] - means.iloc[-2] <= PLATEAU:
                raise ValueError(f"{arm} still learns: recall rose to {means.iloc[-1]:.3f} in the last tenth")
        return measure(rows)

    return judged


def over_rivals(arm: str) -> Measure:
    """The loss of a rival less that of an arm, in the pair where it is least."""
    return least_difference([(f"arm == '{rival}'", f"arm == '{arm}'") for rival in RIVALS])


def refuted_by_one(rows: pd.DataFrame) -> Estimate:
    """DeltaNet's loss less that of In-Place TTT, where that is below zero: then the other rivals do not matter."""
    found = at_plateau(least_difference([("arm == 'delta'", "arm == 'ttt'")]), "delta", "ttt")(rows)
    if not found.high < 0:
        raise ValueError("DeltaNet alone does not refute it, and GLA was still falling where it was trained")
    return found


def unread(rows: pd.DataFrame) -> Estimate:
    """In-Place TTT's loss less that of the same networks when their memory is not read."""
    ends = at_best_rate(chosen(rows, "steps == steps.max()"), "arm == 'ttt'", "min")
    return stats.mean(ends["test"] - ends["off"])


def after_few_steps(measure: Measure) -> Measure:
    """The measure on models that were trained for few steps."""
    return lambda rows: measure(chosen(rows, "steps == steps.min()"))


def recall(depth: int, arm: str, tied: bool = False) -> str:
    """The rows of an arm; ``tied``: window 1, so that the key of a token knows that token alone."""
    return f"depth == {depth} and arm == '{arm}' and window {'==' if tied else '>'} 1"


catching_up = at_plateau(least_difference([("arm == 'ttt'", "arm == 'delta'")]), "ttt", "delta")
MODELS = "mean over trained models at the rate that validation chose, {}"
PAIRED = "difference model by model, each arm at the rate that validation chose, {}"
JUDGED = {"judged_at": RECORDED}
SHARE = {"unit": "recall", **JUDGED}
NATS = {"unit": "nats per token", **JUDGED}
PLATEAU = 0.01  # nats per token
FLAT = ", each arm flat in training (the last tenth of the steps lowers its loss by at most 0.01)"
RIVALS = ("gla", "delta", "lact")
BLIND = round(Recall.at("cpu").chance(), 3)
NAMED = "naming the commonest value of a text, which knows no pair"

COUNTS = [f"memories == {count}" for count in (1, 2, 4)]
BARE = (recall(1, "proj", tied=True), recall(1, "past", tied=True))

CLAIMS = (
    statistic(
        "IPT-10.a",
        "A single block whose target looks ahead learns to recall pairs beyond its window, with the projection and without.",
        Recall,
        mean_of([recall(1, "both"), recall(1, "conv")], "test", lowest),
        MODELS.format("the worse of two arms"),
        at_least(0.9),
        plain="One block recalls pairs far outside its attention window if it writes what comes next.",
        where="after Figure 3c, whose numbers were not readable; generated texts here",
        source="digest",
        **SHARE,
        control=mean_of([recall(1, "none")], "test", lowest),
    ),
    refuted(
        "IPT-10.b",
        f"A single block with attention below its memory, but no tap ahead, is right no more often than {NAMED}.",
        Recall,
        mean_of([recall(1, "proj"), recall(1, "neither")], "test", highest),
        MODELS.format("the better of two arms"),
        at_most(BLIND),
        unit="recall",
        judged_at=("cpu",),
        where="a reading of Theorem 1 as a statement on blocks; a pilot with longer texts stood at 0.25 and was rising",
    ),
    statistic(
        "IPT-10.e",
        f"A single block whose keys know their own token alone, as in Theorem 1, is right at most 0.03 more often than {NAMED}, if no tap looks ahead.",
        Recall,
        if_settled(mean_of(BARE, "test", highest), *BARE),
        MODELS.format("the better of two arms")
        + ", neither of which gains more than 0.01 in the last tenth of the steps",
        at_most(round(BLIND + 0.03, 3)),
        amends="IPT-10.b",
        unit="recall",
        judged_at=("cpu",),
        control=mean_of([recall(1, "both", tied=True)], "test", highest),
    ),
    statistic(
        "IPT-10.c",
        "With two blocks the target that looks ahead reaches 90 % recall in at most half the steps of reconstruction, with a projection or with nothing learned.",
        Recall,
        least_factor([(recall(2, arm), recall(2, "both")) for arm in ("proj", "neither")]),
        "steps to 90 % recall, reconstruction over look-ahead, at least: all steps + 1 where never reached; geometric mean over "
        "models, each arm at the rate that validation chose, the lower of two arms, with a projection and with nothing learned",
        at_least(2),
        unit="times, at least",
        control=least_factor([(recall(2, "proj"), recall(2, "neither"))]),  # neither looks ahead
        where="after Figure 3c, whose numbers were not readable; of rates that are equally good the largest",
        source="digest",
        **JUDGED,
    ),
    statistic(
        "IPT-11",
        "A chunk size between the ends of the range has the lowest loss on documents with private bigrams.",
        ChunkSizes,
        ends_of_own,
        "loss at an end less that at the best middle chunk; " + PAIRED.format("the lower of two ends") + FLAT,
        at_least(0.1),
        where="Figure 3b: 512 and 1024 of 256 to 2048 are best, labels as retold; judged on generated documents",
        source="digest",
        **NATS,
        control=lambda rows: ends_over_middle(chosen(rows, "writes == 'another'")),
    ),
    statistic(
        "IPT-12",
        "From one to two and from two to four writing blocks the loss on documents with private bigrams falls each time, at equal parameters.",
        Layers,
        if_flat(least_difference([*pairwise(COUNTS)]), *COUNTS),
        "loss with fewer memories less that with more; " + PAIRED.format("the lower of two pairs") + FLAT,
        at_least(0),
        unit="nats per token",
        judged_at=RECORDED,
        where="Figure 3a: more state is better, labels as retold; judged on generated documents; what matters is as in IPT-11",
        source="digest",
        matters=0.1,
        control="without a memory no block writes, and there is nothing to count",
    ),
    statistic(
        "IPT-13.a",
        "From scratch, at equal parameters and after as many steps, In-Place TTT on window attention has a lower loss on the last block of a document than window attention alone.",
        Tuned,
        at_plateau(least_difference([("arm == 'window'", "arm == 'ttt'")]), "window", "ttt"),
        "loss of window attention less that of In-Place TTT on it; " + PAIRED.format("one pair") + FLAT,
        at_least(0),
        plain="Trained from scratch, a window model with In-Place TTT predicts long documents better than without.",
        where="Figure 2; models of 30,000 parameters on generated documents here",
        source="paper",
        **NATS,
        control=at_plateau(least_difference([("arm == 'window'", "arm == 'placebo'")]), "window", "placebo"),
    ),
    statistic(
        "IPT-13.b",
        "From scratch, at equal parameters and steps, In-Place TTT has a lower loss on the last block of a document than GLA, DeltaNet and LaCT.",
        CatchUp,
        refuted_by_one,
        "loss of a rival less that of In-Place TTT; "
        + PAIRED.format("DeltaNet, which judges if it refutes the statement alone")
        + FLAT,
        at_least(0),
        unit="nats per token",
        judged_at=("cpu",),
        plain="Trained from scratch, it also beats gated linear attention, DeltaNet and LaCT.",
        where="Figure 2; models of 30,000 parameters on generated documents here",
        source="paper",
        control="one rival refutes the statement or nothing is judged, so that no arm can pass",
    ),
    statistic(
        "IPT-13.c",
        "The loss of In-Place TTT on the last block of a document still falls at the last lengthening of the context before it, at our lengths.",
        Documents,
        at_plateau(last_lengthening("arm == 'ttt'"), "ttt"),
        "loss with the context before the longest less that with the longest, over trained models" + FLAT,
        at_least(0),
        where="Figure 2: still falling at 32k tokens; models of 30,000 parameters on generated documents here",
        horizon="contexts of 16 and 32 tokens, after which a reader who forgets nothing has next to nothing left to gain",
        source="paper",
        **NATS,
        control=at_plateau(last_lengthening("arm == 'window'"), "window"),
    ),
    statistic(
        "IPT-13.f",
        "Trained to a plateau, DeltaNet has a lower loss on the last block of a document than In-Place TTT.",
        CatchUp,
        catching_up,
        "loss of In-Place TTT less that of DeltaNet; " + PAIRED.format("one pair") + FLAT,
        at_least(0),
        control=unread,
        amends="IPT-13.b",
        unit="nats per token",
        judged_at=("cpu",),
    ),
    statistic(
        "IPT-13.g",
        "After a tenth of the steps In-Place TTT has a lower loss on the last block of a document than GLA, DeltaNet and LaCT, of which DeltaNet alone has a short convolution: it learns sooner.",
        Tuned,
        after_few_steps(over_rivals("ttt")),
        "loss of a rival less that of In-Place TTT after few steps; " + PAIRED.format("the lowest of three rivals"),
        at_least(0),
        control=after_few_steps(over_rivals("token")),  # it writes, without a tap
        **NATS,
    ),
    unseen(
        "IPT-15",
        "Continual training with In-Place TTT raises RULER scores of Qwen3-4B, LLaMA-3.1-8B and Qwen3-14B by 0.5 to 4.4 points, mostly at 64k tokens and beyond.",
        "needs the weights and 20 to 35 billion tokens; IPT-15.a has tasks like RULER's for small models, and IPT-10 and "
        "IPT-13 support the mechanism: none of them the scores",
        source="paper",
        where="Tables 1 and 2",
        paper_value="Qwen3-4B: 74.3 to 78.7 at 64k, 96.6 to 96.1 at 4k",
        plain="Continual training with In-Place TTT raises RULER scores of large models.",
    ),
    unseen(
        "IPT-15.c",
        "Models of 4 billion weights that are trained from scratch on texts of 8k tokens have higher RULER scores with In-Place TTT, on full and on window attention, at 4k, 8k and 16k tokens.",
        "needs 120 billion tokens an arm; IPT-13 and IPT-15.a are the nearest that we ran",
        source="paper",
        where="Table 3",
        paper_value="full attention: 38.1 to 43.8 at 8k; window attention: 9.9 to 26.8",
    ),
    computed(
        "IPT-17.a",
        "A trained model into which a memory is inserted at the released start has the loss that it had before.",
        WarmStart,
        largest(lambda rows: (rows["first"] - rows["base"]).abs(), "start == 'zero' and rate == rate.max()"),
        "largest difference over trained models, in float32",
        at_most(1e-6),
        unit="nats per token",
        source="paper",
        where="Section 3.4",
        control=largest(lambda rows: (rows["first"] - rows["base"]).abs(), "start == 'random'"),
        scale={},
    ),
    statistic(
        "IPT-17.b",
        "After the same further training, a trained model with an inserted memory has a lower loss than the model continued as it was.",
        WarmStart,
        least_difference([("start == 'static'", "start == 'zero'")]),
        "loss of the model as it was less that with the memory; " + PAIRED.format("one pair"),
        at_least(0),
        source="paper",
        where="Section 3.4, by its words; models of 20,000 parameters that had learned generated documents",
        unit="nats per token",
        judged_at=("cpu",),
        control=least_difference([("start == 'static'", "start == 'placebo'")]),
    ),
)


# Figures: Small trained models: rows in, a figure with its alt text as label out.
#
# mark                   meaning
# filled, open marker    recorded, live; bars are 99.9 % intervals over trained models
# small points           single models
# dashed                 chance, or the floor of the loss

WRITES = {
    "none": "no memory",
    "both": "taps, projection",
    "conv": "taps",
    "proj": "projection only",
    "neither": "the source itself",
    "past": "past taps only",
}
ARMS = {"window": "window", "ttt": "In-Place TTT", "gla": "GLA", "delta": "DeltaNet", "lact": "LaCT"}
ARMS |= {"placebo": "placebo"}
STARTS = {
    "static": "as it was",
    "placebo": "another text's\nwrites",
    "zero": "released start",
    "random": "random start",
}


def at_chosen_rate(rows: pd.DataFrame, arms: Sequence[str], better: str) -> pd.DataFrame:
    """The rows of each arm at the rate whose mean ``valid`` is best ("max" or "min"); a rate that diverged is none."""
    kept = []
    for _, part in rows.groupby(list(arms), sort=False):
        valid = part.groupby("rate")["valid"].agg(lambda each: each.mean(skipna=False)).dropna()
        if len(valid):
            kept.append(part[part["rate"] == (valid.idxmax() if better == "max" else valid.idxmin())])
    return pd.concat(kept, ignore_index=True)


def single_models(ax: Axes, x: float, values: pd.Series, color: str, recorded: bool) -> float:
    """Single models beside each other, and their mean with its interval; returns the mean."""
    mean, reach = mean_and_reach(values)
    shifts = 0.12 * np.sin(np.arange(len(values)) * 2.4)
    ax.plot(x + shifts, values, ".", color=color, alpha=0.4, markersize=4, zorder=2)
    face = color if recorded else "none"
    ax.errorbar(x, mean, reach, fmt="o", color=color, markerfacecolor=face, capsize=3, zorder=3)
    return mean


def recall_curves(rows: pd.DataFrame, chance: float) -> Figure:
    """Recall beyond the window, by depth, window and what is written; rows of ``Recall``; ``chance``: a blind guess."""
    rows = at_chosen_rate(largest_tier(rows), ["depth", "window", "arm"], "max")
    last = rows.groupby(["depth", "window", "arm", "replicate"], sort=False).last().reset_index()
    wide = last["window"].max()
    panels = {"one block": (1, wide), "one block, keys of the token alone": (1, 1), "two blocks": (2, wide)}
    counts = [len(last[(last["depth"] == D) & (last["window"] == w)]["arm"].unique()) for D, w in panels.values()]
    figure, axes = plt.subplots(1, 3, figsize=(7.8, 3.6), sharey=True, width_ratios=[n + 0.4 for n in counts])
    words = []
    for ax, (name, (depth, window)) in zip(axes, panels.items(), strict=True):
        part = last[(last["depth"] == depth) & (last["window"] == window)]
        arms = [arm for arm in WRITES if arm in set(part["arm"])]
        for x, arm in enumerate(arms):
            one = part[part["arm"] == arm]
            mean = single_models(ax, x, one["test"], COLOURS[[*WRITES].index(arm)], bool(one["recorded"].iloc[0]))
            words.append(f"{name}, {WRITES[arm]} {mean:.2f}")
        ax.axhline(chance, **DASHED)
        if ax is axes[0]:
            beside(ax, -0.5, chance, "commonest value", MUTED, (0, 8))
        ax.set(xticks=range(len(arms)), xlim=(-0.6, len(arms) - 0.4), ylim=(-0.03, 1.05))
        ax.set_xticklabels([WRITES[arm] for arm in arms], rotation=40, ha="right", fontsize=8)
        panel_label(ax, name if depth == 2 or window > 1 else "one block, bare keys")
    axes[0].set_ylabel("recall beyond the window")
    figure.set_label(
        f"Recall of trained models, means: {'; '.join(words)}. "
        f"Dashed: naming the commonest value of the text, {chance:.2f}."
    )
    return figure


def learning(rows: pd.DataFrame) -> Figure:
    """Recall of the training texts against steps, at the chosen rate; rows of ``Recall``."""
    rows = at_chosen_rate(largest_tier(rows), ["depth", "window", "arm"], "max")
    rows = rows[rows["window"] == rows["window"].max()]
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.0), sharey=True)
    words = []
    for ax, depth in zip(axes, (1, 2), strict=True):
        curves = rows[(rows["depth"] == depth) & rows["arm"].isin(["both", "conv", "proj", "neither"])]
        ends = curves[curves["step"] == curves["step"].max()].groupby("arm", sort=False)["recall"].mean()
        places = apart(ends.to_numpy(), 0.075)
        places = dict(zip(ends.index, places - max(0.0, places.max() - 1.03), strict=True))  # none above the panel
        for arm, part in curves.groupby("arm", sort=False):
            color = COLOURS[[*WRITES].index(arm)]
            ax.plot(*_fan(part, "recall"), color=color)
            for _, one in part.groupby("replicate"):
                ax.plot(one["step"], one["recall"], color=color, alpha=0.18, linewidth=0.7)
            beside(ax, part["step"].max(), places[arm], WRITES[arm], color, (4, 0), fontsize=8)
            words.append(f"{depth} deep, {WRITES[arm]} {ends[arm]:.2f}")
        ax.set(xlabel="training step", ylim=(-0.03, 1.05), xlim=(0, 1.42 * curves["step"].max()))
        panel_label(ax, "one block" if depth == 1 else "two blocks")
    axes[0].set_ylabel("recall")
    figure.set_label(
        f"Recall of training texts against steps, single models and their means; at the end {'; '.join(words)}."
    )
    return figure


def _fan(rows: pd.DataFrame, column: str) -> tuple[np.ndarray, np.ndarray]:
    mean = rows.groupby("step")[column].mean()
    return mean.index.to_numpy(), mean.to_numpy()


def documents(rows: pd.DataFrame) -> Figure:
    """Loss of the last block against the context before it, after few steps and after all; rows of ``Documents``."""
    rows = at_chosen_rate(largest_tier(rows), ["steps", "arm"], "min")
    steps, contexts = sorted(rows["steps"].unique()), sorted(rows["context"].unique())
    figure, axes = plt.subplots(1, len(steps), figsize=(8.0, 3.5), sharey=True)
    words = []
    for ax, count in zip(axes, steps, strict=True):
        part = rows[rows["steps"] == count]
        ends = part[part["context"] == contexts[-1]].groupby("arm", sort=False)["loss"].mean()
        places = dict(zip(ends.index, apart(ends.to_numpy(), 0.06 * (np.ptp(rows["loss"]) or 1)), strict=True))
        for color, arm in ((COLOURS[[*ARMS].index(arm)], arm) for arm in ends.index):
            _against_context(ax, part[part["arm"] == arm], color)
            beside(ax, contexts[-1], places[arm], ARMS[arm], color, (6, 0), fontsize=8)
        ax.axhline(part["floor"].iloc[0], xmax=1.02 / 1.52, **DASHED)  # as far as the curves
        ax.set(xlabel="context before the last block (tokens)", xlim=(-0.02 * contexts[-1], 1.5 * contexts[-1]))
        ax.set_xticks(contexts)
        panel_label(ax, f"{count:,} steps")
        words.append(f"after {count} steps {', '.join(f'{ARMS[arm]} {ends[arm]:.3f}' for arm in ends.index)}")
    axes[0].set_ylabel("loss of the last block (nats per token)")
    beside(axes[0], 0, rows["floor"].iloc[0], "floor", MUTED, (0, 6))
    figure.set_label(
        f"Loss of a fixed last block against the context before it. With {contexts[-1]} tokens before it: "
        f"{'; '.join(words)}. Floor {rows['floor'].iloc[0]:.3f}."
    )
    return figure


def _against_context(ax: Axes, rows: pd.DataFrame, color: str) -> None:
    face = color if rows["recorded"].iloc[0] else "none"
    found = [(at, *mean_and_reach(one["loss"])) for at, one in rows.groupby("context")]
    at, value, reach = (np.array(each) for each in zip(*found, strict=True))
    ax.errorbar(at, value, reach, fmt="-o", color=color, markerfacecolor=face, markersize=4)


def sizes(chunks: pd.DataFrame, layers: pd.DataFrame | None = None) -> Figure:
    """Loss of the last block against chunk size, and number of memories; rows of ``ChunkSizes`` and of ``Layers``."""
    panels = [(chunks, "chunk")] + ([] if layers is None else [(layers, "memories")])
    figure, axes = plt.subplots(1, len(panels), figsize=(3.9 * len(panels), 3.0), squeeze=False)
    labels, words = {"chunk": "tokens per chunk $C$", "memories": "blocks of four that write"}, []
    for ax, (table, column) in zip(axes[0], panels, strict=True):
        table = largest_tier(table)
        table = at_chosen_rate(table[table["writes"] == "own"] if "writes" in table else table, [column], "min")
        found, means, values = [], [], sorted(table[column].unique())
        places = np.log2(values) if column == "chunk" else values
        for x, value in zip(places, values, strict=True):
            part = table[table[column] == value]
            mean = single_models(ax, x, part["test"], BLUE, bool(part["recorded"].iloc[0]))
            found.append(f"{mean:.3f} at {value}")
            means.append(mean)
        if "floor" in table:
            ax.axhline(table["floor"].iloc[0], **DASHED)
            if ax is axes[0, 0]:
                beside(ax, places[0], table["floor"].iloc[0], "least possible loss", MUTED, (0, 7))
        if column == "chunk":
            panel_label(ax, f"in the mean, chunks of {values[int(np.argmin(means))]} tokens do best")
        else:
            panel_label(ax, f"one block that writes: {means[1]:.2f}, {values[-1]} blocks: {means[-1]:.2f}")
        ax.set_xticks(places, values)
        ax.set(xlabel=labels[column])
        words.append(f"{column}: {', '.join(found)}")
    axes[0, 0].set_ylabel("loss of the last block (nats per token)")
    figure.set_label(f"Loss of the last block, means over trained models, by {'; by '.join(words)}.")
    return figure


def warm(rows: pd.DataFrame) -> Figure:
    """Loss above that of the trained model, right after the insertion and after further training; rows of
    ``WarmStart``."""
    rows = at_chosen_rate(largest_tier(rows), ["start"], "min")
    figure, ax = plt.subplots(figsize=(6.2, 3.4))
    words, base = [], rows["base"].mean()
    recorded = bool(rows["recorded"].iloc[0])
    for x, (start, name) in enumerate(STARTS.items()):
        part = rows[rows["start"] == start]
        first = single_models(ax, x - 0.18, part["first"] - part["base"], MUTED, recorded)
        after = single_models(ax, x + 0.18, part["test"] - part["base"], BLUE, recorded)
        words.append(f"{name.replace(chr(10), ' ')} {first:+.3f}, then {after:+.3f}")
        if x == len(STARTS) - 1:
            beside(ax, x - 0.18, first, "right after\nthe insertion", MUTED, (-8, 0), ha="right")
            beside(ax, x + 0.18, after, "trained further", BLUE, (-8, 0), ha="right")
    ax.axhline(0, **DASHED)
    ax.set(
        xticks=range(len(STARTS)),
        xlim=(-0.6, len(STARTS) - 0.4),
        ylabel="loss above the trained\nmodel's (nats per token)",
    )
    ax.set_xticklabels(list(STARTS.values()))
    figure.set_label(f"Loss less that of the trained model, {base:.3f}: {'; '.join(words)}.")
    return figure


def of_recall(depth: int, window: int, arm: str) -> str:
    """An arm of ``Recall`` in words.

    >>> of_recall(1, 8, "conv"), of_recall(1, 1, "past")
    ('one block: taps', 'one block, bare keys: past taps only')
    """
    blocks = "one block" if depth == 1 else "two blocks"
    return f"{blocks}{', bare keys' if window == 1 else ''}: {WRITES[arm]}"


def compared(
    rows: pd.DataFrame, arms: Sequence[str], column: str, better: str, against: Any, words: Callable[..., str] = str
) -> pd.DataFrame:
    """Each arm at its rate: mean of a column over models, and its difference, model by model, from the arm ``against``,
    each with half its 95 % and its 99.9 % interval; the last is the smallest difference that could have been seen.
    ``words`` says what an arm is called, from its values in the columns ``arms``."""
    last = at_chosen_rate(rows, arms, better).groupby([*arms, "replicate"], sort=False).last().reset_index()
    values = last.pivot(index="replicate", columns=list(arms), values=column)
    rate = last.groupby(list(arms), sort=False)["rate"].first()
    reference, table = values[against], []
    for arm in rate.index:
        name = words(*(arm if isinstance(arm, tuple) else (arm,)))
        own, gap = values[arm], values[arm] - reference
        row = {"arm": name, "rate": rate[arm], "mean": own.mean(), **_reaches(own)}
        table.append(row | {"difference": gap.mean(), **_reaches(gap, "its ")})
    return pd.DataFrame(table).set_index("arm")


def _reaches(values: pd.Series, prefix: str = "") -> dict[str, float]:
    error, n = values.std() / len(values) ** 0.5, len(values)
    return {f"{prefix}± {level:.3g} %": scipy_stats.t.ppf(0.5 + level / 200, n - 1) * error for level in (95, 99.9)}
