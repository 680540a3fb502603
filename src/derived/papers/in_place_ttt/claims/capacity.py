"""IPT-8.b and 8.c: the noise that an expectation hides, and how many pairs a memory holds.

Criteria and expected verdicts were written before the recorded runs, unless a claim says otherwise.
"""

from derived.lab import measure
from derived.lab.claims import statistic, within
from derived.lab.measure import farthest_from

from ..experiments.capacity import Capacity, Noise

CLAIMS = (
    statistic(
        "IPT-8.b",
        r"The noise of $N$ unrelated pairs on a logit is $\eta\sqrt{N/(dh)}$ for a unit query and unit embeddings in random directions.",
        Noise,
        measure.mean("std / theory", by=["N", "h"], decides=farthest_from(1)),
        "noise over the closed form, the case farthest from it",
        within(1, 0.15),
        unit="of the closed form",
        control=measure.mean(
            "std * h / N", by=["N", "h"], decides=farthest_from(1)
        ),  # forgets that noise adds in squares
    ),
    statistic(
        "IPT-8.c",
        r"With $V$ tokens, from 8 to 4096, and widths $d$ of 32 to 128 a memory of $d$ by $h$ numbers answers half of the questions right at $h/(a_V^2(1/d+1/V))$ pairs, to a quarter.",
        Capacity,
        measure.mean("half / theory", "point == 0", by=["d", "h", "V"], decides=farthest_from(1)),
        "pairs at half of the answers over the formula, the size farthest from it",
        within(1, 0.25),
        unit="of the formula",
        control=measure.mean("half / rule", "point == 0", by=["d", "h", "V"], decides=farthest_from(1)),
    ),
)
