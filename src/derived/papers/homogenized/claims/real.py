"""Claims on real shapes and real weights: the clock of one shared layer, an untrained model, and a trained one (HT-24).

Evidence, criterion and expected verdicts were written before the run; a pilot of other draws fixed the sizes.
"""

import pandas as pd

from derived.lab.claims import RECORDED, at_least, at_most, statistic, within
from derived.lab.measure import Measure, by_draw, chosen, mean, power, values
from derived.lab.stats import Estimate
from derived.lab.stats import mean as interval

from ..experiments.real import OneLayer, Reactions, Sentences


def rise_beyond(one: tuple[str, str], other: tuple[str, str]) -> Measure:
    """How much further the mean overlap of a reaction rises in one arm than in the other: each (weights, condition)."""

    def rise(rows: pd.DataFrame, weights: str, where: str) -> pd.Series:
        arm = chosen(rows, f"weights == '{weights}' and {where}")
        table = by_draw(values(arm, "m"), arm, ["replicate", "layer"]).mean().unstack("layer")
        return table[table.columns.max()] - table[table.columns.min()]

    def measure(rows: pd.DataFrame) -> Estimate:
        return interval(rise(rows, *one) - rise(rows, *other))

    return measure


def motionless(rows: pd.DataFrame) -> Estimate:
    """As if the tokens had not moved: their overlap at the start less the recurrence at the end."""
    start, end = (chosen(rows, f"weights == 'fresh' and layer == layer.{end}()") for end in ("min", "max"))
    return interval(values(start, "m").to_numpy() - values(end, "m_theory").to_numpy())


ALL, SOME, OTHERS = "draw >= 0", "draw % 2 == 0", "draw % 2 == 1"

CLAIMS = (
    statistic(
        "HT-24.a",
        r"Where one layer is drawn once and used for all passes, the passes to overlap $\frac12$ grow like $\eta^{-1}$, and "
        r"not like the $\eta^{-2}$ of fresh layers.",
        OneLayer,
        power("layers", "eta", "weights == 'shared'"),
        r"$n=8$, $\lambda=1$, slope of ln passes in $\ln\eta$ with one shared layer",
        within(-1, 0.15),
        unit=r"power of $\eta$",
        control=power("layers", "eta", "weights == 'fresh'"),
        horizon=r"$\eta$ from $0.2$ to $0.05$",
    ),
    statistic(
        "HT-24.b",
        r"Before its training MiniLM moves its tokens as the clock says: after six layers the mean overlap of a passage is "
        r"that of the recurrence at infinite width, which has no free constant.",
        Sentences,
        mean("m - m_theory", "weights == 'fresh' and layer == layer.max()"),
        "passages of novels, mean overlap after the last layer less the recurrence",
        within(0, 0.012),
        unit="mean overlap",
        where="half of a block is not seen: without the MLP the recurrence would pass, too",
        judged_at=RECORDED,
        control=motionless,
        made_of="real data",
    ),
    statistic(
        "HT-24.c",
        r"Twelve passes through the trained layer of a real ALBERT bring the tokens of a reaction less near to each other "
        r"than twelve passes through the same layer before its training, from the same tokens.",
        Reactions,
        rise_beyond(("trained", ALL), ("grafted", ALL)),
        "rise of the mean overlap, trained less untrained layer, both from the trained tokens",
        at_most(-0.1),
        unit="mean overlap",
        where="five reactions from the tests of its own package, one trained model",
        control=rise_beyond(("grafted", SOME), ("grafted", OTHERS)),
        made_of="real weights",
        judged_at=RECORDED,
        scale={"cpu": "ours"},
    ),
    statistic(
        "HT-24.d",
        r"Untrained, in the shape of a real ALBERT, one layer used twelve times brings the tokens nearer to each other than "
        r"twelve layers, each drawn anew.",
        Reactions,
        rise_beyond(("shared", ALL), ("fresh", ALL)),
        "rise of the mean overlap, one shared layer less fresh layers",
        at_least(0.1),
        unit="mean overlap",
        control=rise_beyond(("fresh", SOME), ("fresh", OTHERS)),
        made_of="real data",
        judged_at=RECORDED,
        scale={"cpu": "ours"},
    ),
)
