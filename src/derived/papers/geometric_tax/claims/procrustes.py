"""GT-1, GT-2, GT-13: what distortion measures, and scores that measure nothing."""

import numpy as np
import pandas as pd

from derived.lab import measure, stats
from derived.lab.claims import at_least, on_page, statistic, within
from derived.lab.measure import farthest_from
from derived.lab.stats import Estimate

from ..experiments.procrustes import Pooled
from .measures import ratio


def farthest(rows: pd.DataFrame, law: str = "law") -> Estimate:
    """Measured over predicted D, in the code and share where it is farthest from one."""
    return measure.mean(f"D / {law}", by=["code", "r"], decides=farthest_from(1))(rows)


def one_share(rows: pd.DataFrame) -> Estimate:
    """The same of a law that knows nothing of the share: what it says of the largest."""
    return farthest(rows.assign(blind=rows.groupby(["code", "replicate"])["law"].transform("max")), "blind")


def without_training(rows: pd.DataFrame, code: str = "random") -> Estimate:
    """D of random codes, or of others, over D of a linear one at the largest share of disturbed positions: geometric
    mean over replicates."""
    top = rows[rows["r"] == rows["r"].max()].pivot(index="replicate", columns="code", values="D")
    return ratio(stats.mean(np.log(top[code] / top["linear"])))


CLAIMS = (
    on_page(
        "GT-1.a", source="prior", where="Schönemann 1966; the author's code takes the rotation and sums the residual"
    ),
    on_page("GT-1.b"),
    on_page("GT-2.a"),
    statistic(
        "GT-2.b",
        r"Mean-pooled states of which a share $r$ jumps by $J$ in mean square are at $D\approx\sqrt{rJ/2LV}$, $V$ the variance between sequences.",
        Pooled,
        farthest,
        "measured over predicted distortion, three codes at four shares judged jointly",
        within(1, 0.15),
        unit="ratio",
        control=one_share,
    ),
    statistic(
        "GT-2.c",
        r"Without any training, random codes of 256 ordered bins make the distortion several times that of a linear code.",
        Pooled,
        without_training,
        "random over linear codes at the largest share of disturbed positions",
        at_least(5),
        unit="times",
        control=lambda rows: without_training(rows, "smooth"),
    ),
    on_page("GT-13.a"),
    on_page("GT-13.b"),
)
