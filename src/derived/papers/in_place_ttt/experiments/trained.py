"""Small models trained from scratch: recall beyond the window, chunk sizes, numbers of memories, rivals, a warm start.

Stands in for the paper's runs of 0.5 to 14 billion parameters. A replicate is one trained model with its own draw of
texts to train, to choose and to judge by; every arm reads the same at every rate, from the same initial weights, with
as many parameters as the largest arm. ``valid`` chooses the rate, ``test`` is judged.
"""

import itertools
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import normalize

from derived.lab.experiment import rows
from derived.lab.rng import stream
from derived.lab.training import mean_cross_entropy

from ..data.documents import bigram_documents, bigram_floor
from ..data.recall import NONE, blind_guess, mqar
from ..model.network import Memory, Size, SmallLM, moved, of_another_text
from .fits import CI, CPU, FINE, Trained, as_many_parameters, build, ends_of, fit

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
