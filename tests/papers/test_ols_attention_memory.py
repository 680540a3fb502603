"""R12: energies, retrieval, the flip field against its naive twin, and capacities against closed forms."""

import math
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats
from torch import Tensor

from derived.lab.rng import stream
from derived.papers.ols_attention import hopfield
from derived.papers.ols_attention.capacity import (
    all_fixed_capacity,
    all_fixed_probability,
    binomial_signs,
    bit_error_theory,
    bridge,
    capacity_theory,
    cramer_rate,
    demircigil_exponent,
    errorless_capacity,
    evaluate,
    hebb_noise,
    kernel_noise,
    projection_noise,
    ramsauer_capacity,
    retrieval_bound,
    separation,
    signal_and_noise,
    sphere_exponent,
    typical_bit_error,
)
from derived.papers.ols_attention.hopfield import (
    all_fixed,
    bit_error_rate,
    capacity,
    corrupt,
    energy,
    flip_field,
    kh_step,
    linear_read_out,
    random_signs,
    retrieve,
)

EPS = torch.finfo(torch.float64).eps
INTERACTIONS = (2, 3, 4, "exp", bridge(4))
examples = settings(derandomize=True, max_examples=30, deadline=None, database=None)


def naive_field(state: Tensor, patterns: Tensor, interaction) -> Tensor:
    """5.12 read literally, spin by spin and pattern by pattern: 2 K N evaluations of F, e^u taken as e^{u - N}."""
    N = len(state)
    field = torch.zeros_like(state)
    for i in range(N):
        for pattern in patterns:
            rest = pattern @ state - pattern[i] * state[i]
            up = evaluate(interaction, rest + pattern[i], float(N))
            down = evaluate(interaction, rest - pattern[i], float(N))
            field[i] += (up - down) * state[i]
    return field


@st.composite
def memories(draw, max_patterns: int = 6):
    N, K = draw(st.integers(1, 9)), draw(st.integers(1, max_patterns))
    g = stream(draw(st.integers(0, 2**31)), "memory")
    return random_signs(N, generator=g), random_signs(K, N, generator=g)


@examples
@given(memories(), st.sampled_from(INTERACTIONS))
def test_r12_flip_field_in_one_product(memory, interaction):
    """R12, 5.12: A + x B with one product equals the 2KN evaluations, and both equal the energy difference."""
    state, patterns = memory
    field = flip_field(state, patterns, interaction)
    N, K = len(state), len(patterns)
    scale = math.exp(float((patterns @ state).max()) - N) if interaction == "exp" else 1.0
    size = {"exp": math.e**2}.get(interaction, float((N + 2.0) ** 4)) * K
    assert (scale * field - naive_field(state, patterns, interaction)).abs().max() <= 16 * (K + N) * EPS * size
    for i in range(N):
        flipped = state.clone()
        flipped[i] = -flipped[i]
        gain = energy(flipped, patterns, interaction) - energy(state, patterns, interaction)
        top = math.exp(float((patterns @ state).max())) if interaction == "exp" else 1.0
        assert abs(gain - top * field[i]) <= 16 * (K + N) * EPS * max(top, 1.0) * size


@examples
@given(memories(), st.sampled_from((2, 3, "exp")))
def test_r12_steps_batch_over_states_and_memories(memory, interaction):
    """A batch of memories with several states each equals one state and one memory at a time."""
    state, patterns = memory
    N, K = len(state), len(patterns)
    g = stream(21, N, K)
    memories_ = torch.stack([patterns, random_signs(K, N, generator=g)])
    states = torch.stack([torch.stack([state, -state, patterns[0]])] * 2)
    together = kh_step(states, memories_, interaction)
    for b, t in product(range(2), range(3)):
        assert torch.equal(together[b, t], kh_step(states[b, t], memories_[b], interaction))
    assert torch.equal(flip_field(states[0, 0], patterns, 2), flip_field(states[0], patterns, 2)[0])


def test_r12_tiles_do_not_change_the_decision(monkeypatch):
    """Streaming the patterns in tiles with a running maximum gives the field of a single tile."""
    g = stream(22, "tiles")
    patterns, states = random_signs(2, 50, 20, generator=g), random_signs(2, 3, 20, generator=g)
    weights = torch.rand(2, 50, generator=g, dtype=torch.float64)
    for interaction in (3, "exp"):
        whole = flip_field(states, patterns, interaction, weights)
        with monkeypatch.context() as patch:
            patch.setattr(hopfield, "TILE", 42)  # seven patterns at a time
            tiled = flip_field(states, patterns, interaction, weights)
        assert (tiled - whole).abs().max() <= 100 * EPS * (50 * 22.0**3 if interaction == 3 else 50 * math.e**2)
        assert torch.equal(tiled < 0, whole < 0)


