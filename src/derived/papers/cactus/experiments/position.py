"""One position, by enumeration: what a rule emits, what it gains, what it pays.

symbol    name        meaning                                                               axes
p, q      p, q        laws of draft and verifier                                            (pairs, V)
h_alg     emitted     the law that a rule emits                                             (pairs, V)
A         acceptance  acceptance rate                                                       (pairs,)
"""

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import torch

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..data.pairs import KINDS, random_pairs
from ..model.divergences import divergence
from ..model.exact import acceptance_rate, output_law
from ..model.rules import SpS
from ..model.theory import mentored_law
from .matching import match, rule_of

OTHERS = (("interp", 0.3), ("lenience", 0.5), ("mentored", 0.05), ("tas", 0.09), ("topk", 3))


@dataclass(frozen=True, kw_only=True)
class RandomPairs(Experiment):
    """What each rule gains and pays on random pairs, exactly; ``independent`` drafts are the control.

    Rows: kind, V, rule, knob, pair; acceptance, exact_acceptance (SpS), tv of the emitted law.
    """

    pairs: int = 400
    sizes: tuple[int, ...] = (2, 12, 40)
    deltas: tuple[float, ...] = (0.01, 0.1)

    tiny: ClassVar = {"pairs": 6, "sizes": (2, 5)}

    def conditions(self) -> list[dict]:
        return [{"kind": kind, "V": V} for kind in KINDS for V in self.sizes]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        kind, V = condition["kind"], condition["V"]
        p, q = random_pairs(self.pairs, V, kind, stream(seed, "pairs", kind, V))
        exact, tables = acceptance_rate(p, q, SpS()), []
        for name, knob in (*(("cactus", delta) for delta in self.deltas), *OTHERS):
            rule = rule_of(name, knob)
            spent = divergence(output_law(p, q, rule), q, "tv")
            columns = {"acceptance": acceptance_rate(p, q, rule), "exact_acceptance": exact, "tv": spent}
            tables.append(rows({"rule": name, "knob": float(knob), "pair": range(self.pairs)}, columns))
        return pd.concat(tables, ignore_index=True)


@dataclass(frozen=True, kw_only=True)
class NearOptimal(Experiment):
    """CAC-9, CAC-10: Cactus against the KL-optimal law at its own KL, and against other rules at its mean acceptance.

    Rows: kind, rule, knob, matched (the delta whose acceptance the knob has), pair; acceptance, kl, gain over SpS
    and best_gain at the same KL (cactus, lenience, interp); kl_cactus, the KL of Cactus tuned to the same mean
    acceptance (tas).
    """

    pairs: int = 2000
    V: int = 50
    deltas: tuple[float, ...] = (0.01, 0.25)

    tiers: ClassVar = {"ci": {"pairs": 200}, "cpu": {}}
    tiny: ClassVar = {"pairs": 12, "V": 6}
    deterministic: ClassVar = {"acceptance": 1e-9}

    def conditions(self) -> list[dict]:
        return [{"kind": kind} for kind in KINDS]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        p, q = random_pairs(self.pairs, self.V, condition["kind"], stream(seed, "near optimal", condition["kind"]))
        exact = acceptance_rate(p, q, SpS())
        tables = []
        for delta in self.deltas:
            target = acceptance_rate(p, q, rule_of("cactus", delta)).mean().item()
            for name in ("cactus", "lenience", "interp"):
                knob = delta if name == "cactus" else match(name, p, q, target)
                rule = rule_of(name, knob)
                acceptance, kl = acceptance_rate(p, q, rule), divergence(output_law(p, q, rule), q)
                best = torch.minimum(p, mentored_law(p, q, kl)).sum(dim=-1)
                columns = {"acceptance": acceptance, "kl": kl, "gain": acceptance - exact, "best_gain": best - exact}
                index = {"rule": name, "knob": knob, "matched": delta, "replicate": range(self.pairs)}
                tables.append(rows(index, columns))
        typical = rule_of("tas", 0.09)
        accepted = acceptance_rate(p, q, typical)
        knob = match("cactus", p, q, accepted.mean().item())
        tuned = rule_of("cactus", knob)
        columns = {"acceptance": accepted, "kl": divergence(output_law(p, q, typical), q)}
        columns |= {"kl_cactus": divergence(output_law(p, q, tuned), q)}
        columns |= {"acceptance_cactus": acceptance_rate(p, q, tuned)}
        tables.append(rows({"rule": "tas", "knob": knob, "replicate": range(self.pairs)}, columns))
        return pd.concat(tables, ignore_index=True)
