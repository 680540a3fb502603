"""The ledger of retrieval: the softmax step, published bounds, flipped bits and noise (OLS-14 to OLS-17).

beta  inverse temperature of softmax
K, d  number and dimension of the patterns
"""

from derived.lab import measure
from derived.lab.claims import at_least, at_most, bound, computed, identity, reported, statistic, within

from ..experiments.retrieval import OneStepRetrieval, PublishedConstants, ReadOutNoise, RetrievalBound, SoftmaxStep

RAMSAUER = {"source": "prior", "where": "Ramsauer et al. 2021"}
AT_THE_SAME = r"at $N=30$, $K=e^{0.9\alpha N}$"

CLAIMS = (
    identity(
        "OLS-14.a",
        r"Softmax attention is one step on $E=-\frac1\beta\ln\sum_\mu e^{\beta x_\mu^\top\xi}+\frac12\|\xi\|^2$, that is "
        r"$X^\top\operatorname{softmax}(\beta X\xi)=\xi-\nabla E$.",
        SoftmaxStep,
        measure.worst(),
        "largest gap of fused attention to automatic differentiation over its rounding bound",
        paper_value="equality",
        **RAMSAUER,
    ),
    bound(
        "OLS-14.b",
        r"A step of softmax attention from $\xi$ to $\xi^+$ lowers its energy by at least half the square of the step, "
        r"$E(\xi^+)\le E(\xi)-\frac12\|\xi^+-\xi\|^2$.",
        SoftmaxStep,
        measure.worst("excess", "energy_bound"),
        "ols-energy",
        r"$E(\xi^+)-E(\xi)+\frac12\|\xi^+-\xi\|^2$ over the rounding bound of the energy",
        source="prior",
        where="Ramsauer et al. 2021 for the descent",
    ),
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
    computed(
        "OLS-16.a",
        r"The constant $c$ of Theorem 3 is at least $3.1546$ ($\beta{=}1,K{=}3,d{=}20$) and at least $1.3718$ "
        r"($\beta{=}1,K{=}1,d{=}75$), both at $p=0.001$.",
        PublishedConstants,
        measure.smallest("c / published"),
        "smallest $c$ over its published lower bound",
        at_least(1),
        source="prior",
        where="Ramsauer et al. 2021, after Theorem 3",
        paper_value="≥ 3.1546, ≥ 1.3718",
        unit="of the published bound",
    ),
    bound(
        "OLS-16.b",
        r"One step of softmax attention from $\xi$ towards the pattern $x_i$ errs by at most "
        r"$2(K-1)e^{-\beta(\Delta_i-2\|\xi-x_i\|M)}M$.",
        RetrievalBound,
        measure.worst("error"),
        "ols-retrieval",
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
