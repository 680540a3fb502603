"""IPT-14: the clock of one layer, at the recorded tiers; criteria and expected verdicts were written before the run, unless a claim says otherwise."""

import numpy as np
import pandas as pd
from scipy import stats

from derived.lab.claims import RECORDED, reported
from derived.lab.measure import Measure, chosen
from derived.lab.stats import LEVEL, Estimate

from ..experiments.clock import LayerTime


def over(form: str, other: str, by_flops: bool = False, single: bool = True) -> Measure:
    """Time of a form over another's at the longest text that both have: median over rounds in which they took turns,
    with an interval between two order statistics; over the ratio of their flops as well, if so asked. One text at a
    time (``single``), or the largest batch."""

    def measure(rows: pd.DataFrame) -> Estimate:
        batch = 1 if single else int(rows["batch"].max())
        some = chosen(rows, f"form in ['{form}', '{other}'] and batch == {batch}")
        both = some.groupby("n")["form"].nunique()
        some = some[some["n"] == both[both == 2].index.max()]
        times, flops = (some.pivot(index="repeat", columns="form", values=name) for name in ("seconds", "flops"))
        ratios = np.sort(times[form] / times[other])
        ratios = ratios / (flops[form] / flops[other]).iloc[0] if by_flops else ratios
        n = len(ratios)
        rank = int(stats.binom.ppf((1 - LEVEL) / 2, n, 0.5))  # fewer than this many lie below the median: rarely
        low, high = (ratios[rank - 1], ratios[n - rank]) if rank else (0.0, np.inf)
        return Estimate(float(np.median(ratios)), n, float(low), float(high))

    return measure


CLAIMS = (
    reported(
        "IPT-14.a",
        "Forward, a gated MLP with the memory takes this many times as long as without, at the longest text.",
        LayerTime,
        over("lean", "static"),
        "times as long",
        judged_at=RECORDED,
        source="paper",
        where="Figure 4: the overhead of whole models is called negligible; one layer is timed here, and no model of several, whose attention and other MLPs take what they took",
        paper_value="negligible, for one layer in six",
    ),
)
