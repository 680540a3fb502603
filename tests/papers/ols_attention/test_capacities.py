"""R12: capacities by simulation against their closed forms."""

import math
from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import special, stats

from derived.lab.rng import stream
from derived.papers.ols_attention.capacities import CLAIMS, ExponentialCapacity
from derived.papers.ols_attention.model import hopfield
from derived.papers.ols_attention.model.capacity import (
    all_fixed_capacity,
    all_fixed_probability,
    binomial_signs,
    bit_error_theory,
    capacity_theory,
    cramer_rate,
    demircigil_exponent,
    errorless_capacity,
    signal_and_noise,
    typical_bit_error,
)

EPS = torch.finfo(torch.float64).eps


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_binomial_signs_by_enumeration(n):
    """The law of a sum of n fair signs against all 2^n of them."""
    values, probability = binomial_signs(n)
    sums = np.array([sum(signs) for signs in product((1, -1), repeat=n)])
    np.testing.assert_allclose(probability, [np.mean(sums == value) for value in values.tolist()], rtol=20 * EPS)


@pytest.mark.parametrize("interaction", [2, 3, 4, "exp"])
def test_r12_noise_variance_by_enumeration(interaction):
    """`ols-signal-noise`, 5.12: v over all 2^(N-1) sign vectors for N = 6; the signal is F(N) - F(N-2)."""
    N = 6
    signal, variance = signal_and_noise(N, interaction)
    scale = math.exp(N) if interaction == "exp" else float(N) ** interaction
    F = math.exp if interaction == "exp" else lambda u: u**interaction
    sums = [sum(signs) for signs in product((1, -1), repeat=N - 1)]
    exact = np.mean([(F(s + 1) - F(s - 1)) ** 2 for s in sums]) / scale**2
    np.testing.assert_allclose(variance, exact, rtol=100 * EPS)
    np.testing.assert_allclose(signal, (F(N) - F(N - 2)) / scale, rtol=100 * EPS)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_r12_large_N_limits_of_signal_and_noise(n):
    """`ols-signal-noise`, 5.12: signal -> 2n N^{n-1}, v -> 4 n^2 (2n-3)!! N^{n-1}, with relative error O(1/N)."""
    double = special.factorial2(2 * n - 3)
    errors = []
    for N in (1000, 10_000):
        signal, variance = signal_and_noise(N, n)
        ratio = variance * float(N) ** (2 * n) / (4 * n**2 * double * float(N) ** (n - 1))
        errors.append((abs(signal * float(N) ** n / (2 * n * float(N) ** (n - 1)) - 1), abs(ratio - 1)))
    (first_signal, first_noise), (second_signal, second_noise) = errors
    assert second_signal <= 0.11 * first_signal
    assert second_noise <= max(0.11 * first_noise, 1e-11)
    assert errorless_capacity(100, n) == pytest.approx(100 ** (n - 1) / (2 * double * np.log(100)))


@pytest.mark.parametrize(("N", "K"), [(10, 1), (64, 30), (200, 60)])
def test_r12_quadratic_bit_error_is_a_binomial_tail(N, K):
    """5.12 for u^2, exactly: the noise is 4 times a sum of (K-1)(N-1) fair signs, which must fall below -(N-1)."""
    num_signs = (K - 1) * (N - 1)
    most = (num_signs - (N - 1)) / 2  # sum < -(N - 1) iff fewer than this many signs are +1
    exact = float(stats.binom.cdf(math.ceil(most) - 1, num_signs, 0.5)) if K > 1 else 0.0
    rates = hopfield.bit_error_rate(N, K, 2, trials=400, num_tests=30, generator=stream(28, N, K))
    standard_error = float(rates.std()) / len(rates) ** 0.5
    assert abs(float(rates.mean()) - exact) <= 4 * standard_error
    theory = float(bit_error_theory(N, K, 2))
    if K == 1:
        assert theory == exact == 0
        return
    z, width = (N - 1) / num_signs**0.5, 1 / num_signs**0.5  # the sum has step 2: half a step is 1 / sqrt(num_signs)
    assert special.ndtr(-z - 2 * width) <= exact <= special.ndtr(-z + width)  # the Gaussian, up to its lattice cells
    assert theory == pytest.approx(special.ndtr(-z), rel=1e-9)
    assert abs(float(rates.mean()) - special.ndtr(-z * 2**0.5)) > 4 * standard_error


