"""Experiments on real weights and data: they name what is pinned for their chapter, and have a record to stand in."""

import importlib
import json

import pytest

from derived.lab.real import pinned
from derived.lab.record import results_root, slot
from derived.lab.sources import PACKAGE_ROOT

SLUGS = sorted(path.parent.name for path in (PACKAGE_ROOT / "papers").glob("*/__init__.py"))
NEEDY = [
    (slug, experiment)
    for slug in SLUGS
    for experiment in importlib.import_module(f"derived.papers.{slug}.claims").EXPERIMENTS
    if experiment.needs
]


@pytest.mark.parametrize("name", pinned.BY_NAME)
def test_a_package_is_pinned_for_the_chapters_that_need_it(name):
    """Each of them, or one would not run again when it comes or goes; no other; and nothing is fetched for none.

    A chapter that needs something of a later offer as well runs again when that comes, and may be left out: one name
    more changes the hash of every record of real things.
    """
    chapters, order = pinned.BY_NAME[name].chapters, ("default", "optional", "terms")
    offers = {one.name: order.index(one.offer) for one in pinned.PACKAGES}
    needing = [(slug, max(offers[each] for each in one.needs)) for slug, one in NEEDY if name in one.needs]
    named = {slug for slug, latest in needing if latest == offers[name]}
    assert named <= {*chapters} <= {slug for slug, _ in needing}
    assert chapters


def test_no_package_is_listed_twice():
    assert len(pinned.BY_NAME) == len(pinned.PACKAGES)


@pytest.mark.parametrize(("slug", "experiment"), NEEDY)
def test_an_experiment_needs_what_is_listed(slug, experiment):
    assert {*experiment.needs} <= {*pinned.BY_NAME}


@pytest.mark.parametrize(("slug", "experiment"), NEEDY)
def test_an_experiment_that_needs_something_has_a_record(slug, experiment):
    """Or its chapter would not run without."""
    assert any(slot(slug, experiment.__name__, tier).is_dir() for tier in experiment.tiers)


def chapters(*made_of: str) -> set[str]:
    """The chapters with a row that was judged, at any tier, and is made of one of these."""
    rows = json.loads((results_root() / "ledger.json").read_text("utf-8"))
    judged = {row["id"] for row in rows if row["verdict"] in ("holds", "fails", "refuted", "undecided")}
    claims = (
        (slug, each) for slug in SLUGS for each in importlib.import_module(f"derived.papers.{slug}.claims").CLAIMS
    )
    return {slug for slug, claim in claims if claim.made_of in made_of and claim.id in judged}
