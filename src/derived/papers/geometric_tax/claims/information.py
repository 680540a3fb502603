"""GT-14, GT-11: mutual information by a critic. Criteria and expected verdicts were written before the run."""

import pandas as pd

from derived.lab import measure, stats
from derived.lab.claims import at_least, at_most, fails, holds, statistic, unseen
from derived.lab.measure import highest, lowest
from derived.lab.stats import Estimate

from ..experiments.information import Mine, Regimes

BOTH = holds("ci", "cpu")


def shape(rows: pd.DataFrame) -> Estimate:
    """In-sample value of noise less that of a circle, both independent of the descriptors, by replicate."""
    wide = rows.pivot(index="replicate", columns="case", values="in_sample")
    return stats.mean(wide["isotropic"] - wide["curve"])


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
        expected=fails("ci", "cpu"),
    ),
    statistic(
        "GT-14.c",
        "On pairs that the critic never saw its value on independent data is at most 0.05 nats.",
        Mine,
        measure.mean("held_out", "case != 'dependent'", by=["case"], decides=highest),
        "mean held-out value, the higher of two kinds of independent embeddings",
        at_most(0.05),
        unit="nats",
        amends="GT-14.b",
        expected=BOTH,
    ),
    statistic(
        "GT-14.d",
        'Below "the floor of noise" is a matter of shape: a smooth embedding that knows nothing has a lower in-sample value than noise that knows nothing.',
        Mine,
        shape,
        "in-sample value of isotropic noise less that of a circle in 50 dimensions",
        at_least(0.3),
        unit="nats",
        expected=BOTH,
    ),
    unseen(
        "GT-11.a",
        "None of 14 biological foundation models has low distortion, high information and global coherence at once; their failures fall in three regimes.",
        "the weights of the 14 models are out of reach; GT-11.b makes the regimes on purpose, from embeddings whose content is known",
        source="paper",
        where="abstract",
        paper_value="14 models, 3 regimes",
        plain="No biological foundation model has all three virtues at once; failures fall in three regimes.",
        unit="models",
    ),
    statistic(
        "GT-11.b",
        "Held-out values tell embeddings that know the descriptors from those that do not, in each of the three regimes made on purpose.",
        Regimes,
        measure.mean("held_out * (2 * knows - 1)", by=["what"], decides=lowest),
        "mean held-out value, its sign turned where nothing is known, the lowest of five embeddings",
        at_least(0),
        unit="nats",
        expected={"ci": "undecided", "cpu": "holds"},
    ),
)
