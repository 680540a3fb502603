"""What a run would cost: counted without computing it, priced by a card's figures, and told where it is missing."""

import json
import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import ClassVar

import pandas as pd
import pytest
import torch

from derived.book.house import House
from derived.book.record import cost, counting
from derived.lab.experiment import Experiment

CARD = {"name": "H100", "fp64": 1, "fp32": 2, "bf16": 4, "memory": 8, "bandwidth": 100, "latency": 10, "share": 0.5}
CARD["hour"] = 3.6
MADE = {"state": "unchanged", "experiment": "Draws", "tier": "cpu", "seconds": 3600, "peak_memory_mb": 1.0}
MADE["device"] = "EPYC, one core per condition"
SMALL = {"ci": {"n": 50, "steps": 4, "repeats": 2}, "gpu": {}}


@dataclass(frozen=True, kw_only=True)
class Products(Experiment):
    """Powers of a random matrix: steps products of n × n matrices, each with an addition."""

    n: int = 100_000  # 80 GB, which nobody computes here
    steps: int = 5_000
    tiers: ClassVar = {"ci": {"n": 50, "steps": 4}, "gpu": {}}

    def conditions(self):
        return [{"sign": sign} for sign in (-1, 1)]

    def run(self, condition, *, seed, device, dtype):
        power = torch.rand(self.n, self.n, dtype=dtype)
        for _ in range(self.steps):
            power = power @ power + condition["sign"]
        return pd.DataFrame({"largest": [float(power.max())]})


@dataclass(frozen=True, kw_only=True)
class Looking(Products):
    """The same, where the code looks at a number that only a true run has."""

    n: int = 400
    total: float = 0.25

    def run(self, condition, *, seed, device, dtype):
        weights = torch.full((self.n, self.n), self.total / self.n, dtype=dtype)
        if abs(float(weights.sum(dim=0).max()) - self.total) > 1e-6:
            raise ValueError("the weights have another sum")
        return super().run(condition, seed=seed, device=device, dtype=dtype)


def test_a_run_is_counted_from_its_shapes_at_a_size_that_nobody_computes():
    found = counting.count(Products, "gpu")
    steps, n = 5_000, 100_000
    assert found["float64"] == 2 * steps * n**3
    assert found["launches"] == 2 * (2 * steps + 2), "a draw, its largest entry, and two operations a step"
    assert 2 * n**2 * 8 <= found["held"] <= 4 * n**2 * 8, "two or three matrices live at once"
    assert found["bytes"] == pytest.approx(2 * steps * 5 * n**2 * 8, rel=1e-3), "three of a product, two of a sum"


def test_a_run_that_looks_at_its_numbers_is_carried_on_from_what_it_truly_does():
    found = counting.count(Looking, "gpu")
    assert found["float64"] == pytest.approx(2 * 5_000 * 400**3, rel=1e-6)
    assert found["held"] == pytest.approx(3 * 400**2 * 8, rel=0.5), "of one condition, in bytes"
    assert all(cost.on(card, found).rough for card in cost.cards())
    ones = dataclass(frozen=True, kw_only=True)(
        type("Ones", (Looking,), {"__annotations__": {"total": float}, "total": 1.0})
    )
    found = counting.count(ones, "gpu")
    assert found["float64"] == 2 * 5_000 * 400**3, "stand-ins of one pass for its weights"
    assert not cost.on(CARD, found).rough


def test_a_run_that_insists_on_chances_below_one_is_counted_from_its_shapes():
    class Chances(Products):
        def run(self, condition, *, seed, device, dtype):
            if float(torch.rand(self.n, self.n, dtype=dtype).max()) >= 1:
                raise ValueError("no chance is certain")
            return super().run(condition, seed=seed, device=device, dtype=dtype)

    found = counting.count(dataclass(frozen=True, kw_only=True)(Chances), "gpu")
    assert found["float64"] == 2 * 5_000 * 100_000**3
    assert "carried" not in found


