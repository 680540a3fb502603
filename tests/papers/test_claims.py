"""What every paper's claims promise, whatever they say."""

import importlib
from pathlib import Path

import pytest

import derived.papers

SLUGS = sorted(path.name for path in Path(derived.papers.__path__[0]).iterdir() if (path / "__init__.py").is_file())


@pytest.mark.parametrize("slug", SLUGS)
def test_every_claim_rests_on_an_experiment_of_the_list_or_gives_a_reason(slug):
    claims = importlib.import_module(f"derived.papers.{slug}.claims")
    for claim in claims.CLAIMS:
        assert claim.experiment in claims.EXPERIMENTS or (claim.experiment is None and claim.reason), claim.id
        assert claim.experiment is None or set(claim.expected) <= set(claim.experiment.tiers), claim.id


@pytest.mark.parametrize("slug", SLUGS)
def test_ids_are_unique_and_amendments_name_a_claim(slug):
    claims = importlib.import_module(f"derived.papers.{slug}.claims").CLAIMS
    ids = [claim.id for claim in claims]
    assert len(ids) == len(set(ids))
    assert {claim.amends for claim in claims} - {None} <= set(ids)
