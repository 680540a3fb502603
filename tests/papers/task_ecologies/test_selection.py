"""Price's equation, Wright-Fisher sampling, the quasispecies, recipes, and the slips of the paper."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from derived.lab.rng import stream
from derived.papers.task_ecologies import slips
from derived.papers.task_ecologies.model import selection

EXPERIMENTS = (slips.Slips,)


@given(st.integers(0, 10_000), st.integers(1, 6))
def test_price_is_the_mean_of_the_offspring(seed, parents):
    """`te-price`: the two terms are the change of the mean, counted over a list of children."""
    g = np.random.default_rng(seed)
    number, z = g.integers(1, 5, parents), g.normal(size=parents)
    kinds = [z[i] + g.normal(size=number[i]) for i in range(parents)]
    terms = selection.price_terms(number, z, [kind.mean() - z[i] for i, kind in enumerate(kinds)])
    assert np.concatenate(kinds).mean() - z.mean() == pytest.approx(terms.selection + terms.transmission, abs=1e-12)


def test_parents_come_in_proportion_to_share_times_fitness():
    f, x, num = np.array([1.0, 2.0, 0.5]), np.array([0.2, 0.3, 0.5]), 100_000
    found = np.bincount(selection.wright_fisher(f, num, stream(0, "parents"), shares=x), minlength=3) / num
    p = x * f / (x @ f)
    error = (p * (1 - p) / num) ** 0.5
    assert (np.abs(found - p) < 4 * error).all()
    assert (np.abs(found - x) > 20 * error).any()  # the test would notice draws without fitness
    batch = selection.wright_fisher(np.ones((4, 3)), 5, stream(0, "batch"))
    assert batch.shape == (4, 5)


def random_kernel(m: int, g) -> np.ndarray:
    Q = g.random((m, m)) ** 3 + 0.01
    return Q / Q.sum(axis=1, keepdims=True)


def test_the_quasispecies_is_where_every_population_ends():
    """`te-blind`: the Perron vector is the limit of copying in proportion to fitness and mutating, from two starts."""
    g = np.random.default_rng(1)
    for m in (1, 2, 5):
        Q, f = random_kernel(m, g), g.uniform(0.5, 2, m)
        x = selection.quasispecies(f, Q)
        for start in (np.full(m, 1 / m), np.eye(m)[0]):
            for _ in range(3000):
                start = (f * start) @ Q / (f @ start)
            assert start == pytest.approx(x, abs=1e-12)
    around = [[0.9, 0.1, 0], [0, 0, 1], [1, 0, 0]]  # in a circle, with one loop
    assert selection.quasispecies([1.0, 1.0, 1.0], around) == pytest.approx(np.array([10, 1, 1]) / 12)


def test_without_mutation_free_codes_keep_their_ratio():
    """`te-blind`: types of equal fitness, in twenty generations of pure selection."""
    f, x = np.array([1.0, 1.0, 0.6]), np.array([0.1, 0.3, 0.6])
    for _ in range(20):
        x = f * x / (f @ x)
    assert x[1] / x[0] == pytest.approx(3, abs=1e-12)
    assert x[2] < 1e-3


def test_recipes_whose_share_is_independent_of_the_background_never_lose_it():
    """`te-recipe`: Cov(f, alpha) >= 0 if the excess falls with alpha in each background and both are independent."""
    g = np.random.default_rng(3)
    negative = 0
    for _ in range(500):
        lost = np.sort(g.random((3, 4)), axis=1)[:, ::-1] + 2 * g.random((3, 1))
        alpha = np.broadcast_to(np.sort(g.random(4)), (3, 4)).ravel()
        x = np.outer(g.dirichlet(np.ones(3)), g.dirichlet(np.ones(4))).ravel()
        assert selection.price_terms(np.exp(-lost).ravel(), alpha, shares=x).selection > -1e-15
        confounded = g.dirichlet(np.full(12, 0.3))
        negative += selection.price_terms(np.exp(-lost).ravel(), alpha, shares=confounded).selection < -1e-3
    assert negative > 20


def test_the_counterexample_meets_the_printed_premise():
    """`te-recipe`: within each background the excess falls with the share, yet the mean share falls by 0.175."""
    one = selection.recipe_counterexample()
    for background in (0, 1):
        part = one.background == background
        assert (np.diff(one.alpha[part]) > 0).all()
        assert (np.diff(one.excess[part]) < 0).all()
    terms = selection.price_terms(np.exp(-one.excess), one.alpha, shares=one.shares)
    assert terms.selection == pytest.approx(-0.175, abs=5e-4)
    f = np.exp(-one.excess)
    covariance = one.shares @ (f * one.alpha) - (one.shares @ f) * (one.shares @ one.alpha)
    assert covariance == pytest.approx(-0.047, abs=5e-4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: selection.price_terms([1.0, 0.0], [0, 1]), r"fitness\[1\] = 0"),
        (lambda: selection.price_terms([1.0, 1.0], [0, 1], shares=[0.5, 0.6]), "sum to 1.1"),
        (lambda: selection.price_terms([1.0, 1.0], [0, 1], shares=[1.5, -0.5]), r"shares\[1\] = -0.5"),
        (lambda: selection.wright_fisher([1.0], 0, stream(0, "a")), "draws = 0"),
        (lambda: selection.quasispecies([1.0, 2.0], [[0.5, 0.4], [0.5, 0.5]]), "row 0 of the kernel sums to 0.9"),
        (lambda: selection.quasispecies([1.0, 2.0], [[0.5, 0.5]]), r"give \(2, 2\)"),
        (lambda: selection.quasispecies([1.0, 2.0], np.eye(2)), "not every type is reached"),
        (lambda: selection.quasispecies([1.0, 2.0], [[0.0, 1.0], [1.0, 0.0]]), "not every type is reached"),  # period 2
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_selection_is_as_strong_as_the_spread_of_losses():
    """`te-price`: the slope of the parents' mean risk in the steepness of fitness is minus its variance."""
    R = np.random.default_rng(4).normal(size=9)
    for a in (0.0, 1.0, 3.0):
        s = np.exp(-a * R) / np.exp(-a * R).sum()
        mean = [R.mean() + selection.price_terms(np.exp(-b * R), R).selection for b in (a - 1e-4, a + 1e-4)]
        assert (mean[1] - mean[0]) / 2e-4 == pytest.approx(-(s @ R**2 - (s @ R) ** 2), abs=1e-6)


# Slips ----------------------------------------------------------------------------------------------------------------


def test_each_slip_has_a_witness_and_could_hold(rows, expected):
    for claim in slips.CLAIMS:
        assert claim.judge(claim.measure(rows[slips.Slips]))[0] == expected[claim.id] == "fails"
        assert claim.judge(claim.measure(rows[slips.Slips].assign(gap=0.0)))[0] == "undecided"


def test_the_merge_that_pays_is_worked_by_hand():
    """sigma^2 of coins (.9, .1) and (.1, .9) is 1 - 0.6; gains in nats; half way between the two shares."""
    level = (1 - 2 * np.sqrt(0.09)) / 2
    gain = np.log(2) + 0.9 * np.log(0.9) + 0.1 * np.log(0.1)
    beta = gain / 2 / np.log(2)
    between = (level + beta) / 2  # the shares: sure coins have distance one and gain ln 2
    assert level < between < beta
    assert slips.merge_that_pays() == pytest.approx((beta - between) * np.log(2))
    assert slips.rarer() == pytest.approx(0.175, abs=1e-3)
