"""A pilot: small pieces are timed, and carried on to the whole; a clock that tells true costs must be met exactly."""

import json
import math
import time
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import pytest

from derived.book.house import House
from derived.book.record import cost, piloting
from derived.lab.experiment import Experiment


@dataclass(frozen=True, kw_only=True)
class Trained(Experiment):
    """Steps of networks of some widths, judged once."""

    steps: int = 900
    draft_steps: int = 50
    replicates: int = 8
    width: int = 32
    widths: tuple[int, ...] = (2, 4, 8, 16, 32, 64)
    tiers: ClassVar = {"ci": {"steps": 5, "draft_steps": 2, "replicates": 2, "width": 8, "widths": (2, 4)}, "cpu": {}}

    def conditions(self):
        return [{"wide": wide} for wide in self.widths]


def told(monkeypatch, costs, most=math.inf):
    """Let a clock tell costs, and list the sizes that were run."""
    runs = []

    def timed(sized, condition, limit):
        if (seconds := costs(sized, condition)) > min(limit, most):
            raise piloting.Over
        runs.append((sized, condition))
        return seconds

    monkeypatch.setattr(piloting, "timed", timed)
    return runs


@pytest.mark.parametrize(
    ("costs", "true"),
    [
        (lambda steps, search: 0.3 + 0.02 * steps + 0.001 * search, {"steps": 1000, "search": 7000}),
        (lambda steps, search: 0.3 + 0.02 * steps, {"steps": 1000, "search": 4}),
        (lambda steps, search: 1e-5 * search, {"steps": 3, "search": 5}),
        (lambda generations, steps: 0.3 + 0.02 * generations * steps, {"generations": 1000, "steps": 7000}),
        (lambda steps: 2 + 1e-4 * steps, {"steps": 10**6}),
    ],
    ids=["after each other", "one has no cost", "all of it is short", "inside each other", "little beside the rest"],
)
def test_loops_are_carried_on_as_they_stand_to_each_other(costs, true):
    runs = []

    def seconds(now):
        runs.append(dict(now))
        return costs(**now)

    low = dict.fromkeys(true, 2)
    assert piloting.carried(seconds, low, true, 0.5) == pytest.approx(costs(**true), rel=1e-9)
    assert max(costs(**run) for run in runs) <= 9, "only small pieces are run"
    assert len(runs) < 12


def test_loops_that_grow_until_a_piece_takes_too_long_stay_below_it():
    def costs(now):
        if now["steps"] > 100:
            raise piloting.Over
        return 2 + 1e-3 * now["steps"]

    assert piloting.carried(costs, {"steps": 2}, {"steps": 5000}, 0.5) == pytest.approx(7)
    with pytest.raises(piloting.Over):
        piloting.carried(costs, {"steps": 90}, {"steps": 5000}, 0.5)


def test_noise_of_two_loops_is_not_taken_for_one_inside_the_other():
    def noisy(now):
        return (0.3 + 0.02 * now["steps"] + 0.02 * now["search"]) * (1.2 if min(now.values()) > 2 else 1)

    found = piloting.carried(noisy, {"steps": 2, "search": 2}, {"steps": 4000, "search": 4000}, 0.01)
    assert 80 < found < 320


def test_a_pilot_meets_costs_that_are_linear_in_its_loops(monkeypatch):
    def costs(sized, condition):
        return 0.01 + 1e-3 * sized.steps + 2e-4 * sized.draft_steps

    runs = told(monkeypatch, costs)
    whole = len(Trained().widths) * costs(Trained(), {})
    assert piloting.pilot(Trained, "cpu") == pytest.approx(whole)
    assert all((sized.replicates, sized.width, sized.widths) == (8, 32, Trained().widths) for sized, _ in runs)


def test_where_loops_alone_are_not_short_enough_replicates_are_reduced_too(monkeypatch):
    def costs(sized, condition):
        return 2 * sized.replicates + 1e-2 * sized.steps * sized.replicates

    runs = told(monkeypatch, costs)
    assert piloting.pilot(Trained, "cpu") == pytest.approx(6 * costs(Trained(), {}))
    assert {sized.width for sized, _ in runs} == {32}, "what does not grow in proportion stays"
    told(monkeypatch, costs, most=0)
    assert piloting.pilot(Trained, "cpu") is None, "no piece is short enough"


