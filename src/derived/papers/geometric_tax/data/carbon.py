"""Carbon dioxide at Mauna Loa, week by week: the measured series, and windows of it.

symbol   name    meaning                                                       axes
n, L     n, L    number of windows, weeks of each
-        weekly  parts per million, with gaps                                  (weeks,)
-        above   the same less its mean over the 52 weeks before               (weeks - 52,)
"""

import pandas as pd
import torch
from torch import Tensor

from derived.lab.real.pinned import path

YEAR = 52
TRAIN = 30 * YEAR  # weeks that train; of the rest the first half chooses the rate, the second half judges


def above_last_year(weekly: pd.Series) -> Tensor:
    """A series, its gaps filled by a line, less its mean over the 52 weeks before each.

    >>> above_last_year(pd.Series(range(54)))
    tensor([26.5000, 26.5000], dtype=torch.float64)
    """
    whole = weekly.interpolate()
    return torch.tensor((whole - whole.rolling(YEAR).mean().shift()).to_numpy()[YEAR:])


def parts(above: Tensor) -> dict[str, Tensor]:
    """The weeks that train, that choose the rate, and that judge: one after another, none in two."""
    half = (len(above) - TRAIN) // 2
    return dict(zip(("train", "choose", "judge"), above.split([TRAIN, half, len(above) - TRAIN - half]), strict=True))


def windows(part: str, n: int, L: int, generator: torch.Generator, in_order: bool = True) -> Tensor:
    """Windows (n, L) of a part of the measured series (package ``mauna-loa``); not ``in_order``: of weeks drawn at random."""
    weekly = pd.read_csv(path("mauna-loa") / "statsmodels/datasets/co2/co2.csv")["co2"]
    weeks = parts(above_last_year(weekly))[part]
    if not in_order:
        return weeks[torch.randint(len(weeks), (n, L), generator=generator)]
    return weeks.unfold(0, L, 1)[torch.randint(len(weeks) - L + 1, (n,), generator=generator)]
