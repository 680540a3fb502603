"""What nobody has run has a computed cost, and the costs of what was run are near what it took."""

import importlib

import pytest

from derived.book.house import House
from derived.book.record import cost
from derived.lab.experiment import Experiment
from derived.lab.findings import hashed
from derived.lab.record import results_root

HOUSE = House(results_root().parent)
SLUGS = HOUSE.chapters()


def offered(slug: str, tier: str) -> list[type[Experiment]]:
    return [one for one in importlib.import_module(f"derived.papers.{slug}.claims").EXPERIMENTS if tier in one.tiers]


@pytest.mark.parametrize("slug", SLUGS)
def test_every_run_at_tier_gpu_is_counted_at_its_configuration(slug):
    known = cost.counts(HOUSE)
    command = f"derived costs {slug}"
    for experiment in offered(slug, "gpu"):
        name = cost.name_of(slug, experiment.__name__, "gpu")
        assert known.get(name, {}).get("of") == hashed(experiment.at("gpu").configuration()), f"{name}: {command}"
        chosen = cost.to_rent(cost.predicted(HOUSE, name))
        assert chosen is not None, f"{name}: no card holds it"
        assert chosen.seconds > 0
