"""Random transformers with few tokens: SP-2, SP-3, SP-4 and SP-18."""

import numpy as np
import pandas as pd

from derived.lab.claims import Claim
from derived.lab.stats import LEVEL, Estimate, mean

from ..experiments.networks import Networks
from .measures import end_ratio, gmfe_of

CPU = {"cpu": "holds"}


def network(id: str, statement: str, column: str, limit: float, **facts) -> Claim:
    """The fold error of a measured column against the recurrence, worst of normaliser and number of heads."""
    facts = {"source": "ours", "where": "–", "paper_value": "–"} | facts
    return Claim(
        id=id,
        statement=statement,
        kind="statistic",
        criterion=f"geometric-mean fold error of the mean over initialisations, joint 99.9 % intervals below {limit}",
        experiment=Networks,
        measure=gmfe_of(column, edge="first" if column in "qp" else "last"),
        accept=(float("-inf"), limit),
        expected=CPU,
        judged_at=("cpu",),
        **facts,
    )


def improvement(rows: pd.DataFrame) -> Estimate:
    """|ln error| at block 0 without K over the same with K, errors of the mean, geometric mean over the cases.

    Both errors move with the measured mean, e = ln(J / J_theory): the ratio is |D + e| / |e|, D = ln(J_theory /
    J_without_K) known. For e >= -D it falls with |e|, so an end of e's interval bounds it, joint over the cases; at
    e = -D the theory without K is exact and the ratio 0.
    """
    cases = [case for _, case in rows[rows["b"] == 0].groupby(["norm", "heads"])]
    level, ratios, lowest = 1 - (1 - LEVEL) / len(cases), [], []
    for case in cases:
        one = mean(case["J"] / case["J_theory"], level)
        known = np.log(case["J_theory"].iloc[0] / case["J_without_K"].iloc[0])
        value, *ends = (abs(known + e) / abs(e) for e in np.maximum(np.log([one.value, one.low, one.high]), -known))
        ratios.append(value)
        lowest.append(min(ends))
    value, low = (float(np.prod(each) ** (1 / len(cases))) for each in (ratios, lowest))
    return Estimate(value, len(cases[0]), low, float("inf"))


CLAIMS = (
    network(
        "SP-2.a", r"The recurrence of $q$ describes softmax transformers of finite width.", "q", 1.04, source="repo"
    ),
    network("SP-2.b", r"The recurrence of $p$ does.", "p", 1.06, source="repo"),
    network("SP-3.a", r"The recurrence of $J$ does.", "J", 1.06, source="repo", paper_value="1 to 2 %"),
    network("SP-3.b", r"The recurrence of $K$ does.", "K", 1.15, source="repo"),
    Claim(
        id="SP-4.a",
        statement=r"Without $K$ the amplification $J^{B,0}$ comes out at least 10 % too small at $n=12$, $a=1$.",
        source="ours",
        where="–",
        paper_value="1.5 % → 0.8 % at $n=197$",
        kind="statistic",
        criterion=r"$J^{B,0}$ measured over the value without $K$ above $1/0.9$, for every norm and number of heads",
        experiment=Networks,
        measure=end_ratio("J", "J_without_K", ("norm", "heads")),
        accept=(1 / 0.9, float("inf")),
        expected=CPU,
        judged_at=("cpu",),
    ),
    Claim(
        id="SP-4.b",
        statement=r"The error of $\ln J^{B,0}$ without $K$ is at least four times the error with $K$.",
        source="ours",
        where="–",
        paper_value="1.5 % → 0.8 % at $n=197$",
        kind="statistic",
        criterion="geometric mean over the cases of the ratio of the errors of the mean, 99.9 % interval above 4",
        experiment=Networks,
        measure=improvement,
        accept=(4.0, float("inf")),
        expected=CPU,
        judged_at=("cpu",),
    ),
    network("SP-18", r"A pooled head's gradient is amplified as the recurrence from $(1,1)$ says.", "pooled", 1.09),
)
