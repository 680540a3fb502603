"""Each headline claim is decided twice, or has a reason why not; no claim has both."""

import dataclasses
import importlib
from pathlib import Path

import pytest

from derived.book.front import twice
from derived.book.source.statements import pencilled
from derived.lab.sources import source_files

ROOT = Path(__file__).resolve().parents[2]
SLUGS = sorted(path.parent.name for path in (ROOT / "src/derived/papers").glob("*/claims.py"))
KNOWN = twice.reasons(ROOT)


def claims_of(slug: str):
    return importlib.import_module(f"derived.papers.{slug}.claims").CLAIMS


def faults(claims, named, known) -> list[str]:
    """The headline claims that are decided once without a reason, or twice with one."""
    found = [f"{claim} is no claim" for claim in named if claim not in {claim.id for claim in claims}]
    for claim in claims:
        why = twice.reason({field.name: getattr(claim, field.name) for field in dataclasses.fields(claim)}, known)
        if claim.plain and claim.id not in named and not why:
            found.append(f"{claim.id} is decided once; decide it in tests/pencil, or say in {twice.ONCE} why not")
        if claim.id in named and why:
            found.append(f"{claim.id} is decided twice, and {twice.ONCE} or its row says why not: {why}")
    return found


@pytest.mark.parametrize("slug", SLUGS)
def test_each_headline_claim_is_decided_twice_or_has_a_reason(slug):
    assert faults(claims_of(slug), pencilled(ROOT, slug), KNOWN) == []


def test_a_missing_reason_and_a_needless_one_are_faults():
    headlines = [claim for claim in claims_of("signal_propagation") if claim.id in ("SP-15.a", "SP-20")]
    assert faults(headlines, {"SP-20": []}, {"SP-15.a": "too large"}) == []
    assert len(faults(headlines, {"SP-20": []}, {})) == 1
    assert len(faults(headlines, {"SP-20": []}, {"SP-15.a": "too large", "SP-20": "too deep"})) == 1


def test_the_reasons_are_those_of_headline_claims_that_need_them():
    headlines = {claim.id: claim for slug in SLUGS for claim in claims_of(slug) if claim.plain}
    assert set(KNOWN) <= set(headlines)
    for claim, why in KNOWN.items():
        experiment = headlines[claim].experiment
        assert twice.reason({"id": claim, **vars(headlines[claim])}, {}) == "", f"{claim}: its row says why"
        trains = any(path.name == "training.py" for path in source_files(experiment.__module__))
        assert trains == (why == "trained models"), claim
