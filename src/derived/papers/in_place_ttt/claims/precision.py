"""IPT-16: what the clip that is printed with the paper's Table 1 leaves of a write.

Criteria and expected verdicts were written before the run, unless a claim says otherwise. The size of the weights, 0.02, is our assumption.
"""

import numpy as np
import pandas as pd

from derived.lab import measure
from derived.lab.claims import at_most, on_page, statistic
from derived.lab.measure import Measure
from derived.lab.stats import Estimate

from ..experiments.precision import Clip

MATRIX = r"a matrix of $2560\times9728$ weights of size $0.02$"


def of_limit(tau: str) -> Measure:
    """The mean share of the weights that one write of this norm changed in bf16, or the largest after all writes, each
    over its limit; the one that reaches higher."""
    where = f"tau == {tau} and dtype == 'bfloat16'"

    def measured(rows: pd.DataFrame) -> Estimate:
        one, all_of_them = measure.mean("changed / 1e-4", where)(rows), measure.largest("after / 1e-2", where)(rows)
        reach = {one: one.high, all_of_them: np.nan_to_num(all_of_them.value, nan=np.inf)}  # a NaN is never passed over
        return max(reach, key=reach.get)

    return measured


CLAIMS = (
    statistic(
        "IPT-16.a",
        rf"One write with independent Gaussian entries and Frobenius norm $10^{{-5}}$ to {MATRIX} in bf16 changes at most one weight in ten thousand, and thirty-two change at most one in a hundred.",
        Clip,
        of_limit("1e-5"),
        "share of the weights that changed over its limit, the mean after one write or the largest after thirty-two",
        at_most(1),
        unit="of its limit",
        where="the clip: the paper's setting for Table 1",
        control=of_limit("1e-1"),
    ),
    on_page("IPT-16.b"),
)
