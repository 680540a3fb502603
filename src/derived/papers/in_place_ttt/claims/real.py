"""IPT-7.g and 16.c: keys and matrices of a trained model; criteria and expected verdicts were written before the run."""

import pandas as pd

from derived.lab import stats
from derived.lab.claims import at_least, at_most, computed, statistic
from derived.lab.measure import Measure, chosen, largest

from ..experiments.real import TrainedKeys

TRAINED = "weights == 'trained'"
FACTS = {"made_of": "real weights", "where": "all-MiniLM-L6-v2, six layers without gates, on pieces of six novels"}


def over_layers(column: str) -> Measure:
    """The mean of a column over the layers of the trained model, over pieces of text."""

    def measure(rows: pd.DataFrame):
        return stats.mean(chosen(rows, TRAINED).groupby("replicate")[column].mean())

    return measure


CLAIMS = (
    statistic(
        "IPT-7.g",
        "The keys of different tokens of a text have a mean cosine of 0.05 or more in a trained model without gates: they share a direction, which a memory piles up.",
        TrainedKeys,
        over_layers("cosine"),
        "mean over pairs of different tokens and over layers, over texts",
        at_least(0.05),
        unit="cosine",
        null=over_layers("centred"),
        **FACTS,
    ),
    computed(
        "IPT-16.c",
        r"In no down-projection of a trained model of $384\times1536$ weights a layer does a write of Frobenius norm $10^{-5}$ change more than one weight in a thousand in bf16.",
        TrainedKeys,
        largest("changed", TRAINED),
        "largest share over the layers, of the weights that are not exactly zero",
        at_most(1e-3),
        unit="share of the weights",
        null=largest("changed_by_more", TRAINED),
        **FACTS,
    ),
)
