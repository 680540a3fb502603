"""CAC-14: the clock of the sampler, at the recorded tiers; criteria and expected verdicts were written before the run."""

import numpy as np
import pandas as pd

from derived.lab import measure
from derived.lab.claims import RECORDED, at_least, holds, reported, statistic
from derived.lab.stats import Estimate

from ..experiments.clock import SamplerTime


def times(slow: str, fast: str) -> measure.Measure:
    """Ratio of two times at the largest batch and vocabulary, geometric mean over rounds in which they took turns."""
    of_logarithms = measure.mean(lambda rows: np.log(rows[slow] / rows[fast]), "B == B.max() and V == V.max()")

    def geometric(rows: pd.DataFrame) -> Estimate:
        one = of_logarithms(rows)
        value, low, high = (float(np.exp(each)) for each in (one.value, one.low, one.high))
        return Estimate(value, one.n, low, high, one.error * value)

    return geometric


CLAIMS = (
    statistic(
        "CAC-14.a",
        r"The sampler of Cactus is faster than that of typical acceptance, which reads every row.",
        SamplerTime,
        times("tas", "cactus"),
        "time of typical acceptance over Cactus at the largest $B$ and $V$, geometric mean over repeats",
        at_least(1),
        unit="times as long",
        expected=holds(*RECORDED),
        judged_at=RECORDED,
        source="digest",
        where="discussion of memory traffic",
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
    ),
    reported(
        "CAC-14.c",
        r"The sampler of Cactus takes this many times as long as reading once the two rows that a rejection needs. (Time, not bytes: no bound was set.)",
        SamplerTime,
        times("cactus", "rows"),
        "times as long",
        judged_at=RECORDED,
    ),
)
