"""TE-10, 11 and E3: identities of selection, its limits, recipes as traits, and trained populations. Criteria and
expected verdicts were written before the run, unless a claim says otherwise."""

import pandas as pd

from derived.lab import stats
from derived.lab.claims import (
    RECORDED,
    at_least,
    at_most,
    bound,
    identity,
    refuted,
    reported,
    statistic,
    within,
)
from derived.lab.measure import by_draw, chosen, farthest_from, largest, power, share, smallest, worst
from derived.lab.stats import Estimate

from ..experiments.selection import Drift, Population, Price, Quasispecies, Recipes, Sampling


def selected_less_shuffled(rows: pd.DataFrame, strength: float, column: str = "selection") -> Estimate:
    """The change of the mean risk over all generations with dealt-out fitness less that with true fitness, replicate
    by replicate."""
    some = chosen(rows, f"strength == {strength}")
    total = by_draw(some[column], some, ["replicate", "arm"]).sum().unstack()
    return stats.mean(total["shuffled"] - total["selected"])


def final_difference(rows: pd.DataFrame, strength: float) -> Estimate:
    """The mean risk after the last generation with dealt-out fitness less that with true fitness."""
    last = chosen(rows, f"strength == {strength} and generation == generation.max()")
    after = last.assign(risk=last.eval("risk + selection + development + mutation"))
    wide = after.pivot(index="replicate", columns="arm", values="risk")
    return stats.mean(wide["shuffled"] - wide["selected"])


def drifted_there(rows: pd.DataFrame) -> Estimate:
    """The share of neutral simulations that reach the published mean, in the experiment where it is larger."""
    each = [share("reached", f"arm == 'neutral' and published == '{name}'", unit=()) for name in ("exp 6", "exp 7")]
    return max((one(rows) for one in each), key=lambda found: found.value)


FINAL = "mean risk after the last generation, control less selected, replicate by replicate"
WHERE = (
    "one family of generated languages; fitness and final risk on the same held-out texts; "
    "a pilot at another seed had been seen"
)
RISK = {"unit": "nats", "judged_at": RECORDED}

CLAIMS = (
    identity(
        "TE-10.a",
        r"Price's equation: the mean of a trait changes from parents to offspring by $\mathrm{Cov}(f,z)/\bar f+\mathbb E[f\,\delta z]/\bar f$.",
        Price,
        worst(),
        source="prior",
        where="imported from the companion paper",
    ),
    statistic(
        "TE-10.b",
        "The realised selection change of a population of 20 lies within 1.96 standard deviations of its expectation in 95 % of generations, and just as often if fitness is noise.",
        Sampling,
        share("covered", unit=(), by=["fitness"], decides=farthest_from(0.95)),
        "share covered, the farther of two fitnesses",
        within(0.95, 0.01),
        unit="share",
        where="Figure 3, right: residuals consistent with Wright–Fisher sampling; so they are, whatever fitness is",
        paper_value="coverage .96, rms z 1.031",
    ),
    statistic(
        "TE-10.c",
        r"For small mutation the shares of the quasispecies beside the fittest code are $\varepsilon f^*L(p^*,p)/(f^*-f(p))$, with a relative error of first order in $\varepsilon$.",
        Quasispecies,
        power("error", "epsilon", "case == 'one optimum' and type == 0", unit=["instance"]),
        r"slope of the largest relative error in $\varepsilon$, logarithms",
        within(1, 0.05),
        unit="exponent",
        source="prior",
        where="imported from the companion paper",
    ),
    refuted(
        "TE-10.d",
        "Selection on loss alone ends at the quotient: with rare mutation, finer codes of no excess keep less than one in a hundred.",
        Quasispecies,
        largest("share", "case == 'planted' and excess == 0 and not quotient and epsilon == epsilon.min()"),
        "a finer code with a share",
        at_most(0.01),
        unit="share",
        where="a reading of Propositions 43 and 44 with Theorem 50",
    ),
    refuted(
        "TE-11.a",
        "If within each background the excess falls as the mixing share rises, then selection never lowers the mean mixing share.",
        Recipes,
        smallest("change", "case == 'printed'"),
        "a change of the mean share",
        at_least(0),
        unit="change of the share",
        source="paper",
        where="Proposition 75 (b)",
        plain="Selection favours recipes with more of the second ecology whenever that lowers their loss.",
    ),
    bound(
        "TE-11.b",
        "If moreover the mixing share and the background are independent, then selection never lowers the mean mixing share.",
        Recipes,
        worst(lambda rows: (-rows["covariance"]).clip(lower=0), where="case == 'independent'"),
        "te-recipe",
        quantity="largest fall of fitness times share over rounding",
        amends="TE-11.a",
    ),
    reported(
        "TE-11.c",
        "With equal fitness, drift alone takes the mean share to the published final value or beyond in some runs.",
        Drift,
        drifted_there,
        "share of runs",
        where="Figure 4: two published recipe populations, one run each without a neutral control",
        judged_at=("ci",),
    ),
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
    reported(
        "TE-E3.c",
        "What drawing parents by $e^{-R}$ takes off the mean risk over a run, less what the dealt-out control takes off.",
        Population,
        lambda rows: selected_less_shuffled(rows, 1.0),
        unit="nats",
        where="its mean is positive for any risks that differ, by Price's equation: only its size says something",
        paper_value=".06 to .11 in a run, without a control",
        judged_at=RECORDED,
    ),
)