def test_loops_that_shapes_cannot_see_are_carried_on_from_what_they_truly_do(monkeypatch):
    @dataclass(frozen=True, kw_only=True)
    class Searching(Experiment):
        """As many products of n × n matrices as it takes to count down from n."""

        sizes: tuple[int, ...] = (80, 160, 640)
        tiers: ClassVar = {"ci": {"sizes": (80, 160)}, "gpu": {}}

        def conditions(self):
            return [{"n": n} for n in self.sizes]

        def run(self, condition, *, seed, device, dtype):
            left = torch.full((condition["n"],) * 2, condition["n"], dtype=dtype)
            while left.max() > 0.6:
                left = torch.zeros_like(left) @ left + left.max() - 1
            return pd.DataFrame({"value": [0.0]})

    record = SimpleNamespace(seconds=10.0, configuration={})
    monkeypatch.setattr(counting, "read", lambda *_: record)
    found = counting.count(Searching, "gpu")
    assert found["carried"]
    assert found["float64"] == pytest.approx(80**4 + 160**4 + 640**4, rel=1e-3)
    record.seconds = 1e6
    assert counting.count(Searching, "gpu") == {"recorded": 1e6}, "a core would be done sooner than it was"


def test_systems_of_equations_are_counted_though_torch_looks_at_how_they_went():
    class Solving(Products):
        n: int = 5_000

        def run(self, condition, *, seed, device, dtype):
            torch.linalg.solve(torch.rand(self.n, 9, 9, dtype=dtype), torch.rand(self.n, 9, 1, dtype=dtype))
            return pd.DataFrame({"value": [0.0]})

    found = counting.count(dataclass(frozen=True, kw_only=True)(Solving), "gpu")
    assert found["float64"] == 2 * 5_000 * counting.DENSE * 9**3
    assert "carried" not in found


def test_products_that_are_written_into_a_given_place_are_counted_from_their_shapes():
    class Given(Products):
        n: int = 5_000

        def run(self, condition, *, seed, device, dtype):
            power = torch.rand(self.n, self.n, dtype=dtype)
            for _ in range(self.steps):
                torch.mm(power, power, out=torch.empty_like(power))
            return pd.DataFrame({"value": [0.0]})

    found = counting.count(dataclass(frozen=True, kw_only=True)(Given), "gpu")
    assert found["float64"] == 2 * 5_000 * 5_000**3
    assert "carried" not in found


def test_where_no_tensor_is_held_no_memory_is_told():
    class Bare(Products):
        def run(self, condition, *, seed, device, dtype):
            return pd.DataFrame({"value": [0.0]})

    found = counting.count(dataclass(frozen=True, kw_only=True)(Bare), "gpu") | {"pilot": 60.0}
    assert str(cost.on(cost.cards()[0], found)) == "about 1 min on a CPU core, 0.01 USD"


def test_a_run_that_needs_what_is_not_here_is_carried_on_from_its_record(monkeypatch):
    monkeypatch.setattr(counting, "absence", lambda _: "not here")
    monkeypatch.setattr(counting, "read", lambda *_: None)
    assert counting.count(Looking, "gpu") == {}, "there is no record"
    record = SimpleNamespace(seconds=36.0, configuration={"n": 100, "steps": 50, "rates": [1]})
    monkeypatch.setattr(counting, "read", lambda *_: record)
    found = counting.count(Looking, "gpu")
    assert found == {"recorded": 3600.0}
    costs = [cost.on(card, found) for card in cost.cards()]
    assert {each.seconds for each in costs} == {3600}
    assert str(cost.to_rent(costs)) == "of the order of 1 h on an A100, 2.50 USD"


def test_work_outside_torch_stays_on_the_host(monkeypatch):
    bare = counting.count(Products, "gpu")
    monkeypatch.setattr(counting, "read", lambda *_: SimpleNamespace(seconds=1e10))
    found = counting.count(Products, "gpu")
    core, *_, fast = cost.cards()
    assert cost.on(core, found).seconds == pytest.approx(1e10)
    assert cost.on(fast, found).seconds - cost.on(fast, bare).seconds == found["host"]
    assert cost.on(fast, found).rough


