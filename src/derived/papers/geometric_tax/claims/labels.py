"""GT-3, GT-4: labels and their order. Criteria and expected verdicts were written before the run."""

from dataclasses import replace

import numpy as np
import pandas as pd

from derived.lab import measure
from derived.lab.claims import identity
from derived.lab.stats import Estimate

from ..experiments.labels import FisherRao, Relabelled


def limits(rows: pd.DataFrame) -> Estimate:
    """How far the ratio of a length to its limit is from 1, in hundredths, of both limits the larger."""
    sharp = measure.farthest("length / steps_cap", 1.0, "sigma * K <= 0.13")(rows)
    blurred = measure.farthest("length / blur_cap", 1.0, "sigma * K >= 5 and sigma <= 0.02")(rows)
    each = [replace(found, value=abs(found.value - 1) / 0.01) for found in (sharp, blurred)]
    return max(each, key=lambda found: np.nan_to_num(found.value, nan=np.inf))  # a NaN is shown, never passed over


CLAIMS = (
    identity(
        "GT-3.a",
        "Renaming the labels, and the rows of the softmax with them, changes no loss, no gradient in the states, and no step of AdamW on the encoder.",
        Relabelled,
        measure.most_of(measure.worst("loss"), measure.worst("gradient"), measure.worst("course")),
        "largest relative gap of losses, gradients, and weights after 60 steps, over its rounding bound",
    ),
    identity(
        "GT-4.a",
        r"Sharp labels make a staircase and blurred ones the line: the Fisher-Rao length is never above $\min(\pi(K-1),1/\sigma)$, and tends to $\pi(K-1)$ as $\sigma K\to0$ and to $1/\sigma$ as $\sigma K\to\infty$ and $\sigma\to0$.",
        FisherRao,
        measure.most_of(measure.largest("(length / cap - 1) / 1e-9"), limits),
        r"largest gap over what is allowed: $10^{-9}$ above the smaller cap, and 1 % from the limit where $\sigma K\le0.13$, or $\sigma K\ge5$ and $\sigma\le0.02$",
        unit="of what is allowed",
    ),
)
