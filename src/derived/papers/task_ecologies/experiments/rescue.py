"""Two ecologies: code with brackets and the same code without, mixed in a share alpha; who tells balanced from
unbalanced code, the network or a table of letters?"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
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

    Twins: "shuffled" (brackets in another order, as published), "matched" (one closing bracket moved so that all pairs
    of neighbouring symbols are ordinary). Readers: the network, and tables of one, two and three letters counted on
    texts of the same mixture. Rows: alpha, replicate (a corpus and a model), reader, twin, gap (nats per token).
    """

    replicates: int = 10
    alphas: tuple[float, ...] = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
    steps: int = 12_000
    rate: float = 0.005
    corpus: int = 250_000  # characters
    judged: int = 300  # chunks of each kind

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "ci": {"replicates": 2, "alphas": (0.0, 1.0), "steps": 20, "corpus": 40_000, "judged": 12},
        "cpu": {"replicates": 8, "alphas": (0.0, 0.25, 1.0), "steps": 2500, "corpus": 120_000, "judged": 100},
        "gpu": {},
    }
    dtype: ClassVar[torch.dtype] = torch.float32

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        found, read, judged = [], [], []
        for replicate in range(self.replicates):
            chunks, held_out = self.chunks(stream(seed, "expressions", replicate))
            judged.append(self.judged_pairs(held_out, stream(seed, "twins", replicate)))
            for place, alpha in enumerate(self.alphas):
                texts = self.mixture(chunks, alpha, stream(seed, "mixture", replicate, place))
                read.append(texts)
                for reader, order in TABLES.items():
                    table = fit_ngram(texts, order, VOCABULARY, opening=OPENING)
                    for twin, pair in judged[-1].items():
                        gap = float(table.losses(pair[1]).mean() - table.losses(pair[0]).mean())
                        row = {"alpha": alpha, "replicate": replicate, "reader": reader, "twin": twin, "gap": gap}
                        found.append(row)
        size = GPTSize(vocabulary=VOCABULARY, init_std=0.02)
        model = build(size, len(read), seed, device, dtype, "rescue")
        fit_texts(model, torch.stack(read, dim=1).to(device), rate=falling(self.rate, self.steps))
        gaps = self.network_gaps(model, judged, device)
        for twin, gap in gaps.items():
            index = {"replicate": range(self.replicates), "alpha": self.alphas}
            found += rows(index, {"gap": gap}).assign(reader="network", twin=twin).to_dict("records")
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
    def network_gaps(self, model: MicroGPT, judged: list[dict[str, tuple[Tensor, Tensor]]], device) -> dict:
        """Loss on the twins less that on the balanced chunks, by kind of twin (replicates, alphas)."""
        found = {}
        for name in ("shuffled", "matched"):
            losses = []
            for side in (0, 1):  # each model on the chunks of its own replicate
                own = torch.stack([pairs[name][side] for pairs in judged]).repeat_interleave(len(self.alphas), dim=0)
                own = own.to(device)
                losses.append(text_losses(model(own[..., :-1]), own[..., 1:]).mean(dim=(1, 2)).double().cpu())
            found[name] = np.reshape((losses[1] - losses[0]).numpy(), (self.replicates, len(self.alphas)))
        return found
