"""Documents with a secret: which letter follows which is drawn for each, and only reading it tells. Novels, for a card.

Small models from scratch (rivals, tuned rates, longer training) and from a warm start. They stand in for the paper's
runs of 0.5 to 14 billion parameters. The loss of a fixed last block is judged.
"""

import itertools
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import normalize

from derived.lab import stats
from derived.lab.claims import RECORDED, at_least, statistic
from derived.lab.experiment import rows
from derived.lab.measure import Measure, chosen, lowest
from derived.lab.real import texts
from derived.lab.rng import stream
from derived.lab.stats import Estimate
from derived.lab.training import mean_cross_entropy

from . import trained
from .data import bigram_documents, bigram_floor
from .model.network import Memory, Size, SmallLM, of_another_text


@torch.no_grad()
def key_cosine(model: SmallLM, ids: Tensor) -> Tensor:
    """The mean cosine (R,) of the last block's keys of two different tokens that stand at one place of two texts."""
    keys, unlike = normalize(model.last_keys(ids), dim=-1), ids != ids.roll(1, dims=-2)
    cosines = (keys * keys.roll(1, dims=-3)).sum(dim=-1)
    return ((cosines * unlike).sum(dim=(-2, -1)) / unlike.sum(dim=(-2, -1))).double().cpu()


@dataclass(frozen=True, kw_only=True)
class Bigrams(trained.Trained):
    """Models of documents with private bigrams; what they share."""

    vocabulary: int = 128
    depth: int = 4
    final: int = 64  # tokens of the last block, whose loss is judged

    def texts(self, batch: int, generator, device, part: str = "train") -> Tensor:
        """Each network's own documents, (R, B, length + 1); ``part`` is train, valid or test."""
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

        return trained.fit(model, loss, steps=steps, rate=rate)

    @torch.no_grad()
    def final_loss(self, model: SmallLM, ids: Tensor, context: int, change=None) -> Tensor:
        """Nats per token of the last block of each document after ``context`` tokens before it, (R,)."""
        logits = model(ids[..., -1 - self.final - context : -1], change)[:, :, -self.final :]
        return mean_cross_entropy(logits, ids[..., -self.final :]).double().cpu()

    def judge(self, model: SmallLM, seed: int, device, change=None) -> dict[str, Tensor]:
        """The loss of the last block after all that is before it, for choosing and for judging, (R, 1)."""
        whole = self.length - self.final
        draw = {name: stream(seed, "documents", name) for name in ("valid", "test")}
        sets = {name: self.texts(self.judged, generator, device, name) for name, generator in draw.items()}
        return {name: self.final_loss(model, ids, whole, change).unsqueeze(-1) for name, ids in sets.items()}


