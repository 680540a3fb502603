"""The softmax layer: from least squares at beta = 0 to look-up as beta grows (OLS-13).

beta  inverse temperature of softmax
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch.linalg import matrix_norm as norm

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..data.problems import random_regression
from ..model import theory
from ..model.mechanism import softmax_read_out, softmax_regression


@dataclass(frozen=True, kw_only=True)
class Dial(Experiment):
    """OLS-13: distance of the softmax read-out from least squares with intercept, as beta goes to 0."""

    betas: tuple[float, ...] = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
    n: int = 60
    p: int = 3
    replicates: int = 32

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        generator = stream(seed, "dial")
        X, Y, _ = random_regression(self.n, self.p, batch=(self.replicates,), generator=generator, dtype=dtype)
        X, Y = (X + 1.0).to(device), (Y + 0.5 * (X**2).sum(dim=-1, keepdim=True)).to(device)  # skewed: E_1 is not 0
        target = theory.ols_with_intercept(X, X, Y)
        errors = [norm(softmax_read_out(X, X, Y, beta) - target) / norm(target) for beta in self.betas]
        without_intercept = X @ theory.ols_coefficients(X, Y, method="full rank")
        missed = norm(without_intercept - target) / norm(target)
        columns = {"error": torch.stack(errors), "without_intercept": missed.expand(len(self.betas), -1)}
        return rows({"beta": self.betas, "replicate": range(self.replicates)}, columns)


@dataclass(frozen=True, kw_only=True)
class DialCurves(Experiment):
    """The dial on one small data set: prediction at every x for beta from 1e-3 to 1e3, and affine least squares."""

    n: int = 24
    points: int = 121
    num_betas: int = 25

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        generator = stream(seed, "dial curves")
        X = torch.randn(self.n, 1, generator=generator, dtype=dtype).sort(dim=0).values
        Y = torch.sin(2 * X) + 0.6 * X + 0.15 * torch.randn(self.n, 1, generator=generator, dtype=dtype)
        grid = torch.linspace(-2.6, 2.6, self.points, dtype=dtype).unsqueeze(-1)
        fit, betas = theory.ols_with_intercept(grid, X, Y), np.geomspace(1e-3, 1e3, self.num_betas)
        tables = [rows({"curve": "data", "x": X[:, 0]}, {"beta": np.nan, "y": Y[:, 0]})]
        tables.append(rows({"curve": "least squares", "x": grid[:, 0]}, {"beta": np.nan, "y": fit[:, 0]}))
        for curve, predict in (("softmax", softmax_regression), ("read-out", softmax_read_out)):
            y = torch.stack([predict(grid, X, Y, beta)[:, 0] for beta in betas])
            tables.append(rows({"curve": curve, "beta": betas, "x": grid[:, 0]}, {"y": y}))
        return pd.concat(tables, ignore_index=True)
