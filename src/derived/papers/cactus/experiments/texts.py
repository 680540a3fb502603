"""Whole texts of Markov chains: every path of drafts, rejections and bonuses, and large vocabularies.

symbol   name    meaning                                                       axes
p, q     p, q    matrices of draft and verifier, the last row begins a text    (R, V + 1, V)
m        m       drafted tokens per block                                      scalar
"""

from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import pandas as pd
import torch
from torch import Tensor

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..data.chains import zipf_chains
from ..data.pairs import random_pairs
from ..model.divergences import divergence
from ..model.exact import acceptance_rate, markov_laws, output_law, reach_probabilities, sequence_law
from ..model.generate import next_laws
from ..model.theory import expected_accepted, gamma_cactus, num_overdrafted
from .matching import rule_of
from .witness import drafted_law, rounding

#: How laws are made from a chain's rows, for both models alike.
SHAPES = MappingProxyType({"plain": {}, "truncated": {"temperature": 0.6, "top_p": 0.95}})


@dataclass(frozen=True, kw_only=True)
class Blocks(Experiment):
    """CAC-11: whole texts of Markov chains by enumeration of every path of drafts, rejections and bonuses.

    Rows: rule, knob, replicate, check: "law" (text law against the verifier's, for SpS), "twin" (against
    ``sequence_law``), "accepted" (expected drafts kept, against alpha (1 - alpha^m) / (1 - alpha), memoryless pairs),
    "text" (by how much the KL of the text exceeds its bound); gap and bound.
    """

    replicates: int = 8
    V: int = 3
    m: int = 2
    tokens: int = 4

    tiny: ClassVar = {"replicates": 2, "tokens": 3}

    def conditions(self) -> list[dict]:
        return [{"rule": "cactus", "knob": knob} for knob in (0.0, 0.05, 0.5)]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        R, V, rule = self.replicates, self.V, rule_of(condition["rule"], condition["knob"])
        p, q = random_pairs(R * (V + 1), V, "noised", stream(seed, "chains"))  # the same chains for every budget
        p, q = (0.9 * each.view(R, V + 1, V) + 0.1 / V for each in (p, q))  # the last row begins the text
        law, spend = self._paths(p, q, condition["knob"])
        own = {x: self._probability(q, x) for x in law}
        bound = rounding(V**self.tokens)
        divergence_of_text = sum(law[x] * (law[x] / own[x]).log() for x in law)
        gaps = {"text": (divergence_of_text - spend).clamp(min=0)}
        if condition["knob"] == 0:
            gaps["law"] = torch.stack([(law[x] - own[x]).abs() for x in law]).amax(dim=0)
        chains = list(zip(p, q, strict=True))
        gaps["twin"] = torch.tensor([self._twin(*pair, rule, law, r) for r, pair in enumerate(chains)])
        gaps["accepted"] = torch.tensor([self._accepted(*pair, rule) for pair in chains])
        tables = [rows({"check": name, "replicate": range(R)}, {"gap": gap}) for name, gap in gaps.items()]
        return pd.concat(tables, ignore_index=True).assign(bound=bound)

    def _paths(self, p: Tensor, q: Tensor, delta: float) -> tuple[dict, Tensor]:
        """{text: probability (R,)}, and the sum over drafted positions of the expected KL of what is emitted."""
        law, spend = {}, torch.zeros(len(p), dtype=p.dtype)

        def walk(text: tuple[int, ...], place: int, weight: Tensor) -> None:
            if len(text) == self.tokens:
                law[text] = law.get(text, 0) + weight
                return
            here = text[-1] if text else self.V
            draft, verifier = p[:, here], q[:, here]
            if place == self.m:  # the bonus
                for y in range(self.V):
                    walk((*text, y), 0, weight * verifier[:, y])
                return
            emitted = drafted_law(draft, verifier, gamma_cactus(verifier, delta))
            kept = torch.minimum(draft, gamma_cactus(verifier, delta))
            spend.add_(weight * divergence(emitted, verifier))
            for y in range(self.V):
                walk((*text, y), place + 1, weight * kept[:, y])
                walk((*text, y), 0, weight * (emitted - kept)[:, y])

        walk((), 0, torch.ones(len(p), dtype=p.dtype))
        return law, spend

    def _probability(self, q: Tensor, text: tuple[int, ...]) -> Tensor:
        steps = [q[:, a, b] for a, b in zip((self.V, *text), text, strict=False)]
        return torch.stack(steps).prod(dim=0)

    def _twin(self, p: Tensor, q: Tensor, rule, law: dict, r: int) -> float:
        laws = [markov_laws(each[-1], each[:-1]) for each in (p, q)]
        enumerated = sequence_law(*laws, rule, m=self.m, num_tokens=self.tokens, num_vocab=self.V)
        return max(abs(enumerated[x] - law[x][r].item()) for x in law)

    def _accepted(self, p: Tensor, q: Tensor, rule) -> float:
        laws = [markov_laws(each[-1], each[-1].expand(self.V, -1)) for each in (p, q)]
        reached = reach_probabilities(*laws, rule, m=self.m, num_vocab=self.V).sum(dim=0)
        alpha = acceptance_rate(p[-1], q[-1], rule).clamp(max=1)  # a sum of probabilities may round above one
        return abs(reached - expected_accepted(alpha, self.m)).item()


