"""CAC-14: the clock of the sampler, at the recorded tiers; criteria and expected verdicts were written before the run."""

import numpy as np
import pandas as pd
from scipy import stats

from derived.lab import measure
from derived.lab.claims import RECORDED, at_least, reported, statistic
from derived.lab.stats import LEVEL, Estimate

from ..experiments.clock import SamplerTime


def times(slow: str, fast: str) -> measure.Measure:
    """Ratio of two times at the largest batch and vocabulary: median over the rounds in which they took turns.

    The interval runs between two order statistics, so no shape of the clock's law is assumed; where the rounds are too
    few for its level it says nothing, 0 to infinity.
    """

    def median(rows: pd.DataFrame) -> Estimate:
        some = measure.chosen(rows, "B == B.max() and V == V.max()")
        ratios = np.sort(some[slow] / some[fast])
        n = len(ratios)
        rank = int(stats.binom.ppf((1 - LEVEL) / 2, n, 0.5))  # fewer than this many lie below the median: rarely
        low, high = (ratios[rank - 1], ratios[n - rank]) if rank else (0.0, np.inf)
        return Estimate(float(np.median(ratios)), n, float(low), float(high))

    return median


CLAIMS = (
    statistic(
        "CAC-14.a",
        r"At the largest recorded size our sampler for Cactus is faster than our sampler for typical acceptance, which reads every row.",
        SamplerTime,
        times("tas", "cactus"),
        "time of typical acceptance over Cactus at the largest $B$ and $V$, median over rounds",
        at_least(1),
        control=times("exact", "cactus"),  # the same code without a budget
        unit="times the time of Cactus",
        judged_at=RECORDED,
        plain="With many texts and a large vocabulary our sampler for Cactus is faster than our sampler for typical acceptance.",
        source="digest",
        where="discussion of memory traffic; both samplers are ours; smaller sizes are recorded, too, and not judged",
        scale={"gpu": "ours"},
    ),
    reported(
        "CAC-14.b",
        r"The sampler of Cactus takes this many times as long as that of exact sampling, the same code at $\delta=0$.",
        SamplerTime,
        times("cactus", "exact"),
        "times as long",
        judged_at=RECORDED,
        source="digest",
        where="Section on implementation",
        scale={"gpu": "ours"},
    ),
)
