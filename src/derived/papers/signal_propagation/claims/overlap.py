"""The overlap through many blocks of torch networks: SP-10.c."""

import pandas as pd

from derived.lab.claims import Claim
from derived.lab.stats import LEVEL, Estimate, mean

from ..experiments.overlap import DeepOverlap

CPU = {"cpu": "holds"}


def overlap_of_networks(rows: pd.DataFrame) -> Estimate:
    """Mean of rho at the last block of torch networks, less the recurrence's, for the norm where it is farthest off."""
    cases = [case for _, case in rows[rows["b"] == rows["b"].max()].groupby("norm")]
    level = 1 - (1 - LEVEL) / len(cases)
    found = [mean(case["p"] / case["q"] - case["p_theory"] / case["q_theory"], level) for case in cases]
    return max(found, key=lambda one: max(abs(one.low), abs(one.high)))


CLAIMS = (
    Claim(
        id="SP-10.c",
        statement=r"Torch networks of 64 blocks have the overlap $\rho$ of the recurrence, far from 1 with Derf.",
        source="ours",
        where="–",
        paper_value="–",
        kind="statistic",
        criterion=r"mean $\rho$ at block 64 less that of the recurrence, joint 99.9 % intervals within $\pm0.02$",
        experiment=DeepOverlap,
        measure=overlap_of_networks,
        accept=(-0.02, 0.02),
        expected=CPU,
        judged_at=("cpu",),
    ),
)
