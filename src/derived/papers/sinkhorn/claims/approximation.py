"""SK-7 and SK-9: the universal approximator, rebuilt from blocks. Written before the run."""

import pandas as pd

from derived.lab import measure
from derived.lab.claims import at_least, bound, computed
from derived.lab.stats import Estimate

from ..experiments.approximation import Blocks, ConditionalBlocks


def fall(rows: pd.DataFrame) -> Estimate:
    """Mean W_1 at the coarsest blocks over that at the finest, the least over the targets."""
    means = rows.query("w1 == w1").groupby(["target", "m"])["w1"].mean().unstack("m")
    return measure.smallest("fall")(pd.DataFrame({"fall": means[means.columns.min()] / means[means.columns.max()]}))


COUPLINGS = (
    bound(
        "SK-7.a",
        r"Every continuous system of couplings is approximated uniformly: the Sinkhorn plan of the kernel with $M+1$ hats a side is within $\sqrt2\,(\frac2M+t+\sqrt{(M+1)\tau})$ of its target in $W_1$.",
        Blocks,
        measure.worst("w1", "bound", "tau < 1e-5"),
        "sk-universal",
        r"largest $W_1$, by linear programs, over the bound, for three targets and $M=2$ to $16$",
        plain="Every continuous rule that couples two texts is approximated, however well, by normalising the rows and columns of one table of scores.",
        source="paper",
        where="abstract of v1 and v3; bound and proof ours; that a transformer can compute the scores is cited (Furuya et al. 2025), not proved here",
    ),
    computed(
        "SK-7.b",
        r"The distance from the target falls at least fourfold from $M=2$ to $M=16$, for every target tried.",
        Blocks,
        fall,
        r"mean $W_1$ at $M=2$ over that at $M=16$, the least of three targets",
        at_least(4),
        unit="times",
    ),
    bound(
        "SK-7.c",
        r"Making the kernel continuous by $\tau$ moves the plan by ${\rm TV}\le\sqrt{(M+1)\tau}$.",
        Blocks,
        measure.worst("tv", "tv_bound"),
        "sk-repair",
    ),
)

CONDITIONAL = (
    bound(
        "SK-9.a",
        r"Every continuous system of conditional laws on the context is approximated uniformly by softmax attention: a row of the block kernel is within $\frac2M+t+\ell$ of its target in $W_1$, with $\ell$ the mass that $\tau$ loses.",
        ConditionalBlocks,
        measure.worst("w1", "bound"),
        "sk-conditional",
        plain="Every continuous rule that gives each token a law over its context is approximated, however well, by normalising the rows of one table of scores.",
        source="paper",
        where="abstract of v3; bound and proof ours; that a transformer can compute the scores is cited (Furuya et al. 2025), not proved here",
    ),
    bound(
        "SK-9.b",
        r"The law must live on the context: no law on the tokens is nearer to it in $W_1$ than its points are from the text in the mean, and softmax attention gives such a law.",
        ConditionalBlocks,
        measure.most_of(
            measure.worst("predicted", "outside"), measure.worst("abs(least - predicted)", "outside_bound")
        ),
        "sk-support",
        r"mean distance over the $W_1$ of softmax attention, and its gap to the least $W_1$ by a linear program over the solver's $10^{-7}$",
    ),
)
