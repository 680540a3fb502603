"""A verifier that somebody trained: Gemma 3 270M reads a novel, and a table of word counts from other novels drafts.

p, q   distributions of draft and verifier at a position, on the draft's support (derived.papers.cactus.data.ngrams)
"""

from dataclasses import dataclass
from itertools import chain
from typing import ClassVar

import pandas as pd
import torch

from derived.lab.experiment import Experiment, rows
from derived.lab.real import models, texts

from ..data.ngrams import MOST, Ngrams, lumped
from ..model.divergences import divergence
from ..model.exact import acceptance_rate, output_law
from ..model.rules import SpS
from .matching import match, rule_of

READ = "Persuasion"


@dataclass(frozen=True, kw_only=True)
class Novels(Experiment):
    """CAC-8, 12, 13: rules on the next-token distributions of Gemma over *Persuasion*, temperature 1.

    Each budget of Cactus, and lenience and interpolation set to the same mean acceptance over all texts. Rows: one per
    text, rule and budget; means over its positions. ``gap`` is the worst of |gain - TV| over them, ``bound`` its
    rounding.
    """

    needs: ClassVar = ("gemma", "austen")

    texts: int = 48
    length: int = 160
    first: int = 32
    deltas: tuple[float, ...] = (0.001, 0.01, 0.1, 1.0)
    others: int = 5

    tiers: ClassVar = {"ci": {"texts": 3, "length": 64, "others": 1}, "cpu": {}}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        p, q = self._laws()
        exact = acceptance_rate(p, q, SpS())
        V_plus = (p > 0).sum(dim=-1)
        columns = {"acceptance": exact, "tv": 0 * exact, "kl": 0 * exact, "exact": exact, "gap": 0 * exact}
        tables = [self._by_text("exact", 0.0, columns | {"support": V_plus.double()})]
        for delta in self.deltas:
            target = acceptance_rate(p, q, rule_of("cactus", delta)).mean().item()
            for name in ("cactus", "lenience", "interp"):
                rule = rule_of(name, delta if name == "cactus" else match(name, p, q, target))
                accepted = acceptance_rate(p, q, rule)
                emitted = torch.cat([output_law(*pair, rule) for pair in zip(p.split(64), q.split(64), strict=True)])
                tv = divergence(emitted, q, "tv")
                columns = {"acceptance": accepted, "tv": tv, "kl": divergence(emitted, q), "exact": exact}
                columns |= {"gap": (accepted - exact - tv).abs(), "support": V_plus.double()}
                tables.append(self._by_text(name, delta, columns))
        return pd.concat(tables, ignore_index=True)

    def _by_text(self, rule: str, delta: float, columns: dict[str, torch.Tensor]) -> pd.DataFrame:
        each = {name: values.view(self.texts, -1) for name, values in columns.items()}
        worst = each.pop("gap").amax(dim=-1)
        means = {name: values.mean(dim=-1) for name, values in each.items()}
        bound = 8 * (sum(MOST) + 1) * torch.finfo(torch.float64).eps  # sums of that many terms of at most one
        return rows({"rule": rule, "delta": delta, "text": range(self.texts)}, means | {"gap": worst, "bound": bound})

    def _laws(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Draft and verifier at the positions of all texts, (texts * positions, support)."""
        gemma, books = models.load("gemma"), texts.austen()
        read = gemma.tokens(books.pop(READ))[0]
        known = chain.from_iterable(gemma.tokens(text)[0].tolist() for text in [*books.values()][: self.others])
        draft, pairs = Ngrams([*known]), []
        starts = torch.linspace(1, len(read) - self.length, self.texts).long()
        for start in starts.tolist():
            tokens = torch.cat(
                [read[:1], read[start : start + self.length - 1]]
            )  # its mark of beginning, then the text
            with torch.no_grad():
                laws = gemma.model(tokens[None]).logits[0].double().softmax(dim=-1)
            for place in range(self.first, self.length):
                before = tokens[:place].tolist()
                pairs.append(lumped(draft.proposals(before), laws[place - 1], sum(MOST) + 1))
        p, q = (torch.stack(side) for side in zip(*pairs, strict=True))
        return p, q
