"""IPT-13 and 15 on needles and on real text; criteria and expected verdicts were written before the run.

An arm stands at the rate that its validation texts choose; two arms are compared model by model, on the test texts.
"""

import pandas as pd

from derived.lab import stats
from derived.lab.claims import RECORDED, at_least, statistic
from derived.lab.measure import Decides, Measure, highest, lowest

from ..experiments.texts import SettledNeedles, SourceBytes
from .trained import FLAT, PAIRED, at_best_rate, if_flat, last_lengthening, least_difference

TASKS = ("needle", "needles", "tracking")  # in "common" models that read moved values miss as many
WITH, WITHOUT = "usual and chunk > 0", "chunk == 0"


def missed_without_less(column: str, decides: Decides) -> Measure:
    """The share missed without a memory less that in a column with it, model by model, in the task that decides."""

    def measure(rows: pd.DataFrame):
        level, found = 1 - (1 - stats.LEVEL) / len(TASKS), []
        for task in TASKS:
            without, memory = (at_best_rate(rows, f"{arm} and task == '{task}'", "min") for arm in (WITHOUT, WITH))
            found.append(stats.mean(without["test"] - memory[column], level))
        return decides(found)

    return measure


CLAIMS = (
    statistic(
        "IPT-13.d",
        "From scratch, at equal parameters, In-Place TTT on window attention has a lower loss on the last block of real text, the bytes of Python sources, than window attention alone.",
        SourceBytes,
        if_flat(least_difference([(WITHOUT, "chunk > 0")]), WITHOUT, "chunk > 0"),
        "loss of window attention less that of In-Place TTT on it; " + PAIRED.format("one pair") + FLAT,
        at_least(0),
        unit="nats per byte",
        judged_at=RECORDED,
        where="Figure 2, on the Pile and Proof-Pile-2; small models on Python sources here, window attention at the largest "
        "of three rates",
        source="paper",
        control="an arm that writes another text was not run here; IPT-13.a, which asks the same of generated texts, has one",
        made_of="real data",
    ),
    statistic(
        "IPT-13.e",
        "On real text, too, the loss of In-Place TTT still falls at the last lengthening of the context before the block.",
        SourceBytes,
        if_flat(last_lengthening("chunk > 0"), "chunk > 0"),
        "loss with the context before the longest less that with the longest, over trained models" + FLAT,
        at_least(0),
        unit="nats per byte",
        judged_at=RECORDED,
        where="Figure 2: still falling at 32k tokens; small models on Python sources here",
        source="paper",
        control=last_lengthening("chunk == 0"),
        made_of="real data",
    ),
    statistic(
        "IPT-15.a",
        "In each of three tasks like RULER's, one needle, one of several and a chain of variables, a small window model with the memory misses fewer answers than one without, at equal parameters.",
        SettledNeedles,
        if_flat(missed_without_less("test", lowest), WITHOUT, WITH),
        "share missed without less that with the memory; " + PAIRED.format("the lowest of three tasks") + FLAT,
        at_least(0),
        unit="share of answers",
        judged_at=RECORDED,
        where="the nearest to Tables 1 and 2 that can be run here: one small model for all tasks, trained on them",
        control=missed_without_less("shuffled", highest),  # in none of the tasks may it pass
    ),
)
