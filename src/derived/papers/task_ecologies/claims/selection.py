"""TE-10, 11 and E3: what selection prefers, recipes as traits, and trained populations. TE-10.d and 11 are decided by
the check cells of their statements."""

import pandas as pd

from derived.lab import stats
from derived.lab.claims import RECORDED, at_least, on_page, statistic
from derived.lab.measure import chosen
from derived.lab.stats import Estimate

from ..experiments.selection import Population


def final_difference(rows: pd.DataFrame, strength: float) -> Estimate:
    """The mean risk at the end, on texts that set no fitness, with dealt-out fitness less that with true fitness."""
    last = chosen(rows, f"strength == {strength} and generation == generation.max()")
    wide = last.pivot(index="replicate", columns="arm", values="final")
    return stats.mean(wide["shuffled"] - wide["selected"])


def two_controls(rows: pd.DataFrame) -> Estimate:
    """The same difference of the controls at the two strengths: fitness is dealt out at random in both."""
    last = chosen(rows, "arm == 'shuffled' and generation == generation.max()")
    wide = last.pivot(index="replicate", columns="strength", values="final")
    return stats.mean(wide[1.0] - wide[10.0])


FINAL = (
    "mean risk after the last generation on texts that set no fitness, control less selected, replicate by replicate"
)
WHERE = (
    "generated languages, a family for each replicate; a run on one family had been seen. What matters is what drawing parents takes off in the paper in twelve "
    "generations, 0.0015 in each (tier gpu has fifty, so that the limit is strict there); it was set when the rows had been seen"
)
RISK = {"unit": "nats", "judged_at": RECORDED, "control": two_controls, "matters": 0.018}

CLAIMS = (
    on_page("TE-10.d", where="a reading of Propositions 43 and 44 with Theorem 50"),
    on_page(
        "TE-11.a",
        source="paper",
        where="Proposition 75 (b)",
        plain="Selection favours recipes with more of the second ecology whenever that lowers their loss.",
    ),
    on_page("TE-11.b", amends="TE-11.a"),
    statistic(
        "TE-E3.a",
        "At the end of a run, training and noise included, a population of trained models whose parents were drawn by $e^{-R}$ has a lower mean risk than one whose parents were drawn by the same numbers dealt out at random.",
        Population,
        lambda rows: final_difference(rows, 1.0),
        FINAL,
        at_least(0),
        source="paper",
        where="Figure 3; " + WHERE,
        paper_value="risk 2.934 to 2.690, no control",
        plain="Copying models in proportion to their fitness leaves a population with a lower loss than copying at random.",
        **RISK,
    ),
    statistic(
        "TE-E3.b",
        "With fitness ten times as steep, $e^{-10R}$, the population under selection has a lower mean risk at the end than the control.",
        Population,
        lambda rows: final_difference(rows, 10.0),
        FINAL,
        at_least(0),
        where=WHERE,
        **RISK,
    ),
)
