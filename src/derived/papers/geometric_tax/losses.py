"""Other losses on the same tokens: which of them take the jump away (GT-7.m)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar

import pandas as pd

from derived.lab.claims import RECORDED, at_most, statistic
from derived.lab.measure import Measure, highest

from .fits import CI, CPU, Fits, split
from .measures import over_cases, ratio
from .trained import jump

#: Arm and width of the blur, in bins of 64, of each loss.
LOSSES = MappingProxyType(
    {
        "hard": ("ce", 0),
        "smoothed": ("smoothed", 4),
        "blur of 1 bin": ("blurred", 1),
        "blur of 4 bins": ("blurred", 4),
        "blur of 8 bins": ("blurred", 8),
        "cumulative": ("cumulative", 0),
        "rounded value": ("rounded", 0),
        "value": ("scalar", 0),
    }
)
DISTANCES = ("blur of 8 bins", "cumulative", "rounded value")


@dataclass(frozen=True, kw_only=True)
class Losses(Fits):
    """GT-7.m: Lorenz paths, one encoder, eight losses: labels hard, smoothed (soft without order), blurred by 1, 4 and 8
    bins; the distance of cumulative distributions; the squared error of the rounded value and of the value. Rows: loss, those of ``Fits``, and J, V, T at the end.
    """

    struck: int = 300
    strikes: int = 4

    tiers: ClassVar = {
        "ci": {**CI, "struck": 40, "rates": (1e-2,)},
        "cpu": {**CPU, "networks": 8, "steps": 1000, "rates": (0.01, 0.016, 0.025, 0.04), "search": 1},
    }

    def conditions(self) -> list[dict]:
        return [{"loss": loss} for loss in LOSSES]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        arm, bins = LOSSES[condition["loss"]]
        size = replace(self, blur=bins / 64) if bins else self
        parts = lambda one, found: split(one, found, "lorenz", self.struck, self.strikes)  # noqa: E731
        return size.fitted(arm=arm, also=parts, seed=seed + 3, device=device, dtype=dtype)


# Claims: criteria and expected verdicts were written before the run.


def over_hard(losses: Sequence[str]) -> Measure:
    """J / T over that of hard labels, the largest of some losses, judged jointly."""

    def logs(rows: pd.DataFrame, case: str) -> pd.Series:
        arms = rows.rename(columns={"loss": "arm"})
        return jump(arms, case, "J == J") - jump(arms, "hard", "J == J")

    measure = over_cases(logs, losses, highest)
    return lambda rows: ratio(measure(rows))


CLAIMS = (
    statistic(
        "GT-7.m",
        "On Lorenz paths each of three losses that know how far apart two bins are, a blur of eight bins, the distance of cumulative distributions and the squared error of the rounded value, leaves at most half of the jump $J/T$ of hard labels.",
        Losses,
        over_hard(DISTANCES),
        "$J/T$ over that under hard labels, the largest of three losses",
        at_most(0.5),
        where="one network chose the rate of each loss, among four a factor of 1.6 apart; narrower blurs are shown and not judged",
        unit="times",
        judged_at=RECORDED,
        control=over_hard(("smoothed",)),
    ),
)

EXPERIMENTS = (Losses,)
