"""A draft and a verifier trained on bracketed arithmetic: what Cactus gains and costs, and others at its acceptance.

Stands in for the paper's tables on GSM8K, IFEval and GPQA: the texts are generated, so every fault in them is found by
the grammar itself, and no benchmark is needed. All texts are written by ``speculative_generate``.

symbol    name             meaning                                                             axes
p, q      p, q             laws of draft and verifier at the drafted positions of a text       (N, V)
AL        kept / blocks    drafts kept over passes of the verifier                             (prompts,)
TV, KL    tv, kl           of the emitted law from q, mean over the drafted positions          (prompts,)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import ClassVar, NamedTuple

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.nn.utils import clip_grad_norm_

from derived.lab import training
from derived.lab.experiment import Experiment
from derived.lab.rng import stream

from ..data.language import Grammar
from ..data.small_lm import LanguageModel
from ..model.divergences import divergence
from ..model.exact import acceptance_rate, output_law
from ..model.generate import JudgedBlock, generate_alone, speculative_generate
from ..model.rules import Interp, Rule
from .matching import RIVALS, match, rule_of
from .stopwatch import now

#: How laws are made from logits, for both models alike: the paper's setting [repo], and nothing done to them.
SHAPES = MappingProxyType({"truncated": {"temperature": 0.6, "top_p": 0.95}, "plain": {}})
CI = {
    **{"pairs": 2, "width": 32, "depth": 2, "draft_depth": 1, "steps": 20, "draft_steps": 5, "batch_size": 8},
    **{"length": 26, "prompts": 12, "calibration": 8, "m": 3, "deltas": (0.0, 1.0)},
    **{"lr": 3e-3, "matched": (1.0, 1.0)},
}
CPU = {
    **{"pairs": 12, "width": 64, "depth": 4, "draft_depth": 1, "steps": 3000, "draft_steps": 600},
    **{"batch_size": 16, "lr": 3e-3, "deltas": (0.0, 0.01, 0.1, 1.0)},
    **{"length": 64, "prompts": 200, "calibration": 100},
}
#: Two pairs on their own, whose clock was recorded: it asks for a quiet machine, and not for many trainings.
TWO = {"pairs": 2, "steps": 1500, "draft_steps": 400, "batch_size": 32, "prompts": 800, "calibration": 200}


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


class Drafted(NamedTuple):
    """The drafted positions of a block that belong to its texts: those up to the first rejection, within the length."""

    inside: Tensor  # (B', m)
    p: Tensor  # (N, V), one row for each of them
    q: Tensor  # (N, V)


def drafted_positions(block: JudgedBlock) -> Drafted:
    """Where the rule had to decide in a block, and between which laws."""
    m = block.draft_laws.shape[1]
    inside = torch.arange(m, device=block.counts.device) < block.counts.unsqueeze(-1)
    return Drafted(inside, block.draft_laws[inside], block.verifier_laws[:, :m][inside])


class Account:
    """What the texts of a batch pay: TV and KL of the emitted law at each drafted position.

    That law is known exactly from p and q, so it is summed without sampling error.
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

    pairs: int = 8
    width: int = 192
    depth: int = 6
    draft_depth: int = 2
    steps: int = 4000
    draft_steps: int = 1000
    batch_size: int = 128
    lr: float = 1e-3
    length: int = 96
    prompt: int = 16
    prompts: int = 1000
    calibration: int = 500
    m: int = 10
    deltas: tuple[float, ...] = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
    matched: tuple[float, float] = (1.0, 0.01)  # with truncated laws, with plain ones

    tiers: ClassVar = {"ci": CI, "cpu": CPU, "gpu": {}}
    dtype: ClassVar = torch.float32

    def conditions(self) -> list[dict]:
        return [{"pair": pair} for pair in range(self.pairs)]

    def verifier(self, seed: int, pair: int, device, dtype) -> LanguageModel:
        """The large model of a pair, trained."""
        return self._model(self.depth, self.steps, seed, ("verifier", pair), device, dtype)

    def draft(self, seed: int, pair: int, device, dtype) -> LanguageModel:
        """The small model of a pair, trained."""
        return self._model(self.draft_depth, self.draft_steps, seed, ("draft", pair), device, dtype)

    def unrelated(self, seed: int, pair: int, device, dtype) -> LanguageModel:
        """A draft that was never trained."""
        return self._model(self.draft_depth, 0, seed, ("unrelated", pair), device, dtype)

    def _model(self, depth, steps, seed, names, device, dtype) -> LanguageModel:
        sizes = {"width": self.width, "depth": depth, "dtype": dtype, "device": device}
        model = LanguageModel(**sizes, generator=stream(seed, "init", *names))
        options = {"batch_size": self.batch_size, "length": self.length, "lr": self.lr}
        if steps:
            generator = stream(seed, "texts", *names, device=device)  # bulk: a text for each of hundreds of thousands
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
        note = partial(_note_laws, drafted)
        self.write(draft, verifier, tune, rule_of("cactus", 0.0), shape, generator, note)
        p, q = (torch.cat(rows) for rows in zip(*drafted, strict=True))
        target = acceptance_rate(p, q, rule_of("cactus", delta)).mean().item()
        matched = [Setting(rule, match(rule, p, q, target), delta) for rule in rivals]
        return [*(Setting("cactus", each) for each in self.deltas), *matched]


