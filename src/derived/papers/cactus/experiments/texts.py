"""Whole texts of Markov chains with large vocabularies."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import pandas as pd
import torch
from torch import Tensor

from derived.lab.experiment import Experiment
from derived.lab.rng import stream

from ..data.chains import zipf_chains
from ..model.divergences import divergence
from ..model.exact import acceptance_rate, output_law
from ..model.generate import next_laws
from ..model.theory import num_overdrafted
from .matching import rule_of

#: How laws are made from a chain's rows, for both models alike.
SHAPES = MappingProxyType({"plain": {}, "truncated": {"temperature": 0.6, "top_p": 0.95}})


@dataclass(frozen=True, kw_only=True)
class MarkovPairs(Experiment):
    """CAC-11.d: what a text of a chain on V tokens pays, exactly, when each of its tokens is drafted.

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
