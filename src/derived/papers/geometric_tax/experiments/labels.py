"""The length of the curve that cross-entropy draws (GT-4), for the figure of the staircase and the explorer.

symbol   name     meaning                                                       axes
K        K        labels                                                        scalar
sigma    sigma    width of a blurred label, as a share of the range             scalar
l        length   Fisher-Rao length of m -> p(.|m)                              scalar
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from derived.lab.experiment import Experiment, rows

from ..model.labels import bin_law, fisher_rao_length, path_length, staircase_length


@dataclass(frozen=True, kw_only=True)
class FisherRao(Experiment):
    """GT-4: l(K, sigma) by quadrature. Rows: K, sigma, length, steps_cap = pi (K - 1)."""

    codes: tuple[int, ...] = (2, 3, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
    sigmas: tuple[float, ...] = (0.0005, 0.002, 0.005, 0.02, 0.05, 0.2)

    tiny: ClassVar = {"codes": (2, 5, 40), "sigmas": (0.002, 0.02, 0.2)}
    deterministic: ClassVar = {"length": 1e-6}

    def conditions(self) -> list[dict]:
        return [{"sigma": sigma} for sigma in self.sigmas]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        lengths = [fisher_rao_length(K, condition["sigma"]) for K in self.codes]
        return pd.DataFrame(
            {"K": self.codes, "length": lengths, "steps_cap": [staircase_length(K) for K in self.codes]}
        )


@dataclass(frozen=True, kw_only=True)
class LabelPaths(Experiment):
    """The explorer: the distribution of the bin at places m, and how long its path is up to there. Rows: sigma, K, m,
    bin, p, path."""

    codes: tuple[int, ...] = (2, 16, 64)
    sigmas: tuple[float, ...] = (0.002, 0.005, 0.02, 0.1)
    places: int = 181

    tiny: ClassVar = {"codes": (4, 16), "sigmas": (0.005, 0.1)}
    deterministic: ClassVar = {"p": 1e-9, "path": 1e-9}

    def conditions(self) -> list[dict]:
        return [{"sigma": sigma, "K": K} for sigma in self.sigmas for K in self.codes]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        sigma, K, m = condition["sigma"], condition["K"], np.linspace(0, 1, self.places)
        columns = {"p": bin_law(m, K, sigma), "path": path_length(m, K, sigma)[:, None]}
        return rows({"m": m.tolist(), "bin": range(K)}, columns)
