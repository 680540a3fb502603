"""Rates, variances and read-outs in closed form, each against a slower road."""

import itertools
import math
from fractions import Fraction

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special

from derived.lab.rng import stream
from derived.papers.stochastic_approximation.model import attention, theory
from derived.papers.stochastic_approximation.model.core import StepSize
from derived.papers.stochastic_approximation.model.predictors import bayes_predictive

examples = settings(derandomize=True, max_examples=60, deadline=None, database=None)


def test_the_covariance_of_a_component():
    """`sa-clt`: n Cov(x_n) by its own recursion for independent noise, in two dimensions, tends to the solution of the
    Lyapunov equation; with correlated noise, in one, the exact variance tends to a^2 Gamma / (2 a lambda - 1)."""
    A, Gamma = np.array([[1.5, 0.4], [-0.3, 1.0]]), np.array([[1.0, 0.3], [0.3, 0.5]])
    V = np.zeros((2, 2))
    for n in range(1, 20_001):
        keep = np.eye(2) - A / n
        V = keep @ V @ keep.T + Gamma / n**2
    Sigma = theory.lyapunov_covariance(A, Gamma)
    assert np.abs(20_000 * V - Sigma).max() < 2e-3
    assert np.abs(20_000 * V - theory.lyapunov_covariance(A, 1.1 * Gamma)).max() > 0.05
    gamma = 0.6 ** np.arange(100_001)  # an autoregression of order one: Gamma = 1.6 / 0.4
    assert abs(theory.long_run_covariance(gamma) - 4) <= 1e-9
    for lam in (0.8, 1.3):
        weights = theory.sa_weights(StepSize.power(n0=3), 100_000, lam)
        assert abs(100_000 * theory.filtered_variance(weights, gamma) / (4 / (2 * lam - 1)) - 1) < 0.02


def test_a_weak_pull_sets_the_rate():
    """`sa-clt`: for a lambda < 1/2 the variance is n^{-2 a lambda} times a number that tends to a limit above 0; the
    exponent 1/2 of a stronger pull is refused."""
    gamma = 0.6 ** np.arange(2**17)
    for lam in (0.2, 0.35):
        scaled = []
        for e in (13, 15, 17):
            weights = theory.sa_weights(StepSize.power(), 2**e, lam)
            scaled.append(theory.filtered_variance(weights, gamma[: 2**e]) * 2 ** (2 * lam * e))
        assert abs(scaled[2] - scaled[1]) < abs(scaled[1] - scaled[0])  # settles
        assert abs(scaled[2] / scaled[1] - 1) < 0.15
        assert scaled[2] * 2.0 ** (17 - 34 * lam) > 1.2 * scaled[1] * 2.0 ** (15 - 30 * lam)  # n Var grows still


def test_a_chain_of_infinite_order():
    """`sa-chain`: mean, autocovariances and their sum, against the stationary law of the chain of order three on its
    eight states of three symbols."""
    c, theta = 0.1, np.array([0.4, 0.2, 0.15])
    states = list(itertools.product(range(2), repeat=3))  # newest first
    P = np.zeros((8, 8))
    for i, past in enumerate(states):
        one = c + theta @ np.array(past)
        for y, chance in ((1, one), (0, 1 - one)):
            P[i, states.index((y, *past[:2]))] = chance
    law = np.linalg.matrix_power(P, 400)[0]
    newest = np.array([state[0] for state in states], dtype=float)
    chain = theory.linear_chain_moments(c, theta, lags=80)
    assert abs(law @ newest - chain.mean) <= 1e-12
    moved = newest.copy()
    gamma = []
    for _ in range(81):
        gamma.append(law @ (newest * moved) - chain.mean**2)
        moved = P @ moved
    assert np.abs(np.array(gamma) - chain.gamma[:81]).max() <= 1e-12
    long = theory.linear_chain_moments(c, theta, lags=400)
    assert abs(theory.long_run_covariance(long.gamma) - chain.long_run) <= 1e-9
    assert chain.long_run > 3 * chain.gamma[0]  # what an analysis of independent data would have


