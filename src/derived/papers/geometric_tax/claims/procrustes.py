"""GT-1, GT-2, GT-13: what distortion measures. Criteria and expected verdicts were written before the run."""

import numpy as np
import pandas as pd

from derived.lab import measure, stats
from derived.lab.claims import at_least, at_most, identity, refuted, statistic, within
from derived.lab.measure import farthest_from
from derived.lab.stats import Estimate

from ..experiments.procrustes import Composite, Identities, Noise, Pooled, Unrelated
from .measures import ratio


def without_training(rows: pd.DataFrame) -> Estimate:
    """D of random codes over D of a linear one at the largest share of disturbed positions: geometric mean over replicates."""
    top = rows[rows["r"] == rows["r"].max()].pivot(index="replicate", columns="code", values="D")
    return ratio(stats.mean(np.log(top["random"] / top["linear"])))


def unmatched(rows: pd.DataFrame) -> Estimate:
    """The mean of sample split and of anchor stability over clouds of a kind, the one that reaches farthest from 0."""
    long = rows.melt(["cloud", "replicate"], ["sample_split", "anchors"], "score")
    return measure.mean("value", by=["cloud", "score"], decides=farthest_from(0))(long)


LATER = {"ci": "undecided", "cpu": "holds"}  # the live rows are too few for twelve or eight cases at once

CLAIMS = (
    identity(
        "GT-1.a",
        r"The distortion is $D=\sqrt{1-\lVert X_n^\top Y_n\rVert_*}$, and no rotation, reflection, shift or scale of either cloud changes it.",
        Identities,
        measure.most_of(measure.worst("residual"), measure.worst("disparity"), measure.worst("moved")),
        "largest gap of $D^2$, to SciPy's two Procrustes routines and after such moves, over its rounding bound",
        source="prior",
        where="Schönemann 1966; the author's code takes the rotation and sums the residual",
    ),
    refuted(
        "GT-1.b",
        "Clouds that have nothing to do with one another are at distortion one.",
        Unrelated,
        measure.smallest("D", "p == 256"),
        "two independent clouds of the published size whose distortion is",
        at_least(0.95),
        unit="distortion",
    ),
    statistic(
        "GT-2.a",
        r"Independent noise with $s={\rm tr}\,\Sigma_E/{\rm tr}\,\Sigma_X$ gives $D=\sqrt{1-(1+s)^{-1/2}}$, whatever both covariances.",
        Noise,
        measure.mean("ratio", by=["cloud", "s"], decides=farthest_from(1)),
        "measured over predicted distortion, ten cases judged jointly",
        within(1, 0.03),
        unit="ratio",
    ),
    statistic(
        "GT-2.b",
        r"Mean-pooled states of which a share $r$ jumps by $J$ in mean square are at $D\approx\sqrt{rJ/2LV}$, $V$ the variance between sequences.",
        Pooled,
        measure.mean("D / law", by=["code", "r"], decides=farthest_from(1)),
        "measured over predicted distortion, three codes at four shares judged jointly",
        within(1, 0.15),
        unit="ratio",
    ),
    statistic(
        "GT-2.c",
        r"Without any training, random codes of 256 ordered bins make the distortion several times that of a linear code.",
        Pooled,
        without_training,
        "random over linear codes at the largest share of disturbed positions",
        at_least(5),
        unit="times",
    ),
    statistic(
        "GT-13.a",
        "Sample split and anchor stability are zero in expectation, whatever the cloud: their entries belong to different pairs of points.",
        Composite,
        unmatched,
        "mean over clouds of a kind, four kinds and two scores judged jointly",
        within(0, 0.03),
        unit="correlation",
    ),
    refuted(
        "GT-13.b",
        "Feature split is a property of the cloud's geometry.",
        Composite,
        measure.largest("abs(rotated - feature_split)"),
        "a rotation, which keeps every distance, that moves it by",
        at_most(0.1),
        unit="correlation",
    ),
)
