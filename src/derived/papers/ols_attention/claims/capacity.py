"""The ledger of capacities: powers of N, and two notions of exponential capacity (OLS-15).

K  number of patterns at the edge
N  number of spins
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from derived.lab import measure
from derived.lab.claims import RECORDED, Claim, Scale, statistic, within
from derived.lab.effect import Published
from derived.lab.stats import Estimate

from ..experiments.capacity import ExponentialCapacity, PolynomialCapacity


def power_law(id: str, degree: int, **facts: str) -> Claim:
    """The capacity of the memory with F(u) = u^degree is of order N^(degree - 1)."""
    return statistic(
        id,
        rf"With $F(u)=u^{degree}$ the number of patterns at a fixed bit error grows like $N^{degree - 1}$"
        + (": linear capacity of the quadratic memory." if degree == 2 else "."),
        PolynomialCapacity,
        measure.power("K", "N", f"degree == {degree}"),
        r"slope of $\ln K$ against $\ln N$ at 1 % error",
        within(degree - 1, 0.25),
        control=measure.power("K", "N", f"degree == {2 if degree > 2 else 3}"),
        horizon={2: "$N=256$", 3: "$N=256$", 4: "$N=64$"}[degree],
        paper_value=Published(degree - 1, "power of N"),
        unit="power of N",
        **facts,
    )


def at_largest(rows: pd.DataFrame, of: str = "max") -> Estimate:
    """K over theory, each degree at its largest N, the degree that is farthest off; ``of`` "min": K of the smallest N,
    as if memories did not grow."""
    sizes = rows.groupby("degree")
    some = rows[rows["N"] == sizes["N"].transform(of)].assign(largest=sizes["theory"].transform("max"))
    return measure.mean("K / largest", by=["degree"], decides=measure.farthest_from(1))(some)


def bits_per_spin(notion: str) -> measure.Measure:
    """The slope of log2 K against N."""
    return measure.slope("K", "N", f"notion == '{notion}'", y=np.log2)


LARGEST: Mapping[str, Scale] = {"gpu": "ours"}  # the paper has no size
CLAIMS = (
    power_law(
        *("OLS-15.a", 2),
        source="paper",
        where="abstract: “linear”",
        plain="The memory that belongs to linear attention has a capacity that grows linearly with its size.",
        scale=LARGEST,
    ),
    power_law("OLS-15.b", 3, source="prior", where="Krotov and Hopfield 2016", scale=LARGEST),
    power_law("OLS-15.c", 4, source="prior", where="Krotov and Hopfield 2016", scale=LARGEST),
    statistic(
        "OLS-15.j",
        "At the largest $N$ that we tried the memories with $F(u)=u^2$, $u^3$ and $u^4$ hold as many patterns at 1 % of wrong "
        "bits as signal and noise give, to 5 per cent.",
        PolynomialCapacity,
        at_largest,
        r"mean number of patterns over $1+\frac{\text{signal}^2}{\text{noise}\cdot z^2}$, the degree that is farthest off",
        within(1, 0.05),
        control=lambda rows: at_largest(rows, of="min"),
        horizon="$N=256$, $256$ and $64$ at degrees 2, 3 and 4",
        unit="ratio",
        judged_at=RECORDED,
        scale=LARGEST,
    ),
    statistic(
        "OLS-15.d",
        r"With the flip rule of $F=e^u$ the number of patterns at 1 % of wrong bits grows exponentially with $N$, by about one bit per spin at "
        "the $N$ that we tried.",
        ExponentialCapacity,
        bits_per_spin("typical"),
        r"slope of $\log_2K$ against $N$ at 1 % error",
        within(1, 0.1),
        control=bits_per_spin("all"),
        horizon="$N=24$ at tier gpu, $16$ at cpu",
        source="paper",
        where="abstract: “exponential”; notion and rate are ours: a typical pattern, $K\\sim2^N$ at such sizes, "
        "$2^{0.974N}$ for large $N$ by the page, which the criterion does not tell apart",
        plain="A memory with exponential scores has a capacity that grows exponentially with its size.",
        paper_value="exponential",
        unit="bits per spin",
        scale=LARGEST,
    ),
    statistic(
        "OLS-15.i",
        r"With the flip rule of $F=e^u$ there are $0.02\cdot2^N$ patterns at 1 % of wrong bits, to 15 per cent, at every $N$ that we tried.",
        ExponentialCapacity,
        measure.mean("K / theory", "notion == 'typical'", by=["N"], decides=measure.farthest_from(1)),
        r"mean number of patterns over $0.02\cdot2^N$, at the $N$ where it is farthest off",
        within(1, 0.15),
        control=measure.mean("K / (0.02 * 2**N)", "notion == 'all'", by=["N"], decides=measure.farthest_from(1)),
        horizon="$N=24$ at tier gpu, $16$ at cpu",
        where="at tier gpu a memory is a single draw from $N=18$ on, where it was several below",
        unit="ratio",
        scale=LARGEST,
    ),
    statistic(
        "OLS-15.e",
        r"With the flip rule of $F=e^u$ all patterns stay put at once only up to $K\sim2^{N/2}$ patterns.",
        ExponentialCapacity,
        bits_per_spin("all"),
        r"slope of $\log_2K$ against $N$ at even odds (the formula's own slope at these $N$ is $\frac12$ less "
        r"$\frac{\log_2e}{2N}$)",
        within(0.45, 0.1),
        control=bits_per_spin("typical"),
        horizon="$N=24$ at tier gpu, $18$ at cpu",
        where="the other notion of exponential capacity",
        paper_value="exponential",
        unit="bits per spin",
        scale=LARGEST,
    ),
)
