"""The constrained problem: its closed form for every divergence, against optimisers that know no theory."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize
from torch import Tensor

from derived.lab.rng import stream
from derived.papers.cactus.data.pairs import random_pairs
from derived.papers.cactus.model.divergences import (
    TERMS,
    binary_divergence,
    divergence,
    gamma_constrained,
    target_given,
)
from derived.papers.cactus.model.theory import nearest_with_top

EXACT = 1e-12  # sums of at most 50 float64 terms of size at most 1, through at most 50 operations each
examples = settings(derandomize=True, max_examples=40, deadline=None, database=None)


def numbers(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


@examples
@given(st.integers(1, 7), st.integers(0, 2**31), st.sampled_from(sorted(TERMS)))
def test_two_cells_are_the_cheapest(V, seed, name):
    """`cac-closed`, two cells: D_f(h || q) is at least the binary divergence; equal for the proportional one."""
    h, q = (0.9 * x + 0.1 / V for x in random_pairs(20, V, "independent", stream(seed, "cells")))  # 1 - q_n has digits
    n = torch.arange(20) % V
    h_n, q_n = (x.gather(-1, n[:, None]).squeeze(-1) for x in (h, q))
    cost = binary_divergence(h_n, q_n, name)
    assert (cost <= divergence(h, q, name) + EXACT).all()
    if V > 1:
        assert (divergence(target_given(q, n, h_n), q, name) - cost).abs().max() <= EXACT


def slsqp_largest(q: np.ndarray, n: int, budget: float, name: str) -> float:
    """max h_n over distributions within the budget, by a general optimiser in the interior of the simplex."""

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
    """f-divergences at distributions with zeros."""
    p, q = numbers(0.5, 0.5, 0.0), numbers(0.5, 0.0, 0.5)
    values = {name: float(divergence(p, q, name)) for name in TERMS}
    assert {name for name, value in values.items() if value == math.inf} == {"kl", "chi2"}
    assert abs(values["tv"] - 0.5) + abs(values["hellinger"] - 0.5) + abs(values["js"] - math.log(2) / 2) <= EXACT


def by_definition(h: Tensor, q: Tensor) -> dict[str, float]:
    """KL and Jensen-Shannon from the logarithms of the distributions themselves, summed without rounding."""
    h, q = h.tolist(), q.tolist()
    middle = [(x + y) / 2 for x, y in zip(h, q, strict=True)]

    def kl(a, b):
        return math.fsum(x * (math.log(x) - math.log(y)) for x, y in zip(a, b, strict=True) if x > 0)

    return {"kl": kl(h, q), "js": (kl(h, middle) + kl(q, middle)) / 2}


@pytest.mark.parametrize("seed", range(20))
def test_divergences_of_peaked_laws(seed):
    """Distributions of a peaked softmax, tails down to e^-200: digits where h is far below q, and near it."""
    logits = torch.randn(4, 9, generator=stream(seed, "peaked"), dtype=torch.float64)
    laws = [*(scale * logits[0] for scale in (1, 30, 100)), 30 * logits[1], logits[2], 80 * logits[3]]
    laws = [law.softmax(dim=-1) for law in laws]
    for h, q in itertools.permutations(laws, 2):
        for name, value in by_definition(h, q).items():
            assert abs(float(divergence(h, q, name)) - value) <= EXACT * max(1.0, value), (seed, name)


@pytest.mark.parametrize("name", sorted(TERMS))
def test_divergences_do_not_swallow_nan(name):
    for right in (numbers(0.5, 0.5), numbers(0.0, 1.0)):
        for law, other in itertools.permutations((numbers(math.nan, 1.0), right), 2):
            assert math.isnan(divergence(law, other, name))


def least_with_top(q: np.ndarray, top: int) -> float:
    """The least KL(q || p) with no probability above that of ``top``, found by an optimiser."""
    limits = [{"type": "ineq", "fun": lambda p: p[top] - p}, {"type": "eq", "fun": lambda p: p.sum() - 1}]
    options = {"constraints": limits, "bounds": [(1e-6, 1)] * len(q), "options": {"ftol": 1e-15, "maxiter": 500}}
    return optimize.minimize(lambda p: q @ np.log(q / p), np.full(len(q), 1 / len(q)), method="SLSQP", **options).fun


@pytest.mark.parametrize("V", [2, 3, 6])
def test_the_nearest_draft_with_a_token_on_top_is_what_an_optimiser_finds(V):
    """In KL(q || p), where it is at most ln 2."""
    for q in random_pairs(8, V, "noised", stream(V, "nearest"))[1] * 0.98 + 0.02 / V:
        for top in range(V):
            nearest = nearest_with_top(q, top)
            assert abs(nearest.sum() - 1) < EXACT
            assert nearest[top] == nearest.max()
            assert abs(divergence(q, nearest) - least_with_top(q.numpy(), top)) < 1e-7
            assert divergence(q, nearest) <= math.log(2)
