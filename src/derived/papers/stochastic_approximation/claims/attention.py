"""SA-8 and SA-9: attention as an average. Criteria and expected verdicts were written before the run, unless a claim says otherwise."""

import pandas as pd

from derived.lab import measure
from derived.lab.claims import at_most, on_page, statistic, within
from derived.lab.measure import farthest_from

from ..experiments.attention import Readout, SelfFed
from .measures import law_distance

END = "t == t.max()"

SCALED = measure.mean("scaled", END, by=["component"], decides=farthest_from(1))


def exchanged(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``Readout`` in which each component is given the predicted variance of the other."""
    predicted = rows["t"] * rows["rmse"] ** 2 / rows["scaled"]
    own = predicted.groupby(rows["component"]).first()
    return rows.assign(scaled=rows["scaled"] * predicted / rows["component"].map(lambda one: own.drop(one).iloc[0]))


CLAIMS = (
    statistic(
        "SA-8.a",
        r"Softmax attention with fixed query over the whole past of independent Gaussian tokens converges to the tilted mean of its component, $V\nabla\Lambda_\omega(K^\top q)$, at the rate $t^{-1/2}$.",
        Readout,
        measure.power("rmse", "t", unit=["group"], by=["component"], decides=farthest_from(-0.5)),
        "slope of the root mean square distance to that limit, the farther of two components",
        within(-0.5, 0.12, r"-\frac12"),
        unit="exponent",
        plain="A head that reads a long past reads a number that depends only on which component the stream is of.",
        control=measure.power(  # the distance to the limit of the other component
            "(apart**2 + rmse**2) ** 0.5", "t", unit=["group"], by=["component"], decides=farthest_from(-0.5)
        ),
        horizon="$t=4{,}096$",
    ),
    on_page("SA-8.b"),
    on_page("SA-8.c"),
    statistic(
        "SA-8.d",
        r"On independent Gaussian tokens with $\theta^\top\Sigma\theta$ of $0.09$ and of $0.28$, $t\,{\rm Cov}$ of the reading tends to $e^{\theta^\top\Sigma\theta}V(\Sigma+\Sigma\theta\theta^\top\Sigma)V^\top$.",
        Readout,
        SCALED,
        "$t$ times the mean square distance over the trace, the farther of two components",
        within(1, 0.15),
        unit="ratio",
        control=lambda rows: SCALED(exchanged(rows)),
        where="of the matrix the trace is judged",
        horizon="$t=4{,}096$",
    ),
    statistic(
        "SA-9.b",
        r"Fed with its own samples, a head of equal scores beside a prompt of two ones and three zeros settles at a random point of law Beta$(2,3)$.",
        SelfFed,
        law_distance("level", "feed == 'uniform'"),
        "largest distance to the distribution function of Beta(2, 3) (interval: DKW)",
        at_most(0.05),
        unit="probability",
        control=law_distance("level", "feed == 'fading'"),
        horizon="$n=1{,}000$",
    ),
    statistic(
        "SA-9.c",
        r"Fed with its own samples, a head whose scores fall by a constant per step of age, beside a prompt that keeps its scores, has the same average in every run.",
        SelfFed,
        measure.mean("off**2 - 0.4 * early**2", "feed == 'fading'"),
        r"mean square distance of the running mean to $\frac25$ at $n=1{,}000$, less $0.4$ of that at $n=250$",
        at_most(0.0),
        unit="square distance",
        control=measure.mean("off**2 - 0.4 * early**2", "feed == 'uniform'"),  # a random limit keeps its distance
        horizon="$n=1{,}000$",
    ),
)
