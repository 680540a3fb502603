"""Softmax and Sinkhorn, by the pencil and by the package."""

import itertools
import math

import pytest
import torch
from pencil import sinkhorn as pencil

from derived.papers import sinkhorn as package


@pytest.fixture
def problem(table, law):
    S, a, b = table(4, 5), law(4), law(5)
    return S, a, b, *(torch.tensor(each, dtype=torch.float64) for each in (S, a, b))


def close(mine, theirs, **tolerance):
    torch.testing.assert_close(torch.tensor(mine, dtype=torch.float64), theirs, **tolerance)


@pytest.mark.parametrize("steps", [1, 2, 3, 8])
def test_half_steps(problem, steps):
    S, a, b, *tensors = problem
    scores, *weights = tensors
    close(pencil.plan(S, a, b, steps), package.half_steps(scores, steps, *weights).exp())


def test_softmax_is_the_first_half_step(problem):
    """`SK-2.a`: softmax is one row step, and no other table of its row sums has a larger objective."""
    S, a, b, scores, one, other = problem
    rows = pencil.softmax(S, a, b)
    close(pencil.plan(S, a, b, 1), torch.tensor(rows, dtype=torch.float64))
    close(rows, one[:, None] * package.attention_weights(scores, 1, one, other))
    moved = [[0.9 * p + 0.1 * a[i] * b[j] for j, p in enumerate(row)] for i, row in enumerate(rows)]
    assert pencil.objective(moved, S, a, b) < pencil.objective(rows, S, a, b)


def test_the_limit_is_the_best_coupling(problem):
    """`SK-1`: the limit is the package's plan, and it beats couplings on both sides of it."""
    S, a, b, scores, one, other = problem
    P = pencil.plan(S, a, b, 4001)
    close(P, package.sinkhorn(scores, one, other, tol=1e-13).plan, rtol=1e-9, atol=1e-11)
    for share in (-0.05, 0.05):  # towards the product of the weights, and away from it
        Q = [[(1 - share) * p + share * a[i] * b[j] for j, p in enumerate(row)] for i, row in enumerate(P)]
        assert pencil.objective(Q, S, a, b) < pencil.objective(P, S, a, b)


def test_one_normaliser_or_both(problem):
    """`SK-10.a`: rows alone miss the columns; both normalisers meet both."""
    S, a, b, *_ = problem
    rows, both = pencil.softmax(S, a, b), pencil.plan(S, a, b, 4001)
    for P in (rows, both):
        assert pencil.rows(P) == pytest.approx(a, abs=1e-12)
    assert pencil.columns(both) == pytest.approx(b, abs=1e-12)
    assert max(abs(c - w) for c, w in zip(pencil.columns(rows), b, strict=True)) > 1e-3


def test_near_scores_have_near_plans(problem, table):
    """`SK-6.a`: plans are apart by at most tanh(osc / 4), and so is each row of softmax; the bound is reached, and half
    of it is refused."""
    S, a, b, *_ = problem
    T = [[s + 0.3 * e for s, e in zip(*pair, strict=True)] for pair in zip(S, table(4, 5), strict=True)]
    apart = pencil.total_variation(pencil.plan(S, a, b, 4001), pencil.plan(T, a, b, 4001))
    assert 0 < apart <= pencil.stability_bound(S, T)
    for i, weight in enumerate(a):
        rows = [[[p / weight for p in pencil.softmax(scores, a, b)[i]]] for scores in (S, T)]
        change = [t - s for s, t in zip(S[i], T[i], strict=True)]
        assert 0 < pencil.total_variation(*rows) <= math.tanh((max(change) - min(change)) / 4)
    half, S, T = [0.5, 0.5], [[-0.5, 0.5], [0.5, -0.5]], [[0.5, -0.5], [-0.5, 0.5]]
    apart = pencil.total_variation(pencil.plan(S, half, half, 101), pencil.plan(T, half, half, 101))
    assert apart == pytest.approx(pencil.stability_bound(S, T))
    assert apart > pencil.stability_bound(S, T) / 2


