"""SK-7 and SK-9: the universal approximator, rebuilt from blocks. Written before the run."""

import pandas as pd

from derived.lab import measure
from derived.lab.claims import at_least, computed, on_page
from derived.lab.stats import Estimate

from ..experiments.approximation import Blocks


def fall(rows: pd.DataFrame) -> Estimate:
    """Mean W_1 at the coarsest blocks over that at the finest, the least over the targets."""
    means = rows.query("w1 == w1").groupby(["target", "m"])["w1"].mean().unstack("m")
    return measure.smallest("fall")(pd.DataFrame({"fall": means[means.columns.min()] / means[means.columns.max()]}))


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
    r"The distance from the target falls at least fourfold from $M=2$ to $M=16$, for every target tried.",
    Blocks,
    fall,
    r"mean $W_1$ at $M=2$ over that at $M=16$, the least of three targets",
    at_least(4),
    unit="times",
    null="the product coupling knows no blocks: its distance is the same at every $M$, a fall by the factor 1",
)