def test_loops_in_each_other_multiply_and_loops_after_each_other_add():
    class Nested(Products):
        n: int = 5_000

        def run(self, condition, *, seed, device, dtype):
            power = torch.rand(self.n, self.n, dtype=dtype)
            for _ in range(self.steps):
                for _ in range(self.repeats):
                    power = power @ power
            return pd.DataFrame({"value": [0.0]})

    nested = dataclass(frozen=True, kw_only=True)(
        type("Nested", (Nested,), {"__annotations__": {"repeats": int}, "repeats": 30, "tiers": SMALL})
    )
    assert counting.count(nested, "gpu")["float64"] == pytest.approx(2 * 5_000 * 30 * nested().n ** 3, rel=1e-6)


def test_a_price_is_the_sum_of_latency_operations_and_traffic():
    count = {"launches": 10**6, "float64": 10**15, "float32": 10**15, "bytes": 10**14, "held": 9 * 10**9}
    found = cost.on(CARD, count)
    assert found.seconds == pytest.approx(10 + 2 * (2000 + 1000 + 1000))
    assert found.dollars == pytest.approx(found.seconds / 1000)
    assert not found.fits
    assert cost.on(CARD, count | {"held": 7 * 10**9}).fits


def test_the_card_to_rent_is_the_cheapest_gpu_that_holds_the_run():
    costs = [cost.Cost("CPU core", 1, 1, 0), cost.Cost("T4", 9, 1, 1, False), *(cost.Cost(c, 1, 1, 3) for c in "AH")]
    assert cost.to_rent(costs).card == "A"
    assert cost.to_rent(costs[:2]) is None


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "1 s"), (59, "59 s"), (60, "1 min"), (7200, "2 h"), (1e6, "12 days"), (1e8, "1157 days")]
)
def test_predicted_times_have_two_digits(seconds, words):
    assert cost.spell(seconds) == words


def test_a_row_that_was_not_run_says_what_it_would_cost(tmp_path):
    house = House(tmp_path)
    (tmp_path / "results").mkdir()
    row = {"paper": "toy", "experiment": "Draws", "tier": "gpu", "verdict": "not run", "reason": "not recorded"}
    assert cost.priced(house, row) == {"cost": None}, "nothing was counted"
    cost.keep(house, {"toy/Draws/gpu": {"of": "x"}})
    assert cost.priced(house, row) == {"cost": None}, "it could not be counted"
    cost.keep(house, {"toy/Draws/gpu": {"of": "x", "launches": 10**9, "held": 2 * 10**9}})
    found = cost.priced(house, row)
    assert found["cost"]["card"] == "T4"
    assert found["reason"] == "about 2.8 h on a T4, 2 GB, 1.64 USD, as predicted; not recorded"
    for other in ({"verdict": "holds"}, {"tier": "ci"}, {"experiment": None}):
        assert cost.priced(house, row | other) == {"cost": None}


def test_a_record_has_the_price_of_its_core_and_a_missing_one_the_predicted(tmp_path):
    house = House(tmp_path)
    core = cost.cards()[0]
    assert cost.of_record(house, "toy", MADE)["cost"]["dollars"] == core["hour"]
    missing = {"state": "missing", "experiment": "Draws", "tier": "cpu"}
    assert cost.of_record(house, "toy", missing)["cost"] is None
    (tmp_path / "results").mkdir()
    cost.keep(house, {"toy/Draws/cpu": {"of": "x", "launches": 10**9, "host": 5}})
    found = cost.of_record(house, "toy", missing)["cost"]
    assert (found["card"], found["seconds"]) == (core["name"], 10005), "what tier cpu lacks is run on a core"


def test_a_record_does_not_predict_itself(tmp_path):
    house = House(tmp_path)
    (tmp_path / "results").mkdir()
    for count, seconds in (({}, None), ({"recorded": 3600.0}, None), ({"launches": 10**8, "host": 2600}, 1000)):
        cost.keep(house, {"toy/Draws/cpu": {"of": "x", **count}})
        assert cost.of_record(house, "toy", MADE)["predicted"] == seconds


