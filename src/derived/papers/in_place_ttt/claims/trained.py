"""IPT-10 to 13, 15 and 17: small trained models; criteria and expected verdicts were written before the run, unless a claim says otherwise.

An arm stands at the rate that its validation texts choose; two arms are compared model by model, on the test texts.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pandas as pd

from derived.lab import stats
from derived.lab.claims import (
    RECORDED,
    at_least,
    at_most,
    computed,
    refuted,
    statistic,
    unseen,
)
from derived.lab.measure import Measure, chosen, highest, largest, lowest
from derived.lab.stats import LEVEL, Estimate

from ..experiments.trained import CatchUp, ChunkSizes, Documents, Layers, Recall, Tuned, WarmStart


def best_rate(rows: pd.DataFrame, arm: str, better: str = "max") -> float:
    """The rate of an arm's best mean ``valid``, the largest if several have it; none at which a model diverged.
    ValueError where no rate is left."""
    scores = chosen(rows, arm).groupby("rate")["valid"].agg(lambda each: each.mean(skipna=False)).dropna()[::-1]
    if scores.empty:
        raise ValueError(f"at every rate a model diverged where {arm}")
    return scores.idxmax() if better == "max" else scores.idxmin()


def at_best_rate(rows: pd.DataFrame, arm: str, better: str = "max") -> pd.DataFrame:
    """The rows of an arm at its best rate, one a model: the last, where a model has several."""
    best = chosen(rows, f"({arm}) and rate == {best_rate(rows, arm, better)}")
    return best.groupby("replicate").last(skipna=False)  # the last number of each column, and not the last before NaN


def mean_of(arms: Sequence[str], column: str, decides) -> Measure:
    """The mean of a column over the models of each arm, and the arm that decides; recall chooses the rate."""

    def measure(rows: pd.DataFrame):
        level = 1 - (1 - LEVEL) / len(arms)
        return decides([stats.mean(at_best_rate(rows, arm)[column], level) for arm in arms])

    return measure


def least_difference(pairs: Sequence[tuple[str, str]], column: str = "test", better: str = "min") -> Measure:
    """The mean of the first arm less that of the second, model by model, in the pair where it is least."""

    def measure(rows: pd.DataFrame):
        level, found = 1 - (1 - LEVEL) / len(pairs), []
        for one, other in pairs:
            first, second = (at_best_rate(rows, arm, better)[column] for arm in (one, other))
            found.append(stats.mean(first - second, level))
        return lowest(found)

    return measure


def least_factor(pairs: Sequence[tuple[str, str]]) -> Measure:
    """The geometric mean of the steps of the first arm over those of the second, in the pair where it is least."""
    logs = least_difference(pairs, "log_reached", "max")

    def measure(rows: pd.DataFrame):
        found = logs(rows.assign(log_reached=np.log(rows["reached"])))
        return Estimate(float(np.exp(found.value)), found.n, *np.exp([found.low, found.high]).tolist())

    return measure


def ends_over_middle(rows: pd.DataFrame) -> Estimate:
    """The loss at the smallest and at the largest chunk less that at the middle chunk which validation chooses."""
    sizes = sorted(rows["chunk"].unique())
    inner = {size: at_best_rate(rows, f"chunk == {size}", "min")["valid"].mean() for size in sizes[1:-1]}
    if not inner:
        raise ValueError(f"chunks of {sizes} have no middle")
    middle = f"chunk == {min(inner, key=inner.get)}"
    return least_difference([(f"chunk == {size}", middle) for size in (sizes[0], sizes[-1])])(rows)


def ends_of_own(rows: pd.DataFrame) -> Estimate:
    """``ends_over_middle`` of memories that write their own text, all of which are to be flat in training."""
    own = chosen(rows, "writes == 'own'")
    return if_flat(ends_over_middle, *(f"chunk == {size}" for size in sorted(own["chunk"].unique())))(own)


def last_lengthening(arm: str) -> Measure:
    """The loss of an arm at the longest context but one less that at the longest, model by model."""

    def measure(rows: pd.DataFrame):
        best = f"{arm} and rate == {best_rate(rows, arm, 'min')}"
        table = chosen(rows, best).pivot(index="replicate", columns="context", values="loss").sort_index(axis="columns")
        return stats.mean(table.iloc[:, -2] - table.iloc[:, -1])

    return measure


def if_flat(measure: Measure, *arms: str) -> Measure:
    """The measure; ValueError unless each of its arms is flat in training: the last tenth of the steps may take PLATEAU
    at most off its mean training loss."""

    def judged(rows: pd.DataFrame):
        for arm in arms:
            last = at_best_rate(rows, arm, "min")
            fall = (last["before"] - last["late"]).mean(skipna=False)
            if not fall <= PLATEAU:
                raise ValueError(f"{arm} is not at a plateau: the last tenth of the steps took {fall:.3f} off its loss")
        return measure(rows)

    return judged


def at_plateau(measure: Measure, *arms: str) -> Measure:
    """The measure on models that were trained for all steps, if they are flat there."""
    flat = if_flat(measure, *(f"arm == '{arm}'" for arm in arms))
    return lambda rows: flat(chosen(rows, "steps == steps.max()"))


def if_settled(measure: Measure, *arms: str) -> Measure:
    """The measure; ValueError where the last tenth of the steps adds more than PLATEAU to an arm's recall in training."""

    def judged(rows: pd.DataFrame):
        for arm in arms:
            some = chosen(rows, f"({arm}) and rate == {best_rate(rows, arm)}")
            means = some.pivot(index="replicate", columns="step", values="recall").sort_index(axis="columns").mean()
            if not means.iloc[-1] - means.iloc[-2] <= PLATEAU:
                raise ValueError(f"{arm} still learns: recall rose to {means.iloc[-1]:.3f} in the last tenth")
        return measure(rows)

    return judged


