"""The memory, by the reference program and by the package."""

import random

import pytest
import torch

from derived.papers import in_place_ttt as package
from derived.papers.in_place_ttt import reference
from derived.papers.in_place_ttt.model import theory

TAPS = {-2: 0.3, -1: -0.7, 0: 1.1, 1: 0.9, 2: -0.4}


def close(mine, theirs, **tolerance):
    torch.testing.assert_close(torch.tensor(mine, dtype=torch.float64), theirs, **tolerance)


@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 11])
def test_values_and_outputs(table, chunk):
    """chunk after chunk and all at once are the same, as long as they are."""
    z, s, W = table(11, 4), table(11, 3), table(3, 4)
    keys, source, start = (torch.tensor(each, dtype=torch.float64) for each in (z, s, W))
    kernel = torch.tensor([[*TAPS.values()]] * 3, dtype=torch.float64)
    values = package.depthwise_target(source[None], kernel, chunk=chunk)
    close(reference.values(s, chunk, TAPS), values[0])
    outputs, _ = reference.read_and_write(z, s, W, chunk, TAPS, eta=0.3)
    close(outputs, package.in_place_ttt(keys[None], values, start, 0.3, chunk)[0])
    close(reference.all_at_once(z, s, W, chunk, TAPS, eta=0.3), torch.tensor(outputs, dtype=torch.float64))


@pytest.mark.parametrize("chunk", [1, 2, 4])
def test_no_output_sees_the_future(table, chunk, monkeypatch):
    """taps inside the chunk look ahead, and yet no output depends on a later token; with taps that leave
    their chunk some do."""
    z, s, W, inside = table(7, 3), table(7, 3), table(3, 3), reference.values
    assert not any(reference.sees_the_future(z, s, W, chunk, TAPS, n) for n in range(7))
    monkeypatch.setattr(reference, "values", lambda s, _, taps: inside(s, len(s), taps))
    assert any(reference.sees_the_future(z, s, W, chunk, TAPS, n) for n in range(7))


@pytest.mark.parametrize(("d", "h", "vocabulary"), [(8, 8, 16), (24, 12, 8)])
def test_as_many_pairs_are_held_as_the_theory_says(d, h, vocabulary):
    """Sizes grow by a fifth, and six draws are averaged: within a quarter. By d h alone it would be off by far."""
    draw = random.Random(0)
    held = sum(reference.half_recall(d, h, vocabulary, draw) for _ in range(6)) / 6
    assert held == pytest.approx(theory.capacity_of_few(d, h, vocabulary), rel=0.25)
