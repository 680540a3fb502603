"""The experiments of the chapter: closed forms, recurrences carried deep, and narrow networks against them.

Networks of the shape of a vision transformer stand in ``deep``, images and training in ``trained``. Each is a frozen
table of sizes whose defaults are the largest run, and one batched function per condition.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from scipy import special

from derived.lab.experiment import Experiment
from derived.lab.rng import stream

from . import asymptotics, kernels
from .deep import DeepOverlap, ManyTokens, VisionTransformer, kernel_of, measure
from .meanfield import propagate
from .trained import GeneratedImages, Trainability
from .transformer import RandomTransformer, Sigmas, equiangular_tokens

INFINITE = 0  # the row's name of n = infinity: JSON and parquet keep an integer column


def uniform(shape: tuple[int, ...], low: float, high: float, generator: torch.Generator) -> np.ndarray:
    """Uniform numbers in [low, high) as float64."""
    return (low + (high - low) * torch.rand(shape, generator=generator, dtype=torch.float64)).numpy()


def tokens_of(n: int) -> float:
    """The number of tokens as the recurrences take it."""
    return np.inf if n == INFINITE else n


@dataclass(frozen=True, kw_only=True)
class ClosedForms(Experiment):
    """SP-1: the moments of erf and ReLU against quadratures that know no closed form.

    Rows: instance, moment, closed, quadrature, gap, bound.
    """

    instances: int = 32
    nodes: int = 385
    tolerance: float = 1e-5

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {}}
    deterministic: ClassVar[Mapping[str, float]] = {"closed": 1e-12}

    def conditions(self) -> list[dict[str, Any]]:
        return [{"map": name} for name in ("erf", "relu")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        draw = stream(seed, "closed forms", condition["map"])
        q, rho = 10 ** uniform((self.instances,), -2, 1, draw), uniform((self.instances,), -0.98, 0.98, draw)
        if condition["map"] == "erf":
            alpha = uniform((self.instances,), 0.1, 1.5, draw)
            slope = lambda x: 2 / np.pi**0.5 * np.exp(-x * x)  # noqa: E731
            closed = kernels.ErfKernel(alpha).moments(q, rho * q)._asdict()
            numbers = kernels.ElementwiseKernel(special.erf, slope, alpha, self.nodes).moments(q, rho * q)._asdict()
        else:
            closed = {"kappa": kernels.arccos_kernel(rho), "kappa_prime": kernels.arccos_kernel_prime(rho)}
            numbers = _relu_by_quadrature(rho)
        tables = [
            pd.DataFrame(
                {"instance": range(self.instances), "moment": k, "closed": closed[k], "quadrature": numbers[k]}
            )
            for k in closed
        ]
        rows = pd.concat(tables, ignore_index=True)
        return rows.assign(gap=(rows["closed"] - rows["quadrature"]).abs(), bound=self.tolerance)


def _relu_by_quadrature(rho: np.ndarray) -> dict[str, np.ndarray]:
    """E relu relu' and P(z > 0, z' > 0): the inner mean over z' given z in closed form, the outer by Gauss-Legendre."""
    node, weight = np.polynomial.legendre.leggauss(400)
    z = 5 * (node + 1)  # [0, 10]; beyond lies a mass of 1e-23
    measure = 5 * weight * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    spread = np.sqrt(1 - rho * rho)[:, None]
    t = rho[:, None] * z / spread
    positive = special.ndtr(t)
    inner = rho[:, None] * z * positive + spread * np.exp(-t * t / 2) / np.sqrt(2 * np.pi)
    return {"kappa": (z * inner) @ measure, "kappa_prime": positive @ measure}


