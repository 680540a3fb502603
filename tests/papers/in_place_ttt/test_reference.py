"""The memory by the reference implementation and by the package, on random instances."""

import random
import runpy
import subprocess
import sys

import pytest
import torch

from derived.papers import in_place_ttt as package
from derived.papers.in_place_ttt import reference

TAPS = {-2: 0.3, -1: -0.7, 0: 1.1, 1: 0.9, 2: -0.4}
DRAW = random.Random(0)


def table(rows: int, columns: int) -> list[list[float]]:
    return [[DRAW.gauss(0, 1) for _ in range(columns)] for _ in range(rows)]


def close(mine, theirs):
    torch.testing.assert_close(torch.tensor(mine, dtype=torch.float64), theirs)


@pytest.mark.parametrize("cross", [False, True])
@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 11])
def test_values_outputs_and_state(chunk, cross):
    """`ipt-prefix`, `ipt-attention`."""
    z, s, W = table(11, 4), table(11, 3), table(3, 4)
    keys, source, start = (torch.tensor(each, dtype=torch.float64) for each in (z, s, W))
    kernel = torch.tensor([[*TAPS.values()]] * 3, dtype=torch.float64)
    values = package.depthwise_target(source[None], kernel, chunk=chunk, cross=cross)
    close(reference.values(s, chunk, TAPS, cross), values[0])
    outputs, _ = reference.read_and_write(z, s, W, chunk, TAPS, 0.3, cross)
    for impl in ("lean", "attention"):
        close(outputs, package.in_place_ttt(keys[None], values, start, 0.3, chunk, impl=impl)[0])


@pytest.mark.parametrize("chunk", [1, 3, 11])
def test_nothing_changes_before_it_is_trained(chunk):
    """`ipt-start`: taps of zero write nothing; any other tap changes what is read after the first chunk."""
    z, s, W = table(11, 4), table(11, 3), table(3, 4)
    as_before = [reference.apply(W, key) for key in z]
    assert reference.read_and_write(z, s, W, chunk, {0: 0.0, 1: 0.0})[0] == as_before
    assert (reference.read_and_write(z, s, W, chunk, {0: 0.01})[0] == as_before) == (chunk == 11)


@pytest.mark.parametrize("chunk", [2, 3, 4])
def test_who_sees_the_future(chunk):
    """`ipt-causal`, `ipt-cross`: inside the chunk nobody; one tap may cross, two may not, and then the firsts see."""
    z, s, W = table(9, 3), table(9, 3), table(3, 3)
    inside = [reference.sees_the_future(z, s, W, chunk, TAPS, n) for n in range(9)]
    one = [reference.sees_the_future(z, s, W, chunk, {1: 1.0}, n, True) for n in range(9)]
    two = [n for n in range(9) if reference.sees_the_future(z, s, W, chunk, TAPS, n, True)]
    assert not any(inside + one)
    assert two == [n for n in range(chunk, 8, chunk)]
    reach = package.reach(9, chunk, 2, 2, crossing=True).triu(1).any(dim=1).nonzero().flatten().tolist()
    assert two == reach


def test_the_memory_answers_what_came_next(capsys):
    a, b = [1.0, 0.0], [0.0, 1.0]
    assert reference.read_and_write([a, b, a], [a, b, a], reference.zeros(2, 2), 2, {1: 1.0})[0][2] == b
    assert reference.read_and_write([a, b, a], [a, b, a], reference.zeros(2, 2), 2, {0: 1.0})[0][2] == a
    plotted = []
    plot = lambda x, curves, label: plotted.append((list(x), *curves.values()))  # noqa: E731  as the page supplies it
    runpy.run_path(reference.__file__, {"plot": plot}, "__main__")
    printed = capsys.readouterr().out
    assert "c -> {'a': 1.0, 'b': 0.0, 'c': 0.0}" in printed
    assert printed.endswith("letters that see the future: [2, 4, 6]\n")
    known = [0, 0, 0, 1, 0, 1, 1, 1]  # by hand: "ab" is written before the second a asks, "bc" only after the second b
    assert plotted == [([*range(8)], known)]


def test_it_runs_alone_with_a_plot_in_letters():
    done = subprocess.run([sys.executable, "-I", reference.__file__], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert "o score of the letter that follows from 0 to 1; place in the text" in lines
    assert lines[-8:] == [
        f"{place:8} | " + "o".rjust(1 + 40 * hit) for place, hit in enumerate([0, 0, 0, 1, 0, 1, 1, 1])
    ]