def test_r12_weights_are_multiplicities():
    """A pattern of weight 2 counts like two copies, one of weight 0 like none."""
    g = stream(23, "weights")
    patterns, state = random_signs(3, 7, generator=g), random_signs(7, generator=g)
    weighted = flip_field(state, patterns, 3, torch.tensor([2.0, 1.0, 0.0], dtype=torch.float64))
    assert torch.equal(weighted, flip_field(state, patterns[[0, 0, 1]], 3))


@pytest.mark.parametrize("N", [3, 800])
def test_r12_exponentials_neither_overflow_nor_vanish(N):
    """F = e^u: e^800 is no float64 and e^{-800} is zero, yet a stored pattern holds and its neighbour returns."""
    patterns = random_signs(3, N, generator=stream(24, N))
    neighbour = patterns[0].clone()
    neighbour[0] = -neighbour[0]
    far = corrupt(patterns[0], 0.45, generator=stream(24, "far"))
    assert torch.equal(kh_step(patterns[0], patterns[:1], "exp"), patterns[0])
    assert torch.equal(kh_step(neighbour, patterns[:1], "exp"), patterns[0])
    if N == 800:
        assert torch.equal(kh_step(neighbour, patterns, "exp"), patterns[0])
        assert torch.equal(kh_step(far, patterns, "exp"), patterns[0])


