"""IPT-7 and 8.a: the theorem on targets, what its assumption asks of keys, and where a pair is lost.

Criteria and expected verdicts were written before the run, unless a claim says otherwise.
"""

import math

import pandas as pd

from derived.lab import measure
from derived.lab.claims import bound, statistic, within
from derived.lab.measure import farthest_from

from ..experiments.theorem import Edges, Keys, Logits

NEXT, COPY = "target == 'next'", "target == 'reconstruction'"
A2 = "if unrelated keys are independent and centred"
OVER_MEAN = "promised over mean, the mean over both signs of all unrelated keys, less rounding"


def promised(rows: pd.DataFrame) -> pd.Series:
    """The promised gain over the expectation: at most 1."""
    return (rows["gain"] - rows["bound"]) / rows["mean"]


def reached(rows: pd.DataFrame) -> pd.Series:
    """The expectation's size over the promised reach: at most 1."""
    return (rows["mean"].abs() - rows["bound"]) / rows["reach"]


def off(rows: pd.DataFrame) -> pd.Series:
    """The mean cosine of unrelated keys less what the proposition says: 0 if gated, 1/pi of a plain layer."""
    return rows["cosine"] - rows["mlp"].map({"gated": 0.0, "plain": 1 / math.pi})


CLAIMS = (
    bound(
        "IPT-7.a",
        rf"With the next token as target the expected logit of the right answer rises by at least $\eta\,c_{{\rm norm}}^2c_{{\rm align}}$, {A2}.",
        Logits,
        measure.largest(promised, f"{NEXT} and token == 'v'"),
        "ipt-logits",
        OVER_MEAN,
        plain="If the keys of other tokens are independent and centred, writing the next token raises the right logit.",
        source="paper",
        where="Theorem 1",
    ),
    bound(
        "IPT-7.b",
        rf"With the next token as target every other expected logit, and with reconstruction that of the right answer, moves by at most $\eta\,\epsilon\,c_{{\rm align}}$, {A2}.",
        Logits,
        measure.largest(reached, f"({NEXT} and token != 'v') or ({COPY} and token == 'v')"),
        "ipt-logits",
        source="paper",
        where="Theorem 1",
    ),
    bound(
        "IPT-8.a",
        rf"With reconstruction the expected logit of the token that asks rises by at least $\eta\,c_{{\rm norm}}^2c_{{\rm align}}$, {A2}.",
        Logits,
        measure.largest(promised, f"{COPY} and token == 'k'"),
        "ipt-margin",
        OVER_MEAN,
    ),
    statistic(
        "IPT-7.e",
        r"At random weights the keys of a gated MLP for orthogonal inputs have the mean cosine zero, and those of a plain ReLU layer $1/\pi$.",
        Keys,
        measure.mean(off, by=["mlp", "N"], decides=farthest_from(0)),
        r"mean cosine of unrelated keys, less $1/\pi$ for the plain layer; two layers and three lengths of text judged together",
        within(0, 0.02),
        unit="cosine",
    ),
    statistic(
        "IPT-7.g",
        "The bias that unrelated tokens leave on all logits grows in proportion to their number if keys have a mean, as those of a plain ReLU layer.",
        Keys,
        measure.power("bias", "N", "mlp == 'plain'"),
        "exponent of the bias in the number of tokens",
        within(1, 0.1),
        unit="exponent",
    ),
    statistic(
        "IPT-7.h",
        "A pair across the edge of a chunk, or in the chunk that asks, leaves the right logit where it is.",
        Edges,
        measure.mean("delta", "place != 'inside'", by=["place"], decides=farthest_from(0)),
        "mean change of the right logit, the farther of the two places",
        within(0, 0.1),
        unit="of a stored pair's",
    ),
)
