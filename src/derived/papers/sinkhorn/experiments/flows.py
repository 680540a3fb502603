"""Attention as a flow of particles: which drift is a gradient, which energy falls, and the limit of narrow kernels.

symbol    name      meaning                                                              axes
x         x         particles, each of weight 1/n                                        (n, d)
E         energy    OT_1(mu, mu), cost |x - y|^2 / 2                                     scalar
rho       -         a density on the circle; score is (ln rho)'                          (points,)
"""

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import torch
from torch import Tensor

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..model.flows import NORMALISERS, limit_drift, self_transport, sinkhorn_drift, softmax_drift

DRIFTS = {"softmax": softmax_drift, "sinkhorn": sinkhorn_drift}


@dataclass(frozen=True, kw_only=True)
class Drift(Experiment):
    """SK-15.a, b: the drift against differences of the energy, and how far its Jacobian is from symmetric.

    Rows: n, instance; gradient_gap (largest entry of x - A x - (n / 2) grad E, by central differences of E),
    gradient_bound; asymmetry_sinkhorn, asymmetry_softmax: |J - J^T| / |J|, Frobenius; bound.
    """

    instances: int = 10
    sizes: tuple[int, ...] = (2, 5, 12)

    tiers: ClassVar = {"ci": {"instances": 2, "sizes": (2, 5)}, "cpu": {}}
    tiny: ClassVar = {"sizes": (3,)}

    def conditions(self) -> list[dict]:
        return [{"n": n} for n in self.sizes]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        n = condition["n"]
        points = torch.randn(self.instances, n, 2, generator=stream(seed, "drift", n), dtype=torch.float64)
        columns = {"gradient_gap": [self._gap(x) for x in points], "gradient_bound": 1e-7}
        for name, drift in DRIFTS.items():
            columns[f"asymmetry_{name}"] = [self._asymmetry(drift, x) for x in points]
        return rows({"instance": range(self.instances)}, columns | {"bound": 1e-9})

    @staticmethod
    def _gap(x: Tensor, step: float = 1e-4) -> float:
        """Error of the differences: step^2 times a third derivative of order 1, and rounding 1e-15 / step."""
        slopes = []
        for move in torch.eye(x.numel(), dtype=x.dtype).view(-1, *x.shape):
            slopes.append((self_transport(x + step * move) - self_transport(x - step * move)) / (2 * step))
        return float((-sinkhorn_drift(x) - len(x) / 2 * torch.stack(slopes).view_as(x)).abs().max())

    @staticmethod
    def _asymmetry(drift, x: Tensor) -> float:
        J = torch.autograd.functional.jacobian(drift, x).reshape(x.numel(), x.numel())
        return float((J - J.T).norm() / J.norm())


@dataclass(frozen=True, kw_only=True)
class Particles(Experiment):
    """SK-15.c: particles that move up both drifts from the same start, x' = A x - x, by Heun's rule.

    Rows: normaliser, instance, step, time, particle, x, y; energy of the whole cloud, the same for its particles, and
    rise: what the energy gained since the step before (NaN at the start).
    """

    instances: int = 4
    n: int = 24
    steps: int = 60
    length: float = 0.1
    spread: float = 1.5

    tiers: ClassVar = {
        "ci": {"instances": 1, "n": 16, "steps": 30},
        "cpu": {},
    }
    tiny: ClassVar = {"n": 5, "steps": 8}

    def conditions(self) -> list[dict]:
        return [{"normaliser": name} for name in NORMALISERS]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        drift, tables = DRIFTS[condition["normaliser"]], []
        for instance in range(self.instances):
            generator = stream(seed, "particles", instance)
            x = self.spread * torch.randn(self.n, 2, generator=generator, dtype=torch.float64)
            before = torch.nan
            for step in range(self.steps + 1):
                energy = float(self_transport(x))
                columns = {"x": x[:, 0], "y": x[:, 1], "energy": energy, "rise": energy - before}
                table = rows({"particle": range(self.n)}, columns)
                tables.append(table.assign(instance=instance, step=step, time=step * self.length))
                first = drift(x)
                x, before = x + self.length / 2 * (first + drift(x + self.length * first)), energy
        return pd.concat(tables, ignore_index=True)


@dataclass(frozen=True, kw_only=True)
class HeatLimit(Experiment):
    """SK-16: the drift over the squared bandwidth against the score, on the circle, by quadrature.

    Rows: normaliser, width, x, drift (over width^2), score; slope: least squares of the first on the second.
    """

    widths: tuple[float, ...] = (0.4, 0.2, 0.1, 0.05)
    num: int = 512

    tiny: ClassVar = {"widths": (0.2, 0.05)}
    deterministic: ClassVar = {"slope": 1e-6}

    def conditions(self) -> list[dict]:
        return [{"normaliser": name, "width": width} for name in NORMALISERS for width in self.widths]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        width = condition["width"]
        found = limit_drift(width, condition["normaliser"], self.num)
        drift = found.drift / width**2
        slope = float((drift @ found.score) / (found.score @ found.score))
        every = slice(None, None, 8)  # enough for a curve
        return rows({"x": found.x[every]}, {"drift": drift[every], "score": found.score[every], "slope": slope})
