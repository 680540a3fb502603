"""What measures of several topics share: how far a law is from the one that was predicted."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from derived.lab.measure import Decides, Measure, chosen, highest, jointly
from derived.lab.stats import LEVEL, Estimate


def law_distance(level: str, where: str = "", *, by: Sequence[str] = (), decides: Decides = highest) -> Measure:
    """sup |F_n - F| of independent draws, from the column that holds F at each draw.

    Its interval is that of Dvoretzky, Kiefer, Wolfowitz and Massart: sup |F_n - F_true| <= sqrt(ln(2/(1 - level)) / 2n)
    with at least the probability ``level``, whatever the true law, so the distance of the true law lies within as much.
    ValueError for a draw whose level is no number.
    """

    def one(rows: pd.DataFrame, confidence: float) -> Estimate:
        found = np.sort(rows[level].to_numpy(dtype=float))
        n = len(found)
        if not np.isfinite(found).all():
            raise ValueError(f"{(~np.isfinite(found)).sum()} of {n} draws have no level")
        steps = np.arange(n + 1) / n
        distance = float(max((steps[1:] - found).max(), (found - steps[:-1]).max()))
        reach = math.sqrt(math.log(2 / (1 - confidence)) / (2 * n))
        return Estimate(distance, n, max(0.0, distance - reach), distance + reach)

    if by:
        return jointly(one, by, decides, where)
    return lambda rows: one(chosen(rows, where), LEVEL)
