"""Information through the levels, averages that become Gaussian, memory, and what dropping a level changes."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import torch

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..model.attention import causal_mask, mix, score_tables
from ..model.information import (
    LatentMixture,
    gaussian_mutual_information,
    information_budget,
    line,
    mardia_kurtosis,
    mardia_rounding,
    mean_negentropy,
    mutual_information,
    non_gaussian_correction,
)
from ..model.theory import block_variance, fgn_covariance, fgn_variance, score_bound, tail_bound
from .instances import normal, random_layers, rows_of

EPS = torch.finfo(torch.float64).eps


def random_mixture(p: int, draw: torch.Generator, size: float) -> LatentMixture:
    """A latent-sign mixture in p dimensions with a random covariance; ``size`` scales the centres."""
    root = normal((p, p), draw)
    weight = 0.2 + 0.6 * float(torch.rand((), generator=draw))
    return LatentMixture(size * normal((p,), draw), root @ root.mT / p + 0.3 * torch.eye(p, dtype=root.dtype), weight)


@dataclass(frozen=True, kw_only=True)
class Budgets(Experiment):
    """HKT-7: the three terms for mixtures of two Gaussians through a pyramid of block means and a head of one row.

    Rows: size, instance, total, gaussian, resolution (sum), width, correction, gap, bound. Each is a calculation
    of its own, and ``gap`` what the identity leaves over. size 0 is jointly Gaussian.
    """

    instances: int = 16
    T: int = 8
    levels: int = 3
    sizes: tuple[float, ...] = (0.0, 1.0, 3.0)

    tiny: ClassVar = {"instances": 2}
    deterministic: ClassVar = {"total": 1e-7, "resolution": 1e-7}

    def conditions(self) -> list[dict]:
        return [{"size": size} for size in self.sizes]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        draw, budgets = stream(seed, "budgets"), []
        for instance in range(self.instances):  # entropies are integrals of one law each
            law = random_mixture(self.T + 1, draw, condition["size"])
            B = normal((1, self.T // 2 ** (self.levels - 1)), draw)
            budget = information_budget(law, self.T, self.levels, B)
            parts = {"total": budget.total, "gaussian": budget.gaussian, "resolution": sum(budget.resolution)}
            parts |= {"width": budget.head_width, "correction": budget.correction, "gap": abs(budget.gap)}
            budgets.append({"instance": instance, **parts, "bound": self._rounding(law)})
        return pd.DataFrame(budgets)

    def _rounding(self, law: LatentMixture) -> float:
        """Three entropies for each of L + 2 informations, three determinants for I_G.

        An entropy is a sum of n positive terms, at most ln 2 + 1.42 nats, and averaged over n points or fewer; its
        determinant and its separation are right to p^3 eps times the condition of the covariance (Cholesky).
        """
        n, p = len(line(law.separation)), len(law.m)
        condition = float(torch.linalg.eigvalsh(law.covariance)[-1] / torch.linalg.eigvalsh(law.Sigma)[0])
        return (3 * (self.levels + 2) + 3) * (2 * n * 2.2 + 2 * p**3 * condition) * EPS


@dataclass(frozen=True, kw_only=True)
class Quadratures(Experiment):
    """HKT-7: I(U; Y) of a mixture by a double integral that knows no entropy, against I_G and the correction.

    Rows: instance, information (the integral), gaussian, correction, closed (from entropies), gap, bound.
    """

    instances: int = 12
    points: int = 801
    reach: float = 9.0  # in standard deviations; the tail beyond is below 1e-18
    tolerance: float = 1e-8

    tiny: ClassVar = {"instances": 2}
    deterministic: ClassVar = {"information": 1e-7}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        draw, values = stream(seed, "quadratures"), []
        for instance in range(self.instances):
            law = random_mixture(2, draw, 1.2)
            information, gaussian = self._integral(law), float(gaussian_mutual_information(law.covariance, 1))
            correction, closed = non_gaussian_correction(law, 1), mutual_information(law, 1)
            row = {"information": information, "gaussian": gaussian, "correction": correction, "closed": closed}
            gap = abs(information - gaussian - correction)
            values.append({"instance": instance, **row, "gap": gap, "bound": self.tolerance})
        return pd.DataFrame(values)

    def _integral(self, law: LatentMixture) -> float:
        """int p(u, y) ln p(u, y) / (p(u) p(y)) by the trapezoid rule, marginals summed from the joint density."""
        ends = law.m.abs() + self.reach * law.Sigma.diagonal().sqrt()
        grid = [torch.linspace(-float(end), float(end), self.points, dtype=torch.float64) for end in ends]
        U, Y = torch.meshgrid(*grid, indexing="ij")
        inverse = torch.linalg.inv(law.Sigma)
        norm = 2 * np.pi * torch.linalg.det(law.Sigma).sqrt()
        joint = torch.zeros_like(U)
        for sign, weight in ((1, law.weight), (-1, 1 - law.weight)):
            u, y = U - sign * law.m[0], Y - sign * law.m[1]
            square = inverse[0, 0] * u * u + 2 * inverse[0, 1] * u * y + inverse[1, 1] * y * y
            joint += weight * torch.exp(-square / 2) / norm
        du, dy = (each[1] - each[0] for each in grid)
        alone, target = (joint.sum(dim=1, keepdim=True) * dy, joint.sum(dim=0, keepdim=True) * du)
        logs = torch.where(joint > 0, torch.log(joint / (alone * target)), 0.0)
        return float((joint * logs).sum(dim=(0, 1)) * du * dy)


@dataclass(frozen=True, kw_only=True)
class Averages(Experiment):
    """HKT-7: means of 2^l i.i.d. terms. Rows: law, level, value, predicted.

    "digits": excess kurtosis of the mean of uniform digits, from powers of convolution, against kappa / 2^l; "uniform"
    and "exponential": negentropy, against kappa^2 / (48 4^l) and gamma^2 / (12 2^l).
    """

    levels: int = 7

    deterministic: ClassVar = {"value": 1e-6}

    def conditions(self) -> list[dict]:
        return [{"law": law} for law in ("digits", "uniform", "exponential")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        levels, law = np.arange(self.levels), condition["law"]
        if law == "digits":
            values = self._kurtosis()
            predicted = values[0] / 2.0**levels
        else:
            values = [mean_negentropy(law, 2 ** int(level)) for level in levels]
            predicted = (1.2**2 / 48) / 4.0**levels if law == "uniform" else (2**2 / 12) / 2.0**levels
        return pd.DataFrame({"level": levels, "value": values, "predicted": predicted})

    def _kurtosis(self) -> list[float]:
        """Excess kurtosis of sums of 2^l uniform digits; a mean has the same."""
        kurtoses, law = [], np.full(10, 0.1)
        for _ in range(self.levels):
            x = np.arange(len(law)) - (len(law) - 1) / 2
            kurtoses.append(float(law @ x**4 / (law @ x**2) ** 2 - 3))
            law = np.convolve(law, law)
        return kurtoses


@dataclass(frozen=True, kw_only=True)
class SmallSamples(Experiment):
    """HKT-7: Mardia's statistic for non-normal data as the sample comes near the width.

    Rows: law, p, n, instance, b, z, bound (on the rounding of b).
    """

    widths: tuple[int, ...] = (5, 20)
    multiples: tuple[int, ...] = (1, 2, 5, 20, 50)  # n = p + 1 for the first, else this times p
    instances: int = 40

    tiny: ClassVar = {"instances": 3}

    def conditions(self) -> list[dict]:
        return [{"law": law, "p": p} for law in ("normal", "laplace", "uniform") for p in self.widths]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        p, draw, tables = condition["p"], stream(seed, "blindness", condition["law"], condition["p"]), []
        for multiple in self.multiples:
            n = p + 1 if multiple == 1 else multiple * p
            X = self._sample((self.instances, n, p), condition["law"], draw).to(device, dtype)
            columns = {**mardia_kurtosis(X)._asdict(), "bound": mardia_rounding(X)}
            tables.append(rows({"n": n, "instance": range(self.instances)}, columns))
        return pd.concat(tables, ignore_index=True)

    def _sample(self, shape: tuple[int, ...], law: str, draw: torch.Generator) -> torch.Tensor:
        if law == "normal":
            return normal(shape, draw)
        u = torch.rand(shape, generator=draw, dtype=torch.float64) - 0.5
        return u if law == "uniform" else -u.sign() * torch.log1p(-2 * u.abs())


@dataclass(frozen=True, kw_only=True)
class Memory(Experiment):
    """HKT-8: the variance of means of 2^l terms, from the exact covariance. Rows: process, H, level, variance, closed.

    Fractional Gaussian noise, closed form 2^{-2 l (1 - H)}; "ar1" with coefficient H, whose closed form is the limit
    law (1 + H) / (1 - H) / 2^l.
    """

    hursts: tuple[float, ...] = (0.3, 0.5, 0.7, 0.9)
    coefficient: float = 0.5
    levels: int = 11

    deterministic: ClassVar = {"variance": 1e-7}

    def conditions(self) -> list[dict]:
        return [*({"process": "fgn", "H": H} for H in self.hursts), {"process": "ar1", "H": self.coefficient}]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        H, T, levels = condition["H"], 2 ** (self.levels - 1), range(self.levels)
        if condition["process"] == "fgn":
            covariance = fgn_covariance(T, H)
            closed = [fgn_variance(level, H) for level in levels]
        else:
            lag = torch.arange(T, dtype=torch.float64)
            covariance = H ** (lag.unsqueeze(-1) - lag).abs()
            closed = [(1 + H) / (1 - H) / 2**level for level in levels]
        variance = [float(block_variance(covariance, level)) for level in levels]
        return pd.DataFrame({"level": levels, "variance": variance, "closed": closed})


@dataclass(frozen=True, kw_only=True)
class Pruning(Experiment):
    """HKT-8: what leaving out the levels from ``kept`` on does to rows of attention and to outputs.

    Rows: check, kept, instance, gap, bound. "row" and "output" in random layers of six levels over averages;
    "lipschitz": softmax of random pairs of scores, l_1 against the maximum norm; "tight": the pair that reaches it;
    "sharp row" and "sharp output": the layer that reaches the bound of a dropped level.
    """

    instances: int = 48
    T: int = 64
    d: int = 8
    levels: int = 6
    rho: float = 0.7

    tiny: ClassVar = {"instances": 3, "T": 32}

    def conditions(self) -> list[dict]:
        return [{"kept": kept} for kept in range(self.levels)]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        kept, draw = condition["kept"], stream(seed, "pruning")
        if kept == 0:
            return self._lipschitz(draw)
        options = {"pooling": "average", "dtype": dtype, "device": device}
        layers = random_layers(self.instances, self.d, 1, self.levels, generator=draw, **options)
        x = normal((self.instances, self.T, self.d), draw).to(device, dtype)
        with torch.no_grad():
            q, k, alpha = layers.scores.features(x)
        tables, few = score_tables(q, k), alpha.clone()
        few[..., kept:] = 0.0
        A, A_few = (torch.softmax(causal_mask(mix(tables, each)), dim=-1) for each in (alpha, few))
        change = (A - A_few).abs().sum(dim=-1).flatten(1).amax(dim=1)
        pairs = zip(score_bound(tables, self.rho), alpha, strict=True)
        bound = torch.stack([tail_bound(float(B), self.rho, a, kept) for B, a in pairs]).flatten()
        v = normal((self.instances, 1, self.T, self.d), draw).to(device, dtype)
        moved = ((A - A_few) @ v).norm(dim=-1).flatten(1).amax(dim=1)
        largest = v.norm(dim=-1).flatten(1).amax(dim=1)
        return pd.concat([rows_of("row", change, bound), rows_of("output", moved, bound * largest)], ignore_index=True)

    def _lipschitz(self, draw: torch.Generator) -> pd.DataFrame:
        s = 3 * normal((4096, 5), draw)
        delta = torch.rand(4096, 1, generator=draw, dtype=s.dtype) * normal((4096, 5), draw).sign()
        moved = (torch.softmax(s + delta, dim=-1) - torch.softmax(s, dim=-1)).abs().sum(dim=-1)
        # five terms, each right to a few eps relative to itself
        table = rows_of("lipschitz", moved, delta.abs().amax(dim=-1) + 32 * EPS)
        step = torch.tensor([[1e-4, -1e-4]], dtype=s.dtype)
        tight = (torch.softmax(step, dim=-1) - torch.softmax(-step, dim=-1)).abs().sum(dim=-1)
        return pd.concat([table, rows_of("tight", tight, 2e-4), self._sharp(1e-4)], ignore_index=True)

    def _sharp(self, size: float) -> pd.DataFrame:
        """Four tokens that level 0 cannot tell apart, in two blocks that level 1 scores ``size`` and ``-size``.

        Without level 1 the last row is uniform. With it half of its weight moves by tanh(size / 2) = size alpha_1 in
        the limit, and so does the output if the values are 1 in one block and -1 in the other.
        """
        tables = [torch.zeros(4, 4).double(), size * torch.tensor([[1.0, -1.0], [1.0, -1.0]]).double()]
        alpha, v = torch.tensor([0.5, 0.5]).double(), torch.tensor([1.0, 1.0, -1.0, -1.0]).double()
        bound = tail_bound(float(score_bound(tables, self.rho)), self.rho, alpha, 1)
        A, A_few = (
            torch.softmax(causal_mask(mix(tables, each)), dim=-1)[-1] for each in (alpha, alpha * (1 - torch.arange(2)))
        )
        gaps = {"sharp row": (A - A_few).abs().sum(dim=-1), "sharp output": ((A - A_few) @ v).abs()}
        return pd.concat([rows_of(name, gap.view(1), bound) for name, gap in gaps.items()], ignore_index=True)
