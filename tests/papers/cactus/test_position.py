"""Topic position: what is emitted at one position, the square root, and what its budget is worth."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from derived.lab.rng import stream
from derived.papers.cactus import matching, position
from derived.papers.cactus.data.pairs import random_pairs
from derived.papers.cactus.model import theory
from derived.papers.cactus.model.divergences import binary_divergence
from derived.papers.cactus.model.exact import output_law
from derived.papers.cactus.model.rules import Typical

EXPERIMENTS = (position.RandomPairs, position.FlatVerifier)
EXACT = 1e-12  # sums of at most 50 float64 terms of size at most 1, through at most 50 operations each
CLAIMS = {claim.id: claim for claim in position.CLAIMS}
examples = settings(derandomize=True, max_examples=40, deadline=None, database=None)


@examples
@given(st.floats(1e-6, 1 - 1e-6), st.floats(1e-12, 5))
def test_the_square_root_is_exact_for_chi_square(q_n, delta):
    """`cac-rule`: gamma solves chi2(h || q) = 2 delta, or is 1 with less; off by the rounding of gamma - q_n alone."""
    gamma = theory.gamma_cactus(q_n, delta)
    spent = float(binary_divergence(gamma, q_n, "chi2"))
    assert spent <= 2 * delta * (1 + 1e-6)
    assert gamma == 1 or abs(spent - 2 * delta) <= 1e-6 * 2 * delta


def test_the_square_root_solves_the_problem_for_kl_to_second_order():
    """`cac-rule`: the KL spent misses delta by -(1 - 2q)(2 delta)^{3/2} / (6 sqrt(q(1 - q))), from Taylor's formula."""
    q = torch.tensor([0.05, 0.2, 0.7, 0.9], dtype=torch.float64)
    delta = torch.logspace(-7, -5, 5, dtype=torch.float64)[:, None]
    miss = binary_divergence(theory.gamma_cactus(q, delta), q) - delta
    leading = -(1 - 2 * q) * (2 * delta) ** 1.5 / (6 * (q * (1 - q)).sqrt())
    assert (miss / leading - 1).abs().max() <= 0.03


def test_sharp_budget():
    """`cac-budget`: KL(h^(n) || q) <= ln(1 + 2 delta), equal at q_n = 1 / (1 + 2 delta) alone."""
    q_n = torch.linspace(1e-4, 1 - 1e-4, 4001, dtype=torch.float64)
    for delta in (0.01, 0.25, 0.5, 1.0, 1.2, 1.3, 4.0):
        spent = binary_divergence(theory.gamma_cactus(q_n, delta), q_n)
        top = float(theory.sharp_budget(delta))
        assert abs(top - math.log(1 + 2 * delta)) <= EXACT
        assert (spent <= top + EXACT).all()
        worst = 1 / (1 + 2 * delta)
        assert abs(float(binary_divergence(theory.gamma_cactus(worst, delta), worst)) - top) <= EXACT
        assert (spent[(q_n - worst).abs() > 0.02] < top - 1e-5).all()
        assert bool((spent <= delta).all()) == (delta >= 1.2565)  # the root of ln(1 + 2 delta) = delta is 1.2564


def test_up_to_one_half_the_budget_is_kept():
    """`cac-half`: KL <= delta where gamma <= 1/2, by the formula of the KL itself; beyond, it is exceeded somewhere."""
    q = np.linspace(0.001, 0.999, 999)
    for delta in (1e-3, 0.02, 0.1, 0.3):
        gamma = np.minimum(q + np.sqrt(2 * delta * q * (1 - q)), 1 - 1e-15)
        spent = gamma * np.log(gamma / q) + (1 - gamma) * np.log((1 - gamma) / (1 - q))
        assert (spent[gamma <= 0.5] <= delta + EXACT).all()
        assert (spent[gamma > 0.5] > delta + 1e-6).any()
        np.testing.assert_allclose(binary_divergence(gamma, q).numpy(), spent, rtol=0, atol=1e-9)


def test_typical_acceptance_is_the_cross_entropy_variant_where_it_keeps():
    """`cac-typical`: a linear program finds the point mass where the rule keeps, a positive h_n elsewhere."""
    kept, found = [], []
    for case in range(60):
        q = torch.rand(5, generator=stream(8, "typical", case), dtype=torch.float64).mul(3).softmax(dim=-1)
        rule, entropy = Typical(0.3, 0.8), float(-(q * q.log()).sum(dim=-1))
        budget = max(-math.log(0.3), entropy - math.log(0.8))
        kept.append(float(rule.gamma(q[0], q[0], *rule.summaries(q, q))) == 1)
        program = {"A_ub": [(-q.log()).tolist()], "b_ub": [budget], "A_eq": [[1.0] * 5], "b_eq": [1.0]}
        found.append(-optimize.linprog([-1.0, 0, 0, 0, 0], **program).fun)
    kept, found = np.array(kept), np.array(found)
    assert np.abs(found[kept] - 1).max() <= 1e-9
    assert ((found[~kept] < 1 - 1e-6) & (found[~kept] > 0)).sum() > 5


