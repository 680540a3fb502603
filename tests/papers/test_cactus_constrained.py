"""The constrained problem: its closed form for every divergence, the second-order step, what its budget is worth."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize
from torch import Tensor

from derived.lab.rng import stream
from derived.papers.cactus.divergences import (
    TERMS,
    binary_divergence,
    divergence,
    divergences,
    gamma_constrained,
    target_given,
)
from derived.papers.cactus.pairs import random_pairs
from derived.papers.cactus.theory import (
    always_kept_below,
    always_kept_from,
    budget_ratio,
    entropy,
    gamma_cactus,
    gamma_cross_entropy,
    gamma_exact_kl,
    sharp_budget,
    typical_threshold,
)

EXACT = 1e-12  # sums of at most 50 float64 terms of size at most 1, through at most 50 operations each
examples = settings(derandomize=True, max_examples=40, deadline=None, database=None)


def numbers(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


@examples
@given(st.integers(1, 7), st.integers(0, 2**31), st.sampled_from(sorted(TERMS)))
def test_two_cells_are_the_cheapest(V, seed, name):
    """`cac-two-cells`: D_f(h || q) is at least the binary divergence, and equal to it for the proportional law."""
    h, q = (0.9 * x + 0.1 / V for x in random_pairs(20, V, "independent", stream(seed, "cells")))  # 1 - q_n has digits
    n = torch.arange(20) % V
    h_n, q_n = (x.gather(-1, n[:, None]).squeeze(-1) for x in (h, q))
    cost = binary_divergence(h_n, q_n, name)
    assert (cost <= divergence(h, q, name) + EXACT).all()
    if V > 1:
        assert (divergence(target_given(q, n, h_n), q, name) - cost).abs().max() <= EXACT


def slsqp_largest(q: np.ndarray, n: int, budget: float, name: str) -> float:
    """max h_n over laws within the budget, by a general optimiser in the interior of the simplex."""

    def room(h):
        return budget - float(divergence(torch.from_numpy(np.abs(h)), torch.from_numpy(q), name))

    best = optimize.minimize(
        lambda h: -h[n],
        q,
        jac=lambda h: -np.eye(len(q))[n],
        method="SLSQP",
        bounds=[(1e-12, 1.0)] * len(q),
        constraints=[{"type": "eq", "fun": lambda h: h.sum() - 1}, {"type": "ineq", "fun": room}],
        options={"ftol": 1e-12, "maxiter": 300},
    )
    return float(best.x[n])


@pytest.mark.parametrize("name", ["kl", "chi2", "hellinger", "js"])
def test_closed_form_against_a_general_optimiser(name):
    """`cac-closed`, CAC-3: SLSQP finds the same largest h_n."""
    g = stream(3, "slsqp", name)
    for V in (2, 3, 5):
        for budget in (0.01, 0.1):
            q = 0.9 * torch.rand(V, generator=g, dtype=torch.float64).softmax(dim=-1) + 0.1 / V
            gamma = float(gamma_constrained(q[0], budget, name))
            assert abs(slsqp_largest(q.numpy(), 0, budget, name) - gamma) <= 2e-5


@pytest.mark.parametrize("name", sorted(TERMS))
def test_closed_form_is_the_end_of_the_feasible_interval(name):
    """`cac-closed`: gamma* is within the budget, and the next gamma is not, for every f; without a budget it is q_n."""
    q_n = torch.linspace(0, 1, 41, dtype=torch.float64)
    for budget in (1e-6, 0.03, 0.4, 2.0):
        gamma = gamma_constrained(q_n, budget, name)
        assert ((gamma >= q_n) & (gamma <= 1)).all()
        assert (binary_divergence(gamma, q_n, name) <= budget * (1 + 1e-9)).all()
        more = gamma + 1e-7
        inside = more < 1
        assert (binary_divergence(more, q_n, name)[inside] > budget).all()
    assert (gamma_constrained(q_n, 0.0, name) - q_n).abs().max() <= 1e-7  # phi is flat at q_n: quadratic
    excluded = float(gamma_constrained(0.0, 0.1, name))
    assert (excluded == 0) == (name in ("kl", "chi2"))  # f'(infinity) is infinite for these two alone


def test_divergences_know_their_limits():
    """f-divergences at laws with zeros, and the standard inequalities between them."""
    p, q = numbers(0.5, 0.5, 0.0), numbers(0.5, 0.0, 0.5)
    values = {name: float(value) for name, value in divergences(p, q).items()}
    assert {name for name, value in values.items() if value == math.inf} == {"kl", "reverse_kl", "chi2", "neyman"}
    assert abs(values["tv"] - 0.5) + abs(values["hellinger"] - 0.5) + abs(values["js"] - math.log(2) / 2) <= EXACT
    h = numbers(0.2, 0.8)
    r = numbers(0.6, 0.4)
    expected = {
        "kl": 0.2 * math.log(0.2 / 0.6) + 0.8 * math.log(2),
        "reverse_kl": 0.6 * math.log(3) + 0.4 * math.log(0.5),
        "chi2": 0.16 / 0.6 + 0.16 / 0.4,
        "neyman": 0.16 / 0.2 + 0.16 / 0.8,
        "hellinger": 1 - math.sqrt(0.12) - math.sqrt(0.32),
        "tv": 0.4,
        "js": float(torch.special.entr(numbers(0.4, 0.6)).sum(dim=0) - (entropy(h) + entropy(r)) / 2),
    }
    for name, value in expected.items():
        assert abs(float(divergence(h, r, name)) - value) <= EXACT, name


def test_second_order_step():
    """`cac-taylor`, CAC-4: the KL spent misses delta by -(1 - 2q)(2 delta)^{3/2} / (6 sqrt(q(1 - q))), and gamma its
    root by delta (1 - 2q) / 3: orders 3/2 and 1."""
    q = torch.tensor([0.05, 0.2, 0.7, 0.9], dtype=torch.float64)
    delta = torch.logspace(-7, -5, 5, dtype=torch.float64)[:, None]
    miss = binary_divergence(gamma_cactus(q, delta), q) - delta
    leading = -(1 - 2 * q) * (2 * delta) ** 1.5 / (6 * (q * (1 - q)).sqrt())
    assert (miss / leading - 1).abs().max() <= 0.03
    slopes = (miss[-1] / miss[0]).log() / (delta[-1] / delta[0]).log()
    assert (slopes - 1.5).abs().max() <= 0.01
    gap = gamma_exact_kl(q, delta) - gamma_cactus(q, delta)
    assert (gap / (delta * (1 - 2 * q) / 3) - 1).abs().max() <= 0.05


@examples
@given(st.floats(1e-6, 1 - 1e-6), st.floats(1e-12, 5))
def test_second_order_step_is_exact_for_chi2(q_n, delta):
    """`cac-chi2`: gamma solves chi2(h || q) = 2 delta, or is 1 with less; off by the rounding of gamma - q_n alone."""
    gamma = gamma_cactus(q_n, delta)
    spent = float(binary_divergence(gamma, q_n, "chi2"))
    assert spent <= 2 * delta * (1 + 1e-6)
    assert gamma == 1 or abs(spent - 2 * delta) <= 1e-6 * 2 * delta


def test_sharp_budget():
    """`cac-budget`, CAC-5: KL(h^(n) || q) <= ln(1 + 2 delta), with equality at q_n = 1 / (1 + 2 delta) alone."""
    q_n = torch.linspace(1e-4, 1 - 1e-4, 4001, dtype=torch.float64)
    for delta in (0.01, 0.25, 0.5, 1.0, 1.2, 1.3, 4.0):
        spent = binary_divergence(gamma_cactus(q_n, delta), q_n)
        top = float(sharp_budget(delta))
        assert (spent <= top + EXACT).all()
        assert top < 2 * delta
        worst = 1 / (1 + 2 * delta)
        assert abs(float(binary_divergence(gamma_cactus(worst, delta), worst)) - top) <= EXACT
        assert (spent[(q_n - worst).abs() > 0.02] < top - 1e-5).all()
        assert bool((spent <= delta).all()) == (delta >= always_kept_from())
    for delta, ratio in ((0.25, 1.62), (0.5, 1.39), (0.75, 1.22), (1.0, 1.10)):
        assert abs(float(sharp_budget(delta)) / delta - ratio) < 0.005


def test_where_the_budget_is_kept():
    """`cac-kept`: kept if gamma <= 1 - q_n or q_n <= q_0; broken if q_n >= 1/2 and gamma < 1."""
    q_n = torch.linspace(0.001, 0.999, 999, dtype=torch.float64)
    q_0 = always_kept_below()
    assert abs(2 * q_0 * math.log(1 / q_0) - (1 - q_0)) <= EXACT
    for delta in (1e-3, 0.02, 0.1, 0.3, 1.0, 3.0):
        ratio, gamma = budget_ratio(q_n, delta), gamma_cactus(q_n, delta)
        assert (ratio[(gamma <= 1 - q_n) | (q_n <= q_0)] <= 1 + EXACT).all()
        assert (ratio[(q_n >= 0.5) & (gamma < 1)] > 1).all()
    just_above = q_0 + 1e-3  # sharp: at q_0 the budget that is spent at gamma = 1 is exactly delta
    assert budget_ratio(just_above, (1 - just_above) / (2 * just_above)) > 1


def test_typical_acceptance_is_a_linear_program():
    """`cac-typical`, CAC-10: max h_n with -sum h ln q <= budget by a linear program; the point mass iff q_n is above
    the threshold of typical acceptance."""
    g = stream(8, "typical")
    inside = 0
    for _ in range(60):
        q = torch.rand(5, generator=g, dtype=torch.float64).mul(3).softmax(dim=-1)
        epsilon, alpha = 0.3, 0.8
        threshold = typical_threshold(q, epsilon, alpha)
        budget = max(-math.log(epsilon), float(entropy(q)) - math.log(alpha))
        assert abs(float(threshold) - math.exp(-budget)) <= EXACT
        best = optimize.linprog(
            [-1.0, 0, 0, 0, 0],
            A_ub=[(-q.log()).tolist()],
            b_ub=[budget],
            A_eq=[[1.0] * 5],
            b_eq=[1.0],
            method="highs",
        )
        value = float(gamma_cross_entropy(q[0], q.max(), budget))
        assert abs(-best.fun - value) <= 1e-9
        assert (value == 1) == bool(q[0] >= threshold)
        inside += 0 < value < 1
    assert inside > 5  # the mixtures, which typical acceptance rejects outright
    assert gamma_cross_entropy(0.2, 0.5, 0.1).isnan()
