"""GT-8: codebooks from coarse to fine; criteria and expected verdicts were written before the run.

A pilot with another seed and two networks for each codebook had been seen; its rows were thrown away. The inner codebook
at which D is largest is chosen by the networks of the search, and judged on others. That the codebooks compared must have
learned was asked later, when a reading of the rows had found that the finest had not (changes.yml).
"""

import numpy as np
import pandas as pd

from derived.lab import stats
from derived.lab.claims import RECORDED, at_least, reported, statistic
from derived.lab.effect import Published
from derived.lab.measure import Measure, by_draw, chosen, lowest
from derived.lab.stats import LEVEL, Estimate

from ..experiments.sweep import Longer, Sweep
from .measures import judged, ratio


def logs(rows: pd.DataFrame, where: str) -> pd.Series:
    """ln D of the judged networks of one arm, by replicate."""
    return np.log(judged(rows, where))


def numbers(rows: pd.DataFrame, many: bool) -> str:
    """The noise-free rows with the most paths, or with the fewest."""
    return f"noise == 0 and num == {rows['num'].max() if many else rows['num'].min()}"


def highest_inner(rows: pd.DataFrame, where: str) -> int:
    """The inner codebook whose searched networks have the largest D at the rate that was chosen."""
    hard = chosen(rows, f"arm == 'ce' and {where}")
    rate = hard[hard["stage"] == "fit"].groupby("K")["rate"].first()
    tried = hard[(hard["stage"] == "search") & (hard["rate"] == hard["K"].map(rate))]
    return by_draw(tried["distortion"], tried, ["K"]).mean().sort_index().iloc[1:-1].idxmax()


def learned(rows: pd.DataFrame, where: str, K: int) -> None:
    """ValueError unless the networks of a codebook find the next value to within twice the error of those that find it
    best with as many codes or fewer, and, where they are judged before their end, are at a plateau: the rule of GT-7c.

    Bins that are narrower can say all that wider ones say; the wider ones cannot say more than their width lets them."""
    hard = {
        each: f"arm == 'ce' and {where} and K == {each}"
        for each in chosen(rows, f"arm == 'ce' and {where}")["K"].unique()
    }
    missed = {each: judged(rows, one, "rmse").mean() for each, one in hard.items()}
    best = min((each for each in missed if each <= K), key=missed.get)
    if not missed[K] <= 2 * missed[best]:
        other = f"those of {best} codes by {missed[best]:.2g}"
        raise ValueError(
            f"networks of {K} codes have not learned: they miss the next value by {missed[K]:.2g}, {other}"
        )
    flat(rows, hard[K], f"{K} codes")


def flat(rows: pd.DataFrame, where: str, name: str) -> None:
    """ValueError unless the last tenth of the steps takes at most 0.02 off what the networks' own loss falls by from the
    first look on; rows without looks are let pass."""
    if rows["step"].nunique() > 1:
        first, before, end = (judged(rows, where, "valid", look).mean() for look in range(3))
        if not before - end <= 0.02 * (first - end):
            loss = ", ".join(f"{each:.3g}" for each in (first, before, end))
            raise ValueError(f"networks of {name} have not come to a plateau: their loss goes {loss}")


def inner_over_ends(many: bool) -> Measure:
    """D at that codebook over D at an end of the range, the smaller of the two ends' ratios, where all three have
    learned."""

    def measure(rows: pd.DataFrame) -> Estimate:
        where = numbers(rows, many)
        inner, ends = highest_inner(rows, where), (rows["K"].min(), rows["K"].max())
        for K in (inner, *ends):
            learned(rows, where, K)
        at = {K: logs(rows, f"arm == 'ce' and {where} and K == {K}") for K in (inner, *ends)}
        return ratio(lowest([stats.mean(at[inner] - at[end], 1 - (1 - LEVEL) / 2) for end in ends]))

    return measure


