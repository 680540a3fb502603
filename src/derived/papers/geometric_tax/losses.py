"""Seven other losses on the same tokens: which of them take the jump away (GT-7.m)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.claims import RECORDED, at_most, statistic
from derived.lab.measure import Measure, highest
from derived.lab.plot import BLUE, COLOURS, INK, beside, largest, panel_label, plain_log

from .fits import CI, CPU, Fits, split
from .measures import over_cases, ratio
from .trained import ends, jump

#: Arm and width of the blur, in bins of 64, of each loss.
LOSSES = MappingProxyType(
    {
        "hard": ("ce", 0),
        "smoothed": ("smoothed", 4),
        "two-hot": ("twohot", 0),
        "blur of 1 bin": ("blurred", 1),
        "blur of 4 bins": ("blurred", 4),
        "blur of 8 bins": ("blurred", 8),
        "cumulative": ("cumulative", 0),
        "ordinal": ("ordinal", 0),
        "rounded value": ("rounded", 0),
        "value": ("scalar", 0),
    }
)
DISTANCES = ("blur of 8 bins", "cumulative", "ordinal", "rounded value")


@dataclass(frozen=True, kw_only=True)
class Losses(Fits):
    """GT-7.m: Lorenz paths, one encoder, ten losses: labels hard, smoothed (soft without order), two-hot (the two centres
    around the value), blurred by 1, 4 and 8 bins; the distance of cumulative distributions; an ordinal logistic; the
    squared error of the rounded value and of the value. Rows: loss, those of ``Fits``, and J, V, T at the end.
    """

    struck: int = 300
    strikes: int = 4

    tiers: ClassVar = {
        "ci": {**CI, "struck": 40, "rates": (1e-2,)},
        "cpu": {**CPU, "networks": 8, "steps": 1000, "rates": (0.01, 0.016, 0.025, 0.04), "search": 1},
    }

    def conditions(self) -> list[dict]:
        return [{"loss": loss} for loss in LOSSES]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        arm, bins = LOSSES[condition["loss"]]
        size = replace(self, blur=bins / 64) if bins else self
        parts = lambda one, found: split(one, found, "lorenz", self.struck, self.strikes)  # noqa: E731
        return size.fitted(arm=arm, also=parts, seed=seed + 3, device=device, dtype=dtype)


# Claims: criteria and expected verdicts were written before the run.


def over_hard(losses: Sequence[str]) -> Measure:
    """J / T over that of hard labels, the largest of some losses, judged jointly."""

    def logs(rows: pd.DataFrame, case: str) -> pd.Series:
        arms = rows.rename(columns={"loss": "arm"})
        return jump(arms, case, "J == J") - jump(arms, "hard", "J == J")

    measure = over_cases(logs, losses, highest)
    return lambda rows: ratio(measure(rows))


CLAIMS = (
    statistic(
        "GT-7.m",
        "On Lorenz paths each of four losses that know how far apart two bins are, a blur of eight bins, the distance of cumulative distributions, an ordinal logistic and the squared error of the rounded value, leaves at most half of the jump $J/T$ of hard labels.",
        Losses,
        over_hard(DISTANCES),
        "$J/T$ over that under hard labels, the largest of four losses",
        at_most(0.5),
        where="one network chose the rate of each loss, among four a factor of 1.6 apart; narrower blurs and two-hot labels are shown and not judged",
        unit="times",
        judged_at=RECORDED,
        control=over_hard(("smoothed",)),
    ),
)

EXPERIMENTS = (Losses,)


# Figures: rows in, a figure with its alt text as label out.
#
# mark                   meaning
# filled, open marker    recorded, live; large points are geometric means, small ones single networks


def losses(rows: pd.DataFrame) -> Figure:
    """J/T under each loss, the largest at the top; rows of ``Losses``."""
    table = ends(largest(rows), ("loss",))
    fill = bool(table["recorded"].iloc[0])
    means = np.exp(np.log(table["jump"]).groupby(table["loss"]).mean()).sort_values()
    figure, ax = plt.subplots(figsize=(5.6, 3.6))
    for y, (loss, mean) in enumerate(means.items()):
        color = COLOURS[1] if loss in ("hard", "smoothed") else BLUE
        values = table.loc[table["loss"] == loss, "jump"]
        ax.plot(values, [y] * len(values), ".", color=color, alpha=0.3, markersize=4)
        ax.plot(mean, y, "o", color=color, markersize=7, markerfacecolor=color if fill else "none")
        beside(ax, values.max(), y, f"{mean:.2g}", INK, (7, 0), fontsize=9)
    ax.set(xscale="log", yticks=range(len(means)), yticklabels=means.index, xlabel="jump $J/T$ of one wrong token")
    low, high = table["jump"].min(), table["jump"].max()
    ax.set_xlim(low / 1.2, 1.5 * high)
    plain_log(ax.xaxis, [tick for tick in (0.5, 1, 2, 5, 10, 20) if low / 1.2 < tick < 1.5 * high])
    panel_label(ax, "Losses that know distances calm the states")
    said = ", ".join(f"{loss} {mean:.2g}" for loss, mean in means.items())
    figure.set_label(f"Jump of one wrong token under ten losses, on a logarithmic axis: {said}.")
    return figure
