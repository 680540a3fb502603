"""Forecasts: proper scores, one seal, and nothing for who knows nothing."""

import json
import random

import pytest

from derived.lab.forecast import (
    Forecast,
    Outcome,
    Task,
    came,
    can_be_ordered,
    interval_loss,
    number_points,
    order_points,
    sign_points,
    task,
)
from derived.lab.subjects import Subject, pencil

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
    assert number_points((0.3, 0.3), 0.3, draws) == 1
    unclipped = [each for each in draws if abs(each) < 1.28]  # who errs further loses at most two points
    assert 0.1 < sum(number_points((-1.28, 1.28), each, draws) for each in unclipped[:200]) / 200 < 0.6


def test_the_first_seal_counts_and_nothing_runs_before_it(tmp_path):
    forecast = Forecast(ASKED, str(tmp_path / "one.json"))
    outcome = Outcome(SOURCE, forecast)
    for early in (outcome.run, outcome.happened):
        with pytest.raises(ValueError, match="seal a forecast first"):
            early()
    digest = forecast.seal({"rises": 1, "falls": 0, "stays": 0}, "BCA", 1, (7, 7))
    assert digest == forecast.seal({"rises": 1, "falls": 0, "stays": 0}, "BCA", 1, (7, 7))
    with pytest.raises(ValueError, match="the first one counts"):
        forecast.seal(UNSURE, "BCA", 1, (7, 7))
    assert outcome.happened() == ("rises", "BCA", 7)
    assert outcome.run() == pytest.approx(3)


def test_a_forecast_holds_nothing_that_computes_what_it_asks(tmp_path):
    held = str(vars(Forecast(ASKED, str(tmp_path / "one.json")))) + Forecast(ASKED, "one.json").questions()
    assert "def " not in held
    assert not hasattr(Forecast, "happened")


@pytest.mark.parametrize(("part", "value"), [("said", {"interval": [7, 7]}), ("when", "2020-01-01T00:00:00+00:00")])
def test_a_changed_file_is_seen(tmp_path, part, value):
    forecast = Forecast(ASKED, str(tmp_path / "one.json"))
    forecast.seal(UNSURE, "ABC", 1 / 6, (0, 1))
    held = json.loads((tmp_path / "one.json").read_text())
    held[part] = held[part] | value if part == "said" else value
    (tmp_path / "one.json").write_text(json.dumps(held))
    with pytest.raises(ValueError, match="changed after it was sealed"):
        Outcome(SOURCE, forecast).run()


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
        Forecast(ASKED, str(tmp_path / "one.json")).seal(*given)


def test_three_calls_have_three_values_and_a_number_grows_as_often_as_it_shrinks():
    names, grows = pencil(SOURCE), 0
    for k in range(200):
        drawn = task(names, SQUARE, ("x",), random.Random(k))
        assert len({SQUARE.value(names, call) for call in drawn.calls}) == 3
        grew = drawn.point["x"] < drawn.to
        assert came(names, drawn)[0] == ("rises" if grew else "falls")
        grows += grew
    assert 70 < grows < 130


def test_what_has_two_values_or_is_a_list_is_not_put_in_order():
    kinds = {"can": "x * x", "two values": "round(x / 2)", "a list": "[x, x]"}
    found = {words: can_be_ordered({}, Subject(words, call, {"x": "0.0..2.0"})) for words, call in kinds.items()}
    assert found == {"can": True, "two values": False, "a list": False}


def test_who_seals_what_the_notebook_begins_with_has_no_points(tmp_path):
    forecast = Forecast(ASKED, str(tmp_path / "one.json"))
    forecast.seal(UNSURE, order="ABC", sure=1 / 6, interval=None)
    assert Outcome(SOURCE, forecast).run() == pytest.approx(0)
