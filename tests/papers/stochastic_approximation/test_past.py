"""The past as a Markov chain: what cannot move, what the remote past knows, how fast it tells."""

import itertools
import math

import numpy as np
import pytest
from scipy.linalg import null_space

from derived.lab.rng import stream
from derived.papers.stochastic_approximation.data.chains import random_absorbing_chain
from derived.papers.stochastic_approximation.data.environments import Alternating
from derived.papers.stochastic_approximation.model.chains import (
    absorption_probabilities,
    closed_classes,
    harmonic_dimension,
    invariant_laws,
    kl_rate,
)

STICKY, FAIR = np.array([[0.8, 0.2], [0.2, 0.8]]), np.full((2, 2), 0.5)
LEAN = np.array([[0.7, 0.3], [0.1, 0.9]])


def test_a_harmonic_function_cannot_move():
    """`sa-decomposition`: under a stationary law E (f(Z_1) - f(Z_0))^2 = 2 E f^2 - 2 E f Pf, which is 0 for harmonic f
    alone; harmonic functions are the invariant sets' indicators and their mixtures."""
    for instance in range(20):
        P = random_absorbing_chain(3, 4, generator=stream(1, "harmonic", instance))
        laws = invariant_laws(P)
        law = np.array([0.2, 0.3, 0.5]) @ laws  # stationary, and not ergodic
        f = null_space(np.eye(len(P)) - P) @ np.array([1.0, -2.0, 0.7])
        g = f + np.cos(np.arange(len(P)))  # not harmonic: within a class it changes
        for each, moves in ((f, False), (g, True)):
            squares = law @ (P * (each[None] - each[:, None]) ** 2).sum(axis=1)
            assert abs(squares - 2 * (law @ each**2 - law @ (each * (P @ each)))) <= 1e-12
            assert (squares > 1e-3) == moves
        for states in closed_classes(P):
            assert np.ptp(f[list(states)]) <= 1e-12


def test_closed_classes_span_the_null_space():
    """`sa-finite`: dim ker(I - P) is the number of closed classes, and absorption probabilities are a basis; against a
    null space by SVD and the classes that networkx finds."""
    networkx = pytest.importorskip("networkx")
    for planted in (1, 2, 4):
        P = random_absorbing_chain(planted, 3, generator=stream(2, "null", planted))
        graph = networkx.from_numpy_array((P > 0).astype(int), create_using=networkx.DiGraph)
        attracting = sorted(tuple(sorted(each)) for each in networkx.attracting_components(graph))
        assert closed_classes(P) == attracting
        assert len(attracting) == planted
        basis, q = null_space(np.eye(len(P)) - P), absorption_probabilities(P)
        assert basis.shape == q.shape
        assert harmonic_dimension(P) == planted
        assert np.abs(basis @ (basis.T @ q) - q).max() <= 1e-12
        assert np.abs(q.sum(axis=1) - 1).max() <= 1e-12


def test_the_remote_past_may_know_more_than_the_limit():
    """`sa-tail`: every value of the past tells the sign, and the two paths are shifts of each other; the running mean
    of either tends to 0."""
    y = Alternating().draw(400, 40, stream(3, "alternating")).y.numpy()
    sign = (-1.0) ** np.arange(400)[:, None] * y
    assert (sign == sign[0]).all()
    assert {*np.unique(sign[0])} == {-1.0, 1.0}
    plus, minus = (y[:, sign[0] == xi][:, 0] for xi in (1.0, -1.0))
    assert (plus[1:] == minus[:-1]).all()
    means = y.cumsum(axis=0) / np.arange(1, 401)[:, None]
    assert (np.abs(means) <= (1 + 1e-9) / np.arange(1, 401)[:, None]).all()


def path_law(P, law, path) -> float:
    return law[path[0]] * math.prod(P[i, j] for i, j in itertools.pairwise(path))


def test_the_log_odds_grow_at_the_rate_of_kullback_and_leibler():
    """`sa-posterior`: with equal stationary laws the expected log-odds after n steps are n times the rate, exactly;
    against all paths of seven values. A wrong rate, with the roles exchanged, is refused."""
    half = np.array([0.5, 0.5])
    for own, other in ((STICKY, FAIR), (FAIR, STICKY)):
        grown = 0.0
        for path in itertools.product(range(2), repeat=7):
            there = path_law(own, half, path)
            grown += there * math.log(there / path_law(other, half, path))
        assert abs(grown - 6 * kl_rate(own, other)) <= 1e-12
        assert abs(grown - 6 * kl_rate(other, own)) > 0.1
    laws = [invariant_laws(each)[0] for each in (LEAN, STICKY)]
    paths = list(itertools.product(range(2), repeat=5))
    grown = [
        sum(
            path_law(LEAN, laws[0], p) * math.log(path_law(LEAN, laws[0], p) / path_law(STICKY, laws[1], p))
            for p in itertools.product(range(2), repeat=n)
        )
        for n in (4, 5)
    ]
    assert len(paths) == 32
    assert abs(grown[1] - grown[0] - kl_rate(LEAN, STICKY)) <= 1e-12
