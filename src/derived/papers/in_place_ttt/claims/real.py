"""IPT-7.g and h, 16.d, 17.d and e: trained models; criteria and expected verdicts were written before the run."""

import pandas as pd

from derived.lab import stats
from derived.lab.claims import at_least, at_most, computed, statistic
from derived.lab.measure import Measure, chosen, largest, lowest

from ..experiments.real import GatedKeys, RawWrites, TrainedKeys

TRAINED = "weights == 'trained'"
FACTS = {"made_of": "real weights", "where": "all-MiniLM-L6-v2, six layers without gates, on pieces of six novels"}
GEMMA = {"made_of": "real weights", "where": "Gemma 3 270M, eighteen layers with gates, quantised, on pieces of novels"}


def over_layers(column: str) -> Measure:
    """The mean of a column over the layers of the trained model, over pieces of text."""

    def measure(rows: pd.DataFrame):
        return stats.mean(chosen(rows, TRAINED).groupby("replicate")[column].mean())

    return measure


def cost(arm: str) -> Measure:
    """Loss with memories at the largest step less that without, text by text, where the interval reaches lowest."""

    def measure(rows: pd.DataFrame):
        level, found = 1 - (1 - stats.LEVEL) / 2, []
        for kind in ("novels", "speeches"):
            some = chosen(rows, f"texts == '{kind}' and arm == '{arm}' and step == step.max()")
            found.append(stats.mean(some["loss"] - some["base"], level))
        return lowest(found)

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
    statistic(
        "IPT-7.h",
        "The keys of different tokens of a text have a mean cosine of 0.05 or more in a trained language model with gates, too.",
        GatedKeys,
        over_layers("cosine"),
        "mean over pairs of different tokens and over layers, over texts",
        at_least(0.05),
        unit="cosine",
        judged_at=("cpu",),
        null=over_layers("centred"),
        **GEMMA,
    ),
    computed(
        "IPT-16.d",
        r"In no down-projection of a trained language model with gates, of $640\times2048$ weights a layer, does a write of Frobenius norm $10^{-5}$ change more than one weight in a thousand in bf16.",
        GatedKeys,
        largest("changed", TRAINED),
        "largest share over the layers, of the weights that are not exactly zero",
        at_most(1e-3),
        unit="share of the weights",
        judged_at=("cpu",),
        null=largest("changed_by_more", TRAINED),
        **GEMMA,
    ),
    computed(
        "IPT-17.d",
        "Memories put into a trained language model at the released start change no logit.",
        RawWrites,
        largest("moved", "arm == 'start'"),
        "largest change of a logit over texts, in float32",
        at_most(1e-6),
        unit="logits",
        source="paper",
        judged_at=("cpu",),
        null=largest("moved", "arm == 'clipped'"),
        made_of="real weights",
        where="Section 3.4; Gemma 3 270M, memories in three layers, on novels and speeches",
        scale={},
    ),
    statistic(
        "IPT-17.e",
        "A memory that no training has prepared harms a trained language model: written into three layers, it costs 0.1 nats or more a token, on novels and on speeches.",
        RawWrites,
        cost("raw"),
        "loss with memories at the released inner step less that without, text by text, the lower of two kinds of text",
        at_least(0.1),
        unit="nats per token",
        judged_at=("cpu",),
        null=cost("clipped"),
        made_of="real weights",
        where="after notes on the code's issues, where a first written state raised a loss from 1.86 to 10.81; Gemma 3 270M",
    ),
)
