"""Recall beyond the window: what is written decides, and what happens when the memory is switched off as it is read.

A text has pairs of a key and a value in its first half and asks for some of the keys in its last quarter, where no
window of attention reaches back. One or two blocks; the last one writes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

from derived.lab import stats
from derived.lab.claims import RECORDED, at_least, at_most, statistic
from derived.lab.experiment import rows
from derived.lab.measure import Measure, chosen, highest, lowest
from derived.lab.plot import BLUE, DASHED, MUTED, RED, beside, largest, panel_label
from derived.lab.rng import stream
from derived.lab.stats import LEVEL, Estimate
from derived.lab.training import mean_cross_entropy

from . import trained
from .data import NONE, blind_guess, mqar
from .model.network import Memory, Size, SmallLM, moved, of_another_text

#: What writes in the last block: taps and projection.
WRITERS = {"both": ("conv", True), "conv": ("conv", False), "proj": ("none", True), "neither": ("none", False)}
WRITERS |= {"past": ("past", True), "placebo": ("conv", True)}


def tenths(values: Tensor) -> tuple[list[int], Tensor]:
    """The step at which each tenth of a run ends, and the mean over it of values (R, steps)."""
    steps = values.shape[-1]
    parts = np.array_split(np.arange(steps), min(10, steps))
    return [int(part[-1]) + 1 for part in parts], torch.stack([values[:, part].mean(dim=-1) for part in parts], dim=-1)


@dataclass(frozen=True, kw_only=True)
class Recall(trained.Trained):
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
        "ci": {**trained.CI, "pairs": 4, "queries": 3, "keys": 6, "steps": 10},
        "cpu": {
            **{**trained.CPU, "networks": 16, "rates": (2.5e-3, 4e-3, *trained.FINE), "judged": 256, "steps": 900},
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
        return trained.as_many_parameters(self.size(vocabulary, depth, memories, window=window), full)

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
        change = of_another_text if condition["arm"] == "placebo" else None
        model = trained.build(size, self.networks, seed, device, dtype)
        generator, right = stream(seed, "recall texts"), []

        def loss(step: int) -> Tensor:
            logits, labels = self.asked(model, *self.texts(self.batch, generator, device), change)
            right.append((logits.argmax(dim=-1) == labels).float().mean(dim=-1))
            return mean_cross_entropy(logits, labels)

        trained.fit(model, loss, steps=self.steps, rate=condition["rate"])
        recall = torch.stack(right, dim=-1).double().cpu()  # (R, steps)
        moving = recall.unfold(-1, min(10, self.steps), 1).mean(dim=-1) >= 0.9
        reached = torch.where(moving.any(dim=-1), moving.double().argmax(dim=-1), self.steps) + 1
        steps, means = tenths(recall)
        judged = self.judge(model, seed, device, change) | {"reached": reached}
        columns = {"recall": means, **{name: each.unsqueeze(-1) for name, each in judged.items()}}
        index = {"replicate": range(self.networks), "step": steps}
        return rows(index, columns | {"parameters": model.parameters_each})

    def judge(self, model: SmallLM, seed: int, device, change=None) -> dict[str, Tensor]:
        """Recall (R,) of the texts that choose the rate, of the test texts, and of these with chunks mixed up."""
        read = {"valid": ("valid", change), "test": ("test", change), "shuffled": ("test", moved(self.chunk))}
        return {name: self.share(model, seed, device, *each) for name, each in read.items()}

    @torch.no_grad()
    def share(self, model: SmallLM, seed: int, device, texts: str, change) -> Tensor:
        """The share of right answers (R,) where what is written is changed so before it is read."""
        drawn = self.texts(self.judged, stream(seed, "recall", texts), device)
        logits, labels = self.asked(model, *drawn, change)
        return (logits.argmax(dim=-1) == labels).double().mean(dim=-1).cpu()


@dataclass(frozen=True, kw_only=True)
class MemoryOff(Recall):
    """IPT-19.a: one block of ``Recall`` that writes ("both"), that has no memory ("none"), and one that is trained with
    what another text would have written ("placebo"); other draws than there.

    Rows as there, and off (test with nothing of it read), other (test with what another text would have written).
    """

    tiers: ClassVar = {"ci": Recall.tiers["ci"], "cpu": Recall.tiers["cpu"] | {"networks": 8, "rates": trained.FINE}}
    tiers["cpu"] |= {"steps": 400}

    def conditions(self) -> list[dict]:
        arms = {"depth": 1, "window": self.window}
        return [arms | {"arm": arm, "rate": rate} for arm in ("both", "none", "placebo") for rate in self.rates]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        return super().run(condition, seed=seed + 1, device=device, dtype=dtype)

    def judge(self, model: SmallLM, seed: int, device, change=None) -> dict[str, Tensor]:
        read = {"off": torch.zeros_like, "other": of_another_text}
        found = {name: self.share(model, seed, device, "test", each) for name, each in read.items()}
        return super().judge(model, seed, device, change) | found


def arm(depth: int, arm: str, tied: bool = False) -> str:
    """The rows of an arm; ``tied``: window 1, so that the key of a token knows that token alone."""
    return f"depth == {depth} and arm == '{arm}' and window {'==' if tied else '>'} 1"


def least_factor(arms: Sequence[str], over: str) -> Measure:
    """The geometric mean of the steps of an arm over those of another at the same rate, in the arm and at the rate
    where it is least."""

    def measure(rows: pd.DataFrame):
        rates, found = sorted(chosen(rows, over)["rate"].unique()), []
        level = 1 - (1 - LEVEL) / (len(arms) * len(rates))
        for one in arms:
            for rate in rates:
                steps = [chosen(rows, f"{each} and rate == {rate}") for each in (one, over)]
                first, second = (np.log(each.groupby("replicate")["reached"].last()) for each in steps)
                found.append(stats.mean(first - second, level))
        least = lowest(found)
        return Estimate(float(np.exp(least.value)), least.n, *np.exp([least.low, least.high]).tolist())

    return measure


def if_settled(measure: Measure, *arms: str) -> Measure:
    """The measure; ValueError where the last tenth of the steps adds more than trained.PLATEAU to an arm's recall."""

    def judged(rows: pd.DataFrame):
        for arm in arms:
            some = chosen(rows, f"({arm}) and rate == {trained.best_rate(rows, arm)}")
            means = some.pivot(index="replicate", columns="step", values="recall").sort_index(axis="columns").mean()
            if not means.iloc[-1] - means.iloc[-2] <= trained.PLATEAU:
                raise ValueError(f"{arm} still learns: recall rose to {means.iloc[-1]:.3f} in the last tenth")
        return measure(rows)

    return judged


