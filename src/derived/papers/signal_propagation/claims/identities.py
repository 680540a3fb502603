"""What holds to rounding: SP-1 and SP-5."""

import pandas as pd

from derived.lab.claims import Claim
from derived.lab.stats import Estimate, worst

from ..experiments.identities import ClosedForms, Ends

CI = {"ci": "holds"}


def gap(rows: pd.DataFrame) -> Estimate:
    return worst(rows["gap"], rows["bound"])


CLAIMS = (
    Claim(
        id="SP-1",
        statement=r"The closed forms of $\tilde q,\tilde p,\hat q,\hat p$ for erf, and of $\kappa,\kappa'$ for ReLU.",
        source="repo",
        where="code",
        paper_value="equality",
        kind="identity",
        criterion="gap to a quadrature at most $10^{-5}$",
        experiment=ClosedForms,
        measure=gap,
        expected=CI,
    ),
    Claim(
        id="SP-5",
        statement=r"$J^{B,0}$ is the same from the backward and from the forward recurrence.",
        source="ours",
        where="–",
        paper_value="–",
        kind="identity",
        criterion="relative gap at most $10^{-12}$ over 64 blocks",
        experiment=Ends,
        measure=gap,
        expected=CI,
    ),
)
