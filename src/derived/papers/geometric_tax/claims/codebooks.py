"""GT-5, GT-6: codebooks. Criteria and expected verdicts were written before the run."""

import numpy as np
import pandas as pd

from derived.lab import measure, stats
from derived.lab.claims import at_most, computed, on_page, statistic, within
from derived.lab.measure import farthest_from, highest
from derived.lab.stats import Estimate

from ..experiments.codebooks import Clouds, Windows

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
        amends="GT-6.a",
        control="A slope of zero is what codes that learn nothing have, and it lies outside the range.",
    ),
    on_page(
        "GT-5.c",
        source="prior",
        control="A theorem on every codebook: each one is a trial of it, and none does nothing.",
    ),
    statistic(
        "GT-5.d",
        "A sequence of tokens sees below a bin: nine tokens place the middle value better than its own token does.",
        Windows,
        measure.mean("share", "window == 9", by=["K"], decides=highest),
        "error from nine tokens over error from one, the largest over codebooks",
        at_most(0.85),
        unit="ratio",
        control=measure.mean("share", "window == 3", by=["K"], decides=highest),
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
        control="The claim itself fails, since a power of the number of codes fits better.",
        scale={},
    ),
)
