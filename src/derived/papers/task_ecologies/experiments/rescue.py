"""Two ecologies: code with brackets and the same code without, mixed in a share alpha; who tells balanced from
unbalanced code, the network or a table of letters?"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd
import torch
from torch import Tensor

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..data.expressions import (
    OPENING,
    VOCABULARY,
    balanced_chunks,
    blanked,
    expression_ids,
    expression_text,
    matched_twin,
    shuffled_twin,
)
from ..data.ngrams import fit_ngram
from ..model.gpt import GPTSize, MicroGPT, text_losses
from .fits import build, falling, fit_texts

TABLES = {"unigram": 1, "bigram": 2, "trigram": 3}


@dataclass(frozen=True, kw_only=True)
class Rescue(Experiment):
    """TE-E4, after exp 7: training text is bracketed code with probability alpha and else the same code with brackets
    blanked; judged by the loss on unbalanced chunks less that on the balanced chunks of which they were made.

    Networks are trained at several rates; the loss on held-out text of the same mixture (``valid``) chooses. Twins:
    "shuffled" (brackets in another order, as published), "matched" (one closing bracket moved so that all pairs of
    neighbouring symbols are ordinary). Readers: the network, and tables of one, two and three letters counted on the
    same texts. Rows: rate, alpha, replicate (a corpus and a model), reader, twin, gap (nats per token), valid, and for
    networks the mean training loss of the last tenth (late) and of the tenth before it (before).
    """

    replicates: int = 10
    alphas: tuple[float, ...] = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
    steps: int = 12_000
    rates: tuple[float, ...] = (0.0025, 0.005, 0.01, 0.02)
    corpus: int = 4_000_000  # characters
    judged: int = 300  # chunks of each kind

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "ci": {"replicates": 2, "alphas": (0.0, 1.0), "steps": 20, "corpus": 40_000, "judged": 12, "rates": (0.01,)},
        "cpu": {"replicates": 8, "alphas": (0.0, 0.25, 1.0), "steps": 2500, "corpus": 800_000, "judged": 100},
        "gpu": {},
    }
    dtype: ClassVar[torch.dtype] = torch.float32

    def conditions(self) -> list[dict[str, Any]]:
        return [{"rate": rate} for rate in self.rates]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        found, read, judged, valid = [], [], [], []
        for replicate in range(self.replicates):
            chunks, held_out = self.chunks(stream(seed, "expressions", replicate))
            judged.append(self.judged_pairs(held_out, stream(seed, "twins", replicate)))
            for place, alpha in enumerate(self.alphas):
                texts = self.mixture(chunks, alpha, stream(seed, "mixture", replicate, place))
                read.append(texts)
                valid.append(self.mixture(held_out, alpha, stream(seed, "valid", replicate, place))[: self.judged])
                for reader, order in TABLES.items():
                    table = fit_ngram(texts, order, VOCABULARY, opening=OPENING)
                    loss = float(table.losses(valid[-1]).mean())
                    for twin, pair in judged[-1].items():
                        gap = float(table.losses(pair[1]).mean() - table.losses(pair[0]).mean())
                        row = {"alpha": alpha, "replicate": replicate, "reader": reader, "twin": twin, "gap": gap}
                        found.append(row | {"valid": loss})
        size = GPTSize(vocabulary=VOCABULARY, init_std=0.02)
        model = build(size, len(read), seed, device, dtype, "rescue")
        losses = fit_texts(model, torch.stack(read, dim=1).to(device), rate=falling(condition["rate"], self.steps))
        tenth, shape = self.steps // 10, (self.replicates, len(self.alphas))
        columns = {
            "valid": self.losses(model, torch.stack(valid), device).view(shape),
            "late": losses[:, -tenth:].mean(dim=-1).view(shape),
            "before": losses[:, -2 * tenth : -tenth].mean(dim=-1).view(shape),
        }
        for twin in ("shuffled", "matched"):  # each model on the chunks of its own replicate
            own = (torch.stack([pairs[twin][side] for pairs in judged]) for side in (0, 1))
            own = (each.repeat_interleave(len(self.alphas), dim=0) for each in own)
            balanced, unbalanced = (self.losses(model, each, device).view(shape) for each in own)
            index = {"replicate": range(self.replicates), "alpha": self.alphas}
            table = rows(index, columns | {"gap": unbalanced - balanced})
            found += table.assign(reader="network", twin=twin).to_dict("records")
        return pd.DataFrame(found)

    def chunks(self, draw: torch.Generator) -> tuple[list[str], list[str]]:
        """Balanced chunks to train on and to judge by, from two halves of a text with one lexicon."""
        text = expression_text(self.corpus, draw)
        cut = len(text) // 2
        return balanced_chunks(text[:cut]), balanced_chunks(text[cut:])

    def judged_pairs(self, held_out: list[str], draw: torch.Generator) -> dict[str, tuple[Tensor, Tensor]]:
        """Balanced chunks and their twins of each kind, as tokens."""
        found = {}
        for name, twin in (("shuffled", shuffled_twin), ("matched", matched_twin)):
            pairs = [(chunk, twin(chunk, draw)) for chunk in held_out]
            pairs = [(chunk, other) for chunk, other in pairs if other is not None][: self.judged]
            if len(pairs) < self.judged:
                given = f"{len(pairs)} chunks have a {name} twin"
                raise ValueError(f"{given}, {self.judged} are to be judged; enlarge the corpus")
            found[name] = tuple(expression_ids(list(part)) for part in zip(*pairs, strict=True))
        return found

    def mixture(self, chunks: list[str], alpha: float, draw: torch.Generator) -> Tensor:
        """A chunk for every step, bracketed with probability alpha, else blanked, (steps, T)."""
        bracketed, bare = expression_ids(chunks), expression_ids([blanked(chunk) for chunk in chunks])
        picked = torch.randint(len(chunks), (self.steps,), generator=draw)
        kept = torch.rand(self.steps, 1, generator=draw, dtype=torch.float64) < alpha
        return torch.where(kept, bracketed[picked], bare[picked])

    @torch.no_grad()
    def losses(self, model: MicroGPT, texts: Tensor, device) -> Tensor:
        """Nats per token of each model on its own texts (K, B, T), float64 on the CPU."""
        texts = texts.to(device)
        return text_losses(model(texts[..., :-1]), texts[..., 1:]).mean(dim=(1, 2)).double().cpu()
