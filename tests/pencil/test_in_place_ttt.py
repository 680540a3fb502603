"""The memory, by the pencil and by the package."""

import itertools
import random

import pytest
import torch
from pencil import in_place_ttt as pencil

from derived.papers import in_place_ttt as package
from derived.papers.in_place_ttt.model import theory

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
def test_no_output_sees_the_future(table, chunk, monkeypatch):
    """`IPT-4.a`: taps inside the chunk look ahead, and yet no output depends on a later token; with taps that leave
    their chunk some do."""
    z, s, W, inside = table(7, 3), table(7, 3), table(3, 3), pencil.values
    assert not any(pencil.sees_the_future(z, s, W, chunk, TAPS, n) for n in range(7))
    monkeypatch.setattr(pencil, "values", lambda s, _, taps: inside(s, len(s), taps))
    assert any(pencil.sees_the_future(z, s, W, chunk, TAPS, n) for n in range(7))


def test_the_memory_answers_what_came_next():
    """`IPT-7.a`, in the smallest case: a tap on the next token raises the right logit."""
    a, b = [1.0, 0.0], [0.0, 1.0]
    assert pencil.read_and_write([a, b, a], [a, b, a], pencil.zeros(2, 2), 2, {1: 1.0})[0][2] == b
    assert pencil.read_and_write([a, b, a], [a, b, a], pencil.zeros(2, 2), 2, {0: 1.0})[0][2] == a


def test_the_right_logit_rises_and_the_others_hardly(table):
    """`IPT-7.a`, with embeddings and keys by chance, over all signs of the other keys: the token that came next gains
    at least what is promised, no other moves by more than the overlap of embeddings, and nor does the right one where
    the token itself is the target. Keys without signs move the others more, somewhere, and are refused."""
    beyond = []
    for _ in range(10):
        e, keys = table(4, 5), table(4, 3)
        gram = [[sum(a * b for a, b in zip(x, y, strict=True)) for y in e] for x in e]
        align = sum(a * a for a in keys[0])
        gain = min(gram[k][k] for k in range(4)) * align
        reach = max(abs(gram[i][j]) for i, j in itertools.permutations(range(4), 2)) * align

        def logits(signs, taps, e=e, keys=keys):
            """What one text of four tokens, read once, adds to the logits of each for the first key."""
            z = [[sign * a for a in key] for sign, key in zip(signs, keys, strict=True)]
            asked = pencil.read_and_write([*z, z[0]], [*e, e[0]], pencil.zeros(5, 3), 4, taps)[0][4]
            return [sum(a * b for a, b in zip(row, asked, strict=True)) for row in e]

        signs = [(1.0, *rest) for rest in itertools.product((1.0, -1.0), repeat=3)]
        after_next, after_itself = (
            [sum(column) / 8 for column in zip(*(logits(each, taps) for each in signs), strict=True)]
            for taps in ({1: 1.0}, {0: 1.0})
        )
        assert after_next[1] >= gain * (1 - 1e-9)
        others = [abs(after_next[k]) for k in (0, 2, 3)]
        assert max(*others, abs(after_itself[1])) <= reach * (1 + 1e-9)
        beyond.append(max(abs(logits((1.0,) * 4, {1: 1.0})[k]) for k in (0, 2, 3)) > reach)
    assert any(beyond)


@pytest.mark.parametrize(("d", "h", "vocabulary"), [(8, 8, 16), (24, 12, 8)])
def test_as_many_pairs_are_held_as_the_theory_says(d, h, vocabulary):
    """Sizes grow by a fifth, and six draws are averaged: within a quarter. By d h alone it would be off by far."""
    draw = random.Random(0)
    held = sum(pencil.half_recall(d, h, vocabulary, draw) for _ in range(6)) / 6
    assert held == pytest.approx(theory.capacity_of_few(d, h, vocabulary), rel=0.25)