def test_r12_ties_keep_their_spin():
    """Two patterns one bit apart and nothing else: the field at that bit is zero, and rounding must not flip it."""
    for N, copies in product((2, 3, 9, 16, 33), (1, 3, 7)):
        one = torch.ones(N, dtype=torch.float64)
        two = one.clone()
        two[N // 2] = -1
        pair = torch.stack([one, two])
        for interaction in (2, 3, "exp", bridge(7), bridge(10)):
            assert torch.equal(kh_step(pair, pair.repeat(copies, 1), interaction), pair)


@pytest.mark.parametrize(("K", "d", "beta"), [(1, 1, 1.0), (5, 3, 0.2), (7, 12, 4.0)])
def test_r12_softmax_attention_is_one_step_on_the_energy(K, d, beta):
    """R12, 5.11: xi - grad E by autograd = the retrieval step = torch's attention with scale = beta; E decreases.

    Bears `ols-energy`.
    """
    g = stream(25, K, d)
    patterns = torch.randn(K, d, generator=g, dtype=torch.float64)
    state = torch.randn(3, d, generator=g, dtype=torch.float64)
    variable = state.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(energy(variable, patterns, "lse", beta=beta).sum(), variable)
    step = retrieve(state, patterns, "lse", beta=beta).state
    size = 8 * (K + d) * EPS * (1 + beta * float((state @ patterns.T).abs().max())) * patterns.norm()
    assert (state - gradient - step).norm() <= size + 4 * EPS * state.norm()
    peer = torch.nn.functional.scaled_dot_product_attention(state, patterns, patterns, scale=beta)
    assert (peer - step).norm() <= size
    before, after = (energy(h, patterns, "lse", beta=beta) for h in (state, step))
    descent = before - after - (step - state).square().sum(dim=-1) / 2
    assert (descent >= -8 * EPS * (1 + before.abs() + after.abs())).all()
    path = [
        energy(retrieve(state, patterns, "lse", beta=beta, steps=k).state, patterns, "lse", beta=beta)
        for k in (1, 2, 5)
    ]
    values = torch.stack([energy(state, patterns, "lse", beta=beta), *path])
    assert (values.diff(dim=0) <= 8 * EPS * (1 + values.abs().max())).all()
    assert (values >= -8 * EPS * (1 + values.abs().max())).all()


def test_r12_residual_measures_the_last_step():
    """The residual is the norm of the last change: the second step moves from where the first one ended."""
    g = stream(26, "residual")
    patterns, state = (
        3 * torch.randn(4, 6, generator=g, dtype=torch.float64),
        torch.randn(6, generator=g, dtype=torch.float64),
    )
    one, two = (retrieve(state, patterns, "lse", steps=k) for k in (1, 2))
    assert two.steps == 2
    assert torch.equal(two.residual, torch.linalg.vector_norm(two.state - one.state))
    spins = random_signs(9, generator=g)
    assert float(retrieve(spins, spins[None], "exp", steps=3).residual) == 0.0


def test_r12_quadratic_energy_is_linear_attention():
    """R12: E = -sum u^2 / 2 has -grad E = X^T X xi, the Hebb read-out; in whitened coordinates the projection."""
    g = stream(27, "quadratic")
    patterns, state = (
        torch.randn(3, 8, generator=g, dtype=torch.float64),
        torch.randn(2, 8, generator=g, dtype=torch.float64),
    )
    variable = state.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(energy(variable, patterns, lambda u: u**2 / 2).sum(), variable)
    hebb = linear_read_out(state, patterns, "hebb")
    size = 8 * 11 * EPS * patterns.norm() ** 2 * state.norm()
    assert (hebb + gradient).norm() <= size
    projector = torch.linalg.qr(patterns.T).Q
    projected = linear_read_out(state, patterns, "projection")
    assert (projected - state @ projector @ projector.T).norm() <= size * torch.linalg.cond(patterns)
    # every combination of patterns is fixed, not only the patterns
    mixture = torch.tensor([[1.0, -2.0, 0.5]], dtype=torch.float64) @ patterns
    assert (linear_read_out(mixture, patterns, "projection") - mixture).norm() <= size * torch.linalg.cond(patterns)


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
    rates = bit_error_rate(N, K, 2, trials=400, num_tests=30, generator=stream(28, N, K))
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
    rates = bit_error_rate(N, K, 3, trials=40, num_tests=64, generator=stream(28, "cubic"))
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
        estimate = capacity(N, n, replicates=4, trials=48, num_tests=32, generator=stream(29, n, N))
        assert (estimate.bracket[0] < estimate.K).all()
        assert (estimate.bracket[1] >= estimate.K).all()
        found.append(estimate.K.log().mean())
    slope = float((found[1] - found[0]) / math.log(sizes[1] / sizes[0]))
    theory = math.log(capacity_theory(sizes[1], n) / capacity_theory(sizes[0], n)) / math.log(sizes[1] / sizes[0])
    assert abs(slope - (n - 1)) < 0.25
    assert abs(slope - theory) < 0.1


def test_capacity_brackets_hold_for_every_replicate():
    """Replicates that cross at different doublings each keep a bracket: error below the level at one end only."""
    estimate = capacity(9, "exp", replicates=40, trials=1, num_tests=16, generator=stream(39, "brackets"))
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
        capacity(int(N), "exp", replicates=6, trials=24, num_tests=128, generator=stream(30, int(N))).K.log2()
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
    fixed = all_fixed(N, K, "exp", trials=4000, generator=stream(31, N, K)).double()
    theory, standard_error = float(all_fixed_probability(N, K)), float(fixed.std()) / 4000**0.5
    correction = K * N * 2.0**-N  # triples: patterns that have two neighbours
    assert abs(fixed.mean() - theory) < 4 * standard_error + correction * theory
    assert abs(fixed.mean() - theory**2) > 4 * standard_error + correction * theory
    assert float(all_fixed_probability(N, all_fixed_capacity(N, 0.3))) == pytest.approx(0.3)


def test_r12_one_step_retrieval_from_flipped_bits():
    """R12, OLS-17: at K = e^{0.9 alpha N} with 10 % flips one step of e^u leaves below 2 %, of u^2 over 10 %.

    Bears `ols-demircigil`.
    """
    N, rho = 30, 0.1
    K = int(np.exp(0.9 * float(demircigil_exponent(rho)) * N))
    exponential, quadratic = (
        bit_error_rate(N, K, interaction, rho=rho, trials=40, generator=stream(32, "retrieval"))
        for interaction in ("exp", 2)
    )
    assert exponential.mean() + 4 * exponential.std() / 40**0.5 < 0.02
    assert quadratic.mean() - 4 * quadratic.std() / 40**0.5 > 0.10


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


def test_r12_ramsauer_constants():
    """R12, OLS-16: the published examples c >= 3.1546 and 1.3718; W_0 by scipy's lambertw and by its own equation."""
    for (beta, K, d, p), published in (((1, 3, 20, 0.001), 3.1546), ((1, 1, 75, 0.001), 1.3718)):
        a, b, c, num_patterns, valid = ramsauer_capacity(beta, K, d, p)
        assert abs(c - published) < 1e-4
        assert c == pytest.approx(b / special.lambertw(np.exp(a + np.log(b))).real, rel=1e-12)
        w = b / c
        assert w * np.exp(w) == pytest.approx(b * np.exp(a), rel=1e-12)
        assert num_patterns == pytest.approx(p**0.5 * c ** ((d - 1) / 4))
        assert valid == (c >= (2 / p**0.5) ** (4 / (d - 1)))
    assert np.isfinite(ramsauer_capacity(1e4, 10, 20, 0.5).c)  # e^{a + ln b} would overflow


@pytest.mark.parametrize(("K", "d", "beta"), [(1, 2, 1.0), (5, 20, 0.5), (30, 40, 1.0)])
def test_r12_one_step_retrieval_bound(K, d, beta):
    """R12, Theorem 5 of Ramsauer et al. and its sharper radius: the error of one step never exceeds the bound.

    Bears `ols-retrieval`.
    """
    g = stream(33, K, d)
    patterns = torch.randn(100, K, d, generator=g, dtype=torch.float64)
    patterns *= d**0.5 / torch.linalg.vector_norm(patterns, dim=-1, keepdim=True)
    probe = patterns + 0.05 * torch.randn(100, K, d, generator=g, dtype=torch.float64)
    error = torch.linalg.vector_norm(retrieve(probe, patterns, "lse", beta=beta).state - patterns, dim=-1)
    fixed_points = retrieve(patterns, patterns, "lse", beta=beta, steps=50).state
    sharp, printed = retrieval_bound(probe, patterns, beta), retrieval_bound(probe, patterns, beta, fixed_points)
    rounding = 8 * (K + d) * EPS * (1 + beta * d) * d**0.5
    assert (error <= sharp + rounding).all()
    assert (sharp <= printed).all()
    assert separation(patterns).shape == (100, K)
    if K > 1:
        assert (sharp[separation(patterns) > d / 2] < d**0.5).any()  # the bound says something somewhere


def test_r12_sphere_exponent():
    """R12: alpha_1 from a brute maximum of lambda m + ln(1 - m^2)/2; 0.6226 at lambda = 1; alpha_1 -> lambda at 0."""
    m = np.linspace(-1, 1, 2_000_001)[1:-1]
    for lam in (0.1, 1.0, 5.0):
        brute = lam - np.max(lam * m + 0.5 * np.log1p(-(m**2)))
        assert abs(sphere_exponent(lam) - brute) < 1e-9
    assert round(float(sphere_exponent(1.0)), 4) == 0.6226
    assert sphere_exponent(1e-9) == pytest.approx(1e-9, rel=1e-8)


@pytest.mark.parametrize(("num_patterns", "d"), [(1, 5), (2, 5), (6, 4), (40, 25)])
def test_r12_hebb_noise_with_its_coherent_part(num_patterns, d):
    """5.13: (N-1)/d (1 + (N-2)/d) by simulation; without the coherent part it is rejected as soon as there is one.

    Bears `ols-linear-noise`.
    """
    draws = 20_000
    patterns = random_signs(draws, num_patterns, d, generator=stream(34, num_patterns, d)) / d**0.5
    read = linear_read_out(patterns[:, :1], patterns, "hebb").squeeze(-2)
    energies = (read - patterns[:, 0]).square().sum(dim=-1)
    standard_error = float(energies.std()) / draws**0.5
    assert abs(float(energies.mean()) - hebb_noise(num_patterns, d)) <= 4 * standard_error + 20 * EPS
    if num_patterns > 2:
        assert abs(float(energies.mean()) - (num_patterns - 1) / d) > 4 * standard_error
    assert kernel_noise(num_patterns, d, lambda u: u) == pytest.approx(hebb_noise(num_patterns, d), rel=1e-12)


def test_r12_kernel_noise_of_cubic_and_exponential_read_outs():
    """`ols-linear-noise`, 5.13 for any kernel: (N-1)(E k^2 + (N-2)(E u k)^2) by simulation within 4 standard errors."""
    num_patterns, d, draws = 12, 10, 40_000
    patterns = random_signs(draws, num_patterns, d, generator=stream(35, "kernel")) / d**0.5
    overlaps = (patterns[:, 1:] @ patterns[:, 0, :, None]).squeeze(-1)
    for kernel in (lambda u: u**3, lambda u: torch.exp(3 * u)):
        energies = (kernel(overlaps)[:, None, :] @ patterns[:, 1:]).square().sum(dim=(-2, -1))
        standard_error = float(energies.std()) / draws**0.5
        theory = kernel_noise(num_patterns, d, kernel)
        assert abs(float(energies.mean()) - theory) < 4 * standard_error
        assert abs(float(energies.mean()) - 1.1 * theory) > 4 * standard_error


def test_r12_projection_noise():
    """5.13: the projection on K patterns keeps the fraction rank / d of isotropic noise, all of it at K = d.

    Bears `ols-linear-noise`.
    """
    d, draws = 12, 4000
    for K in (1, 5, 12):
        patterns = torch.randn(K, d, generator=stream(36, K), dtype=torch.float64)
        noise = torch.randn(draws, d, generator=stream(36, "noise", K), dtype=torch.float64)
        kept = linear_read_out(noise, patterns, "projection").square().sum(dim=-1) / d
        standard_error = float(kept.std()) / draws**0.5
        assert abs(float(kept.mean()) - projection_noise(K, d)) < 4 * standard_error
        assert abs(float(kept.mean()) - (K + 1) / d) > 4 * standard_error


def test_r12_bridge_tends_to_the_exponential():
    """R12: (1 + u/n)^n e^{-u} = 1 - u^2 / 2n + O(n^-2)."""
    u = torch.tensor([-2.0, 1.0, 3.0], dtype=torch.float64)
    for n in (10_000, 20_000):
        gap = 1 - bridge(n)(u) * torch.exp(-u)
        np.testing.assert_allclose(gap, u**2 / (2 * n), rtol=10 / n * 3)


@pytest.mark.parametrize(("N", "rho"), [(1, 0.0), (1, 1.0), (10, 0.3)])
def test_corruption_flips_an_exact_number_of_spins(N, rho):
    """corrupt flips round(rho N) spins of every state, different ones in different states."""
    state = random_signs(50, N, generator=stream(37, N))
    flipped = corrupt(state, rho, generator=stream(37, "flips"))
    assert torch.equal((flipped != state).sum(dim=-1), torch.full((50,), round(rho * N)))


def test_generators_make_runs_reproducible():
    """The same stream gives the same capacity, another one another."""
    first, again, other = (capacity(16, 3, trials=4, generator=stream(seed, "run")).K for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_r12_patterns_one_bit_apart():
    """`ols-duplicate`: the fields cancel at that bit, and with a third pattern exactly one of the two moves there."""
    N, i = 8, 3
    for seed in range(40):
        one, third = random_signs(2, N, generator=stream(42, seed))
        two = one.clone()
        two[i] = -two[i]
        pair, three = torch.stack([one, two]), torch.stack([one, two, third])
        assert flip_field(one, pair[:1], "exp")[i] > 0.5
        assert flip_field(pair, pair, "exp")[:, i].abs().max() < 8 * EPS
        fields = flip_field(pair, three, "exp")[:, i]
        assert abs(fields.sum()) < 64 * EPS
        assert abs(fields[0]) > 1e-8
        assert int((kh_step(pair, three, "exp") != pair)[:, i].sum()) == 1


def test_r12_typical_bit_and_number_of_pairs():
    """`ols-two-notions`: Chebyshev's bound, within ten times the rate; the mean number of pairs."""
    N, K, draws = 10, 10, 20_000
    patterns = random_signs(draws, K, N, generator=stream(43, "notions"))
    moved = (kh_step(patterns, patterns, "exp") != patterns).double()
    rates = moved[:, 0].mean(dim=-1)
    bound, error = K / 2**N * (1 + math.exp(-4)) ** (N - 1), float(rates.std()) / draws**0.5
    assert float(rates.mean()) - 4 * error <= bound <= 10 * float(rates.mean())
    near = (patterns @ patterns.mT == N - 2).sum(dim=(-2, -1)).double() / 2
    error = float(near.std()) / draws**0.5
    assert abs(float(near.mean()) - K * (K - 1) / 2 * N / 2**N) < 4 * error
    pairs = near > 0
    moves = moved.sum(dim=(-2, -1)) > 0
    # the rest of the noise is at least e^{-2(N-1)} = 1.5e-8 unless it is exactly zero, where neither moves
    zero = (flip_field(patterns, patterns, "exp").abs() < 1e-12).any(dim=-1).any(dim=-1)
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