def over_rivals(arm: str) -> Measure:
    """The loss of a rival less that of an arm, in the pair where it is least."""
    return least_difference([(f"arm == '{rival}'", f"arm == '{arm}'") for rival in RIVALS])


def refuted_by_one(rows: pd.DataFrame) -> Estimate:
    """DeltaNet's loss less that of In-Place TTT, where that is below zero: then the other rivals do not matter."""
    found = at_plateau(least_difference([("arm == 'delta'", "arm == 'ttt'")]), "delta", "ttt")(rows)
    if not found.high < 0:
        raise ValueError("DeltaNet alone does not refute it, and GLA was still falling where it was trained")
    return found


def unread(rows: pd.DataFrame) -> Estimate:
    """In-Place TTT's loss less that of the same networks when their memory is not read."""
    ends = at_best_rate(chosen(rows, "steps == steps.max()"), "arm == 'ttt'", "min")
    return stats.mean(ends["test"] - ends["off"])


def after_few_steps(measure: Measure) -> Measure:
    """The measure on models that were trained for few steps."""
    return lambda rows: measure(chosen(rows, "steps == steps.min()"))


def recall(depth: int, arm: str, tied: bool = False) -> str:
    """The rows of an arm; ``tied``: window 1, so that the key of a token knows that token alone."""
    return f"depth == {depth} and arm == '{arm}' and window {'==' if tied else '>'} 1"


catching_up = at_plateau(least_difference([("arm == 'ttt'", "arm == 'delta'")]), "ttt", "delta")
MODELS = "mean over trained models at the rate that validation chose, {}"
PAIRED = "difference model by model, each arm at the rate that validation chose, {}"
JUDGED = {"judged_at": RECORDED}
SHARE = {"unit": "recall", **JUDGED}
NATS = {"unit": "nats per token", **JUDGED}
PLATEAU = 0.01  # nats per token
FLAT = ", each arm flat in training (the last tenth of the steps lowers its loss by at most 0.01)"
RIVALS = ("gla", "delta", "lact")
BLIND = round(Recall.at("cpu").chance(), 3)
NAMED = "naming the commonest value of a text, which knows no pair"

COUNTS = [f"memories == {count}" for count in (1, 2, 4)]
BARE = (recall(1, "proj", tied=True), recall(1, "past", tied=True))