BLIND = round(Recall.at("cpu").chance(), 3)
BARE = (arm(1, "proj", tied=True), arm(1, "past", tied=True))
MODELS = "mean over trained models at the rate that validation chose, {}"
SHARE = {"unit": "recall", "judged_at": RECORDED}
ON_CPU = SHARE | {"judged_at": ("cpu",)}

CLAIMS = (
    statistic(
        "IPT-10.a",
        "A single block whose target looks ahead learns to recall pairs beyond its window, with the projection and "
        "without.",
        Recall,
        trained.mean_of([arm(1, "both"), arm(1, "conv")], "test", lowest),
        MODELS.format("the worse of two arms"),
        at_least(0.9),
        plain="One block recalls pairs far outside its attention window if it writes what comes next.",
        where="after Figure 3c, whose numbers were not readable; generated texts here",
        source="digest",
        control=trained.mean_of([arm(1, "none")], "test", lowest),
        **SHARE,
    ),
    statistic(
        "IPT-10.c",
        "At equal learning rates two blocks whose target looks ahead reach 90 % recall in at most half the steps of "
        "reconstruction, with a projection or with nothing learned.",
        Recall,
        least_factor([arm(2, "proj"), arm(2, "neither")], arm(2, "both")),
        "steps to 90 % recall, reconstruction over look-ahead, at least: all steps + 1 where never reached; geometric "
        "mean over models, the least of two arms, with a projection and with nothing learned, and of the rates",
        at_least(2),
        unit="times, at least",
        judged_at=RECORDED,
        control=least_factor([arm(2, "proj")], arm(2, "neither")),  # neither looks ahead
        where="after Figure 3c, whose numbers were not readable",
        source="digest",
    ),
    statistic(
        "IPT-10.e",
        "A single block whose keys know their own token alone, as in Theorem 1, is right at most 0.03 more often than "
        "naming the commonest value of a text, which knows no pair, if no tap looks ahead.",
        Recall,
        if_settled(trained.mean_of(BARE, "test", highest), *BARE),
        MODELS.format("the better of two arms")
        + ", neither of which gains more than 0.01 in the last tenth of the steps",
        at_most(round(BLIND + 0.03, 3)),
        **ON_CPU,
        control=trained.mean_of([arm(1, "both", tied=True)], "test", highest),
    ),
    statistic(
        "IPT-19.a",
        "In recall, models that were trained with the memory lose more than half of what it gave them when it is "
        "switched off as it is read.",
        MemoryOff,
        trained.lost_when_off("arm == 'both'", "arm == 'none'", "test", "max"),
        "recall lost by the switch, less half of the gain over models without a memory, model by model, each arm at "
        "the rate that validation chose",
        at_least(0.1),
        **ON_CPU,
        control=trained.lost_when_off("arm == 'placebo'", "arm == 'none'", "test", "max"),
    ),
)


def switched(rows: pd.DataFrame, values: int) -> Figure:
    """Recall of trained models as they are, with the memory off, and with another text's, beside a guess among this
    many values; rows of ``MemoryOff``."""
    rows = largest(rows)
    best = trained.at_chosen_rate(rows, ["arm"], "max").groupby(["arm", "replicate"]).last()
    both, recorded, words = best.loc["both"], bool(rows["recorded"].iloc[0]), []
    bars = {"trained with\na memory": (both["test"], BLUE), "memory off\nas it reads": (both["off"], RED)}
    bars |= {"another text's\nmemory": (both["other"], RED), "never had\na memory": (best.loc["none"]["test"], MUTED)}
    figure, ax = plt.subplots(figsize=(5.4, 2.4))
    for x, (label, (models, color)) in enumerate(bars.items()):
        ax.bar(x, mean := trained.single_models(ax, x, models, color, recorded), 0.6, color=color, alpha=0.35, zorder=1)
        beside(ax, x, mean, f"{mean:.2f}", color, (0, 11), ha="center")
        words.append(f"{' '.join(label.split())} {mean:.2f}")
    ax.axhline(1 / values, **DASHED)
    beside(ax, 2, 0.42, f"dashed: a blind guess, one of {values} values", MUTED, (0, 0), ha="center")
    ax.set(xlim=(-0.5, 3.6), ylim=(0, 1.2), ylabel="right answers", xticks=range(4), yticks=[0, 0.5, 1])
    ax.set_xticklabels(list(bars), fontsize=9)
    panel_label(ax, "Switch the memory off, and its answers are gone")
    figure.set_label(f"Right answers, means over trained models: {'; '.join(words)}. Dashed: {1 / values:.2f}.")
    return figure
