"""The check of exercises: what it takes, what it refuses, and what it prints."""

from fractions import Fraction

import numpy as np
import pytest
import torch

from derived.lab.exercises import ask, checker, close, holds, judged, ranges

half = close(lambda: 0.5, digits=2)
pair = close(lambda: torch.tensor([0.25, 0.75]))
capped = close(
    lambda q, delta: min(q + delta, 1.0),
    ranges(q=(0.1, 1.0), delta=(0.1, 0.9)),
    mistakes={"a probability stops somewhere": lambda q, delta: q + delta},
)


@pytest.mark.parametrize("answer", [0.5, np.float32(0.5), torch.tensor(0.5, requires_grad=True), Fraction(1, 2), 0.504])
def test_a_number_of_any_kind_is_right(answer):
    assert judged("half", half, answer) == "right"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (0.506, "yours is 0.506"),
        (np.nan, "a number is asked for, yours is nan"),
        (np.inf, "yours is inf; "),
        ([], "an array of shape () is asked for, yours has (0,); () is one number"),
        (None, "a number is asked for, yours is None"),
        ("0.5", "a number is asked for, yours is '0.5'"),
        (0.5j, "a number is asked for, yours is 0.5j"),
    ],
)
def test_what_is_no_right_number_is_refused_in_words(answer, said):
    assert f"not right: {said}".startswith(judged("half", half, answer))


@pytest.mark.parametrize("answer", [(0.25, 0.75), [Fraction(1, 4), 0.75], np.array([0.25, 0.75])])
def test_an_array_of_any_kind_is_right(answer):
    assert judged("pair", pair, answer) == "right"


def test_half_a_unit_of_the_last_digit_is_allowed_and_early_rounding_is_named():
    root = close(lambda: 2**0.5)
    assert judged("root", root, 1.41421) == judged("root", root, 1.4146) == "right"
    assert judged("root", root, 1.41) == "not right: yours is 1.41; it is right to two digits, and more are asked for"
    assert judged("zero", close(lambda: 0.0, digits=2), 0.004) == "right"
    assert judged("zero", close(lambda: 0.0, digits=2), 0.006) == "not right: yours is 0.006"
    assert judged("inf", close(lambda: np.inf), float("inf")) == "right"


@pytest.mark.parametrize(
    "answer",
    [
        lambda delta, q: min(q + delta, 1),
        lambda a, b: min(a + b, 1),
        lambda *both: min(sum(both), 1),
        lambda **both: min(both["q"] + both["delta"], 1),
        lambda q, delta, cap=1: np.minimum(q + delta, cap),
    ],
)
def test_any_function_of_the_arguments_is_right(answer):
    assert judged("capped", capped, answer) == "right"


def test_a_common_mistake_is_named_and_a_failure_says_where():
    assert judged("capped", capped, lambda q, delta: q + delta).endswith("; a probability stops somewhere")
    said = judged("capped", capped, lambda q, delta: 1 / 0)
    assert said.startswith("not right: at q = ")
    assert said.endswith("yours stops with ZeroDivisionError: division by zero")
    assert judged("capped", capped, 1.0).endswith("a function is asked for, yours is of type float")


def keeps_its_sum(answer, seed):
    rows = torch.rand(2, 2, generator=torch.Generator().manual_seed(seed)).numpy()
    return None if np.isclose(ask(answer, (2, 2), rows=rows).sum(), rows.sum()) else "the sum moves"


def test_what_fails_is_shown_with_the_arrays_that_the_answer_got():
    said = judged("sum", holds((keeps_its_sum,), ranges(seed=(1, 999))), lambda rows: 2 * rows)
    assert said.startswith("not right: at rows = [[")
    assert said.endswith("]]: the sum moves")
    assert "seed" not in said


def test_an_answer_may_overwrite_what_it_is_given():
    def doubled(x):
        x *= 2
        return x

    assert judged("twice", close(lambda x: 2 * x, lambda g: {"x": np.ones(3)}), doubled) == "right"


def test_a_check_prints_a_line_for_each_answer_and_with_points_returns_their_share(capsys):
    check = checker({"one": half, "two": (half, pair)})
    assert check("one", 0.5) is None
    check("two", 0.5, ...)
    check("two", 0.5)
    assert capsys.readouterr().out.splitlines() == [
        "right",
        "(a) right",
        "(b) no answer yet",
        "not right: 'two' asks for 2 answers, here are 1",
    ]
    assert [check("one", 0.5, points=3), check("two", 0.5, ..., points=3), check("two", ..., ..., points=3)] == [
        3,
        1.5,
        0,
    ]
    assert capsys.readouterr().out == ""
