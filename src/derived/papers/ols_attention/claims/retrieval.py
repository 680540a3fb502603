"""The part of the ledger on associative memory: OLS-14 to OLS-17."""

import numpy as np

from derived.lab.claims import Claim
from derived.lab.stats import mean, worst

from ..experiments.capacity import ExponentialCapacity, PolynomialCapacity
from ..experiments.retrieval import OneStepRetrieval, PublishedConstants, ReadOutNoise, RetrievalBound, SoftmaxStep
from . import measures as of

HOLDS = {"ci": "holds"}
ALL_TIERS = {"ci": "holds", "cpu": "holds", "gpu": "holds"}


MEMORY_CLAIMS = (
    Claim(
        id="OLS-14.a",
        statement=r"Softmax attention is one step on $E=-\frac1\beta\ln\sum_\mu e^{\beta x_\mu^\top\xi}+\frac12\|\xi\|^2$: "
        r"$X^\top\operatorname{softmax}(\beta X\xi)=\xi-\nabla E$.",
        source="prior",
        where="Ramsauer et al. 2021",
        paper_value="equality",
        kind="identity",
        criterion="fused attention against automatic differentiation, gap at most its rounding bound",
        experiment=SoftmaxStep,
        measure=lambda rows: worst(rows["gap"], rows["bound"]),
        expected=HOLDS,
    ),
    Claim(
        id="OLS-14.b",
        statement=r"The step lowers the energy by at least half its square: "
        r"$E(\xi^+)\le E(\xi)-\frac12\|\xi^+-\xi\|^2$.",
        source="prior",
        where="Ramsauer et al. 2021",
        paper_value="–",
        kind="bound",
        criterion=r"$E(\xi^+)-E(\xi)+\frac12\|\xi^+-\xi\|^2$ at most the rounding bound of the energy",
        experiment=SoftmaxStep,
        measure=lambda rows: worst(rows["excess"], rows["energy_bound"]),
        proof="ols-energy",
        expected=HOLDS,
    ),
    *(
        Claim(
            id=f"OLS-15.{letter}",
            statement=rf"With $F(u)=u^{degree}$ the number of patterns at a fixed bit error grows like $N^{degree - 1}$"
            + (": linear capacity of the quadratic memory." if degree == 2 else "."),
            source="paper" if degree == 2 else "prior",
            where="abstract: “linear”" if degree == 2 else "Krotov and Hopfield 2016",
            paper_value=f"exponent {degree - 1}",
            kind="statistic",
            criterion=rf"slope of $\ln K$ against $\ln N$ at 1 % error within ${degree - 1}\pm0.25$",
            experiment=PolynomialCapacity,
            measure=of.exponent(degree),
            accept=(degree - 1.25, degree - 0.75),
            expected=ALL_TIERS,
        )
        for letter, degree in (("a", 2), ("b", 3), ("c", 4))
    ),
    Claim(
        id="OLS-15.d",
        statement=r"With $F=e^u$ a typical pattern stays put up to $K\sim2^N$: exponential capacity.",
        source="paper",
        where="abstract: “exponential”; which notion is meant was not visible",
        paper_value="exponential",
        kind="statistic",
        criterion=r"slope of $\log_2K$ against $N$ at 1 % error within $1\pm0.1$",
        experiment=ExponentialCapacity,
        measure=of.rate("typical"),
        accept=(0.9, 1.1),
        expected=ALL_TIERS,
    ),
    Claim(
        id="OLS-15.e",
        statement=r"With $F=e^u$ all patterns stay put at once only up to $K\sim2^{N/2}$.",
        source="ours",
        where="the other notion of exponential capacity",
        paper_value="exponential",
        kind="statistic",
        criterion=r"slope of $\log_2K$ against $N$ at even odds within $0.45\pm0.1$ (the formula's own slope at these $N$ "
        r"is $\frac12$ less $\frac{\log_2e}{2N}$)",
        experiment=ExponentialCapacity,
        measure=of.rate("all"),
        accept=(0.35, 0.55),
        expected=ALL_TIERS,
    ),
    Claim(
        id="OLS-15.f",
        statement=r"The Hebb read-out of one of $K$ unit patterns carries the noise $\frac{K-1}d(1+\frac{K-2}d)$.",
        source="ours",
        where="–",
        paper_value="–",
        kind="statistic",
        criterion=r"measured over exact within $1\pm0.1$ at the largest $K$",
        experiment=ReadOutNoise,
        measure=of.noise_ratio("theory"),
        accept=(0.9, 1.1),
        expected=HOLDS,
    ),
    Claim(
        id="OLS-16.a",
        statement=r"The published constants are $c=3.1546$ ($\beta{=}1,K{=}3,d{=}20$) and $c=1.3718$ "
        r"($\beta{=}1,K{=}1,d{=}75$), $p=0.001$.",
        source="prior",
        where="Ramsauer et al. 2021, after Theorem 3",
        paper_value="3.1546, 1.3718",
        kind="identity",
        criterion=r"one unit of the last printed digit, $10^{-4}$",
        experiment=PublishedConstants,
        measure=lambda rows: worst((rows["c"] - rows["published"]).abs(), np.full(len(rows), 1e-4)),
        expected=HOLDS,
    ),
    Claim(
        id="OLS-16.b",
        statement=r"One step errs by at most $2(K-1)e^{-\beta(\Delta_i-2\|\xi-x_i\|M)}M$.",
        source="prior",
        where="Ramsauer et al. 2021, Theorem 5, with the radius that its proof needs",
        paper_value="–",
        kind="bound",
        criterion="error over bound at most 1",
        experiment=RetrievalBound,
        measure=lambda rows: worst(rows["error"], rows["bound"]),
        proof="ols-retrieval",
        expected=HOLDS,
    ),
    Claim(
        id="OLS-17.a",
        statement=r"With $F=e^u$, $N=30$, $K=e^{0.9\alpha N}$ one step repairs 10 % of flipped bits.",
        source="prior",
        where="Demircigil et al. 2017",
        paper_value=r"error $\to0$",
        kind="statistic",
        criterion="bit error below 2 %",
        experiment=OneStepRetrieval,
        measure=lambda rows: mean(rows.query("interaction == 'exp'")["bit_error"]),
        accept=(float("-inf"), 0.02),
        expected=HOLDS,
    ),
    Claim(
        id="OLS-17.b",
        statement=r"The quadratic memory fails at the same task.",
        source="ours",
        where="–",
        paper_value="–",
        kind="statistic",
        criterion="bit error above 10 %",
        experiment=OneStepRetrieval,
        measure=lambda rows: mean(rows.query("interaction == 'quadratic'")["bit_error"]),
        accept=(0.10, 1.0),
        expected=HOLDS,
    ),
)
