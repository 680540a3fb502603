"""Capacities of associative memories, from linear to exponential in the number of spins (OLS-15).

N   number of spins
K   number of patterns at the edge: one bit in a hundred moves, or the chance that all patterns stay is one half
F   interaction, E = -sum_mu F(xi_mu . sigma)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

from derived.lab import measure
from derived.lab.claims import RECORDED, Claim, Scale, statistic, within
from derived.lab.effect import Published
from derived.lab.experiment import Experiment, rows
from derived.lab.plot import BLUE, COLOURS, RED, THEORY, beside, largest, plain_log, points, shades
from derived.lab.rng import stream
from derived.lab.stats import Estimate

from .model import capacity as closed
from .model import hopfield
from .words import fitted_slope, runs_shown


@dataclass(frozen=True, kw_only=True)
class PolynomialCapacity(Experiment):
    """OLS-15: patterns at a one-step bit error of 1 %, F = u^n; the published claim is a power N^{n-1}."""

    sizes_2: tuple[int, ...] = (32, 64, 128, 256)
    sizes_3: tuple[int, ...] = (32, 64, 128, 256)
    sizes_4: tuple[int, ...] = (16, 32, 64)
    error: float = 0.01
    replicates: int = 8
    trials: int = 16

    tiers: ClassVar = {
        "ci": {"sizes_2": (32, 64, 128), "sizes_3": (24, 40, 64), "sizes_4": (20, 32, 48)},
        "cpu": {
            **{"sizes_2": (32, 64, 128, 256), "sizes_3": (32, 64, 128), "sizes_4": (16, 32, 64)},
            **{"trials": 8, "replicates": 16},
        },
        "gpu": {},
    }

    def conditions(self) -> list[dict]:
        sizes = {2: self.sizes_2, 3: self.sizes_3, 4: self.sizes_4}
        return [{"degree": degree, "N": N} for degree, row in sizes.items() for N in row]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        degree, N = condition["degree"], condition["N"]
        generator = stream(seed, "polynomial capacity", degree, N, device=device)
        sizes = {"replicates": self.replicates, "trials": self.trials}
        edge = hopfield.capacity(N, degree, self.error, generator=generator, dtype=dtype, **sizes)
        theory = closed.capacity_theory(N, degree, self.error)
        return rows({"replicate": range(self.replicates)}, {"K": edge.K, "theory": theory})


@dataclass(frozen=True, kw_only=True)
class ExponentialCapacity(Experiment):
    """OLS-15: F = e^u. ``typical``: K at a bit error of 1 %; ``all``: K at which all patterns stay with chance 1/2."""

    typical_sizes: tuple[int, ...] = (10, 12, 14, 16, 18, 20, 22, 24)
    all_sizes: tuple[int, ...] = (12, 16, 20, 24)
    replicates: int = 24
    trials: int = 256

    tiers: ClassVar = {
        "ci": {"typical_sizes": (10, 12, 14), "all_sizes": (8, 10, 12, 14), "replicates": 16},
        "cpu": {"typical_sizes": (10, 12, 14, 16), "all_sizes": (10, 12, 14, 16, 18)},
        "gpu": {},
    }

    def conditions(self) -> list[dict]:
        sizes = {"typical": self.typical_sizes, "all": self.all_sizes}
        return [{"notion": notion, "N": N} for notion, row in sizes.items() for N in row]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        N, notion = condition["N"], condition["notion"]
        generator = stream(seed, "exponential capacity", notion, N, device=device)
        if notion == "typical":
            trials = max(1, min(64, round(2**18 / 2**N)))  # about as many tests at every N
            sizes = {"replicates": self.replicates, "trials": trials, "num_tests": 512}
            K = hopfield.capacity(N, "exp", 0.01, generator=generator, **sizes).K
            return rows({"replicate": range(self.replicates)}, {"K": K, "theory": 0.02 * 2.0**N})
        K = self._half_odds(N, generator)
        return rows({"replicate": range(self.replicates)}, {"K": K, "theory": closed.all_fixed_capacity(N)})

    def _half_odds(self, N: int, generator: torch.Generator) -> np.ndarray:
        """Per replicate the K at which half of its draws keep all patterns, interpolated in ln K on a grid of ratio
        sqrt(2); NaN where the share does not cross 1/2 between K = 2 and 2^N."""
        sizes, shares = [], []
        while not shares or (shares[-1].max() >= 0.5 and sizes[-1] < 2**N):
            sizes.append(round(2 ** (1 + len(sizes) / 2)))
            fixed = hopfield.all_fixed(N, sizes[-1], "exp", trials=self.replicates * self.trials, generator=generator)
            shares.append(fixed.reshape(self.replicates, self.trials).double().mean(dim=-1).cpu().numpy())
        crossings = np.full(self.replicates, np.nan)
        for replicate, course in enumerate(np.array(shares).T):
            after = int(np.argmax(course < 0.5))  # the first size below even odds; 0: it never crosses
            if after:
                low, high = course[after - 1], course[after]
                step = (low - 0.5) / (low - high)
                crossings[replicate] = sizes[after - 1] * (sizes[after] / sizes[after - 1]) ** step
        return crossings


# Claims: The ledger of capacities: powers of N, and two notions of exponential capacity (OLS-15).
#
# K  number of patterns at the edge
# N  number of spins


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


# Figures: Capacities against the number of spins.


def polynomial_capacity(rows: pd.DataFrame) -> Figure:
    """Patterns at 1 % bit error against spins, one line per degree; rows of ``PolynomialCapacity``."""
    figure, ax = plt.subplots(figsize=(5.6, 3.6))
    slopes = {}
    for degree, color in zip(sorted(rows["degree"].unique()), COLOURS, strict=False):
        part = rows[rows["degree"] == degree]
        theory = part.groupby("N")["theory"].first()
        ax.plot(theory.index, theory, **THEORY)
        points(ax, part, "N", "K", color)
        means = largest(part).groupby("N")["K"].mean()
        slopes[degree] = fitted_slope(np.log(means.index), np.log(means))
        beside(ax, theory.index[-1], theory.iloc[-1], f"$u^{degree}$: slope {slopes[degree]:.2f}", color, (9, 0))
    low, high = rows["N"].min(), rows["N"].max()
    ax.set(xscale="log", yscale="log", xlabel="spins $N$", ylabel="patterns $K$ at 1 % error")
    plain_log(ax.xaxis, [2**k for k in range(3, 12) if low <= 2**k <= high])
    ax.set_xlim(low / 1.15, high * 2.6)
    said = ", ".join(f"{slope:.2f} for degree {degree}" for degree, slope in slopes.items())
    figure.set_label(
        f"Number of patterns against number of spins on logarithmic axes, {runs_shown(rows)}: lines of slope {said}. "
        f"The measured points lie on the curves of signal to noise."
    )
    return figure


def bridge_capacity(rows: pd.DataFrame) -> Figure:
    """Capacity by signal to noise along (1 + u/n)^n, from the quadratic memory to e^u; columns degree, N and K."""
    figure, ax = plt.subplots(figsize=(5.6, 3.6))
    degrees = sorted(rows["degree"].unique())
    gains = {}
    for degree, color in zip(degrees, shades(len(degrees)), strict=True):
        course = rows[rows["degree"] == degree].sort_values("N")
        bits = np.log2(course["K"])
        last = np.isinf(degree)
        ax.plot(course["N"], bits, **(THEORY if last else {"color": color}))
        words = "$e^u$" if last else f"$n={degree:.0f}$"
        beside(ax, course["N"].iloc[-1], bits.iloc[-1], words, THEORY["color"] if last else color)
        gains[words.strip("$")] = (bits.iloc[-1] - bits.iloc[-2]) / np.diff(course["N"].iloc[-2:]).item()
    ax.set(xlabel="spins $N$", ylabel=r"$\log_2 K$ at 1 % error")
    said = ", ".join(f"{gain:.2f} for {words}" for words, gain in gains.items())
    figure.set_label(
        f"Logarithm to base 2 of the capacity against spins for F = (1 + u/n)^n. The curves bend less the larger n is; "
        f"the last step gains in bits per spin: {said}."
    )
    return figure


def exponential_capacity(rows: pd.DataFrame) -> Figure:
    """log2 of the capacity for F = e^u in both notions against spins; rows of ``ExponentialCapacity``."""
    figure, ax = plt.subplots(figsize=(5.6, 3.6))
    rates = {}
    for notion, words, color in (("typical", "a typical pattern stays", BLUE), ("all", "all patterns stay", RED)):
        part = rows[rows["notion"] == notion].assign(bits=lambda some: np.log2(some["K"]))
        theory = np.log2(part.groupby("N")["theory"].first())
        ax.plot(theory.index, theory, **THEORY)
        points(ax, part, "N", "bits", color)
        means = largest(part).groupby("N")["bits"].mean()
        rates[notion] = fitted_slope(means.index, means)
        beside(ax, theory.index[-1], theory.iloc[-1], f"{words}:\nslope {rates[notion]:.2f}", color, (9, 0))
    low, high = rows["N"].min(), rows["N"].max()
    ax.set(xlabel="spins $N$", ylabel=r"$\log_2 K$", xlim=(low - 0.6, high + 0.55 * (high - low)))
    ax.set_xticks(sorted(rows["N"].unique()))
    figure.set_label(
        f"Logarithm to base 2 of the number of patterns against spins, {runs_shown(rows)}. A typical pattern stays "
        f"up to a line of slope {rates['typical']:.2f} bits per spin, all patterns at once only up to one of "
        f"{rates['all']:.2f}."
    )
    return figure
