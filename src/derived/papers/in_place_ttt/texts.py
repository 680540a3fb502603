"""Small models on texts nearer to those of the paper: needles like RULER's, and real text that every machine has.

Two blocks of window attention whose MLPs write, and the same without, at equal parameters, on the same texts from the
same initial weights; ``valid`` chooses the rate of each arm, ``test`` is judged. A replicate is one trained model with
its own draw of texts to train, to choose and to judge by.
"""

from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from matplotlib.figure import Figure
from torch import Tensor

from derived.lab import stats
from derived.lab.claims import RECORDED, at_least, statistic
from derived.lab.experiment import rows
from derived.lab.measure import Decides, Measure, highest, lowest
from derived.lab.plot import BLUE, MUTED, RED, beside, largest, mean_and_reach, panel_label
from derived.lab.rng import stream
from derived.lab.training import mean_cross_entropy

from .data.needles import FIRST, ruler_like
from .data.needles import TASKS as ALL_TASKS
from .data.sources import python_bytes
from .fits import CI, CPU, FINE, Trained, as_many_parameters, build, ends_of, fit
from .model.network import Memory, Size, SmallLM, moved
from .trained import (
    FLAT,
    PAIRED,
    at_best_rate,
    at_chosen_rate,
    if_flat,
    last_lengthening,
    least_difference,
    single_models,
)

DEPTH = 2


def arm(trained: Trained, vocabulary: int, chunk: int) -> Size:
    """Two blocks that write chunks of this size, or none for ``chunk`` = 0, with as many parameters either way."""
    full, size = (
        trained.size(vocabulary, DEPTH, {i: Memory(chunk=each) for i in range(DEPTH)} if each else {})
        for each in (trained.chunk, chunk)
    )
    return as_many_parameters(size, full)


def missed(logits: Float[Tensor, "R B V"], answers: Int[Tensor, "R B 4"]) -> Float[Tensor, "R B"]:
    """The share of a text's k answers that are not among the k largest logits; -1 stands for no answer.

    >>> missed(torch.tensor([[[3.0, 2.0, 1.0, 0.0]]]), torch.tensor([[[1, 3, -1, -1]]]))
    tensor([[0.5000]])
    """
    real = answers >= 0
    counts = real.sum(dim=-1, keepdim=True)
    best = logits.topk(answers.shape[-1], dim=-1).indices
    named = (best.unsqueeze(-1) == answers.unsqueeze(-2)).any(dim=-1) & (torch.arange(4, device=best.device) < counts)
    return 1 - named.sum(dim=-1) / counts.squeeze(-1)


@dataclass(frozen=True, kw_only=True)
class OnNeedles(Trained):
    """Models of four tasks like RULER's, one for all of them. The question ends the text and is answered there."""

    words: int = 64
    batch: int = 8  # texts of each task

    def texts(self, task: str, batch: int, generator, device) -> tuple[Tensor, Tensor]:
        """Each network's own: tokens up to the word that is asked for, (R, B, length - 1), and answers (R, B, 4)."""
        found = ruler_like(task, self.networks * batch, self.length, words=self.words, generator=generator)
        return self.own(found.ids[:, :-1].to(device)), self.own(found.answers.to(device))

    def trained(self, condition: dict, seed: int, device, dtype) -> tuple[pd.DataFrame, Float[Tensor, "R steps"]]:
        """The rows of an arm, and its training losses."""
        size = arm(self, self.words + FIRST, condition["chunk"])
        model, generator = build(size, self.networks, seed, device, dtype), stream(seed, "needles")

        def loss(step: int) -> Tensor:
            drawn = [self.texts(task, self.batch, generator, device) for task in ALL_TASKS]
            ids, answers = (torch.cat(each, dim=1) for each in zip(*drawn, strict=True))
            real = answers >= 0
            logs = model(ids)[:, :, -1].log_softmax(dim=-1).gather(-1, answers.clamp(min=0))
            return -((logs * real).sum(dim=-1) / real.sum(dim=-1)).mean(dim=-1)

        losses = fit(model, loss, steps=self.steps, rate=condition["rate"])
        judged = (("valid", False), ("test", False), ("test", True))
        valid, test, shuffled = (self.judge(model, seed, device, *which) for which in judged)
        columns = {"valid": valid.mean(dim=-1, keepdim=True), "test": test, "shuffled": shuffled}
        facts = {"usual": condition["chunk"] in (0, self.chunk), "parameters": model.parameters_each}
        return rows({"replicate": range(self.networks), "task": list(ALL_TASKS)}, facts | columns), losses

    @torch.no_grad()
    def judge(self, model: SmallLM, seed: int, device, texts: str, shuffle: bool) -> Float[Tensor, "R tasks"]:
        """Shares of the answers missed, a task each."""
        found = []
        for task in ALL_TASKS:
            ids, answers = self.texts(task, self.judged, stream(seed, "needles", texts, task), device)
            logits = model(ids, moved(self.chunk) if shuffle else None)[:, :, -1]
            found.append(missed(logits, answers).mean(dim=-1).double().cpu())
        return torch.stack(found, dim=-1)