def one_codebook(many: bool) -> Measure:
    """The measure where both ends of the range are networks of the highest inner codebook, too, each paired with the
    next one or the next but one: nothing depends on K."""

    def null(rows: pd.DataFrame) -> Estimate:
        inner, ends = highest_inner(rows, numbers(rows, many)), [rows["K"].min(), rows["K"].max()]
        fitted = rows["stage"].eq("fit") & rows["arm"].eq("ce")
        one, networks = rows[fitted & (rows["K"] == inner)], rows.loc[fitted, "replicate"].nunique()
        shifted = [one.assign(K=K, replicate=(one["replicate"] + by) % networks) for by, K in enumerate(ends, start=1)]
        return inner_over_ends(many)(pd.concat([rows[~(fitted & rows["K"].isin(ends))], *shifted]))

    return null


def tax(rows: pd.DataFrame, where: str, K: int) -> pd.Series:
    """ln D of K codes under hard labels less that of the squared error on its 64, by replicate, where both have learned
    and are flat."""
    value = f"arm == 'scalar' and {where}"
    learned(rows, where, K)
    flat(rows, value, "the value")
    return logs(rows, f"arm == 'ce' and K == {K} and {where}") - logs(rows, value)


def largest_tax(rows: pd.DataFrame) -> Estimate:
    """The tax without noise, at the inner codebook that other networks found highest."""
    quiet = numbers(rows, True)
    return ratio(stats.mean(tax(rows, quiet, highest_inner(rows, quiet))))


def tax_halved(loud: str) -> Measure:
    """ln of the tax without noise less twice that where it is ``loud``, at the codebook that is highest without, where
    all of these networks have learned and are flat."""

    def measure(rows: pd.DataFrame) -> Estimate:
        quiet = numbers(rows, True)
        K = highest_inner(rows, quiet)
        return stats.mean(tax(rows, quiet, K) - 2 * tax(rows, loud, K))

    return measure


TRAINED = {"judged_at": RECORDED}
TIMES = {"unit": "times", **TRAINED}
LESS = "$\\ln$ of the tax without noise less twice $\\ln$ of the tax with it, where these networks have learned and are flat"
HALVED = {"unit": "nats", "control": lambda rows: tax_halved(numbers(rows, True))(rows), **TRAINED}

CLAIMS = (
    statistic(
        "GT-8.a",
        "Without noise, $D$ under hard labels is not monotone in the number of codes: an inner codebook has a larger $D$ than the coarsest and than the finest.",
        Longer,
        inner_over_ends(True),
        "$D$ at the inner codebook over $D$ at an end, the smaller of two, where all three have learned and are flat",
        at_least(1),
        plain="Finer codebooks reconstruct better and yet make the states more sensitive to noise, up to a point.",
        source="paper",
        where="abstract, Learned quantisation; Lorenz, small networks",
        paper_value="not monotone",
        **TIMES,
        control=one_codebook(True),
    ),
    statistic(
        "GT-8.b",
        "With a sixteenth of the training paths the inner extremum of $D$ is again a maximum, where one free vector for each code foretells a minimum.",
        Sweep,
        inner_over_ends(False),
        "$D$ at the inner codebook over $D$ at an end, the smaller of two, where all three have learned",
        at_least(1),
        where="what separates the staircase from the regressogram",
        **TIMES,
        control=one_codebook(False),
    ),
    statistic(
        "GT-8.d",
        "Noise of 3 % of the range on all values, inputs and labels alike, takes more than half of the tax over the squared error on 64 codes away, in logarithms, at the codebook where it is highest without noise.",
        Longer,
        tax_halved("noise > 0 and on == 'values'"),
        LESS,
        at_least(0),
        **HALVED,
    ),
    statistic(
        "GT-8.e",
        "Noise of 3 % of the range on the labels alone takes more than half of that tax away.",
        Longer,
        tax_halved("noise > 0 and on == 'labels'"),
        LESS,
        at_least(0),
        where="such a label is blurred, on average over draws, and the inputs are as sharp as before",
        **HALVED,
    ),
    reported(
        "GT-8.f",
        "On Lorenz paths without noise the published distortion $D$ under hard labels is this multiple of that under the squared error of the next value on 64 codes, at the inner codebook where it is largest.",
        Longer,
        largest_tax,
        "times",
        where="the largest tax that we saw, beside the abstract's up to 8.5 times; the codebook is chosen by other networks, and the squared error reads 64 codes whatever it is; small networks on generated paths",
        paper_value=Published(8.5, "times"),
        judged_at=RECORDED,
    ),
)
