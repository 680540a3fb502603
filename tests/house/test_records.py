"""No record could go stale unseen: its own ci rows with other numbers in them are noticed; and none decides by NaN."""

import dataclasses
import importlib
import json
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

from derived.lab.claims import Claim
from derived.lab.experiment import Experiment
from derived.lab.record import Record, load, results_root
from derived.lab.study import Study, asked_for, ledger, staleness

# Of these every float is what a clock says (seconds; the units of their claims are ratios of times).
CLOCKS = {("cactus", "SamplerTime"), ("hierarchical_kernel", "Overhead")}
RECORDED = sorted(path.parts[-4:-1] for path in results_root().glob("*/*/*/record.json"))


def recorded(slug: str, name: str, tier: str) -> tuple[tuple, type[Experiment], Record]:
    module = importlib.import_module(f"derived.papers.{slug}.claims")
    experiment = {each.__name__: each for each in module.EXPERIMENTS}[name]
    return module.CLAIMS, experiment, load(experiment, tier)


@pytest.mark.parametrize("place", RECORDED, ids="/".join)
def test_other_numbers_at_tier_ci_make_a_record_stale(place):
    claims, experiment, record = recorded(*place)

    def reasons(live: pd.DataFrame) -> list[str] | None:
        return staleness(claims, Study(experiment, "ci", record.seed, "cpu", live, {}), record)

    then = asked_for(record.ci_rows, experiment)
    floats = then.select_dtypes("float").columns
    assert reasons(then) == []
    for factor in (1000, np.nan):
        noticed = bool(reasons(then.assign(**{name: then[name] * factor for name in floats})))
        assert noticed == (len(floats) > 0 and place[:2] not in CLOCKS), factor
    integers = then.select_dtypes("integer").columns
    assert reasons(then.assign(**{name: then[name] + 1 for name in integers})), "a clock's integers are compared, too"


@pytest.mark.parametrize("place", RECORDED, ids="/".join)
def test_a_record_has_ci_rows_of_all_conditions_that_tier_ci_has(place):
    """Sizes of tier ci that changed would show here, also where no claim is judged at tier ci."""
    _, experiment, record = recorded(*place)
    today = pd.DataFrame(experiment.at("ci").conditions())
    if len(today.columns):  # else it has one condition without a name
        then = asked_for(record.ci_rows, experiment)[today.columns].drop_duplicates().reset_index(drop=True)
        pd.testing.assert_frame_equal(then, today, check_dtype=False)


@pytest.mark.parametrize("slug", sorted({slug for slug, *_ in RECORDED}))
def test_a_bound_on_rounding_is_an_order_of_magnitude(slug):
    """A power of ten below one: no more is known of other machines."""
    for experiment in importlib.import_module(f"derived.papers.{slug}.claims").EXPERIMENTS:
        for column, bound in experiment.deterministic.items():
            assert f"{bound:.9e}".startswith("1.000000000e-"), f"{experiment.__name__}: {column}"


def spoiled(rows: pd.DataFrame, how: str) -> pd.DataFrame:
    """Rows that say nothing: without numbers, without rows, or with words for numbers."""
    if how == "none":
        return rows.iloc[:0]
    numbers, value = ("float", np.nan) if how == "nan" else ("number", "text")
    return rows.assign(**dict.fromkeys(rows.select_dtypes(numbers), value))


@pytest.mark.parametrize("how", ["nan", "none", "text"])
@pytest.mark.parametrize("place", RECORDED, ids="/".join)
def test_rows_that_say_nothing_decide_nothing_and_say_so(place, how):
    """A claim that reads no float is decided by rows of NaN as it is without those columns."""
    slug, _, tier = place
    claims, experiment, record = recorded(*place)

    def judged(claim: Claim, rows: pd.DataFrame) -> tuple[str, str]:
        alone = dataclasses.replace(claim, amends=None)
        found = ledger(slug, [alone], [Study(experiment, tier, 0, "cpu", rows, {})])
        return next((row["verdict"], row["reason"]) for row in found if row["tier"] == tier)

    whole = record.ci_rows
    for claim in (each for each in claims if each.experiment is experiment and tier in each.judged_at):
        verdict, reason = judged(claim, spoiled(whole, how))
        if verdict != "undecided" and how == "nan":
            without = judged(claim, whole.drop(columns=whole.select_dtypes("float").columns))
            assert without == (verdict, reason), claim.id
        else:
            assert verdict == "undecided", f"{claim.id}: {verdict} by rows of {how}"
            assert reason, claim.id


# Made before the repository had a commit, or on a branch that was squashed. None may join them.
WITHOUT_COMMIT = [
    ("ols_attention", "LearnedInContext", "cpu"),
    ("task_ecologies", "Imposed", "cpu"),
]


def head(place: tuple[str, str, str]) -> dict:
    return json.loads(results_root().joinpath(*place, "record.json").read_text("utf-8"))


def test_a_record_names_its_commit_or_says_why_there_is_none():
    assert [place for place in RECORDED if not head(place)["commit"]] == WITHOUT_COMMIT
    assert [place for place in RECORDED if head(place)["no_commit"]] == WITHOUT_COMMIT


def git(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(["git", "-C", str(results_root()), *arguments], capture_output=True, text=True, check=False)


@pytest.mark.skipif(not shutil.which("git"), reason="without git there is no history")
def test_the_commit_of_a_record_is_an_ancestor_of_this_one():
    if git("rev-parse", "--is-shallow-repository").stdout.strip() != "false":
        pytest.skip("this checkout has no history, or not all of it")
    for commit in {head(place)["commit"] for place in RECORDED} - {""}:
        assert git("merge-base", "--is-ancestor", commit, "HEAD").returncode == 0, commit
