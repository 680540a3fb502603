"""Whether tokens collapse onto each other: the overlap p / q through many blocks of torch networks.

column              meaning                                    per
q, p                second moment and overlap of the stream     replicate, b
q_theory, p_theory  the same from the recurrence                b
"""

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import torch

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..model.kernels import kernel_of
from ..model.meanfield import propagate
from ..model.transformer import RandomTransformer, equiangular_tokens
from .measured import moments_by_block


@dataclass(frozen=True, kw_only=True)
class DeepOverlap(Experiment):
    """SP-10: the overlap through 64 blocks of torch networks; rows: replicate, b, q, p, q_theory, p_theory."""

    width: int = 256
    n: int = 12
    depth: int = 64
    alpha: float = 1.0
    q0: float = 1.0
    p0: float = 0.2
    parts: int = 16
    inits: int = 6

    tiers: ClassVar = {"ci": {"width": 96, "parts": 1}, "cpu": {}}
    tiny: ClassVar = {"width": 32, "depth": 4, "inits": 3}
    deterministic: ClassVar = {"q_theory": 1e-9, "p_theory": 1e-9}
    dtype: ClassVar = torch.float32

    def conditions(self) -> list[dict]:
        return [{"norm": norm, "part": part} for norm in ("layernorm", "erf") for part in range(self.parts)]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        norm, part = condition["norm"], condition["part"]
        where = {"dtype": dtype, "device": device}
        model = RandomTransformer(
            width=self.width,
            depth=self.depth,
            norm=norm,
            alpha=self.alpha,
            num_networks=self.inits,
            generator=stream(seed, "deep networks", part),
            **where,
        )
        size = (self.n, self.width, self.q0, self.p0)
        x = equiangular_tokens(*size, batch=(self.inits,), generator=stream(seed, "deep tokens", part), **where)
        q, p, _ = moments_by_block(model, x)
        sizes = {"a": model.sigmas.a, "s": model.sigmas.s, "n": self.n, "depth": self.depth}
        trajectory = propagate(self.q0, self.p0, kernel=kernel_of(norm, self.alpha), **sizes)
        theory = {"q_theory": trajectory.q, "p_theory": trajectory.p}
        return rows({"replicate": range(self.inits), "b": range(self.depth + 1)}, {"q": q, "p": p, **theory})
