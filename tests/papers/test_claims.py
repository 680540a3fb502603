"""What every paper's claims promise, whatever they say."""

import builtins
import contextlib
import importlib
import json
import math
from functools import cache
from pathlib import Path

import pytest
from scipy.stats import t as student

import derived.papers
from bookbuilder.notebook import notebook_claims
from derived.lab import measure, record
from derived.lab.stats import LEVEL

ROOT = Path(__file__).resolve().parents[2]

SLUGS = sorted(path.name for path in Path(derived.papers.__path__[0]).iterdir() if (path / "__init__.py").is_file())


@pytest.mark.parametrize("slug", SLUGS)
def test_a_claim_rests_on_an_experiment_or_a_check_cell_or_gives_a_reason(slug):
    for claim in importlib.import_module(f"derived.papers.{slug}.claims").CLAIMS:
        assert claim.experiment or claim.reason or claim.kind == "on page", claim.id


@pytest.mark.parametrize("slug", SLUGS)
def test_one_row_speaks_for_all_that_cannot_be_judged_for_one_reason(slug):
    claims = importlib.import_module(f"derived.papers.{slug}.claims").CLAIMS
    reasons = [claim.reason for claim in claims if not claim.experiment and claim.kind != "on page"]
    assert all(reason.startswith("cannot be judged here: ") for reason in reasons), reasons
    assert len(reasons) <= 2, "no paper has three reasons; merge the claims that share one"


@pytest.mark.parametrize("slug", SLUGS)
def test_claims_and_check_cells_name_each_other(slug):
    notebook = json.loads((ROOT / f"notebooks/{slug}.ipynb").read_text("utf-8"))
    claims = importlib.import_module(f"derived.papers.{slug}.claims").CLAIMS
    named = [claim.id for claim in claims if claim.kind == "on page"]
    assert notebook_claims.faults(notebook) + notebook_claims.unmatched(notebook, named) == []


@pytest.mark.parametrize("slug", SLUGS)
def test_ids_are_unique_and_amendments_name_a_claim(slug):
    claims = importlib.import_module(f"derived.papers.{slug}.claims").CLAIMS
    ids = [claim.id for claim in claims]
    assert len(ids) == len(set(ids))
    assert {claim.amends for claim in claims} - {None} <= set(ids)


def miss(found) -> list[float]:
    """How often each interval of Student's may miss, times their number; none for intervals of another kind."""
    student_s = [
        one for one in found if one.error and math.isclose(one.high - one.value, one.value - one.low, rel_tol=1e-6)
    ]
    return [2 * len(found) * student.sf((one.high - one.value) / one.error, one.n - 1) for one in student_s]


@cache
def recorded(experiment, tier: str):
    """The rows of a record; none where it waits for its run."""
    try:
        found = record.load(experiment, tier)
    except record.RecordError:
        return None
    return found and found.rows


ONE_CASE = ("ols_attention",)  # chapters each of whose recorded claims is one case, or a share


@pytest.mark.parametrize("slug", SLUGS)
def test_cases_of_which_the_least_or_greatest_is_told_miss_at_the_level_of_one(slug, monkeypatch):
    """On the records, whoever makes the intervals: with k cases each may miss a k-th as often (Bonferroni), and half as
    often again where a claim was looked at twice."""
    seen = {}

    def watch(name):
        def choose(*given, **facts):
            if facts and isinstance(given[0], list):
                looks = 2 if "corrected for two looks" in claim.criterion else 1
                seen.setdefault(claim.id, []).extend(looks * each for each in miss(given[0]))
            return getattr(builtins, name)(*given, **facts)

        return choose

    for name in ("min", "max"):  # with them ``lowest``, ``highest`` and ``farthest_from`` choose
        monkeypatch.setattr(measure, name, watch(name), raising=False)
    for claim in importlib.import_module(f"derived.papers.{slug}.claims").CLAIMS:
        tiers = {*claim.experiment.tiers} - {"ci"} if claim.experiment and claim.measure else ()
        for rows in (each for tier in tiers if (each := recorded(claim.experiment, tier)) is not None):
            with contextlib.suppress(ValueError):  # an interval that the rows do not allow
                claim.measure(rows)
    assert any(seen.values()) == (slug not in ONE_CASE), "whether a record of the chapter is judged jointly"
    assert {id: each for id, each in seen.items() if each != pytest.approx([1 - LEVEL] * len(each), rel=1e-3)} == {}