@dataclass(frozen=True, kw_only=True)
class MarkovPairs(Experiment):
    """CAC-11.d, 11.e: what a text of a chain on V tokens pays, exactly, when each of its tokens is drafted.

    Texts begin after a class that is uniform and have ``tokens`` tokens. Both models at temperature 1 ("plain"), or
    both at 0.6 with the fewest tokens that reach 0.95 ("truncated"). Rows: V, laws, replicate; per token of the text:
    acceptance, exact_acceptance (SpS), overdrafted (V_+), kl (nats; times ``tokens`` it is the KL of the text).
    """

    replicates: int = 16
    sizes: tuple[int, ...] = (16, 64, 256, 1024)
    delta: float = 0.01
    classes: int = 16
    tokens: int = 64

    tiers: ClassVar = {"ci": {"sizes": (64, 256)}, "cpu": {}}
    deterministic: ClassVar = {"kl": 1e-9, "acceptance": 1e-9, "exact_acceptance": 1e-9}

    def conditions(self) -> list[dict]:
        return [{"V": V} for V in self.sizes]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        V, found = condition["V"], []
        for replicate in range(self.replicates):
            chains = zipf_chains(V, self.classes, stream(seed, "zipf", V, replicate))
            for name, shape in SHAPES.items():
                p, q = (next_laws(each.to(device).log(), **shape) for each in chains)
                found.append({"V": V, "laws": name, "replicate": replicate, **self._spent(p, q)})
        return pd.DataFrame(found)

    def _spent(self, p: Tensor, q: Tensor) -> dict[str, float]:
        rule, exact = (rule_of("cactus", delta) for delta in (self.delta, 0.0))
        emitted = output_law(p, q, rule)
        follows = emitted.new_zeros(self.classes, self.classes)  # the class of the token after a class
        follows.index_add_(1, torch.arange(emitted.shape[-1], device=emitted.device) % self.classes, emitted)
        here = emitted.new_full((self.classes,), 1 / self.classes)
        visits = torch.zeros_like(here)
        for _ in range(self.tokens):
            visits, here = visits + here / self.tokens, follows.mT @ here
        each = {
            "acceptance": acceptance_rate(p, q, rule),
            "exact_acceptance": acceptance_rate(p, q, exact),
            "overdrafted": num_overdrafted(p, q).double(),
            "kl": divergence(emitted, q),
        }
        return {name: float(visits @ value) for name, value in each.items()}