def _note_laws(rows: list[tuple[Tensor, Tensor]], block: JudgedBlock) -> None:
    _, p, q = drafted_positions(block)
    rows.append((p, q))


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
        verifier, draft, unrelated = (
            make(seed, pair, device, dtype) for make in (self.verifier, self.draft, self.unrelated)
        )
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
        "cpu": {**CPU, "pairs": 8, "prompts": 400, "deltas": (0.0, 1.0, 1e6)},
    }

    def conditions(self) -> list[dict]:
        return [{"pair": 100 + pair} for pair in range(self.pairs)]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        pair, shape = condition["pair"], "truncated"
        verifier, draft = (make(seed, pair, device, dtype) for make in (self.verifier, self.draft))
        test, tune = self.texts(seed, pair, device)
        settings, tables = self.settings(draft, verifier, tune, shape, seed, pair, ("interp inside",)), []
        for setting in (*settings, Setting("draft", 1.0)):
            rule = Interp(1.0) if setting.rule == "draft" else rule_of(setting.rule, setting.knob)
            rows = self._rows(draft, verifier, test, shape, rule, stream(seed, "writing", pair))
            tables.append(rows.assign(shape=shape, draft="trained", **setting._asdict()))
        return pd.concat(tables, ignore_index=True)


@dataclass(frozen=True, kw_only=True)
class PairTime(Pair):
    """CAC-12.e: the clock of such pairs, one text at a time, against plain decoding by the verifier ("alone").

    Both start when the verifier's first pass, which reads the prompt, is over, so that every pass that is timed yields
    tokens; one that a last block writes beyond the text's length counts for the rule that wrote it. Each prompt is
    continued under every setting, in an order that moves on by one from prompt to prompt. Rows: pair, shape, rule,
    knob, matched, prompt; passes, tokens, seconds.
    """

    timed: int = 50

    tiers: ClassVar = {
        "ci": {**CI, "pairs": 1, "timed": 2},
        "cpu": {**CPU, **TWO, "timed": 24},
        "gpu": {},
    }
    tiny: ClassVar = {"steps": 3, "draft_steps": 2}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        pair, rows = condition["pair"], []
        verifier, draft = (make(seed, pair, device, dtype) for make in (self.verifier, self.draft))
        test, tune = self.texts(seed, pair, device)
        for shape in SHAPES:
            settings = [Setting("alone", 0.0), *self.settings(draft, verifier, tune, shape, seed, pair)]
            for turn in range(-1, self.timed):  # the first round warms up
                prompt, first = test[max(turn, 0)].unsqueeze(0), turn % len(settings)
                for setting in settings[first:] + settings[:first]:
                    generator = stream(seed, "clock", pair, max(turn, 0))
                    clock = self._clock(draft, verifier, prompt, shape, setting, generator)
                    rows.append({"shape": shape, **setting._asdict(), "prompt": turn, **clock})
        return pd.DataFrame([row for row in rows if row["prompt"] >= 0])

    def _clock(self, draft, verifier, prompt, shape, setting: Setting, generator) -> dict[str, float]:
        passes: list[tuple[float, int]] = []  # when each pass of the verifier was over, and the tokens that it gave
        if setting.rule == "alone":
            options = {"max_new_tokens": self.length - self.prompt, "generator": generator, **SHAPES[shape]}
            generate_alone(verifier, prompt, on_token=lambda _: passes.append((now(prompt.device), 1)), **options)
        else:
            note = lambda block: passes.append((now(prompt.device), int(block.n_accepted) + 1))  # noqa: E731
            self.write(draft, verifier, prompt, rule_of(setting.rule, setting.knob), shape, generator, note)
        (begun, _), *rest = passes
        return {
            "passes": float(len(rest)),
            "tokens": float(sum(tokens for _, tokens in rest)),
            "seconds": rest[-1][0] - begun,
        }
