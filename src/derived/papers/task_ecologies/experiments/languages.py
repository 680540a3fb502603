"""Small models of synthetic languages with known laws: what happens on languages that they never read, and how many
languages a thresholded distance of their outputs tells apart."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..data.languages import LanguageFamily, excess, language_family
from ..model.gpt import GPTSize, MicroGPT, behavioural_distance, mean_divergence, thresholded_partition
from .fits import build, falling, fit_texts

#: Weights of the family: three languages to read, one nearer to the root and an outgroup; an alien one comes behind.
WEIGHTS = (0.5, 0.5, 0.5, 0.3, 0.9)
CATEGORIES = ("trained", "trained", "trained", "relative", "relative", "alien")


@dataclass(frozen=True, kw_only=True)
class Read(Experiment):
    """What both experiments share: a family of languages per replicate, and models side by side."""

    replicates: int = 10
    steps: int = 15_000
    rate: float = 0.008
    length: int = 31
    letters: int = 26
    held_out: int = 60  # texts of each language

    dtype: ClassVar = torch.float32

    def train(self, models: list[tuple[LanguageFamily, int]], seed: int, device, dtype, name: str) -> MicroGPT:
        """Models that read the first so many languages of a family, one text a step."""
        size = GPTSize(vocabulary=self.letters + 1, block=self.length)
        model = build(size, len(models), seed, device, dtype, name)
        texts = []
        for place, (family, read) in enumerate(models):
            draw = stream(seed, name, "texts", place)
            texts.append(family.texts(torch.randint(read, (self.steps,), generator=draw), self.length, draw))
        fit_texts(model, torch.stack(texts, dim=1).to(device), rate=falling(self.rate, self.steps))
        return model

    def held_out_texts(self, family: LanguageFamily, seed: int, *names) -> tuple[Tensor, Tensor]:
        """Languages and texts that nobody was trained on, (n held_out,) and (n held_out, T)."""
        languages = torch.arange(len(family.first)).repeat_interleave(self.held_out)
        return languages, family.texts(languages, self.length, stream(seed, "held out", *names))[:, :-1]


@dataclass(frozen=True, kw_only=True)
class Abroad(Read):
    """TE-E1, after exp 4: models of three languages on held-out texts of these, of two relatives and of an alien.

    Each replicate has languages of its own and several models that differ in initial weights and texts. "again": texts
    of the first trained language once more, drawn anew, as the control in which nothing may rise. Rows: replicate,
    model, language, category (trained, again, relative, alien), loss, floor (both in the true laws, given the contexts
    of the texts), excess, disagreement (mean divergence of this model's laws from those of the replicate's others).
    """

    models: int = 10

    tiers: ClassVar = {
        "ci": {"replicates": 3, "models": 2, "steps": 30, "letters": 5, "length": 12, "held_out": 10},
        "cpu": {"replicates": 8, "models": 3, "steps": 1500, "letters": 12, "length": 24},
        "gpu": {},
    }
    tiny: ClassVar = {"steps": 10}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        families = [self.family(seed, replicate) for replicate in range(self.replicates)]
        model = self.train([(each, 3) for each in families for _ in range(self.models)], seed, device, dtype, "abroad")
        return pd.concat([self.judge(model, r, one, seed, device) for r, one in enumerate(families)], ignore_index=True)

    def family(self, seed: int, replicate: int) -> LanguageFamily:
        draw = stream(seed, "abroad family", replicate)
        family = language_family(WEIGHTS, generator=draw, letters=self.letters, alien=True)
        again = lambda each: torch.cat([each, each[:1]])  # noqa: E731
        return LanguageFamily(again(family.first), again(family.transitions))

    @torch.no_grad()
    def judge(self, model: MicroGPT, replicate: int, family: LanguageFamily, seed: int, device) -> pd.DataFrame:
        languages, texts = self.held_out_texts(family, seed, "abroad", replicate)
        laws = family.laws(languages, texts)
        own = slice(replicate * self.models, (replicate + 1) * self.models)
        logits = model(texts.to(device))[own].double().cpu()  # (models, texts, T, V)
        by_language = lambda each: each.unflatten(-1, (-1, self.held_out)).mean(dim=-1)  # noqa: E731
        floor = by_language(-torch.xlogy(laws, laws).sum(dim=-1).mean(dim=-1))
        lost = by_language(excess(logits, laws))
        between = mean_divergence(logits.softmax(dim=-1).permute(1, 2, 0, 3)).mean(dim=1)  # (texts, models, models)
        others = between.sum(dim=-1).mT / (self.models - 1)
        index = {"model": range(self.models), ("language", "category"): (range(7), [*CATEGORIES, "again"])}
        columns = {"loss": floor + lost, "floor": floor, "excess": lost, "disagreement": by_language(others)}
        return rows(index, columns).assign(replicate=replicate)


@dataclass(frozen=True, kw_only=True)
class Complexity(Read):
    """TE-E2, after exp 1: models of the first T languages of a family, and the cells into which a threshold puts them.

    The threshold is the 95th percentile of the distance between random halves of held-out texts of the first language,
    under the model of that language alone. Averages are taken after exactly r letters, r in ``prefixes``. Rows:
    languages (T), replicate, k (cells), separated (pairs beyond the threshold), pairs, threshold, loss, floor.
    """

    counts: tuple[int, ...] = (1, 2, 3, 5)
    prefixes: tuple[int, ...] = (3, 5, 8)
    halves: int = 30
    held_out: int = 1200

    tiers: ClassVar = {
        "ci": {"replicates": 2, "steps": 30, "letters": 5, "length": 12, "held_out": 20},
        "cpu": {"replicates": 4, "steps": 1500, "letters": 12, "length": 24, "held_out": 300},
        "gpu": {},
    }
    tiny: ClassVar = {"steps": 5}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        families = [
            language_family(generator=stream(seed, "complexity family", r), letters=self.letters)
            for r in range(self.replicates)
        ]
        models = [(family, count) for family in families for count in self.counts]
        model = self.train(models, seed, device, dtype, "complexity")
        found = [self.judge(model, r, family, seed, device) for r, family in enumerate(families)]
        return pd.concat(found, ignore_index=True)

    @torch.no_grad()
    def judge(self, model: MicroGPT, replicate: int, family: LanguageFamily, seed: int, device) -> pd.DataFrame:
        languages, texts = self.held_out_texts(family, seed, "complexity", replicate)
        own = slice(replicate * len(self.counts), (replicate + 1) * len(self.counts))
        logits = torch.cat([model(part.to(device))[own].double().cpu() for part in texts.split(256)], dim=1)
        laws = family.laws(languages, texts)
        by_language = lambda each: each.unflatten(-1, (-1, self.held_out))  # noqa: E731
        floor = by_language(-torch.xlogy(laws, laws).sum(dim=-1).mean(dim=-1)).mean(dim=-1)
        lost = by_language(excess(logits, laws)).mean(dim=-1)
        # after r letters: the opening token stands at place 0
        after = logits[:, :, list(self.prefixes)].softmax(dim=-1).unflatten(1, (-1, self.held_out))
        distances = behavioural_distance(after.mean(dim=2))  # (models, n, n)
        threshold = self.threshold(after[self.counts.index(1), 0], stream(seed, "halves", replicate))
        found = []
        for place, count in enumerate(self.counts):
            near = distances[place, :count, :count].numpy()
            columns = {
                "k": max(thresholded_partition((near + near.T) / 2, threshold)) + 1,
                "separated": int((near[np.triu_indices(count, 1)] > threshold).sum()),
                "pairs": count * (count - 1) // 2,
                "threshold": threshold,
                "loss": float((floor + lost[place])[:count].mean()),
                "floor": float(floor[:count].mean()),
            }
            found.append({"languages": count, "replicate": replicate} | columns)
        return pd.DataFrame(found)

    def threshold(self, after: Tensor, draw: torch.Generator) -> float:
        """The 95th percentile of the distance between random halves of one language's texts (texts, lengths, V)."""
        found = []
        for _ in range(self.halves):
            order = torch.randperm(len(after), generator=draw)
            parts = torch.stack([after[half].mean(dim=0) for half in order.tensor_split(2)])
            found.append(float(behavioural_distance(parts)[0, 1]))
        return float(np.quantile(found, 0.95))
