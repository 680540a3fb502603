"""The ledger of queries on which the layer was not made: fresh batches and shifted inputs (OLS-7, OLS-8).

error  distance from the least-squares prediction, relative (in OLS-7 squared)
"""

import numpy as np

from derived.lab import measure
from derived.lab.claims import at_least, statistic, within
from derived.lab.measure import farthest_from

from ..experiments.held_out import BatchError, Shift

DOUBLED = "shift == 'scale' and method == 'self' and (amount == 1 or amount == 2)"

CLAIMS = (
    statistic(
        "OLS-7",
        r"On $\tilde n$ fresh tokens of a Gaussian training law $N(0,\Sigma)$ the relative squared error of self-attention "
        r"with the weights of that law is $\frac{p+1}{\tilde n}+\frac{p^2+3p+4}{\tilde n^2}$ on average.",
        BatchError,
        measure.mean("error / predicted", by=["p", "num_tokens"], decides=farthest_from(1.0)),
        "measured over exact at every size, jointly",
        within(1, 0.05),
        control=measure.mean("1 / predicted", by=["p", "num_tokens"], decides=farthest_from(1.0)),  # a layer of zeros
        unit="of the exact mean",
    ),
    statistic(
        "OLS-8.a",
        "The prediction of the trained layer is very sensitive to a shift of the inference inputs: in batches of 2,000 "
        "tokens of four features, doubling them makes its relative error at least ten times as large.",
        Shift,
        measure.slope("error", "amount", DOUBLED, y=np.log10),
        r"$\log_{10}$ of the relative distance from the least-squares prediction at $c=2$ over that at $c=1$",
        at_least(1.0),
        control=measure.slope("error", "amount", DOUBLED.replace("self", "cross"), y=np.log10),  # it keeps its context
        source="digest",
        where="limitations, as retold; by OLS-6.a the error is near $|2^2-1|=3$, so that this row only puts a number to it; by OLS-7 the error at c = 1 falls with the size of a batch, so that short batches give a smaller factor",
        paper_value="“highly sensitive”",
        plain="The trained layer is very sensitive to inputs that differ from those of its training.",
        unit="powers of ten",
    ),
)
