"""The ledger of retrieval: the softmax step, its bound, flipped bits and noise (OLS-14 to OLS-17).

beta  inverse temperature of softmax
K, d  number and dimension of the patterns
"""

from derived.lab import measure
from derived.lab.claims import at_least, at_most, on_page, reported, statistic, within

from ..experiments.retrieval import OneStepRetrieval, ReadOutNoise

RAMSAUER = {"source": "prior", "where": "Ramsauer et al. 2021"}
AT_THE_SAME = r"at $N=30$, $K=e^{0.9\alpha N}$"

CLAIMS = (
    on_page("OLS-14.a", paper_value="equality", **RAMSAUER),
    statistic(
        "OLS-15.f",
        r"The Hebb read-out of one of $K$ unit patterns in $d$ dimensions carries the noise energy "
        r"$\frac{K-1}d(1+\frac{K-2}d)$.",
        ReadOutNoise,
        measure.mean("noise / theory", "memory == 'hebb' and num_patterns == num_patterns.max()"),
        "measured over exact at the largest $K$",
        within(1, 0.1),
        unit="of the exact noise",
    ),
    on_page(
        "OLS-16.b",
        source="prior",
        where="Ramsauer et al. 2021, Theorem 5, with the radius that its proof needs",
    ),
    statistic(
        "OLS-17.a",
        rf"With $F=e^u$, {AT_THE_SAME}, one step from 10 % of flipped bits leaves at most 2 % of the bits wrong.",
        OneStepRetrieval,
        measure.mean("bit_error", "interaction == 'exp'"),
        "share of wrong bits after the step",
        at_most(0.02),
        source="prior",
        where="Demircigil et al. 2017, whose theorem says every bit of every pattern, see OLS-17.c",
        paper_value=r"error $\to0$",
        unit="share of bits",
    ),
    statistic(
        "OLS-17.b",
        rf"The quadratic memory, {AT_THE_SAME}, does not repair 10 % of flipped bits in one step.",
        OneStepRetrieval,
        measure.mean("bit_error", "interaction == 'quadratic'"),
        "share of wrong bits after the step",
        at_least(0.1),
        unit="share of bits",
    ),
    reported(
        "OLS-17.c",
        rf"With $F=e^u$, {AT_THE_SAME}, one step from 10 % of flipped bits repairs every bit of every pattern in this share "
        "of memories.",
        OneStepRetrieval,
        measure.share("all_repaired", "interaction == 'exp'"),
        "share of memories",
        source="prior",
        where="Demircigil et al. 2017: the share tends to 1 as $N$ grows; no rate is given for $N=30$",
        paper_value=r"share $\to1$",
        judged_at=("ci",),
    ),
)
