"""One position, by enumeration: what a rule emits, what it gains, what it pays.

symbol    name        meaning                                                               axes
p, q      p, q        laws of draft and verifier                                            (pairs, V)
h_alg     emitted     the law that a rule emits                                             (pairs, V)
A         acceptance  acceptance rate                                                       (pairs,)
"""

from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

from derived.lab import measure, stats
from derived.lab.claims import at_least, at_most, on_page, reported, statistic
from derived.lab.experiment import Experiment, rows
from derived.lab.plot import BLUE, DASHED, GREEN, INK, MUTED, RED, THEORY, beside, largest, panel_label
from derived.lab.rng import stream
from derived.lab.stats import Estimate

from .data.pairs import KINDS, random_pairs
from .marks import RULES
from .matching import match, rule_of
from .measures import ratio_of_totals
from .model.divergences import divergence
from .model.exact import acceptance_rate, output_law
from .model.rules import SpS
from .model.theory import mentored_law

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


# Claims: CAC-1 to CAC-10, CAC-16 and the control: the target of a drafted token, what is emitted, what it gains, and
# what it pays.
#
# What a theorem says is decided by the check cell of its statement on the page.

OF_BEST = "of the best possible gain"


def share_of_best(kind: str, delta: float, rule: str = "cactus") -> measure.Measure:
    """A rule's gain in acceptance over the best possible at the same KL, total over total, for one kind of draft."""
    return ratio_of_totals("gain", "best_gain", f"kind == '{kind}' and rule == '{rule}' and matched == {delta}")


def lenient(rows: pd.DataFrame) -> Estimate:
    """The KL of lenience less that of Cactus at equal mean acceptance, that of the smallest budget."""
    spent = measure.chosen(rows, "kind == 'noised' and matched == matched.min()")
    by_rule = spent.pivot(index="replicate", columns="rule", values="kl")
    return stats.mean(by_rule["lenience"] - by_rule["cactus"])


PROVED = (
    on_page("CAC-1", source="prior", where="Leviathan et al. and Chen et al., 2023"),
    on_page(
        "CAC-2.a",
        plain="Draft and verify writes exactly the target law, whichever law one chooses.",
        source="digest",
        where="Theorem 1",
    ),
    on_page("CAC-2.b", source="digest", where="Theorem 1"),
    on_page(
        "CAC-3",
        plain="Raising the drafted token and shrinking all others in proportion is the best target within a divergence budget.",
        source="digest",
        where="Theorem 2",
    ),
    on_page("CAC-4.a"),
    on_page("CAC-4.b", source="digest", where="Corollary 6"),
    on_page("CAC-4.c"),
    on_page(
        "CAC-5.a",
        plain="The target of each drafted token stays within its stated budget.",
        source="digest",
        where="several notes and re-implementations",
        paper_value=r"KL $\le\delta$",
    ),
    on_page("CAC-5.b", amends="CAC-5.a"),
    on_page("CAC-6.a"),
    on_page(
        "CAC-6.b",
        plain="What Cactus emits is never farther from the large model than the draft is.",
        source="digest",
        where="Theorem 3",
    ),
    on_page("CAC-7.a", where="a reading that several notes invite; Theorem 3, as retold, does not claim it"),
    on_page("CAC-7.b", amends="CAC-7.a"),
    on_page("CAC-7.e", where="written for the second edition, the criterion before the run"),
    on_page("CAC-8.a"),
    on_page("CAC-8.b"),
    on_page("CAC-10.a"),
    on_page("CAC-10.b", source="digest", where="Proposition 4, read as of kept and rejected drafts alike"),
    on_page("CAC-10.c", amends="CAC-10.b", source="digest", where="Proposition 4"),
    on_page("CAC-16"),
)

