"""Claims on the common noise: two prompts under the same weights, and private noise as control.

Evidence, criterion and expected verdicts were written before the run, except where a claim says otherwise.
"""

import pandas as pd

from derived.lab import stats
from derived.lab.claims import at_least, at_most, on_page, statistic
from derived.lab.measure import jointly, lowest, mean
from derived.lab.stats import Estimate

from ..experiments.prompts import PrivateNoise, Prompts


def variance_over_weights(rows: pd.DataFrame, level: float) -> Estimate:
    """The variance of the mean token over the weights, from disjoint pairs of draws."""
    columns = [name for name in rows.columns if name.startswith("mean_")]
    values = rows.sort_values(["part", "replicate"])[columns].to_numpy()
    half = len(values) // 2
    return stats.mean(((values[:half] - values[half : 2 * half]) ** 2).sum(axis=1) / 2, level)


common_noise = jointly(variance_over_weights, ["n"], lowest)
kept_overlap = mean("gamma / gamma0", "noise == 'private' and gamma0 > 0 and layer == layer.max()")

CLAIMS = (
    on_page("HT-17.a"),
    statistic(
        "HT-17.b",
        r"The noise of the weights does not average out as $n$ grows.",
        Prompts,
        common_noise,
        r"variance of the mean token over the weights, at the $n$ where it is smallest",
        at_least(0.05),
        plain="The noise of the weights does not average out, however many tokens there are.",
        unit="squared length",
        source="digest",
        where="version 1, `eq: the.spde`",
        control=mean("distance / 2", by=["n"], decides=lowest),  # over prompts, which does average out
        horizon="8,192 tokens",
        scale={"gpu": "ours"},
    ),
    statistic(
        "HT-17.d",
        r"Negative control: with private noise an overlap of $\frac12$ is forgotten.",
        PrivateNoise,
        kept_overlap,
        "final over initial overlap",
        at_most(0.3),
        unit="share of the overlap",
        control=mean("gamma / gamma0", "noise == 'common' and gamma0 > 0 and layer == layer.max()"),
    ),
)