@dataclass(frozen=True, kw_only=True)
class Documents(Bigrams):
    """IPT-13, after Figure 2: the loss of a fixed last block against the context before it, beside four rivals: window
    attention alone, GLA and DeltaNet in its place, LaCT and In-Place TTT on it; and a placebo, In-Place TTT that writes
    what another text would have written. Each arm is trained once for few steps and once for many, each time at rates a
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
        "ci": {**trained.CI, "vocabulary": 6, "final": 8, "contexts": (0, 24), "few": 5, "steps": 10, "rates": (1.0,)},
        "cpu": {**trained.SHORT, "contexts": (0, 4, 8, 16, 32), "few": 240, "steps": 1200},
        "gpu": {},
    }
    tiny: ClassVar = {"few": 2, "steps": 10}

    def conditions(self) -> list[dict]:
        trained = itertools.product((self.few, self.steps), self.RATE, self.rates)
        return [{"arm": arm, "steps": steps, "rate": self.RATE[arm] * factor} for steps, arm, factor in trained]

    def arm(self, arm: str) -> Size:
        """The size of an arm, with the parameters of the one that has most: LaCT."""
        fullest = self.size(self.vocabulary, self.depth, {}, mixer="lact")
        writes = arm in ("ttt", "placebo")
        memories = {i: Memory(chunk=self.chunk) for i in range(self.depth)} if writes else {}
        mixer = "window" if writes else arm
        return trained.as_many_parameters(self.size(self.vocabulary, self.depth, memories, mixer=mixer), fullest)

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        arm, steps = condition["arm"], condition["steps"]
        change = of_another_text if arm == "placebo" else None
        model = trained.build(self.arm(arm), self.networks, seed, device, dtype)
        ids = self.texts(self.judged, stream(seed, "documents", "test"), device, "test")
        untrained = key_cosine(model, ids)
        losses = self.train(model, seed, device, condition["rate"], steps, change=change)
        columns = {
            "loss": torch.stack([self.final_loss(model, ids, context, change) for context in self.contexts], dim=-1),
            **self.judge(model, seed, device, change),
            "off": self.judge(model, seed, device, torch.zeros_like)["test"],
            "floor": bigram_floor(self.vocabulary),
            "parameters": model.parameters_each,
            **{name: each.unsqueeze(-1) for name, each in trained.ends_of(losses).items()},
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
    """IPT-13.a, g: as in ``Documents``, with other draws and rates: after all steps window attention, In-Place TTT
    and the placebo; after few In-Place TTT with its taps and without ("token"), and the rivals. Rows as there."""

    rates: tuple[float, ...] = (1 / 1.6, 1.0, 1.6, 2.56)

    RATE: ClassVar = {"window": 2.5e-3, "ttt": 2.5e-3, "placebo": 2.5e-3}
    SOON: ClassVar = {"ttt": 4e-3, "token": 4e-3, "gla": 2.5e-3, "delta": 1e-2, "lact": 6.3e-3}
    tiers: ClassVar = {"ci": Documents.tiers["ci"], "cpu": Documents.tiers["cpu"] | {"steps": 2400}, "gpu": {}}

    def conditions(self) -> list[dict]:
        trained = ((self.few, self.SOON), (self.steps, self.RATE))
        arms = [(arm, steps, rate) for steps, rates in trained for arm, rate in rates.items()]
        return [{"arm": arm, "steps": steps, "rate": rate * by} for arm, steps, rate in arms for by in self.rates]

    def arm(self, arm: str) -> Size:
        if arm != "token":
            return super().arm(arm)
        bare = {i: Memory("none", chunk=self.chunk) for i in range(self.depth)}
        return trained.as_many_parameters(self.size(self.vocabulary, self.depth, bare), super().arm("lact"))

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        return super().run(condition, seed=seed + 2, device=device, dtype=dtype)


@cache
def letters(part: str) -> Tensor:
    """The novels of a part as ASCII, (N,): one to choose rates ("valid"), one to judge by ("test"), four to train on.
    FileNotFoundError where they are not here."""
    apart, novels = {"valid": "Northanger Abbey", "test": "Persuasion"}, texts.austen()
    names = [apart[part]] if part in apart else [name for name in novels if name not in apart.values()]
    return torch.tensor([*"".join(novels[name] for name in names).encode("ascii", "replace")])


@dataclass(frozen=True, kw_only=True)
class Novels(CatchUp):
    """IPT-20: as in ``CatchUp``, on novels, letter by letter, in texts of 4,096; window attention besides. For a card:
    the small size takes documents instead, so that nothing need be fetched. A condition is an arm at a rate, so that a
    run that stops loses minutes. Rows as there, in nats a letter; floor is that of documents alone.
    """

    networks: int = 8
    batch: int = 2
    steps: int = 2000
    depth: int = 4
    length: int = 4096
    final: int = 1024
    window: int = 128
    chunk: int = 128
    judged: int = 32
    contexts: tuple[int, ...] = (0, 512, 1024, 2048, 3072)
    rates: tuple[float, ...] = (1 / 2.56, 1 / 1.6, 1.0, 1.6, 2.56)
    generated: bool = False

    RATE: ClassVar = {"window": 2.5e-3, "ttt": 2.5e-3, "delta": 4e-3}
    tiers: ClassVar = {"ci": CatchUp.tiers["ci"] | {"generated": True}, "gpu": {}}

    def size(self, *given, **facts) -> Size:
        return replace(super().size(*given, **facts), long=True)

    def texts(self, batch: int, generator, device, part: str = "train") -> Tensor:
        if self.generated:
            return super().texts(batch, generator, device)
        whole = letters(part)
        begin = torch.randint(len(whole) - self.length, (self.networks * batch, 1), generator=generator)
        return self.own(whole[begin + torch.arange(self.length + 1)].to(device))


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

    tiers: ClassVar = {"ci": {**trained.CI, "vocabulary": 6, "final": 8, "pretraining": 3}, "gpu": {}}
    tiers |= {"cpu": {**trained.SHORT, "steps": 600, "pretraining": 1200, "rates": (2.5e-3, 4e-3, 6.3e-3)}}

    def conditions(self) -> list[dict]:
        return [{"start": start} for start in ("static", "zero", "random", "placebo")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        base = trained.build(self.size(self.vocabulary, self.depth, {}), self.networks, seed, device, dtype)
        self.train(base, seed, device, self.pretraining_rate, self.pretraining, "before")
        start, change = condition["start"], None
        if start == "placebo":
            start, change = "zero", of_another_text
        memories = {} if start == "static" else {self.depth - 1: Memory(chunk=self.chunk, start=start)}
        tables = []
        for rate in self.rates:
            model = trained.build(self.size(self.vocabulary, self.depth, memories), self.networks, seed, device, dtype)
            model.load_state_dict(base.state_dict(), strict=False)  # all but kernel and projection
            columns = {"base": self.judge(base, seed, device)["test"]}
            columns["first"] = self.judge(model, seed, device, change)["test"]
            self.train(model, seed, device, rate, self.steps, "after", change)
            columns |= self.judge(model, seed, device, change)
            columns = {name: each.squeeze(-1) for name, each in columns.items()}
            tables.append(rows({"replicate": range(self.networks)}, columns).assign(rate=rate))
        return pd.concat(tables, ignore_index=True).assign(floor=bigram_floor(self.vocabulary))


def at_plateau(measure: Measure, *arms: str) -> Measure:
    """The measure on models that were trained for all steps, if they are flat there."""
    return after("max", trained.if_flat(measure, *(f"arm == '{arm}'" for arm in arms)))


def ahead(arm: str, *rivals: str) -> Measure:
    """The loss of a rival less that of an arm, in the pair where it is least."""
    return trained.least_difference([(f"arm == '{rival}'", f"arm == '{arm}'") for rival in rivals])


def behind_when_off(*rivals: str) -> Measure:
    """The loss of a rival less that of In-Place TTT with its memory off, in the pair where it is least."""

    def measure(rows: pd.DataFrame) -> Estimate:
        level, off = 1 - (1 - stats.LEVEL) / len(rivals), trained.at_best_rate(rows, "arm == 'ttt'", "min")["off"]
        losses = (trained.at_best_rate(rows, f"arm == '{rival}'", "min")["test"] for rival in rivals)
        return lowest([stats.mean(loss - off, level) for loss in losses])

    return measure


def guessed(rows: pd.DataFrame) -> Estimate:
    """The loss of the model continued as it was less that of an even guess."""
    static = trained.at_best_rate(rows, "start == 'static'", "min")["test"]
    return stats.mean(static - np.log(WarmStart.at("cpu").vocabulary))


def after(steps: str, measure: Measure) -> Measure:
    """The measure on models that were trained for few steps, "min", or for all, "max"."""
    return lambda rows: measure(chosen(rows, f"steps == steps.{steps}()"))


def lost(arm: str) -> Measure:
    """What an arm loses by the switch, less half of its gain over window attention, after all steps."""
    return after("max", trained.lost_when_off(f"arm == '{arm}'", "arm == 'window'", "test", "min"))


def refuted_by_one(rows: pd.DataFrame) -> Estimate:
    """DeltaNet's loss less that of In-Place TTT, where that is below zero: then the other rivals do not matter."""
    found = at_plateau(ahead("ttt", "delta"), "delta", "ttt")(rows)
    if not found.high < 0:
        raise ValueError("DeltaNet alone does not refute it, and GLA was still falling where it was trained")
    return found