def test_r12_cubic_bit_error_by_simulation():
    """5.12 for u^3 within 4 standard errors at the capacity for 1 %; half and twice the noise variance are rejected."""
    N, K = 64, 247
    rates = hopfield.bit_error_rate(N, K, 3, trials=40, num_tests=64, generator=stream(28, "cubic"))
    standard_error = float(rates.std()) / len(rates) ** 0.5
    signal, variance = signal_and_noise(N, 3)
    z = signal / ((K - 1) * variance) ** 0.5
    assert abs(float(rates.mean()) - float(bit_error_theory(N, K, 3))) < 4 * standard_error
    for factor in (0.5, 2.0):
        assert abs(float(rates.mean()) - special.ndtr(-z / factor**0.5)) > 4 * standard_error


@pytest.mark.parametrize("n", [2, 3])
def test_r12_polynomial_capacity_exponent(n):
    """R12: capacity at 1 % bit error grows like N^{n-1}: simulation agrees with 5.12 and has its slope."""
    sizes = (24, 96) if n == 2 else (16, 48)
    found = []
    for N in sizes:
        estimate = hopfield.capacity(N, n, replicates=4, trials=48, num_tests=32, generator=stream(29, n, N))
        assert (estimate.bracket[0] < estimate.K).all()
        assert (estimate.bracket[1] >= estimate.K).all()
        found.append(estimate.K.log().mean())
    slope = float((found[1] - found[0]) / math.log(sizes[1] / sizes[0]))
    theory = math.log(capacity_theory(sizes[1], n) / capacity_theory(sizes[0], n)) / math.log(sizes[1] / sizes[0])
    assert abs(slope - (n - 1)) < 0.25
    assert abs(slope - theory) < 0.1


def test_capacity_brackets_hold_for_every_replicate():
    """Replicates that cross at different doublings each keep a bracket: error below the level at one end only."""
    estimate = hopfield.capacity(9, "exp", replicates=40, trials=1, num_tests=16, generator=stream(39, "brackets"))
    low, high = estimate.bracket
    assert len((high.double().log2()).round().unique()) > 1  # they do differ
    assert (estimate.error[0] < 0.01).all()
    assert (estimate.error[1] >= 0.01).all()
    assert (high - low == 1).all() | ((high - low) <= 0.01 * low).all()
    assert (low < high).all()


def test_r12_exponential_capacity():
    """R12: for e^u the typical capacity at 1 % doubles with every spin: K = 0.02 * 2^N from P_err = K / 2^{N+1}."""
    sizes = np.array([8, 10, 12])
    found = [
        hopfield.capacity(int(N), "exp", replicates=6, trials=24, num_tests=128, generator=stream(30, int(N))).K.log2()
        for N in sizes
    ]
    slope = np.polyfit(sizes, [float(K.mean()) for K in found], 1)[0]
    assert abs(slope - 1) < 0.1
    assert abs(float(found[-1].mean()) - math.log2(0.02 * 2**12)) < 0.3
    assert typical_bit_error(12, 0.02 * 2**12) == pytest.approx(0.01)


@pytest.mark.parametrize(("N", "K"), [(10, 14), (12, 25)])
def test_r12_all_patterns_survive_up_to_the_square_root(N, K):
    """R12: Pr[all fixed] = exp(-K(K-1)N / 2^{N+1}) within 4 standard errors; twice the exponent is rejected.

    Bears `ols-two-notions`.
    """
    fixed = hopfield.all_fixed(N, K, "exp", trials=4000, generator=stream(31, N, K)).double()
    theory, standard_error = float(all_fixed_probability(N, K)), float(fixed.std()) / 4000**0.5
    correction = K * N * 2.0**-N  # triples: patterns that have two neighbours
    assert abs(fixed.mean() - theory) < 4 * standard_error + correction * theory
    assert abs(fixed.mean() - theory**2) > 4 * standard_error + correction * theory
    assert float(all_fixed_probability(N, all_fixed_capacity(N, 0.3))) == pytest.approx(0.3)