NEAR_OPTIMAL = (
    reported(
        "CAC-9.a",
        r"At equal KL of the emitted law the gain of Cactus in acceptance is this share of the best possible, with drafts near the verifier, $V=50$ and $\delta=0.01$.",
        NearOptimal,
        share_of_best("noised", 0.01),
        OF_BEST,
        judged_at=("ci", "cpu"),
        where="the page has the shares of lenience and interpolation, at the same acceptance, beside it",
    ),
    statistic(
        "CAC-10.d",
        r"At equal mean acceptance typical acceptance with $\varepsilon=0.09$ spends more KL than Cactus, with drafts near the verifier.",
        NearOptimal,
        measure.mean("kl - kl_cactus", "rule == 'tas' and kind == 'noised'"),
        "mean difference over pairs",
        at_least(0),
        control=lenient,
        unit="nats",
        where="one rival alone: the page has what lenience and interpolation gain at the same acceptance",
    ),
)

CONTROL = statistic(
    "control",
    r"An unrelated draft gains acceptance below its price: TV spent is at most nine tenths of the acceptance gained.",
    RandomPairs,
    ratio_of_totals(
        "tv", "acceptance - exact_acceptance", "kind == 'independent' and rule == 'cactus' and knob == 0.1"
    ),
    r"TV over acceptance, totals of the pairs at $\delta=0.1$, by the jackknife (it must fail)",
    at_most(0.9),
    unit="TV per acceptance",
)


# Figures: One position: rows in, a figure with its alt text as label out.
#
# mark                   meaning
# blue, orange, green    verifier q, draft p, emitted law
# line in INK            theory; dashed: a bound or a limit


def which_law(rows: pd.DataFrame) -> Figure:
    """The emitted law between draft and verifier, with the mixture; rows: token, p, q, emitted, mixture, kl_emitted,
    kl_mixture, delta."""
    figure, ax = plt.subplots(figsize=(6.6, 3.2))
    x, first = rows["token"].to_numpy(), rows.iloc[0]
    low, high = rows[["p", "q"]].min(axis=1), rows[["p", "q"]].max(axis=1)
    ax.vlines(x, low, high, color=MUTED, linewidth=7, alpha=0.35)
    ax.plot(x, rows["q"], "_", color=BLUE, markersize=16, markeredgewidth=2.2, label="verifier $q$")
    ax.plot(x, rows["p"], "_", color=RED, markersize=16, markeredgewidth=2.2, label="draft $p$")
    ax.plot(x, rows["emitted"], "o", color=GREEN, label=rf"emitted, KL {first['kl_emitted']:.3f}")
    ax.plot(x + 0.22, rows["mixture"], "x", color=INK, label=rf"mixture of targets, KL {first['kl_mixture']:.3f}")
    ax.legend(fontsize=8, title=rf"budget {first['delta']:g}", title_fontsize=8)
    ax.set(xlabel="token", ylabel="probability", xticks=x)
    panel_label(ax, "Emitted: between draft and verifier, far from the mixture")
    figure.set_label(
        f"Draft, verifier and emitted law over {len(x)} tokens. Every emitted probability lies between the other two. "
        f"KL from the verifier: emitted {first['kl_emitted']:.3f}, mixture of the targets {first['kl_mixture']:.3f}, "
        f"budget {first['delta']:g}."
    )
    return figure


