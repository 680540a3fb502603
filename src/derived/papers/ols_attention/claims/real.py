"""The ledger of real data and weights: a layer made from one stretch of time reads the next (OLS-8)."""

from dataclasses import replace

import numpy as np
import pandas as pd

from derived.lab import measure
from derived.lab.claims import RECORDED, at_least, computed, statistic
from derived.lab.stats import Estimate

from ..experiments.real import Eras, Quarters


def told_by_moment(order: str) -> measure.Measure:
    """The rank correlation over quarters of the layer's error with |c^2 - 1|, c^2 the growth of the second moment."""

    def correlation(rows: pd.DataFrame) -> Estimate:
        some = measure.chosen(rows, f"method == 'self' and order == '{order}'")
        change = measure.values(some, "abs(growth - 1)")
        return Estimate(float(measure.values(some, "error").corr(change, method="spearman")), len(some))

    return correlation


def times_as_far_off(order: str) -> measure.Measure:
    """The frozen layer's error over the refitted one's: geometric mean over eras."""
    logs = measure.mean("log(frozen / refitted)", f"order == '{order}'", unit=["era"])

    def ratio(rows: pd.DataFrame) -> Estimate:
        found = logs(rows)
        value, low, high = (float(np.exp(each)) for each in (found.value, found.low, found.high))
        return replace(found, value=value, low=low, high=high, error=None)

    return ratio


CLAIMS = (
    computed(
        "OLS-8.b",
        "A layer made from a thousand days of the S&P 500 to forecast absolute returns reads one later quarter at a time: the "
        "more the second moment has changed, $|c^2-1|$, the farther off it is.",
        Quarters,
        told_by_moment("in order"),
        "rank correlation over quarters of the error of the layer that attends to the quarter with $|c^2-1|$",
        at_least(0.9),
        control=told_by_moment("windows"),  # bursts and years mixed: a quarter is a small batch
        where="OLS-6.a on data: a layer made from responses dealt by chance passes, too; one path, whose quarters are not independent",
        unit="rank correlation",
        made_of="real data",
    ),
    statistic(
        "OLS-8.c",
        "A layer made from vectors of sentences, by a trained MiniLM, in fourteen State of the Union speeches in a row reads a "
        "speech of the fourteen after them: its relative error is at least a tenth larger than that of a layer made from "
        "those fourteen, each against its own least-squares coefficients.",
        Eras,
        times_as_far_off("in order"),
        "error of frozen over that of refitted weights, geometric mean, by era of fourteen speeches, each of which has one "
        "frozen layer",
        at_least(1.1),
        control=times_as_far_off("shuffled"),  # speeches dealt to the eras by chance
        where="OLS-6.a on trained vectors, 16 principal axes; a pilot on six novels fixed the sizes but for the eras; neither "
        "layer sees another speech of the same president, and there are no more speeches",
        unit="ratio of errors",
        judged_at=RECORDED,
        made_of="real weights",
    ),
)