FEW = {**CI, "words": 9, "batch": 1}
SHORT = {**CPU, "length": 32, "words": 12, "window": 4, "batch": 4}


@dataclass(frozen=True, kw_only=True)
class Needles(OnNeedles):
    """The nearest to IPT-15 that can be run: answers missed in four tasks like RULER's, one model for all of them, with
    chunks of several sizes (IPT-11) and without a memory (chunk 0). The question ends the text and is answered there.

    Rows: chunk, usual (no memory, or the usual chunk), rate, replicate, task, valid (mean over the tasks), test,
    shuffled (test, the values moved by one chunk against their keys), in shares of the answers missed; parameters.
    """

    chunks: tuple[int, ...] = (4, 8, 16, 32, 64, 128, 256)

    tiers: ClassVar = {
        "ci": {**FEW, "chunks": (2, 4, 8)},
        "cpu": {**SHORT, "chunks": (2, 4, 8, 16), "steps": 400},
        "gpu": {},
    }
    tiny: ClassVar = {"steps": 2}

    def conditions(self) -> list[dict]:
        return [{"chunk": chunk, "rate": rate} for chunk in (0, *self.chunks) for rate in self.rates]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        return self.trained(condition, seed, device, dtype)[0]


@dataclass(frozen=True, kw_only=True)
class SettledNeedles(OnNeedles):
    """IPT-15.a: ``Needles`` with the usual chunk and without a memory alone, trained until the loss hardly falls,
    each at rates of its own around the one that the shorter run preferred for it; other draws than there.

    Rows as there, and late, before (of ``ends_of``).
    """

    rates: tuple[float, ...] = (1e-3, 1.6e-3, 2.5e-3, 4e-3, 6.3e-3, 1e-2)  # with a memory
    without: tuple[float, ...] = (6.3e-4, 1e-3, 1.6e-3, 2.5e-3, 4e-3, 6.3e-3)
    steps: int = 10_000

    tiers: ClassVar = {
        "ci": {**FEW, "rates": (6.3e-3, 1e-2), "without": (4e-3,), "steps": 10},
        "cpu": {**SHORT, "steps": 2000},
        "gpu": {},
    }
    tiny: ClassVar = {"steps": 10}

    def conditions(self) -> list[dict]:
        rates = ((chunk, rate) for chunk, rates in ((0, self.without), (self.chunk, self.rates)) for rate in rates)
        return [{"chunk": chunk, "rate": rate} for chunk, rate in rates]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        found, losses = self.trained(condition, seed + 1, device, dtype)
        return found.join(pd.DataFrame(ends_of(losses)), on="replicate")


