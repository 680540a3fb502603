"""What nobody has run has a computed cost, and the costs of what was run are near what it took."""

import importlib
import json

import pytest

from derived.book.house import House
from derived.book.record import cost, scaling
from derived.lab.experiment import Experiment
from derived.lab.findings import hashed
from derived.lab.record import results_root

HOUSE = House(results_root().parent)
SLUGS = HOUSE.chapters()
ENOUGH = 20  # runs at tier ci or cpu that were timed in pieces and whole
FAR = {  # those that took more than twice what their pieces said: how long they search depends on what they find
    "homogenized/OneLayer/cpu",
}


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


@pytest.mark.parametrize("slug", SLUGS)
def test_no_count_is_of_a_size_that_is_run_no_more(slug):
    known = cost.counts(HOUSE)
    tiers = ("ci", "cpu", "gpu")
    runs = {cost.name_of(slug, one.__name__, tier): (one, tier) for tier in tiers for one in offered(slug, tier)}
    counted = {name: count["of"] for name, count in known.items() if name.startswith(f"{slug}/")}
    today = {name: hashed(one.at(tier).configuration()) for name, (one, tier) in runs.items() if name in counted}
    assert counted == today, f"derived costs {slug}"


def test_nine_of_ten_pilots_are_near_what_the_whole_took():
    found = cost.piloted(HOUSE)
    assert len(found.ratios) >= ENOUGH, "derived costs --pilot"
    assert found.near >= 0.9 * len(found.ratios)
    wholes = {name: one["whole"] / one["pilot"] for name, one in cost.counts(HOUSE).items() if "whole" in one}
    assert {name for name, ratio in wholes.items() if not cost.near([ratio])} <= FAR


@pytest.mark.parametrize("name", sorted(scaling.stated()))
def test_an_experiment_grows_as_theory_says(name):
    path = HOUSE.root / "results" / name / "cpu/record.json"
    if not path.is_file():
        pytest.skip("its record is to be made again")
    scale = scaling.of(name, json.loads(path.read_text("utf-8")), scaling.counts(HOUSE)[name])
    for growth in scale.growths:
        assert growth.agrees, f"{growth.what}: {growth.found:.2f} by count, {growth.expected} by theory"


@pytest.mark.parametrize("slug", SLUGS)
def test_the_three_costliest_of_a_chapter_are_counted_by_size_or_say_why_not(slug):
    found = HOUSE.root.glob(f"results/{slug}/*/cpu/record.json")
    seconds = {path.parts[-3]: json.loads(path.read_text("utf-8"))["seconds"] for path in found}
    told = {name.split("/")[1] for name in scaling.stated() if name.startswith(f"{slug}/")} | {*scaling.uncounted(slug)}
    assert {*sorted(seconds, key=seconds.get)[-3:]} <= told


def test_nothing_is_counted_by_size_that_is_not_stated():
    assert scaling.counts(HOUSE).keys() == scaling.stated().keys()
