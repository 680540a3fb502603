"""One position, by enumeration: the target of a drafted token, what is emitted, what it gains and what it pays.

symbol    name        meaning                                                               axes
p, q      p, q        distributions of draft and verifier                                   (pairs, V)
o         emitted     the distribution that a rule emits                                    (pairs, V)
A         acceptance  acceptance rate                                                       (pairs,)

What a theorem says is decided by the check cell of its statement on the page. In figures blue is the verifier, orange
the draft, green what is emitted; a line in black is theory, a dashed one a bound.
"""

from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

from derived.lab import measure
from derived.lab.claims import at_most, computed, on_page, refuted
from derived.lab.experiment import Experiment, rows
from derived.lab.plot import BLUE, GREEN, INK, MUTED, ORANGE, PINK, RED, SKY, THEORY, beside, largest, panel_label
from derived.lab.rng import stream

from .data.pairs import KINDS, random_pairs
from .matching import rule_of
from .model.divergences import divergence
from .model.exact import acceptance_rate, output_law
from .model.rules import Cactus, SpS
from .model.theory import fixed_budget_family

OTHERS = (("interp", 0.3), ("lenience", 0.5), ("mentored", 0.05), ("tas", 0.09), ("topk", 3))
DIVERGENCES = ("kl", "chi2", "hellinger", "js")
TENTHS = [0.0, 0.2, 0.4, 0.6]
#: How the figures of the chapter mark the rules: name, colour, marker.
RULES = {
    "cactus": ("Cactus", GREEN, "o"),
    "lenience": ("lenience", SKY, "v"),
    "interp": ("interpolation", PINK, "s"),
    "mentored": ("clip", INK, "D"),
    "tas": ("typical", RED, "^"),
    "topk": ("top-k", ORANGE, "P"),
}


