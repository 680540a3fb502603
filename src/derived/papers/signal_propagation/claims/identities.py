"""What holds to rounding: closed forms and quadratures (SP-1), the two ends of the recurrence (SP-5)."""

from derived.lab import measure
from derived.lab.claims import at_most, identity

from ..experiments.identities import ClosedForms, Ends

CLAIMS = (
    identity(
        "SP-1",
        r"The closed forms of $\tilde q,\tilde p,\hat q,\hat p$ for erf, and of $\kappa,\kappa'$ for ReLU, equal the "
        r"Gaussian moments that they stand for.",
        ClosedForms,
        measure.worst(),
        f"gap to a quadrature {at_most(ClosedForms.tolerance).words}; largest gap over that",
        source="repo",
        where="code",
        paper_value="equality",
    ),
    identity(
        "SP-5",
        r"$J^{B,0}$ is the same from the backward and from the forward recurrence.",
        Ends,
        measure.worst(),
        f"relative gap {at_most(Ends.tolerance).words} over {Ends.depth} blocks; largest gap over that",
    ),
)
