"""IPT-8.b to 8.f: the noise that an expectation hides, and how many pairs a memory holds.

Criteria and expected verdicts were written before the run; the margins of slopes are the dossier's.
"""

import pandas as pd

from derived.lab import measure
from derived.lab.claims import holds, reported, statistic, within
from derived.lab.measure import farthest_from

from ..experiments.capacity import Capacity, Noise

BOTH = holds("ci", "cpu")


def over_rule(rows: pd.DataFrame) -> pd.Series:
    """Pairs at half of the answers, over dh / (2 ln V)."""
    return rows["half"] / rows["theory"]


CLAIMS = (
    statistic(
        "IPT-8.b",
        "The noise of unrelated pairs on a logit grows like the square root of their number.",
        Noise,
        measure.power("std", "N", by=["h"], decides=farthest_from(0.5)),
        "exponent of the noise in $N$, the inner width farthest from it",
        within(0.5, 0.1),
        unit="exponent",
        expected=BOTH,
    ),
    statistic(
        "IPT-8.c",
        "The noise of unrelated pairs on a logit falls like one over the square root of the inner width.",
        Noise,
        measure.power("std", "h", by=["N"], decides=farthest_from(-0.5)),
        "exponent of the noise in $h$, the number of pairs farthest from it",
        within(-0.5, 0.15),
        unit="exponent",
        expected=BOTH,
    ),
    statistic(
        "IPT-8.d",
        "The number of pairs at which half of the answers are right grows in proportion to the inner width.",
        Capacity,
        measure.power("half", "h", "point == 0 and d == 64"),
        "exponent of the number of pairs in $h$, at $d=64$",
        within(1, 0.35),
        unit="exponent",
        expected=BOTH,
    ),
    statistic(
        "IPT-8.e",
        "The number of pairs at which half of the answers are right grows in proportion to the width of the model.",
        Capacity,
        measure.power("half", "d", "point == 0 and h == 64"),
        "exponent of the number of pairs in $d$, at $h=64$",
        within(1, 0.35),
        unit="exponent",
        expected=BOTH,
    ),
    reported(
        "IPT-8.f",
        r"The number of pairs at which half of the answers are right, over the rule $dh/(2\ln V)$.",
        Capacity,
        measure.mean(over_rule, "point == 0 and d == 64 and h == 64"),
        "of the rule",
        judged_at=("ci", "cpu"),
    ),
)
