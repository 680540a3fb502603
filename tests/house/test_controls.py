"""Each bound and statistic has a control, which does nothing and fails by the same criterion, or says why not."""

import ast
import importlib
import json
from pathlib import Path

import pytest

from bookbuilder.notebook import notebook_claims
from derived.lab.claims import Claim

ROOT = Path(__file__).resolve().parents[2]
SLUGS = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))


def has_control_or_reason(claim: Claim) -> bool:
    """Whether a claim has a control, or a sentence of five words or more that says why there is none."""
    return callable(claim.control) or len(claim.control.split()) >= 5


def bounds_without_control(notebook: dict) -> set[str]:
    """The bounds of a notebook of which no call brings a control."""
    bounds = {claim for claim, fields in notebook_claims.decided(notebook).items() if fields["kind"] == "bound"}
    for _, node in notebook_claims._nodes(notebook["cells"]):
        if len(node.args) == 3 and any(each.arg == "control" for each in node.keywords):
            bounds.discard(ast.literal_eval(node.args[2]))
    return bounds


def without_control(slug: str) -> list[str]:
    """The claims of a chapter without a control and without a reason."""
    claims = importlib.import_module(f"derived.papers.{slug}.claims").CLAIMS
    bare = bounds_without_control(json.loads((ROOT / f"notebooks/{slug}.ipynb").read_text("utf-8")))
    judged = (claim for claim in claims if claim.kind in ("bound", "statistic") or claim.id in bare)
    return [claim.id for claim in judged if not has_control_or_reason(claim)]


@pytest.mark.parametrize("slug", SLUGS)
def test_each_bound_and_statistic_has_a_control_or_says_why_not(slug):
    assert without_control(slug) == []
