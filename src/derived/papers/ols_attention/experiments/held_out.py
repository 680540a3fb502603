"""Queries on which the layer was not made: fresh batches, and inputs that shift (OLS-7, OLS-8).

error   distance from the least-squares prediction, relative
amount  how far the inputs shift, in the unit of the kind of shift
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.linalg import matrix_norm as norm

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..data.problems import random_rotation
from ..model import theory
from ..model.mechanism import OLSTransformer, in_context_ols


@dataclass(frozen=True, kw_only=True)
class BatchError(Experiment):
    """OLS-7: squared error of the frozen layer on a fresh batch from the training law, over its exact mean."""

    sizes: tuple[tuple[int, int], ...] = ((1, 32), (2, 32), (4, 16), (4, 64), (8, 32))
    draws: int = 65536

    def conditions(self) -> list[dict]:
        return [{"p": p, "num_tokens": n} for p, n in self.sizes]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        p, n = condition["p"], condition["num_tokens"]
        generator = stream(seed, "batch error", p, n)
        X = torch.randn(self.draws, n, p, generator=generator, dtype=dtype).to(device)
        b = torch.randn(self.draws, p, 1, generator=generator, dtype=dtype).to(device)
        error = X @ (theory.second_moment(X) @ b) - X @ b  # population weights: Sigma = I, B = b
        relative = error.square().sum(dim=(-2, -1)) / n / b.square().sum(dim=(-2, -1))
        return rows({"draw": range(self.draws)}, {"error": relative, "predicted": theory.batch_error(p, n)})


@dataclass(frozen=True, kw_only=True)
class Shift(Experiment):
    """OLS-8: distance from the least-squares prediction, relative, when the inference inputs shift.

    ``scale``: fresh tokens times c · ``same tokens``: the training tokens times c · ``rotation``: the covariance turned
    by an angle in units of pi/2 · ``condition``: its condition number times a factor.
    """

    amounts: tuple[float, ...] = (0.25, 0.3536, 0.5, 0.7071, 1.0, 1.4142, 2.0, 2.8284, 4.0)
    angles: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 1.0)
    n: int = 2000
    p: int = 4
    kappa: float = 10.0
    replicates: int = 32

    def conditions(self) -> list[dict]:
        kinds = {"scale": self.amounts, "same tokens": self.amounts, "rotation": self.angles, "condition": self.amounts}
        return [{"shift": kind, "amount": amount} for kind, amounts in kinds.items() for amount in amounts]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        generator = stream(seed, "shift")  # the same draws for every condition: the curves are paired
        shape, kind, amount = (self.replicates, self.n, self.p), condition["shift"], condition["amount"]
        frame = random_rotation(self.p, batch=(self.replicates,), generator=generator, dtype=dtype)
        exponent = torch.linspace(0, 0.5, self.p, dtype=dtype)
        base, fresh = torch.randn(2, *shape, generator=generator, dtype=dtype)
        B = torch.randn(self.replicates, self.p, 1, generator=generator, dtype=dtype)
        noise = 0.3 * torch.randn(self.replicates, self.n, 1, generator=generator, dtype=dtype)
        X = base * self.kappa**exponent @ frame.mT
        kappa = self.kappa * amount if kind == "condition" else self.kappa
        turned = frame @ _turn(self.p, amount if kind == "rotation" else 0.0, dtype)
        factor = amount if kind in ("scale", "same tokens") else 1.0
        Xq = factor * (X if kind == "same tokens" else fresh * kappa**exponent @ turned.mT)
        X, Xq, Y = X.to(device), Xq.to(device), (X @ B + noise).to(device)
        target = Xq @ theory.ols_coefficients(X, Y, method="full rank")
        layer = OLSTransformer.from_data(X, Y)
        predictions = {"self": layer(Xq), "cross": layer(Xq, context=X), "labels": in_context_ols(Xq, X, Y)}
        size = norm(target)
        error = [norm(predicted - target) / size for predicted in predictions.values()]
        gains = [theory.rounding_bound(X, Xq, self_attention=method == "self") for method in predictions]
        bound = [2 * gain * norm(Y) / size for gain in gains]
        index = {"method": [*predictions], "replicate": range(self.replicates)}
        return rows(index, {"error": torch.stack(error), "bound": torch.stack(bound)})


def _turn(p: int, amount: float, dtype: torch.dtype) -> Tensor:
    """A rotation by ``amount`` quarter turns in the plane of the first and the last axis."""
    turn, angle = torch.eye(p, dtype=dtype), torch.tensor(amount * np.pi / 2, dtype=dtype)
    turn[0, 0] = turn[-1, -1] = angle.cos()
    turn[0, -1], turn[-1, 0] = -angle.sin(), angle.sin()
    return turn
