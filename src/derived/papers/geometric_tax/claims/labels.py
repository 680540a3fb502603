"""GT-3, GT-4: labels and their order. Criteria and expected verdicts were written before the run."""

import numpy as np
import pandas as pd

from derived.lab import measure, stats
from derived.lab.claims import at_least, at_most, bound, identity, statistic, within
from derived.lab.stats import Estimate

from ..experiments.labels import FisherRao, Refits, Relabelled
from .measures import ratio


def renamed(rows: pd.DataFrame) -> Estimate:
    """Least squared error with renamed bins over that with ordered ones: geometric mean over replicates."""
    wide = rows.pivot(index="replicate", columns="labelling", values="squared")
    return ratio(stats.mean(np.log(wide["renamed"] / wide["ordered"])))


def same_minimum(rows: pd.DataFrame) -> Estimate:
    """Largest relative gap of the least cross-entropies of both labellings."""
    wide = rows.pivot(index="replicate", columns="labelling", values="cross_entropy")
    gap = (wide["renamed"] / wide["ordered"] - 1).abs()
    return Estimate(float(gap.max()), len(gap))


CLAIMS = (
    identity(
        "GT-3.a",
        "Renaming the labels, and the rows of the softmax with them, changes no loss, no gradient in the states, and no step of AdamW on the encoder.",
        Relabelled,
        measure.most_of(measure.worst("loss"), measure.worst("gradient"), measure.worst("course")),
        "largest relative gap of losses, gradients, and weights after 60 steps, over its rounding bound",
    ),
    identity(
        "GT-3.b",
        "The least cross-entropy of a softmax on given features is the same for bins in their order and bins renamed at random.",
        Refits,
        same_minimum,
        "largest relative gap of two convex fits",
        at_most(1e-6),
        unit="relative gap",
    ),
    statistic(
        "GT-3.c",
        "A scalar head with squared error does know the order: renaming the bins multiplies its least error.",
        Refits,
        renamed,
        "least squared error, renamed over ordered bins",
        at_least(5),
        unit="times",
    ),
    identity(
        "GT-4.a",
        r"Sharp labels make a staircase: as $\sigma K\to0$ the Fisher-Rao length tends to $\pi(K-1)$.",
        FisherRao,
        measure.farthest("length / steps_cap", 1.0, "sigma * K <= 0.13"),
        r"length over $\pi(K-1)$ where $\sigma K\le0.13$",
        within(1, 0.01),
        unit="ratio",
    ),
    identity(
        "GT-4.b",
        r"Blurred labels have the geometry of the line: as $\sigma K\to\infty$, $\sigma\to0$, the length tends to $1/\sigma$.",
        FisherRao,
        measure.farthest("length / blur_cap", 1.0, "sigma * K >= 5 and sigma <= 0.02"),
        r"length times $\sigma$ where $\sigma K\ge5$, $\sigma\le0.02$",
        within(1, 0.01),
        unit="ratio",
    ),
    bound(
        "GT-4.c",
        r"For every number of bins and every blur the length is at most $\min(\pi(K-1),1/\sigma)$.",
        FisherRao,
        measure.largest("length / cap"),
        "gt-staircase",
        accept=at_most(1 + 1e-9),
    ),
)
