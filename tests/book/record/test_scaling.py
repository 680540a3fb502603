"""How an experiment grows: counted by size, beside the exponent of theory and the record."""

import math
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import pytest
import torch

from derived.book.house import House, UserError
from derived.book.record import counting, scaling
from derived.lab.experiment import Experiment

NAME = "paper/Powers"
RECORD = {"configuration": {"n": 100}, "seconds": 20.0, "peak_memory_mb": 500.0}


@dataclass(frozen=True, kw_only=True)
class Powers(Experiment):
    """A power of an n x n matrix."""

    n: int = 100
    steps: int = 50
    tiers: ClassVar = {"ci": {"n": 10, "steps": 2}, "cpu": {}}

    def run(self, condition, *, seed, device, dtype):
        power = torch.rand(self.n, self.n, dtype=dtype)
        for _ in range(self.steps):
            power = power @ power
        return pd.DataFrame({"largest": [float(power.max())]})


@dataclass(frozen=True, kw_only=True)
class Bounded(Powers):
    """The same, where the code refuses larger sizes."""

    def run(self, condition, *, seed, device, dtype):
        if self.n > 400:
            raise ValueError("too large")
        return super().run(condition, seed=seed, device=device, dtype=dtype)


@pytest.fixture
def stated(monkeypatch):
    said = {NAME: {"size": "n", "time": 3, "memory": 2, "why": "a product of matrices"}}
    monkeypatch.setattr(scaling, "stated", lambda: said)
    return said


def test_sizes_grow_until_a_core_holds_them_no_more_and_nothing_large_is_computed():
    counted = counting.by_size(Powers, "n", {})
    assert [n for n, _ in counted] == [100 * 4**power for power in range(len(counted))]
    assert counted[-1][1]["held"] > 64e9 > counted[-2][1]["held"]
    assert counted[-1][1]["float64"] == 2 * counted[-1][0] ** 3, "two steps, as at tier ci"
    with pytest.raises(UserError, match="three values of n"):
        counting.by_size(Bounded, "n", {})


def test_the_counted_exponents_are_those_of_theory_and_a_wrong_one_is_seen(stated):
    counted = counting.by_size(Powers, "n", {})
    time, memory = scaling.of(NAME, RECORD, counted).growths
    assert time.agrees, time.found
    assert memory.agrees, memory.found
    stated[NAME] |= {"time": 2, "memory": 3}
    time, memory = scaling.of(NAME, RECORD, counted).growths
    assert not time.agrees
    assert not memory.agrees


def test_time_passes_through_the_record_and_memory_ends_where_a_core_is_full(stated):
    scale = scaling.of(NAME, RECORD, counting.by_size(Powers, "n", {}))
    time, memory = scale.growths
    assert scaling.at(time.counted, 100) == pytest.approx(20)
    assert scaling.at(memory.counted, scale.end) == pytest.approx(64, rel=1e-3)
    flat = [(n, {"launches": n, "held": 10**6}) for n in (1, 2, 4)]
    assert scaling.of(NAME, RECORD, flat).end == math.inf
    assert scaling.of(NAME, RECORD, flat).ends == "nowhere"
    assert scale.ends.startswith("at n of about ")


def test_counts_are_kept_by_name_and_read_beside_the_record(tmp_path, stated):
    house = House(tmp_path)
    (tmp_path / "results/paper/Powers/cpu").mkdir(parents=True)
    assert scaling.read(house, "paper") == []
    scaling.keep(house, {NAME: [(1, {"launches": 1, "held": 5}), (4, {"launches": 4, "held": 5})]})
    scaling.keep(house, {"other/One": [(1, {"held": 5})]})
    assert [*scaling.counts(house)] == ["other/One", NAME]
    assert scaling.read(house, "paper") == [], "there is no record"
    (tmp_path / "results/paper/Powers/cpu/record.json").write_text(
        '{"configuration": {"n": 2}, "seconds": 3, "peak_memory_mb": 9}'
    )
    assert [scale.name for scale in scaling.read(house, "paper")] == ["Powers"]


def test_a_picture_has_its_lines_within_its_frame_and_theory_with_its_slope(stated):
    scale = scaling.of(NAME, RECORD, counting.by_size(Powers, "n", {}))
    for growth in scale.growths:
        picture = scaling.draw(scale, growth)
        for line in (picture.counted, picture.beyond, picture.theory):
            for point in line.split():
                x, y = map(float, point.split(","))
                assert scaling.LEFT - 0.1 <= x <= scaling.RIGHT
                assert scaling.TOP - 12 <= y <= scaling.BOTTOM + 0.1
        assert 2 <= len(picture.across) <= 6
        assert 2 <= len(picture.along) <= 6
        assert picture.end is not None, "memory ends in the picture"
        assert scaling.LEFT < picture.end < scaling.RIGHT
    flat = scaling.of(NAME, RECORD, [(n, {"launches": n, "held": 10**6}) for n in (1, 2, 4)])
    assert [scaling.draw(flat, growth).end for growth in flat.growths] == [None, None]
