"""GT-3, GT-4: labels and their order. Criteria and expected verdicts were written before the run."""

import numpy as np
import pandas as pd

from derived.lab import measure, stats
from derived.lab.claims import Change, at_least, at_most, bound, identity, statistic, within
from derived.lab.stats import Estimate

from ..experiments.labels import FisherRao, Refits, Relabelled
from .measures import ratio


def renamed(rows: pd.DataFrame) -> Estimate:
    """Least squared error with renamed bins over that with ordered ones: geometric mean over replicates."""
    wide = rows.pivot(index="replicate", columns="labelling", values="squared")
    return ratio(stats.mean(np.log(wide["renamed"] / wide["ordered"])))


def limits(rows: pd.DataFrame) -> Estimate:
    """The ratio of a length to its limit that is farthest from 1, of both limits."""
    sharp = measure.farthest("length / steps_cap", 1.0, "sigma * K <= 0.13")(rows)
    blurred = measure.farthest("length / blur_cap", 1.0, "sigma * K >= 5 and sigma <= 0.02")(rows)
    return max((sharp, blurred), key=lambda found: abs(found.value - 1))


CLAIMS = (
    identity(
        "GT-3.a",
        "Renaming the labels, and the rows of the softmax with them, changes no loss, no gradient in the states, and no step of AdamW on the encoder.",
        Relabelled,
        measure.most_of(measure.worst("loss"), measure.worst("gradient"), measure.worst("course")),
        "largest relative gap of losses, gradients, and weights after 60 steps, over its rounding bound",
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
        r"Sharp labels make a staircase and blurred ones the line: the Fisher-Rao length tends to $\pi(K-1)$ as $\sigma K\to0$, and to $1/\sigma$ as $\sigma K\to\infty$ and $\sigma\to0$.",
        FisherRao,
        limits,
        r"length over its limit where $\sigma K\le0.13$, or $\sigma K\ge5$ and $\sigma\le0.02$, the farther from 1",
        within(1, 0.01),
        unit="ratio",
        changed=(
            Change(
                "2026-11-22",
                "The two limits stood in two rows, of the same criteria.",
                "The ledger was to be short; both rows held.",
            ),
        ),
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
