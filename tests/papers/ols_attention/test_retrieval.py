"""R12: the softmax step, one-step retrieval, published bounds, and the noise of linear read-outs."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import special

from derived.lab.rng import stream
from derived.papers.ols_attention.model import capacity, hopfield
from derived.papers.ols_attention.model.hopfield import (
    bit_error_rate,
    corrupt,
    energy,
    linear_read_out,
    random_signs,
    retrieve,
)
from derived.papers.ols_attention.retrieval import ReadOutNoise, Steps, keeps_and_repairs

EPS = torch.finfo(torch.float64).eps


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


def test_r12_one_step_retrieval_from_flipped_bits():
    """R12, OLS-17: at K = e^{0.9 alpha N} with 10 % flips one step of e^u leaves below 2 %, of u^2 over 10 %.

    Bears `ols-demircigil`.
    """
    N, rho = 30, 0.1
    K = int(np.exp(0.9 * float(capacity.demircigil_exponent(rho)) * N))
    exponential, quadratic = (
        bit_error_rate(N, K, interaction, rho=rho, trials=40, generator=stream(32, "retrieval"))
        for interaction in ("exp", 2)
    )
    assert exponential.mean() + 4 * exponential.std() / 40**0.5 < 0.02
    assert quadratic.mean() - 4 * quadratic.std() / 40**0.5 > 0.10


def test_r12_ramsauer_constants():
    """R12, OLS-16: the published examples c >= 3.1546 and 1.3718; W_0 by scipy's lambertw and by its own equation."""
    for (beta, K, d, p), published in (((1, 3, 20, 0.001), 3.1546), ((1, 1, 75, 0.001), 1.3718)):
        a, b, c, num_patterns, valid = capacity.ramsauer_capacity(beta, K, d, p)
        assert abs(c - published) < 1e-4
        assert c == pytest.approx(b / special.lambertw(np.exp(a + np.log(b))).real, rel=1e-12)
        w = b / c
        assert w * np.exp(w) == pytest.approx(b * np.exp(a), rel=1e-12)
        assert num_patterns == pytest.approx(p**0.5 * c ** ((d - 1) / 4))
        assert valid == (c >= (2 / p**0.5) ** (4 / (d - 1)))
    assert np.isfinite(capacity.ramsauer_capacity(1e4, 10, 20, 0.5).c)  # e^{a + ln b} would overflow


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
    sharp, printed = (
        capacity.retrieval_bound(probe, patterns, beta),
        capacity.retrieval_bound(probe, patterns, beta, fixed_points),
    )
    rounding = 8 * (K + d) * EPS * (1 + beta * d) * d**0.5
    assert (error <= sharp + rounding).all()
    assert (sharp <= printed).all()
    assert capacity.separation(patterns).shape == (100, K)
    if K > 1:
        assert (sharp[capacity.separation(patterns) > d / 2] < d**0.5).any()  # the bound says something somewhere


def test_r12_sphere_exponent():
    """R12: alpha_1 from a brute maximum of lambda m + ln(1 - m^2)/2; 0.6226 at lambda = 1; alpha_1 -> lambda at 0."""
    m = np.linspace(-1, 1, 2_000_001)[1:-1]
    for lam in (0.1, 1.0, 5.0):
        brute = lam - np.max(lam * m + 0.5 * np.log1p(-(m**2)))
        assert abs(capacity.sphere_exponent(lam) - brute) < 1e-9
    assert round(float(capacity.sphere_exponent(1.0)), 4) == 0.6226
    assert capacity.sphere_exponent(1e-9) == pytest.approx(1e-9, rel=1e-8)


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
    assert abs(float(energies.mean()) - capacity.hebb_noise(num_patterns, d)) <= 4 * standard_error + 20 * EPS
    if num_patterns > 2:
        assert abs(float(energies.mean()) - (num_patterns - 1) / d) > 4 * standard_error
    assert capacity.kernel_noise(num_patterns, d, lambda u: u) == pytest.approx(
        capacity.hebb_noise(num_patterns, d), rel=1e-12
    )


def test_r12_kernel_noise_of_cubic_and_exponential_read_outs():
    """`ols-linear-noise`, 5.13 for any kernel: (N-1)(E k^2 + (N-2)(E u k)^2) by simulation within 4 standard errors."""
    num_patterns, d, draws = 12, 10, 40_000
    patterns = random_signs(draws, num_patterns, d, generator=stream(35, "kernel")) / d**0.5
    overlaps = (patterns[:, 1:] @ patterns[:, 0, :, None]).squeeze(-1)
    for kernel in (lambda u: u**3, lambda u: torch.exp(3 * u)):
        energies = (kernel(overlaps)[:, None, :] @ patterns[:, 1:]).square().sum(dim=(-2, -1))
        standard_error = float(energies.std()) / draws**0.5
        theory = capacity.kernel_noise(num_patterns, d, kernel)
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
        assert abs(float(kept.mean()) - capacity.projection_noise(K, d)) < 4 * standard_error
        assert abs(float(kept.mean()) - (K + 1) / d) > 4 * standard_error


@pytest.mark.parametrize(("N", "rho"), [(1, 0.0), (1, 1.0), (10, 0.3)])
def test_corruption_flips_an_exact_number_of_spins(N, rho):
    """corrupt flips round(rho N) spins of every state, different ones in different states."""
    state = random_signs(50, N, generator=stream(37, N))
    flipped = corrupt(state, rho, generator=stream(37, "flips"))
    assert torch.equal((flipped != state).sum(dim=-1), torch.full((50,), round(rho * N)))


def test_a_rule_that_moves_nothing_keeps_everything_and_repairs_nothing():
    """OLS-15.g and OLS-15.h: what "kept" and "wrong" count, by an obvious twin of the softmax step."""
    experiment, places = Steps.at("tiny"), {"device": torch.device("cpu"), "dtype": torch.float64}
    for condition in experiment.conditions():
        found = experiment.run(condition, seed=3, **places)
        idle = found[found["rule"] == "nothing"]
        assert (idle["wrong"] == condition["flips"]).all()
        assert (idle["kept"] == (condition["flips"] == 0)).all()
        assert set(found["rule"]) == {"flip", "softmax", "nothing"}
    rows = pd.concat([experiment.run(each, seed=3, **places).assign(**each) for each in experiment.conditions()])
    shares = {rule: keeps_and_repairs(rule)(rows).value for rule in ("softmax", "nothing")}
    assert shares["nothing"] == 0 < shares["softmax"]
    patterns = hopfield.random_signs(5, 8, generator=stream(0, "twin"))
    by_hand = [sum(math.exp(float(x @ p)) * p for p in patterns).sign() for x in patterns]
    read = hopfield.retrieve(patterns, patterns, "lse").state.sign()
    torch.testing.assert_close(read, torch.stack(by_hand))


def test_noise_of_read_outs_is_that_of_theory_and_not_the_naive_one():
    size = ReadOutNoise(d=24, nums=(6,), replicates=2000)
    facts = {"seed": 0, "device": torch.device("cpu"), "dtype": torch.float64}
    for condition in size.conditions():
        table = size.run(condition, **facts)
        error = table["noise"].std() / len(table) ** 0.5
        assert abs((table["noise"] - table["theory"]).mean()) < 4 * error, condition
        if condition["memory"] == "hebb":
            assert abs((table["noise"] - table["naive"]).mean()) > 8 * error