def test_fractional_noise_has_these_constants():
    """`sa-fractional`: exact variances at n = 2^17 over the limits, for steps n^-alpha and 1/n, and closer there than
    at n = 2^13; the noise under a pull twice as strong fails them."""
    for H, lam in ((0.6, 1.0), (0.75, 1.5), (0.9, 0.7)):
        C = H * (2 * H - 1)
        gamma = theory.fractional_autocovariance(H, 2**17)
        assert abs(gamma[1000] / (C * 1000.0 ** (2 * H - 2)) - 1) < 1e-3
        cases = {0.6: (0.6, C * special.gamma(2 * H - 1) * lam ** (-2 * H), StepSize.power(alpha=0.6))}
        limit = C * special.beta(lam, 2 * H - 1) / (lam + H - 1)
        cases[1.0] = (1.0, limit, StepSize.power(n0=2))
        for alpha, limit, step in cases.values():
            off = []
            for e in (13, 17):
                weights = theory.sa_weights(step, 2**e, lam)
                twice = theory.sa_weights(step, 2**e, 2 * lam)
                scale = 2 ** (e * 2 * alpha * (1 - H))
                off.append(abs(theory.filtered_variance(weights, gamma[: 2**e]) * scale / limit - 1))
                assert abs(theory.filtered_variance(twice, gamma[: 2**e]) * scale / limit - 1) > 0.2
            assert off[1] < 0.01
            assert off[1] < off[0]


def test_second_moments_do_not_decide():
    """`sa-fractional`, `sa-heavy`: the renewal stream's autocovariance falls as j^{1 - beta}, that of fractional noise
    with H = (3 - beta)/2 too; the tail of a Gaussian iterate is summable, the chance of long sojourns is not."""
    beta, alpha = 1.5, 0.55
    H = (3 - beta) / 2
    for gamma in (theory.renewal_autocovariance(beta, 20_000), theory.fractional_autocovariance(H, 20_000)):
        assert abs(math.log(gamma[18_000] / gamma[2250]) / math.log(8) - (1 - beta)) < 0.02
    n = 2.0 ** np.arange(10, 40)
    variance = H * special.gamma(2 * H) * n ** (-2 * alpha * (1 - H))
    tails = n * np.exp(-(0.3**2) / (2 * variance))  # over [n, 2n)
    assert tails[-1] < tails[-2] / 2 < tails[-3] / 4
    freezes = [theory.expected_freezes(beta, alpha, 1.0, 2**e) for e in (14, 18)]
    assert freezes[1] > 1.3 * freezes[0]


def test_attention_reads_the_gradient_of_the_cumulant_function():
    """`sa-attention`: by autograd of Lambda for a Gaussian and for a law on five tokens, by quadrature, and by a head
    over many tokens; the plain mean is refused."""
    m, S = torch.tensor([0.3, -1.0], dtype=torch.float64), torch.tensor([[1.0, 0.4], [0.4, 0.5]], dtype=torch.float64)
    theta = torch.tensor([0.7, -0.4], dtype=torch.float64).requires_grad_()
    (gradient,) = torch.autograd.grad(theta @ m + theta @ S @ theta / 2, theta)
    tilted = attention.tilted_mean_gaussian(m, S, theta.detach())
    assert (gradient - tilted).abs().max() <= 1e-12
    assert (gradient - m).abs().max() > 0.1
    law, tokens = np.array([0.1, 0.2, 0.4, 0.2, 0.1]), np.array([-2.0, -0.5, 0.0, 1.0, 3.0])
    push = torch.tensor(0.8, dtype=torch.float64, requires_grad=True)
    cumulant = (torch.tensor(law) * (push * torch.tensor(tokens)).exp()).sum().log()
    (slope,) = torch.autograd.grad(cumulant, push)
    assert abs(attention.tilted_mean_discrete(law, 0.8 * tokens, tokens) - slope.item()) <= 1e-12
    head = attention.RunningSoftmaxAttention(theta.detach(), torch.eye(2).double(), torch.eye(2).double())
    root = torch.linalg.cholesky(S)
    draw = stream(1, "tokens")
    for _ in range(3000):
        head.update(m + torch.randn(200, 2, generator=draw, dtype=torch.float64) @ root.T)
    spread = attention.readout_covariance_gaussian(S, theta.detach()).diagonal() / (3000 * 200)
    assert ((head.read().mean(dim=0) - tilted) / spread.sqrt()).abs().max() < 5


