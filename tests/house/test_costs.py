"""What nobody has run has a computed cost, and what was run at tier cpu is compared with what counting would predict."""

import importlib

import numpy as np
import pytest

from derived.book.house import House
from derived.book.record import cost
from derived.lab.experiment import Experiment
from derived.lab.findings import hashed
from derived.lab.record import load, results_root
from derived.lab.study import absence

HOUSE = House(results_root().parent)
SLUGS = HOUSE.chapters()


def offered(slug: str, tier: str) -> list[type[Experiment]]:
    return [one for one in importlib.import_module(f"derived.papers.{slug}.claims").EXPERIMENTS if tier in one.tiers]


@pytest.mark.parametrize("slug", SLUGS)
def test_every_run_at_tier_gpu_is_counted_at_its_configuration(slug):
    known = cost.counts(HOUSE)
    command = f"derived record {slug} --tier gpu --dry-run"
    for experiment in offered(slug, "gpu"):
        name = cost.name_of(slug, experiment.__name__, "gpu")
        assert known.get(name, {}).get("of") == hashed(experiment.at("gpu").configuration()), f"{name}: {command}"
        chosen = cost.to_rent(cost.predicted(HOUSE, name))
        assert chosen is not None, f"{name}: no card holds it"
        assert chosen.seconds > 0


@pytest.mark.parametrize("slug", SLUGS)
def test_every_record_at_tier_cpu_was_counted_at_its_configuration(slug):
    known = cost.counts(HOUSE)
    for experiment in offered(slug, "cpu"):
        name, record = cost.name_of(slug, experiment.__name__, "cpu"), load(experiment, "cpu")
        if record and (name in known or not absence(experiment)):  # real things that are not here cannot be counted
            command = f"derived record {slug} {experiment.__name__} --tier cpu --dry-run"
            assert known.get(name, {}).get("of") == hashed(record.configuration), f"{name}: {command}"


def test_recorded_times_at_tier_cpu_scatter_about_the_predicted_ones():
    """Predictions have no large bias: the middle ratio is near one. The status page says how many are near by themselves."""
    made = [(slug, load(one, "cpu")) for slug in SLUGS for one in offered(slug, "cpu")]
    states = [
        cost.of_record(HOUSE, slug, vars(record) | {"state": "unchanged", "device": record.device_name})
        for slug, record in made
        if record
    ]
    ratios = np.array([each["seconds"] / each["predicted"] for each in states if each["predicted"]])
    assert len(ratios) >= len(states) / 3, "too few can be counted"
    assert 1 / cost.NEAR <= np.median(ratios) <= cost.NEAR
    found = cost.tested(states)["CPU core"]
    assert found["near"] == np.sum((ratios >= 0.5) & (ratios <= 2))
