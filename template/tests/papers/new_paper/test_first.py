"""The theorems of the topic as tests, and its experiments at their smallest size."""

from derived.papers.new_paper import square
from derived.papers.new_paper.first import First

EXPERIMENTS = (First,)


def test_the_square_of_one():
    """`new_paper-square`."""
    assert square(1.0) == 1.0


def test_the_square_of_a_sum():
    assert square(3.0) == square(1.0) + 2 * 1.0 * 2.0 + square(2.0)


def test_every_gap_is_within_its_bound(rows):
    assert (rows[First]["gap"].abs() <= rows[First]["bound"]).all()
