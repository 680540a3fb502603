"""SK-7 and SK-9: the universal approximator, rebuilt from blocks. Written before the run."""

import pandas as pd

from derived.lab import measure
from derived.lab.claims import at_least, bound, computed, holds
from derived.lab.stats import Estimate

from ..experiments.approximation import Blocks, ConditionalBlocks

BOTH = {"expected": holds("ci", "cpu")}


def fall(rows: pd.DataFrame) -> Estimate:
    """Mean W_1 at the coarsest blocks over that at the finest, the least over the targets."""
    means = rows.query("w1 == w1").groupby(["target", "m"])["w1"].mean().unstack("m")
    return measure.smallest("fall")(pd.DataFrame({"fall": means[means.columns.min()] / means[means.columns.max()]}))


COUPLINGS = (
    bound(
        "SK-7.a",
        r"Every continuous system of couplings is approximated uniformly: the Sinkhorn plan of the kernel of $m+1$ blocks a side is within $\sqrt2\,(\frac2m+t+\sqrt{(m+1)\tau})$ of its target in $W_1$.",
        Blocks,
        measure.worst("w1", "bound", "tau < 1e-5"),
        "sk-universal",
        r"largest $W_1$, by linear programs, over the bound, for three targets and $m=2$ to $16$",
        **BOTH,
        plain="Every continuous rule that couples two texts is approximated, however well, by Sinkhorn attention.",
        source="paper",
        where="abstract of v1 and v3; bound and proof ours",
    ),
    computed(
        "SK-7.b",
        r"The distance from the target falls at least fourfold from $m=2$ to $m=16$, for every target tried.",
        Blocks,
        fall,
        r"mean $W_1$ at $m=2$ over that at $m=16$, the least of three targets",
        at_least(4),
        unit="times",
        **BOTH,
    ),
    bound(
        "SK-7.c",
        r"Making the kernel continuous by $\tau$ moves the plan by ${\rm TV}\le\sqrt{(m+1)\tau}$.",
        Blocks,
        measure.worst("tv", "tv_bound"),
        "sk-repair",
        **BOTH,
    ),
)

CONDITIONAL = (
    bound(
        "SK-9.a",
        r"Every continuous system of conditional laws on the context is approximated uniformly by softmax attention: a row of the block kernel is within $\frac2m+t+\lambda$ of its target in $W_1$.",
        ConditionalBlocks,
        measure.worst("w1", "bound"),
        "sk-conditional",
        **BOTH,
        plain="Every continuous rule that gives each token a law over its context is approximated by softmax attention.",
        source="paper",
        where="abstract of v3; bound and proof ours",
    ),
    bound(
        "SK-9.b",
        r"The law must live on the context: softmax attention stays as far from a law at a point as that point is from the nearest token.",
        ConditionalBlocks,
        measure.worst("outside_bound", "outside"),
        "sk-support",
        r"distance of the nearest token over $W_1$",
        **BOTH,
    ),
)
