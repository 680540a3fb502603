"""The ledger of the scores as a kernel: when they are positive semidefinite, and their two parts."""

import pandas as pd

from derived.lab.claims import at_most, bound, exactly, identity, refuted, statistic, unseen
from derived.lab.measure import Measure, largest, smallest, worst
from derived.lab.stats import Estimate, proportion

from ..experiments.kernel import Forms, RandomHeads, Splits


def psd_share(d: int) -> Measure:
    """The share of random heads with d_k = d whose form is positive semidefinite."""

    def measure(rows: pd.DataFrame) -> Estimate:
        row = rows[rows["d"] == d].iloc[0]
        return proportion(int(row["successes"]), int(row["trials"]))

    return measure


def hidden_difference(rows: pd.DataFrame) -> Estimate:
    """The least difference in S_a of two tables with one attention; minus the attentions' largest gap, if that is not 0."""
    split, output = (rows.loc[rows["check"] == name, "gap"] for name in ("split", "output"))
    return Estimate(float(-output.max() if (output > 0).any() else split.min()), len(split))


PSD = (
    bound(
        "HKT-4.a",
        r"If $\operatorname{sym}(M_l)\succeq0$ for all $l$, then $\operatorname{sym}(S)\succeq0$.",
        Forms,
        worst(where="check == 'psd'"),
        "hkt-psd",
        "how far the least eigenvalue is below $0$, over its rounding bound",
    ),
    bound(
        "HKT-4.b",
        r"If $\operatorname{sym}(M_l)\succeq0$ for all $l$, then $\big(e^{\operatorname{sym}(S)_{ij}}\big)\succeq0$.",
        Forms,
        worst(where="check == 'exponential'"),
        "hkt-psd",
        "how far the least eigenvalue is below $0$, over its rounding bound",
    ),
    identity(
        "HKT-4.c",
        r"A head with $2d_k\le d$ in general position has $d_k$ positive and $d_k$ negative eigenvalues.",
        Forms,
        largest("gap", "check == 'inertia'"),
        "most eigenvalues that a random head has otherwise",
        exactly(0),
        unit="eigenvalues",
    ),
    statistic(
        "HKT-4.d",
        r"With $d_k=d=4$ a random head has $\operatorname{sym}(M)\succeq0$ with probability below $10^{-3}$.",
        RandomHeads,
        psd_share(4),
        "share of random heads",
        at_most(1e-3),
        unit="share",
    ),
    identity(
        "HKT-4.e",
        r"$\operatorname{sym}(W_QW_K^\top)\succeq0$ iff $W_K=W_QR$ with $R+R^\top\succeq0$.",
        Forms,
        largest("gap", "check == 'tied'"),
        "wrong answers among three kinds of instances: tied psd, tied indefinite, one column outside the span",
        exactly(0),
        unit="wrong answers",
    ),
    refuted(
        "HKT-4.f",
        r"For $\operatorname{sym}(S)\succeq0$ it is enough that the mixture"
        r" $\sum_l\alpha_l\operatorname{sym}(M_l)$ is psd.",
        Forms,
        smallest("gap", "check == 'mixture'"),
        r"a witness with $-z^\top Sz$",
        at_most(0),
        unit=r"$-z^\top Sz$",
        where="a tempting reading",
    ),
    identity(
        "HKT-4.g",
        r"For $\operatorname{sym}(S)\succeq0$ every level counts: by some tokens a negative direction $u$ of"
        r" $\operatorname{sym}(M_m)$ becomes $S_{ii}=\alpha_mu^\top M_mu$.",
        Forms,
        worst(where="check in ('necessity', 'sign')", unit=("instance",)),
        "largest gap over its derived rounding bound, and every such score negative",
        amends="HKT-4.f",
    ),
    unseen(
        "HKT-4.h",
        "The hierarchical scores are a psd kernel under the paper's condition on the symmetrised bilinear forms.",
        "only the abstract was visible; HKT-4.a is a condition of this form for our construction",
        source="paper",
        where="abstract (Prop. 3.1)",
        paper_value="not visible",
    ),
)

PARTS = (
    identity(
        "HKT-5.a",
        r"The scores are $S=S_s+S_a$ with a symmetric and an antisymmetric part in exactly one way.",
        Splits,
        worst(where="check in ('sum', 'unique')", unit=("instance",)),
        r"the $T^2$ equations for both parts have one solution, largest gap to $S_s$ and $S_a$ over its rounding",
        source="paper",
        where="abstract (Props 3.5, 3.6)",
        paper_value="equality",
    ),
    identity(
        "HKT-5.b",
        r"Without a mask $\ln\frac{A_{ij}}{A_{ji}}=2(S_a)_{ij}-(z_i-z_j)$ and"
        r" $\ln A_{ij}A_{ji}=2(S_s)_{ij}-(z_i+z_j)$, where $z_i=\ln\sum_je^{S_{ij}}$.",
        Splits,
        worst(where="check in ('ratio', 'product')", unit=("instance",)),
    ),
    refuted(
        "HKT-5.c",
        "One causal output determines the split of its table.",
        Splits,
        hidden_difference,
        "two tables with exactly the same attention at every instance, whose $S_a$ have a difference",
        at_most(0.1),
        unit="largest entry of the difference",
        where="a reading of Props 3.5, 3.6 for causal layers",
    ),
    identity(
        "HKT-5.d",
        r"What one causal output determines of its table is $S_{ij}-S_{ii}$ for $j\le i$, if the rows of $V$ are affinely"
        " independent.",
        Splits,
        worst(where="check == 'identified'"),
        "largest gap, with $A$ solved for from $Y=AV$, $d_v=T-1$, over its derived rounding bound",
        amends="HKT-5.c",
    ),
    identity(
        "HKT-5.e",
        r"The two parts of $S$ are orthogonal, $\lVert S\rVert_F^2=\lVert S_s\rVert_F^2+\lVert S_a\rVert_F^2$.",
        Splits,
        worst(where="check == 'pythagoras'"),
    ),
    identity(
        "HKT-5.f",
        "Each of the two parts of $S$ is the mixture of the levels' parts.",
        Splits,
        worst(where="check == 'levels'"),
        where="a reading of “$L$ independent pairs”",
    ),
    unseen(
        "HKT-5.g",
        "$L$ levels have $L$ independent pairs of parts, which control reciprocal and directional attention, as printed.",
        "only the abstract was visible; HKT-5.b to f are what holds for our construction",
        source="paper",
        where="abstract (Props 3.5, 3.6)",
        paper_value="not visible",
    ),
)
