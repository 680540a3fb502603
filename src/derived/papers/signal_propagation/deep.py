"""Networks of the depth and the shape of a vision transformer against the recurrences.

Rows as in ``experiments.Networks``: one per initialisation and block, measured columns and the same with ``_theory``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch

from derived.lab.experiment import Experiment
from derived.lab.rng import stream

from . import kernels
from .jacobian import apjn_hutchinson
from .meanfield import propagate
from .transformer import RandomTransformer, Sigmas, equiangular_tokens, token_moments


def kernel_of(norm: str, alpha: float = 1.0) -> kernels.NormKernel:
    """The mean-field kernel that belongs to a normaliser of ``RandomTransformer``."""
    if norm == "layernorm":
        return kernels.LayerNormKernel()
    return kernels.ErfKernel(alpha) if norm == "erf" else kernels.TanhKernel(alpha)


def measure(model: RandomTransformer, x: torch.Tensor, *, probes: int, generator: torch.Generator) -> pd.DataFrame:
    """q, p, J, K and the pooled amplification of each network at each block; J, K are means over probes."""
    alone = apjn_hutchinson(model, x, num_probes=probes, generator=generator)
    pooled = apjn_hutchinson(model, x, num_probes=probes, generator=generator, output_gradient="pooled")
    with torch.no_grad():
        moments = [token_moments(h) for h in model.states(x)]
    q, p, spread = (torch.stack(values, dim=-1).cpu() for values in zip(*moments, strict=True))
    networks, layers = q.shape
    columns = {"q": q, "p": p, "spread": spread, "J": alone.J.mean(dim=1), "K": alone.K.mean(dim=1)}
    columns["pooled"] = pooled.J.mean(dim=1)
    index = {"replicate": np.repeat(np.arange(networks), layers), "b": np.tile(np.arange(layers), networks)}
    return pd.DataFrame(index | {name: values.numpy().ravel() for name, values in columns.items()})


def compare(
    rows: pd.DataFrame, norm: str, alpha: float, sigmas: Sigmas, start: tuple[float, float], n: int, depth: int
):
    """Measured rows with the recurrences beside them: at n tokens, and ``J_infinite`` for n to infinity first."""
    common = {"kernel": kernel_of(norm, alpha), "a": sigmas.a, "s": sigmas.s, "depth": depth}
    course = propagate(*start, n=n, **common)
    pooled = propagate(*start, n=n, output_gradient="pooled", **common)
    infinite = propagate(*start, n=np.inf, **common)
    without = propagate(*start, n=n, cross_token=False, **common)
    theory = {"q_theory": course.q, "p_theory": course.p, "J_theory": course.J_backward, "K_theory": course.K_backward}
    theory |= {"pooled_theory": pooled.J_backward, "J_infinite": infinite.J_backward}
    theory |= {"J_without_K": without.J_backward}
    return rows.assign(**{name: np.tile(v, len(rows) // (depth + 1)) for name, v in theory.items()})


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

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {"width": 96, "parts": 1}, "cpu": {}}
    deterministic: ClassVar[Mapping[str, float]] = {"q_theory": 1e-9, "p_theory": 1e-9}
    dtype: ClassVar[torch.dtype] = torch.float32

    def conditions(self) -> list[dict[str, Any]]:
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
        with torch.no_grad():
            moments = [token_moments(h) for h in model.states(x)]
        q, p, _ = (torch.stack(values, dim=-1).cpu().numpy() for values in zip(*moments, strict=True))
        common = {"a": model.sigmas.a, "s": model.sigmas.s, "n": self.n, "depth": self.depth}
        course = propagate(self.q0, self.p0, kernel=kernel_of(norm, self.alpha), **common)
        index = {"replicate": np.repeat(np.arange(self.inits), self.depth + 1)}
        index["b"] = np.tile(np.arange(self.depth + 1), self.inits)
        theory = {"q_theory": np.tile(course.q, self.inits), "p_theory": np.tile(course.p, self.inits)}
        return pd.DataFrame({**index, "q": q.ravel(), "p": p.ravel(), **theory})


@dataclass(frozen=True, kw_only=True)
class ManyTokens(Experiment):
    """SP-13: attn_mult 2, 196 tokens, 128 blocks behind LayerNorm, from the start (0.27, 0.11) of the author's run.

    The recurrence for infinitely many tokens first, ``J_infinite``, must miss.
    """

    width: int = 768
    num_heads: int = 12
    n: int = 196
    depth: int = 128
    attn_mult: float = 2.0
    q0: float = 0.27
    p0: float = 0.11
    inits: int = 8
    probes: int = 3

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "ci": {"width": 48, "num_heads": 2, "n": 24, "depth": 12, "inits": 2, "probes": 1},
        "cpu": {"width": 384, "num_heads": 6, "probes": 1},
        "gpu": {},
    }
    deterministic: ClassVar[Mapping[str, float]] = {"J_theory": 1e-9, "J_infinite": 1e-9}
    dtype: ClassVar[torch.dtype] = torch.float32

    def conditions(self) -> list[dict[str, Any]]:
        return [{"init": init} for init in range(self.inits)]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        sigmas = Sigmas().scaled(attn_mult=self.attn_mult)
        size = {"width": self.width, "num_heads": self.num_heads, "depth": self.depth, "n": self.n}
        start = (self.q0, self.p0)
        rows = one_network("layernorm", 1.0, sigmas, size, start, self.probes, seed, condition["init"], device, dtype)
        return compare(rows, "layernorm", 1.0, sigmas, start, self.n, self.depth)


@dataclass(frozen=True, kw_only=True)
class VisionTransformer(Experiment):
    """SP-15: networks of the shape of ViT-Base/16 (width 768, 12 heads, 197 tokens, depth 32), equiangular tokens.

    The notebook of the author holds the measured values of timm's network in this setting, one initialisation [repo].
    """

    width: int = 768
    num_heads: int = 12
    n: int = 197
    depth: int = 32
    alphas: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9, 1.1, 1.3, 1.5, 1.7, 1.9)
    q0: float = 1.0
    p0: float = 0.2
    inits: int = 8
    probes: int = 10

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "ci": {"width": 48, "num_heads": 2, "n": 16, "depth": 6, "alphas": (0.5, 1.9), "inits": 2, "probes": 1},
        "cpu": {"alphas": (0.5, 1.1, 1.9), "probes": 1},
        "gpu": {},
    }
    deterministic: ClassVar[Mapping[str, float]] = {"J_theory": 1e-9, "q_theory": 1e-9, "p_theory": 1e-9}
    dtype: ClassVar[torch.dtype] = torch.float32

    def conditions(self) -> list[dict[str, Any]]:
        cases = [("layernorm", 1.0), *(("erf", alpha) for alpha in self.alphas)]
        return [{"norm": norm, "alpha": alpha, "init": init} for norm, alpha in cases for init in range(self.inits)]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        norm, alpha, start = condition["norm"], condition["alpha"], (self.q0, self.p0)
        size = {"width": self.width, "num_heads": self.num_heads, "depth": self.depth, "n": self.n}
        rows = one_network(norm, alpha, Sigmas(), size, start, self.probes, seed, condition["init"], device, dtype)
        return compare(rows, norm, alpha, Sigmas(), start, self.n, self.depth)


def one_network(norm, alpha, sigmas, size, start, probes, seed, init, device, dtype) -> pd.DataFrame:
    """Measured rows of one initialisation with equiangular tokens; the same for every normaliser."""
    shape = {name: size[name] for name in ("width", "num_heads", "depth")}
    facts = {"norm": norm, "alpha": alpha, "sigmas": sigmas, "dtype": dtype, "device": device}
    model = RandomTransformer(**shape, **facts, generator=stream(seed, "vision weights", init))
    draw = stream(seed, "vision tokens", init)
    x = equiangular_tokens(size["n"], size["width"], *start, batch=(1,), generator=draw, dtype=dtype, device=device)
    return measure(model, x, probes=probes, generator=stream(seed, "vision probes", init))