@dataclass(frozen=True, kw_only=True)
class Ends(Experiment):
    """SP-5: J between the two ends, from the backward and from the forward product; rows: instance, gap, bound."""

    instances: int = 128
    depth: int = 64
    tolerance: float = 1e-12

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {}}

    def conditions(self) -> list[dict[str, Any]]:
        return [{"norm": norm} for norm in ("layernorm", "erf", "tanh")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        draw = stream(seed, "ends", condition["norm"])
        alpha, a, s, rho = (uniform((self.instances,), *ends, draw) for ends in ((0.2, 2), (0, 2), (0.1, 4), (0, 0.9)))
        n = torch.randint(2, 200, (self.instances,), generator=draw).numpy()
        kernel = kernel_of(condition["norm"], alpha)
        course = propagate(1.0, rho, kernel=kernel, a=a, s=s, n=n, depth=self.depth)
        gap = np.abs(np.expm1(course.log_J_backward[:, 0] - course.log_J_forward[:, -1]))
        return pd.DataFrame({"instance": range(self.instances), "gap": gap, "bound": self.tolerance})


@dataclass(frozen=True, kw_only=True)
class Regimes(Experiment):
    """SP-6 to SP-12: the recurrences carried far, ViT-Base variances with W_V and W_O multiplied by attn_mult.

    Rows: norm, alpha, attn_mult (0: no attention), tokens (0: infinitely many), b, q, rho, log_J, log_difference.
    """

    depth: int = 100_000
    depth_tanh: int = 100_000
    points: int = 81
    q0: float = 1.0
    p0: float = 0.2
    attn_mults: tuple[float, ...] = (0.0, 1.0, 2.0)
    tokens: tuple[int, ...] = (4, 16, 64, 256, INFINITE)
    alphas: tuple[float, ...] = (0.5, 1.0)

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {"depth": 30_000, "depth_tanh": 3000}, "cpu": {}}
    deterministic: ClassVar[Mapping[str, float]] = {"q": 1e-8, "rho": 1e-6, "log_J": 1e-6}

    def conditions(self) -> list[dict[str, Any]]:
        return [{"norm": norm} for norm in ("layernorm", "erf", "tanh")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        norm = condition["norm"]
        depth = self.depth_tanh if norm == "tanh" else self.depth
        tokens = self.tokens if norm == "layernorm" else (INFINITE,)
        alphas = (1.0,) if norm in ("layernorm", "tanh") else self.alphas
        mults = self.attn_mults if norm != "tanh" else self.attn_mults[:2]
        grid = pd.MultiIndex.from_product([alphas, mults, tokens], names=["alpha", "attn_mult", "tokens"]).to_frame()
        a, s = asymptotics.vit_variances(grid["attn_mult"].to_numpy())
        n = np.array([tokens_of(each) for each in grid["tokens"]])
        kernel = kernel_of(norm, grid["alpha"].to_numpy())
        course = propagate(self.q0, self.p0, kernel=kernel, a=a, s=s, n=n, depth=depth)
        at = np.unique(np.geomspace(4, depth, self.points).round().astype(int))
        columns = {"q": course.q, "rho": course.rho, "log_J": course.log_J_forward}
        columns["log_difference"] = np.log(course.q - course.p)
        rows = grid.loc[grid.index.repeat(len(at))].reset_index(drop=True)
        return rows.assign(b=np.tile(at, len(grid)), **{k: v[:, at].ravel() for k, v in columns.items()})


@dataclass(frozen=True, kw_only=True)
class Window(Experiment):
    """SP-14: Derf with small alpha, many tokens, ViT-Base variances; ``log_J`` between its two bounds.

    Rows: alpha, b, q, p, log_J, low, high; ``crossover``, where alpha^2 p reaches 1, and ``predicted``.
    """

    alphas: tuple[float, ...] = (0.02, 0.05, 0.1, 0.2)
    q0: float = 1.0
    p0: float = 0.2
    points: int = 40

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {"alphas": (0.05, 0.1, 0.2)}, "cpu": {}}
    deterministic: ClassVar[Mapping[str, float]] = {"q": 1e-8, "p": 1e-8, "log_J": 1e-7}

    def conditions(self) -> list[dict[str, Any]]:
        return [{"alpha": alpha} for alpha in self.alphas]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        alpha = condition["alpha"]
        a, s = asymptotics.vit_variances()
        predicted = float(asymptotics.crossover_depth(alpha, self.p0, a, s))
        depth = int(1.6 * predicted)
        kernel = kernels.ErfKernel(alpha)
        course = propagate(self.q0, self.p0, kernel=kernel, a=a, s=s, n=np.inf, depth=depth)
        at = np.unique(np.geomspace(1, depth, self.points).round().astype(int))
        slope = s / 2 * 4 * alpha**2 / np.pi
        return pd.DataFrame(
            {
                "b": at,
                "q": course.q[at],
                "p": course.p[at],
                "log_J": course.log_J_forward[at],
                "low": at * np.log1p(slope / np.sqrt(1 + 4 * alpha**2 * course.q[at])),
                "high": at * np.log1p(slope),
                "crossover": int(np.argmax(alpha**2 * course.p >= 1)),
                "predicted": predicted,
            }
        )


