"""TE-E4: balanced and unbalanced code. Criteria and expected verdicts were written before the run, unless a claim says
otherwise.

Networks are judged at the rate that their held-out loss chooses, once they are flat in training. A replicate is one
corpus with its network and tables.
"""

import pandas as pd

from derived.lab import stats
from derived.lab.claims import RECORDED, at_least, statistic, within
from derived.lab.measure import Measure, chosen, lowest
from derived.lab.stats import LEVEL, Estimate

from ..experiments.rescue import RecipePopulation, Rescue

PLATEAU = 0.01  # nats per token
FLAT = ", networks flat in training (the last tenth of the steps lowers their loss by at most 0.01)"


def judged(rows: pd.DataFrame, reader: str, twin: str, alpha: float, value: str = "gap") -> pd.Series:
    """A value of each replicate; networks at the rate of the least mean ``valid``, tables at any. ValueError for
    networks that are not flat: the last tenth of the steps may take PLATEAU at most off their mean training loss."""
    some = chosen(rows, f"reader == '{reader}' and twin == '{twin}' and alpha == {alpha}")
    best = some.groupby("rate")["valid"].agg(lambda each: each.mean(skipna=False)).idxmin()
    found = some[some["rate"] == best].set_index("replicate")
    if reader == "network" and not (fall := (found["before"] - found["late"]).mean(skipna=False)) <= PLATEAU:
        raise ValueError(f"networks are not at a plateau: the last tenth of the steps took {fall:.3f} off their loss")
    return found[value]


def rises_more(reader: str, other: str) -> Measure:
    """How much more one reader's gap on shuffled twins rises than another's, from a quarter of bracketed text to all."""

    def rise(rows: pd.DataFrame, each: str) -> pd.Series:
        return judged(rows, each, "shuffled", 1.0) - judged(rows, each, "shuffled", 0.25)

    return lambda rows: stats.mean(rise(rows, reader) - rise(rows, other))


def as_often_right(table: str) -> Measure:
    """The share of shuffled twins that a table finds harder, less the network's, without blanked text."""
    readers = (table, "network")

    def measure(rows: pd.DataFrame) -> Estimate:
        own, network = (judged(rows, each, "shuffled", 1.0, "right") for each in readers)
        return stats.mean(own - network)

    return measure


def more_often_than_the_table(reader: str) -> Measure:
    """The share of matched twins that a reader finds harder, without blanked text, less a half, and less the share of
    the trigram table: the lower."""

    def measure(rows: pd.DataFrame) -> Estimate:
        own, table = (judged(rows, each, "matched", 1.0, "right") for each in (reader, "trigram"))
        return lowest([stats.mean(each, 1 - (1 - LEVEL) / 2) for each in (own - 0.5, own - table)])

    return measure


def last_shares(rows: pd.DataFrame) -> pd.DataFrame:
    """The mean share of the last generation: a row for each replicate, a column for each reader and arm."""
    last = chosen(rows, "generation == generation.max()")
    return last.pivot(index="replicate", columns=["reader", "arm"], values="alpha")


def more_brackets(reader: str) -> Measure:
    """The last share of a reader under selection less that of its control, replicate by replicate."""

    def measure(rows: pd.DataFrame) -> Estimate:
        wide = last_shares(rows)[reader]
        return stats.mean(wide["selected"] - wide["shuffled"])

    return measure


def unselected(rows: pd.DataFrame) -> Estimate:
    """The same of two populations without selection, of the same founders and steps of mutation."""
    wide = last_shares(rows).xs("shuffled", axis=1, level="arm")
    return stats.mean(wide["network"] - wide["trigram"])


JUDGED = {"judged_at": RECORDED}
NATS = {"unit": "nats per token", **JUDGED}
LAST_SHARE = "mean share in the last generation, selected less control, replicate by replicate"
SHARE = {"unit": "share of the text", "control": unselected, **JUDGED}

CLAIMS = (
    statistic(
        "TE-E4.a",
        "From a quarter of bracketed text to all of it, a network gains more in telling balanced code from code with shuffled brackets than a table of letter triples, counted on the same texts.",
        Rescue,
        rises_more("network", "trigram"),
        "rise of the network's gap less that of the table's, replicate by replicate" + FLAT,
        at_least(0),
        where="after Figure 4, which has the network alone, from −.002 to .785; a table's gap rises as well. At share 0 no bracket was ever read, so that a rise from there is forced",
        control=rises_more("trigram", "bigram"),  # triples over pairs
        plain="With more bracketed code in training the loss of a network on shuffled brackets rises more than that of a table of letter triples.",
        **NATS,
    ),
    statistic(
        "TE-E4.b",
        "Of pairs of balanced code and the same code with shuffled brackets, a table of letter triples, counted on the same texts, finds the balanced one easier as often as the network does, within one pair in a hundred.",
        Rescue,
        as_often_right("trigram"),
        "share of the pairs of the table less that of the network, replicate by replicate" + FLAT,
        within(0, 0.01),
        unit="of the pairs",
        control=as_often_right("unigram"),
        where="so the published measure of experiment 7 does not show that nesting is tracked. That measure, a gap of mean losses, has no scale for a table: the less it is smoothed, the larger",
        **JUDGED,
    ),
    statistic(
        "TE-E4.c",
        "Where the unbalanced code has only ordinary pairs of neighbours, the network still finds the balanced one easier in more than half of the pairs, and in more of them than the table of triples.",
        Rescue,
        more_often_than_the_table("network"),
        "the network's share less a half, and less the table's, replicate by replicate, the lower" + FLAT,
        at_least(0),
        control=more_often_than_the_table("bigram"),
        unit="of the pairs",
        where="one bit more is enough for that: triples beside whether a bracket was opened before find these pairs, too",
        **JUDGED,
    ),
    statistic(
        "TE-E4.e",
        "Where members of a population inherit a share of bracketed text and nothing else, and each is trained anew in every generation, for few steps, selection by discrimination ends at a larger mean share than the same fitness dealt out at random.",
        RecipePopulation,
        more_brackets("network"),
        LAST_SHARE,
        at_least(0),
        source="paper",
        where="Figure 4, second stage of experiment 7: one run, no control; generated expressions and small populations here",
        paper_value=".466 to .890",
        matters=0.2,
        **SHARE,
    ),
    statistic(
        "TE-E4.f",
        "Where the members of such a population are tables of letter triples, counted anew in every generation, the same selection ends at a larger mean share as well.",
        RecipePopulation,
        more_brackets("trigram"),
        LAST_SHARE,
        at_least(0),
        where="control of TE-E4.e: a table of triples knows nothing of nesting; it became a row when its rows had been seen",
        **SHARE,
    ),
)
