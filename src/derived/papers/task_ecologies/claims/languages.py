"""TE-E1 and E2: trained models on languages that they never read; TE-16: what a real model tells apart. Criteria and
expected verdicts were written before the run, unless a claim says otherwise."""

import numpy as np
import pandas as pd

from derived.lab import stats
from derived.lab.claims import RECORDED, at_least, at_most, reported, statistic, within
from derived.lab.effect import Published
from derived.lab.measure import Decides, Measure, by_draw, chosen, highest, jointly, lowest, mean, values
from derived.lab.stats import LEVEL

from ..experiments.languages import Abroad, Complexity, ErasAbroad, NamesAbroad, NamesKept


def least_rise(column: str, where: str = "", draw: str = "replicate") -> Measure:
    """How much a column rises from trained to related and from related to alien languages, draw by draw, in the step
    where it is least; ``draw`` is an expression that tells draws apart."""

    def measure(rows: pd.DataFrame):
        level, some = 1 - (1 - LEVEL) / 2, chosen(rows, where)
        some = some.assign(draw=values(some, draw))
        wide = by_draw(some[column], some, ["draw", "category"]).mean().unstack()
        steps = (wide["relative"] - wide["trained"], wide["alien"] - wide["relative"])
        return lowest([stats.mean(step, level) for step in steps])

    return measure


def beyond_the_first(category: str, column: str) -> Measure:
    """A column on texts of a category less that on held-out texts of the first language, replicate by replicate."""

    def measure(rows: pd.DataFrame):
        some = chosen(rows, f"language == 0 or category == '{category}'")
        wide = by_draw(some[column], some, ["replicate", "category"]).mean().unstack()
        return stats.mean(wide[category] - wide["trained"])

    return measure


def times_as_far(where: str, decides: Decides) -> Measure:
    """The divergence between names of different gender over that of the same, group by group, sentence by sentence; the
    geometric mean, since the ratios are skew."""

    def one(rows: pd.DataFrame, level: float) -> stats.Estimate:
        between, within_one = (by_draw(values(rows, each), rows, ["group"]).mean() for each in ("between", "within"))
        log = stats.mean(np.log(between / within_one), level)
        with np.errstate(over="ignore"):  # an interval over two groups may have no upper end in floats
            value, low, high = np.exp([log.value, log.low, log.high]).tolist()
        return stats.Estimate(value, log.n, low, high, value * log.error)

    return jointly(one, ["sentence"], decides, where)


TOLD, NOT_TOLD = "weights == 'trained' and telling", "weights == 'trained' and not telling"
FARTHER = (
    "divergence of two names of different gender over that of two of the same, geometric mean over groups of four, "
    "the sentence where it is "
)
RISE = "the smaller of two steps, trained to related and related to alien, over replicates"

NEAR = "language != 4"  # of the two relatives the one that is three tenths fresh
FAMILY = "replicate % 3"  # the families of languages take turns
DISAGREED = {"unit": "nats", "source": "paper", "paper_value": ".0018, .0028, .0063", "judged_at": RECORDED}
NOTHING_UNREAD = "Of a context only the last letter matters in these languages, and each was read often: the paper's rise, on contexts that were not read, is not tested"
PEOPLES = {"unit": "nats per letter", "judged_at": RECORDED, "made_of": "real data"}