CLAIMS = (
    statistic(
        "IPT-10.a",
        "A single block whose target looks ahead learns to recall pairs beyond its window, with the projection and without.",
        Recall,
        mean_of([recall(1, "both"), recall(1, "conv")], "test", lowest),
        MODELS.format("the worse of two arms"),
        at_least(0.9),
        plain="One block recalls pairs far outside its attention window if it writes what comes next.",
        where="after Figure 3c, whose numbers were not readable; generated texts here",
        source="digest",
        **SHARE,
        control=mean_of([recall(1, "none")], "test", lowest),
    ),
    refuted(
        "IPT-10.b",
        f"A single block with attention below its memory, but no tap ahead, is right no more often than {NAMED}.",
        Recall,
        mean_of([recall(1, "proj"), recall(1, "neither")], "test", highest),
        MODELS.format("the better of two arms"),
        at_most(BLIND),
        unit="recall",
        judged_at=("cpu",),
        where="a reading of Theorem 1 as a statement on blocks; a pilot with longer texts stood at 0.25 and was rising",
    ),
    statistic(
        "IPT-10.e",
        f"A single block whose keys know their own token alone, as in Theorem 1, is right at most 0.03 more often than {NAMED}, if no tap looks ahead.",
        Recall,
        if_settled(mean_of(BARE, "test", highest), *BARE),
        MODELS.format("the better of two arms")
        + ", neither of which gains more than 0.01 in the last tenth of the steps",
        at_most(round(BLIND + 0.03, 3)),
        amends="IPT-10.b",
        unit="recall",
        judged_at=("cpu",),
        control=mean_of([recall(1, "both", tied=True)], "test", highest),
    ),
    statistic(
        "IPT-10.c",
        "With two blocks the target that looks ahead reaches 90 % recall in at most half the steps of reconstruction, with a projection or with nothing learned.",
        Recall,
        least_factor([(recall(2, arm), recall(2, "both")) for arm in ("proj", "neither")]),
        "steps to 90 % recall, reconstruction over look-ahead, at least: all steps + 1 where never reached; geometric mean over "
        "models, each arm at the rate that validation chose, the lower of two arms, with a projection and with nothing learned",
        at_least(2),
        unit="times, at least",
        control=least_factor([(recall(2, "proj"), recall(2, "neither"))]),  # neither looks ahead
        where="after Figure 3c, whose numbers were not readable; of rates that are equally good the largest",
        source="digest",
        **JUDGED,
    ),
    statistic(
        "IPT-11",
        "A chunk size between the ends of the range has the lowest loss on documents with private bigrams.",
        ChunkSizes,
        ends_of_own,
        "loss at an end less that at the best middle chunk; " + PAIRED.format("the lower of two ends") + FLAT,
        at_least(0.1),
        where="Figure 3b: 512 and 1024 of 256 to 2048 are best, labels as retold; judged on generated documents",
        source="digest",
        **NATS,
        control=lambda rows: ends_over_middle(chosen(rows, "writes == 'another'")),
    ),
    statistic(
        "IPT-12",
        "From one to two and from two to four writing blocks the loss on documents with private bigrams falls each time, at equal parameters.",
        Layers,
        if_flat(least_difference([*pairwise(COUNTS)]), *COUNTS),
        "loss with fewer memories less that with more; " + PAIRED.format("the lower of two pairs") + FLAT,
        at_least(0),
        unit="nats per token",
        judged_at=RECORDED,
        where="Figure 3a: more state is better, labels as retold; judged on generated documents; what matters is as in IPT-11",
        source="digest",
        matters=0.1,
        control="without a memory no block writes, and there is nothing to count",
    ),
    statistic(
        "IPT-13.a",
        "From scratch, at equal parameters and after as many steps, In-Place TTT on window attention has a lower loss on the last block of a document than window attention alone.",
        Tuned,
        at_plateau(least_difference([("arm == 'window'", "arm == 'ttt'")]), "window", "ttt"),
        "loss of window attention less that of In-Place TTT on it; " + PAIRED.format("one pair") + FLAT,
        at_least(0),
        plain="Trained from scratch, a window model with In-Place TTT predicts long documents better than without.",
        where="Figure 2; models of 30,000 parameters on generated documents here",
        source="paper",
        **NATS,
        control=at_plateau(least_difference([("arm == 'window'", "arm == 'placebo'")]), "window", "placebo"),
    ),
    statistic(
        "IPT-13.b",
        "From scratch, at equal parameters and steps, In-Place TTT has a lower loss on the last block of a document than GLA, DeltaNet and LaCT.",
        CatchUp,
        refuted_by_one,
        "loss of a rival less that of In-Place TTT; "
        + PAIRED.format("DeltaNet, which judges if it refutes the statement alone")
        + FLAT,
        at_least(0),
        unit="nats per token",
        judged_at=("cpu",),
        plain="Trained from scratch, it also beats gated linear attention, DeltaNet and LaCT.",
        where="Figure 2; models of 30,000 parameters on generated documents here",
        source="paper",
        control="one rival refutes the statement or nothing is judged, so that no arm can pass",
    ),
    statistic(
        "IPT-13.c",
        "The loss of In-Place TTT on the last block of a document still falls at the last lengthening of the context before it, at our lengths.",
        Documents,
        at_plateau(last_lengthening("arm == 'ttt'"), "ttt"),
        "loss with the context before the longest less that with the longest, over trained models" + FLAT,
        at_least(0),
        where="Figure 2: still falling at 32k tokens; models of 30,000 parameters on generated documents here",
        horizon="contexts of 16 and 32 tokens, after which a reader who forgets nothing has next to nothing left to gain",
        source="paper",
        **NATS,
        control=at_plateau(last_lengthening("arm == 'window'"), "window"),
    ),
    statistic(
        "IPT-13.f",
        "Trained to a plateau, DeltaNet has a lower loss on the last block of a document than In-Place TTT.",
        CatchUp,
        catching_up,
        "loss of In-Place TTT less that of DeltaNet; " + PAIRED.format("one pair") + FLAT,
        at_least(0),
        control=unread,
        amends="IPT-13.b",
        unit="nats per token",
        judged_at=("cpu",),
    ),
    statistic(
        "IPT-13.g",
        "After a tenth of the steps In-Place TTT has a lower loss on the last block of a document than GLA, DeltaNet and LaCT, of which DeltaNet alone has a short convolution: it learns sooner.",
        Tuned,
        after_few_steps(over_rivals("ttt")),
        "loss of a rival less that of In-Place TTT after few steps; " + PAIRED.format("the lowest of three rivals"),
        at_least(0),
        control=after_few_steps(over_rivals("token")),  # it writes, without a tap
        **NATS,
    ),
    unseen(
        "IPT-15",
        "Continual training with In-Place TTT raises RULER scores of Qwen3-4B, LLaMA-3.1-8B and Qwen3-14B by 0.5 to 4.4 points, mostly at 64k tokens and beyond.",
        "needs the weights and 20 to 35 billion tokens; IPT-15.a has tasks like RULER's for small models, and IPT-10 and "
        "IPT-13 support the mechanism: none of them the scores",
        source="paper",
        where="Tables 1 and 2",
        paper_value="Qwen3-4B: 74.3 to 78.7 at 64k, 96.6 to 96.1 at 4k",
        plain="Continual training with In-Place TTT raises RULER scores of large models.",
    ),
    unseen(
        "IPT-15.c",
        "Models of 4 billion weights that are trained from scratch on texts of 8k tokens have higher RULER scores with In-Place TTT, on full and on window attention, at 4k, 8k and 16k tokens.",
        "needs 120 billion tokens an arm; IPT-13 and IPT-15.a are the nearest that we ran",
        source="paper",
        where="Table 3",
        paper_value="full attention: 38.1 to 43.8 at 8k; window attention: 9.9 to 26.8",
    ),
    computed(
        "IPT-17.a",
        "A trained model into which a memory is inserted at the released start has the loss that it had before.",
        WarmStart,
        largest(lambda rows: (rows["first"] - rows["base"]).abs(), "start == 'zero' and rate == rate.max()"),
        "largest difference over trained models, in float32",
        at_most(1e-6),
        unit="nats per token",
        source="paper",
        where="Section 3.4",
        control=largest(lambda rows: (rows["first"] - rows["base"]).abs(), "start == 'random'"),
        scale={},
    ),
    statistic(
        "IPT-17.b",
        "After the same further training, a trained model with an inserted memory has a lower loss than the model continued as it was.",
        WarmStart,
        least_difference([("start == 'static'", "start == 'zero'")]),
        "loss of the model as it was less that with the memory; " + PAIRED.format("one pair"),
        at_least(0),
        source="paper",
        where="Section 3.4, by its words; models of 20,000 parameters that had learned generated documents",
        unit="nats per token",
        judged_at=("cpu",),
        control=least_difference([("start == 'static'", "start == 'placebo'")]),
    ),
)
