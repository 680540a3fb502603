"""Random softmax transformers with few tokens against the recurrences, where what is left out shows most.

column                  meaning
J_without_K             the recurrence of J with K dropped
J_without_attention     the MLP's factors alone, at the right q and p
pooled_as_independent   what the recurrence from (1, 0) says of a pooled gradient
q_apart, p_apart, ...   the recurrences from tokens that have no overlap, p = 0, at the start
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import torch

from derived.lab.experiment import Experiment
from derived.lab.rng import stream

from ..model.kernels import NormKernel, kernel_of
from ..model.meanfield import MeanFieldTrajectory, propagate
from ..model.transformer import RandomTransformer, Sigmas, equiangular_tokens
from .measured import measure


@dataclass(frozen=True, kw_only=True)
class Networks(Experiment):
    """SP-2, 3, 4, 18: random softmax transformers with equiangular tokens against the recurrences, block by block.

    Rows: replicate (an initialisation), b; q, p, J, K, pooled as measured, and the same with ``_theory``; theories that
    must miss: ``J_without_K``, ``J_without_attention`` (a = 0 backwards), ``pooled_as_independent`` (J from K^B = 0),
    ``q_apart``, ``p_apart``, ``K_apart`` (from tokens without overlap).
    """

    width: int = 256
    n: int = 12
    depth: int = 8
    a: float = 1.0
    s: float = 1.0
    alpha: float = 1.0
    q0: float = 1.0
    p0: float = 0.2
    heads: tuple[int, ...] = (1, 4)
    parts: int = 6
    inits: int = 32
    probes: int = 8

    tiers: ClassVar = {"ci": {"width": 128, "parts": 1, "probes": 4}, "cpu": {}}
    tiny: ClassVar = {"width": 32, "n": 4, "depth": 3, "inits": 4, "probes": 2}
    deterministic: ClassVar = {name: 1e-9 for name in ("q_theory", "p_theory", "J_theory", "K_theory", "pooled_theory")}
    dtype: ClassVar = torch.float32

    def conditions(self) -> list[dict]:
        norms = ("layernorm", "erf", "tanh")
        return [
            {"norm": norm, "heads": heads, "part": part}
            for norm in norms
            for heads in self.heads
            for part in range(self.parts)
        ]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        norm, heads, part = condition["norm"], condition["heads"], condition["part"]
        where = {"dtype": dtype, "device": device}
        sigmas = Sigmas(v=1.0, o=self.a**0.5, one=1.0, two=self.s**0.5)
        model = RandomTransformer(
            width=self.width,
            depth=self.depth,
            norm=norm,
            alpha=self.alpha,
            sigmas=sigmas,
            num_heads=heads,
            num_networks=self.inits,
            generator=stream(seed, "networks", heads, part),  # the same weights for every normaliser: compared in pairs
            **where,
        )
        size = (self.n, self.width, self.q0, self.p0)
        x = equiangular_tokens(*size, batch=(self.inits,), generator=stream(seed, "tokens", heads, part), **where)
        theory = self._theory(kernel_of(norm, self.alpha), sigmas)
        generator = stream(seed, "probes", norm, heads, part)
        return measure(model, x, probes=self.probes, generator=generator, theory=theory)

    def _theory(self, kernel: NormKernel, sigmas: Sigmas) -> dict[str, np.ndarray]:
        """The recurrences by block (depth + 1,): right ones, and those that must miss."""
        # SP-2, 3, 18: what must describe the networks; SP-4 and the controls: what must miss.
        common = {"kernel": kernel, "s": sigmas.s, "n": self.n, "depth": self.depth}
        trajectory = propagate(self.q0, self.p0, a=sigmas.a, **common)
        pooled = propagate(self.q0, self.p0, a=sigmas.a, output_gradient="pooled", **common)
        without = propagate(self.q0, self.p0, a=sigmas.a, cross_token=False, **common)
        apart = propagate(self.q0, 0.0, a=sigmas.a, **common)
        return {
            "q_theory": trajectory.q,
            "p_theory": trajectory.p,
            "J_theory": trajectory.J_backward,
            "K_theory": trajectory.K_backward,
            "pooled_theory": pooled.J_backward,
            "J_without_K": without.J_backward,
            "pooled_as_independent": trajectory.J_backward,
            "q_apart": apart.q,
            "p_apart": apart.p,
            "K_apart": apart.K_backward,
            "J_without_attention": mlp_only(trajectory, kernel, sigmas, self.n),
        }


def mlp_only(trajectory: MeanFieldTrajectory, kernel: NormKernel, sigmas: Sigmas, n: int) -> np.ndarray:
    """J from the MLP's factors alone, at the right (q, p): the backward recurrence without its attention terms."""
    q, p = trajectory.q[:-1], trajectory.p[:-1]
    q_tilde, p_tilde, *_ = kernel.moments(q, p)
    mixed = sigmas.a * (p_tilde + (q_tilde - p_tilde) / n)  # what uniform attention adds to q and to p
    # J^{B,b} = prod_{b' >= b} (1 + (s/2) q^_{b'+1/2}), in logarithms.
    gain = np.log1p(sigmas.s / 2 * kernel.moments(q + mixed, p + mixed).q_hat)
    return np.exp(np.concatenate([np.cumsum(gain[::-1])[::-1], [0.0]]))
