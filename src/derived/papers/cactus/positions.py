"""Experiments on single positions and short texts, by enumeration: what a rule emits, what it gains, what it pays.

symbol    name        meaning                                                               axes
p, q      p, q        laws of draft and verifier                                            (pairs, V)
h_alg     emitted     the law that a rule emits                                             (pairs, V)
A         acceptance  acceptance rate                                                       (pairs,)
-         rounding    8 V units in the last place: sums of V probabilities                  scalar
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from derived.lab.experiment import Experiment
from derived.lab.rng import stream

from .divergences import divergence
from .exact import acceptance_rate, markov_laws, output_law, reach_probabilities, sequence_law
from .pairs import KINDS, all_targets, best_coupling, match, random_pairs, rule_of
from .rules import SpS
from .theory import (
    emitted_kl_bound,
    emitted_tv_bound,
    expected_accepted,
    flat_family,
    gamma_cactus,
    mentored_law,
    num_overdrafted,
)

CONVEX = ("kl", "chi2", "hellinger", "js")
OTHERS = (("interp", 0.3), ("lenience", 0.5), ("mentored", 0.05), ("tas", 0.09), ("topk", 3))


def rounding(V: int) -> float:
    """The bound on the rounding of sums of V probabilities."""
    return 8 * V * float(np.finfo(float).eps)


def drafted_law(p: Tensor, q: Tensor, gamma: Tensor) -> Tensor:
    """The emitted law token by token as the definition has it: every draft n, its target h^(n), its recovery law.

    A slow twin of ``output_law``, which never builds a target. Shapes: (pairs, V), returns (pairs, V).
    """
    recovery = (all_targets(q, gamma) - p.unsqueeze(-2)).clamp(min=0)
    total = recovery.sum(dim=-1, keepdim=True)
    recovery = recovery / torch.where(total > 0, total, 1.0)
    kept = p * torch.where(p > 0, gamma / torch.where(p > 0, p, 1.0), 0.0).clamp(max=1)
    return kept + ((p - kept).unsqueeze(-1) * recovery).sum(dim=-2)


def witness(name: str, knob: float, p: Tensor, q: Tensor) -> Tensor:
    """The law that a rule of ``pairs.rule_of`` should emit, by definition: its acceptance and its recovery written out.

    Typical acceptance has alpha = sqrt(epsilon); top-k is that of laws without zeros. Shapes: (pairs, V), same.
    """
    if name == "cactus":
        return drafted_law(p, q, gamma_cactus(q, knob))
    if name == "interp":
        return knob * p + (1 - knob) * q
    if name == "mentored":
        return mentored_law(p, q, knob)
    if name == "lenience":
        kept, weights = torch.minimum(p, q / knob), (q - p).clamp(min=0)
    elif name == "tas":
        least = torch.exp(torch.xlogy(q, q).sum(dim=-1, keepdim=True)) * knob**0.5  # alpha e^{-H}
        kept, weights = torch.where(q > least.clamp(max=knob), p, 0.0), (q == q.amax(dim=-1, keepdim=True)).to(q.dtype)
    else:
        rank = (q.unsqueeze(-2) > q.unsqueeze(-1)).sum(dim=-1)  # how many tokens are likelier
        kept, weights = torch.where(rank < knob, p, 0.0), ((rank < knob).to(q.dtype) - p).clamp(min=0)
    total = weights.sum(dim=-1, keepdim=True)
    return kept + (p - kept).sum(dim=-1, keepdim=True) * weights / torch.where(total > 0, total, 1.0)


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

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {}}

    def conditions(self) -> list[dict[str, Any]]:
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
                "law_gap": (emitted - witness(name, knob, p, q)).abs().amax(dim=-1),
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
            columns = {key: value.numpy() for key, value in columns.items()}
            index = {"rule": name, "knob": float(knob), "pair": np.arange(self.pairs)}
            tables.append(pd.DataFrame({**index, **columns}))
        rows = pd.concat(tables, ignore_index=True)
        return rows.assign(bound=rounding(V))


def _beyond(emitted: Tensor, draft: Tensor) -> Tensor:
    """How far one divergence exceeds another, relative to the larger of it and one; 0 where both are infinite."""
    excess = torch.where(emitted.isinf() & draft.isinf(), 0.0, emitted - draft)
    return (excess / draft.clamp(min=1.0).nan_to_num(posinf=1.0)).clamp(min=0)


@dataclass(frozen=True, kw_only=True)
class Couplings(Experiment):
    """CAC-2: the largest P(draft = output) over all joint laws, a linear program; rows: pair, best, promised, gap."""

    pairs: int = 200
    V: int = 6

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {"pairs": 30}, "cpu": {}}
    deterministic: ClassVar[Mapping[str, float]] = {"promised": 1e-12}

    def conditions(self) -> list[dict[str, Any]]:
        return [{"kind": kind} for kind in KINDS]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        p, q = random_pairs(self.pairs, self.V, condition["kind"], stream(seed, "couplings", condition["kind"]))
        promised = acceptance_rate(p, q, SpS()).numpy()
        best = [best_coupling(one.numpy(), other.numpy()) for one, other in zip(p, q, strict=True)]
        rows = pd.DataFrame({"pair": range(self.pairs), "best": best, "promised": promised})
        return rows.assign(gap=(rows["best"] - rows["promised"]).abs(), bound=1e-9)


@dataclass(frozen=True, kw_only=True)
class NearOptimal(Experiment):
    """CAC-9, CAC-10: Cactus against the KL-optimal law at its own KL, and against typical acceptance at its acceptance.

    Rows: kind, rule (cactus or tas), knob, pair; acceptance, kl, gain over SpS and best_gain at the same KL (cactus);
    kl_cactus, the KL of Cactus tuned to the same mean acceptance (tas).
    """

    pairs: int = 2000
    V: int = 50
    deltas: tuple[float, ...] = (0.01, 0.25)

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {"pairs": 200}, "cpu": {}}
    deterministic: ClassVar[Mapping[str, float]] = {"acceptance": 1e-9}

    def conditions(self) -> list[dict[str, Any]]:
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
            tables.append(({"rule": "cactus", "knob": delta}, columns))
        typical = rule_of("tas", 0.09)
        accepted = acceptance_rate(p, q, typical)
        knob = match("cactus", p, q, accepted.mean().item())
        tuned = rule_of("cactus", knob)
        columns = {"acceptance": accepted, "kl": divergence(output_law(p, q, typical), q)}
        columns |= {"kl_cactus": divergence(output_law(p, q, tuned), q)}
        columns |= {"acceptance_cactus": acceptance_rate(p, q, tuned)}
        tables.append(({"rule": "tas", "knob": knob}, columns))
        index = {"replicate": np.arange(self.pairs)}
        tables = [pd.DataFrame({**keys, **index, **{k: v.numpy() for k, v in facts.items()}}) for keys, facts in tables]
        return pd.concat(tables, ignore_index=True)


@dataclass(frozen=True, kw_only=True)
class FlatFamily(Experiment):
    """CAC-7: q uniform, p uniform on half, delta = 1 / (2 (V - 1)); rows: V, delta, acceptance, kl, ratio (kl / delta),
    predicted (2 (V - 1) ln 2), gap (relative), share (of the explicit bound); kl is that of the law that is emitted."""

    largest: int = 12  # V = 2^1 .. 2^largest

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {}}
    deterministic: ClassVar[Mapping[str, float]] = {"kl": 1e-9, "ratio": 1e-9}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        rows = []
        for V in 2 ** np.arange(1, self.largest + 1):
            p, q, delta = flat_family(int(V))
            rule = rule_of("cactus", delta)
            predicted = 2 * (int(V) - 1) * np.log(2)
            kl, kept = divergence(output_law(p, q, rule), q).item(), acceptance_rate(p, q, rule).item()
            facts = {"V": int(V), "delta": delta, "acceptance": kept, "kl": kl, "ratio": kl / delta}
            share = kl / emitted_kl_bound(delta, int(V) // 2).item()
            rows.append({**facts, "predicted": predicted, "share": share})
        table = pd.DataFrame(rows)
        gap = (table["ratio"] / table["predicted"] - 1).abs() + (table["acceptance"] - 1).abs()
        return table.assign(gap=gap, bound=8 * table["V"] * np.finfo(float).eps)


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

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {}}

    def conditions(self) -> list[dict[str, Any]]:
        return [{"rule": "cactus", "knob": knob} for knob in (0.0, 0.05, 0.5)]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        R, V, rule = self.replicates, self.V, rule_of(condition["rule"], condition["knob"])
        p, q = random_pairs(R * (V + 1), V, "noised", stream(seed, "chains"))  # the same chains for every budget
        p, q = (0.9 * each.view(R, V + 1, V) + 0.1 / V for each in (p, q))  # the last row begins the text
        law, spend = self._paths(p, q, condition["knob"])
        own = {x: self._probability(q, x) for x in law}
        bound = rounding(V**self.tokens)
        divergence_of_text = sum(law[x] * (law[x] / own[x]).log() for x in law)
        found = {"text": (divergence_of_text - spend).clamp(min=0)}
        if condition["knob"] == 0:
            found["law"] = torch.stack([(law[x] - own[x]).abs() for x in law]).amax(dim=0)
        facts = [(p[r], q[r]) for r in range(R)]
        found["twin"] = torch.tensor([self._twin(*pair, rule, law, r) for r, pair in enumerate(facts)])
        found["accepted"] = torch.tensor([self._accepted(*pair, rule) for pair in facts])
        tables = [
            pd.DataFrame({"check": name, "replicate": range(R), "gap": gap.numpy()}) for name, gap in found.items()
        ]
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
        found = sequence_law(*laws, rule, m=self.m, num_tokens=self.tokens, num_vocab=self.V)
        return max(abs(found[x] - law[x][r].item()) for x in law)

    def _accepted(self, p: Tensor, q: Tensor, rule) -> float:
        laws = [markov_laws(each[-1], each[-1].expand(self.V, -1)) for each in (p, q)]
        reached = reach_probabilities(*laws, rule, m=self.m, num_vocab=self.V).sum(dim=0)
        alpha = acceptance_rate(p[-1], q[-1], rule).clamp(max=1)  # a sum of probabilities may round above one
        return abs(reached - expected_accepted(alpha, self.m)).item()


@dataclass(frozen=True, kw_only=True)
class Limits(Experiment):
    """CAC-16: rows: limit ("zero": delta = 0 emits q, "greedy": one-hot q emits q at any delta, "support": mass on
    tokens that q excludes), V, pair, gap, bound."""

    pairs: int = 400

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {}}

    def conditions(self) -> list[dict[str, Any]]:
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
        tables = [pd.DataFrame({"limit": k, "pair": range(self.pairs), "gap": v.numpy()}) for k, v in gaps.items()]
        rows = pd.concat(tables, ignore_index=True)
        return rows.assign(bound=rounding(V))
