"""The check of exercises: what it takes, what it refuses, and what it says."""

import functools
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import sympy
import torch

from derived.lab.exercises import Derive, Implement, ask, checker, described, judged, ranges, share

half = Derive(lambda: 0.5, digits=2)
pair = Derive(lambda: torch.tensor([0.25, 0.75]))
capped = Derive(
    lambda q, delta: min(q + delta, 1.0),
    ranges(q=(0.1, 1.0), delta=(0.1, 0.9)),
    high=1,
    mistakes={"a probability stops somewhere": lambda q, delta: q + delta},
)
Q, DELTA = sympy.symbols("q delta")


@pytest.mark.parametrize(
    "answer",
    [
        0.5,
        np.float32(0.5),
        np.array(0.5),
        torch.tensor(0.5, dtype=torch.bfloat16),
        torch.tensor(0.5, requires_grad=True),
        Fraction(1, 2),
        Decimal("0.5"),
        sympy.Rational(1, 2),
        sympy.sqrt(sympy.Rational(1, 4)),
        0.5 + 0j,
        0.504,
    ],
    ids=repr,
)
def test_a_number_of_any_kind_is_right(answer):
    assert judged("half", half, answer) == "right"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (0.506, "yours is 0.506"),
        (np.nan, "yours is nan"),
        (np.inf, "yours is inf"),
        ([], "one number is asked for, yours is an array of shape (0,)"),
        ([0.5] * 7, "one number is asked for, yours is an array of shape (7,)"),
        ([[0.5], [0.5, 0.5]], "a number is asked for, yours is of type list"),
        (None, "a number is asked for, yours is of type NoneType"),
        ("0.5", "a number is asked for, yours is of type str"),
        (0.5j, "yours is not real"),
        (Q, "a number is asked for, yours is of type Symbol"),
        (lambda: 0.5, "a number is asked for, yours is of type function"),
    ],
)
def test_what_is_no_right_number_is_refused_in_words(answer, said):
    assert judged("half", half, answer) == f"not right: {said}"


@pytest.mark.parametrize("answer", [(0.25, 0.75), [Fraction(1, 4), sympy.Rational(3, 4)], np.array([0.25, 0.75])])
def test_an_array_of_any_kind_is_right(answer):
    assert judged("pair", pair, answer) == "right"


def test_tolerance_is_half_a_unit_of_the_last_digit_asked_for():
    root = Derive(lambda: 2**0.5, digits=3)
    assert [judged("root", root, x) for x in (1.41, 1.419)] == ["right", "right"]
    assert judged("root", root, 1.47) == "not right: yours is 1.47"
    zero = Derive(lambda: 0.0, digits=2)
    assert judged("zero", zero, 0.004) == "right"
    assert judged("zero", zero, 0.006) != "right"
    assert judged("inf", Derive(lambda: np.inf), float("inf")) == "right"
    almost = Derive(lambda: 1e-17)  # zero up to rounding
    assert judged("almost", almost, 0.0) == "right"


def named(delta, *, q):
    return min(q + delta, 1)


class Object:
    def __call__(self, a, b):
        return torch.clamp(a + b, max=1)


@pytest.mark.parametrize(
    "answer",
    [
        lambda q, delta: min(q + delta, 1),
        lambda delta, q: min(q + delta, 1),
        lambda a, b: min(a + b, 1),
        lambda delta, b: min(delta + b, 1) if b != delta else 1,
        named,
        lambda a, b, /: min(a + b, 1),
        lambda *both: min(sum(both), 1),
        lambda **both: min(both["q"] + both["delta"], 1),
        lambda q, delta, cap=1: min(q + delta, cap),
        lambda a, b: (a + b).clip(max=1),
        lambda a, b: np.minimum(a + b, np.float32(1)),
        lambda a, b: torch.clamp(a + b, max=1),
        lambda a, b: Fraction(min(a + b, 1)),
        functools.partial(lambda cap, q, delta: min(q + delta, cap), 1),
        Object(),
        sympy.Min(Q + DELTA, 1),
        sympy.Lambda((Q, DELTA), sympy.Min(Q + DELTA, 1)),
    ],
)
def test_any_callable_of_the_arguments_is_right(answer):
    assert judged("capped", capped, answer) == "right"


def leaves(q, delta):
    raise SystemExit


def stops(q, delta):
    raise SystemError("in two\nlines")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (0.5, "a function is asked for, yours is of type float"),
        (lambda q, delta: q + delta, "at q = 0.93, delta = 0.12 yours is 1.05, above 1; a probability stops somewhere"),
        (lambda q, delta: q * 0.9, "at q = 0.7, delta = 0.3 yours is 0.63"),
        (lambda q, delta: [min(q + delta, 1)], "one number is asked for, yours is an array of shape (1,)"),
        (lambda q, delta: None, "a number is asked for, yours is of type NoneType"),
        (stops, "at q = 0.7, delta = 0.3 yours stops with SystemError: in two lines"),
        (leaves, "at q = 0.7, delta = 0.3 yours stops with SystemExit:"),
        (lambda a, b, c: 1.0, "missing 1 required positional argument: 'c'"),
    ],
)
def test_a_function_that_is_wrong_is_refused_at_a_point(answer, said):
    found = judged("capped", capped, answer)
    assert found.startswith("not right: ")
    assert found.endswith(said)


