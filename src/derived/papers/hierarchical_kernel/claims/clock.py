"""The ledger of seconds: what a layer with three levels costs on a clock."""

import pandas as pd

from derived.lab.claims import RECORDED, reported
from derived.lab.measure import Measure
from derived.lab.stats import Estimate, mean

from ..experiments.clock import Overhead


def overhead(impl: str, peer: str) -> Measure:
    """Seconds of an implementation over a peer in the same round, mean over rounds, at the longest sequence."""

    def measure(rows: pd.DataFrame) -> Estimate:
        wide = rows[rows["T"] == rows["T"].max()].pivot(index="round", columns="impl", values="seconds")
        return mean(wide[impl] / wide[peer])

    return measure


CLAIMS = (
    reported(
        "HKT-E4.c",
        "The layer with coarse tables of three levels takes this many times the seconds of torch's fused kernel for standard"
        " attention, at the longest sequence.",
        Overhead,
        overhead("tables", "sdpa"),
        "ratio",
        where="the attention alone: queries, keys and values are given, projections and downsampling left out; how much of it "
        "is the hierarchy, and how much that the kernel is fused, we cannot say",
        judged_at=RECORDED,
        scale={"gpu": "ours"},
    ),
)
