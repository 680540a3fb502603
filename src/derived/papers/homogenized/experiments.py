"""One layer at a time: rates, kernels, drifts and cosines measured on fresh heads. The tuple of all experiments.

Chains over depth stand in ``depth``; deterministic flows, prompts and a torch stack in ``limits``. Each experiment is a
frozen table of sizes whose defaults are the largest run, and one batched function per condition. Throughout
sigma_V^2 = 1/d, h = eta^2/H, tau = h * layer; a *replicate* is a batch of independent heads or paths and is itself
independent of the others.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch

from derived.lab.experiment import Experiment
from derived.lab.rng import stream

from .chain import overlaps
from .cloud import cloud_layer, image
from .depth import Clock, Cold, FinalRate, Freezing, Hot, SlowPaths, TwoTokens, WeakError, off_diagonal
from .flows import one_token_rates
from .heads import (
    Heads,
    barycentre,
    equiangular_tokens,
    layer_step,
    matched_law,
    normalise,
    simplex_gram,
    tangent,
    uniform_tokens,
)
from .limits import Flows, Interpolation, PrivateNoise, Prompts, SelfAttention, Stack
from .moments import vmf_mean_ratio
from .overlaps import barycenter_correlation, overlap_bracket, overlap_drift


def tidy(index: Mapping[str, Any], columns: Mapping[str, torch.Tensor]) -> pd.DataFrame:
    """A table of flattened tensors beside index columns of the same length."""
    return pd.DataFrame({**index, **{name: value.detach().cpu().numpy().ravel() for name, value in columns.items()}})


@dataclass(frozen=True, kw_only=True)
class OneToken(Experiment):
    """HT-1: the factors of degree one and two of a single layer, by quadrature, against the diffusion's.

    Rows: d, h, degree, rate (-ln of the factor over h), exact, chain and limit (the moments at tau), error.
    """

    widths: tuple[int, ...] = (2, 3, 8, 64)
    steps: tuple[float, ...] = (0.02, 0.01, 0.005, 0.0025)
    tau: float = 1.0

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {}}
    deterministic: ClassVar[Mapping[str, float]] = {"rate": 1e-9, "chain": 1e-9}

    def conditions(self) -> list[dict[str, Any]]:
        return [{"d": d} for d in self.widths]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        d, found = condition["d"], []
        for h in self.steps:
            for degree, rate, exact in zip((1, 2), one_token_rates(h, d), ((d - 1) / (2 * d), 1.0), strict=True):
                share = 1 if degree == 1 else 1 - 1 / d
                moments = {"chain": share * np.exp(-rate * self.tau), "limit": share * np.exp(-exact * self.tau)}
                found.append({"h": h, "degree": degree, "rate": rate, "exact": exact, **moments})
        return pd.DataFrame(found).assign(error=lambda rows: rows["chain"] - rows["limit"])


@dataclass(frozen=True, kw_only=True)
class HeadMoments(Experiment):
    """HT-2: mean, covariance and variance proxy of Gaussian heads, at random tokens and at coinciding ones.

    Rows: tokens, replicate, quantity (mean, diagonal, off-diagonal, proxy), value, target. ``diagonal`` is
    d B_1(x_i) B_1(x_j) - <m_i, m_j> with the same heads, so that its mean must vanish.
    """

    n: int = 4
    d: int = 6
    logit_std: float = 2.0
    replicates: int = 48
    heads: int = 8000

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {"heads": 2500}, "cpu": {}}

    def conditions(self) -> list[dict[str, Any]]:
        return [{"tokens": name} for name in ("random", "random again", "coinciding")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        name, d = condition["tokens"], self.d
        X = uniform_tokens(self.n, d, generator=stream(seed, "tokens", name), dtype=dtype)[0]
        X = (X[:1].expand_as(X) if name == "coinciding" else X).to(device)
        g = stream(seed, "heads", name, device=device)
        facts = {"beta": 1.0, "device": device, "dtype": dtype}
        heads = matched_law(d, self.logit_std).draw(g, (self.replicates, self.heads), **facts)
        m = barycentre(X, heads.A, 1.0)
        B = m @ heads.V.mT
        inner = (m[..., 0, :] * m[..., 1, :]).sum(dim=-1)
        proxy = tangent(X, B)[..., 0, :].square().sum(dim=-1)
        values = {"mean": B[..., 0, 0], "diagonal": d * B[..., 0, 0] * B[..., 1, 0] - inner}
        values |= {"off-diagonal": d * B[..., 0, 0] * B[..., 1, 1], "proxy": proxy}
        tables = [
            tidy({"replicate": range(self.replicates), "quantity": key}, {"value": value.mean(dim=-1)})
            for key, value in values.items()
        ]
        limit = (d - 1) / d
        rows = pd.concat(tables, ignore_index=True)
        return rows.assign(target=np.where(rows["quantity"] == "proxy", limit, 0.0))


@dataclass(frozen=True, kw_only=True)
class OneLayer(Experiment):
    """HT-3, HT-4: drift and bracket of overlaps over one layer, V and -V in pairs, against the formulas.

    The formulas take s from the same query-key matrices. Rows: tokens, replicate, pair, drift, drift_theory, bracket,
    bracket_theory, retold (the drift at d = infinity).
    """

    n: int = 3
    d: int = 8
    logit_std: float = 2.0
    simplex: tuple[int, int, float] = (4, 4, 0.3)  # n, d, gamma
    eta: float = 0.03
    H: int = 2
    replicates: int = 48
    samples: int = 12_000

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {"samples": 3000}, "cpu": {}}

    def conditions(self) -> list[dict[str, Any]]:
        return [{"tokens": "random"}, {"tokens": "simplex"}]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        name = condition["tokens"]
        n, d, gamma = self.simplex if name == "simplex" else (self.n, self.d, None)
        if name == "simplex":
            X = equiangular_tokens(n, d, gamma, dtype=dtype)[0].to(device)
        else:
            X = uniform_tokens(n, d, generator=stream(seed, "tokens", name), dtype=dtype)[0].to(device)
        g, h = stream(seed, "layer", name, device=device), self.eta**2 / self.H
        first, second = torch.triu_indices(n, n, 1).unbind(dim=0)
        R, found = X @ X.mT, []
        law = matched_law(d, self.logit_std)
        for replicate in range(self.replicates):  # a replicate fills the memory that one batch may take
            heads = law.draw(g, (self.samples, self.H), beta=1.0, device=device, dtype=dtype)
            m = barycentre(X, heads.A, 1.0)
            s = (m @ m.mT).mean(dim=(0, 1))
            each = X.expand(self.samples, n, d)
            up, down = (layer_step(each, self.eta, Heads(sign * heads.V, heads.A, heads.beta)) for sign in (1.0, -1.0))
            up, down = (Y @ Y.mT for Y in (up, down))
            tables = {
                "drift": ((up + down) / 2 - R).mean(dim=0) / h,
                "drift_theory": overlap_drift(R, s, d),
                "bracket": ((up - down) / 2).square().mean(dim=0) / h,
                "bracket_theory": overlap_bracket(R, s, d),
                "retold": s - R * (s.diagonal()[:, None] + s.diagonal()) / 2,
            }
            pairs = {"replicate": replicate, "pair": [f"{i}-{j}" for i, j in zip(first, second, strict=True)]}
            found.append(tidy(pairs, {key: value[first, second] for key, value in tables.items()}))
        return pd.concat(found, ignore_index=True)


@dataclass(frozen=True, kw_only=True)
class Cosines(Experiment):
    """HT-11: kappa = d (r - E cos(Ax, Ay)) / (r (1 - r^2)) for products of Gaussian matrices.

    The first-order change of the cosine has mean zero and is taken out. Rows: d, factors, replicate, kappa.
    """

    r: float = 0.5
    widths: tuple[int, ...] = (16, 64)
    replicates: int = 48
    samples: int = 100_000

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {"samples": 12_000}, "cpu": {}}

    def conditions(self) -> list[dict[str, Any]]:
        return [{"d": d, "factors": factors} for d in self.widths for factors in (1, 2)]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        d, factors = condition["d"], condition["factors"]
        R = torch.full((self.replicates * self.samples,), self.r, device=device, dtype=dtype)
        found = image(R, d, factors, generator=stream(seed, "cosines", d, factors, device=device))
        kappa = d * (self.r - found.cosine + found.control) / (self.r * (1 - self.r**2))
        means = kappa.reshape(self.replicates, self.samples).mean(dim=-1)
        return tidy({"replicate": range(self.replicates)}, {"kappa": means})


@dataclass(frozen=True, kw_only=True)
class SlowDrift(Experiment):
    """HT-12: one layer of a pair in a uniform cloud at beta = infinity, V and -V in pairs, on the clock tau/d.

    Rows: d, factors, R, replicate, drift (over -R(1-R^2)), bracket (over 2(1-R^2)^2).
    """

    cases: tuple[tuple[int, int], ...] = ((24, 2), (40, 2), (40, 1), (40, 0))
    overlaps: tuple[float, ...] = (0.4, 0.7)
    h: float = 1e-3
    replicates: int = 32
    samples: int = 100_000

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "ci": {"cases": ((40, 2),), "samples": 30_000},
        "cpu": {"samples": 50_000},
    }

    def conditions(self) -> list[dict[str, Any]]:
        return [{"d": d, "factors": factors, "R": R} for d, factors in self.cases for R in self.overlaps]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        d, factors, R = (condition[name] for name in ("d", "factors", "R"))
        start = torch.full((self.replicates * self.samples,), R, device=device, dtype=dtype)
        g = stream(seed, "slow drift", d, factors, str(R), device=device)
        up, down = cloud_layer(start, self.h, d, factors, generator=g)
        drift = d * ((up + down) / 2 - R) / self.h / (-R * (1 - R**2))
        bracket = d * ((up - down) / 2).square() / self.h / (2 * (1 - R**2) ** 2)
        columns = {"drift": drift, "bracket": bracket}
        shape = (self.replicates, self.samples)
        means = {name: value.reshape(shape).mean(dim=-1) for name, value in columns.items()}
        return tidy({"replicate": range(self.replicates)}, means)


@dataclass(frozen=True, kw_only=True)
class FiniteBeta(Experiment):
    """HT-18: the same drift at finite beta, from the exact barycentre of a uniform cloud, and at beta = infinity.

    Rows: d, ratio (beta_eff / d), replicate, drift (the coefficient of -R(1-R^2) on the clock tau/d), and coldest, the
    same at beta = infinity for the same query-key matrices.
    """

    widths: tuple[int, ...] = (32, 64, 128)
    R: float = 0.5
    ratios: tuple[float, ...] = (1.0, 10.0, 100.0)
    replicates: int = 32
    samples: int = 20_000

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {"samples": 4000}, "cpu": {}}

    def conditions(self) -> list[dict[str, Any]]:
        return [{"d": d, "ratio": ratio} for d in self.widths for ratio in self.ratios]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        d, ratio, R = condition["d"], condition["ratio"], self.R
        start = torch.full((self.replicates, self.samples), R, device=device, dtype=dtype)
        found = image(start, d, 2, generator=stream(seed, "finite beta", d, device=device))
        x, y = (
            torch.from_numpy(vmf_mean_ratio(d, (ratio * d * size).cpu().numpy()))
            for size in (found.length_x, found.length_y)
        )
        cosine, control = found.cosine.cpu(), found.control.cpu()
        own = ((x.square() + y.square()) / 2).mean(dim=-1)
        shared = (x * y * cosine).mean(dim=-1) - (x * y).mean(dim=-1) * control.mean(dim=-1)
        found = {"drift": (shared, own), "coldest": ((cosine - control).mean(dim=-1), 1.0)}
        rates = {
            name: ((d - 2 + R**2) * apart - (d - 1) * R * same) / (-R * (1 - R**2))
            for name, (apart, same) in found.items()
        }
        return tidy({"replicate": range(self.replicates)}, rates)


@dataclass(frozen=True, kw_only=True)
class Lipschitz(Experiment):
    """HT-8: how fast s_ij changes with the Gram matrix, |s_ij(R) - s_ij(R')| over max |R - R'|, for growing n.

    Both sides take the same heads, so the difference is sharp. Prompts are random, every token moved by itself, or
    simplices of overlap gamma and gamma + move, whose kernel has two numbers, one on and one off the diagonal.
    Rows: n, logit_std, prompts, pair (a number, or gamma), quotient, and gap: the quotient plus five standard errors
    of its difference; bound: 1 + 9 tau_l^2.
    """

    d: int = 128
    tokens: tuple[int, ...] = (2, 8, 32, 128)
    logit_stds: tuple[float, ...] = (0.1, 0.5, 4.0)
    pairs: int = 3
    gammas: tuple[float, ...] = (0.0, 0.3, 0.6, 0.9)
    move: float = 0.05
    batches: int = 8
    samples: int = 100  # heads a batch at the largest n; fewer tokens take more heads at the same cost

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "ci": {"d": 64, "tokens": (2, 8, 32), "samples": 20},
        "cpu": {"samples": 40},
    }

    def conditions(self) -> list[dict[str, Any]]:
        return [{"n": n, "logit_std": s} for n in self.tokens for s in self.logit_stds]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        n, s = condition["n"], condition["logit_std"]
        samples = self.samples * max(self.tokens) // n
        facts = {"beta": 1.0, "sigma_a": matched_law(self.d, s).sigma_a, "d": self.d, "samples": samples}
        found = []
        for name, pair, one, two in self.prompts(n, seed, device, dtype):  # the heads of one pair fill the memory
            s_one, s_two = (
                barycenter_correlation(
                    R.expand(self.batches, n, n), **facts, generator=stream(seed, "heads", n, str(pair), device=device)
                ).s
                for R in (one, two)
            )
            change, far = s_one - s_two, (one - two).abs().amax()
            if name == "simplex":
                parts = change.diagonal(dim1=-2, dim2=-1), off_diagonal(change)
                change = torch.stack([part.mean(dim=-1) for part in parts], dim=-1)
            error = change.std(dim=0) / self.batches**0.5
            value, safe = ((change.mean(dim=0).abs() + k * error).amax() / far for k in (0, 5))
            row = {"prompts": name, "pair": pair, "quotient": value.item(), "gap": safe.item(), "bound": 1 + 9 * s**2}
            found.append(row)
        return pd.DataFrame(found)

    def prompts(self, n: int, seed: int, device, dtype) -> Iterator[tuple[str, float, torch.Tensor, torch.Tensor]]:
        """Kind, name and the two Gram matrices of every pair."""
        for pair in range(self.pairs):
            draw = stream(seed, "lipschitz", pair)
            near, move = torch.randn(2, n, self.d, generator=draw, dtype=dtype).to(device) / self.d**0.5
            centre = torch.eye(self.d, device=device, dtype=dtype)[0] * 0.7
            yield "random", pair, *(overlaps(normalise(X)) for X in (near + centre, near + centre + 0.5 * move))
        for gamma in self.gammas:
            facts = {"device": device, "dtype": dtype}
            yield "simplex", gamma, *(simplex_gram(n, value, **facts) for value in (gamma, gamma + self.move))


def kernel_distance(points: torch.Tensor, clouds: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """E|G_mu(x) - G_nu(y)|^2 at beta = 0, exactly, and the lemma's 2|x - y|^2 + (2/n) sum_k |x_k - y_k|^2.

    Shapes: points (..., 2, d) holds x and y, clouds (..., 2, n, d) their clouds.
    """
    d, m = points.shape[-1], clouds.mean(dim=-2)
    R, cross = ((z[..., 0, :] * z[..., 1, :]).sum(dim=-1) for z in (points, m))
    square = ((d - 1) * m.square().sum(dim=(-2, -1)) - 2 * (d - 2 + R.square()) * cross) / d
    apart = (clouds[..., 0, :, :] - clouds[..., 1, :, :]).square().sum(dim=-1).mean(dim=-1)
    return square, 2 * (points[..., 0, :] - points[..., 1, :]).square().sum(dim=-1) + 2 * apart


@dataclass(frozen=True, kw_only=True)
class KernelDistance(Experiment):
    """HT-20: E|G_mu(x) - G_nu(y)|^2 at beta = 0, exactly, for clouds of equal size, near and far.

    Clouds are scattered and every point moves by itself, or all points of a cloud coincide and move together while
    x = y. Rows: cloud, instance, gap (the exact left side) and bound of the lemma, and quotient: the left side's root
    for x = y over the mean distance of the points.
    """

    instances: int = 200
    n: int = 6
    d: int = 5

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {}}
    deterministic: ClassVar[Mapping[str, float]] = {"quotient": 1e-9}

    def conditions(self) -> list[dict[str, Any]]:
        return [{"cloud": "scattered"}, {"cloud": "together"}]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        g, d = stream(seed, "clouds"), self.d
        first, move = torch.randn(2, self.instances, self.n + 1, d, generator=g, dtype=dtype).unbind(dim=0)
        size = torch.logspace(-2, 1, self.instances, dtype=dtype)[:, None, None]
        pairs = torch.stack([normalise(first), normalise(normalise(first) + size * move)], dim=1)
        points, clouds = pairs[:, :, 0], pairs[:, :, 1:]  # one point and a cloud, each before and after a move
        if condition["cloud"] == "together":
            points, clouds = points[:, :1].expand_as(points), clouds[:, :, :1].expand_as(clouds)
        gap, bound = kernel_distance(points, clouds)
        still = kernel_distance(points[:, :1].expand_as(points), clouds)[0].clamp_min(0).sqrt()
        quotient = still / (clouds[:, 0] - clouds[:, 1]).norm(dim=-1).mean(dim=-1)
        return tidy({"instance": range(self.instances)}, {"gap": gap, "bound": bound, "quotient": quotient})


@dataclass(frozen=True, kw_only=True)
class Angles(Experiment):
    """HT-21: the drift of sin u and of arcsin u under du = -u(1-u^2)dt + sqrt(2)(1-u^2)dB, by automatic derivatives.

    Rows: angle, u, gap (the drift), bound (rounding: 16 unit roundoffs of the two terms that cancel).
    """

    points: int = 41

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {}}

    def conditions(self) -> list[dict[str, Any]]:
        return [{"angle": "sin"}, {"angle": "arcsin"}]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        function = torch.sin if condition["angle"] == "sin" else torch.asin
        u = torch.linspace(-0.95, 0.95, self.points, dtype=dtype)
        slope = torch.func.vmap(torch.func.grad(function))(u)
        curvature = torch.func.vmap(torch.func.grad(torch.func.grad(function)))(u)
        pull, spread = -u * (1 - u**2) * slope, curvature * (1 - u**2) ** 2
        bound = 16 * torch.finfo(dtype).eps * (pull.abs() + spread.abs() + torch.finfo(dtype).eps)
        return tidy({"u": u.numpy()}, {"gap": (pull + spread).abs(), "bound": bound})


EXPERIMENTS = (
    *(OneToken, HeadMoments, OneLayer, Cosines, SlowDrift, FiniteBeta, Lipschitz, KernelDistance, Angles),
    *(TwoTokens, WeakError, Hot, Cold, Freezing, FinalRate, SlowPaths, Clock),
    *(Flows, SelfAttention, Interpolation, Prompts, PrivateNoise, Stack),
)
