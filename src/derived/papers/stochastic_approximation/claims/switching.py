"""SA-11: a small transformer across switches. Criteria and expected verdicts were written before the recorded run.

A pilot of four networks of another seed, and runs of eight and twenty-four whose lives are not judged, had been seen.
"""

import math

import pandas as pd

from derived.lab import measure, stats
from derived.lab.claims import RECORDED, at_least, statistic
from derived.lab.stats import Estimate

from ..experiments.switching import COINS, Switches

FACTS = {"judged_at": RECORDED, "unit": "nats"}
SMALL, LARGE = 1e-3, 1e-1  # the two steps that are compared
LIVES = "the second half of lives of 128,000 tokens"


def trade(rows: pd.DataFrame) -> Estimate:
    """What the small step loses on the coin that is heard, and what the large one loses on the other coin, each against
    the other step and paired by model: of both differences in both arms, judged jointly, the least."""
    some = measure.chosen(rows, "part == 'test'")
    coins = {name: measure.by_draw(some[name], some, ["rate", "arm", "model"]) for name in ("current", "other")}
    means = pd.DataFrame({name: each.mean() for name, each in coins.items()})
    small, large = means.loc[SMALL], means.loc[LARGE]
    losses = (small["current"] - large["current"], large["other"] - small["other"])
    found = [each for loss in losses for _, each in loss.groupby("arm")]
    level = 1 - (1 - stats.LEVEL) / len(found)
    return measure.lowest([stats.mean(each, level) for each in found])


def guess() -> float:
    """The excess of an even guess, the same on both coins."""
    return math.log(2) + sum(p * math.log(p) for p in COINS.matrices[0][0])


def relief(arm: str, step: str = "chosen", part: str = "test") -> measure.Measure:
    """What an arm saves of the mean excess on both coins, at its step or at another: against the network that sees no
    past, at its step and paired by model, and against an even guess, judged jointly; the lesser."""

    def saved(rows: pd.DataFrame) -> Estimate:
        arms = f"(arm == '{arm}' and ({step}) or arm == 'blind' and chosen)"
        some = measure.chosen(rows, f"part == '{part}' and {arms}")
        both = measure.by_draw((some["current"] + some["other"]) / 2, some, ["arm", "model"]).mean()
        level = 1 - (1 - stats.LEVEL) / 2
        return measure.lowest([stats.mean(each - both[arm], level) for each in (both["blind"], guess())])

    return saved


def hardly_larger(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the small step, and those of the next one that was tried in the place of the large one's."""
    others = rows[rows["rate"] != LARGE]
    following = others.loc[others["rate"] > SMALL, "rate"].min()
    return others.assign(rate=others["rate"].replace({following: LARGE}))


CLAIMS = (
    statistic(
        "SA-11.f",
        r"Trained at constant step along one stream whose coin changes, a small transformer is worse at $a=0.001$ than at $a=0.1$ on the coin that is heard, and better on the other, on single tokens and with a context of 32 tokens.",
        Switches,
        trade,
        "the smallest of four differences in excess loss over paired networks: without and with a context, the small step's less the large one's on the coin that is heard, and the large step's less the small one's on the other coin",
        at_least(0),
        **FACTS,
        where="an even guess, which learns nothing, lies at the far end of the same trade and would pass in the place of the small step",
        horizon=LIVES,
        control=lambda rows: trade(hardly_larger(rows)),
    ),
    statistic(
        "SA-11.g",
        r"Along one stream whose coin changes, the network that sees a context of 32 tokens serves both coins better than the same network on single tokens, each at the best of twelve constant steps, and than an even guess.",
        Switches,
        relief("context"),
        "mean excess loss on both coins without a context, and that of an even guess, less that with a context, over paired networks, the lesser",
        at_least(0.05),
        **FACTS,
        horizon=LIVES,
        control=relief("context", "rate == rate.min()", "first"),  # it has hardly learned; trained on, it would pass
    ),
)
