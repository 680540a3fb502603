"""A draft and a verifier trained on bracketed arithmetic: what Cactus gains and costs, and others at its acceptance.

Stands in for the paper's tables on GSM8K, IFEval and GPQA: the texts are generated, so every fault in them is found by
the grammar itself, and no benchmark is needed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from derived.lab.experiment import Experiment
from derived.lab.rng import stream

from ..data.language import Grammar
from ..data.small_lm import LanguageModel, train
from ..model.exact import acceptance_rate
from .matching import RIVALS, match, rule_of
from .writing import Shape, blocks, surprise, time_blocks, write, write_alone

SHAPES = {"truncated": Shape(0.6, 0.95), "plain": Shape(1.0, 1.0)}  # the paper's setting [repo], and no shaping at all
CI = {
    **{"pairs": 1, "width": 32, "depth": 2, "draft_depth": 1, "steps": 20, "draft_steps": 5, "batch_size": 8},
    **{"length": 26, "prompts": 12, "calibration": 8, "m": 3, "deltas": (0.0, 1.0)},
    **{"lr": 3e-3, "matched": (1.0, 1.0)},
}
CPU = {
    **{"pairs": 2, "width": 64, "depth": 4, "draft_depth": 1, "steps": 1500, "draft_steps": 400},
    **{"batch_size": 32, "lr": 3e-3, "deltas": (0.0, 0.01, 0.1, 1.0)},
    **{"length": 64, "prompts": 800, "calibration": 200},
}


class Setting(NamedTuple):
    """A rule with its knob; ``matched`` is the delta whose acceptance the knob was set to, else 0."""

    rule: str
    knob: float
    matched: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Pair(Experiment):
    """A verifier and a draft trained on the same language, prompts to continue, and the rules that judge."""

    pairs: int = 3
    width: int = 256
    depth: int = 8
    draft_depth: int = 2
    steps: int = 6000
    draft_steps: int = 1500
    batch_size: int = 128
    lr: float = 1e-3
    length: int = 96
    prompt: int = 16
    prompts: int = 4000
    calibration: int = 1000
    m: int = 10
    deltas: tuple[float, ...] = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
    matched: tuple[float, float] = (1.0, 0.01)  # with truncated laws, with plain ones

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": CI, "cpu": CPU, "gpu": {}}
    dtype: ClassVar[torch.dtype] = torch.float32

    def conditions(self) -> list[dict[str, Any]]:
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
            train(model, Grammar(device=device), steps=steps, generator=stream(seed, "texts", *names), **options)
        return model

    def texts(self, seed: int, pair: int, device) -> tuple[Tensor, Tensor]:
        """Prompts to be judged by and others to set knobs on, with room for what is written: (prompts, length) each."""
        num = self.prompts + self.calibration
        texts = Grammar(device=device).sample(num, self.length, stream(seed, "prompts", pair)).to(device)
        texts[:, self.prompt :] = 0
        return texts[: self.prompts], texts[self.prompts :]

    def settings(self, draft, verifier, tune: Tensor, name: str, names: tuple[int, int]) -> list[Setting]:
        """Cactus at every delta, and each rival at the mean acceptance of one of them over the positions of ``tune``
        that exact speculative sampling reaches."""
        delta = self.matched[list(SHAPES).index(name)]
        rows = self._proposals(draft, verifier, tune, SHAPES[name], stream(names[0], "tune", names[1], name))
        target = acceptance_rate(*rows, rule_of("cactus", delta)).mean().item()
        rivals = [Setting(rule, match(rule, *rows, target), delta) for rule in RIVALS]
        return [*(Setting("cactus", each) for each in self.deltas), *rivals]

    def _proposals(self, draft, verifier, ids, shape, generator) -> tuple[Tensor, Tensor]:
        """(p, q) at the positions reached: (N, V) each."""
        options = {"prompt": self.prompt, "m": self.m, "shape": shape, "generator": generator}
        found = blocks(draft, verifier, ids.clone(), rule=rule_of("cactus", 0.0), **options)
        rows = [(block.p[block.reached], block.q[:, :-1][block.reached]) for block in found]
        return tuple(torch.cat(each) for each in zip(*rows, strict=True))


@dataclass(frozen=True, kw_only=True)
class TrainedPair(Pair):
    """CAC-12, CAC-13: texts of a trained pair under each rule, the rivals' knobs set so that they accept as often.

    Rows: pair, shape, draft (trained or unrelated), rule, knob, matched, prompt; kept, blocks, reached, valid, fault
    (tokens before the first one), surprise (nats per token), tv, kl (per position reached).
    """

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        pair = condition["pair"]
        verifier, draft, unrelated = (
            make(seed, pair, device, dtype) for make in (self.verifier, self.draft, self.unrelated)
        )
        test, tune = self.texts(seed, pair, device)
        tables = []
        for name, shape in SHAPES.items():
            cases = [("trained", draft, one) for one in self.settings(draft, verifier, tune, name, (seed, pair))]
            cases += [("unrelated", unrelated, Setting("cactus", each)) for each in (0.0, max(self.deltas))]
            for which, model, setting in cases:
                draw = stream(seed, "writing", pair)  # noise in common
                rows = self._rows(model, verifier, test, shape, setting, draw)
                tables.append(rows.assign(shape=name, draft=which, **setting._asdict()))
        return pd.concat(tables, ignore_index=True)

    def _rows(self, draft, verifier, ids, shape, setting: Setting, generator) -> pd.DataFrame:
        options = {"prompt": self.prompt, "m": self.m, "shape": shape, "generator": generator}
        found = write(draft, verifier, ids, rule=rule_of(setting.rule, setting.knob), **options)
        fault = Grammar(device=ids.device).first_fault(found.ids)
        columns = {"kept": found.kept, "blocks": found.blocks, "reached": found.reached}
        columns |= {"valid": (fault == self.length).double(), "fault": (fault - self.prompt).double()}
        columns |= {"surprise": surprise(verifier, found.ids, self.prompt)}
        columns |= {name: each / found.reached.clamp(min=1) for name, each in (("tv", found.tv), ("kl", found.kl))}
        return pd.DataFrame({"prompt": np.arange(len(ids))} | {k: each.cpu().numpy() for k, each in columns.items()})


@dataclass(frozen=True, kw_only=True)
class PairTime(Pair):
    """CAC-12.e: the clock of the same pairs, one text at a time, against plain decoding by the verifier ("alone").

    Both start when the prompt has been read, and every pass that is timed yields tokens; what a last block writes
    beyond the text's length counts for the rule that wrote it. Each prompt is continued under every setting, in an
    order that moves on by one from prompt to prompt. Rows: pair, shape, rule, knob, matched, prompt; tokens, seconds.
    """

    timed: int = 50

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "ci": {**CI, "timed": 2},
        "cpu": {**CPU, "timed": 24},
        "gpu": {},
    }

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        pair, rows = condition["pair"], []
        verifier, draft = (make(seed, pair, device, dtype) for make in (self.verifier, self.draft))
        test, tune = self.texts(seed, pair, device)
        for name, shape in SHAPES.items():
            settings = [Setting("alone", 0.0), *self.settings(draft, verifier, tune, name, (seed, pair))]
            for turn in range(-1, self.timed):  # the first round warms up
                ids, first = test[max(turn, 0)].unsqueeze(0), turn % len(settings)
                for setting in settings[first:] + settings[:first]:
                    draw = stream(seed, "clock", pair, max(turn, 0))
                    tokens, seconds = self._clock(draft, verifier, ids, shape, setting, draw)
                    facts = {"shape": name, **setting._asdict(), "prompt": turn}
                    rows.append(facts | {"tokens": tokens, "seconds": seconds})
        return pd.DataFrame([row for row in rows if row["prompt"] >= 0])

    def _clock(self, draft, verifier, ids, shape, setting: Setting, generator) -> tuple[int, float]:
        options = {"prompt": self.prompt, "shape": shape, "generator": generator}
        if setting.rule == "alone":
            return self.length - self.prompt, write_alone(verifier, ids, **options)[1]
        return time_blocks(draft, verifier, ids, m=self.m, rule=rule_of(setting.rule, setting.knob), **options)
