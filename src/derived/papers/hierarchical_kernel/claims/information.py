"""The ledger of information through the levels, of averages, and of what dropping a level changes."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from derived.lab.claims import at_most, between, bound, identity, refuted, unseen, within
from derived.lab.measure import Measure, farthest, worst
from derived.lab.stats import Estimate

from ..experiments.information import Averages, Budgets, Memory, Pruning, Quadratures, SmallSamples

EPS = np.finfo(float).eps


def kurtosis_rounding(rows: pd.DataFrame) -> pd.Series:
    """Of kurtosis over its prediction: moments are sums of n = 10 2^l terms, the excess a difference of numbers near 3."""
    return 8 * 10 * 2.0 ** rows["level"] * EPS * 3 / rows["predicted"].abs()


def variance_rounding(rows: pd.DataFrame) -> pd.Series:
    """Of a mean of 4^l covariances over its closed form: a covariance is a difference of numbers up to 2 T^{2H}, which
    relative to the result is T^2 at most."""
    return 8 * EPS * 4.0 ** rows["level"] / rows["closed"]


def last_step(value: str, where: str, of_ratio: Callable[[float], float] = float) -> Measure:
    """A function of the ratio of the values at the coarsest level and at the one before it."""

    def measure(rows: pd.DataFrame) -> Estimate:
        values = rows.query(where).sort_values("level")[value].to_numpy()
        return Estimate(float(of_ratio(values[-1] / values[-2])), 1)

    return measure


def telling_samples(rows: pd.DataFrame) -> float:
    """The least n/p, at the largest width, from which on the bars b +- one deviation of any two laws are apart."""
    widest = rows[rows["p"] == rows["p"].max()]
    table = widest.groupby(["n", "law"])["b"].agg(["mean", "std"]).sort_values("mean").reset_index()
    separate = {}
    for n, part in table.groupby("n"):
        low, high = part["mean"] - part["std"], part["mean"] + part["std"]
        separate[n] = bool((low.iloc[1:].values > high.iloc[:-1]).all())
    told = [n for n in sorted(separate) if all(separate[m] for m in separate if m >= n)]
    return float(told[0] / widest["p"].iloc[0]) if told else float("inf")


CORRECTION = (
    identity(
        "HKT-7.a",
        "$I(X;Y)-I_G(BZ;Y)$ is the sum of resolution, head width and non-Gaussian correction.",
        Budgets,
        worst(unit=("instance",)),
        "largest gap, conditional informations by quadrature over what is given, over its derived rounding bound",
    ),
    identity(
        "HKT-7.b",
        "The mutual information is $I(U;Y)=I_G(U;Y)+J(U,Y)-J(U)-J(Y)$, with $I$ from a double integral.",
        Quadratures,
        worst(),
        "largest gap over $10^{-8}$ nats",
    ),
    refuted(
        "HKT-7.c",
        "The non-Gaussian correction is never negative.",
        Budgets,
        worst("-correction", "1", unit=("instance",)),
        "a correction whose negative is, in nats,",
        at_most(0.01),
        unit="nats",
        where="a tempting reading",
    ),
    bound(
        "HKT-7.i",
        "The non-Gaussian correction is at least $-I_G$.",
        Budgets,
        worst("-correction", "gaussian + bound", unit=("instance",)),
        "hkt-negentropy",
        "largest ratio of its negative to $I_G$ and the rounding",
        amends="HKT-7.c",
    ),
)

AVERAGES = (
    identity(
        "HKT-7.d",
        r"The mean of $2^l$ i.i.d. terms has excess kurtosis $\kappa/2^l$.",
        Averages,
        worst("abs(value / predicted - 1)", kurtosis_rounding, "law == 'digits'"),
        "largest gap of convolution powers over their rounding",
    ),
    bound(
        "HKT-7.e",
        r"The negentropy of the mean of $2^l$ i.i.d. symmetric terms falls to $\frac14$ per level in the limit.",
        Averages,
        last_step("value", "law == 'uniform'"),
        "hkt-cumulants",
        "negentropy of the last level over that of the one before",
        within(0.25, 0.01),
        unit="ratio",
    ),
    bound(
        "HKT-7.f",
        r"The negentropy of the mean of $2^l$ i.i.d. terms has the leading term $\kappa^2/(48\cdot4^l)$ if they are symmetric,"
        r" and $\gamma^2/(12\cdot2^l)$ if they have skewness $\gamma$.",
        Averages,
        farthest("value / predicted", 1, "level == level.max() and law in ('uniform', 'exponential')"),
        "hkt-cumulants",
        "negentropy at the last level over its leading term, the worse law",
        within(1, 0.03),
        unit="ratio",
    ),
    identity(
        "HKT-7.g",
        "Mardia's statistic is $b_{2,p}=p^2$ at $n=p+1$ for any data.",
        SmallSamples,
        worst("abs(b - p**2)", where="n == p + 1"),
    ),
    unseen(
        "HKT-7.h",
        "The approximation error has three components, one of them a non-Gaussian correction, as printed.",
        "only the abstract was visible; HKT-7.a is an exact identity of this form for our construction",
        source="paper",
        where="abstract (Theorem 4.3)",
        paper_value="not visible",
    ),
)

DECAY = (
    identity(
        "HKT-8.a",
        r"Means of $2^l$ terms of fractional Gaussian noise have variance $2^{-2l(1-H)}$.",
        Memory,
        worst("abs(variance / closed - 1)", variance_rounding, "process == 'fgn'"),
    ),
    bound(
        "HKT-8.b",
        "The variance of means of $2^l$ terms with short memory halves per level in the limit.",
        Memory,
        last_step("variance", "process == 'ar1' and H == 0.5", np.log2),
        "hkt-variance",
        r"$\log_2$ of the last ratio, AR(1)",
        within(-1, 0.01),
        unit=r"$\log_2$ of a ratio",
    ),
    bound(
        "HKT-8.c",
        r"If $|S^{(l)}_{ij}|\le\beta\rho^l$, leaving out levels $\ge K$ changes a row of attention by at most"
        r" $\beta\rho^K\sum_{l\ge K}\alpha_l$ in $\ell_1$.",
        Pruning,
        worst(where="check in ('row', 'output')", unit=("instance",)),
        "hkt-decay",
        "largest ratio to the bound, rows and outputs",
    ),
    bound(
        "HKT-8.d",
        r"Softmax is 1-Lipschitz from $\ell_\infty$ to $\ell_1$.",
        Pruning,
        worst(where="check == 'lipschitz'"),
        "hkt-lipschitz",
        "largest ratio to the bound over 4096 random pairs",
    ),
    bound(
        "HKT-8.e",
        r"The Lipschitz constant 1 of softmax from $\ell_\infty$ to $\ell_1$ is the best possible.",
        Pruning,
        worst(where="check == 'tight'"),
        "hkt-lipschitz",
        "ratio at one pair",
        between(0.9999, 1.0),
    ),
    unseen(
        "HKT-8.f",
        "The approximation bound decays geometrically in the number of levels, as printed.",
        "only the abstract was visible; HKT-8.c is a bound of this form for our construction",
        source="paper",
        where="abstract (Prop. 4.4)",
        paper_value="not visible",
    ),
)
