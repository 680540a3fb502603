"""Clocks: tokens per second of a trained pair, and the sampler alone.

symbol     name     meaning                              axes
B, m, V    -        sequences, drafts per block, tokens  scalar
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import pandas as pd
import torch
from scipy import stats as scipy_stats

from derived.lab import stats
from derived.lab.claims import RECORDED, reported
from derived.lab.effect import Published
from derived.lab.experiment import Experiment
from derived.lab.measure import Measure, chosen, jointly, lowest
from derived.lab.rng import stream
from derived.lab.stats import LEVEL, Estimate

from .matching import rule_of
from .model.generate import generate_alone
from .model.sampler import accept_reject
from .trained import CI, SHAPES, Pair, Setting


def now(device: torch.device) -> float:
    """Seconds on a steady clock, read once the device's queue is empty."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


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
        "cpu": {
            **{"pairs": 2, "steps": 1500, "draft_steps": 400, "batch_size": 32, "prompts": 800, "calibration": 200},
            "timed": 24,
        },
    }
    tiny: ClassVar = {"steps": 3, "draft_steps": 2}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        pair, rows = condition["pair"], []
        verifier, draft = (self.model(which, seed, pair, device, dtype) for which in ("verifier", "draft"))
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


@dataclass(frozen=True, kw_only=True)
class SamplerTime(Experiment):
    """CAC-14: the clock of the sampler alone, rules taking turns; float32 rows from a softmax of noise.

    The budget is so small that some blocks are cut, as exact sampling cuts nearly all: a rejection costs the rows that
    it reads. Each time is that of a call right after the same call untimed, so that no rule is timed on what another
    one has left in caches and in the allocator. Rows: B, V, repeat; seconds of exact (SpS), cactus, tas (which reads
    all rows), and of rows (two (B, V) tables read once: the least that a rejection costs); cut, the share of blocks in
    which Cactus rejects a draft.
    """

    batches: tuple[int, ...] = (1, 16)
    sizes: tuple[int, ...] = (32_000, 152_000)
    m: int = 10
    delta: float = 1e-3
    repeats: int = 40

    tiers: ClassVar = {"ci": {"batches": (2,), "sizes": (1000,), "m": 3, "repeats": 5}, "cpu": {}}
    tiny: ClassVar = {"sizes": (20,), "repeats": 3}
    dtype: ClassVar = torch.float32

    def conditions(self) -> list[dict]:
        return [{"B": B, "V": V} for B in self.batches for V in self.sizes]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        B, V = condition["B"], condition["V"]
        on = partial(stream, seed, device=device)
        noise = torch.randn(B, self.m + 1, V, generator=on("rows", B, V), dtype=dtype, device=device)
        q = torch.softmax(2 * noise, dim=-1)
        p = torch.softmax(2 * noise[:, : self.m] + noise.roll(1, dims=-1)[:, : self.m], dim=-1)
        drafted = torch.multinomial(p.flatten(0, 1), 1, generator=on("drafts", B, V)).view(B, -1)
        rules = {"exact": rule_of("cactus", 0.0), "cactus": rule_of("cactus", self.delta), "tas": rule_of("tas", 0.09)}
        generator, times = on("uniforms"), {name: [] for name in (*rules, "rows")}
        for _ in range(self.repeats):
            for name, rule in rules.items():
                times[name].append(_timed(partial(accept_reject, p, drafted, q, rule, generator), device))
            times["rows"].append(_timed(lambda: (p[:, 0].sum(dim=-1), q[:, 0].sum(dim=-1)), device))
        cut = accept_reject(p, drafted, q, rules["cactus"], on("cut")).n_accepted < self.m
        return pd.DataFrame({"repeat": range(self.repeats), **times, "cut": float(cut.double().mean())})


def _timed(call: Callable[[], object], device: torch.device) -> float:
    """Seconds of a call right after the same call, the device's queue empty before and after."""
    call()
    begun = now(device)
    call()
    return now(device) - begun


def ratio(top: pd.Series, bottom: pd.Series, level: float = LEVEL) -> Estimate:
    """Total over total of two columns of independent rows, with the jackknife's interval."""
    top, bottom = top.to_numpy(), bottom.to_numpy()
    whole, n = top.sum() / bottom.sum(), len(top)
    without = (top.sum() - top) / (bottom.sum() - bottom)
    one = stats.mean(n * whole - (n - 1) * without, level)
    return Estimate(float(whole), n, one.low, one.high, one.error)


def speedup(case: pd.DataFrame, level: float) -> Estimate:
    """Tokens per second of Cactus over those of plain decoding: ratio of the mean times per token over prompts."""
    case = case.assign(cost=case["seconds"] / case["tokens"])
    settings = ("rule == 'alone'", "rule == 'cactus' and knob == 1")
    alone, lossy = (chosen(case, which).set_index("prompt").sort_index() for which in settings)
    return ratio(alone["cost"], lossy["cost"], level)


def times(slow: str, fast: str) -> Measure:
    """Ratio of two times at the largest batch and vocabulary: median over the rounds in which they took turns.

    The interval runs between two order statistics, so no shape of the clock's distribution is assumed; where the rounds
    are too few for its level it says nothing, 0 to infinity.
    """

    def median(rows: pd.DataFrame) -> Estimate:
        some = chosen(rows, "B == B.max() and V == V.max()")
        ratios = np.sort(some[slow] / some[fast])
        n = len(ratios)
        rank = int(scipy_stats.binom.ppf((1 - LEVEL) / 2, n, 0.5))  # fewer than this many lie below the median: rarely
        low, high = (ratios[rank - 1], ratios[n - rank]) if rank else (0.0, np.inf)
        return Estimate(float(np.median(ratios)), n, float(low), float(high))

    return median


CLAIMS = (
    reported(
        "CAC-12.e",
        r"With temperature 0.6, top-p 0.95 and one text at a time, $\delta=1$ writes this many times the tokens per second of plain decoding by the verifier, in the slower pair of models.",
        PairTime,
        jointly(speedup, ["pair"], lowest, "shape == 'truncated'"),
        "times plain decoding",
        judged_at=RECORDED,
        paper_value=Published(1.9, "times plain decoding"),
        source="digest",
        where="Figure 3; one A100 there",
    ),
    reported(
        "CAC-14.a",
        r"At the largest recorded size our sampler for typical acceptance, which reads every row, takes this many times as long as our sampler for Cactus.",
        SamplerTime,
        times("tas", "cactus"),
        "times as long",
        judged_at=RECORDED,
        source="digest",
        where="discussion of memory traffic; both samplers are ours, and a slow rival of ours would flatter Cactus",
    ),
)
