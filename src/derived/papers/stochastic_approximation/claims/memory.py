"""SA-6 and SA-7: memory that mixes slowly. Criteria and expected verdicts were written before the run, unless a claim says otherwise."""

import numpy as np
import pandas as pd

from derived.lab import measure
from derived.lab.claims import RECORDED, at_least, at_most, computed, on_page, statistic, within
from derived.lab.measure import farthest_from, lowest
from derived.lab.stats import Estimate

from ..experiments.memory import Freezes, Line, Renewal, Shuffled

LAST = "N == N.max() and alpha == {}"
LOW = 0.55  # the exponent of steps below the threshold


def exact_slope(rows: pd.DataFrame) -> Estimate:
    """Slope of ln exact in ln n; the column is the same in every group. ValueError where a number is missing."""
    exact = measure.by_draw(rows["exact"], rows, ["n"]).first()
    return Estimate(float(np.polyfit(np.log(exact.index), np.log(exact), 1)[0]), len(exact))


def long_sojourns(outlast: float) -> measure.Measure:
    """Sojourns that outlast n^outlast over the expected number of those that outlast n^0.55, the farthest of the N."""

    def ratio(rows: pd.DataFrame) -> Estimate:
        expected = rows[rows["alpha"] == LOW].groupby("N")["predicted"].first()
        some = measure.chosen(rows, f"alpha == {outlast}")
        some = some.assign(ratio=some["count"] / some["N"].map(expected))
        return measure.mean("ratio", by=["N"], decides=farthest_from(1))(some)

    return ratio


TREND = measure.mean("trend", "data == 'as drawn'", unit=["beta", "replicate"], by=["side"], decides=lowest)


def sides_exchanged(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``Line`` in which every second stream is called by the other side, so that the side says nothing."""
    odd = rows["replicate"] % 2 == 1
    side = rows["side"].where(~odd, rows["side"].map({"below": "above", "above": "below"}))
    return rows.assign(side=side, trend=rows["trend"].where(~odd, -rows["trend"]))


CLAIMS = (
    statistic(
        "SA-6.a",
        r"With sojourns of tail $t^{-\beta}$, $1<\beta<2$, the typical error of running means falls as $n^{-(1-1/\beta)}$: $n^{-1/3}$ at $\beta=\frac32$.",
        Renewal,
        measure.power("median", "n", unit=["group"]),
        r"slope of the median of $\lvert x_n-\frac12\rvert$ in groups of replicas",
        within(-1 / 3, 0.05, r"-\frac13"),
        unit="exponent",
        control=measure.power("rmse", "n", unit=["group"]),  # the other size of the same errors
        horizon="$n=65{,}536$ at tier cpu",
    ),
    computed(
        "SA-6.b",
        r"With sojourns of tail $t^{-\beta}$, $1<\beta<2$, the root mean square error of running means falls as $n^{-(\beta-1)/2}$, more slowly than the typical error: $n^{-1/4}$ at $\beta=\frac32$.",
        Renewal,
        exact_slope,
        "slope of the root mean square error by the exact autocovariance",
        within(-0.25, 0.03, r"-\frac14"),
        unit="exponent",
        control=lambda rows: exact_slope(rows.assign(exact=rows["n"] ** -0.5)),  # independent data
        horizon="$n=65{,}536$ at tier cpu",
    ),
    statistic(
        "SA-6.c",
        r"At $a_n=n^{-0.55}$, below the threshold $\alpha=1/\beta=\frac23$, stationary ergodic data of 0s and 1s still throw the iterate far off after $N$ steps, though $\sum a_n^2<\infty$.",
        Freezes,
        measure.share("excursion", LAST.format(0.55)),
        r"share of replicas with $\lvert x_n-\frac12\rvert>0.3$ for some $n$ in $[N,2N]$, the largest $N$",
        at_least(0.5),
        unit="share",
        where="for ever, by the theorem on the threshold; a row sees one $N$",
        plain="With steps much larger than 1/n, even ergodic data can throw the iterate off late in its life.",
        control=measure.share("excursion", LAST.format(0.9)),
        horizon="$N=2^{15}$ at tier cpu",
    ),
    statistic(
        "SA-6.d",
        r"At $a_n=n^{-0.9}$, above the threshold $\alpha=1/\beta=\frac23$, stationary ergodic data of 0s and 1s rarely throw the iterate far off after $N$ steps.",
        Freezes,
        measure.share("excursion", LAST.format(0.9)),
        r"share of replicas with $\lvert x_n-\frac12\rvert>0.3$ for some $n$ in $[N,2N]$, the largest $N$",
        at_most(0.1),
        unit="share",
        where="that excursions end is the theorem on the threshold; a row sees one $N$",
        control=measure.share("excursion", LAST.format(0.55)),
        horizon="$N=2^{15}$ at tier cpu",
    ),
    statistic(
        "SA-6.e",
        r"Sojourns that start in $[N,2N)$ and outlast $n^\alpha$ number $\sum_n n^{-\alpha\beta}/\mathbb E\tau$ on average, up to whole parts.",
        Freezes,
        long_sojourns(LOW),
        r"number of them over its expectation, the farthest of the $N$",
        within(1, 0.25),
        unit="ratio",
        control=long_sojourns(0.9),
        horizon="$N=2^{15}$ at tier cpu",
    ),
    statistic(
        "SA-6.f",
        r"Streams with heavy-tailed sojourns, shuffled in time, their values kept and their sojourns gone, have no excursions at $a_n=n^{-0.55}$.",
        Shuffled,
        measure.share("excursion", "data == 'shuffled'"),
        r"share of streams with an iterate more than $0.3$ from the stream's own mean for some $n$ in $[2048,4096]$",
        at_most(0.02),
        unit="share",
        control=measure.share("excursion", "data == 'as drawn'"),
    ),
    statistic(
        "SA-6.g",
        r"For sojourns of tail $t^{-\beta}$ excursions of the iterate in $[N,2N]$ become more frequent as $N$ grows where $\alpha=\frac1\beta-0.1$, and less frequent where $\alpha=\frac1\beta+0.1$.",
        Line,
        TREND,
        r"share of streams with $\lvert x_n-\frac12\rvert>0.3$ for some $n$ in $[N,2N]$, its change from $N=2^{10}$ to $2^{14}$ (above the line its fall), mean over $\beta=1.3,1.4,1.5$, the lesser of two sides",
        at_least(0.01),
        unit="share",
        judged_at=RECORDED,
        control=lambda rows: TREND(sides_exchanged(rows)),
        horizon="$N=2^{14}$ at tier cpu",
    ),
    on_page("SA-7.a", horizon="$n=163{,}840$"),
)
