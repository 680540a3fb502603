"""GT-5, GT-6, GT-8: codebooks. Criteria and expected verdicts were written before the run."""

import numpy as np
import pandas as pd

from derived.lab import measure, stats
from derived.lab.claims import at_most, bound, computed, statistic, within
from derived.lab.measure import farthest_from, highest
from derived.lab.stats import Estimate

from ..experiments.codebooks import Clouds, Regressogram, Windows

KMEANS = "codebook == 'k-means'"


def curve(rows: pd.DataFrame) -> pd.Series:
    """Mean distortion of k-means on the attractor for each K."""
    some = measure.chosen(rows, f"source == 'lorenz' and {KMEANS}")
    return measure.by_draw(some["distortion"], some, ["K"]).mean()


def misfits(rows: pd.DataFrame) -> tuple[float, float, int]:
    """Largest relative misfit of a / ln K + b, and of a K^-b in logarithms, both by least squares of relative errors."""
    found = curve(rows)
    K, D = found.index.to_numpy(dtype=float), found.to_numpy()
    design = np.stack([1 / np.log(K), np.ones_like(K)], axis=1) / D[:, None]
    rival = design @ np.linalg.lstsq(design, np.ones_like(D), rcond=None)[0] - 1
    power = np.exp(np.polyval(np.polyfit(np.log(K), np.log(D), 1), np.log(K))) / D - 1
    return float(np.abs(rival).max()), float(np.abs(power).max()), len(K)


def rival_misfit(rows: pd.DataFrame) -> Estimate:
    """Misfit of the fit in 1 / ln K over that of a power of K."""
    rival, power, n = misfits(rows)
    return Estimate(rival / power, n)


def power_misfit(rows: pd.DataFrame) -> Estimate:
    """Misfit of a power of K."""
    _, power, n = misfits(rows)
    return Estimate(power, n)


CLAIMS = (
    statistic(
        "GT-5.b",
        r"The distortion of k-means falls as $K^{-2/d}$: in one, two and three dimensions, and on the Lorenz attractor with $d=2.06$.",
        Clouds,
        measure.jointly(
            lambda rows, level: stats.slope(
                np.log(np.sort(rows["K"].unique())),
                np.log(rows.pivot(index="replicate", columns="K", values="distortion").to_numpy())
                / (2 / rows["d"].iloc[0]),
                level,
            ),
            ["source"],
            farthest_from(-1),
            KMEANS,
        ),
        r"slope in $\ln K$ over $2/d$, the farthest of four sources",
        within(-1, 0.1),
        source="prior",
        where="Zador",
        unit="ratio",
    ),
    bound(
        "GT-5.c",
        r"No codebook of $K$ points loses less than Shannon's bound $\frac d{2\pi e}e^{2h/d}K^{-2/d}$.",
        Clouds,
        measure.worst("slb", "distortion", "source != 'lorenz'"),
        "gt-shannon",
        source="prior",
    ),
    statistic(
        "GT-5.d",
        "A sequence of tokens sees below a bin: nine tokens place the middle value better than its own token does.",
        Windows,
        measure.mean("share", "window == 9", by=["K"], decides=highest),
        "error from nine tokens over error from one, the largest over codebooks",
        at_most(0.85),
        unit="ratio",
    ),
    computed(
        "GT-6.a",
        r"The error that Shannon's theorem allows a codebook of $K$ values falls as $a/\ln K+b$.",
        Clouds,
        rival_misfit,
        r"largest misfit of $a/\ln K+b$ over that of a power of $K$, k-means on the Lorenz attractor",
        at_most(1),
        source="repo",
        where="notebook on learned codebooks: a fit of noise sensitivities, named Shannon's bound",
        unit="times",
        plain="What a codebook loses falls as one over the logarithm of its size, and that is Shannon's bound.",
    ),
    computed(
        "GT-6.b",
        r"The distortion of the best codebook falls as a power of $K$: rate is $\ln K$, and distortion is exponential in rate.",
        Clouds,
        power_misfit,
        r"largest relative misfit of a power of $K$ on the Lorenz attractor",
        at_most(0.1),
        unit="relative misfit",
        amends="GT-6.a",
    ),
    statistic(
        "GT-8.r",
        r"With one free constant per bin, learned from $N$ noisy samples, the best number of bins grows as $N^{1/3}$.",
        Regressogram,
        measure.power("K_best", "N", "K == 2", unit=["group"]),
        r"slope of $\ln K^*$ in $\ln N$",
        within(1 / 3, 0.06, r"\frac13"),
        unit="exponent",
        source="prior",
        where="the rival mechanism of the double bind",
    ),
)
