"""A draft and a verifier trained on bracketed arithmetic: what Cactus gains and costs, and others at its acceptance.

Stands in for the paper's tables on GSM8K, IFEval and GPQA: the texts are generated, so every fault in them is found by
the grammar itself, and no benchmark is needed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch

from derived.lab.experiment import Experiment
from derived.lab.rng import stream

from .exact import acceptance_rate
from .language import Grammar
from .pairs import RIVALS, match, rule_of
from .training import LanguageModel, train
from .writing import Shape, blocks, surprise, write, write_alone

SHAPES = {"truncated": Shape(0.6, 0.95), "plain": Shape(1.0, 1.0)}  # the paper's setting [repo], and no shaping at all


@dataclass(frozen=True, kw_only=True)
class TrainedPair(Experiment):
    """CAC-12, CAC-13: texts of a trained pair under each rule, the rivals' knobs set so that they accept as often.

    Rows: pair, shape, draft (trained or unrelated), rule, knob, matched (the delta whose acceptance the knob was set
    to, else 0), mode (batch, or single: one text at a time, for the clock), prompt; kept, blocks, reached, valid, fault
    (tokens before the first one), surprise (nats per token), tv, kl (per position reached), seconds (per text).
    """

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
    timed: int = 50
    m: int = 10
    deltas: tuple[float, ...] = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
    matched: tuple[float, float] = (1.0, 0.01)  # with truncated laws, with plain ones

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "ci": {
            **{"pairs": 1, "width": 32, "depth": 2, "draft_depth": 1, "steps": 20, "draft_steps": 5, "batch_size": 8},
            **{"length": 26, "prompts": 12, "calibration": 8, "timed": 1, "m": 3, "deltas": (0.0, 1.0)},
            **{"lr": 3e-3, "matched": (1.0, 1.0)},
        },
        "cpu": {
            **{"pairs": 2, "width": 64, "depth": 4, "draft_depth": 1, "steps": 1500, "draft_steps": 400},
            **{"batch_size": 32, "lr": 3e-3, "deltas": (0.0, 0.01, 0.1, 1.0)},
            **{"length": 64, "prompts": 800, "calibration": 200, "timed": 24},
        },
        "gpu": {},
    }
    dtype: ClassVar[torch.dtype] = torch.float32

    def conditions(self) -> list[dict[str, Any]]:
        return [{"pair": pair} for pair in range(self.pairs)]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        pair, grammar = condition["pair"], Grammar(device=device)
        verifier = self._model(grammar, self.depth, self.steps, seed, ("verifier", pair), device, dtype)
        models = {
            "trained": self._model(grammar, self.draft_depth, self.draft_steps, seed, ("draft", pair), device, dtype)
        }
        models["unrelated"] = self._model(grammar, self.draft_depth, 0, seed, ("unrelated", pair), device, dtype)
        texts = grammar.sample(self.prompts + self.calibration, self.length, stream(seed, "prompts", pair)).to(device)
        texts[:, self.prompt :] = 0
        test, tune = texts[: self.prompts], texts[self.prompts :]
        tables = []
        for delta, (name, shape) in zip(self.matched, SHAPES.items(), strict=True):
            settings = [("trained", "cactus", each, 0.0) for each in self.deltas]
            settings += [("unrelated", "cactus", each, 0.0) for each in (0.0, max(self.deltas))]
            rows = self._proposals(models["trained"], verifier, tune, shape, stream(seed, "tune", pair, name))
            target = acceptance_rate(*rows, rule_of("cactus", delta)).mean().item()
            settings += [("trained", rule, match(rule, *rows, target), delta) for rule in RIVALS]
            for draft, rule, knob, matched in settings:
                keys = {"shape": name, "draft": draft, "rule": rule, "knob": knob, "matched": matched}
                tables.append(self._texts(models[draft], verifier, test, shape, keys, (seed, pair)))
            tables += self._clock(models["trained"], verifier, test, shape, name, (seed, pair))
        return pd.concat(tables, ignore_index=True)

    def _model(self, grammar, depth, steps, seed, names, device, dtype) -> LanguageModel:
        sizes = {"width": self.width, "depth": depth, "dtype": dtype, "device": device}
        model = LanguageModel(**sizes, generator=stream(seed, "init", *names))
        options = {"batch_size": self.batch_size, "length": self.length, "lr": self.lr}
        if steps:
            train(model, grammar, steps=steps, generator=stream(seed, "texts", *names), **options)
        return model

    def _proposals(self, draft, verifier, ids, shape, generator) -> tuple[torch.Tensor, torch.Tensor]:
        """(p, q) at the positions that exact speculative sampling reaches on texts of their own: (N, V) each."""
        options = {"prompt": self.prompt, "m": self.m, "shape": shape, "generator": generator}
        found = blocks(draft, verifier, ids.clone(), rule=rule_of("cactus", 0.0), **options)
        rows = [(block.p[block.reached], block.q[:, :-1][block.reached]) for block in found]
        return tuple(torch.cat(each) for each in zip(*rows, strict=True))

    def _texts(self, draft, verifier, ids, shape, keys, names, mode: str = "batch") -> pd.DataFrame:
        seed, pair = names
        options = {"prompt": self.prompt, "shape": shape, "generator": stream(seed, "writing", pair)}  # noise in common
        if keys["rule"] == "alone":
            found = write_alone(verifier, ids, **options)
        else:
            found = write(draft, verifier, ids, m=self.m, rule=rule_of(keys["rule"], keys["knob"]), **options)
        fault = Grammar(device=ids.device).first_fault(found.ids)
        columns = {"kept": found.kept, "blocks": found.blocks, "reached": found.reached}
        columns |= {"valid": (fault == self.length).double(), "fault": (fault - self.prompt).double()}
        columns |= {"surprise": surprise(verifier, found.ids, self.prompt)}
        columns |= {name: each / found.reached.clamp(min=1) for name, each in (("tv", found.tv), ("kl", found.kl))}
        columns = {name: each.cpu().numpy() for name, each in columns.items()}
        index = {**keys, "mode": mode, "prompt": np.arange(len(ids))}
        return pd.DataFrame({**index, **columns, "seconds": found.seconds / len(ids)})

    def _clock(self, draft, verifier, ids, shape, name, names) -> list[pd.DataFrame]:
        """One text at a time, rules taking turns, so that a busy moment of the machine hits all alike."""
        settings = [("alone", 0.0), ("cactus", 0.0), ("cactus", max(self.deltas))]
        tables = []
        for prompt in range(self.timed):
            for rule, knob in settings:
                keys = {"shape": name, "draft": "trained", "rule": rule, "knob": knob, "matched": 0.0}
                one = self._texts(draft, verifier, ids[prompt : prompt + 1], shape, keys, names, "single")
                tables.append(one.assign(prompt=prompt))
        return tables
