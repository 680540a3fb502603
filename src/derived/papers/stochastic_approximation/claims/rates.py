"""SA-4 and SA-5: rates and covariances. Criteria and expected verdicts were written before the run, unless a claim says otherwise."""

import pandas as pd
from scipy.stats import norm

from derived.lab import measure
from derived.lab.claims import at_most, computed, statistic, within
from derived.lab.measure import farthest_from

from ..experiments.rates import Averaged, Central, Covariance, Exponents, InfiniteOrder
from .measures import law_distance

SQUARE = measure.mean("z**2", by=["component"], decides=farthest_from(1))
LAW = law_distance("level", by=["component"])


def exchanged(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``Central`` in which each component is given the variance of the other."""
    own = rows.groupby("component")["predicted"].first()
    z = rows["x"] / rows["component"].map(lambda one: own.drop(one).iloc[0]) ** 0.5
    return rows.assign(z=z, level=norm.cdf(z))


def independent(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``Central`` judged by the variance that independent data of the same mean would have."""
    z = rows["x"] / rows["naive"] ** 0.5
    return rows.assign(z=z, level=norm.cdf(z))


CLAIMS = (
    statistic(
        "SA-4.a",
        r"At $a_n=1/n$ the root mean square error in a component of pull $\lambda\ne\frac12$ falls as $n^{-\min(1/2,\lambda)}$.",
        Exponents,
        measure.power("scaled", "n", "learner == 'last'", unit=["group"], by=["component"], decides=farthest_from(0)),
        r"slope of the logarithm less $-\min(\frac12,\lambda)$, the farthest of $\lambda=2,1,.3$",
        within(0, 0.05),
        unit="exponent",
        control=measure.power(
            "rmse * n**0.5", "n", "learner == 'last'", unit=["group"], by=["component"], decides=farthest_from(0)
        ),
        horizon="$n=10{,}000$",
    ),
    statistic(
        "SA-4.b",
        r"Given the component, at $a_n=a/n$ with $2a\lambda>1$, $n\,{\rm Var}(x_n)$ tends to $a^2\Gamma/(2a\lambda-1)$, $\Gamma$ summed over all lags.",
        Central,
        SQUARE,
        r"$n(x_n-x^*)^2$ over its limit, the farther of two components",
        within(1, 0.12),
        unit="ratio",
        control=lambda rows: SQUARE(exchanged(rows)),
        horizon="$n=1{,}000$",
    ),
    statistic(
        "SA-4.c",
        r"Given the component, at $a_n=a/n$ with $2a\lambda>1$, $\sqrt n(x_n-x^*)$ is normal in the limit, though the data are 0 and 1 and of infinite order.",
        Central,
        LAW,
        "largest distance to the normal distribution function, the farther of two components (interval: DKW)",
        at_most(0.05),
        unit="probability",
        control=lambda rows: LAW(independent(rows)),
        where="the other component's variance, a quarter off, is 0.03 away and would pass: SA-4.b tells variances apart",
        horizon="$n=1{,}000$",
    ),
    computed(
        "SA-4.d",
        r"In several dimensions, at $a_n=a/n$ with $a\,{\rm Re}\,\lambda>\frac12$ for all eigenvalues of $A$, $n\,{\rm Cov}(x_n)$ tends to the solution of $(aA-\frac12I)\Sigma+\Sigma(aA-\frac12I)^\top=a^2\Gamma$.",
        Covariance,
        measure.largest("gap", "n == n.max()"),
        "largest relative gap in the spectral norm after 4000 steps of the recurrence",
        at_most(0.01),
        unit="relative gap",
        control=measure.largest("gap", "n == n.min()"),
        horizon="$n=4{,}000$",
    ),
    computed(
        "SA-4.e",
        r"Averaged iterates at $a_n=n^{-0.7}$ reach the least variance $\Gamma/(n\lambda^2)$ in every component, without knowing $\lambda$.",
        Averaged,
        measure.farthest("efficiency", 1.0, "n == n.max()"),
        r"mean square error over $1/(n\lambda^2)$ at $n=4\cdot10^5$, the farthest of $\lambda=2,1,.3$",
        within(1, 0.1),
        unit="ratio",
        control=measure.farthest("efficiency", 1.0, "n == n.min()"),
        where="the tenth is chosen and not derived",
        horizon="$n=4\\cdot10^5$",
    ),
    statistic(
        "SA-5.a",
        r"For data whose next value depends on all of the past, the variance of running means is $\Gamma/n$ with $\Gamma=\sigma^2/(1-\sum_j\theta_j)^2$.",
        InfiniteOrder,
        measure.mean("ratio"),
        r"$n(\bar Y_n-m)^2$ over $\Gamma$",
        within(1, 0.15),
        unit="ratio",
        control=measure.mean("scaled / naive"),
        horizon="$n=2{,}000$",
    ),
)
