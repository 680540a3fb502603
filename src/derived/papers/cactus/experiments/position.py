"""One position, by enumeration: what a rule emits, what it gains, what it pays.

symbol    name        meaning                                                               axes
p, q      p, q        laws of draft and verifier                                            (pairs, V)
h_alg     emitted     the law that a rule emits                                             (pairs, V)
A         acceptance  acceptance rate                                                       (pairs,)
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..data.pairs import KINDS, random_pairs
from ..model.divergences import divergence
from ..model.exact import acceptance_rate, output_law
from ..model.rules import SpS
from ..model.theory import (
    emitted_kl_bound,
    emitted_tv_bound,
    fixed_budget_family,
    flat_family,
    mentored_law,
    num_overdrafted,
)
from .matching import match, rule_of
from .witness import best_coupling, law_by_definition, rounding

CONVEX = ("kl", "chi2", "hellinger", "js")
OTHERS = (("interp", 0.3), ("lenience", 0.5), ("mentored", 0.05), ("tas", 0.09), ("topk", 3))


@dataclass(frozen=True, kw_only=True)
class RandomPairs(Experiment):
    """CAC-1, 2, 6, 7, 8: what each rule emits on random pairs, exactly; ``independent`` drafts are the control.

    Rows: kind, V, rule, knob, pair; acceptance, exact_acceptance (SpS), tv and kl of the emitted law; gaps of the
    identities: law_gap, price_gap, sps_gap (SpS' rate from 1 - TV(p, q)); excess of the bounds: outside (of the
    sandwich), beyond (lossy), farther (D_f than the draft's, worst of four); kl_share, tv_share of the explicit bounds;
    ratio = kl / delta. Not recorded: a run takes a second, its rows eight megabytes at a large size.
    """

    pairs: int = 400
    sizes: tuple[int, ...] = (2, 12, 40)
    deltas: tuple[float, ...] = (0.0, 0.001, 0.01, 0.1, 0.25, 1.0)

    tiny: ClassVar = {"pairs": 6, "sizes": (2, 5)}

    def conditions(self) -> list[dict]:
        return [{"kind": kind, "V": V} for kind in KINDS for V in self.sizes]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        V = condition["V"]
        p, q = random_pairs(self.pairs, V, condition["kind"], stream(seed, "pairs", condition["kind"], V))
        exact, draft_tv = acceptance_rate(p, q, SpS()), divergence(p, q, "tv")
        tables = []
        for name, knob in (*(("cactus", delta) for delta in self.deltas), *OTHERS):
            rule = rule_of(name, knob)
            emitted, acceptance = output_law(p, q, rule), acceptance_rate(p, q, rule)
            tv, kl, over = divergence(emitted, q, "tv"), divergence(emitted, q), num_overdrafted(p, q)
            outside = torch.maximum(emitted - torch.maximum(p, q), torch.minimum(p, q) - emitted).amax(dim=-1)
            farther = [_beyond(divergence(emitted, q, one), divergence(p, q, one)) for one in CONVEX]
            columns = {
                "acceptance": acceptance,
                "exact_acceptance": exact,
                "tv": tv,
                "kl": kl,
                "law_gap": (emitted - law_by_definition(name, knob, p, q)).abs().amax(dim=-1),
                "price_gap": (acceptance - exact - tv).abs(),
                "sps_gap": (exact - (1 - draft_tv)).abs(),
                "outside": outside.clamp(min=0),
                "beyond": (acceptance - exact - tv).clamp(min=0),
                "farther": torch.stack(farther).amax(dim=0),
            }
            if name == "cactus" and knob > 0:
                columns["ratio"] = kl / knob
                for one, bound in (("kl", emitted_kl_bound(knob, over)), ("tv", emitted_tv_bound(knob, over))):
                    columns[f"{one}_share"] = torch.where(over > 0, columns[one] / bound, 0.0)
            tables.append(rows({"rule": name, "knob": float(knob), "pair": range(self.pairs)}, columns))
        return pd.concat(tables, ignore_index=True).assign(bound=rounding(V))


def _beyond(emitted: Tensor, draft: Tensor) -> Tensor:
    """How far one divergence exceeds another, relative to the larger of it and one; 0 where both are infinite."""
    excess = torch.where(emitted.isinf() & draft.isinf(), 0.0, emitted - draft)
    return (excess / draft.clamp(min=1.0).nan_to_num(posinf=1.0)).clamp(min=0)


@dataclass(frozen=True, kw_only=True)
class Couplings(Experiment):
    """CAC-2: the largest P(draft = output) over all joint laws, a linear program; rows: pair, best, promised, gap."""

    pairs: int = 200
    V: int = 6

    tiers: ClassVar = {"ci": {"pairs": 30}, "cpu": {}}
    tiny: ClassVar = {"pairs": 3, "V": 3}
    deterministic: ClassVar = {"promised": 1e-12}

    def conditions(self) -> list[dict]:
        return [{"kind": kind} for kind in KINDS]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        p, q = random_pairs(self.pairs, self.V, condition["kind"], stream(seed, "couplings", condition["kind"]))
        promised = acceptance_rate(p, q, SpS()).numpy()
        best = [best_coupling(one.numpy(), other.numpy()) for one, other in zip(p, q, strict=True)]
        table = rows({"pair": range(self.pairs)}, {"best": best, "promised": promised})
        return table.assign(gap=(table["best"] - table["promised"]).abs(), bound=1e-9)


@dataclass(frozen=True, kw_only=True)
class NearOptimal(Experiment):
    """CAC-9, CAC-10: Cactus against the KL-optimal law at its own KL, and against typical acceptance at its acceptance.

    Rows: kind, rule (cactus or tas), knob, pair; acceptance, kl, gain over SpS and best_gain at the same KL (cactus);
    kl_cactus, the KL of Cactus tuned to the same mean acceptance (tas).
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
            rule = rule_of("cactus", delta)
            acceptance, kl = acceptance_rate(p, q, rule), divergence(output_law(p, q, rule), q)
            best = torch.minimum(p, mentored_law(p, q, kl)).sum(dim=-1)
            columns = {"acceptance": acceptance, "kl": kl, "gain": acceptance - exact, "best_gain": best - exact}
            tables.append(rows({"rule": "cactus", "knob": delta, "replicate": range(self.pairs)}, columns))
        typical = rule_of("tas", 0.09)
        accepted = acceptance_rate(p, q, typical)
        knob = match("cactus", p, q, accepted.mean().item())
        tuned = rule_of("cactus", knob)
        columns = {"acceptance": accepted, "kl": divergence(output_law(p, q, typical), q)}
        columns |= {"kl_cactus": divergence(output_law(p, q, tuned), q)}
        columns |= {"acceptance_cactus": acceptance_rate(p, q, tuned)}
        tables.append(rows({"rule": "tas", "knob": knob, "replicate": range(self.pairs)}, columns))
        return pd.concat(tables, ignore_index=True)


@dataclass(frozen=True, kw_only=True)
class FlatFamily(Experiment):
    """CAC-7: q uniform, p uniform on half, delta = 1 / (2 (V - 1)); rows: V, delta, acceptance, kl, ratio (kl / delta),
    predicted (2 (V - 1) ln 2), gap (relative), share (of the explicit bound); kl is that of the law that is emitted."""

    largest: int = 12  # V = 2^1 .. 2^largest

    tiny: ClassVar = {"largest": 4}
    deterministic: ClassVar = {"kl": 1e-9, "ratio": 1e-9}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        family = []
        for V in 2 ** np.arange(1, self.largest + 1):
            p, q, delta = flat_family(int(V))
            rule = rule_of("cactus", delta)
            predicted = 2 * (int(V) - 1) * np.log(2)
            kl, kept = divergence(output_law(p, q, rule), q).item(), acceptance_rate(p, q, rule).item()
            measured = {"V": int(V), "delta": delta, "acceptance": kept, "kl": kl, "ratio": kl / delta}
            share = kl / emitted_kl_bound(delta, int(V) // 2).item()
            family.append({**measured, "predicted": predicted, "share": share})
        table = pd.DataFrame(family)
        gap = (table["ratio"] / table["predicted"] - 1).abs() + (table["acceptance"] - 1).abs()
        return table.assign(gap=gap, bound=8 * table["V"] * np.finfo(float).eps)


@dataclass(frozen=True, kw_only=True)
class FixedBudget(Experiment):
    """CAC-7: q uniform, p uniform on k = ceil(1 / gamma) tokens, at budgets that do not move with V; rows: delta, V, k,
    acceptance, kl of the emitted law, predicted (ln(V / k)), gap, bound, share (of the explicit bound)."""

    deltas: tuple[float, ...] = (0.01, 0.1, 0.5, 1.0)
    largest: int = 11  # V = 2^1 .. 2^largest

    tiny: ClassVar = {"largest": 4}
    deterministic: ClassVar = {"kl": 1e-9}

    def conditions(self) -> list[dict]:
        return [{"delta": delta} for delta in self.deltas]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        delta, family = condition["delta"], []
        for V in map(int, 2 ** np.arange(1, self.largest + 1)):
            p, q = fixed_budget_family(V, delta)
            rule, k = rule_of("cactus", delta), int((p > 0).sum(dim=0))
            kl, kept = divergence(output_law(p, q, rule), q).item(), acceptance_rate(p, q, rule).item()
            share = kl / emitted_kl_bound(delta, k).item()
            family.append({"V": V, "k": k, "acceptance": kept, "kl": kl, "predicted": np.log(V / k), "share": share})
        table = pd.DataFrame(family)
        gap = (table["kl"] - table["predicted"]).abs() + (table["acceptance"] - 1).abs()
        return table.assign(gap=gap, bound=8 * table["V"] * np.finfo(float).eps)


@dataclass(frozen=True, kw_only=True)
class Limits(Experiment):
    """CAC-16: rows: limit ("zero": delta = 0 emits q, "greedy": one-hot q emits q at any delta, "support": mass on
    tokens that q excludes), V, pair, gap, bound."""

    pairs: int = 400

    tiny: ClassVar = {"pairs": 4}

    def conditions(self) -> list[dict]:
        return [{"V": V} for V in (2, 12, 60)]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        V = condition["V"]
        p, q = random_pairs(self.pairs, V, "noised", stream(seed, "limits", V))
        hot = torch.zeros_like(q).scatter(-1, q.argmax(dim=-1, keepdim=True), 1.0)
        cut = torch.where(q >= q.median(dim=-1, keepdim=True).values, q, 0.0)
        cut = cut / cut.sum(dim=-1, keepdim=True)
        gaps = {
            "zero": (output_law(p, q, rule_of("cactus", 0.0)) - q).abs().amax(dim=-1),
            "greedy": (output_law(p, hot, rule_of("cactus", 2.0)) - hot).abs().amax(dim=-1),
            "support": torch.where(cut == 0, output_law(p, cut, rule_of("cactus", 2.0)), 0.0).sum(dim=-1),
        }
        index = {"limit": [*gaps], "pair": range(self.pairs)}
        return rows(index, {"gap": torch.stack([*gaps.values()]), "bound": rounding(V)})
