"""Sentences of the paper that a small exact witness refutes (TE-7, 8, 11): each row is by how much one is missed.

erratum    sentence                                                        gap
TE-7.a     mixing at any share, one included, merges no separated pair     pairs that are merged
TE-7.c     above the share of the distance the merge does not pay          by how much it is the better code, nats
TE-8.c     a code without excess keeps nothing but the classes apart       pairs of equal worlds that it keeps apart
TE-11.a    a recipe that helps in each background does not become rarer    by how much its mean share falls
"""

import numpy as np
import pandas as pd

from derived.lab.claims import at_most, refuted
from derived.lab.experiment import Experiment
from derived.lab.measure import largest

from .model.ecology import FREE, FiniteEcology, mix
from .model.selection import price_terms, recipe_counterexample

HALF = [0.5, 0.5]
BLIND = FiniteEcology(HALF, [1.0], [[HALF], [HALF]])
COINS = FiniteEcology(HALF, [1.0], [[[0.9, 0.1]], [[0.1, 0.9]]])
SURE = FiniteEcology(HALF, [1.0], [[[1.0, 0.0]], [[0.0, 1.0]]])


class Slips(Experiment):
    """Rows: erratum, gap: a sentence is refuted where the gap exceeds what it allows, which is zero."""

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        found = {"TE-7.a": merged_by_mixing(), "TE-7.c": merge_that_pays(), "TE-8.c": kept_apart(), "TE-11.a": rarer()}
        return pd.DataFrame([{"erratum": name, "gap": gap} for name, gap in found.items()])


def merged_by_mixing() -> int:
    """At share one the contexts that told two coins apart are gone."""
    return int(COINS.quotient().max() - mix(COINS, BLIND, 1.0).quotient().max())


def squared_distance(ecology: FiniteEcology) -> float:
    """sigma^2 of two worlds: the mean over contexts of half the sum of (sqrt P - sqrt Q)^2."""
    roots = np.sqrt(ecology.laws)
    return float(ecology.contexts @ ((roots[0] - roots[1]) ** 2).sum(axis=-1) / 2)


def merge_that_pays() -> float:
    """The level and price at which both shares are a half for one pair of coins, used for a pair of sure ones: half way
    between their two shares, J of the split code less J of the merged one."""
    whole = [0, 0]
    level, beta = squared_distance(COINS) / 2, COINS.js_excess(whole) / 2 / np.log(2)
    shares = level / squared_distance(SURE), beta * np.log(2) / SURE.js_excess(whole)
    between = mix(BLIND, SURE, sum(shares) / 2)
    resolved = squared_distance(between) > level
    return resolved * (between.objective([0, 1], beta) - between.objective(whole, beta))


def kept_apart() -> int:
    """The code that tells two equal coins apart has no excess."""
    return int(BLIND.js_excess([0, 1]) < FREE)


def rarer() -> float:
    """Four recipes, share and background correlated: one step of selection."""
    recipes = recipe_counterexample()
    return -float(price_terms(np.exp(-recipes.excess), recipes.alpha, shares=recipes.shares).selection)


def _slip(id: str, statement: str, quantity: str, unit: str, where: str, **facts):
    of_it = largest("gap", f"erratum == '{id}'")
    return refuted(id, statement, Slips, of_it, quantity, at_most(0), unit=unit, source="paper", where=where, **facts)


CLAIMS = (
    _slip(
        "TE-7.a",
        r"For every $\alpha\in(0,1]$, mixing in a share $\alpha$ of new contexts merges no two worlds that were separated.",
        "a number of merged pairs",
        "pairs",
        "Proposition 15; a slip that changes nothing: Corollary 48 has the right range",
    ),
    _slip(
        "TE-7.c",
        r"As we read it: once $\alpha>\alpha^*$, the share at which $\sigma^2$ of a pair passes a level, simplicity pressure no longer favours merging the pair.",
        "a loss by keeping the pair apart",
        "nats",
        "comment after Theorem 55, quoted on the page; the level is taken from another pair",
    ),
    _slip(
        "TE-8.c",
        "A code without excess on the training texts preserves all and only the equivalence classes of their ecology.",
        "a number of equal pairs kept apart",
        "pairs",
        'Proposition 46 (a); a slip that changes nothing: "only" needs the least complexity',
    ),
    _slip(
        "TE-11.a",
        "If within each background the excess falls as the mixing share $\\alpha$ rises, then selection never lowers the mean of $\\alpha$.",
        "a fall of the mean share",
        "share of the text",
        "Proposition 75 (b)",
        plain="If, within each background, more of the second ecology lowers the excess, selection never lowers its share.",
    ),
)
