"""Each bound and statistic has a null arm, which does nothing and fails by the same criterion, or says why not."""

import importlib
import json
from pathlib import Path

import pytest

from derived.book.source import on_page
from derived.lab.claims import Claim

ROOT = Path(__file__).resolve().parents[2]
SLUGS = sorted(path.parent.name for path in (ROOT / "src/derived/papers").glob("*/claims.py"))


def reasoned(claim: Claim) -> bool:
    """Whether a claim has a null arm, or a sentence of five words and more that says why there is none."""
    return callable(claim.null) or len(claim.null.split()) >= 5


def lacking(slug: str) -> list[str]:
    """The claims of a chapter without a null arm and without a reason."""
    claims = importlib.import_module(f"derived.papers.{slug}.claims").CLAIMS
    bare = on_page.without_null(json.loads((ROOT / f"notebooks/{slug}.ipynb").read_text("utf-8")))
    judged = (claim for claim in claims if claim.kind in ("bound", "statistic") or claim.id in bare)
    return [claim.id for claim in judged if not reasoned(claim)]


@pytest.mark.parametrize("slug", SLUGS)
def test_each_bound_and_statistic_has_a_null_arm_or_says_why_not(slug):
    assert lacking(slug) == []
