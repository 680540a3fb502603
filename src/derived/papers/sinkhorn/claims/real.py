"""SK-21 and SK-17 on trained weights. Criteria and expected verdicts were written before the recorded runs, unless a claim says
otherwise; pilots of other seeds, whose rows were thrown away, had fixed the number of reactions."""

import pandas as pd

from derived.lab import measure, stats
from derived.lab.claims import RECORDED, at_least, reported, statistic
from derived.lab.stats import Estimate

from ..experiments.real import AtomMaps, Sentences


def gain(rows: pd.DataFrame, way: str = "coupling") -> Estimate:
    """Atoms mapped rightly at temperature 1 one way less those by rows and, apart from itself, by the coupling in which
    the atoms that leave must give as much as the others, mechanism by mechanism, the lesser."""
    maps = measure.chosen(rows, "stage == 'maps' and temperature == 1")
    right = maps.pivot_table("right", "mechanism", "way")
    rivals = [other for other in ("rows", "equal") if other != way]
    level = 1 - (1 - stats.LEVEL) / len(rivals)
    return measure.lowest([stats.mean(right[way] - right[other], level) for other in rivals])


def farther(unit: str) -> measure.Measure:
    """The column error of trained attention less that of untrained, mean over heads and layers, by mechanism or passage."""
    where = "stage == 'columns'" if unit == "mechanism" else ""
    return lambda rows: measure.mean("trained - untrained", unit=[unit])(measure.chosen(rows, where))


def columns(id: str, name: str, experiment, unit: str, source: str = "ours"):
    return reported(
        id,
        f"Attention in {name} is farther from doubly stochastic than in the same network before training by this difference of the mean over layers and heads of $\\sum_j\\lvert\\frac1n\\sum_iA_{{ij}}-\\frac1n\\rvert$.",
        experiment,
        farther(unit),
        "mass",
        made_of="real weights",
        source=source,
        where=f"mean over the {unit}s; Sander et al. 2022 speak of the course of training of their models, and these are end points of others. Untrained attention is nearly even, so almost any training raises the number: nothing passes or fails",
    )


ROWS = (
    statistic(
        "SK-21",
        "The atom-mapping head of a trained transformer finds more right precursor atoms as a coupling, in which no atom gives more than its weight, than by rows alone or with equal shares, on reactions of twenty-four textbook mechanisms.",
        AtomMaps,
        gain,
        "share of the product's atoms mapped rightly by the plan at temperature 1 less that by rows and that by equal shares, mechanism by mechanism, the lower",
        at_least(0),
        unit="share of the atoms",
        judged_at=RECORDED,
        made_of="real weights",
        control=lambda rows: gain(rows, "dealt"),
        where="weights of rxnmapper (Schwaller et al. 2021); twenty reactions of each mechanism, all written by us, so that the interval is over such mechanisms, not over chemistry",
    ),
    columns("SK-17.b", "a trained encoder of sentences (all-MiniLM-L6-v2)", Sentences, "passage", "prior"),
    columns("SK-17.c", "a trained encoder of chemical reactions (the ALBERT of rxnmapper)", AtomMaps, "mechanism"),
)