@dataclass(frozen=True, kw_only=True)
class SourceBytes(Trained):
    """IPT-13 on real text: the loss of a last block of bytes against the context before it, with a memory and without.
    The text is an installed package's Python sources: nine tenths to train, the rest, halved, to choose and to judge.

    Rows: chunk (0: no memory), rate, replicate, context, loss (nats per byte), valid, test (after the longest context),
    parameters, late, before (of ``ends_of``).
    """

    package: str = "torch"
    size_of_text: int = 2**25
    length: int = 4096
    final: int = 64
    contexts: tuple[int, ...] = (0, 64, 256, 1024, 4032)
    steps: int = 4000

    tiers: ClassVar = {
        "ci": {**CI, "size_of_text": 2**12, "final": 8, "contexts": (0, 24), "steps": 10},
        "cpu": {
            **{**CPU, "networks": 16, "rates": FINE, "steps": 1200},
            **{"length": 128, "size_of_text": 2**22, "final": 32, "contexts": (0, 32, 96)},
        },
        "gpu": {},
    }
    tiny: ClassVar = {"steps": 10}

    def conditions(self) -> list[dict]:
        return [{"chunk": chunk, "rate": rate} for chunk in (0, self.chunk) for rate in self.rates]

    def parts(self) -> dict[str, Int[Tensor, "bytes"]]:
        """The bytes to train on, to choose by and to judge by, one after the other in the text."""
        text = python_bytes(self.package, self.size_of_text)
        n = len(text)
        cuts = {"train": (0, 9 * n // 10), "valid": (9 * n // 10, 19 * n // 20), "test": (19 * n // 20, n)}
        return {name: text[begin:end] for name, (begin, end) in cuts.items()}

    def texts(self, part: Int[Tensor, "bytes"], batch: int, generator, device) -> Int[Tensor, "R B n"]:
        """Each network's own pieces of ``length`` + 1 bytes, from anywhere in a part."""
        begin = torch.randint(len(part) - self.length, (self.networks, batch, 1), generator=generator)
        return part[begin + torch.arange(self.length + 1)].to(device)

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        model = build(arm(self, 256, condition["chunk"]), self.networks, seed, device, dtype)
        parts, generator = self.parts(), stream(seed, "bytes")

        def loss(step: int) -> Tensor:
            ids = self.texts(parts["train"], self.batch, generator, device)
            return mean_cross_entropy(model(ids[..., :-1]), ids[..., 1:])

        losses = fit(model, loss, steps=self.steps, rate=condition["rate"])
        valid, test = (
            self.texts(parts[name], self.judged, stream(seed, "bytes", name), device) for name in ("valid", "test")
        )
        at = torch.stack([self.final_loss(model, test, context) for context in self.contexts], dim=-1)
        columns = {
            "loss": at,
            "valid": self.final_loss(model, valid, self.contexts[-1]).unsqueeze(-1),
            "test": at[:, -1:],
            "parameters": model.parameters_each,
            **{name: each.unsqueeze(-1) for name, each in ends_of(losses).items()},
        }
        return rows({"replicate": range(self.networks), "context": self.contexts}, columns)

    @torch.no_grad()
    def final_loss(self, model: SmallLM, ids: Tensor, context: int) -> Float[Tensor, "R"]:
        """Nats per byte of the last block of each piece after ``context`` bytes before it."""
        logits = model(ids[..., -1 - self.final - context : -1])[:, :, -self.final :]
        return mean_cross_entropy(logits, ids[..., -self.final :]).double().cpu()


# Claims: IPT-13 and 15 on needles and on real text; criteria and expected verdicts were written before the run.
#
# An arm stands at the rate that its validation texts choose; two arms are compared model by model, on the test texts.

TASKS = ("needle", "needles", "tracking")  # in "common" models that read moved values miss as many
WITH, WITHOUT = "usual and chunk > 0", "chunk == 0"


def missed_without_less(column: str, decides: Decides) -> Measure:
    """The share missed without a memory less that in a column with it, model by model, in the task that decides."""

    def measure(rows: pd.DataFrame):
        level, found = 1 - (1 - stats.LEVEL) / len(TASKS), []
        for task in TASKS:
            without, memory = (at_best_rate(rows, f"{arm} and task == '{task}'", "min") for arm in (WITHOUT, WITH))
            found.append(stats.mean(without["test"] - memory[column], level))
        return decides(found)

    return measure


CLAIMS = (
    statistic(
        "IPT-13.d",
        "From scratch, at equal parameters, In-Place TTT on window attention has a lower loss on the last block of real text, the bytes of Python sources, than window attention alone.",
        SourceBytes,
        if_flat(least_difference([(WITHOUT, "chunk > 0")]), WITHOUT, "chunk > 0"),
        "loss of window attention less that of In-Place TTT on it; " + PAIRED.format("one pair") + FLAT,
        at_least(0),
        unit="nats per byte",
        judged_at=RECORDED,
        where="Figure 2, on the Pile and Proof-Pile-2; small models on Python sources here, window attention at the largest "
        "of three rates",
        source="paper",
        control="an arm that writes another text was not run here; IPT-13.a, which asks the same of generated texts, has one",
        made_of="real data",
    ),
    statistic(
        "IPT-13.e",
        "On real text, too, the loss of In-Place TTT still falls at the last lengthening of the context before the block.",
        SourceBytes,
        if_flat(last_lengthening("chunk > 0"), "chunk > 0"),
        "loss with the context before the longest less that with the longest, over trained models" + FLAT,
        at_least(0),
        unit="nats per byte",
        judged_at=RECORDED,
        where="Figure 2: still falling at 32k tokens; small models on Python sources here",
        source="paper",
        control=last_lengthening("chunk == 0"),
        made_of="real data",
    ),
    statistic(
        "IPT-15.a",
        "In each of three tasks like RULER's, one needle, one of several and a chain of variables, a small window model with the memory misses fewer answers than one without, at equal parameters.",
        SettledNeedles,
        if_flat(missed_without_less("test", lowest), WITHOUT, WITH),
        "share missed without less that with the memory; " + PAIRED.format("the lowest of three tasks") + FLAT,
        at_least(0),
        unit="share of answers",
        judged_at=RECORDED,
        where="the nearest to Tables 1 and 2 that can be run here: one small model for all tasks, trained on them",
        control=missed_without_less("shuffled", highest),  # in none of the tasks may it pass
    ),
)


# Figures: Models on needles and on real text: rows in, a figure with its alt text as label out.
#
# mark                   meaning
# filled, open marker    recorded, live; bars are 99.9 % intervals over trained models
# small points           single models

TASK_NAMES = {"needle": "one needle", "needles": "four needles", "tracking": "tracking", "common": "common word"}


def needles(rows: pd.DataFrame) -> Figure:
    """Share of the answers missed, by task with and without the memory, and by chunk size; rows of ``Needles``."""
    rows = at_chosen_rate(largest(rows), ["chunk"], "min")
    recorded = bool(rows["recorded"].iloc[0])
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.8, 3.3), sharey=True, width_ratios=[1.2, 1])
    words = []
    for x, (task, name) in enumerate(TASK_NAMES.items()):
        part = rows[(rows["task"] == task) & rows["usual"]]
        means = [
            single_models(left, x + shift, part[(part["chunk"] > 0) == written]["test"], color, recorded)
            for shift, color, written in ((-0.15, MUTED, False), (0.15, BLUE, True))
        ]
        words.append(f"{name} {means[0]:.2f} without and {means[1]:.2f} with it")
    left.set(xticks=range(len(TASK_NAMES)), ylabel="share of the answers missed", ylim=(-0.03, 1.05))
    left.set_xticklabels(list(TASK_NAMES.values()), fontsize=8)
    left.text(-0.3, 0.03, "without", color=MUTED, fontsize=8)
    left.text(0.25, 0.03, "with the memory", color=BLUE, fontsize=8)
    part = rows[(rows["task"] == "needles") & (rows["chunk"] > 0)]
    sizes, ends = sorted(part["chunk"].unique()), []
    for x, size in zip(np.log2(sizes), sizes, strict=True):
        ends.append(f"{single_models(right, x, part[part['chunk'] == size]['test'], BLUE, recorded):.2f} at {size}")
    right.set_xticks(np.log2(sizes), sizes)
    right.set(xlabel="tokens per chunk $C$")
    panel_label(left, "four tasks")
    panel_label(right, "four needles")
    figure.set_label(
        f"Share of the answers missed by trained models, means: {'; '.join(words)}. Four needles by chunk size: "
        f"{', '.join(ends)}."
    )
    return figure


