"""SA-11: a small transformer across switches. Criteria and expected verdicts were written before the recorded run.

A pilot of four networks of another seed, whose rows were thrown away, had fixed the size and shown the directions.
"""

import pandas as pd

from derived.lab import measure, stats
from derived.lab.claims import RECORDED, at_least, holds, statistic
from derived.lab.stats import Estimate

from ..experiments.switching import Switches

FACTS = {"judged_at": RECORDED, "expected": holds("cpu"), "unit": "nats"}
SMALL, LARGE = 1e-3, 1e-1  # the two steps that are compared


def trade(arm: str) -> measure.Measure:
    """What the small step loses on the coin that is heard, and what the large one loses on the other coin, each against
    the other step and paired by model: the difference that reaches lowest, both judged jointly."""

    def lowest(rows: pd.DataFrame) -> Estimate:
        some = measure.chosen(rows, f"part == 'test' and arm == '{arm}'")
        found = some.groupby(["rate", "model"])[["current", "other"]].mean()
        small, large = found.loc[SMALL], found.loc[LARGE]
        level = 1 - (1 - stats.LEVEL) / 2
        losses = (small["current"] - large["current"], large["other"] - small["other"])
        return measure.lowest([stats.mean(each, level) for each in losses])

    return lowest


def relief(rows: pd.DataFrame) -> Estimate:
    """Mean excess on both coins of the network that sees no past less that of the one that does, paired by model, each
    at the step of its arm."""
    some = measure.chosen(rows, "part == 'test' and chosen")
    both = some.assign(both=(some["current"] + some["other"]) / 2).groupby(["arm", "model"])["both"].mean()
    return stats.mean(both["blind"] - both["context"])


TWO = "the smaller of two differences over eight paired networks: the small step's excess on the coin that is heard over the large one's, and the large step's excess on the other coin over the small one's"

CLAIMS = (
    statistic(
        "SA-11.f",
        r"Trained at constant step along one stream whose coin changes, a network that sees single tokens is rigid at $a=0.001$ and forgets at $a=0.1$: each step is worse than the other by 0.05 nats, the small one on the coin that is heard, the large one on the other.",
        Switches,
        trade("blind"),
        TWO,
        at_least(0.05),
        **FACTS,
    ),
    statistic(
        "SA-11.g",
        r"Trained at constant step along one stream whose coin changes, a network that sees a context of 32 tokens keeps the trade-off: $a=0.001$ is worse than $a=0.1$ on the coin that is heard, and better on the other.",
        Switches,
        trade("context"),
        TWO,
        at_least(0),
        **FACTS,
    ),
    statistic(
        "SA-11.h",
        r"Along one stream whose coin changes, the network that sees a context of 32 tokens serves both coins better than the same network on single tokens, each at its best constant step.",
        Switches,
        relief,
        "mean excess on both coins without a context less that with one, eight paired networks",
        at_least(0.05),
        **FACTS,
        plain="With a context in which the world shows, one constant step serves changing worlds that it must otherwise forget.",
    ),
)
