"""What every paper's claims promise, whatever they say."""

import importlib
from pathlib import Path

import pytest

import derived.papers

SLUGS = sorted(path.name for path in Path(derived.papers.__path__[0]).iterdir() if (path / "__init__.py").is_file())


@pytest.mark.parametrize("slug", SLUGS)
def test_a_claim_rests_on_an_experiment_or_gives_a_reason(slug):
    for claim in importlib.import_module(f"derived.papers.{slug}.claims").CLAIMS:
        assert claim.experiment or claim.reason, claim.id


@pytest.mark.parametrize("slug", SLUGS)
def test_ids_are_unique_and_amendments_name_a_claim(slug):
    claims = importlib.import_module(f"derived.papers.{slug}.claims").CLAIMS
    ids = [claim.id for claim in claims]
    assert len(ids) == len(set(ids))
    assert {claim.amends for claim in claims} - {None} <= set(ids)
