"""What every paper's claims promise, whatever they say."""

import importlib
import json
from pathlib import Path

import pytest

import derived.papers
from derived.book.source import on_page

ROOT = Path(__file__).resolve().parents[2]

SLUGS = sorted(path.name for path in Path(derived.papers.__path__[0]).iterdir() if (path / "__init__.py").is_file())


@pytest.mark.parametrize("slug", SLUGS)
def test_a_claim_rests_on_an_experiment_or_a_check_cell_or_gives_a_reason(slug):
    for claim in importlib.import_module(f"derived.papers.{slug}.claims").CLAIMS:
        assert claim.experiment or claim.reason or claim.kind == "on page", claim.id


@pytest.mark.parametrize("slug", SLUGS)
def test_claims_and_check_cells_name_each_other(slug):
    notebook = json.loads((ROOT / f"notebooks/{slug}.ipynb").read_text("utf-8"))
    claims = importlib.import_module(f"derived.papers.{slug}.claims").CLAIMS
    named = [claim.id for claim in claims if claim.kind == "on page"]
    assert on_page.faults(notebook) + on_page.unmatched(notebook, named) == []


@pytest.mark.parametrize("slug", SLUGS)
def test_ids_are_unique_and_amendments_name_a_claim(slug):
    claims = importlib.import_module(f"derived.papers.{slug}.claims").CLAIMS
    ids = [claim.id for claim in claims]
    assert len(ids) == len(set(ids))
    assert {claim.amends for claim in claims} - {None} <= set(ids)
