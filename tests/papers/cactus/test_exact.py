"""What is emitted: each result against enumeration, a slow twin, and an optimiser that knows no theory."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize
from torch import Tensor

from derived.lab.rng import stream
from derived.papers.cactus.model import theory
from derived.papers.cactus.model.divergences import TERMS, divergence
from derived.papers.cactus.model.exact import acceptance_rate, emission, output_law
from derived.papers.cactus.model.rules import Cactus, Calibrated, Interp, Lenience, Mentored, SpS, TopK, Typical

EXACT = 1e-12  # sums of at most 50 float64 terms of size at most 1, through at most 50 operations each
SANDWICH = (SpS(), Cactus(0.3), Calibrated(0.07), Lenience(0.6), Interp(0.3), Mentored(0.05))
EVERY = (*SANDWICH, Typical(), TopK(2))
examples = settings(derandomize=True, max_examples=40, deadline=None, database=None)
few = settings(examples, max_examples=12)
named = pytest.mark.parametrize("rule", EVERY, ids=lambda rule: rule.name)


def numbers(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def tv(h: Tensor, q: Tensor) -> Tensor:
    return divergence(h, q, "tv")


def random_laws(*shape: int, generator: torch.Generator) -> Tensor:
    """Distributions from nearly flat to nearly one-hot, a tenth of the entries zero."""
    power = 8 * torch.rand(*shape[:-1], 1, generator=generator, dtype=torch.float64)
    weights = torch.rand(*shape, generator=generator, dtype=torch.float64) ** power
    kept = torch.rand(*shape, generator=generator, dtype=torch.float64) > 0.1
    kept[..., 0] |= ~kept.any(dim=-1)
    return weights * kept / (weights * kept).sum(dim=-1, keepdim=True)


@st.composite
def pairs(draw, most: int = 7):
    """(p, q) of shape (20, V): independent, equal, one-hot and disjoint distributions among them."""
    V = draw(st.integers(1, most))
    g = stream(draw(st.integers(0, 2**31)), "pairs")
    p, q = random_laws(20, V, generator=g), random_laws(20, V, generator=g)
    p[0] = q[0]
    q[1], p[2] = (torch.eye(V, dtype=torch.float64)[i % V] for i in (V - 1, 1))
    return p, q


@examples
@given(pairs())
def test_speculative_sampling_is_exact(pair):
    """`cac-sps`, CAC-2: with any target h the emitted distribution is h, and A = 1 - TV(p, h)."""
    p, h = pair
    assert (output_law(p, h, SpS()) - h).abs().max() <= EXACT
    assert (acceptance_rate(p, h, SpS()) - 1 + tv(p, h)).abs().max() <= EXACT


def test_no_coupling_keeps_more():
    """`cac-coupling`, CAC-2: the diagonal of a coupling of p and h holds at most 1 - TV(p, h): linear programs."""
    g = stream(2, "couplings")
    for V in (2, 3, 5):
        p, h = random_laws(V, generator=g), random_laws(V, generator=g)
        rows = np.kron(np.eye(V), np.ones(V))
        columns = np.kron(np.ones(V), np.eye(V))
        best = optimize.linprog(
            -np.eye(V).ravel(), A_eq=np.vstack([rows, columns]), b_eq=torch.cat([p, h]).numpy(), method="highs"
        )
        assert abs(-best.fun - float(acceptance_rate(p, h, SpS()))) <= 1e-9


@examples
@given(pairs(), st.sampled_from(SANDWICH))
def test_sandwich(pair, rule):
    """`cac-sandwich`, CAC-6: the emitted distribution is between p and q, so its D_f from q is
    at most that of p, also where p has mass that q excludes."""
    p, q = pair
    law = output_law(p, q, rule)
    assert (law >= torch.minimum(p, q) - EXACT).all()
    assert (law <= torch.maximum(p, q) + EXACT).all()
    law = torch.maximum(torch.minimum(law, torch.maximum(p, q)), torch.minimum(p, q))  # moves it by rounding alone
    for name in TERMS:
        most = divergence(p, q, name)
        assert (divergence(law, q, name) <= most * (1 + 1e-10) + EXACT).all()


@pytest.mark.parametrize("recovery", [Cactus, Lenience])
@examples
@given(pairs(), st.integers(0, 2**31))
def test_sandwich_and_price_for_any_raised_target(recovery, pair, seed):
    """`cac-sandwich`, `cac-price`: gamma_n in [q_n, 1] alone is needed, not the square root, with either recovery."""
    p, q = pair
    raised = q + (1 - q) * torch.rand(q.shape, generator=stream(seed, "gamma"), dtype=torch.float64) ** 3

    class Any(recovery):
        def gamma(self, p_n, q_n, *summaries):
            return raised

    law = output_law(p, q, Any(1.0))
    assert (law >= torch.minimum(p, q) - EXACT).all()
    assert (law <= torch.maximum(p, q) + EXACT).all()
    assert (torch.minimum(p, raised).sum(dim=-1) - torch.minimum(p, q).sum(dim=-1) - tv(law, q)).abs().max() <= EXACT


@examples
@given(pairs(), st.sampled_from(SANDWICH))
def test_price_of_an_extra_acceptance(pair, rule):
    """`cac-price`, `cac-lossy`, CAC-8: A = 1 - TV(p, h), and A - A_sps = TV(h, q) for every rule with a sandwich."""
    p, q = pair
    law, rate = output_law(p, q, rule), acceptance_rate(p, q, rule)
    assert (rate - 1 + tv(p, law)).abs().max() <= EXACT
    assert (rate - acceptance_rate(p, q, SpS()) - tv(law, q)).abs().max() <= EXACT


@examples
@given(pairs(), st.sampled_from((Typical(), Typical(0.5, 0.9), TopK(1), TopK(2))))
def test_no_rule_buys_acceptance_cheaper(pair, rule):
    """`cac-lossy`: A <= 1 - TV(p, q) + TV(o, q) also for rules without a sandwich."""
    p, q = pair
    law = output_law(p, q, rule)
    assert (acceptance_rate(p, q, rule) <= 1 - tv(p, law) + EXACT).all()
    assert (acceptance_rate(p, q, rule) <= 1 - tv(p, q) + tv(law, q) + EXACT).all()


def test_top_k_keeps_nothing_that_the_verifier_excludes():
    """Truncation leaves two of four tokens: top-3 acceptance keeps these two, and recovers from them alone."""
    p, q = numbers(0.1, 0.2, 0.3, 0.4), numbers(0.75, 0.25, 0.0, 0.0)
    kept, replaced = emission(p, q, TopK(3))
    assert (kept - numbers(0.1, 0.2, 0.0, 0.0)).abs().max() <= EXACT
    assert (replaced - 0.7 * numbers(0.9, 0.8, 0.0, 0.0) / 1.7).abs().max() <= EXACT
    assert (output_law(p, q, TopK(3)) - output_law(p, q, TopK(2))).abs().max() == 0


@examples
@given(pairs(), st.floats(1e-6, 3))
def test_explicit_bound(pair, delta):
    """`cac-explicit`: TV <= x = sqrt(2 delta V_+), KL <= ln(1 + x^2 + x)."""
    p, q = pair
    law, count = output_law(p, q, Cactus(delta)), theory.num_overdrafted(p, q)
    law = torch.where(q > 0, law, 0.0)  # exactly zero there; adding two roundings is not
    assert (tv(law, q) <= theory.emitted_tv_bound(delta, count) + EXACT).all()
    assert (divergence(law, q) <= theory.emitted_kl_bound(delta, count) + EXACT).all()


@pytest.mark.parametrize("V", [1, 2, 33, 1024])
@pytest.mark.parametrize("delta", [1e-3, 1 / 16, 0.5, 2.0])
def test_fixed_budget_family(V, delta):
    """`cac-fixed`, CAC-7.e: every draft is kept at the budget, with one token fewer not; KL = ln(V / k)."""
    p, q = theory.fixed_budget_family(V, delta)
    k = int((p > 0).sum(dim=0))
    assert (output_law(p, q, Cactus(delta)) - p).abs().max() <= EXACT
    assert abs(float(divergence(p, q)) - math.log(V / k)) <= EXACT
    assert k == 1 or 1 / (k - 1) > float(theory.gamma_cactus(1 / V, delta))
    assert abs(float(tv(p, q)) - (1 - k / V)) <= EXACT
    s = math.sqrt(2 * delta * (V - 1))
    assert s == 0 or math.log(V / k) >= math.log(s / (1 + s / V)) - EXACT


@few
@given(pairs(), st.floats(0, 1))
def test_calibrated_spends_what_it_promises(pair, epsilon):
    """`cac-calibrated`: TV(o, q) = min(epsilon, all that Cactus can spend)."""
    p, q = pair
    spent = tv(output_law(p, q, Calibrated(epsilon)), q)
    most = tv(output_law(p, q, Cactus(1e300)), q)
    assert (spent - most.clamp(max=epsilon)).abs().max() <= 1e-10


def test_no_rule_beats_the_mentored_one():
    """At the KL that any other rule spends, the band accepts at least as much."""
    g = stream(7, "frontier")
    p, q = random_laws(200, 6, generator=g), random_laws(200, 6, generator=g)
    q = 0.9 * q + 0.1 / 6  # interpolation and top-k emit tokens of q = 0, at infinite KL
    for rule in (Cactus(0.1), Calibrated(0.1), Lenience(0.5), Interp(0.5), Typical(), TopK(2)):
        spent = divergence(output_law(p, q, rule), q)
        best = acceptance_rate(p, theory.mentored_law(p, q, spent), SpS())
        assert (best >= acceptance_rate(p, q, rule) - 1e-9).all(), rule
        assert float((best - acceptance_rate(p, q, rule)).max()) > 1e-3, rule


@few
@given(pairs(), st.floats(0, 1e6))
def test_limits(pair, delta):
    """Limits: delta = 0 is SpS; a one-hot q makes Cactus inert; no token of q = 0 is emitted."""
    p, q = pair
    assert (output_law(p, q, Cactus(0.0)) - q).abs().max() <= EXACT
    hot = torch.eye(p.shape[-1], dtype=torch.float64)[torch.arange(20) % p.shape[-1]]
    for rule in (Cactus(delta), Calibrated(0.3), Lenience(0.2), Mentored(delta)):
        assert (output_law(p, hot, rule) - hot).abs().max() <= EXACT
        assert (acceptance_rate(p, hot, rule) - acceptance_rate(p, hot, SpS())).abs().max() <= EXACT
        assert output_law(p, q, rule)[q == 0].abs().sum(dim=0) == 0


def test_typical_acceptance_rejects_at_its_threshold():
    """At q_n equal to the threshold the rule, which asks for more, rejects; just above it keeps."""
    threshold = numbers(0.3)
    assert Typical().gamma(threshold, threshold, threshold).tolist() == [0]
    assert Typical().gamma(threshold, threshold + 1e-12, threshold).tolist() == [1]
