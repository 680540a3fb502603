"""What Procrustes distortion is, what noise and pooling make of it, and scores that measure nothing (GT-1, 2, 13).

symbol   name   meaning                                                        axes
D        D      Procrustes distortion of a cloud and its disturbed copy        (replicates,)
J        J      mean square of a disturbed token's jump                        (replicates,)
V        V      variance of pooled embeddings between sequences                (replicates,)
r        r      share of positions that are disturbed                          scalar
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import torch
from scipy import spatial
from scipy.linalg import orthogonal_procrustes
from torch import Tensor

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..data.systems import lorenz
from ..model import metrics
from ..model.codebooks import UniformQuantizer
from ..model.metrics import noise_law, pooled_law, procrustes_distortion, unrelated_law

EPSILON = float(np.finfo(float).eps)


def normals(seed: int, *name: str | int, shape: tuple[int, ...], device: torch.device) -> Tensor:
    """Standard normals of a named stream."""
    return torch.randn(*shape, generator=stream(seed, *name), dtype=torch.float64).to(device)


def rotation(seed: int, *name: str | int, p: int, device: torch.device) -> Tensor:
    """A random orthogonal matrix of determinant 1 or -1."""
    return torch.linalg.qr(normals(seed, *name, shape=(p, p), device=device)).Q


@dataclass(frozen=True, kw_only=True)
class Identities(Experiment):
    """GT-1: D^2 by the nuclear norm against SciPy's optimal rotation (residual), SciPy's disparity (which lets the
    scale be optimal, 1 - ||M||_*^2), and itself after rotations, reflections, shifts and scales of either cloud
    (moved). Rows: n, p, instance, D, residual, disparity, moved (gaps of D^2), bound. Rounding: sums of n p terms
    and an SVD of p x p.
    """

    instances: int = 10
    shapes: tuple[tuple[int, int], ...] = ((2, 1), (5, 3), (40, 8), (200, 64))

    tiny: ClassVar = {"instances": 4, "shapes": ((2, 1), (40, 8))}
    deterministic: ClassVar = {"D": 1e-9}

    def conditions(self) -> list[dict]:
        return [{"n": n, "p": p} for n, p in self.shapes]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        n, p = condition["n"], condition["p"]
        found = []
        for i in range(self.instances):
            X = normals(seed, "X", n, p, i, shape=(n, p), device=device)
            size = 10.0 ** (i % 4 - 2)  # from a whisper of noise to a cloud of its own
            Y = X @ rotation(seed, "turn", p, i, p=p, device=device)
            Y = Y + size * normals(seed, "E", n, p, i, shape=(n, p), device=device)
            D = procrustes_distortion(X, Y)
            Q, R = (rotation(seed, name, p, i, p=p, device=device) for name in ("Q", "R"))
            moved = procrustes_distortion(3 * X @ Q + 2, 0.2 * Y @ R - 1)
            x, y = ((each - each.mean(dim=0)).cpu().numpy() for each in (X, Y))
            x, y = x / np.linalg.norm(x), y / np.linalg.norm(y)
            residual = np.linalg.norm(x @ orthogonal_procrustes(x, y)[0] - y) ** 2 / 2
            disparity = 1 - np.sqrt(max(0.0, 1 - spatial.procrustes(x, y)[2]))
            square = D.square().item()
            row = {"instance": i, "D": D.item(), "residual": abs(square - residual)}
            row |= {"disparity": abs(square - disparity), "moved": abs(square - moved.square().item())}
            found.append(row | {"bound": 32 * (n + p) * EPSILON})
        return pd.DataFrame(found)


@dataclass(frozen=True, kw_only=True)
class Noise(Experiment):
    """GT-2: Y = X + E, where X has a "flat" or a "steep" spectrum (variances 1/k^2) and E the mirror image of the steep
    one. Rows: cloud, s, replicate, D, law, ratio = D / law."""

    n: int = 4000
    p: int = 16
    noises: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1.0)
    replicates: int = 12

    tiny: ClassVar = {"n": 1500, "replicates": 3}

    def conditions(self) -> list[dict]:
        return [{"cloud": cloud} for cloud in ("flat", "steep")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        k = torch.arange(1, self.p + 1, dtype=dtype, device=device)
        spread = torch.ones_like(k) if condition["cloud"] == "flat" else 1 / k
        spread = spread / spread.square().sum().sqrt()
        shape = (self.replicates, self.n, self.p)
        X = spread * normals(seed, "X", condition["cloud"], shape=shape, device=device)
        E = (1 / k.flip(0)) * normals(seed, "E", condition["cloud"], shape=shape, device=device)
        E = E / (1 / k).square().sum().sqrt()
        s = torch.tensor(self.noises, dtype=dtype, device=device)
        D = torch.stack([procrustes_distortion(X, X + each.sqrt() * E) for each in s])
        law = noise_law(s)[:, None]
        return rows({"s": self.noises, "replicate": range(self.replicates)}, {"D": D, "law": law, "ratio": D / law})


@dataclass(frozen=True, kw_only=True)
class Unrelated(Experiment):
    """GT-1: two independent Gaussian clouds. Rows: n, p, replicate, D, law, ratio = D / law."""

    shapes: tuple[tuple[int, int], ...] = ((1000, 16), (2000, 64), (2000, 256))
    replicates: int = 8

    tiny: ClassVar = {"replicates": 2, "shapes": ((500, 256), (2000, 64))}
    deterministic: ClassVar = {"law": 1e-12}

    def conditions(self) -> list[dict]:
        return [{"n": n, "p": p} for n, p in self.shapes]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        n, p = condition["n"], condition["p"]
        X, Y = normals(seed, "pair", n, p, shape=(2, self.replicates, n, p), device=device)
        D, law = procrustes_distortion(X, Y), unrelated_law(n, p)
        return rows({"replicate": range(self.replicates)}, {"D": D, "law": law, "ratio": D / law})


def codes(kind: str, K: int, p: int, seed: int, replicate: int) -> Tensor:
    """A vector for each bin, of variance p: "linear" in its number, "smooth" (random waves, a tenth of the range long),
    or "random"."""
    centre = (torch.arange(K, dtype=torch.float64) + 0.5) / K
    drawn = torch.randn(p, generator=stream(seed, "code", kind, replicate), dtype=torch.float64)
    if kind == "linear":
        return (centre[:, None] - 0.5) * drawn * 12**0.5
    if kind == "smooth":
        phase = 2 * torch.pi * torch.rand(p, generator=stream(seed, "phase", replicate), dtype=torch.float64)
        return 2**0.5 * torch.cos(10 * centre[:, None] * drawn + phase)
    return torch.randn(K, p, generator=stream(seed, "code", kind, replicate), dtype=torch.float64)


@dataclass(frozen=True, kw_only=True)
class Pooled(Experiment):
    """GT-2: a tax without training. The x of Lorenz' system in 256 bins; a bin's state is its code, a sequence's
    embedding their mean; a share r of values (one at least) is disturbed by 10 % of the range. Rows: code, r,
    replicate, D, law (the pooled law at the measured J and V), J, V, J_law (2 p P(change) for random codes,
    slope^2 E dx^2 for a linear one)."""

    n: int = 800
    L: int = 512
    K: int = 256
    p: int = 12
    rates: tuple[float, ...] = (0.01, 0.02, 0.05, 0.1)
    replicates: int = 8

    tiers: ClassVar = {"ci": {"n": 240, "L": 128}, "cpu": {}}
    tiny: ClassVar = {"n": 100, "L": 64, "replicates": 4}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        paths = lorenz(self.replicates * self.n, self.L, generator=stream(seed, "paths"))[..., 0].to(device)
        tables = []
        for replicate, x in enumerate(paths.unflatten(0, (self.replicates, self.n))):
            tables += [self.one(kind, x, seed, device, replicate) for kind in ("linear", "smooth", "random")]
        return pd.concat(tables, ignore_index=True)

    def one(self, kind: str, x: Tensor, seed: int, device: torch.device, replicate: int) -> pd.DataFrame:
        """All rates of one code; all codes see the same paths and the same noise."""
        bins = UniformQuantizer(self.K, x.min().item(), x.max().item())
        code = codes(kind, self.K, self.p, seed, replicate).to(device)
        states = code[bins.encode(x)]
        X, found = states.mean(dim=1), []
        V = X.var(dim=0).sum()
        noise = normals(seed, "noise", replicate, shape=x.shape, device=device)
        order = torch.rand(self.n, self.L, generator=stream(seed, "where", replicate)).argsort(dim=1).to(device)
        for r in self.rates:
            hit = order < max(1, round(r * self.L))
            share = hit.double().mean().item()
            after = torch.where(hit, x + 0.1 * (bins.high - bins.low) * noise, x)
            moved = code[bins.encode(after)]
            jump = (moved - states).square().sum(dim=-1)[hit]
            J = jump.mean()
            changed = (bins.encode(after) != bins.encode(x))[hit].double().mean()
            slope = (code[-1] - code[0]).square().sum() / (self.K - 1) ** 2
            steps = (bins.encode(after) - bins.encode(x))[hit].double().square().mean()
            guess = {"random": 2 * self.p * changed, "linear": slope * steps, "smooth": J}[kind]
            D = procrustes_distortion(X, moved.mean(dim=1))
            row = {"code": kind, "r": share, "replicate": replicate, "D": D, "law": pooled_law(share, self.L, J, V)}
            found.append(row | {"J": J, "V": V, "J_law": guess})
        return pd.DataFrame(found).astype({name: float for name in ("D", "law", "J", "V", "J_law")})


@dataclass(frozen=True, kw_only=True)
class Spread(Experiment):
    """GT-2: what makes D small. Pooled embeddings of sequences whose tokens all jump alike, where the means of
    sequences are drawn apart by a factor; the jumps are the same draw at every factor. Rows: factor, replicate, D, law
    (the pooled law at the measured J and V)."""

    n: int = 400
    L: int = 128
    p: int = 12
    jump: float = 1.0
    r: float = 0.05
    factors: tuple[float, ...] = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
    replicates: int = 8

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        shape = (self.replicates, self.n, self.p)
        means = normals(seed, "means", shape=shape, device=device) * self.p**-0.5
        hits = round(self.r * self.L)
        jumps = normals(seed, "jumps", shape=(hits, *shape), device=device) * (self.jump / self.p) ** 0.5
        J = jumps.square().sum(dim=-1).mean(dim=(0, 2))
        found, laws = [], []
        for factor in self.factors:
            X = factor * means
            found.append(procrustes_distortion(X, X + jumps.sum(dim=0) / self.L))
            V = X.var(dim=1).sum(dim=-1)
            laws.append(pooled_law(hits / self.L, self.L, J, V))
        columns = {"D": torch.stack(found), "law": torch.stack(laws)}
        return rows({"factor": self.factors, "replicate": range(self.replicates)}, columns)


@dataclass(frozen=True, kw_only=True)
class Composite(Experiment):
    """GT-13: the four terms of the composite stability. Clouds "three" (three coordinates carry it), "clusters",
    "circle", "isotropic", each with a little noise on every coordinate. Rows: cloud, replicate, sample_split, anchors,
    feature_split, rotated (feature split after a rotation, which keeps all distances), kept (largest relative change of
    a distance by it), rdm (similarity with a copy disturbed by 10 %), composite, matched (the same points in both
    subsamples, one of them disturbed: what a sample split could have been)."""

    n: int = 100
    p: int = 24
    splits: int = 4
    replicates: int = 200

    tiers: ClassVar = {"ci": {"replicates": 24}, "cpu": {}}
    tiny: ClassVar = {"n": 60, "splits": 2, "replicates": 8}

    def conditions(self) -> list[dict]:
        return [{"cloud": cloud} for cloud in ("three", "clusters", "circle", "isotropic")]

    def cloud(self, kind: str, seed: int, replicate: int) -> Tensor:
        """The points, coordinates 0 to 2 of most of them carrying all there is."""
        g, X = stream(seed, "cloud", kind, replicate), torch.zeros(self.n, self.p, dtype=torch.float64)
        free = torch.randn(self.n, 3, generator=g, dtype=torch.float64)
        if kind == "three":
            X[:, :3] = free
        elif kind == "clusters":
            X[:, :3] = 0.3 * free + 2 * torch.randn(4, 3, generator=g, dtype=torch.float64)[torch.arange(self.n) % 4]
        elif kind == "circle":
            angle = 2 * torch.pi * torch.rand(self.n, generator=g, dtype=torch.float64)
            X[:, 0], X[:, 1] = angle.cos(), angle.sin()
        else:
            X = torch.randn(self.n, self.p, generator=g, dtype=torch.float64)
        return X + 0.02 * torch.randn(self.n, self.p, generator=g, dtype=torch.float64)

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        return pd.DataFrame([self.one(condition["cloud"], seed, device, i) for i in range(self.replicates)])

    def one(self, kind: str, seed: int, device: torch.device, replicate: int) -> dict[str, float]:
        """Every term on one cloud."""
        name = ("splits", kind, replicate)
        X = self.cloud(kind, seed, replicate).to(device)
        Y = X + 0.1 * X.std() * normals(seed, "disturbed", *name, shape=X.shape, device=device)
        turned = X @ rotation(seed, "rotation", *name, p=self.p, device=device)
        halves = metrics.random_halves(self.p, self.splits, stream(seed, "halves", *name)).to(device)
        subsets = metrics.random_subsets(self.n, 0.4, self.splits, stream(seed, "subsets", *name)).to(device)
        order = torch.randperm(self.n, generator=stream(seed, "anchors", *name)).to(device)
        rest = order[20:]
        sets = rest[metrics.random_halves(len(rest), self.splits, stream(seed, "sets", *name)).to(device)]
        before, after = (metrics.rdm(each, "euclidean") for each in (X, turned))
        terms = {
            "feature_split": metrics.feature_split(X, halves),
            "sample_split": metrics.sample_split(X, subsets),
            "anchors": metrics.anchor_stability(X, order[:20], sets),
            "rdm": metrics.rdm_similarity(X, Y),
        }
        found = terms | {"composite": torch.stack([*terms.values()]).mean()}
        found["rotated"] = metrics.feature_split(turned, halves)
        found["kept"] = (after / before - 1).abs().max()
        found["matched"] = torch.stack([metrics.rdm_similarity(X[a], Y[a]) for a in subsets[:, 0]]).mean()
        return {"replicate": replicate} | {name: each.item() for name, each in found.items()}
