"""Random transformers with few tokens against the recurrences: SP-2, SP-3, SP-4 and SP-18."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from derived.lab import stats
from derived.lab.claims import Claim, at_least, at_most, statistic
from derived.lab.measure import highest, jointly, lowest, mean
from derived.lab.stats import Estimate

from ..experiments.networks import Networks
from .measures import fold_error

CASES = ("norm", "heads")
RECORDED = {"judged_at": ("cpu",)}


def described(id: str, statement: str, column: str, limit: float, control: str, **fields) -> Claim:
    """The fold error of a measured column against the recurrence, worst of normaliser and number of heads; ``control`` is
    the column that takes the recurrence's place in the control."""
    measure = jointly(fold_error(column, trivial="first" if column in "qp" else "last"), CASES, highest)

    def wrong(rows: pd.DataFrame) -> Estimate:
        return measure(rows.assign(**{f"{column}_theory": rows[control]}))

    return statistic(
        id,
        statement,
        Networks,
        measure,
        "geometric-mean fold error over blocks of the mean over initialisations, the worst norm and number of heads, "
        "jointly over these",
        at_most(limit),
        unit="fold error",
        control=wrong,
        **RECORDED | fields,
    )


def ratio_of_errors(case: pd.DataFrame, level: float) -> Estimate:
    """|ln error| without K over the same with K, errors of the mean over the rows of one case.

    Both errors move with the measured mean, e = ln(J / J_theory): the ratio is |D + e| / |e|, D = ln(J_theory /
    J_without_K) known. For e >= -D it falls with |e|, so an end of e's interval bounds it; at e = -D the theory
    without K is exact and the ratio 0.
    """
    one = stats.mean(case["J"] / case["J_theory"], level)
    D = np.log(case["J_theory"].iloc[0] / case["J_without_K"].iloc[0])
    value, *ends = (abs(D + e) / abs(e) for e in np.maximum(np.log([one.value, one.low, one.high]), -D))
    return Estimate(value, one.n, min(ends), max(ends) if one.low > 1 or one.high < 1 else math.inf)


def geometric_mean(cases: Sequence[Estimate]) -> Estimate:
    """The geometric mean of estimates and of their ends."""
    value, low, high = (
        float(np.prod([getattr(one, end) for one in cases]) ** (1 / len(cases))) for end in ("value", "low", "high")
    )
    return Estimate(value, cases[0].n, low, high)


CLAIMS = (
    described(
        "SP-2.a",
        "The recurrence of $q$ describes softmax transformers of finite width.",
        "q",
        1.04,
        control="q_apart",
        source="repo",
        where="code",
    ),
    described(
        "SP-2.b",
        "The recurrence of $p$ describes softmax transformers of finite width.",
        "p",
        1.06,
        control="p_apart",
        source="repo",
        where="code",
    ),
    described(
        "SP-3.a",
        "The recurrence of $J$ describes softmax transformers of finite width.",
        "J",
        1.03,
        control="J_without_K",
        source="repo",
        where="code",
        paper_value="1 to 2 %",
    ),
    described(
        "SP-3.b",
        "The recurrence of $K$ describes softmax transformers of finite width.",
        "K",
        1.15,
        control="K_apart",
        source="repo",
        where="code",
    ),
    statistic(
        "SP-4.a",
        r"Without $K$ the recurrence gives an amplification $J^{B,0}$ at least 10 % too small at $n=12$, $a=1$.",
        Networks,
        mean("J / J_without_K", "b == 0", by=CASES, decides=lowest),
        r"$J^{B,0}$ measured over the value without $K$, the lowest norm and number of heads, jointly over these",
        at_least(1 / 0.9, "1/0.9"),
        unit="ratio to the recurrence without K",
        control=mean("J / J_theory", "b == 0", by=CASES, decides=lowest),
        paper_value="1.5 % → 0.8 % at $n=197$",
        **RECORDED,
    ),
    statistic(
        "SP-4.b",
        r"The error of $\ln J^{B,0}$ from the recurrence without $K$ is at least four times the error with $K$.",
        Networks,
        jointly(ratio_of_errors, CASES, geometric_mean, "b == 0"),
        "geometric mean over norms and numbers of heads of the ratio of the errors of the mean, jointly over these",
        at_least(4.0),
        unit="ratio of errors",
        control=lambda rows: jointly(ratio_of_errors, CASES, geometric_mean, "b == 0")(
            rows.assign(J_without_K=rows["J_theory"], J_theory=rows["J_without_K"])
        ),
        paper_value="1.5 % → 0.8 % at $n=197$",
        where="no upper end: the error with $K$ is not told from zero",
        **RECORDED,
    ),
    described(
        "SP-18",
        "The gradient of a head that pools all tokens is amplified as the recurrence from $(1,1)$ says.",
        "pooled",
        1.09,
        control="pooled_as_independent",
    ),
)