def real_text(rows: pd.DataFrame) -> Figure:
    """Loss of the last block of bytes against the context before it, with and without; rows of ``SourceBytes``."""
    rows = at_chosen_rate(largest(rows), ["chunk"], "min")
    recorded, contexts = bool(rows["recorded"].iloc[0]), sorted(rows["context"].unique())
    figure, ax = plt.subplots(figsize=(5.6, 3.2))
    words = []
    for written, name, color in ((False, "window", MUTED), (True, "window + written matrix", RED)):
        part = rows[(rows["chunk"] > 0) == written]
        found = [mean_and_reach(part[part["context"] == at]["loss"]) for at in contexts]
        value, reach = (np.array(each) for each in zip(*found, strict=True))
        style = {"color": color, "markerfacecolor": color if recorded else "none", "markersize": 5}
        ax.errorbar(contexts, value, reach, fmt="-o", capsize=3, **style)
        beside(ax, contexts[-1], value[-1], name, color, (6, 0), fontsize=9)
        words.append(f"{name} {value[0]:.3f} without context and {value[-1]:.3f} with {contexts[-1]} bytes")
    ax.set(xlabel="context before the last block (bytes)", ylabel="loss of the last block (nats per byte)")
    ax.set_xlim(-0.05 * contexts[-1], 1.7 * contexts[-1])
    ax.set_xticks(contexts)
    figure.set_label(f"Loss of a last block of Python sources, means over trained models: {'; '.join(words)}.")
    return figure
