"""Information through the levels, averages that become Gaussian, and memory: the rows of four figures."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import torch

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..model.information import (
    LatentMixture,
    information_budget,
    line,
    mardia_kurtosis,
    mardia_rounding,
    mean_negentropy,
)
from ..model.theory import block_variance, fgn_covariance, fgn_variance
from .instances import normal

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


def telling_samples(rows: pd.DataFrame) -> float:
    """The least n/p, at the largest width, from which on the bars b +- one deviation of any two laws are apart."""
    widest = rows[rows["p"] == rows["p"].max()]
    table = widest.groupby(["n", "law"])["b"].agg(["mean", "std"]).sort_values("mean").reset_index()
    separate = {}
    for n, part in table.groupby("n"):
        low, high = part["mean"] - part["std"], part["mean"] + part["std"]
        separate[n] = bool((low.iloc[1:].values > high.iloc[:-1]).all())
    enough = [n for n in sorted(separate) if all(separate[m] for m in separate if m >= n)]
    return float(enough[0] / widest["p"].iloc[0]) if enough else float("inf")


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