@dataclass(frozen=True, kw_only=True)
class RandomPairs(Experiment):
    """What each rule gains and pays on random pairs, exactly; the drafts of kind ``independent`` know nothing of q.

    Rows: kind, V, rule, knob, pair; acceptance, exact_acceptance (SpS), tv of what is emitted; beyond, the worst over
    four divergences by which what is emitted is farther from q than the draft, in roundings of a sum of V terms, and
    even, the same of the uniform distribution.
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
            emitted = output_law(p, q, rule)
            columns = {"acceptance": acceptance_rate(p, q, rule), "exact_acceptance": exact}
            columns |= {"tv": divergence(emitted, q, "tv"), "beyond": farther(emitted, p, q)}
            columns |= {"even": farther(torch.full_like(q, 1 / V), p, q)}
            tables.append(rows({"rule": name, "knob": float(knob), "pair": range(self.pairs)}, columns))
        return pd.concat(tables, ignore_index=True)


def farther(o: torch.Tensor, p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """The worst of D_f(o || q) - D_f(p || q) over four divergences, in roundings of a sum of V terms: (pairs,)."""
    rounding, worst = 8 * q.shape[-1] * torch.finfo(torch.float64).eps, []
    for name in DIVERGENCES:
        ours, draft = divergence(o, q, name), divergence(p, q, name)
        worst.append(torch.where(draft.isfinite(), (ours - draft) / draft.clamp(min=1) / rounding, -torch.inf))
    return torch.stack(worst).amax(dim=0)


@dataclass(frozen=True, kw_only=True)
class FlatVerifier(Experiment):
    """A uniform verifier on V tokens, a draft on few of them, and a budget that falls as V grows: ``spread`` / V.

    The draft is uniform on as many tokens as Cactus raises to certain acceptance, so what is emitted is the draft.
    Rows: V, delta, tv, kl (of what is emitted).
    """

    sizes: tuple[int, ...] = (64, 1024, 16_384, 262_144)
    spread: float = 50.0

    deterministic: ClassVar = {"tv": 1e-9, "kl": 1e-9}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        lines = []
        for V in self.sizes:
            delta = self.spread / V
            p, q = fixed_budget_family(V, delta)
            kept = torch.minimum(p, Cactus(delta).gamma(p, q))  # all of p: nothing is rejected, this is what is emitted
            facts = {"tv": divergence(kept, q, "tv"), "kl": divergence(kept, q)}
            lines.append({"V": V, "delta": delta} | {name: value.item() for name, value in facts.items()})
        return pd.DataFrame(lines)


CLAIMS = (
    on_page(
        "CAC-2.a",
        plain="Draft and verify writes exactly the target distribution, whichever one chooses.",
        source="digest",
        where="Theorem 1",
    ),
    on_page("CAC-2.b", source="digest", where="Theorem 1"),
    on_page(
        "CAC-3",
        plain="Raising the drafted token and shrinking all others in proportion is the best target within a budget.",
        source="digest",
        where="Theorem 2",
    ),
    on_page("CAC-6.a"),
    computed(
        "CAC-6.b",
        r"What Cactus emits is no farther from the verifier than the draft: $D_f(o\|q)\le D_f(p\|q)$ for KL, $\chi^2$, Hellinger and Jensen–Shannon divergence.",
        RandomPairs,
        measure.largest("beyond", "rule == 'cactus'"),
        "largest excess over the draft's divergence, in roundings",
        at_most(1),
        unit="roundings",
        proof="cac-sandwich",
        plain="What Cactus emits is never farther from the large model than the draft is.",
        control=measure.largest("even", "rule == 'cactus'"),
        source="digest",
        where="Theorem 3",
    ),
    on_page("CAC-8.a"),
    on_page("CAC-8.b"),
    on_page("CAC-5.b"),
    on_page("CAC-4.b", source="digest", where="Corollary 6"),
    on_page("CAC-7.b", amends="CAC-7.g"),
    on_page("CAC-7.e"),
    refuted(
        "CAC-7.g",
        r"For some continuous function $\Gamma$ of the budget alone with $\Gamma(0)=0$, every draft, verifier and $\delta$ have $D_f(o\|q)\le\min\{\Gamma(\delta),D_f(p\|q)\}$, where $o$ is what Cactus emits.",
        FlatVerifier,
        measure.smallest("tv"),
        r"total variations that do not fall with $\delta$, the smallest along $\delta\to0$",
        at_most(0.5),
        unit="total variation",
        plain="A function of the budget alone bounds how far what is emitted is from the large model.",
        source="digest",
        where=r"Theorem 3, as summaries state it; true where $\Gamma$ may depend on the vocabulary (CAC-7.b)",
        horizon=r"$\delta$ from 0.78 down to 0.00019; the proof covers every $\delta>0$",
        control="a draft equal to the verifier spends nothing at any budget",
    ),
    on_page("CAC-10.c", source="digest", where="Proposition 4, of the drafts that are kept"),
    on_page("CAC-11.c"),
)


def price(rows: pd.DataFrame) -> Figure:
    """Acceptance gained against total variation spent, pair by pair; rows of ``RandomPairs``."""
    rows = largest(rows)
    rows = rows[(rows["V"] == rows["V"].max()) & ~((rows["rule"] == "cactus") & (rows["knob"] != rows["knob"].min()))]
    figure, ax = plt.subplots(figsize=(5.4, 2.5))
    words = []
    ax.plot([0, 0.6], [0, 0.6], **THEORY)
    ax.fill_between([0, 0.6], [0, 0.6], 0.6, color=MUTED, alpha=0.15, linewidth=0)
    for rule in ("tas", "interp", "lenience", "cactus"):
        part = rows[rows["rule"] == rule].groupby("kind").head(12)
        gain, color = part["acceptance"] - part["exact_acceptance"], RED if rule == "tas" else GREEN
        ax.plot(part["tv"], gain, "o", color=color, markersize=4, alpha=0.6)
        words.append(f"{RULES[rule][0]} {gain.mean():.2f} for {part['tv'].mean():.2f}")
    ax.set(xlabel="distance from the large model (total variation)", ylabel="more drafts kept")
    ax.set(xlim=(0, 0.62), ylim=(-0.1, 0.48), xticks=TENTHS, yticks=TENTHS[:3])
    beside(ax, 0.13, 0.36, "no rule gets here", INK, (0, 0), ha="center")
    beside(ax, 0.03, -0.04, "Cactus, lenience,\ninterpolation", GREEN, (0, 0))
    beside(ax, 0.39, 0.04, "typical acceptance", RED, (0, 0), ha="center")
    panel_label(ax, "Keep a point more, and move at least a point away")
    figure.set_label(
        "Acceptance gained against total variation spent, a point for each random pair and rule. Cactus, lenience and "
        f"interpolation lie on the diagonal, typical acceptance below. Means: {'; '.join(words)}."
    )
    return figure


def overlap(rows: pd.DataFrame) -> Figure:
    """Bars of p and q with their overlap, and one raised target; rows: token, p, q, h (the target), drafted."""
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 2.7), sharey=True)
    x, shared = rows["token"].to_numpy(), np.minimum(rows["p"], rows["q"])
    first = rows[rows["drafted"]].iloc[0]
    for ax in axes:
        ax.bar(x, rows["q"], 0.8, facecolor="none", edgecolor=BLUE, linewidth=1.6, label="verifier $q$")
        ax.set(xlabel="token", xticks=x)
    axes[0].bar(x, rows["p"], 0.5, facecolor="none", edgecolor=RED, linewidth=1.6, label="draft $p$")
    axes[0].bar(x, shared, 0.5, color=MUTED, alpha=0.45, label=f"kept: {shared.sum():.2f}")
    axes[0].legend(fontsize=9, loc="upper right")
    axes[1].bar(x, rows["h"], 0.5, color=np.where(rows["drafted"], GREEN, SKY), alpha=0.8)
    beside(axes[1], first["token"], first["h"], rf"$\gamma={first['h']:.2f}$", GREEN, (14, 6))
    panel_label(axes[0], "exact: keep what the two share")
    panel_label(axes[1], f"Cactus: the target after token {first['token']:.0f}")
    axes[0].set(ylabel="probability", ylim=(0, 0.75))
    figure.set_label(
        f"Left: bars of draft and verifier over {len(x)} tokens; their overlap, the share kept, is {shared.sum():.2f}. "
        f"Right: the target after drafting token {first['token']:.0f}, its bar raised to {first['h']:.2f}, the others "
        "shrunk alike."
    )
    return figure


def which_law(rows: pd.DataFrame) -> Figure:
    """What is emitted, between draft and verifier, beside the mixture of targets; rows: token, p, q, emitted, mixture,
    kl_emitted, kl_mixture, delta."""
    figure, ax = plt.subplots(figsize=(6.6, 3.0))
    x, first = rows["token"].to_numpy(), rows.iloc[0]
    ax.vlines(x, rows[["p", "q"]].min(axis=1), rows[["p", "q"]].max(axis=1), color=MUTED, linewidth=7, alpha=0.35)
    for column, color, name in (("q", BLUE, "verifier $q$"), ("p", RED, "draft $p$")):
        ax.plot(x, rows[column], "_", color=color, markersize=16, markeredgewidth=2.2, label=name)
    ax.plot(x, rows["emitted"], "o", color=GREEN, label=f"emitted, KL {first['kl_emitted']:.3f}")
    ax.plot(x + 0.18, rows["mixture"], "x", color=INK, label=f"mixture of targets, KL {first['kl_mixture']:.3f}")
    ax.legend(
        fontsize=9, title=rf"budget {first['delta']:g}", title_fontsize=9, loc="center left", bbox_to_anchor=(1, 0.5)
    )
    ax.set(xlabel="token", ylabel="probability", xticks=x)
    panel_label(ax, "What is emitted lies between draft and verifier")
    figure.set_label(
        f"Draft, verifier and emitted distribution over {len(x)} tokens. Every emitted probability lies between the "
        f"other two. KL from the verifier: emitted {first['kl_emitted']:.3f}, mixture of the targets "
        f"{first['kl_mixture']:.3f}, budget {first['delta']:g}."
    )
    return figure
