"""Random small instances as both hands take them: lists for the pencil, tensors for the package."""

import random

import pytest


@pytest.fixture(params=range(6))
def draw(request):
    """A generator of Python's own, one for each of six instances."""
    return random.Random(request.param)


@pytest.fixture
def table(draw):
    """A function that draws a table of standard normal numbers, as lists."""
    return lambda rows, columns: [[draw.gauss(0, 1) for _ in range(columns)] for _ in range(rows)]


@pytest.fixture
def law(draw):
    """A function that draws a distribution over so many things, none of probability zero."""

    def drawn(size):
        weights = [draw.expovariate(1) + 0.01 for _ in range(size)]
        return [w / sum(weights) for w in weights]

    return drawn