CLAIMS = (
    statistic(
        "TE-E1.a",
        "The loss of models of three languages rises from these to a near relative and again to an alien language.",
        Abroad,
        least_rise("loss", NEAR),
        "loss, " + RISE,
        at_least(0),
        unit="nats per letter",
        source="paper",
        where="Figure 7; generated languages of known floor here, the near relative three tenths fresh; one of nine tenths is not judged; a pilot at another seed had been seen. Judged by the loss: its excess over the floor rises for a reader who has read nothing, too, since each language further has a lower floor",
        paper_value="loss 2.36, 2.87, 3.65",
        control=beyond_the_first("again", "loss"),
        plain="Models predict a near relative of the languages they were trained on worse than these, and an alien language worse still.",
        judged_at=RECORDED,
    ),
    statistic(
        "TE-E1.b",
        "Models of the same languages disagree more with one another on a near relative and again more on an alien language.",
        Abroad,
        least_rise("disagreement", NEAR),
        "mean divergence of two models' laws, " + RISE,
        at_least(0),
        where="Figure 7; generated languages here, the near relative three tenths fresh; a pilot at another seed had been seen. What matters was half of the disagreement at home after 1,500 steps, and was set when those rows had been seen. "
        + NOTHING_UNREAD,
        control=beyond_the_first("again", "disagreement"),
        matters=0.003,
        **DISAGREED,
    ),
    statistic(
        "TE-E1.f",
        "As the paper measures it, by the divergence of average laws after 3, 5 and 8 letters, models of the same languages "
        "disagree more with one another on a near relative and again more on an alien language.",
        Abroad,
        least_rise("averaged", NEAR),
        "mean divergence of two models' average laws, " + RISE,
        at_least(0),
        where="Figure 7; at tier cpu three models of each family in place of ten. " + NOTHING_UNREAD,
        control=beyond_the_first("again", "averaged"),
        **DISAGREED,
    ),
    statistic(
        "TE-E1.c",
        "Control: on texts drawn anew from a trained language the loss above the floor is what it was.",
        Abroad,
        beyond_the_first("again", "excess"),
        "excess on new texts less that on the held-out ones, over replicates",
        within(0, 0.05),
        control=beyond_the_first("alien", "excess"),
        where="a pilot at another seed had been seen, and the margin was 0.01 before it",
        unit="nats per letter",
        judged_at=RECORDED,
    ),
    reported(
        "TE-E2",
        "A threshold on output distances puts five trained languages, of which all differ, into so many cells, as a mean over families.",
        Complexity,
        mean("k", "languages == 5"),
        "cells",
        source="paper",
        where="Figure 2, of one set of five languages; generated families here",
        paper_value=Published(2, "cells"),
        judged_at=RECORDED,
    ),
    reported(
        "TE-E1.d",
        "We measured by how much worse, by what a table of the very language's pairs of letters makes of them, models of the "
        "given names of three related languages predict unread names of others of the family than of these three, and of "
        "languages outside of it than of the family, the smaller of the two steps; three families are too few to judge it.",
        NamesAbroad,
        least_rise("excess", "arm == 'as they are'", FAMILY),
        where="Figure 7, on names of three families of five languages, and of five strangers that all share, in place of five texts; four models a family; a pilot that looked at the trained languages alone fixed the steps",
        source="paper",
        paper_value="loss 2.36, 2.87, 3.65",
        **PEOPLES,
    ),
    reported(
        "TE-E1.e",
        "We measured by how much worse, by what a table of the very era's pairs of letters makes of them, models of the "
        "letters of three eras of State of the Union speeches predict unread speeches of the next two eras than of these "
        "three, and of the farthest two than of the next two, the smaller of the two steps; there is one row of eras, "
        "which all replicates share.",
        ErasAbroad,
        least_rise("excess", "arm == 'as they are'"),
        where="after Figure 7; replicates differ in which half of the speeches is read, and at which end of the seven eras",
        **PEOPLES,
    ),
    statistic(
        "TE-16.a",
        "In each of four sentences after which a pronoun may come, a real language model, Gemma 3 270M, holds two names of different gender "
        "at least one and a half times as far apart, by what it says of the next token, as two of the same gender.",
        NamesKept,
        times_as_far(TOLD, lowest),
        FARTHER + "least, all judged jointly",
        at_least(1.5),
        unit="times as far apart",
        where="after TE-2, on eight sentences written for it and American names of one token",
        control=times_as_far("weights == 'untrained' and telling", lowest),
        judged_at=RECORDED,
        made_of="real weights",
    ),
    statistic(
        "TE-16.b",
        "In each of four sentences whose next word has no gender the same model holds the same names of different gender less than one and "
        "a half times as far apart as those of the same gender.",
        NamesKept,
        times_as_far(NOT_TOLD, highest),
        FARTHER + "most, all judged jointly",
        at_most(1.5),
        unit="times as far apart",
        where="after TE-2: the names are one class where no text asks for more",
        control=times_as_far(TOLD, highest),
        judged_at=RECORDED,
        made_of="real weights",
    ),
)