def test_a_number_that_an_experiment_refuses_is_not_reduced(monkeypatch):
    def costs(sized, condition):
        if sized.replicates < 8:
            raise ValueError("too few")
        return 100.0

    told(monkeypatch, costs)
    assert piloting.pilot(Trained, "cpu") is None

    def logged(sized, condition):
        if sized.steps < 5:
            raise RuntimeError("steps of length 0")
        return 1e-3 * sized.steps

    runs = told(monkeypatch, logged)
    monkeypatch.setattr(Trained, "tiers", Trained.tiers | {"cpu": {"steps": 1000}})
    assert piloting.pilot(Trained, "cpu") == pytest.approx(6)
    assert min(sized.steps for sized, _ in runs) == 5, "as few as at tier ci"
    told(monkeypatch, lambda sized, condition: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        piloting.pilot(Trained, "cpu")


def test_conditions_that_were_not_timed_follow_from_those_that_were(monkeypatch):
    runs = told(monkeypatch, lambda sized, condition: condition["wide"] ** 2 * 1e-3)
    monkeypatch.setattr(piloting, "BUDGET", {"cpu": -1.0})
    whole = sum(wide**2 for wide in Trained().widths)
    assert piloting.pilot(Trained, "cpu") == pytest.approx(1e-3 * whole, rel=0.02)
    assert {condition["wide"] for _, condition in runs} == {2, 64}, "the largest and the smallest at least"


def test_places_show_each_value_soon():
    """The largest, the smallest, then new values: fractions and words count as values, too."""
    conditions = [{"eta": eta, "H": H, "law": law} for eta in (0.2, 1.0) for H in (1, 4, 8) for law in ("a", "b")]
    order = piloting.spread(conditions)
    assert [conditions[place]["H"] for place in order[:2]] == [8, 1]
    assert sorted(order) == [*range(12)]
    assert {value for place in order[:4] for value in conditions[place].items()} == {
        *(("eta", each) for each in (0.2, 1.0)),
        *(("H", each) for each in (1, 4, 8)),
        *(("law", each) for each in ("a", "b")),
    }
    assert piloting.spread([{}]) == [0]


def test_what_takes_a_product_over_values_is_found_by_few_places():
    worth = {"a": 1.0, "b": 7.0}
    conditions = [{"eta": eta, "law": law} for eta in (0.1, 0.2, 0.4) for law in worth]
    seconds = [worth[each["law"]] / each["eta"] ** 2 for each in conditions]
    few = {place: seconds[place] for place in (0, 1, 2, 4)}
    assert piloting.between(conditions, few) == pytest.approx(sum(seconds), rel=1e-6)
    assert piloting.between(conditions, {0: 100.0, 4: 6.25, 5: 43.75}) == pytest.approx(sum(seconds), rel=0.01)
    assert piloting.between([{}], {0: 2.0}) == pytest.approx(2)


@pytest.mark.parametrize(("enough", "number"), [(2, 6), (9, 9)], ids=["each value", "enough of them"])
def test_conditions_are_timed_until_each_value_was_and_enough_are(monkeypatch, enough, number):
    class Twice(Trained):
        def conditions(self):
            return [{"wide": wide, "law": law} for law in ("a", "b") for wide in self.widths]

    runs = told(monkeypatch, lambda sized, condition: condition["wide"] * 1e-3)
    for name, value in {"BUDGET": {"cpu": 1e-9}, "MOST": 1e12, "ENOUGH": enough}.items():
        monkeypatch.setattr(piloting, name, value)
    assert piloting.pilot(Twice, "cpu") == pytest.approx(2 * sum(Trained().widths) * 1e-3, rel=1e-2)
    timed = [tuple(condition.items()) for _, condition in runs]
    assert len({*timed}) == number
    assert {item for items in timed for item in items} >= {*(("wide", wide) for wide in Trained().widths)}


def test_a_piece_that_takes_too_long_is_stopped():
    class Endless(Trained):
        def run(self, condition, *, seed, device, dtype):
            while True:
                try:
                    math.exp(1)
                except Exception:
                    continue

    started = time.monotonic()
    with pytest.raises(piloting.Over):
        piloting.timed(Endless(), {}, 0.05)
    assert time.monotonic() - started < 20


def test_seconds_are_those_of_the_core():
    class Asleep(Trained):
        def run(self, condition, *, seed, device, dtype):
            time.sleep(0.3)
            return pd.DataFrame()

    assert piloting.timed(Asleep(), {}, 1) < 0.2


def test_a_whole_that_is_not_short_after_all_took_at_least_twice_as_long(monkeypatch):
    told(monkeypatch, lambda sized, condition: 9.0)
    assert piloting.whole(Trained, "cpu") == 2 * piloting.SHORT
    told(monkeypatch, lambda sized, condition: 1.0)
    assert piloting.whole(Trained, "cpu") == 6


def test_what_is_short_also_runs_whole_and_a_count_of_the_same_sizes_stays(monkeypatch, tmp_path):
    house = House(tmp_path)
    (tmp_path / "results").mkdir()
    monkeypatch.setattr(Trained, "paper", classmethod(lambda cls: "toy"))
    of = piloting.sizes_of(Trained, "cpu")
    cost.keep(house, {"toy/Trained/cpu": {"of": of, "launches": 7}})
    told(monkeypatch, lambda sized, condition: sized.steps * 1e-3)
    assert piloting.keep(house, Trained, "cpu") == "toy/Trained/cpu: 5 s, took 5 s"
    kept = json.loads((tmp_path / cost.FILE).read_text())["toy/Trained/cpu"]
    assert kept == {"of": of, "launches": 7, "pilot": 5.4, "whole": 5.4}
    cost.keep(house, {"toy/Trained/cpu": {"of": of, "launches": 8}})
    assert cost.counts(house)["toy/Trained/cpu"] == kept | {"launches": 8}
    told(monkeypatch, lambda sized, condition: sized.steps * 1.0)
    assert piloting.keep(house, Trained, "cpu") == "toy/Trained/cpu: 1.5 h, took longer than is tried"
    assert cost.counts(house)["toy/Trained/cpu"] == {"of": of, "launches": 8, "pilot": 5400}
    cost.keep(house, {"toy/Trained/cpu": {"of": "other", "launches": 8}})
    assert cost.counts(house)["toy/Trained/cpu"] == {"of": "other", "launches": 8}, "of another size"


def test_small_numbers_grow_until_their_loop_shows_in_what_a_run_takes():
    asked = []

    def costs(now):
        asked.append(10 + now["steps"] / 10)
        return asked[-1]

    assert piloting.carried(costs, {"steps": 2}, {"steps": 5000}, 0.5) == pytest.approx(510)
    assert max(asked) >= 15, "half as long again as the ten seconds that pass before the loop begins"
