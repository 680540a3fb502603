"""What the rows of trained networks say: accuracy at the end, paired gains, and whether training had come to its end."""

import pandas as pd

from derived.lab import measure
from derived.lab.measure import Measure, lowest
from derived.lab.stats import LEVEL, Estimate, mean

RIVALS = ("wide", "conv-qk", "hkt-average")  # what has as many numbers as HKT and lacks one thing of it each
PLATEAU = 0.05  # nats by which a tenth of the steps may lower the mean test loss of a kind of attention
TENTHS = ((6, 7), (9, 10))  # the last one at the full rate, and the last of all
ENOUGH = 0.9  # the share of right answers that says that a network has learned the task


def at_end(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of stage "test" at the last step of each kind of attention."""
    test = measure.chosen(rows, "stage == 'test'")
    return test[test["step"] == test.groupby("kind")["step"].transform("max")]


def tuned_accuracy(rows: pd.DataFrame) -> pd.DataFrame:
    """Replicates by kinds: accuracy on test data at the end of training, each at the rate chosen for it."""
    return at_end(rows).pivot(index="replicate", columns="kind", values="accuracy")


def gain(*over: str, kind: str = "hkt", trained: bool = True) -> Measure:
    """Test accuracy of a kind less that of others at their own rates, paired by replicate and judged jointly: the least.

    Before it is ``trained``, though the others are, a kind is a control.
    """

    def least(rows: pd.DataFrame) -> Estimate:
        found = tuned_accuracy(rows)
        first = measure.chosen(rows, "stage == 'test' and step == 0").query("kind == @kind").set_index("replicate")
        mine = found[kind] if trained else first["accuracy"]
        return lowest([mean(mine - found[each], 1 - (1 - LEVEL) / len(over)) for each in over])

    return least


def at_best_rates(judge: Measure) -> Measure:
    """A measure of those rows alone in which each kind has its best rate on validation data, where every rate has rows
    of stage "test"."""

    def chosen(rows: pd.DataFrame) -> Estimate:
        tried = measure.chosen(rows, "stage == 'validation'").groupby(["kind", "rate"])["accuracy"].mean()
        best = tried.unstack("rate").idxmax(axis=1)
        return judge(rows[rows["rate"] == rows["kind"].map(best)])

    return chosen


def settled(judge: Measure) -> Measure:
    """A measure of rows in which every kind has come to a plateau; ValueError where one has not.

    Of the tenths of training in ``TENTHS`` none may lower the mean test loss by more than PLATEAU. The first is at the
    full rate: at a rate that goes to zero a loss comes to rest anywhere.
    """

    def checked(rows: pd.DataFrame) -> Estimate:
        test = measure.chosen(rows, "stage == 'test'")
        tenth = (10 * test["step"] / test.groupby("kind")["step"].transform("max")).round(6)
        loss = test.assign(tenth=tenth).pivot_table("loss", "kind", "tenth")
        for kind, course in loss.iterrows():
            fall = max(course[before] - course[after] for before, after in TENTHS)
            if not fall <= PLATEAU:
                raise ValueError(f"{kind}: a tenth of the steps takes {fall:.3f} nats off its loss, over {PLATEAU}")
        return judge(rows)

    return checked


def steps_to_enough(rows: pd.DataFrame) -> pd.DataFrame:
    """Replicates by kinds: the first check with a share of ENOUGH on test data; one check after the last where none is."""
    test = measure.chosen(rows, "stage == 'test'")
    return test.groupby(["replicate", "kind"]).apply(reached, include_groups=False).unstack("kind")


def reached(course: pd.DataFrame) -> int:
    """The first step of a course with a share of ENOUGH; the step after the last one if there is none."""
    ordered = course.sort_values("step")
    enough = ordered.loc[ordered["accuracy"] >= ENOUGH, "step"]
    steps = ordered["step"]
    return int(enough.iloc[0]) if len(enough) else int(2 * steps.iloc[-1] - steps.iloc[-2])


def steps_saved(over: str, kind: str = "") -> Measure:
    """Steps to ENOUGH of another kind less those of this one, paired by replicate; of none that is never right enough,
    a control, if no kind is named."""

    def saved(rows: pd.DataFrame) -> Estimate:
        found = steps_to_enough(rows)
        return mean(found[over] - (found[kind] if kind else 1 + rows["step"].max()))

    return saved
