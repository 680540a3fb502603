"""Attention as a flow of particles: which energy falls, and the limit of narrow kernels.

symbol    name      meaning                                                              axes
x         x         particles, each of weight 1/n                                        (n, d)
E         energy    OT_1(mu, mu), cost |x - y|^2 / 2                                     scalar
rho       -         a density on the circle; score is (ln rho)'                          (points,)
"""

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import torch

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..model.flows import NORMALISERS, limit_drift, self_transport, sinkhorn_drift, softmax_drift

DRIFTS = {"softmax": softmax_drift, "sinkhorn": sinkhorn_drift}


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