def price(rows: pd.DataFrame) -> Figure:
    """Acceptance gained against total variation spent, pair by pair; rows of ``RandomPairs``."""
    rows = largest(rows)
    rows = rows[(rows["V"] == rows["V"].max()) & ~((rows["rule"] == "cactus") & (rows["knob"] != 0.01))]
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.5), sharey=True, sharex=True)
    words = []
    for ax, kind in zip(axes, ("noised", "independent"), strict=True):
        for rule, (name, color, marker) in RULES.items():
            part = rows[(rows["rule"] == rule) & (rows["kind"] == kind)].head(150)
            gain = part["acceptance"] - part["exact_acceptance"]
            ax.plot(part["tv"], gain, marker, color=color, markersize=3, alpha=0.6, label=name)
            words.append(f"{name} {gain.mean():.2f} for {part['tv'].mean():.2f}")
        ax.plot([0, 1], [0, 1], **THEORY)
        ax.set(xlabel=r"spent: TV of the emitted law from $q$", xlim=(0, 1))
        panel_label(ax, "draft near the verifier" if kind == "noised" else "unrelated draft")
    axes[0].set(ylabel="gained: acceptance over exact", ylim=(-0.75, 1))
    axes[1].legend(fontsize=8, loc="lower left", markerscale=1.6)
    figure.set_label(
        "Acceptance gained against total variation spent. Cactus, clip law, lenience and interpolation lie on the "
        f"diagonal, typical and top-k acceptance below. Means: near drafts, then unrelated: {'; '.join(words)}."
    )
    return figure


def frontier(rows: pd.DataFrame) -> Figure:
    """Mean acceptance against mean KL while a knob moves; rows: rule, knob, acceptance, kl."""
    figure, ax = plt.subplots(figsize=(6.2, 3.7))
    budgets = np.linspace(0.01, 0.15, 15)
    reached = {}
    for rule, (name, color, marker) in RULES.items():
        part = rows[rows["rule"] == rule].sort_values("kl")
        line = "-" if rule in ("cactus", "mentored") else "--"
        ax.plot(part["kl"], part["acceptance"], line, color=color, marker=marker, markersize=3, label=name)
        if rule in ("cactus", "mentored", "interp", "lenience"):
            reached[name] = float(np.interp(budgets[4], part["kl"], part["acceptance"]))
    ax.legend(fontsize=8, loc="lower center")
    short = reached[RULES["mentored"][0]] - reached[RULES["cactus"][0]]
    panel_label(ax, f"Cactus keeps {100 * short:.1f} points less than the best rule at equal distance")
    ax.set(xlabel="mean KL from the verifier (nats)", ylabel="share of drafts kept $A$", xlim=(0, 0.3))
    ax.set_ylim(rows.loc[rows["rule"] == "cactus", "acceptance"].min() - 0.02, 1.01)
    words = ", ".join(f"{name} {value:.3f}" for name, value in reached.items())
    figure.set_label(
        f"Acceptance against KL for six rules. At a mean KL of {budgets[4]:.2f}: {words}. The clip law is on top; "
        "typical and top-k acceptance lie to the right, and fall."
    )
    return figure


def flat_family(rows: pd.DataFrame) -> Figure:
    """Emitted KL in units of the budget against V; rows: V, delta, kl, ratio, predicted."""
    rows = rows.sort_values("V")
    figure, ax = plt.subplots(figsize=(5.8, 3.2))
    ax.plot(rows["V"], rows["predicted"], **THEORY)
    ax.plot(rows["V"], rows["ratio"], "o", color=GREEN, markerfacecolor="none")
    ax.axhline(1, **DASHED)
    beside(ax, rows["V"].iloc[-1], 1, "the budget", MUTED, (0, 8), ha="right")
    panel_label(ax, "KL over budget grows with the vocabulary")
    last = rows.iloc[-1]
    digits, exponent = f"{last['delta']:.1e}".split("e")
    label = rf"$\delta={digits}\cdot10^{{{int(exponent)}}}$, KL {last['kl']:.2f}"
    beside(ax, last["V"], last["ratio"], label, GREEN, (-26, 4), ha="right")
    ax.set(
        xscale="log", yscale="log", xlabel="vocabulary $V$", ylabel=r"$D_{\mathrm{KL}}(h_{\mathrm{alg}}\|q)\,/\,\delta$"
    )
    figure.set_label(
        f"Emitted KL over the budget against the vocabulary, both axes logarithmic, on the line 2(V-1) ln 2: from "
        f"{rows['ratio'].iloc[0]:.1f} at V = {rows['V'].iloc[0]} to {last['ratio']:.0f} at V = {last['V']:.0f}."
    )
    return figure