def carried(P, Q, x, y):
    """What it costs to carry one plan to the other, nearest places first: no less than their W_1."""
    places, cost = [*itertools.product(x, y)], 0.0
    left = [p - q for rows in zip(P, Q, strict=True) for p, q in zip(*rows, strict=True)]
    more, less = ([k for k, mass in enumerate(left) if sign * mass > 0] for sign in (1, -1))
    for far, i, j in sorted((math.dist(places[i], places[j]), i, j) for i in more for j in less):
        mass = min(left[i], -left[j])
        left[i], left[j], cost = left[i] - mass, left[j] + mass, cost + far * mass
    assert max(map(abs, left)) < 1e-6  # all of it, but for how far the plans are from their marginals
    return cost


def astray(P, Q, x, y):
    """How far the mass of P is from the places of Q, on average: no more than their W_1."""
    masses = [[p for row in table for p in row] for table in (P, Q)]
    used = [place for place, q in zip(itertools.product(x, y), masses[1], strict=True) if q > 0]
    places = zip(masses[0], itertools.product(x, y), strict=True)
    return sum(p * min(math.dist(place, each) for each in used) for p, place in places)


def test_blocks_approximate_a_coupling(draw, law):
    """`SK-7.a`: the scores of the blocks are the package's, and their plan has the right marginals and is within
    sqrt(2) (2 / M + t + sqrt((M + 1) tau)) of the coupling, at M = 16 and 128; the product is refused at 128."""
    x, y = sorted(draw.random() for _ in range(6)), sorted(draw.random() for _ in range(5))
    a, b = law(6), law(5)
    weights = [torch.tensor(each, dtype=torch.float64) for each in (x, y, a, b)]
    target = package.comonotone(*weights)
    S = pencil.block_scores(target.tolist(), x, y, a, b, 4, 1e-4, 1e-3)
    close(S, package.block_kernel(*weights, target, m=4, tau=1e-4, floor=1e-3))
    target, product = target.tolist(), [[p * q for q in b] for p in a]
    for cells in (16, 128):
        P = pencil.plan(pencil.block_scores(target, x, y, a, b, cells, 1e-9, 1e-3), a, b, 4001)
        assert pencil.rows(P) == pytest.approx(a, abs=1e-9)
        assert pencil.columns(P) == pytest.approx(b, abs=1e-6)
        bound = math.sqrt(2) * (2 / cells + 1e-3 + math.sqrt((cells + 1) * 1e-9))
        assert carried(P, target, x, y) <= bound
    assert astray(product, target, x, y) > bound


@pytest.mark.parametrize("cells", [4, 16, 64])
def test_softmax_approximates_a_conditional_distribution(draw, law, cells):
    """`SK-9.a`: W_1 is at most 2 / M + t + l on an interval of length one; the scores and l are the package's. Without
    scores the bound is broken at M = 64."""
    tau, t, y, nu, target = 1e-6, 1e-3, sorted(draw.random() for _ in range(8)), law(8), law(8)
    psi, size = [pencil.hats(v, cells) for v in y], range(cells + 1)
    mass, under = ([sum(w * hat[k] for w, hat in zip(each, psi, strict=True)) for k in size] for each in (target, nu))
    B = [t + (1 - t) * sum(mass[k] / (under[k] + tau) * hat[k] for k in size) for hat in psi]
    lost = sum(m * tau / (u + tau) for m, u in zip(mass, under, strict=True))
    scores, theirs = package.conditional_kernel(
        *(torch.tensor(v, dtype=torch.float64) for v in (y, nu, [target])), cells
    )
    close([[math.log(b) for b in B]], scores)
    assert lost == pytest.approx(float(theirs))
    (row,) = pencil.softmax([[math.log(b) for b in B]], [1.0], nu)

    def distance(row):
        ahead = itertools.accumulate(p - q for p, q in zip(row, target, strict=True))
        return sum(abs(a) * (two - one) for a, (one, two) in zip(ahead, itertools.pairwise(y), strict=False))

    assert distance(row) <= 2 / cells + t + lost
    assert distance(nu) > 2 / cells + t + lost or cells < 64