def band_by_halving(p, q, budget: float) -> np.ndarray:
    """clip(p, b q, a q), the largest a whose distribution, with b such that it sums to one, is within the budget."""

    def clipped(a: float) -> np.ndarray:
        low, high = 0.0, 1.0
        for _ in range(80):
            b = (low + high) / 2
            low, high = (b, high) if np.clip(p, b * q, a * q).sum() < 1 else (low, b)
        return np.clip(p, high * q, a * q)

    low, high = 1.0, float((p / q).max())
    for _ in range(80):
        h = clipped(a := (low + high) / 2)
        low, high = (a, high) if np.sum(h * np.log(h / q)) < budget else (low, a)
    return clipped(low)


def emitted_by_loops(name: str, knob: float, p, q) -> np.ndarray:
    """What a rule emits, draft by draft: the share of it that is kept, and what stands in for the rest."""
    entropy, emitted = -np.sum(q * np.log(q)), np.zeros_like(q)
    likeliest = np.argsort(-q)[: int(max(knob, 1))]
    if name in ("interp", "interp inside"):
        target = knob * p + (1 - knob) * q
    elif name == "mentored":
        target = band_by_halving(p, q, knob)
    for n in range(len(q)):
        if name == "cactus":
            gamma = min(q[n] + np.sqrt(2 * knob * q[n] * (1 - q[n])), 1)
            target = np.where(np.arange(len(q)) == n, gamma, q * (1 - gamma) / (1 - q[n]))
        if name in ("cactus", "interp", "interp inside", "mentored"):
            keep, instead = min(1, target[n] / p[n]), np.maximum(target - p, 0)
        elif name == "lenience":
            keep, instead = min(1, q[n] / (knob * p[n])), np.maximum(q - p, 0)
        elif name == "tas":
            keep = float(q[n] > min(knob, knob**0.5 * np.exp(-entropy)))
            instead = (np.arange(len(q)) == q.argmax()).astype(float)
        else:
            keep = float(n in likeliest)
            instead = np.maximum(np.isin(np.arange(len(q)), likeliest) - p, 0)
        emitted[n] += p[n] * keep
        if keep < 1:
            emitted += p[n] * (1 - keep) * instead / instead.sum()
    return emitted


@pytest.mark.parametrize(
    ("name", "knob"), [("cactus", 0.01), ("cactus", 1.0), ("interp inside", 0.3), *position.OTHERS]
)
def test_every_rule_emits_what_plain_loops_emit(name, knob):
    p, q = random_pairs(10, 6, "independent", stream(6, "loops"))
    p, q = (0.98 * rows + 0.02 / 6 for rows in (p, q))
    for found, *pair in zip(output_law(p, q, matching.rule_of(name, knob)), p, q, strict=True):
        by_loops = emitted_by_loops(name, knob, *(row.numpy() for row in pair))
        np.testing.assert_allclose(found.numpy(), by_loops, rtol=0, atol=1e-9)  # of the halving; the rest is rounding


def test_amended_interpolation_keeps_no_excluded_draft():
    """By hand: q excludes the last token, so its draft is replaced from (q - p)_+ whatever alpha is."""
    p, q = (torch.tensor(row, dtype=torch.float64) for row in ([0.2, 0.5, 0.3], [0.6, 0.4, 0.0]))
    inside = output_law(p, q, matching.rule_of("interp inside", 1.0))
    assert (inside - torch.tensor([0.5, 0.5, 0.0]).double()).abs().max() <= EXACT
    assert (output_law(p, q, matching.rule_of("interp", 1.0)) - p).abs().max() <= EXACT
    inside = output_law(p, q, matching.rule_of("interp inside", 0.1))
    assert (inside - torch.tensor([0.59, 0.41, 0.0], dtype=torch.float64)).abs().max() <= EXACT


def test_rows_have_every_rival_and_hold_their_claim(rows):
    table = rows[position.RandomPairs]
    assert set(table["rule"]) == {"cactus", *matching.RIVALS}
    claim = CLAIMS["CAC-6.b"]
    assert claim.judge(claim.measure(table))[0] == "holds"
    assert claim.judge(claim.control(table))[0] == "fails"


def test_what_is_emitted_stays_away_while_the_budget_falls(rows):
    """`cac-fixed`, CAC-7.g: TV = 1 - k/V with k from the square root in plain Python; the draft itself is emitted."""
    table = rows[position.FlatVerifier]
    assert table["delta"].is_monotonic_decreasing
    for V, delta, tv, kl in table[["V", "delta", "tv", "kl"]].itertuples(index=False):
        k = math.ceil(V / (1 + math.sqrt(2 * delta * (V - 1))) - 1e-9)
        assert tv == pytest.approx(1 - k / V, abs=1e-12)
        assert kl == pytest.approx(math.log(V / k), abs=1e-9)
    claim = CLAIMS["CAC-7.g"]
    assert claim.judge(claim.measure(table))[0] == "fails"
    falling = table.assign(tv=table["delta"])
    assert claim.judge(claim.measure(falling))[0] == "undecided"
