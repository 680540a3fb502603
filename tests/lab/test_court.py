"""The court: who charges the guilty callable with the right value convicts it, the shorter the better."""

import random

import pytest

from derived.lab.court import Court, length, near, pack
from derived.lab.subjects import Subject, pencil

SOURCE = "def double(x):\n    return 2 * x\n\n\ndef cut(x, top):\n    return min(x, top)\n"
BROKEN = SOURCE.replace("min", "max")
SUBJECTS = (
    Subject("twice x", "double(x)", {"x": "-9.0..9.0"}),
    Subject("x, at most top", "cut(x, top)", {"x": "-9.0..9.0", "top": "0..9"}),
)


@pytest.fixture
def court() -> Court:
    return Court.read(pack(SOURCE, SUBJECTS, 1, BROKEN, 2, 6))


@pytest.mark.parametrize(
    ("charge", "points", "said"),
    [
        (("B", 1, {"x": 1, "top": 5}), 10, "convicted, by 2 characters"),
        (("B", 1.5, {"x": 1.5, "top": 5}), 5, "convicted, by 4 characters"),
        (("B", -1.5, {"x": -1.50001, "top": 5}), 0, "convicted, by 9 characters; the shortest known witness has 2"),
        (("B", 1.004, {"x": 1, "top": 5}), 10, "convicted"),  # three digits are enough
        (("B", 1.007, {"x": 1, "top": 5}), 0, "not convicted"),
        (("B", 5, {"x": 1, "top": 5}), 0, "not convicted: B should return something else, or returns just that"),
        (("B", 5, {"x": 5, "top": 5}), 0, "not convicted"),
        (("A", 2, {"x": 1}), 0, "not convicted: A should return something else, or returns just that"),
        (
            ("B", 1, {"x": 1, "top": 99}),
            0,
            "no such input: `x` a number from -9.0 to 9.0, `top` a whole number from 0 to 9",
        ),
        (("B", 1, {"x": 1}), 0, "no such input"),
        (("F", 1, {"x": 1}), 0, "there is no callable 'F'"),
    ],
)
def test_a_charge(court, capsys, charge, points, said):
    letter, value, point = charge
    assert court.charge(letter, value, **point) == points
    assert said in capsys.readouterr().out


def test_only_the_guilty_one_is_broken(court):
    callables = court.callables()
    assert callables["A"](x=3) == 6
    assert callables["B"](x=1, top=5) == 5
    assert pencil(SOURCE)["cut"](1, 5) == 1


def test_near_and_length():
    assert near([[1.0]], [1.004], 0.005)
    assert not near(1.0, 1.006, 0.005)
    assert not near(1.0, "one", 0.005)
    assert not near(0.0, 0.1, 0.005)
    assert length({"S": [[1, 0.5], [0, 2]], "n": 12}) == len("[[1,0.5],[0,2]]12")


def test_points_are_drawn_anew_and_are_such_as_the_subject_admits():
    one, draw = Subject("", "x", {"x": "0.1..0.9", "n": "1..5", "p": "law 3", "M": "table 2 2"}), random.Random(0)
    points = [one.point(draw) for _ in range(50)]
    assert all(map(one.admits, points))
    for name in one.draw:
        assert len({str(point[name]) for point in points}) >= 5, name


def test_a_subject_admits_what_it_draws_and_no_other_shape():
    kinds = {"x": "0.1..0.9", "n": "1..5", "p": "law 2", "v": "list 2", "M": "table 2 2"}
    one = Subject("", "x", kinds)
    whole = {"x": 0.5, "n": 3, "p": [0.5, 0.5], "v": [9, 1], "M": [[1, 2], [3, 4]]}
    assert one.admits(whole)
    for name, wrong in {"x": 0.95, "n": 2.0, "p": [0.5, 0.6], "v": [1], "M": [[1, 2], [3]]}.items():
        assert not one.admits(whole | {name: wrong}), name
    assert not one.admits({"x": 0.5})
    with pytest.raises(ValueError, match="no way to draw"):
        Subject("", "x", {"x": "cube 3"}).point(random.Random(0))
