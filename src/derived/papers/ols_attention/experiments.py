"""The experiments of the chapter, each a frozen table of sizes and one batched function."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd
import torch

from derived.lab.experiment import Experiment
from derived.lab.rng import stream

from .data import random_regression
from .mechanism import OLSTransformer, whitening
from .theory import hat_matrix, ols_coefficients, rounding_bound, smoother


def _norm(matrices: torch.Tensor) -> torch.Tensor:
    return torch.linalg.matrix_norm(matrices)


@dataclass(frozen=True, kw_only=True)
class Identities(Experiment):
    """Claims OLS-1 to OLS-3: worst relative gaps of the spectral construction on random problems.

    Rows: instance, gap_fit, gap_hat, gap_inert and ``bound``, the derived rounding bound of the instance.
    """

    sizes: tuple[tuple[int, int, int], ...] = ((1, 1, 1), (7, 1, 3), (40, 5, 2), (500, 8, 1))
    kappa: float = 100.0
    instances: int = 64

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {}}

    def conditions(self) -> list[dict[str, Any]]:
        return [{"n": n, "p": p, "m": m} for n, p, m in self.sizes]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        n, p, m = (condition[name] for name in "npm")
        draw = stream(seed, "identities", n, p, m)
        X, Y, _ = random_regression(n, p, m, kappa=self.kappa, batch=(self.instances,), generator=draw, dtype=dtype)
        X, Y = X.to(device), Y.to(device)
        layer, L, H = OLSTransformer.from_data(X, Y), whitening(X), hat_matrix(X)
        scale = _norm(Y)
        gaps = {
            "gap_fit": _norm(layer(X) - X @ ols_coefficients(X, Y)) / scale,
            "gap_hat": _norm(layer.attention_matrix(X) - H) / _norm(H),
            "gap_inert": _norm(smoother(X, L) @ (X @ L) - X @ L) / _norm(X @ L),
            "bound": 2 * rounding_bound(X),
        }
        columns = {name: values.cpu().numpy() for name, values in gaps.items()}
        return pd.DataFrame({"instance": range(self.instances), **columns})


EXPERIMENTS = (Identities,)
