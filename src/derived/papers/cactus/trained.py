"""A draft and a verifier trained on bracketed arithmetic: what Cactus gains and costs, and others at its acceptance.

Stands in for the paper's tables on GSM8K, IFEval and GPQA: the texts are generated, so every fault in them is found by
the grammar itself, and no benchmark is needed. All texts are written by ``speculative_generate``.

symbol    name             meaning                                                               axes
p, q      p, q             distributions of draft and verifier at the drafted positions          (N, V)
AL        kept / blocks    drafts kept over passes of the verifier                               (prompts,)
TV, KL    tv, kl           of what is emitted from q, mean over the drafted positions            (prompts,)

Two settings are compared on the same prompts for each pair of models, and the pair is the unit: prompts are many for
one pair, but what another training would give only another pair can tell.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from matplotlib.figure import Figure
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.nn.utils import clip_grad_norm_

from derived.lab import stats, training
from derived.lab.claims import RECORDED, at_least, at_most, reported, statistic, unseen
from derived.lab.experiment import Experiment
from derived.lab.measure import Measure, chosen, lowest
from derived.lab.plot import largest, panel_label
from derived.lab.rng import stream
from derived.lab.stats import LEVEL, Estimate

from .data.language import Grammar
from .data.small_lm import LanguageModel
from .matching import RIVALS, match, rule_of
from .model.divergences import divergence
from .model.exact import acceptance_rate, output_law
from .model.generate import JudgedBlock, speculative_generate
from .model.rules import Interp, Rule
from .position import RULES

#: How distributions are made from logits, for both models alike: the paper's setting [repo], and nothing done to them.
SHAPES = MappingProxyType({"truncated": {"temperature": 0.6, "top_p": 0.95}, "plain": {}})
CI = {
    **{"pairs": 2, "width": 32, "depth": 2, "draft_depth": 1, "steps": 20, "draft_steps": 5, "batch_size": 8},
    **{"length": 26, "prompts": 12, "calibration": 8, "m": 3, "deltas": (0.0, 1.0)},
    **{"lr": 3e-3, "matched": (1.0, 1.0)},
}


class Setting(NamedTuple):
    """A rule with its knob; ``matched`` is the delta whose acceptance the knob was set to, else 0."""

    rule: str
    knob: float
    matched: float = 0.0


def train(
    model: LanguageModel, grammar: Grammar, *, steps: int, batch_size: int, length: int, lr: float, generator
) -> Float[Tensor, "steps"]:
    """AdamW on fresh texts of the grammar, warm-up for a tenth of the steps, then a cosine to zero: losses (steps,).

    All texts are drawn in one batch: to draw those of a step takes half as long as the step.
    """
    texts = grammar.sample(steps * batch_size, length, generator).to(model.embedding.device)
    batches = texts.unflatten(0, (steps, batch_size))
    optimiser = training.adamw(model, betas=(0.9, 0.98), weight_decay=0.01)

    def clip(*_) -> None:
        clip_grad_norm_(model.parameters(), 1.0)

    def loss(step: int) -> Tensor:
        ids = batches[step]
        return cross_entropy(model(ids[:, :-1]).logits.flatten(0, 1), ids[:, 1:].flatten())

    def rate(step: int) -> float:
        return lr * min(1.0, 10 * (step + 1) / steps) * 0.5 * (1 + math.cos(math.pi * step / steps))

    optimiser.register_step_pre_hook(clip)
    return training.train(loss, optimiser, steps=steps, rate=rate)


def drafted_positions(block: JudgedBlock) -> tuple[Tensor, Tensor, Tensor]:
    """Where the rule had to decide in a block, up to the first rejection and within the length, (B', m), and between
    which distributions, (N, V) each."""
    m = block.draft_laws.shape[1]
    inside = torch.arange(m, device=block.counts.device) < block.counts.unsqueeze(-1)
    return inside, block.draft_laws[inside], block.verifier_laws[:, :m][inside]


class Account:
    """What the texts of a batch pay: TV and KL of the emitted distribution at each drafted position.

    That distribution is known exactly from p and q, so it is summed without sampling error.
    """

    def __init__(self, rule: Rule, num_texts: int, device: torch.device) -> None:
        self.rule = rule
        self.reached, self.tv, self.kl = torch.zeros(3, num_texts, dtype=torch.float64, device=device)

    def __call__(self, block: JudgedBlock) -> None:
        inside, p, q = drafted_positions(block)
        self.reached[block.texts] += inside.sum(dim=-1)
        emitted = output_law(p, q, self.rule)
        for total, name in ((self.tv, "tv"), (self.kl, "kl")):
            spent = torch.zeros(inside.shape, dtype=torch.float64, device=inside.device)
            total[block.texts] += spent.masked_scatter(inside, divergence(emitted, q, name)).sum(dim=-1)


@torch.no_grad()
def surprise(verifier: LanguageModel, ids: Int[Tensor, "B length"], prompt: int) -> Float[Tensor, "B"]:
    """-ln of the verifier's probability (temperature 1) of each text after its prompt, per token."""
    laws = torch.log_softmax(verifier(ids[:, :-1]).logits.double(), dim=-1)
    each = -laws.gather(-1, ids[:, 1:].unsqueeze(-1)).squeeze(dim=-1)
    return each[:, prompt - 1 :].mean(dim=-1)


@dataclass(frozen=True, kw_only=True)
class Pair(Experiment):
    """A verifier and a draft trained on the same language, prompts to continue, and the rules that judge."""

    pairs: int = 12
    width: int = 64
    depth: int = 4
    draft_depth: int = 1
    steps: int = 3000
    draft_steps: int = 600
    batch_size: int = 16
    lr: float = 3e-3
    length: int = 64
    prompt: int = 16
    prompts: int = 200
    calibration: int = 100
    m: int = 10
    deltas: tuple[float, ...] = (0.0, 0.01, 0.1, 1.0)
    matched: tuple[float, float] = (1.0, 0.01)  # with truncated distributions, with plain ones

    tiers: ClassVar = {"ci": CI, "cpu": {}}
    dtype: ClassVar = torch.float32

    def conditions(self) -> list[dict]:
        return [{"pair": pair} for pair in range(self.pairs)]

    def model(self, which: str, seed: int, pair: int, device, dtype) -> LanguageModel:
        """The "verifier" or the "draft" of a pair, trained, or a draft that was never trained, "unrelated"."""
        steps = {"verifier": self.steps, "draft": self.draft_steps, "unrelated": 0}[which]
        depth = self.depth if which == "verifier" else self.draft_depth
        sizes = {"width": self.width, "depth": depth, "dtype": dtype, "device": device}
        model = LanguageModel(**sizes, generator=stream(seed, "init", which, pair))
        options = {"batch_size": self.batch_size, "length": self.length, "lr": self.lr}
        if steps:
            # in bulk: a text for each of hundreds of thousands
            generator = stream(seed, "texts", which, pair, device=device)
            train(model, Grammar(device=device), steps=steps, generator=generator, **options)
        return model.eval()

    def texts(self, seed: int, pair: int, device) -> tuple[Tensor, Tensor]:
        """Prompts to be judged by, (prompts, prompt), and others to set knobs on, (calibration, prompt)."""
        num = self.prompts + self.calibration
        texts = Grammar(device=device).sample(num, self.length, stream(seed, "prompts", pair)).to(device)
        return texts[: self.prompts, : self.prompt], texts[self.prompts :, : self.prompt]

    def write(self, draft, verifier, prompts: Tensor, rule: Rule, shape: str, generator, on_block):
        """The continuations of the prompts under a rule."""
        sizes = {"m": self.m, "max_new_tokens": self.length - self.prompt}
        options = {**sizes, **SHAPES[shape], "generator": generator, "on_block": on_block}
        return speculative_generate(draft, verifier, prompts, rule=rule, **options)

    def settings(
        self, draft, verifier, tune: Tensor, shape: str, seed: int, pair: int, rivals: Sequence[str] = RIVALS
    ) -> list[Setting]:
        """Cactus at every delta, and each rival at the mean acceptance of one of them over the drafted positions of
        texts that exact speculative sampling writes after the prompts ``tune``."""
        delta, drafted = self.matched[list(SHAPES).index(shape)], []
        generator = stream(seed, "tune", pair, shape)
        note = lambda block: drafted.append(drafted_positions(block)[1:])  # noqa: E731
        self.write(draft, verifier, tune, rule_of("cactus", 0.0), shape, generator, note)
        p, q = (torch.cat(rows) for rows in zip(*drafted, strict=True))
        target = acceptance_rate(p, q, rule_of("cactus", delta)).mean().item()
        matched = [Setting(rule, match(rule, p, q, target), delta) for rule in rivals]
        return [*(Setting("cactus", each) for each in self.deltas), *matched]


@dataclass(frozen=True, kw_only=True)
class TrainedPair(Pair):
    """CAC-12, CAC-13: texts of a trained pair under each rule, the rivals' knobs set so that they accept as often.

    Rows: pair, shape, draft (trained or unrelated), rule, knob, matched, prompt; kept (drafts, whole blocks), blocks
    (passes of the verifier), drafted, reached (positions at which the rule decided), valid, fault (tokens before the
    first one), surprise (nats per token), tv, kl (per position reached).
    """

    tiny: ClassVar = {"prompts": 5, "steps": 3, "draft_steps": 2}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        pair = condition["pair"]
        names = ("verifier", "draft", "unrelated")
        verifier, draft, unrelated = (self.model(which, seed, pair, device, dtype) for which in names)
        test, tune = self.texts(seed, pair, device)
        tables = []
        for shape in SHAPES:
            cases = [("trained", draft, one) for one in self.settings(draft, verifier, tune, shape, seed, pair)]
            cases += [("unrelated", unrelated, Setting("cactus", each)) for each in (0.0, max(self.deltas))]
            for which, model, setting in cases:
                generator = stream(seed, "writing", pair)  # the same for all settings
                rows = self._rows(model, verifier, test, shape, rule_of(setting.rule, setting.knob), generator)
                tables.append(rows.assign(shape=shape, draft=which, **setting._asdict()))
        return pd.concat(tables, ignore_index=True)

    def _rows(self, draft, verifier, prompts, shape, rule, generator) -> pd.DataFrame:
        account = Account(rule, len(prompts), prompts.device)
        written = self.write(draft, verifier, prompts, rule, shape, generator, account)
        texts = torch.cat([prompts, written.ids], dim=1)
        fault, judged = Grammar(device=prompts.device).first_fault(texts), written.accepted >= 0
        columns = {
            "kept": written.accepted.clamp(min=0).sum(dim=-1),
            "blocks": judged.sum(dim=-1),
            "drafted": (judged * written.drafted).sum(dim=-1),
            "reached": account.reached,
            "valid": fault == self.length,
            "fault": fault - self.prompt,
            "surprise": surprise(verifier, texts, self.prompt),
            "tv": account.tv / account.reached,
            "kl": account.kl / account.reached,
        }
        columns = {name: each.float().cpu().numpy() for name, each in columns.items()}  # seven digits tell all
        return pd.DataFrame({"prompt": np.arange(len(prompts)), **columns})


@dataclass(frozen=True, kw_only=True)
class AmendedInterpolation(TrainedPair):
    """CAC-13: interpolation that keeps no draft with q_n = 0, on pairs of models that no other record has trained.

    Truncated distributions alone: Cactus at each budget, the largest of which keeps every draft that truncation allows;
    interpolation, amended, at the acceptance of delta = 1; and the draft without a verifier ("draft"). Rows as those
    of ``TrainedPair``, with ``pair`` from 100 on.
    """

    tiers: ClassVar = {
        "ci": {**CI, "deltas": (0.0, 1.0, 1e6)},
        "cpu": {"pairs": 8, "prompts": 400, "deltas": (0.0, 1.0, 1e6)},
    }

    def conditions(self) -> list[dict]:
        return [{"pair": 100 + pair} for pair in range(self.pairs)]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        pair, shape = condition["pair"], "truncated"
        verifier, draft = (self.model(which, seed, pair, device, dtype) for which in ("verifier", "draft"))
        test, tune = self.texts(seed, pair, device)
        settings, tables = self.settings(draft, verifier, tune, shape, seed, pair, ("interp inside",)), []
        for setting in (*settings, Setting("draft", 1.0)):
            rule = Interp(1.0) if setting.rule == "draft" else rule_of(setting.rule, setting.knob)
            rows = self._rows(draft, verifier, test, shape, rule, stream(seed, "writing", pair))
            tables.append(rows.assign(shape=shape, draft="trained", **setting._asdict()))
        return pd.concat(tables, ignore_index=True)


def cactus(shape: str, delta: float) -> str:
    """The rows of Cactus at a budget, in one shape of the distributions, with the trained draft."""
    return f"rule == 'cactus' and matched == 0 and knob == {delta} and shape == '{shape}' and draft == 'trained'"


def rival(rule: str, shape: str, delta: float) -> str:
    """The rows of another rule, set to the acceptance of Cactus at a budget."""
    return f"rule == '{rule}' and matched == {delta} and shape == '{shape}' and draft == 'trained'"


def less(column: str, first: str, second: str, level: float = LEVEL) -> Measure:
    """A column's mean over prompts for the first setting less that for the second: mean over the pairs of models."""
    return _over_pairs(lambda one, other: one[column] - other[column], first, second, level)


def gained(first: str, second: str) -> Measure:
    """By how many per cent more drafts the first setting keeps per block than the second: mean over the pairs."""

    def gain(one: pd.DataFrame, other: pd.DataFrame) -> pd.Series:
        return 100 * ((one["kept"] / one["blocks"]) / (other["kept"] / other["blocks"]) - 1)

    return _over_pairs(gain, first, second, LEVEL)


def worst_of(column: str, settings: Sequence[str], reference: str) -> Measure:
    """The setting that loses most of a column against the reference; all of them are judged together."""
    level = 1 - (1 - LEVEL) / len(settings)

    def measured(rows: pd.DataFrame) -> Estimate:
        return lowest([less(column, each, reference, level)(rows) for each in settings])

    return measured


def _over_pairs(
    of: Callable[[pd.DataFrame, pd.DataFrame], pd.Series], first: str, second: str, level: float
) -> Measure:
    """The mean of one number per pair of models, with Student's interval: the unit is the trained pair."""

    def over_pairs(rows: pd.DataFrame) -> Estimate:
        columns = ["kept", "blocks", "valid"]
        means = [
            chosen(rows, which).groupby("pair")[columns].mean(skipna=False).astype(float) for which in (first, second)
        ]
        return stats.mean(of(*means), level)

    return over_pairs


PAIRS = ", mean over the pairs of models (n of them), Student's interval"
OVER_EXACT = "share of texts without fault, difference to exact sampling" + PAIRS
OVER_RIVAL = "share of texts without fault, difference to the rival" + PAIRS
EXACT, CACTUS, MORE = (cactus("truncated", delta) for delta in (0.0, 1.0, 1e6))
PLAIN_EXACT, PLAIN_SMALL, PLAIN_CACTUS = (cactus("plain", delta) for delta in (0.0, 0.01, 1.0))
AMENDED, DRAFT_ALONE = rival("interp inside", "truncated", 1.0), "rule == 'draft'"
FAR = PLAIN_EXACT.replace("'trained'", "'unrelated'")
WITHIN = [cactus("truncated", delta) for delta in (0.01, 0.1, 1.0)]
WITHIN += [rival(rule, "truncated", 1.0) for rule in ("lenience", "mentored", "tas")]
EQUAL = "figure on acceptance and score; GSM8K there, generated text here"
JUDGED = {"judged_at": RECORDED, "unit": "share of texts"}

CLAIMS = (
    reported(
        "CAC-12.a",
        r"With temperature 0.6 and top-p 0.95 $\delta=1$ keeps this many per cent more drafts per block than exact sampling.",
        TrainedPair,
        gained(CACTUS, EXACT),
        "% more drafts per block",
        judged_at=RECORDED,
        paper_value="+30 to +70 %",
        plain="With a budget near 1, drafts are 30 to 70 % longer than under exact sampling.",
        source="digest",
        where="Table 1; GSM8K, IFEval, GPQA there, generated text here. These pairs have no room for more: a tenth of the "
        "budget keeps as many",
    ),
    statistic(
        "CAC-12.b",
        r"With temperature 0.6 and top-p 0.95 no rule that respects the support loses five points of faultless texts against exact sampling: not Cactus at $\delta=0.01$, $0.1$ or $1$, not lenience, clipping or typical acceptance at the acceptance of $\delta=1$.",
        TrainedPair,
        worst_of("valid", WITHIN, EXACT),
        OVER_EXACT + ", the rule that loses most, six rules judged together",
        at_least(-0.05),
        control=less("valid", PLAIN_CACTUS, PLAIN_EXACT),
        plain="With a budget near 1, the quality of the texts does not suffer (truncated distributions, whatever the rule).",
        source="digest",
        where="Table 1, of Cactus alone; here every rule passes, so that truncation passes and not a rule. The control is "
        "$\\delta=1$ without truncation. Top-k acceptance is not among the six: its interval reaches 5.6 points",
        **JUDGED,
    ),
    statistic(
        "CAC-12.c",
        r"At temperature 1 without truncation $\delta=1$ costs at least ten points of faultless texts.",
        TrainedPair,
        less("valid", PLAIN_CACTUS, PLAIN_EXACT),
        OVER_EXACT,
        at_most(-0.1),
        control=less("valid", FAR, PLAIN_EXACT),  # no budget, but another draft
        **JUDGED,
    ),
    statistic(
        "CAC-13.a",
        r"At equal acceptance ($\delta=1$, temperature 0.6, top-p 0.95) Cactus writes more valid texts than interpolation that, like the other rules, keeps no draft with $q_n=0$.",
        AmendedInterpolation,
        less("valid", CACTUS, AMENDED),
        OVER_RIVAL,
        at_least(0),
        control=less("valid", DRAFT_ALONE, AMENDED),
        source="digest",
        where=EQUAL + "; the public code of interpolation writes also what truncation excludes, and breaks there",
        **JUDGED,
    ),
    statistic(
        "CAC-13.b",
        r"At equal acceptance ($\delta=1$, temperature 0.6, top-p 0.95) Cactus writes more valid texts than typical acceptance.",
        TrainedPair,
        less("valid", CACTUS, rival("tas", "truncated", 1.0)),
        OVER_RIVAL,
        at_least(0),
        control="a rule compared with itself has zero, which is the end of the range",
        comparison=(
            "interpolation as coded",
            less("valid", rival("interp", "truncated", 1.0), rival("tas", "truncated", 1.0)),
        ),
        source="digest",
        where=EQUAL,
        **JUDGED,
    ),
    unseen(
        "CAC-15",
        "On GSM8K, IFEval and GPQA, with Qwen3 and other pairs, the scores are those that the paper reports.",
        "no package that we found ships Qwen3 or the three tests; our small models support the trade-off, not the scores",
        source="digest",
        where="Table 1",
        paper_value="GPQA, 14B + 0.6B, $m=20$: AL 3.84 exact, 6.74 at $\\delta=1$",
    ),
)


def delta_of(rows: pd.DataFrame) -> pd.Series:
    """delta of each row: Cactus's own, or for a rival that of the Cactus whose acceptance it has."""
    return rows["knob"].where(rows["matched"] == 0, rows["matched"])


def trained_pair(rows: pd.DataFrame) -> Figure:
    """Share of texts without fault against drafts kept per block; rows of ``TrainedPair``."""
    rows = largest(rows)
    rows = rows[rows["draft"] == "trained"]
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.6), sharey=True)
    words, filled = [], bool(rows["recorded"].iloc[0])
    for ax, shape in zip(axes, ("truncated", "plain"), strict=True):
        for rule, (name, color, marker) in RULES.items():
            part = rows[(rows["rule"] == rule) & (rows["shape"] == shape)].groupby(delta_of(rows))
            totals = part[["kept", "blocks", "valid"]].mean()
            kept, valid = totals["kept"] / totals["blocks"], totals["valid"]
            style = {"color": color, "marker": marker, "markerfacecolor": color if filled else "none"}
            ax.plot(kept, valid, linestyle="-" if rule == "cactus" else "", label=name, **style)
            words.append(
                f"{shape} {name} " + ", ".join(f"{v:.2f} at {a:.1f}" for v, a in zip(valid, kept, strict=True))
            )
        ax.set(xlabel="drafts kept per block")
    panel_label(axes[0], "truncated (0.6, top-p 0.95): one rule breaks texts")
    panel_label(axes[1], "temperature 1: faults rise with δ")
    axes[1].legend(fontsize=9, loc="lower left")
    axes[0].set(ylabel="texts without fault", ylim=(-0.03, 1.03))
    figure.set_label(
        "Share of texts without fault against drafts kept per block, truncated distributions and temperature 1. Share "
        f"at drafts kept: {'; '.join(words)}."
    )
    return figure
