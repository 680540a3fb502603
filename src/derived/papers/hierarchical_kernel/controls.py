"""The negative control, a leak that looks like a result, and the seconds that a layer takes."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch

from derived.lab.experiment import Experiment
from derived.lab.rng import stream

from .cost import AttentionInputs, attention_seconds
from .mechanism import IMPLEMENTATIONS
from .training import Data, evaluate, stack, train
from .transformer import SequenceClassifier


@dataclass(frozen=True, kw_only=True)
class Leak(Experiment):
    """HKT-3, the negative control: the next of i.i.d. uniform symbols, which nobody can predict without looking.

    No causal layer has an expected loss below ln V. Rows: kind, replicate, loss and accuracy on fresh data, chance
    (ln V).
    """

    kinds: tuple[str, ...] = ("plain", "hkt", "hkt-block")
    replicates: int = 12
    vocabulary: int = 4
    T: int = 16
    width: int = 32
    heads: int = 2
    levels: int = 2
    steps: int = 600
    batch_size: int = 32
    lr: float = 3e-3
    num_test: int = 1_000

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "ci": {"replicates": 4, "steps": 250, "num_test": 500},
        "cpu": {},
    }
    dtype: ClassVar[torch.dtype] = torch.float32

    def conditions(self) -> list[dict[str, Any]]:
        return [{"kind": kind} for kind in self.kinds]

    def task(self, generator: torch.Generator, num: int) -> Data:
        """i.i.d. uniform symbols 1 .. V, each labelled by its successor less one."""
        drawn = torch.randint(self.vocabulary, (num, self.T + 1), generator=generator)
        return Data(1 + drawn[:, :-1], torch.full((num,), self.T), drawn[:, 1:])

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        sizes = {"width": self.width, "depth": 1, "heads": self.heads, "levels": self.levels}
        sizes |= {"vocabulary": 1 + self.vocabulary, "classes": self.vocabulary, "max_length": self.T}
        facts = {"attention": condition["kind"], "num_networks": self.replicates, "read_out": "every"}
        model = SequenceClassifier(**sizes, **facts, impl="reference", seed=seed, dtype=dtype, device=device)
        num = self.steps * self.batch_size  # as many as are taken: a repeated sequence could be learned by heart
        sets = [
            stack([self.task(stream(seed, name, r), items) for r in range(self.replicates)]).to(device)
            for name, items in (("leak", num), ("leak test", self.num_test))
        ]
        options = {"steps": self.steps, "batch_size": self.batch_size, "lr": self.lr}
        train(model, sets[0], **options, generator=stream(seed, "leak batches"))
        loss, accuracy = evaluate(model, sets[1])
        facts = {"loss": loss.numpy(), "accuracy": accuracy.numpy(), "chance": math.log(self.vocabulary)}
        return pd.DataFrame({"replicate": range(self.replicates), **facts})


@dataclass(frozen=True, kw_only=True)
class Overhead(Experiment):
    """HKT-E4: seconds of one causal forward pass, three levels against one. Rows: T, impl, round, seconds.

    "sdpa" is torch's attention at the width of one level, "plain" the materialised layer with one level. All get the
    same queries, keys and values; projections and downsampling are left out. A round runs every contender once.
    """

    lengths: tuple[int, ...] = (512, 1024, 2048, 4096, 8192)
    heads: int = 16
    d_k: int = 64
    levels: int = 3
    rounds: int = 20
    half: bool = True  # bfloat16, as one would train

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "ci": {"lengths": (128,), "heads": 2, "d_k": 16, "rounds": 3, "half": False},
        "cpu": {"lengths": (512, 1024, 2048), "heads": 4, "rounds": 7, "half": False},
        "gpu": {},
    }
    dtype: ClassVar[torch.dtype] = torch.float32

    def conditions(self) -> list[dict[str, Any]]:
        return [{"T": T} for T in self.lengths]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        facts = {"d_k": self.d_k, "levels": self.levels, "heads": self.heads, "seed": seed, "device": device}
        inputs = AttentionInputs(condition["T"], **facts, dtype=torch.bfloat16 if self.half else dtype)
        found = attention_seconds(inputs, ("sdpa", "plain", *IMPLEMENTATIONS), self.rounds)
        index = {"impl": np.repeat(list(found), self.rounds), "round": np.tile(np.arange(self.rounds), len(found))}
        return pd.DataFrame({**index, "seconds": np.concatenate(list(found.values()))})