@examples
@given(st.floats(-1.2, 1.2), st.floats(0.3, 1.5), st.floats(-1, 1))
def test_what_a_query_costs(theta, sigma, mean):
    """`sa-effective`: E e^{2 theta y} (y - L)^2 / (E e^{theta y})^2 by quadrature."""
    density = lambda y: math.exp(-((y - mean) ** 2) / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi))  # noqa: E731
    centre, L = mean + 2 * theta * sigma**2, mean + theta * sigma**2
    ends = (centre - 12 * sigma, centre + 12 * sigma)
    top, _ = integrate.quad(
        lambda y: math.exp(2 * theta * y) * (y - L) ** 2 * density(y), *ends, epsabs=0, epsrel=1e-11
    )
    below = math.exp(theta * mean + theta**2 * sigma**2 / 2)
    one = torch.tensor([[sigma**2]], dtype=torch.float64)
    closed = attention.readout_covariance_gaussian(one, torch.tensor([theta], dtype=torch.float64)).item()
    assert abs(top / below**2 / closed - 1) <= 1e-8


def test_self_fed_attention_is_an_urn():
    """`sa-urn`: in exact fractions, the law of every text of six tokens is that of a coin of Beta bias, whatever the
    order; and what the head reads is that rule."""
    b, c = 2, 3
    for text in itertools.product(range(2), repeat=6):
        chance, ones = Fraction(1), 0
        for n, y in enumerate(text):
            one = Fraction(b + ones, b + c + n)
            chance *= one if y else 1 - one
            ones += y
        s = sum(text)
        moment = Fraction(math.factorial(b + s - 1) * math.factorial(c + 6 - s - 1), math.factorial(b + c + 5))
        moment *= Fraction(math.factorial(b + c - 1), math.factorial(b - 1) * math.factorial(c - 1))
        assert chance == moment
    written, read = attention.self_fed_attention(b, c, 40, 7, generator=stream(2, "fed"))
    for n in (0, 1, 20, 39):
        scores = torch.cat([torch.tensor([math.log(b), math.log(c)], dtype=torch.float64), torch.zeros(n).double()])
        values = torch.cat([torch.tensor([[1.0], [0.0]], dtype=torch.float64).expand(2, 7), written[:n]])
        assert (torch.softmax(scores, dim=0) @ values - read[n]).abs().max() <= 1e-12


