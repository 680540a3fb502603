"""Topic budget: the second-order step, what its budget is worth, and the linear program behind typical acceptance."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from derived.lab.rng import stream
from derived.papers.cactus import budget as figures
from derived.papers.cactus import witness
from derived.papers.cactus.model import theory
from derived.papers.cactus.model.divergences import binary_divergence

EXACT = 1e-12  # sums of at most 50 float64 terms of size at most 1, through at most 50 operations each
examples = settings(derandomize=True, max_examples=40, deadline=None, database=None)


def test_second_order_step():
    """`cac-taylor`, CAC-4: the KL spent misses delta by -(1 - 2q)(2 delta)^{3/2} / (6 sqrt(q(1 - q))), and gamma its
    root by delta (1 - 2q) / 3: orders 3/2 and 1."""
    q = torch.tensor([0.05, 0.2, 0.7, 0.9], dtype=torch.float64)
    delta = torch.logspace(-7, -5, 5, dtype=torch.float64)[:, None]
    miss = binary_divergence(theory.gamma_cactus(q, delta), q) - delta
    leading = -(1 - 2 * q) * (2 * delta) ** 1.5 / (6 * (q * (1 - q)).sqrt())
    assert (miss / leading - 1).abs().max() <= 0.03
    slopes = (miss[-1] / miss[0]).log() / (delta[-1] / delta[0]).log()
    assert (slopes - 1.5).abs().max() <= 0.01
    gap = theory.gamma_exact_kl(q, delta) - theory.gamma_cactus(q, delta)
    assert (gap / (delta * (1 - 2 * q) / 3) - 1).abs().max() <= 0.05


@examples
@given(st.floats(1e-6, 1 - 1e-6), st.floats(1e-12, 5))
def test_second_order_step_is_exact_for_chi2(q_n, delta):
    """`cac-chi2`: gamma solves chi2(h || q) = 2 delta, or is 1 with less; off by the rounding of gamma - q_n alone."""
    gamma = theory.gamma_cactus(q_n, delta)
    spent = float(binary_divergence(gamma, q_n, "chi2"))
    assert spent <= 2 * delta * (1 + 1e-6)
    assert gamma == 1 or abs(spent - 2 * delta) <= 1e-6 * 2 * delta


def test_sharp_budget():
    """`cac-budget`, `cac-each-budget`: KL(h^(n) || q) <= ln(1 + 2 delta), equal at q_n = 1 / (1 + 2 delta) alone."""
    q_n = torch.linspace(1e-4, 1 - 1e-4, 4001, dtype=torch.float64)
    for delta in (0.01, 0.25, 0.5, 1.0, 1.2, 1.3, 4.0):
        spent = binary_divergence(theory.gamma_cactus(q_n, delta), q_n)
        top = float(theory.sharp_budget(delta))
        assert (spent <= top + EXACT).all()
        assert top < 2 * delta
        worst = 1 / (1 + 2 * delta)
        assert abs(float(binary_divergence(theory.gamma_cactus(worst, delta), worst)) - top) <= EXACT
        assert (spent[(q_n - worst).abs() > 0.02] < top - 1e-5).all()
        assert bool((spent <= delta).all()) == (delta >= theory.always_kept_from())
    for delta, ratio in ((0.25, 1.62), (0.5, 1.39), (0.75, 1.22), (1.0, 1.10)):
        assert abs(float(theory.sharp_budget(delta)) / delta - ratio) < 0.005


def test_where_the_budget_is_kept():
    """`cac-kept`, `cac-half`: kept if gamma <= 1 - q_n or q_n <= q_0; broken if q_n >= 1/2 and gamma < 1."""
    q_n = torch.linspace(0.001, 0.999, 999, dtype=torch.float64)
    q_0 = theory.always_kept_below()
    assert abs(2 * q_0 * math.log(1 / q_0) - (1 - q_0)) <= EXACT
    for delta in (1e-3, 0.02, 0.1, 0.3, 1.0, 3.0):
        ratio, gamma = theory.budget_ratio(q_n, delta), theory.gamma_cactus(q_n, delta)
        assert (ratio[(gamma <= 1 - q_n) | (q_n <= q_0)] <= 1 + EXACT).all()
        assert (ratio[gamma <= 0.5] <= 1 + EXACT).all()
        assert (ratio[(q_n >= 0.5) & (gamma < 1)] > 1).all()
    just_above = q_0 + 1e-3  # sharp: at q_0 the budget that is spent at gamma = 1 is exactly delta
    assert theory.budget_ratio(just_above, (1 - just_above) / (2 * just_above)) > 1


def test_typical_acceptance_is_a_linear_program():
    """`cac-typical`, `cac-typical-kept`, `cac-typical-variant`:
    max h_n with -sum h ln q <= budget by a linear program; the point mass iff q_n is above
    the threshold of typical acceptance."""
    g = stream(8, "typical")
    inside = 0
    for _ in range(60):
        q = torch.rand(5, generator=g, dtype=torch.float64).mul(3).softmax(dim=-1)
        epsilon, alpha = 0.3, 0.8
        threshold = theory.typical_threshold(q, epsilon, alpha)
        budget = max(-math.log(epsilon), float(theory.entropy(q)) - math.log(alpha))
        assert abs(float(threshold) - math.exp(-budget)) <= EXACT
        best = optimize.linprog(
            [-1.0, 0, 0, 0, 0],
            A_ub=[(-q.log()).tolist()],
            b_ub=[budget],
            A_eq=[[1.0] * 5],
            b_eq=[1.0],
            method="highs",
        )
        value = float(theory.gamma_cross_entropy(q[0], q.max(), budget))
        assert abs(-best.fun - value) <= 1e-9
        assert (value == 1) == bool(q[0] >= threshold)
        inside += 0 < value < 1
    assert inside > 5  # the mixtures, which typical acceptance rejects outright
    assert theory.gamma_cross_entropy(0.2, 0.5, 0.1).isnan()


def test_the_optimiser_knows_total_masses():
    q = np.array([0.25, 0.75])
    assert witness.largest_target(q, 0, 0.12, "chi2") == pytest.approx(0.25 + (0.12 * 0.1875) ** 0.5, abs=1e-6)


@pytest.mark.parametrize("raised", [0.8, 0.9])
def test_overlap(tells, raised):
    rows = pd.DataFrame({"token": [1, 2], "p": [0.3, 0.7], "q": [0.6, 0.4], "drafted": [False, True]})
    tells(figures.overlap(rows.assign(h=[1 - raised, raised])), "is 0.70", f"raised to {raised:.2f}")


@pytest.mark.parametrize("gap", [0.1, 0.2])
def test_raised_probability(tells, grid, gap):
    rows = grid(delta=(0.1, 1.0), q_n=(0.2, 0.5)).assign(second_order=0.7, exact=0.7 - gap)
    tells(figures.raised_probability(rows), f"{gap:.3f} at 0.1", f"{gap:.3f} at 1")


@pytest.mark.parametrize("ratio", [1.5, 1.8])
def test_budget_map(tells, grid, ratio):
    rows = grid(delta=(0.01, 0.1, 1.0), q_n=(0.1, 0.5, 0.9)).assign(ratio=[0.5, 0.9, ratio] * 3)
    tells(figures.budget_map(rows), f"up to {ratio:.2f}", "33 %")


def test_the_map_takes_no_ratio_above_two(grid):
    """`cac-budget`: ln(1 + 2 delta) < 2 delta, so that a larger ratio was not computed from the rule."""
    rows = grid(delta=(0.01, 0.1), q_n=(0.1, 0.5))
    with pytest.raises(ValueError, match="less than twice its budget"):
        figures.budget_map(rows.assign(ratio=[0.5, 0.9, 1.1, 2.01]))