def test_every_one_of_twenty_points_counts():
    seen = []

    def answer(q, delta):
        seen.append((q, delta))
        return min(q + delta, 1) if len(seen) < 20 else 0.5

    assert judged("capped", capped, answer).startswith("not right: at ")
    assert len(set(seen)) == 20


def doubles(answer, x, scale):
    return None if ask(answer, x=x) == 2 * x else f"it is {ask(answer, x=x):.2g} at scale {scale}"


twofold = Implement((doubles,), ranges(x=(0.1, 1.0), scale=(1, 2), unused=(0, 9)))


def test_an_implementation_is_held_to_its_properties():
    assert judged("twofold", twofold, lambda number: 2 * number) == "right"
    said = judged("twofold", twofold, lambda x: x)
    assert said.startswith("not right: at x = ")
    assert "unused" not in said
    assert judged("twofold", twofold, 3) == "not right: a function or class is asked for, yours is of type int"


def test_a_check_says_a_line_for_each_part_and_nothing_of_what_an_answer_prints(capsys):
    check = checker({"one": capped, "two": (half, pair)})
    check("one", lambda q, delta: print("right") or min(q + delta, 1))
    check("one", ...)
    check("two", 0.5, ...)
    check("two", 0.5)
    check("other", 1)
    assert capsys.readouterr().out.splitlines() == [
        "right",
        "no answer yet",
        "(a) right",
        "(b) no answer yet",
        "not right: 'two' asks for 2 answers, here are 1",
        "not right: 'other' asks for 0 answers, here are 1",
    ]


def test_points_are_the_same_in_every_session_and_differ_between_exercises():
    def points(label):
        seen = []
        judged(label, capped, lambda q, delta: seen.append((q, delta)) or min(q + delta, 1))
        return seen

    assert points("one") == points("one")
    assert points("one") != points("two")


def test_values_are_described_in_a_few_characters():
    assert described(np.ones((2, 9))) == "an array of shape (2, 9)"
    assert described("uniform") == "uniform"


def overwrites(p, q):
    p += q
    return p


@pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor])
def test_an_answer_may_overwrite_what_it_is_given(kind):
    def adds(answer, p, q):
        return None if np.allclose(ask(answer, (2,), p=p, q=q), p + q) else "it does not add"

    draw = lambda generator: {"p": kind(np.array([1.0, 2.0])), "q": kind(np.array([0.5, 0.5]))}  # noqa: E731
    assert judged("adds", Implement((adds, adds), draw), overwrites) == "right"
    assert judged("adds", Implement((adds, adds), draw), lambda p, q: p).endswith("it does not add")


def test_what_an_answer_logs_does_not_reach_the_page(capsys):
    def logs(q, delta):
        print("a bar of progress", file=sys.stderr)
        print("a line")
        return min(q + delta, 1)

    assert judged("capped", capped, logs) == "right"
    assert capsys.readouterr() == ("", "")


def test_both_ends_of_a_range_of_whole_numbers_are_drawn():
    draw, generator = ranges(n=(2, 4)), torch.Generator()
    assert {draw(generator)["n"] for _ in range(100)} == {2, 3, 4}


def test_a_range_with_one_end_that_is_no_whole_number_draws_others():
    draw, generator = ranges(x=(0, 1.5), y=(0.5, 2)), torch.Generator()
    points = [draw(generator) for _ in range(100)]
    assert all(0 <= point["x"] <= 1.5 and 0.5 <= point["y"] <= 2 for point in points)
    assert all(len({point[name] for point in points}) > 20 for name in "xy")


def test_an_answer_that_is_rounded_too_early_is_told_so():
    third = Derive(lambda x: x / 3, ranges(x=(0.1, 1.0)))
    assert judged("third", third, lambda x: float(f"{x / 3:.4g}")) == "right"
    said = judged("third", third, lambda x: float(f"{x / 3:.2g}"))
    assert said.endswith("; it is right to 2 significant digits, 4 are asked for")
    assert "significant" not in judged("third", third, lambda x: x)


def test_a_grader_gets_the_share_of_the_parts_that_are_right():
    assert share({"two": (half, pair)}, "two", 0.5, 0.5) == 0.5
    assert share({"two": (half, pair)}, "two", ..., ...) == 0.0
    assert share({"one": half}, "one", 0.5) == 1.0
    assert share({}, "none", 0.5) == 0.0