def test_records_are_compared_with_their_predictions_by_card():
    times = [(1.0, 2.0), (1.0, 2.1), (2.0, 1.0), (2.1, 1.0), (1.0, None)]
    made = [MADE | {"seconds": each, "predicted": told, "cost": {"card": "CPU core"}} for each, told in times]
    on_card = MADE | {"seconds": 1.0, "predicted": 1.0, "cost": {"card": "T4"}}
    found = cost.tested([*made, {"state": "missing"}, on_card])
    assert {card: (each.near, len(each.ratios), each.made) for card, each in found.items()} == {
        "CPU core": (2, 4, 5),
        "T4": (1, 1, 1),
    }
    assert found["CPU core"].middle == pytest.approx((0.5 + 2) / 2)


def test_cards_have_figures_that_are_possible():
    for card in cost.cards():
        numbers = {name: value for name, value in card.items() if name != "name"}
        assert all(math.isfinite(value) and value > 0 for value in numbers.values())
        assert card["fp64"] <= card["fp32"] <= card["bf16"]
        assert card["share"] <= 1


def test_each_recorded_tier_is_counted_and_another_size_is_told_to_be_uncounted(tmp_path, monkeypatch):
    house = House(tmp_path)
    (tmp_path / "results").mkdir()
    monkeypatch.setattr(counting, "count", lambda experiment, tier: {"launches": 1})
    monkeypatch.setattr(Products, "paper", classmethod(lambda cls: "toy"))
    assert counting.uncounted(house, [Products], "gpu") == ["Products"]
    counting.counted(house, Products)
    assert [*json.loads((tmp_path / cost.FILE).read_text())] == ["toy/Products/gpu"]
    assert counting.uncounted(house, [Products], "gpu") == []
    monkeypatch.setattr(Products, "tiers", Products.tiers | {"gpu": {"n": 7}})
    assert counting.uncounted(house, [Products], "gpu") == ["Products"]


def test_a_core_takes_what_its_pilot_says_and_a_card_what_was_counted(tmp_path):
    house = House(tmp_path)
    (tmp_path / "results").mkdir()
    core, *fast = cost.cards()
    count = {"launches": 10**9, "held": 10**9, "host": 5}
    assert (cost.on(core, count | {"pilot": 7.0}).seconds, cost.on(core, count | {"pilot": 7.0}).rough) == (7, False)
    assert [cost.on(card, count | {"pilot": 7.0}) for card in fast] == [cost.on(card, count) for card in fast]
    alone = [cost.on(card, {"pilot": 7.0}) for card in fast]
    assert {(each.seconds, each.rough) for each in alone} == {(7, True)}, (
        "no faster than a core, where nothing else is known"
    )
    cost.keep(house, {"toy/Draws/cpu": {"of": "x", "pilot": 1800.0, "whole": 2000.0}})
    assert len(cost.predicted(house, "toy/Draws/cpu")) == len(cost.cards())
    record = cost.of_record(house, "toy", MADE)
    assert (record["predicted"], record["whole"]) == (1800, 2000)
    found = cost.tested([record, record | {"predicted": None, "whole": 1000.0}])["CPU core"]
    assert (found.ratios, found.again) == ([2.0], [1.8, 3.6])
    assert (found.near, found.near_again) == (1, 1)


def test_pilots_are_compared_with_the_same_run_whole(tmp_path):
    house = House(tmp_path)
    (tmp_path / "results").mkdir()
    assert cost.piloted(house).made == 0
    for name, entry in {
        "a": {"pilot": 2.0, "whole": 3.0},
        "b": {"pilot": 9.0},
        "c": {"launches": 1},
        "d": {"pilot": 1.0, "whole": 3.0},
    }.items():
        cost.keep(house, {name: {"of": "x", **entry}})
    found = cost.piloted(house)
    assert (found.made, found.ratios, found.near) == (3, [1.5, 3.0], 1)