TOY = "documents of forty tokens over six letters, chunks of four, at equal parameters and steps"
SMALL = "models of 30,000 parameters on generated documents here"
NATS = {"unit": "nats per token", "judged_at": RECORDED}
ON_CPU = NATS | {"judged_at": ("cpu",)}
RIVALS = ("gla", "delta", "lact")
LETTERS = {"unit": "nats a letter", "judged_at": ("gpu",), "scale": {"gpu": "ours"}, "matters": 0.01}
LETTERS |= {"where": "models of about a million parameters, 2,000 steps on four novels, chunks of 128"}
PIECES = "of the last 1,024 of 4,096 letters of an unseen novel"

CLAIMS = (
    statistic(
        "IPT-13.a",
        "From scratch, at equal parameters and after as many steps, In-Place TTT on window attention has a lower loss "
        "on the last block of a document than window attention alone.",
        Tuned,
        at_plateau(ahead("ttt", "window"), "window", "ttt"),
        "loss of window attention less that of In-Place TTT on it; " + trained.PAIRED.format("one pair") + trained.FLAT,
        at_least(0),
        plain="Trained from scratch, a window model with In-Place TTT predicts long documents better than without.",
        where=f"Figure 2; {SMALL}",
        source="paper",
        control=after("max", behind_when_off("window")),
        comparison=("another text writes", at_plateau(ahead("placebo", "window"), "window", "placebo")),
        **NATS,
    ),
    statistic(
        "IPT-13.b",
        f"On {TOY}, In-Place TTT trained from scratch has a lower loss on the last block than GLA, DeltaNet and LaCT.",
        CatchUp,
        refuted_by_one,
        "loss of a rival less that of In-Place TTT; "
        + trained.PAIRED.format("DeltaNet, which judges if it refutes the statement alone")
        + trained.FLAT,
        at_least(0),
        **ON_CPU,
        plain="On short generated documents, it also beats gated linear attention, DeltaNet and LaCT.",
        where=f"Figure 2, on texts of 2k to 32k tokens; {SMALL}, and nothing is said of the paper's models",
        source="paper",
        control="one rival refutes the statement or nothing is judged, so that no arm can pass",
    ),
    statistic(
        "IPT-13.g",
        "After a tenth of the steps In-Place TTT has a lower loss on the last block of a document than GLA, DeltaNet "
        "and LaCT, of which DeltaNet alone can bind neighbours, by a short convolution: it learns sooner.",
        Tuned,
        after("min", ahead("ttt", *RIVALS)),
        "loss of a rival less that of In-Place TTT after few steps; "
        + trained.PAIRED.format("the lowest of three rivals"),
        at_least(0),
        control=after("min", behind_when_off(*RIVALS)),
        comparison=("without its look ahead", after("min", ahead("token", *RIVALS))),
        **NATS,
    ),
    statistic(
        "IPT-17.b",
        "After the same further training, a trained model with an inserted memory has a lower loss than the model "
        "continued as it was.",
        WarmStart,
        trained.least_difference([("start == 'static'", "start == 'zero'")]),
        "loss of the model as it was less that with the memory; " + trained.PAIRED.format("one pair"),
        at_least(0),
        source="paper",
        where="Section 3.4, by its words; models of 20,000 parameters that had learned generated documents",
        **ON_CPU,
        control=guessed,
        comparison=("another text writes", trained.least_difference([("start == 'static'", "start == 'placebo'")])),
    ),
    statistic(
        "IPT-19.b",
        "On generated documents, models that were trained with the memory lose more than half of what it gave them "
        "when it is switched off as it is read.",
        Documents,
        lost("ttt"),
        "loss added by the switch, less half of the gain over window attention, model by model, each arm at the rate "
        "that validation chose",
        at_least(0.1),
        **ON_CPU,
        control=lost("window"),  # it has no memory, so nothing to switch
        comparison=("another text writes", lost("placebo")),
    ),
    *(
        statistic(
            id,
            f"At equal parameters and steps, In-Place TTT on window attention has a lower loss {PIECES} than {name}.",
            Novels,
            ahead("ttt", rival),
            f"loss of {name} less that of In-Place TTT; " + trained.PAIRED.format("one pair"),
            at_least(0),
            control=behind_when_off(rival),
            **LETTERS,
        )
        for id, rival, name in (("IPT-20.a", "window", "window attention alone"), ("IPT-20.c", "delta", "DeltaNet"))
    ),
    statistic(
        "IPT-20.b",
        f"Switched off as it is read, a memory that was trained on novels loses over half of what it gave {PIECES}.",
        Novels,
        lost("ttt"),
        "loss added by the switch, less half of the gain over window attention, model by model",
        at_least(0.01),
        control=lost("window"),
        **LETTERS,
    ),
)
