"""The ledger of the layer at the data it was made from: least squares in one pass, any rank, ridge (OLS-1 to 6, 11).

gap     relative Frobenius distance of two computations of one thing, from different algorithms
missed  relative distance from the fit that a tempting reading promises
"""

from derived.lab import measure
from derived.lab.claims import at_most, identity, refuted

from ..experiments.layer import Degenerate, Identities

DOUBLE = "precision == 'float64'"
BOUND = r"its rounding bound $24\max(n,p)\,r\,\kappa\,\epsilon$"
MISSED = at_most(0.01)


def gap(*columns: str, bound: str = "bound", where: str = DOUBLE) -> measure.Measure:
    """The worst ratio of the gaps to their bound, over all instances."""
    return measure.most_of(*(measure.worst(column, bound, where) for column in columns))


CLAIMS = (
    identity(
        "OLS-1.a",
        r"With $W_Q=W_K=W_V=L$, $W_{FFN}=I$ and $W_p=P$ one linear-attention layer outputs the least-squares fit "
        r"$X(X^\top X)^{-1}X^\top Y$.",
        Identities,
        gap("gap_fit"),
        rf"$\|\text{{layer}}-\hat Y\|_F/\|Y\|_F$ over {BOUND}",
        source="paper",
        where="abstract; the weights as retold",
        paper_value="equality",
        plain="One layer of linear attention, with the right weights, gives exactly the least-squares fit.",
    ),
    identity(
        "OLS-1.b",
        "In single precision, too, the layer outputs the least-squares fit.",
        Identities,
        gap("gap_fit", where="precision == 'float32'"),
        rf"$\|\text{{layer}}-\hat Y\|_F/\|Y\|_F$ over {BOUND} with $\epsilon=2^{{-23}}$",
    ),
    identity(
        "OLS-2",
        r"At the least-squares weights the attention matrix is the hat matrix, $A=H$, so that $A^2=A$ and "
        r"$\operatorname{tr}A=p$.",
        Identities,
        gap("gap_hat", "gap_projector", "gap_trace"),
        f"the largest of the three gaps over {BOUND}",
    ),
    identity(
        "OLS-3.a",
        r"On its own training tokens the attention of the least-squares layer is inert: $A\,XL=XL$.",
        Identities,
        gap("gap_inert"),
        rf"$\|A\,XL-XL\|_F/\|XL\|_F$ over {BOUND}",
    ),
    identity(
        "OLS-3.b",
        r"For every matrix $L$, with the read-out $P=\frac1nL^\top X^\top Y$, the layer outputs $H_L^2Y$, where "
        r"$H_L=\frac1nXLL^\top X^\top$.",
        Identities,
        gap("gap_master", bound="bound_master"),
        "largest gap at a random $L$ over its rounding bound",
    ),
    identity(
        "OLS-4.a",
        r"For $X$ of any rank the layer outputs $XX^+Y$, and $LP=X^+Y$ is the least-squares solution of least norm.",
        Degenerate,
        measure.most_of(measure.worst("gap_fit"), measure.worst("gap_coefficients", "bound_coefficients")),
        "the larger of the two gaps to LAPACK's minimum-norm solution over its rounding bound",
        where="the paper assumes full column rank (as retold)",
        paper_value="full rank assumed",
    ),
    identity(
        "OLS-4.b",
        r"Where $p\ge n=\operatorname{rank}X$ the layer interpolates: it outputs $Y$ itself.",
        Degenerate,
        measure.worst("gap_interpolation", where="rank == n"),
        rf"$\|\text{{layer}}-Y\|_F/\|Y\|_F$ over {BOUND}",
    ),
    refuted(
        "OLS-5.a",
        r"Regularising the whitening map alone, $L_\lambda=V(\Lambda+\lambda I)^{-1/2}$, makes the layer ridge "
        "regression.",
        Identities,
        measure.largest("ridge_missed", DOUBLE),
        r"a relative distance from the ridge fit $H_\lambda Y$",
        MISSED,
        where="a tempting step",
        unit="of the fit",
    ),
    identity(
        "OLS-5.b",
        r"With $L_\lambda$ in query and key and $L_0$ in value and read-out the layer outputs $H_\lambda Y$, ridge once; "
        r"with $L_\lambda$ everywhere it outputs $H_\lambda^2Y$, ridge twice.",
        Identities,
        gap("gap_repaired", "gap_twice"),
        f"the larger of the two gaps over {BOUND}",
        amends="OLS-5.a",
    ),
    identity(
        "OLS-6.a",
        r"On a new batch $\tilde X$ of second moment $\tilde\Sigma$ self-attention with frozen weights predicts "
        r"$\tilde X\Sigma^{-1}\tilde\Sigma\hat B$.",
        Identities,
        gap("gap_self", bound="bound_self"),
    ),
    identity(
        "OLS-6.b",
        r"With the training tokens as context the layer gives every query the least-squares prediction $\tilde X\hat B$.",
        Identities,
        gap("gap_cross", bound="bound_cross"),
    ),
    identity(
        "OLS-6.c",
        r"With labels as values linear attention is the least-squares prediction, "
        r"$\frac1n(\tilde XL)(XL)^\top Y=\tilde X\hat B$.",
        Identities,
        gap("gap_labels", bound="bound_cross"),
    ),
    refuted(
        "OLS-11.a",
        "One fixed set of weights solves least squares for every data set, in one pass.",
        Identities,
        measure.largest("doubled_missed", DOUBLE),
        r"a layer of $(X,Y)$ that, fed with $2X$, has a relative distance from the fit of $(2X,Y)$",
        MISSED,
        where="a misreading to prevent",
        unit="of the fit",
    ),
    identity(
        "OLS-11.b",
        r"Fixed weights are homogeneous of degree 3, $f_W(cX)=c^3f_W(X)$, and least-squares fits of degree 0, so that "
        "the weights are made for one data set.",
        Identities,
        gap("gap_cube"),
        f"the gap at $c=3$ over {BOUND}",
        amends="OLS-11.a",
    ),
)
