"""GT-14, GT-11: mutual information by a critic. Criteria and expected verdicts were written before the run."""

import numpy as np
import pandas as pd

from derived.lab import measure, stats
from derived.lab.claims import at_least, at_most, statistic, unseen
from derived.lab.measure import lowest
from derived.lab.stats import Estimate

from ..experiments.information import Mine


def shape(rows: pd.DataFrame, of: str = "in_sample") -> Estimate:
    """In-sample value of noise less that of a circle, both independent of the descriptors, by replicate."""
    wide = rows.pivot(index="replicate", columns="case", values=of)
    return stats.mean(wide["isotropic"] - wide["curve"])


def margin(rows: pd.DataFrame) -> Estimate:
    """How far a mean held-out value is below 0.05, where nothing is to be known, or above 0.5: the least margin."""
    sign = np.where(rows["case"] == "dependent", 1.0, -1.0)
    right = sign * (rows["held_out"] - np.where(rows["case"] == "dependent", 0.5, 0.05))
    return measure.mean("right", by=["case"], decides=lowest)(rows.assign(right=right))


CLAIMS = (
    statistic(
        "GT-14.b",
        "What MINE reports on the batches that it was fitted to is a lower bound of the information: on independent data at most 0.05 nats.",
        Mine,
        measure.mean("in_sample", "case == 'isotropic'"),
        "mean in-sample value on independent data",
        at_most(0.05),
        unit="nats",
        source="repo",
        where="notebooks of section 4: mean over the last tenth of the training batches",
        control="The claim itself fails; on pairs that the critic never saw, GT-14.c, it would hold.",
    ),
    statistic(
        "GT-14.c",
        "On pairs that the critic never saw its value is at most 0.05 nats for independent data, and at least 0.5 for dependent data.",
        Mine,
        margin,
        "how far the mean held-out value is on the right side of 0.05, or of 0.5, the nearest of three cases",
        at_least(0),
        unit="nats",
        amends="GT-14.b",
        control=lambda rows: margin(rows.assign(held_out=rows["in_sample"])),
    ),
    statistic(
        "GT-14.d",
        'Below "the floor of noise" is a matter of shape: an embedding of few directions that knows nothing has a lower in-sample value than noise in fifty directions.',
        Mine,
        shape,
        "in-sample value of isotropic noise less that of a circle in 50 coordinates",
        at_least(0.3),
        unit="nats",
        control=lambda rows: shape(rows, "held_out"),
    ),
    unseen(
        "GT-11.a",
        "None of 14 biological foundation models has low distortion, high information and global coherence at once; their failures fall in three regimes.",
        "no package ships the 14 models; the page makes the regimes on purpose, from embeddings whose content is known",
        source="paper",
        where="abstract",
        paper_value="14 models, 3 regimes",
        plain="No biological foundation model has all three virtues at once; failures fall in three regimes.",
        unit="models",
    ),
)
