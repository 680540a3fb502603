"""The memory, by the pencil and by the package."""

import pytest
import torch
from pencil import in_place_ttt as pencil

from derived.papers import in_place_ttt as package

TAPS = {-2: 0.3, -1: -0.7, 0: 1.1, 1: 0.9, 2: -0.4}


def close(mine, theirs, **tolerance):
    torch.testing.assert_close(torch.tensor(mine, dtype=torch.float64), theirs, **tolerance)


@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 11])
def test_values_and_outputs(table, chunk):
    """`IPT-2.a`: chunk after chunk and all at once are the same, as long as they are."""
    z, s, W = table(11, 4), table(11, 3), table(3, 4)
    keys, source, start = (torch.tensor(each, dtype=torch.float64) for each in (z, s, W))
    kernel = torch.tensor([[*TAPS.values()]] * 3, dtype=torch.float64)
    values = package.depthwise_target(source[None], kernel, chunk=chunk)
    close(pencil.values(s, chunk, TAPS), values[0])
    outputs, _ = pencil.read_and_write(z, s, W, chunk, TAPS, eta=0.3)
    close(outputs, package.in_place_ttt(keys[None], values, start, 0.3, chunk)[0])
    close(pencil.all_at_once(z, s, W, chunk, TAPS, eta=0.3), torch.tensor(outputs, dtype=torch.float64))


@pytest.mark.parametrize("chunk", [1, 3, 11])
def test_nothing_changes_before_it_is_trained(table, chunk):
    """`IPT-6.a`: taps of zero write nothing, so the layer is the matrix it began with; any other tap changes it."""
    z, s, W = table(11, 4), table(11, 3), table(3, 4)
    as_before = [pencil.apply(W, key) for key in z]
    assert pencil.read_and_write(z, s, W, chunk, {0: 0.0, 1: 0.0})[0] == as_before
    assert (pencil.read_and_write(z, s, W, chunk, {0: 0.01})[0] == as_before) == (chunk == 11)


@pytest.mark.parametrize("chunk", [1, 2, 4])
def test_no_output_sees_the_future(table, chunk):
    """`IPT-4.a`: taps inside the chunk look ahead, and yet no output depends on a later token."""
    z, s, W = table(7, 3), table(7, 3), table(3, 3)
    assert not any(pencil.sees_the_future(z, s, W, chunk, TAPS, n) for n in range(7))


def test_the_memory_answers_what_came_next():
    """`IPT-7.a`, in the smallest case: a tap on the next token raises the right logit."""
    a, b = [1.0, 0.0], [0.0, 1.0]
    assert pencil.read_and_write([a, b, a], [a, b, a], pencil.zeros(2, 2), 2, {1: 1.0})[0][2] == b
    assert pencil.read_and_write([a, b, a], [a, b, a], pencil.zeros(2, 2), 2, {0: 1.0})[0][2] == a
