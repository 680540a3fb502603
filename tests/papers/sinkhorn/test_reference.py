"""Softmax and Sinkhorn, by the reference program and by the package."""

import pytest
import torch

from derived.papers import sinkhorn as package
from derived.papers.sinkhorn import reference


@pytest.fixture
def problem(table, law):
    S, a, b = table(4, 5), law(4), law(5)
    return S, a, b, *(torch.tensor(each, dtype=torch.float64) for each in (S, a, b))


def close(mine, theirs, **tolerance):
    torch.testing.assert_close(torch.tensor(mine, dtype=torch.float64), theirs, **tolerance)


@pytest.mark.parametrize("steps", [1, 2, 3, 8])
def test_half_steps(problem, steps):
    S, a, b, scores, *weights = problem
    close(reference.plan(S, a, b, steps), package.half_steps(scores, steps, *weights).exp())


def test_softmax_is_the_first_half_step(problem):
    """`sk-softmax`: it is one row step, and no other table of its row sums has a larger objective."""
    S, a, b, scores, one, other = problem
    rows = reference.softmax(S, a, b)
    close(reference.plan(S, a, b, 1), torch.tensor(rows, dtype=torch.float64))
    close(rows, one[:, None] * package.attention_weights(scores, 1, one, other))
    moved = [[0.9 * p + 0.1 * a[i] * b[j] for j, p in enumerate(row)] for i, row in enumerate(rows)]
    assert reference.objective(moved, S, a, b) < reference.objective(rows, S, a, b)


def test_the_limit_is_the_best_coupling(problem):
    """`sk-gibbs`: the limit is the package's plan, and it beats couplings on both sides of it."""
    S, a, b, scores, one, other = problem
    P = reference.plan(S, a, b, 4001)
    close(P, package.sinkhorn(scores, one, other, tol=1e-13).plan, rtol=1e-9, atol=1e-11)
    for share in (-0.05, 0.05):  # towards the product of the weights, and away from it
        Q = [[(1 - share) * p + share * a[i] * b[j] for j, p in enumerate(row)] for i, row in enumerate(P)]
        assert reference.objective(Q, S, a, b) < reference.objective(P, S, a, b)
