"""IPT-7.g and h, 16.d, 17.d to h: trained models; criteria and expected verdicts were written before the run, unless a claim says otherwise."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from derived.lab import stats
from derived.lab.claims import RECORDED, at_least, at_most, computed, reported, statistic
from derived.lab.measure import Measure, chosen, largest, lowest

from ..experiments.real import GatedKeys, NewParts, RawWrites, TrainedKeys

TRAINED = "weights == 'trained'"
FACTS = {
    "made_of": "real weights",
    "where": "all-MiniLM-L6-v2, six layers without gates, on pieces of six novels; two draws of fresh weights",
}
GEMMA = {"made_of": "real weights", "where": "Gemma 3 270M, eighteen layers with gates, quantised, on pieces of novels"}


def mean_cosines(rows: pd.DataFrame) -> pd.DataFrame:
    """The mean over layers at each kind of weights, a row for each text."""
    return rows.groupby(["replicate", "weights"])["cosine"].mean().unstack()


def moved_by_training(way: int, *draws: str) -> Measure:
    """The mean cosine of keys over the layers of the trained model less that at each draw of fresh weights, text by
    text, where it is least; for ``way`` = -1 the other way round."""

    def measure(rows: pd.DataFrame):
        wide, level = mean_cosines(rows), 1 - (1 - stats.LEVEL) / len(draws)
        return lowest([stats.mean(way * (wide["trained"] - wide[fresh]), level) for fresh in draws])

    return measure


def moved_by_another_draw(rows: pd.DataFrame) -> stats.Estimate:
    """How far the second draw of fresh weights lies from the first, towards the side on which it lies."""
    wide = mean_cosines(rows)
    moved = wide["again"] - wide["fresh"]
    return stats.mean(moved * (1 if moved.mean() > 0 else -1))


def fresh_on_other_texts(rows: pd.DataFrame) -> stats.Estimate:
    """The mean cosine at fresh weights on every other text less that on the texts between."""
    each = mean_cosines(rows)["fresh"].to_numpy()
    pairs = each[: len(each) // 2 * 2].reshape(-1, 2)
    return stats.mean(pairs[:, 0] - pairs[:, 1])


def own_size(rows: pd.DataFrame) -> float:
    """The inner step at which what a memory adds is nearest in size to what its layer gives, on a scale of factors."""
    ratios = chosen(rows, "arm == 'raw'").groupby("step")["ratio"].mean()
    return np.log(ratios).abs().idxmin()


def cost(arm: str, step: Callable[[pd.DataFrame], float] = own_size) -> Measure:
    """Loss with memories at a step, which the rows give, less that without, text by text, where it is lowest."""

    def measure(rows: pd.DataFrame):
        level, found = 1 - (1 - stats.LEVEL) / 2, []
        for kind in ("novels", "speeches"):
            some = chosen(rows, f"texts == '{kind}' and arm == '{arm}' and step == {step(rows)}")
            found.append(stats.mean(some["loss"] - some["base"], level))
        return lowest(found)

    return measure


def by_arm(rows: pd.DataFrame, kind: str) -> pd.DataFrame:
    """The losses of the pieces of a kind, a row for each piece and context, a column for each arm and the base."""
    some = chosen(rows, f"texts == '{kind}'")
    index = ["replicate", "context"]
    return some.pivot(index=index, columns="arm", values="loss").assign(base=some.groupby(index)["base"].first())


def gain(arm: str, *over: str) -> Measure:
    """The loss of the others less that of an arm, a mean over contexts of each piece, where it is least."""

    def measure(rows: pd.DataFrame):
        level, found = 1 - (1 - stats.LEVEL) / (2 * len(over)), []
        for kind in ("novel", "speeches"):
            means = by_arm(rows, kind).groupby("replicate").mean()
            found += [stats.mean(means[other] - means[arm], level) for other in over]
        return lowest(found)

    return measure


def growth(arm: str, over: str) -> Measure:
    """That difference after the longest context less that after the shortest, piece by piece, where it is lowest."""

    def measure(rows: pd.DataFrame):
        level, found = 1 - (1 - stats.LEVEL) / 2, []
        for kind in ("novel", "speeches"):
            wide = by_arm(rows, kind)
            gained = (wide[over] - wide[arm]).unstack("context")
            found.append(stats.mean(gained[gained.columns.max()] - gained[gained.columns.min()], level))
        return lowest(found)

    return measure


PIECES = "piece by piece, the lower of two kinds of text"
TRAINED_PARTS = {
    "unit": "nats per token",
    "judged_at": RECORDED,
    "made_of": "real weights",
    "where": "after Figure 2 and Table 1, continual training; Gemma 3 270M, one memory in layer 12, one training of about a hundred steps at one rate, contexts of 512 to 2,048 tokens; three memories and 8,192 tokens were not run. Validation chose the smallest of six inner steps, so that the memory is not tuned",
}

CLAIMS = (
    statistic(
        "IPT-7.g",
        "Training lowers the mean cosine of the keys of different tokens of a text, by 0.05 or more, in a sentence model without gates.",
        TrainedKeys,
        moved_by_training(-1, "fresh", "again"),
        "mean over pairs of different tokens and over layers at fresh weights less that of the trained model, text by text, the lower of two draws",
        at_least(0.05),
        unit="cosine",
        judged_at=("cpu",),
        control=moved_by_another_draw,
        **FACTS,
    ),
    statistic(
        "IPT-7.h",
        "Training raises the mean cosine of the keys of different tokens of a text, by 0.05 or more, in a language model with gates.",
        GatedKeys,
        moved_by_training(1, "fresh"),
        "mean over pairs of different tokens and over layers less that at fresh weights, text by text",
        at_least(0.05),
        unit="cosine",
        judged_at=("cpu",),
        control=fresh_on_other_texts,
        made_of="real weights",
        where=GEMMA["where"]
        + "; one draw of fresh weights, and a mean over layers, in some of which training lowers it",
    ),
    computed(
        "IPT-16.d",
        r"In no down-projection of a trained language model with gates, of $640\times2048$ weights a layer, does a random write of Frobenius norm $10^{-5}$ change in bf16 more than one in a thousand of the weights that are not exactly zero; those that are zero, it changes all.",
        GatedKeys,
        largest("changed", TRAINED + " and replicate == 0"),  # one write a layer, the same for every text
        "largest share over the layers, of the weights that are not exactly zero",
        at_most(1e-3),
        unit="share of the weights that are not zero",
        judged_at=("cpu",),
        control=largest("changed_by_more", TRAINED + " and replicate == 0"),
        **GEMMA,
    ),
    computed(
        "IPT-17.d",
        "Memories put into a trained language model at the released start change no logit.",
        RawWrites,
        largest("moved", "arm == 'start'"),
        "largest change of a logit over texts, in float32",
        at_most(1e-6),
        unit="logits",
        source="paper",
        judged_at=("cpu",),
        control=largest("moved", "arm == 'clipped'"),
        made_of="real weights",
        where="Section 3.4; Gemma 3 270M, memories in three layers, on novels and speeches",
        scale={},
    ),
    statistic(
        "IPT-17.e",
        "A memory that no training has prepared harms a trained language model: written into three layers at an inner step at which it adds about as much as a layer gives, it costs 0.1 nats or more a token, on novels and on speeches.",
        RawWrites,
        cost("raw"),
        "loss with memories at the inner step, of those tried, at which they add nearest to what a layer gives, less that "
        "without, text by text, the lower of two kinds of text",
        at_least(0.1),
        unit="nats per token",
        judged_at=("cpu",),
        control=cost("raw", lambda rows: rows["step"].min()),
        made_of="real weights",
        where="after notes on the code's issues, where a first written state raised a loss from 1.86 to 10.81; Gemma 3 270M; "
        "values are what the MLP sees at the next token, without a projection; four inner steps, up to the released 0.3",
    ),
    statistic(
        "IPT-17.f",
        "A memory in a language model, its new parts alone trained on five novels, lowers the loss on a sixth novel and on speeches, and lowers it more than the same memory does when another text has written it.",
        NewParts,
        gain("own", "base", "other"),
        "loss without the memory, and with that of another text, less the loss with it, mean over three blocks of a piece; "
        + PIECES,
        at_least(0),
        control=gain("shuffled", "base", "other"),
        matters=0.01,
        **TRAINED_PARTS,
    ),
    reported(
        "IPT-17.g",
        "A memory in a language model, its new parts alone trained on five novels, changes the loss on a sixth novel and on speeches by this much, part of which a memory that another text has written would change as well.",
        NewParts,
        gain("own", "base"),
        **TRAINED_PARTS,
    ),
    statistic(
        "IPT-17.h",
        "The longer the context, the more such a memory gains by having read this text rather than another.",
        NewParts,
        growth("own", "other"),
        "loss with the memory of another text less that with its own, after the longest context less after the shortest; "
        + PIECES,
        at_least(0),
        control=growth("shuffled", "other"),
        matters=0.01,
        **TRAINED_PARTS,
    ),
)
