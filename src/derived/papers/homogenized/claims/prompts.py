"""Claims on the common noise: two prompts under the same weights, and private noise as control.

Evidence, criterion and expected verdicts were written before the run, except where a claim says otherwise.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from derived.lab.stats import LEVEL, Estimate, mean, slope

from ..experiments.prompts import PrivateNoise, Prompts
from .forms import INF, WITHIN, retold, row
from .measures import cases_of, joint


def lowest(cases: Sequence[pd.Series]) -> Estimate:
    """The mean of the case whose interval reaches lowest, at a joint level."""
    level = 1 - (1 - LEVEL) / len(cases)
    return min((mean(case, level) for case in cases), key=lambda one: one.low)


def prompts_slope(rows: pd.DataFrame) -> Estimate:
    """The slope of ln |difference of the mean tokens|^2 in ln n, per draw of the weights."""
    wide = rows.pivot(index=["part", "replicate"], columns="n", values="distance")
    return slope(np.log(wide.columns.to_numpy(dtype=float)), np.log(wide.to_numpy()))


def common_noise(rows: pd.DataFrame) -> Estimate:
    """The variance of the mean token over the weights, from disjoint pairs of draws; at the n where it is lowest."""
    columns, cases = [name for name in rows.columns if name.startswith("mean_")], []
    for _, case in rows.groupby("n"):
        values = case.sort_values(["part", "replicate"])[columns].to_numpy()
        half = len(values) // 2
        cases.append(pd.Series(((values[:half] - values[half : 2 * half]) ** 2).sum(axis=1) / 2))
    return lowest(cases)


def private(rows: pd.DataFrame) -> Estimate:
    """Mean overlap of initially orthogonal tokens under private noise, at the time where it is farthest from 0."""
    chosen = rows[(rows["noise"] == "private") & (rows["gamma0"] == 0) & (rows["layer"] > 0)]
    return joint(cases_of(chosen, "gamma", ("tau",)))


def forgets(rows: pd.DataFrame) -> Estimate:
    """Mean final overlap of tokens that start at a positive one, under private noise, over the start."""
    chosen = rows[(rows["noise"] == "private") & (rows["gamma0"] > 0)]
    last = chosen[chosen["layer"] == chosen["layer"].max()]
    return mean(last["gamma"] / last["gamma0"])


CLAIMS = (
    row(
        "HT-17.a",
        r"Given the weights, the mean tokens of two prompts from one law differ by $O(1/n)$ in mean square.",
        rf"slope of ln squared distance of the mean tokens in $\ln n$: {WITHIN} $-1\pm0.1$",
        Prompts,
        prompts_slope,
        (-1.1, -0.9),
    ),
    row(
        "HT-17.b",
        r"The noise of the weights does not average out as $n$ grows.",
        r"variance of the mean token over the weights, at the $n$ where it is smallest: 99.9 % interval above $0.05$",
        Prompts,
        common_noise,
        (0.05, INF),
        **retold("`eq: the.spde`"),
    ),
    row(
        "HT-17.c",
        r"Negative control: with private noise orthogonal tokens stay orthogonal on average.",
        rf"mean overlap over all times up to $\tau=6$: {WITHIN} $\pm0.03$",
        PrivateNoise,
        private,
        (-0.03, 0.03),
    ),
    row(
        "HT-17.d",
        r"Negative control: with private noise an overlap of $\frac12$ is forgotten.",
        r"final over initial overlap: 99.9 % interval below $0.3$",
        PrivateNoise,
        forgets,
        (-INF, 0.3),
    ),
)
