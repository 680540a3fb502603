"""The loop and its steps, gradients through it, linear fields, and bad input."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from derived.lab.rng import stream
from derived.papers.stochastic_approximation import StepSize, mean_field_root, robbins_monro
from derived.papers.stochastic_approximation.model.core import record_times
from derived.papers.stochastic_approximation.model.linear import linear_iterates
from derived.papers.stochastic_approximation.worlds import to_data

EPSILON = 2.0**-52
examples = settings(derandomize=True, max_examples=30, deadline=None, database=None)


def normals(*shape: int, name: str = "data") -> torch.Tensor:
    return torch.randn(*shape, generator=stream(0, name), dtype=torch.float64)


@pytest.mark.parametrize("shape", [(1,), (4,), (4, 2)])
def test_the_loop_is_the_formula_one_number_at_a_time(shape):
    """Slow twin: Python floats."""
    y, x0, step = normals(40, *shape), normals(*shape, name="x0"), StepSize(0.7, 0.6, 2.0)
    found = robbins_monro(lambda x, y: torch.tanh(y - 2 * x), y, step, x0).x[-1].flatten()
    for place, start in enumerate(x0.flatten().tolist()):
        x = start
        for n, value in enumerate(y.flatten(1)[:, place].tolist(), start=1):
            x += 0.7 * (n + 2) ** -0.6 * math.tanh(value - 2 * x)
        assert abs(found[place] - x) <= 40 * 4 * EPSILON


def test_steps_of_their_own_for_each_replica():
    y, x0 = normals(30, 2), torch.zeros(2, 2, dtype=torch.float64)
    sizes = [StepSize.power(alpha=alpha) for alpha in (0.6, 1.0)]
    both = robbins_monro(to_data, y, torch.stack([s.values(30) for s in sizes], dim=1).unsqueeze(-1), x0).x[-1]
    for found, step in zip(both, sizes, strict=True):
        assert torch.equal(found, robbins_monro(to_data, y, step, x0[0]).x[-1])


@examples
@given(st.floats(0.1, 3), st.floats(0.3, 2), st.floats(0, 1), st.sampled_from([(1,), (3,), (3, 2)]))
def test_a_linear_field_needs_no_loop(lam, a, alpha, shape):
    """Weighted sums against the loop; the first factor 1 - a_1 lambda may be zero or negative. Between times there are
    fewer samples than pieces, as many, and more, which do not go into pieces evenly."""
    y, x0, step = normals(60, *shape), normals(*shape, name="x0"), StepSize(a, alpha)
    record = (1, 2, 18, 60)
    found = linear_iterates(lam, y, step, x0, record=record)
    assert torch.equal(linear_iterates(lam, y, step.values(60), x0, record=record).x, found.x)
    slow = robbins_monro(lambda x, y: y - lam * x, y, step, x0, record=record)
    assert found.times == slow.times
    assert (found.x - slow.x).abs().max() <= 1e-12 * max(1.0, slow.x.abs().max())


def test_a_linear_field_refuses_what_the_loop_refuses():
    y, x0 = normals(5, 2), torch.zeros(2, dtype=torch.float64)
    for bad in ((0,), (6,), ()):
        with pytest.raises(ValueError, match="give times from 1 to 5"):
            linear_iterates(1.0, y, StepSize.power(), x0, record=bad)
    y[3, 1] = math.nan
    with pytest.raises(ValueError, match=r"step 4, entry \[1\]"):
        linear_iterates(1.0, y, StepSize.power(), x0)


def test_the_start_and_the_data_are_left_alone():
    y, x0 = normals(5, 2), torch.zeros(2, dtype=torch.float64)
    kept = y.clone()
    robbins_monro(to_data, y, StepSize.power(), x0)
    assert torch.equal(y, kept)
    assert not x0.any()


@pytest.mark.parametrize("field", [lambda x, y: torch.tanh(y - 2 * x), lambda x, y: y - x**3])
def test_gradients_are_those_of_the_recursion(field):
    """By finite differences of the loop itself: of the start, of the data (a view with gaps), and of a step."""
    start, step = 0.3 * normals(3, name="x0"), StepSize.power(alpha=0.7).values(12)
    data = normals(3, 24).mT[::2]
    assert not data.is_contiguous()

    def end(x0, y, a):
        return robbins_monro(field, y, a, x0, record=(5, 12)).x

    given_ = [each.detach().requires_grad_() for each in (start, data, step)]
    assert torch.autograd.gradcheck(end, given_)
    assert (end(start, data, step) - end(*given_)).abs().max() <= 1e-14


@pytest.mark.parametrize("at", [1, 7, 256, 257, 600])
def test_a_state_that_is_not_finite_names_its_step_and_replica(at):
    y = torch.zeros(600, 3, dtype=torch.float64)
    y[at - 1, 2] = math.nan
    with pytest.raises(ValueError, match=rf"step {at}, entry \[2\] \(the data are not finite there\)"):
        robbins_monro(to_data, y, StepSize.power(), torch.zeros(3, dtype=torch.float64))


@pytest.mark.parametrize("steps", [200, 600])
def test_a_field_with_noise_of_its_own_is_told_so(steps):
    """A second walk is clean; nothing that is not finite is returned."""
    calls = iter(range(10_000))

    def field(x, y):
        return y - x if next(calls) != 100 else torch.full_like(x, math.nan)

    with pytest.raises(ValueError, match="no function of"):
        robbins_monro(field, torch.zeros(steps, 2, dtype=torch.float64), StepSize.power(), torch.zeros(2).double())


def test_a_field_of_another_shape_is_refused():
    y = torch.zeros(5, 2, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"h gives shape \(\) at a state \(2,\)"):
        robbins_monro(lambda x, y: (y - x).sum(), y, StepSize.power(), torch.zeros(2, dtype=torch.float64))


def test_a_field_that_explodes_names_its_step():
    y = torch.zeros(400, 1, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"step \d+, entry \[0\] \(the data are finite\)"):
        robbins_monro(lambda x, y: x**3, y, StepSize.constant(1.0), torch.full((1,), 2.0, dtype=torch.float64))
    with pytest.raises(ValueError, match="x0 is not finite"):
        robbins_monro(to_data, y, StepSize.power(), torch.full((1,), math.inf, dtype=torch.float64))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"y": torch.zeros(0, 1)}, "y has the shape"),
        ({"step": torch.ones(3)}, "3 steps for 5 samples"),
        ({"record": (0, 2)}, "give times from 1 to 5"),
        ({"record": ()}, "give times from 1 to 5"),
        ({"record": (1.5,)}, r"record = \(1.5,\); give a sequence of integers"),
        ({"step": -torch.ones(5)}, "negative or not finite"),
        ({"x0": torch.zeros(1, dtype=torch.long)}, "x0 is not finite, or of dtype"),
    ],
)
def test_the_loop_refuses(changed, words):
    given = {"y": torch.zeros(5, 1), "step": StepSize.power(), "record": None, "x0": torch.zeros(1)} | changed
    with pytest.raises(ValueError, match=words):
        robbins_monro(to_data, given["y"], given["step"], given["x0"], record=given["record"])


@pytest.mark.parametrize(
    ("step", "condition", "words"),
    [
        (StepSize.constant(0.1), "robbins-monro", r"sum a_n\^2 = infinity"),
        (StepSize.power(alpha=0.5), "robbins-monro", r"sum a_n\^2 = infinity"),
        (StepSize.power(alpha=1.1), "robbins-monro", "sum a_n is finite"),
        (StepSize.power(alpha=0.99), "window", "sup n a_n = infinity"),
        (StepSize.power(alpha=0.5), "window", r"sum a_n\^2 = infinity"),
        (StepSize.power(), "mixing", "give one of 'robbins-monro', 'window'"),
    ],
)
def test_a_step_that_misses_a_condition_is_told_which(step, condition, words):
    with pytest.raises(ValueError, match=words):
        step.require(condition)


def test_steps_that_meet_their_conditions():
    StepSize.power(alpha=0.51).require("robbins-monro")
    StepSize.power(3.0, n0=7).require("window")
    for bad in ({"a": 0.0}, {"alpha": -0.1}, {"n0": -1.0}, {"a": math.nan}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            StepSize(**bad)


@examples
@given(st.integers(1, 5000), st.integers(2, 40))
def test_record_times_keep_both_ends(steps, points):
    times = record_times(steps, points)
    assert times[0] == 1
    assert times[-1] == steps
    assert len(times) <= points + 2
    assert list(times) == sorted(set(times))


def test_roots_in_two_dimensions_and_bad_fields():
    A, b = normals(3, 2, 2).numpy() + 3 * np.eye(2), normals(3, 2).numpy()
    weights = np.array([0.2, 0.3, 0.5])
    for root, one, side in zip(mean_field_root(A, b), A, b, strict=True):
        assert np.abs(one @ root - side).max() <= 1e-13
    mixed = mean_field_root(A, b, weights)
    assert np.abs(np.einsum("k,kij,j->i", weights, A, mixed) - weights @ b).max() <= 1e-13
    singular = (np.ones((2, 2, 2)), np.ones((2, 2)), None)
    for bad in (
        singular,
        (np.ones((2, 2, 2)), np.ones(2), None),
        ([0.0, 1.0], [1.0, 1.0], None),
        ([1.0, 2.0], [1.0], None),
    ):
        with pytest.raises(ValueError, match="give"):
            mean_field_root(*bad)
    for bad in (([1.0, 2.0], [1.0, 1.0], [0.5, 0.6]), ([1.0], [1.0], [0.5, 0.5])):
        with pytest.raises(ValueError, match="give"):
            mean_field_root(*bad)