def test_a_loss_is_that_of_bayes_and_a_divergence():
    """`sa-bayes`: a made-up predictor's loss over all texts of a mixture of two coins, in full; within one component a
    context says nothing, and another component's coin costs the divergence."""
    p, w = np.array([0.2, 0.7]), np.array([0.4, 0.6])
    coins = np.stack([np.tile([1 - each, each], (2, 1)) for each in p])  # chains that forget at once
    loss = bayes = divergence = 0.0
    for text in itertools.product(range(2), repeat=5):
        likelihood = w * np.prod(np.where(np.array(text)[:, None] == 1, p, 1 - p), axis=0)
        chance = likelihood.sum()
        best = (likelihood / chance) @ p
        tokens = torch.tensor([[*text, 0]])
        assert abs(bayes_predictive(tokens, coins, tuple(w))[0, 5, 1] - best) <= 1e-12
        guess = 0.3 + 0.4 * np.mean(text)
        entropy = -best * math.log(best) - (1 - best) * math.log(1 - best)
        cross = -best * math.log(guess) - (1 - best) * math.log(1 - guess)
        loss, bayes, divergence = (
            loss + chance * cross,
            bayes + chance * entropy,
            divergence + chance * (best * math.log(best / guess) + (1 - best) * math.log((1 - best) / (1 - guess))),
        )
    assert abs(loss - bayes - divergence) <= 1e-12
    assert divergence > 0.01
    alone = -p[1] * math.log(p[0]) - (1 - p[1]) * math.log(1 - p[0])
    own = -p[1] * math.log(p[1]) - (1 - p[1]) * math.log(1 - p[1])
    kl = p[1] * math.log(p[1] / p[0]) + (1 - p[1]) * math.log((1 - p[1]) / (1 - p[0]))
    assert abs(alone - own - kl) <= 1e-12


@examples
@given(st.floats(0.01, 1), st.floats(0.001, 1), st.floats(0, 3))
def test_tracking(a, epsilon, sigma):
    """`sa-tracking`: the stationary second moments of the pair (x, k) from their own linear recursion, solved as a
    fixed point."""
    rho = 1 - epsilon
    # m' = E x_n k_n = (1 - a) rho m + a ; v' = (1 - a)^2 v + 2 a (1 - a) rho m + a^2 (1 + sigma^2)
    step = np.array([[(1 - a) * rho, 0.0], [2 * a * (1 - a) * rho, (1 - a) ** 2]])
    m, v = np.linalg.solve(np.eye(2) - step, np.array([a, a**2 * (1 + sigma**2)]))
    variance = theory.telegraph_variance(a, epsilon)
    assert abs(v - variance - a * sigma**2 / (2 - a)) <= 1e-9 * v
    assert abs(theory.tracking_error_exact(a, epsilon, sigma) - (v - 2 * m + 1)) <= 1e-9 * (1 + v)


@examples
@given(st.floats(1e-4, 1), st.floats(1e-4, 1))
def test_plastic_or_rigid(a, epsilon):
    """`sa-plasticity`: 1 - epsilon/2 <= (1 + epsilon/a) Var x <= 1 + epsilon; and nothing much narrower holds: at
    a = epsilon = 1 the upper one is attained."""
    scaled = (1 + epsilon / a) * theory.telegraph_variance(a, epsilon)
    assert 1 - epsilon / 2 - 1e-12 <= scaled <= 1 + epsilon + 1e-12
    assert abs(2 * theory.telegraph_variance(1.0, 1.0) - 2) <= 1e-12


def test_the_best_step_is_a_minimum():
    """`sa-plasticity`: sqrt(2 epsilon)/sigma - epsilon against a fine grid of the error for small steps."""
    grid = np.geomspace(1e-5, 1, 200_001)
    for epsilon, sigma in ((0.001, 0.5), (0.01, 2.0)):
        found = grid[theory.tracking_error(grid, epsilon, sigma).argmin()]
        assert abs(found / theory.best_step(epsilon, sigma) - 1) < 1e-3


@examples
@given(st.integers(1, 60), st.floats(0.001, 1))
def test_a_learner_that_never_forgets(n, epsilon):
    """`sa-forget`: the mean of n data of correlation rho^j, by the double sum; m against n steps of another world."""
    i = np.arange(n)
    plain = ((1 - epsilon) ** np.abs(i[:, None] - i[None])).sum() / n**2
    assert abs(theory.telegraph_mean_variance(n, epsilon) / plain - 1) <= 1e-6
    x = 0.0
    for k in range(1, 3 * n + 1):
        x += ((1.0 if k <= n else 0.0) - x) / k
    assert abs(1 - x - 2 / 3) <= 1e-12
