"""The ledger of ListOps without a network: shallow rules reach what models reach."""

import pandas as pd

from derived.lab.claims import at_least, between, statistic
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
        null=accuracy("LRA", "majority"),  # reads nothing
    ),
    statistic(
        "HKT-9.d",
        "On ListOps at the lengths of the paper evaluating the root's list alone beats the paper's HKT, 55.10 %.",
        Rules,
        accuracy("T = 512", "depth 1"),
        "accuracy with our generator",
        at_least(0.5510),
        unit="share",
        where="abstract; the paper's generator is unknown",
        paper_value="55.10 %",
        judged_at=("cpu",),
        null=accuracy("T = 512", "root"),  # evaluates nothing
    ),
)