def test_r12_rate_function():
    """`ols-chernoff`, I(x): the Legendre transform of ln cosh by brute force; I(1) = ln 2 gives 2^{N/2} at rho = 0."""
    t = np.linspace(-20, 20, 400_001)
    for x in (-0.9, 0.0, 0.5, 0.99):
        brute = np.max(t * x - np.logaddexp(t, -t) + np.log(2))
        assert (
            abs(cramer_rate(x) - brute) < 2e-8
        )  # the grid step is 1e-4 and the maximum is quadratic: 0.5e-8 / (1-x^2)
    assert cramer_rate(1.0) == pytest.approx(np.log(2), rel=4 * EPS)
    assert np.exp(demircigil_exponent(0.0) * 10) == pytest.approx(2**5)


def test_generators_make_runs_reproducible():
    """The same stream gives the same capacity, another one another."""
    first, again, other = (hopfield.capacity(16, 3, trials=4, generator=stream(seed, "run")).K for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_r12_typical_bit_and_number_of_pairs():
    """`ols-two-notions`: Chebyshev's bound, within ten times the rate; the mean number of pairs."""
    N, K, draws = 10, 10, 20_000
    patterns = hopfield.random_signs(draws, K, N, generator=stream(43, "notions"))
    moved = (hopfield.kh_step(patterns, patterns, "exp") != patterns).double()
    rates = moved[:, 0].mean(dim=-1)
    bound, error = K / 2**N * (1 + math.exp(-4)) ** (N - 1), float(rates.std()) / draws**0.5
    assert float(rates.mean()) - 4 * error <= bound <= 10 * float(rates.mean())
    near = (patterns @ patterns.mT == N - 2).sum(dim=(-2, -1)).double() / 2
    error = float(near.std()) / draws**0.5
    assert abs(float(near.mean()) - K * (K - 1) / 2 * N / 2**N) < 4 * error
    pairs = near > 0
    moves = moved.sum(dim=(-2, -1)) > 0
    # the rest of the noise is at least e^{-2(N-1)} = 1.5e-8 unless it is exactly zero, where neither moves
    zero = (hopfield.flip_field(patterns, patterns, "exp").abs() < 1e-12).any(dim=-1).any(dim=-1)
    assert (moves | zero)[pairs].all()
    assert zero[pairs].double().mean() < 0.01


@pytest.mark.parametrize("N", [1, 7, 40])
def test_r12_chernoff_bound(N):
    """`ols-chernoff`: Pr[s >= N x] <= e^{-N I(x)} by the exact law, and no rate 1.5 I(x) would hold at N = 40."""
    values, probability = binomial_signs(N)
    x = np.linspace(0, 0.99, 34)
    tail = np.array([float(probability[values >= N * each - 1e-9].sum()) for each in x])
    assert (tail <= np.exp(-N * cramer_rate(x)) * (1 + 1e-12)).all()
    if N == 40:
        assert (tail > np.exp(-1.5 * N * cramer_rate(x)))[x > 0.6].all()


def test_even_odds_are_where_the_law_of_all_patterns_puts_them():
    """Pr[all fixed] = exp(-K(K-1)N / 2^{N+1}) is one half at K(K-1) = ln 2 * 2^{N+1} / N."""
    size = ExponentialCapacity(replicates=6, trials=400)
    found = size.run({"notion": "all", "N": 14}, seed=0, device="cpu", dtype=torch.float64)["K"]
    expected = (1 + math.sqrt(1 + 4 * math.log(2) * 2**15 / 14)) / 2
    assert found.to_numpy() == pytest.approx(expected, rel=0.15)


def test_a_number_of_patterns_is_over_the_theory_of_its_own_size():
    """OLS-15.j: each degree at its largest N, of which the one that is farthest off decides; its control takes the
    patterns of the smallest N, as if the memory did not grow."""
    (claim,) = (claim for claim in CLAIMS if claim.id == "OLS-15.j")
    cells = product((2, 3), (8, 16), range(4))
    rows = pd.DataFrame(cells, columns=["degree", "N", "replicate"])
    rows["theory"] = rows["N"].astype(float) ** (rows["degree"] - 1)
    off = {(2, 8): 0.5, (2, 16): 1.01, (3, 8): 0.7, (3, 16): 0.97}
    rows["K"] = rows["theory"] * [off[each] for each in zip(rows["degree"], rows["N"], strict=True)]
    assert claim.measure(rows).value == pytest.approx(0.97)
    assert claim.control(rows).value == pytest.approx(0.7 / 4)
