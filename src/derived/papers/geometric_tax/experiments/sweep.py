"""How fine a codebook: the distortion of hard labels against the number of codes, few and many paths, and noise.

Two mechanisms foretell different curves. A staircase of sharp labels rises with the number of codes until a bin is no
wider than what the network cannot know: a maximum, be the paths few or many. One free vector for each code is estimated
from ever fewer points: a minimum, which moves to more codes as there are more paths.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import pandas as pd

from .fits import CI, SHORT, Fits


@dataclass(frozen=True, kw_only=True)
class Sweep(Fits):
    """GT-8, after the paper's learned codebooks: Lorenz, k-means codes, hard labels; ``arm`` "scalar" has the squared
    error of the value, on 64 codes whatever K.

    Rows: arm, K, noise (standard deviation of what is added to every value, a share of the range), num (paths that
    each network is trained on), and those of ``Fits``.
    """

    codebooks: tuple[int, ...] = (32, 64, 128, 256, 512, 1024)
    noises: tuple[float, ...] = (0.0, 0.01, 0.03)
    few: int = 2000

    tiers: ClassVar = {
        "ci": {**CI, "codebooks": (4, 8), "noises": (0.0, 0.1), "few": 6},
        "cpu": {**SHORT, "codebooks": (8, 64, 128, 512), "noises": (0.0, 0.03), "few": 125},
        "gpu": {},
    }
    tiny: ClassVar = {"codebooks": (4, 6, 8)}
    looks: ClassVar[tuple[float, ...]] = ()  # shares of the steps at which networks are judged, the end apart

    def conditions(self) -> list[dict]:
        cases = [(noise, self.paths) for noise in self.noises] + [(0.0, self.few)]
        arms = [("ce", K) for K in self.codebooks] + [("scalar", self.codes)]
        return [{"noise": noise, "num": num, "arm": arm, "K": K} for noise, num in cases for arm, K in arms]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        K, noise, num = (condition[name] for name in ("K", "noise", "num"))
        size = replace(self, codes=K, paths=num)
        looks = [int(share * self.steps) for share in self.looks]
        facts = {"learned": True, "looks": looks, "seed": seed, "device": device, "dtype": dtype}
        return size.fitted(arm=condition["arm"], noise=noise, on=condition.get("on", "values"), **facts)


@dataclass(frozen=True, kw_only=True)
class Longer(Sweep):
    """GT-8.a, d to f: many paths, as in ``Sweep``, for four times the steps, so that the finest codebook may learn as
    well, in networks that share no draw with those; the inner codebooks and the value also with the largest noise,
    ``on`` all "values" or on the "labels" alone. Rows as there and on, with two looks before the end."""

    tiers: ClassVar = {
        "ci": Sweep.tiers["ci"],
        "cpu": {**Sweep.tiers["cpu"], "networks": 24, "steps": 2000, "rates": (0.0063, 0.01, 0.016, 0.025, 0.04)},
    }
    looks: ClassVar[tuple[float, ...]] = (0.1, 0.9)

    def conditions(self) -> list[dict]:
        scalar = ("scalar", self.codes)
        inner = [("ce", K) for K in self.codebooks[1:-1]]
        cases = [
            (0.0, "values", arm) for arm in (("ce", self.codebooks[0]), *inner, ("ce", self.codebooks[-1]), scalar)
        ]
        cases += [(max(self.noises), on, arm) for on in ("values", "labels") for arm in (*inner, scalar)]
        return [{"noise": noise, "num": self.paths, "on": on, "arm": arm, "K": K} for noise, on, (arm, K) in cases]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        return super().run(condition, seed=seed + 1, device=device, dtype=dtype)
