"""TE-13: what networks separate by themselves, and what they reach where a code is imposed. Criteria and expected
verdicts were written before the run, unless a claim says otherwise."""

import pandas as pd

from derived.lab.claims import at_least, at_most, computed
from derived.lab.measure import largest, smallest
from derived.lab.stats import Estimate

from ..experiments.imposed import Frozen, Imposed


def adapted_beyond_fixed(rows: pd.DataFrame) -> Estimate:
    """The least separated pair of adapted networks; less than nothing where a fixed one parts equal texts by more than
    rounding."""
    fixed = largest("l1", "network != 'adapted' and observed == 'same'")(rows)
    return smallest("l1", "network == 'adapted'")(rows) if fixed.value < 1e-12 else Estimate(-fixed.value, fixed.n)


FIXED_ON_EQUAL_TEXTS = smallest("l1", "network != 'adapted' and observed == 'same'")

CLAIMS = (
    computed(
        "TE-13.b",
        "Untrained networks of random weights, dense or with experts, tell apart any two of eight observations in some of twenty contexts: their own code has no excess, whatever the task.",
        Frozen,
        smallest("l1", "observed == 'distinct'"),
        "least separated pair, by the $L_1$ distance of outputs in its best context",
        at_least(1e-6),
        unit="L1 distance",
        control=FIXED_ON_EQUAL_TEXTS,
        where="after Theorem 30, which asks for exact equality of outputs",
    ),
    computed(
        "TE-13.c",
        "Two worlds that show a fixed network the same text are one to it in every context, dense or with experts; one gradient step per world tells them apart.",
        Frozen,
        adapted_beyond_fixed,
        "least separated pair of adapted networks, if fixed ones separate none",
        at_least(1e-6),
        unit="L1 distance",
        source="paper",
        where="Propositions 17 to 28",
        control=FIXED_ON_EQUAL_TEXTS,
        scale={},
    ),
    computed(
        "TE-13.d",
        "A transformer that sees a context and the cell of the world, trained on the exact expected loss, reaches $L^*(p)$ for each of the fifteen codes of four worlds.",
        Imposed,
        largest("abs(loss - target)", "arm == 'imposed'"),
        "largest difference of trained loss and $L^*(p)$",
        at_most(2e-3),
        unit="nats",
        control=largest("abs(loss - target)", "arm == 'scrambled'"),
        scale={"gpu": "ours"},
    ),
    computed(
        "TE-13.e",
        "A reader without attention sees the cell alone: trained, its loss is $L^*(p)$ plus the decoding gap $I(Y;C|X)$. One whose cell token is drawn at random reaches the loss of the constant code.",
        Imposed,
        largest("abs(loss - reach)", "arm != 'imposed'"),
        "largest difference of trained loss and the least that the reader allows",
        at_most(2e-3),
        unit="nats",
        source="paper",
        control=largest("abs(loss - target)", "arm != 'imposed'"),
        where="Definition 39 and Proposition 40, on an example of ours",
        scale={"gpu": "ours"},
    ),
)
