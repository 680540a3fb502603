"""What must agree to rounding: closed forms with quadratures, and the two ends of the recurrence.

column   meaning
gap      |closed form - quadrature|, or the relative gap between the two products
bound    what the gap may be
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import torch
from scipy import special

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..model import kernels
from ..model.kernels import kernel_of
from ..model.meanfield import propagate


def uniform(shape: tuple[int, ...], low: float, high: float, generator: torch.Generator) -> np.ndarray:
    """Uniform numbers in [low, high) as float64."""
    return (low + (high - low) * torch.rand(shape, generator=generator, dtype=torch.float64)).numpy()


@dataclass(frozen=True, kw_only=True)
class ClosedForms(Experiment):
    """SP-1: the moments of erf and ReLU against quadratures that know no closed form.

    Rows: moment, instance, closed, quadrature, gap, bound.
    """

    instances: int = 32
    nodes: int = 385
    tolerance: float = 1e-5

    tiny: ClassVar = {"instances": 4}
    deterministic: ClassVar = {"closed": 1e-12}

    def conditions(self) -> list[dict]:
        return [{"map": name} for name in ("erf", "relu")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        generator = stream(seed, "closed forms", condition["map"])
        q, rho = 10 ** uniform((self.instances,), -2, 1, generator), uniform((self.instances,), -0.98, 0.98, generator)
        if condition["map"] == "erf":
            alpha = uniform((self.instances,), 0.1, 1.5, generator)
            slope = lambda x: 2 / np.pi**0.5 * np.exp(-x * x)  # noqa: E731
            closed = kernels.ErfKernel(alpha).moments(q, rho * q)._asdict()
            numbers = kernels.ElementwiseKernel(special.erf, slope, alpha, self.nodes).moments(q, rho * q)._asdict()
        else:
            closed = {"kappa": kernels.arccos_kernel(rho), "kappa_prime": kernels.arccos_kernel_prime(rho)}
            numbers = _relu_by_quadrature(rho)
        left, right = (np.stack(list(each.values())) for each in (closed, numbers))
        columns = {"closed": left, "quadrature": right, "gap": np.abs(left - right), "bound": self.tolerance}
        return rows({"moment": list(closed), "instance": range(self.instances)}, columns)


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

    tiny: ClassVar = {"instances": 4, "depth": 8}

    def conditions(self) -> list[dict]:
        return [{"norm": norm} for norm in ("layernorm", "erf", "tanh")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        generator = stream(seed, "ends", condition["norm"])
        ranges = ((0.2, 2), (0, 2), (0.1, 4), (0, 0.9))
        alpha, a, s, rho = (uniform((self.instances,), *ends, generator) for ends in ranges)
        n = torch.randint(2, 200, (self.instances,), generator=generator).numpy()
        kernel = kernel_of(condition["norm"], alpha)
        trajectory = propagate(1.0, rho, kernel=kernel, a=a, s=s, n=n, depth=self.depth)
        gap = np.abs(np.expm1(trajectory.log_J_backward[:, 0] - trajectory.log_J_forward[:, -1]))
        return rows({"instance": range(self.instances)}, {"gap": gap, "bound": self.tolerance})