@dataclass(frozen=True, kw_only=True)
class Networks(Experiment):
    """SP-2, 3, 4, 18: random softmax transformers with equiangular tokens against the recurrences, block by block.

    Rows: replicate (an initialisation), b; q, p, J, K, pooled as measured, and the same with ``_theory``; theories that
    must miss: ``J_without_K``, ``J_without_attention`` (a = 0 backwards), ``pooled_as_independent`` (J from K^B = 0).
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

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {"width": 128, "parts": 1, "probes": 4}, "cpu": {}}
    deterministic: ClassVar[Mapping[str, float]] = {
        name: 1e-9 for name in ("q_theory", "p_theory", "J_theory", "K_theory", "pooled_theory")
    }
    dtype: ClassVar[torch.dtype] = torch.float32

    def conditions(self) -> list[dict[str, Any]]:
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
        measured = measure(model, x, probes=self.probes, generator=stream(seed, "probes", norm, heads, part))
        return measured.assign(**self._theory(kernel_of(norm, self.alpha), model.sigmas))

    def _theory(self, kernel, sigmas: Sigmas) -> dict[str, np.ndarray]:
        common = {"kernel": kernel, "s": sigmas.s, "n": self.n, "depth": self.depth}
        course = propagate(self.q0, self.p0, a=sigmas.a, **common)
        pooled = propagate(self.q0, self.p0, a=sigmas.a, output_gradient="pooled", **common)
        without = propagate(self.q0, self.p0, a=sigmas.a, cross_token=False, **common)
        columns = {"q_theory": course.q, "p_theory": course.p, "J_theory": course.J_backward}
        columns |= {"K_theory": course.K_backward, "pooled_theory": pooled.J_backward}
        columns |= {"J_without_K": without.J_backward, "pooled_as_independent": course.J_backward}
        columns["J_without_attention"] = mlp_only(course, kernel, sigmas)
        return {name: np.tile(values, self.inits) for name, values in columns.items()}


def mlp_only(course, kernel: kernels.NormKernel, sigmas: Sigmas) -> np.ndarray:
    """J from the MLP factors alone, at the right (q, p): the backward recurrence without its attention terms."""
    mixed = propagate_half(course, kernel, sigmas)
    gain = np.log1p(sigmas.s / 2 * kernel.moments(*mixed).q_hat)
    return np.exp(np.concatenate([np.cumsum(gain[::-1])[::-1], [0.0]]))


def propagate_half(course, kernel: kernels.NormKernel, sigmas: Sigmas) -> tuple[np.ndarray, np.ndarray]:
    """(q, p) at the half blocks b + 1/2, from the change of q that the MLP does not explain (uniform attention)."""
    q, p = course.q[:-1], course.p[:-1]
    low, high = q, course.q[1:]
    for _ in range(60):  # q^{b+1} = q^{b+1/2} + (s/2) q~(q^{b+1/2}) is increasing in q^{b+1/2}: bisection
        middle = (low + high) / 2
        above = middle + sigmas.s / 2 * kernel.moments(middle, p).q_tilde > course.q[1:]
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    half = (low + high) / 2
    return half, p + (half - q)


EXPERIMENTS = (
    *(ClosedForms, Ends, Regimes, Window, Networks, DeepOverlap, ManyTokens, VisionTransformer),
    *(GeneratedImages, Trainability),
)
