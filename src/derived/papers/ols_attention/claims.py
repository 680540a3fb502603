"""The chapter's ledger: every claim with its evidence, criterion and expected verdicts, written before the run."""

from derived.lab.claims import Claim
from derived.lab.stats import worst

from .experiments import Identities

CLAIMS = (
    Claim(
        id="OLS-1",
        statement=r"With $W_Q=W_K=W_V=L$, $W_{FFN}=I$, $W_p=P$ the forward pass gives the least-squares fit "
        r"$\hat Y=X(X^\top X)^{-1}X^\top Y$ exactly.",
        source="paper",
        where="abstract; construction as retold",
        paper_value="equality",
        kind="identity",
        criterion=r"$\|\text{layer}-\hat Y\|_F\le$ rounding bound",
        experiment=Identities,
        measure=lambda rows: worst(rows["gap_fit"], rows["bound"]),
        expected={"ci": "holds"},
    ),
    Claim(
        id="OLS-2",
        statement=r"The attention matrix is the hat matrix $H$: a projector of trace $p$.",
        source="ours",
        where="5.4",
        paper_value="–",
        kind="identity",
        criterion=r"$\|A-H\|_F\le$ rounding bound",
        experiment=Identities,
        measure=lambda rows: worst(rows["gap_hat"], rows["bound"]),
        expected={"ci": "holds"},
    ),
    Claim(
        id="OLS-3",
        statement=r"In sample the attention is inert: $A\,XL=XL$.",
        source="ours",
        where="5.3",
        paper_value="–",
        kind="identity",
        criterion=r"$\|A\,XL-XL\|_F\le$ rounding bound",
        experiment=Identities,
        measure=lambda rows: worst(rows["gap_inert"], rows["bound"]),
        expected={"ci": "holds"},
    ),
)
