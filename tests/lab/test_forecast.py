"""Forecasts: proper scores, one seal, and nothing for who knows nothing."""

import json
import math
import random

import pytest

from derived.lab.forecast import Forecast, Task, interval_loss, number_points, order_points, sign_points, task
from derived.lab.subjects import Subject

SQUARE = Subject("the square of x, plus y", "square(x) + y", {"x": "0.0..2.0", "y": "0..3"})
SOURCE = "def square(x):\n    return x * x\n"
UNSURE = {"rises": 1 / 3, "falls": 1 / 3, "stays": 1 / 3}
ASKED = Task(SQUARE, ("x",), {"x": 0.5, "y": 1}, 1.5, [{"x": 2.0, "y": 3}, {"x": 0.0, "y": 0}, {"x": 1.0, "y": 0}])


@pytest.mark.parametrize("truth", [0.05, 0.3, 0.8, 0.97])
def test_each_score_is_best_for_who_says_what_they_believe(truth):
    grid = [k / 100 for k in range(2, 99)]
    sign = {p: truth * sign_points({"rises": p, "falls": 1 - p, "stays": 0}, "rises") for p in grid}
    sign = {p: sign[p] + (1 - truth) * sign_points({"rises": p, "falls": 1 - p, "stays": 0}, "falls") for p in grid}
    order = {p: truth * order_points(p, True) + (1 - truth) * order_points(p, False) for p in grid}
    assert max(sign, key=sign.get) == pytest.approx(truth, abs=0.011)
    assert max(order, key=order.get) == pytest.approx(truth, abs=0.011)


def test_who_knows_nothing_and_says_so_has_no_points():
    assert sign_points(UNSURE, "stays") == pytest.approx(0)
    assert order_points(1 / 6, True) == order_points(1 / 6, False) == pytest.approx(0)


def test_the_best_interval_is_that_of_the_quantiles():
    generator = random.Random(0)
    draws = [generator.gauss(0, 1) for _ in range(2000)]
    loss = {half: sum(interval_loss(-half, half, each) for each in draws) for half in (0.6, 0.9, 1.28, 1.7, 2.2)}
    assert min(loss, key=loss.get) == 1.28
    assert number_points(0.3, 0.3, 0.3, draws) == 1
    unclipped = [each for each in draws if abs(each) < 1.28]  # who errs further loses at most two points
    assert 0.1 < sum(number_points(-1.28, 1.28, each, draws) for each in unclipped[:200]) / 200 < 0.6


def test_the_first_seal_counts_and_nothing_runs_before_it(tmp_path):
    forecast = Forecast(SOURCE, ASKED, str(tmp_path / "one.json"))
    with pytest.raises(ValueError, match="seal a forecast first"):
        forecast.run()
    digest = forecast.seal({"rises": 1, "falls": 0, "stays": 0}, "BCA", 1, (7, 7))
    assert digest == forecast.seal({"rises": 1, "falls": 0, "stays": 0}, "BCA", 1, (7, 7))
    with pytest.raises(ValueError, match="the first one counts"):
        forecast.seal(UNSURE, "BCA", 1, (7, 7))
    assert forecast.run() == pytest.approx(3)


def test_a_changed_file_is_seen(tmp_path):
    forecast = Forecast(SOURCE, ASKED, str(tmp_path / "one.json"))
    forecast.seal(UNSURE, "ABC", 1 / 6, (0, 1))
    held = json.loads((tmp_path / "one.json").read_text())
    held["said"]["interval"] = [7, 7]
    (tmp_path / "one.json").write_text(json.dumps(held))
    with pytest.raises(ValueError, match="changed after it was sealed"):
        forecast.run()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (({"rises": 1}, "ABC", 1, (0, 1)), "a probability to each"),
        (({"rises": 1, "falls": 1, "stays": 0}, "ABC", 1, (0, 1)), "sum to one"),
        ((UNSURE, "AB", 1, (0, 1)), "such as 'BCA'"),
        ((UNSURE, "ABC", 2, (0, 1)), "a probability"),
        ((UNSURE, "ABC", 1, (1, 0)), "lower end first"),
    ],
)
def test_what_is_no_forecast_is_refused(tmp_path, given, said):
    with pytest.raises(ValueError, match=said):
        Forecast(SOURCE, ASKED, str(tmp_path / "one.json")).seal(*given)


def test_equal_values_may_stand_either_way_and_what_is_raised_rises():
    tied = Task(SQUARE, ("y",), {"x": 1.0, "y": 0}, 2, [{"x": 1.0, "y": 0}, {"x": 0.0, "y": 1}, {"x": 2.0, "y": 0}])
    forecast = Forecast(SOURCE, tied, "none")
    assert [forecast._right(order) for order in ("ABC", "BAC", "CAB")] == [True, True, False]
    for k in range(100):
        drawn = task(SQUARE, ("x",), random.Random(k))
        assert drawn.point["x"] < drawn.high
        assert Forecast(SOURCE, drawn, "none").happened()[0] == "rises"
    assert math.isfinite(forecast.happened()[2])
