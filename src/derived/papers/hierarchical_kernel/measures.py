"""What the rows of trained arms say: accuracy at the end, paired gains, and whether training had come to its end."""

from collections.abc import Sequence

import pandas as pd
from scipy.stats import t as student

from derived.lab import measure
from derived.lab.measure import Measure, lowest
from derived.lab.stats import LEVEL, Estimate, mean

NAMES = {"plain": "standard attention", "wide": "wide attention", "conv-qk": "conv-QK"}
NAMES |= {"hkt-average": "HKT with frozen averaging"}
RIVALS = ("wide", "conv-qk", "hkt-average")  # what has as many numbers as HKT and lacks one thing of it each
AT_END = "stage == 'test' and step == step.max()"
POWER = 0.8  # with which the smallest visible difference is seen
PLATEAU = 0.05  # nats by which a tenth of the steps may lower an arm's mean test loss
TENTHS = ((6, 7), (9, 10))  # the last one at the full rate, and the last of all


def tuned_accuracy(rows: pd.DataFrame) -> pd.DataFrame:
    """Replicates by arms: accuracy on test data at the end of training, each arm at the rate chosen for it."""
    return measure.chosen(rows, AT_END).pivot(index="replicate", columns="kind", values="accuracy")


def tuned_gain(over: str, kind: str = "hkt") -> Measure:
    """Test accuracy of an arm less that of another at their own rates, paired by replicate."""
    return lambda rows: mean(tuned_accuracy(rows).pipe(lambda found: found[kind] - found[over]))


def least_gain(over: Sequence[str], kind: str = "hkt") -> Measure:
    """Of the paired gains over several arms, judged jointly, the least."""

    def least(rows: pd.DataFrame) -> Estimate:
        found = tuned_accuracy(rows)
        return lowest([mean(found[kind] - found[each], 1 - (1 - LEVEL) / len(over)) for each in over])

    return least


def work(rows: pd.DataFrame) -> float:
    """Operations of all HKT's training over those of standard attention's."""
    spent = measure.chosen(rows, AT_END).groupby("kind")["flop"].mean()
    return float(spent["hkt"] / spent["plain"])


def gain_at_equal_work(over: str, kind: str = "hkt") -> Measure:
    """``tuned_gain`` of an arm that is cut off at its last check within the operations that the other had in all."""

    def gain(rows: pd.DataFrame) -> Estimate:
        test, end = measure.chosen(rows, "stage == 'test'"), tuned_accuracy(rows)[over]
        within = test[(test["kind"] == kind) & (test["flop"] <= test.loc[test["kind"] == over, "flop"].max())]
        return mean(within.loc[within.groupby("replicate")["step"].idxmax()].set_index("replicate")["accuracy"] - end)

    return gain


def at_an_end(rows: pd.DataFrame) -> str:
    """The arms whose best rate is the smallest or the largest that was tried, in words."""
    best, tried = measure.chosen(rows, "stage == 'test'").groupby("kind")["rate"].first(), rows["rate"].dropna()
    return ", ".join(NAMES.get(kind, "HKT") for kind in best.index[best.isin([tried.min(), tried.max()])]) or "none"


def untrained_gain(*over: str) -> Measure:
    """Test accuracy of HKT before training less that of other arms after it, judged jointly, the least: a control."""

    def least(rows: pd.DataFrame) -> Estimate:
        untrained = measure.chosen(rows, "stage == 'test' and step == 0 and kind == 'hkt'").set_index("replicate")
        trained = tuned_accuracy(rows)
        level = 1 - (1 - LEVEL) / len(over)
        return lowest([mean(untrained["accuracy"] - trained[each], level) for each in over])

    return least


def settled(judge: Measure) -> Measure:
    """A measure of rows in which every arm has come to a plateau; ValueError where one has not.

    Of the tenths of training in ``TENTHS`` none may lower the mean test loss of an arm by more than PLATEAU. The first
    is at the full rate: at a rate that goes to zero a loss comes to rest anywhere.
    """

    def checked(rows: pd.DataFrame) -> Estimate:
        test = measure.chosen(rows, "stage == 'test'")
        tenth = (10 * test["step"] / test["step"].max()).round(6)
        loss = test.assign(tenth=tenth).pivot_table("loss", "kind", "tenth")
        for kind, course in loss.iterrows():
            fall = max(course[before] - course[after] for before, after in TENTHS)
            if not fall <= PLATEAU:
                raise ValueError(f"{kind}: a tenth of the steps takes {fall:.3f} nats off its loss, over {PLATEAU}")
        return judge(rows)

    return checked


def visible(over: str) -> Measure:
    """The true gain over an arm that the design would have called a gain with probability ``POWER``.

    (t_{(1 + LEVEL)/2} + t_POWER) standard errors of the paired difference, n - 1 degrees of freedom; to first order,
    since the noncentral distribution is replaced by a shifted one.
    """

    def smallest(rows: pd.DataFrame) -> Estimate:
        found = tuned_gain(over)(rows)
        quantiles = student.ppf([(1 + LEVEL) / 2, POWER], found.n - 1)
        return Estimate(float(quantiles.sum() * found.error), found.n)

    return smallest


def coarse_weight(rows: pd.DataFrame) -> Estimate:
    """The share of alpha that trained HKT gives to levels above 0, mean over blocks and heads."""
    finest = rows.query("kind == 'hkt' and level == 0")
    return mean(1 - finest.groupby("replicate")["alpha"].mean())


def gains(rows: pd.DataFrame, kind: str = "hkt") -> pd.DataFrame:
    """For readers: an arm's paired gain over each other one in percentage points, with 95 % and 99.9 % intervals."""
    right, table = 100 * tuned_accuracy(rows), {}
    for over in (each for each in NAMES if each in right and each != kind):
        usual, strict = (mean(right[kind] - right[over], level) for level in (0.95, LEVEL))
        ends = {name: f"{each.low:+.2f} to {each.high:+.2f}" for name, each in (("95 %", usual), ("99.9 %", strict))}
        table[NAMES[over]] = {"gain": f"{usual.value:+.2f}", **ends}
    return pd.DataFrame.from_dict(table, orient="index").rename_axis("points over")
