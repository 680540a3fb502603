"""SK-7 and SK-9: the universal approximator, rebuilt from blocks. Written before the run."""

import numpy as np
import pandas as pd

from derived.lab import measure
from derived.lab.claims import at_least, computed, on_page
from derived.lab.stats import Estimate

from ..experiments.approximation import Blocks


def exponent(column: str = "w1") -> measure.Measure:
    """e in mean W_1 ~ M^-e from the coarsest blocks to the finest, the least over the targets."""

    def least(rows: pd.DataFrame) -> Estimate:
        means = rows.dropna(subset=[column]).groupby(["target", "m"])[column].mean().unstack("m")
        few, many = means.columns.min(), means.columns.max()
        return measure.smallest("e")(pd.DataFrame({"e": np.log(means[few] / means[many]) / np.log(many / few)}))

    return least


BOUNDS = (
    on_page(
        "SK-7.a",
        plain="Every continuous rule that couples two texts is approximated, however well, by normalising the rows and columns of one table of scores, which continuous maps compute.",
        source="paper",
        where="abstract of v1 and v3; bound and proof ours; that a transformer can compute the scores is cited (Furuya et al. 2025), not proved here",
    ),
    on_page("SK-7.c"),
    on_page(
        "SK-9.a",
        plain="Every continuous rule that gives each token a distribution over its context is approximated, however well, by normalising the rows of one table of scores, which continuous maps compute.",
        source="paper",
        where="abstract of v3; bound and proof ours; that a transformer can compute the scores is cited (Furuya et al. 2025), not proved here",
    ),
    on_page("SK-9.b"),
)

FALL = computed(
    "SK-7.b",
    r"From $M=2$ to $M=16$ the distance from the target falls like $M^{-e}$ with $e$ at least $\frac34$, for every target tried.",
    Blocks,
    exponent(),
    r"$e$ by the mean $W_1$ at $M=2$ over that at $M=16$, the least of three targets",
    at_least(0.75),
    unit="exponent",
    where="the bound falls like $1/M$, but for its floor; the exponent is that between two sizes, no power law: the steps between fall unevenly, and texts have 16 tokens",
    horizon="$M=16$, not tried further",
    control=exponent("alone"),
)
