"""The ledger of ListOps without a network: shallow rules reach what models reach."""

import pandas as pd

from derived.lab.claims import between, reported, statistic
from derived.lab.measure import Measure
from derived.lab.stats import Estimate, proportion

from ..experiments.listops import Rules


def accuracy(lengths: str, rule: str) -> Measure:
    """The accuracy of a shallow rule on a range of lengths."""

    def measure(rows: pd.DataFrame) -> Estimate:
        row = rows[(rows["range"] == lengths) & (rows["rule"] == rule)].iloc[0]
        return proportion(int(row["right"]), int(row["trees"]))

    return measure


CLAIMS = (
    statistic(
        "HKT-9.b",
        "One token, the root's operator, gives the accuracy of the best six models of the LRA table, to two points.",
        Rules,
        accuracy("LRA", "root"),
        r"accuracy, within 2 points of each of 35.63 to 37.27 %",
        between(0.3527, 0.3763),
        unit="share",
        where="their accuracies are from LRA's table (Transformer, Reformer, Synthesizer, BigBird, Linformer, Longformer);"
        " ours is on trees that we drew anew by LRA's published rules, not on its test file",
        paper_value="35.63 to 37.27 %",
        judged_at=("cpu",),
        control=accuracy("LRA", "majority"),  # reads nothing
    ),
    reported(
        "HKT-9.d",
        "On nested lists of 512 symbols by our generator, evaluating the root's list alone is right in this share of lists.",
        Rules,
        accuracy("T = 512", "depth 1"),
        "share",
        where="no number of the paper is compared, since its lists are unknown",
        judged_at=("cpu",),
    ),
)
