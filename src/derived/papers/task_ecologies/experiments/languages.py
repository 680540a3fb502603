"""Small models of languages: what happens on languages that they never read, synthetic with known laws or real, and how
many a thresholded distance of their outputs tells apart. And which names a real model tells apart."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from derived.lab.experiment import Experiment, rows
from derived.lab.real import models
from derived.lab.rng import stream

from ..data import peoples
from ..data.languages import LanguageFamily, excess, language_family
from ..data.ngrams import fit_ngram
from ..model.gpt import GPTSize, MicroGPT, behavioural_distance, mean_divergence, text_losses, thresholded_partition
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
    of the texts), excess, disagreement (mean divergence of this model's laws from those of the replicate's others, text
    by text), averaged (as published: that of its average laws after r letters, r in ``prefixes``).
    """

    models: int = 10
    prefixes: tuple[int, ...] = (3, 5, 8)

    tiers: ClassVar = {
        "ci": {"replicates": 3, "models": 2, "steps": 30, "letters": 5, "length": 12, "held_out": 10},
        "cpu": {"replicates": 8, "models": 3, "letters": 12, "length": 24},
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
        found = logits.softmax(dim=-1)
        between = mean_divergence(found.permute(1, 2, 0, 3)).mean(dim=1)  # (texts, models, models)
        average = found[:, :, list(self.prefixes)].unflatten(1, (-1, self.held_out)).mean(dim=2)
        averaged = behavioural_distance(average.transpose(0, 1))  # (languages, models, models)
        others, averaged = (each.sum(dim=-1).mT / (self.models - 1) for each in (between, averaged))
        index = {"model": range(self.models), ("language", "category"): (range(7), [*CATEGORIES, "again"])}
        columns = {"loss": floor + lost, "floor": floor, "excess": lost, "disagreement": by_language(others)}
        columns["averaged"] = averaged
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
    halves: int = 300
    held_out: int = 1200

    tiers: ClassVar = {
        "ci": {"replicates": 2, "steps": 30, "letters": 5, "length": 12, "held_out": 20, "halves": 30},
        "cpu": {"replicates": 24, "letters": 12, "length": 24, "held_out": 300},
        "gpu": {},
    }
    tiny: ClassVar = {"steps": 5}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        families = [self.family(seed, r) for r in range(self.replicates)]
        model = self.train([(each, count) for each in families for count in self.counts], seed, device, dtype, "cells")
        held = [self.held_out_texts(family, seed, "cells", r) for r, family in enumerate(families)]
        texts = torch.stack([each for _, each in held]).repeat_interleave(len(self.counts), dim=0)  # of each model
        with torch.no_grad():
            logits = torch.cat([model(part.to(device)).cpu() for part in texts.split(64, dim=1)], dim=1)
        own = logits.split(len(self.counts))
        found = [self.judge(own[r], *held[r], family, r, seed) for r, family in enumerate(families)]
        return pd.concat(found, ignore_index=True)

    def family(self, seed: int, replicate: int) -> LanguageFamily:
        """Fresh languages for each replicate."""
        return language_family(generator=stream(seed, "cells family", replicate), letters=self.letters)

    def cells_of_laws(self, seed: int, replicate: int, threshold: float) -> int:
        """The cells of all languages by their own laws on the held-out texts, in place of the model's."""
        family = self.family(seed, replicate)
        laws = family.laws(*self.held_out_texts(family, seed, "cells", replicate))[:, list(self.prefixes)]
        return cells(behavioural_distance(laws.unflatten(0, (-1, self.held_out)).mean(dim=1)).numpy(), threshold)

    def judge(
        self, logits: Tensor, languages: Tensor, texts: Tensor, family: LanguageFamily, replicate: int, seed: int
    ) -> pd.DataFrame:
        """The rows of one family, from the logits of its models on its held-out texts (counts, texts, T, V)."""
        logits, laws = logits.double(), family.laws(languages, texts)
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
                "k": cells(near, threshold),
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


def cells(distances: np.ndarray, threshold: float) -> int:
    """Into how many cells a threshold on distances puts languages."""
    return max(thresholded_partition((distances + distances.T) / 2, threshold)) + 1


@dataclass(frozen=True, kw_only=True)
class NamesAbroad(Experiment):
    """TE-E1 on real words: models of the given names of three languages, on names that they never read of these, of two
    of the same family, and of two strangers to it.

    Each replicate has its own languages, names and model. In the arm "dealt" the same names are dealt to the seven
    lists by chance. Rows: arm, replicate, place, language, category, loss, excess (over the loss of a table of pairs of
    letters of the very language, made from as many of its names, on the same texts).
    """

    replicates: int = 12
    steps: int = 1500
    rate: float = 0.008
    length: int = 24
    read: int = 150  # words of each list that may be read
    held_out: int = 40  # texts of each list

    needs: ClassVar = ("faker",)
    tiers: ClassVar = {"ci": {"replicates": 3, "steps": 20, "held_out": 10}, "cpu": {}}
    tiny: ClassVar = {"steps": 5}
    dtype: ClassVar = torch.float32

    def conditions(self) -> list[dict]:
        return [{"arm": arm} for arm in ("as they are", "dealt")]

    def lists(self, replicate: int, generator: torch.Generator) -> peoples.Lists:
        return peoples.names_by_language(replicate, self.read, generator)

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        size = GPTSize(vocabulary=27, block=self.length)
        model = build(size, self.replicates, seed, device, dtype, "words")
        labels, training, judged, tables = [], [], [], []
        for replicate in range(self.replicates):
            draw = stream(seed, type(self).__name__, condition["arm"], replicate)
            names, read, held = self.lists(replicate, draw)
            if condition["arm"] == "dealt":
                read, held = peoples.dealt(read, draw), peoples.dealt(held, draw)
            held = peoples.unread(held, read)
            labels.append(names)
            training.append(self.mixed(read[:3], draw))
            texts = torch.stack([peoples.drawn_texts(each, self.held_out, self.length, draw) for each in held])
            judged.append(texts)
            tables.append([self.table(some, part, draw) for some, part in zip(read, texts, strict=True)])
        fit_texts(model, torch.stack(training, dim=1).to(device), rate=falling(self.rate, self.steps))
        ids = torch.stack(judged).flatten(1, 2).to(device)  # (replicates, lists texts, T)
        with torch.no_grad():
            loss = text_losses(model(ids[..., :-1]), ids[..., 1:]).double().mean(dim=-1).cpu()
        loss = loss.unflatten(1, (-1, self.held_out)).mean(dim=-1)
        index = {"replicate": range(self.replicates), ("place", "category"): (range(7), peoples.CATEGORIES)}
        found = rows(index, {"loss": loss, "excess": loss - torch.tensor(tables, dtype=torch.float64)})
        return found.assign(language=np.ravel(labels))

    def mixed(self, read: list[list[str]], draw: torch.Generator) -> Tensor:
        """A text a step, each of one of the lists, (steps, T)."""
        each = torch.stack([peoples.drawn_texts(words, self.steps, self.length, draw) for words in read])
        return each[torch.randint(len(read), (self.steps,), generator=draw), torch.arange(self.steps)]

    def table(self, read: list[str], texts: Tensor, draw: torch.Generator) -> float:
        """The loss on texts of a table of pairs of letters from one list."""
        own = peoples.drawn_texts(read, len(read) // 2, self.length, draw)
        return float(fit_ngram(own, 2, 27, opening=26).losses(texts).mean())


@dataclass(frozen=True, kw_only=True)
class ErasAbroad(NamesAbroad):
    """The same on State of the Union speeches: three neighbouring eras to read, the next two, and the farthest two."""

    replicates: int = 80
    read: int = 600

    needs: ClassVar = ("stdlib",)

    def lists(self, replicate: int, generator: torch.Generator) -> peoples.Lists:
        return peoples.chunks_by_era(replicate, self.read, generator)


@dataclass(frozen=True, kw_only=True)
class NamesKept(Experiment):
    """TE-16: which names a language model holds apart, in sentences after which a pronoun may come and in others.

    Four names make a group, two of women and two of men. Rows: weights (trained, untrained), sentence, telling, group,
    between and within (mean divergence of the next token's laws for names of different and of the same gender).
    """

    model: str = "gemma"
    groups: int = 16

    needs: ClassVar = ("gemma", "faker")
    tiers: ClassVar = {"ci": {"groups": 2}, "cpu": {}}
    dtype: ClassVar = torch.float32

    def conditions(self) -> list[dict]:
        return [{"weights": weights} for weights in ("trained", "untrained")]

    @torch.no_grad()
    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        reader = models.load(self.model)
        if condition["weights"] == "untrained":
            reader = models.fresh(reader, stream(seed, "untrained"))
        names = self.names(reader, seed)  # (groups, 4)
        found = []
        for telling, sentences in ((True, peoples.TELLING), (False, peoples.SILENT)):
            for sentence in sentences:
                ids = torch.cat([reader.tokens(sentence.format(name)) for name in np.ravel(names)])
                laws = reader.model(ids, logits_to_keep=1).logits[:, -1].double().softmax(dim=-1)
                apart = torch.stack([mean_divergence(each) for each in laws.unflatten(0, names.shape)])
                columns = {
                    "between": apart[:, :2, 2:].mean(dim=(1, 2)),
                    "within": (apart[:, 0, 1] + apart[:, 2, 3]) / 2,
                }
                table = rows({"group": range(self.groups)}, columns)
                found.append(table.assign(sentence=sentence, telling=telling))
        return pd.concat(found, ignore_index=True)

    def names(self, reader: models.Pretrained, seed: int) -> np.ndarray:
        """Two women and two men a group, drawn from the names that are one token; ValueError where they are too few."""
        chosen = []
        for gender, known in zip(("women", "men"), peoples.names_by_gender(), strict=True):
            length = {name: reader.tokens(peoples.TELLING[0].format(name)).shape[1] for name in known}
            short = [name for name in known if length[name] == min(length.values())]
            order = torch.randperm(len(short), generator=stream(seed, "names", gender))
            if len(short) < 2 * self.groups:
                raise ValueError(
                    f"{len(short)} names of {gender} are one token; {self.groups} groups need twice as many"
                )
            chosen.append([short[place] for place in order[: 2 * self.groups]])
        return np.concatenate([np.reshape(each, (self.groups, 2)) for each in chosen], axis=1)
