"""The ledger of retrieval: the softmax step, its bound, flipped bits and noise (OLS-14 to OLS-17).

beta  inverse temperature of softmax
K, d  number and dimension of the patterns
"""

import pandas as pd

from derived.lab import measure, stats
from derived.lab.claims import at_least, at_most, on_page, statistic, within
from derived.lab.stats import Estimate

from ..experiments.retrieval import OneStepRetrieval, ReadOutNoise, Steps

RAMSAUER = {"source": "prior", "where": "Ramsauer et al. 2021"}


def keeps_and_repairs(rule: str) -> measure.Measure:
    """The share of memories that keep all patterns at the larger load and halve wrong bits at the typical one."""

    def share(rows: pd.DataFrame) -> Estimate:
        some, memory = measure.chosen(rows, f"rule == '{rule}'"), ["N", "replicate"]
        kept = measure.chosen(some, "load == 'many' and flips == 0").set_index(memory)["kept"]
        wrong = measure.chosen(some, "load == 'typical' and flips == 1").set_index(memory)["wrong"]
        good = kept.astype(bool) & (wrong < 0.5)
        return stats.proportion(int(good.sum()), len(good))

    return share


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
        control=measure.mean("naive / theory", "memory == 'hebb' and num_patterns == num_patterns.max()"),
        unit="of the exact noise",
    ),
    on_page(
        "OLS-16.b",
        source="prior",
        where="Ramsauer et al. 2021, Theorem 5, with the radius that its proof needs",
    ),
    statistic(
        "OLS-17.a",
        r"With $F=e^u$, at $N=30$ and $K=e^{0.9\alpha N}$, one step from 10 % of flipped bits leaves at most 2 % of the bits wrong.",
        OneStepRetrieval,
        measure.mean("bit_error", "fraction == 0.9"),
        "share of wrong bits after the step",
        at_most(0.02),
        control=measure.mean("before", "fraction == 0.9"),
        source="prior",
        where="Demircigil et al. 2017, whose theorem says every bit of every pattern, see OLS-17.c",
        paper_value=r"error $\to0$",
        unit="share of bits",
    ),
    statistic(
        "OLS-17.c",
        r"With $F=e^u$, at half of the exponent, $K=e^{0.5\alpha N}$, one step from 10 % of flipped bits repairs every bit of "
        r"every pattern, for $N=30$, $50$ and $70$.",
        OneStepRetrieval,
        measure.share("all_repaired", "fraction == 0.5", unit=["N", "replicate"]),
        "share of memories",
        at_least(0.9),
        control=measure.share("before == 0", "fraction == 0.5", unit=["N", "replicate"]),
        source="prior",
        where=r"Demircigil et al. 2017: below $\alpha$ the share tends to 1 as $N$ grows",
        paper_value=r"share $\to1$",
        unit="share of memories",
        horizon="$N=70$, 627 patterns",
    ),
    statistic(
        "OLS-15.g",
        r"At the typical capacity, $K=0.02\cdot2^N$ patterns, one step of the flip rule of $F=e^u$ from a pattern with one "
        r"wrong bit leaves more wrong bits than it was given, for $N=14$ and $16$.",
        Steps,
        measure.mean(
            "wrong", "load == 'typical' and flips == 1 and rule == 'flip' and N >= 14", by=["N"], decides=measure.lowest
        ),
        "wrong bits per pattern after the step, where one was wrong before, at both sizes",
        at_least(1.05),
        control=measure.mean(
            "wrong",
            "load == 'typical' and flips == 1 and rule == 'nothing' and N >= 14",
            by=["N"],
            decides=measure.lowest,
        ),
        where="stability is not memory",
        unit="wrong bits",
    ),
    statistic(
        "OLS-15.h",
        r"With the sign of softmax attention's own step ($\beta=1$) in place of the flip rule, all patterns that we tried keep all "
        r"signs at $K=2^{3N/4}$, beyond $2^{N/2}$, and at $K=0.02\cdot2^N$ fewer than half of the wrong bits are left, for $N$ "
        r"from 10 to 16.",
        Steps,
        keeps_and_repairs("softmax"),
        "share of memories that keep all patterns that are tried at the larger load, and on average leave less than half a "
        "wrong bit of one at the smaller",
        at_least(0.9),
        control=keeps_and_repairs("nothing"),  # keeps all, repairs nothing
        where="the limit $2^{N/2}$ is the flip rule's; at the larger load the step repairs little, as the page shows",
        unit="share of memories",
    ),
)
