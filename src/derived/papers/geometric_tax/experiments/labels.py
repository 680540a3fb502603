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


#: Where the explorer's sliders stop.
STOPS_K = (4, 6, 8, 11, 16, 23, 32, 45, 54, 64)
STOPS_SIGMA = (0.002, 0.003, 0.005, 0.007, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1)


@dataclass(frozen=True, kw_only=True)
class LawGrid(Experiment):
    """The explorer's grid: the law of the bin at places m, and the length. Rows: sigma, K, m, bin, p, length, blur_cap,
    steps_cap."""

    codes: tuple[int, ...] = STOPS_K
    sigmas: tuple[float, ...] = STOPS_SIGMA
    places: tuple[float, ...] = (0.41, 0.45, 0.49)  # neighbours: in one bin of four, in three of sixty-four

    tiny: ClassVar = {"codes": (4, 8), "sigmas": (0.01, 0.1)}
    deterministic: ClassVar = {"length": 1e-6, "p": 1e-9}

    def conditions(self) -> list[dict]:
        return [{"sigma": sigma, "K": K} for sigma in self.sigmas for K in self.codes]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        sigma, K = condition["sigma"], condition["K"]
        columns = {"p": bin_law(np.array(self.places), K, sigma), "length": fisher_rao_length(K, sigma)}
        columns |= {"blur_cap": 1 / sigma, "steps_cap": staircase_length(K)}
        return rows({"m": self.places, "bin": range(K)}, columns)


@dataclass(frozen=True, kw_only=True)
class Path(Experiment):
    """The explorer's middle panel: how long the curve is up to m. Rows: sigma, K, m, path."""

    codes: tuple[int, ...] = STOPS_K
    sigmas: tuple[float, ...] = STOPS_SIGMA
    places: int = 181

    tiny: ClassVar = {"codes": (4,), "sigmas": (0.01,)}
    deterministic: ClassVar = {"path": 1e-9}

    def conditions(self) -> list[dict]:
        return [{"sigma": sigma, "K": K} for sigma in self.sigmas for K in self.codes]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        m = np.linspace(0, 1, self.places)
        return rows({"m": m.tolist()}, {"path": path_length(m, condition["K"], condition["sigma"])})
