"""`ols-memory`: the two halves by enumeration, quadrature and a memory that draws every pattern at once."""

from functools import partial

import numpy as np
import pytest
import torch
from scipy import integrate, optimize, special

from derived.lab.experiment import run_experiment
from derived.lab.rng import stream
from derived.papers.ols_attention.memory import CLAIMS, SoftmaxCapacity, edge
from derived.papers.ols_attention.model import memory


def recalled(d: int, K: int, overlap: float, beta: float | None, draws: int, seed: int = 3):
    """Answers of ``recall`` to damaged first patterns, and these patterns."""
    generator = stream(seed, "recalled", d, K)
    patterns = memory.random_patterns(draws, K + 1, d, generator=generator)
    cue = memory.damaged(patterns[:, 0], overlap, generator)
    return memory.recall(cue, patterns, beta), patterns[:, 0], cue


@pytest.mark.parametrize(("d", "K", "overlap"), [(5, 1, 1.0), (5, 7, 0.6), (12, 30, 0.9)])
def test_linear_moments_by_sampling(d, K, overlap):
    """`ols-memory` (a): both moments within 5 standard errors; without the coherent part K(K-1)/d^2 they are not."""
    answer, stored, _ = recalled(d, K, overlap, None, 60_000)
    along, square = memory.linear_moments(d, K, overlap)
    for found, value in (((answer * stored).sum(dim=-1) / d, along), (answer.square().sum(dim=-1) / d, square)):
        assert abs(found.mean() - value) < 5 * found.std() / 60_000**0.5
    if K > 1:
        assert abs((answer.square().sum(dim=-1) / d).mean() - (square - K * (K - 1) / d**2)) > 0.02


def test_linear_attention_never_drowns_a_stored_pattern():
    """`ols-memory` (a): at overlap 1 the squared cosine of the moments is least, 4/5, at K = d, and tends to 1."""
    d = 10_000
    loads = np.array([1, 100, 5000, d, 2 * d, 100 * d])
    moments = np.array([memory.linear_moments(d, int(K), 1.0) for K in loads])
    cosine = moments[:, 0] ** 2 / moments[:, 1]
    assert cosine.argmin() == 3
    assert cosine.min() == pytest.approx(0.8, abs=1e-3)
    assert cosine[-1] > 0.98
    answer, stored, _ = recalled(200, 200, 1.0, None, 200)
    assert float(1 - memory.across(answer, stored).mean()) == pytest.approx(0.8, abs=0.02)


@pytest.mark.parametrize("square", [0.3, 0.5, 0.8, 0.95])
def test_the_linear_load_is_the_root_of_the_condition(square):
    """`ols-memory` (b), by bisection on the limit of the moments: sin^2 after the step is half of that before."""

    def damage(a: float) -> float:
        q = square
        return 1 - q * (1 + a) ** 2 / (q * (1 + 2 * a) + a * (1 + a)) - (1 - q) / 2

    root = optimize.brentq(damage, 1e-9, 1e3, xtol=1e-14)
    assert memory.linear_load(square**0.5) == pytest.approx(root, rel=1e-10)
    assert memory.linear_load(1.0) == 0


def weight(u: float, beta: float, d: int) -> float:
    """e^{beta d (u - 1)} times the density of an overlap, up to its constant."""
    return np.exp(beta * d * (u - 1)) * (1 - u * u) ** ((d - 3) / 2)


@pytest.mark.parametrize("beta", [0.2, 1.0, 3.0])
def test_softmax_rates_against_a_maximum_and_an_integral(beta):
    """`ols-memory` (c): the rate by a numerical maximum; the exact mean weight by quadrature over the overlap and, for
    signs, over all of the hypercube; the second differs from the first by O(ln d / d)."""
    crowd = -optimize.minimize_scalar(
        lambda u: -beta * u - 0.5 * np.log1p(-u * u), bounds=(0, 1 - 1e-12), method="bounded", options={"xatol": 1e-12}
    ).fun
    for overlap in (1.0, 0.9):
        assert memory.softmax_rate(beta, overlap) == pytest.approx(beta * overlap - crowd, abs=1e-9)
    for d in (4, 9, 30):
        density = special.beta(0.5, (d - 1) / 2)
        spread = partial(weight, beta=beta, d=d)
        mean = integrate.quad(spread, -1, 1, epsabs=0, epsrel=1e-10)[0] / density
        assert memory.crowd_weight(d, beta) == pytest.approx(np.log(mean) + beta * d, rel=1e-7, abs=1e-7)
    cube = np.array(np.meshgrid(*[[-1, 1]] * 8)).reshape(8, -1).sum(axis=0)
    assert memory.crowd_weight(8, beta, "signs") == pytest.approx(np.log(np.exp(beta * cube).mean()), rel=1e-12)
    assert memory.softmax_rate(beta, ensemble="signs") == pytest.approx(beta - np.log(np.cosh(beta)), rel=1e-12)
    assert memory.crowd_weight(200, beta) / 200 == pytest.approx(crowd, abs=5e-3)


def test_the_printed_rates():
    """0.6226 on the sphere, 0.5662 for signs, and 0.517 from a cue at squared overlap 0.8; ln K = 0.618 d is none."""
    assert round(float(memory.softmax_rate(1.0)), 4) == 0.6226
    assert round(float(memory.softmax_rate(1.0, ensemble="signs")), 4) == 0.5662
    assert round(float(memory.softmax_rate(1.0, 0.8**0.5)), 3) == 0.517
    assert round(float(memory.crowd_overlap(1.0)), 3) == 0.618


def test_softmax_keeps_below_and_loses_above_the_rate():
    """`ols-memory` (c) at d = 16: at 0.6 of the exponent the pattern is repaired, at 1.4 of it nothing is gained."""
    overlap, d = 0.8**0.5, 16
    rate = float(memory.softmax_rate(1.0, overlap))
    damage = []
    for share in (0.6, 1.4):
        answer, stored, cue = recalled(d, round(np.exp(share * rate * d)), overlap, 1.0, 12)
        damage.append(float((memory.across(answer, stored) / memory.across(cue, stored)).mean()))
    assert damage[0] < 0.2
    assert damage[1] > 0.7


def test_a_damaged_pattern_has_its_overlap_and_length():
    pattern = memory.random_patterns(50, 7, generator=stream(0, "p"))
    cue = memory.damaged(pattern, 0.3, stream(0, "cue"))
    torch.testing.assert_close((cue * pattern).sum(dim=-1) / 7, torch.full((50,), 0.3, dtype=torch.float64))
    torch.testing.assert_close(cue.square().sum(dim=-1), torch.full((50,), 7.0, dtype=torch.float64))
    torch.testing.assert_close(memory.across(cue, pattern), torch.full((50,), 1 - 0.09, dtype=torch.float64))
    signs = memory.random_patterns(9, 5, ensemble="signs", generator=stream(0, "signs"))
    assert set(signs.unique().tolist()) == {-1.0, 1.0}


def test_the_edge_is_where_the_damage_crosses_one_half():
    """A damage of (K/K_0)/2 crosses at K_0; the patterns that are drawn add up to the K that is asked for."""
    drawn = []

    def draw(count):
        drawn.append(count)
        return torch.zeros(count)

    def damage(_, K):
        assert sum(drawn) == K
        return 0.5 * (torch.tensor([[K / 40.0], [K / 7.0], [2.0]]).double())

    found = edge(damage, 3, draw)
    assert found[:2] == pytest.approx([40, 7], rel=0.01)
    assert found[2] == 1


@pytest.mark.parametrize(
    ("question", "attention"), [("repair", "linear"), ("repair", "softmax"), ("weight", "softmax")]
)
def test_the_search_counts_what_a_whole_memory_shows(question, attention):
    """At the K that the experiment finds a memory drawn at once by ``recall`` has a mean damage near one half."""
    d = 48 if attention == "linear" else 8
    condition = {"question": question, "attention": attention, "ensemble": "sphere", "d": d}
    rows = SoftmaxCapacity(draws="tested").run(condition, seed=5, device="cpu", dtype=torch.float64)
    K = round(rows[rows["step"] == "attention"]["K"].mean())
    assert (rows[rows["step"] == "nothing"]["K"] == 1).all()
    overlap = 1.0 if question == "weight" else 0.8**0.5
    if question == "weight":
        patterns = memory.random_patterns(3000, K + 1, d, generator=stream(9, "whole"))
        weights = torch.softmax(patterns @ patterns[:, :1].mT, dim=-2)[:, 0, 0]
        assert float(weights.mean()) == pytest.approx(0.5, abs=0.05)
        return
    answer, stored, cue = recalled(d, K, overlap, None if attention == "linear" else 1.0, 3000)
    assert float((memory.across(answer, stored) / memory.across(cue, stored)).mean()) == pytest.approx(0.5, abs=0.05)


def test_the_identity_fails_every_criterion():
    """OLS-15: a step that does nothing bears one pattern at any dimension, a slope of 0."""
    tiny = SoftmaxCapacity(linear_sizes=(16, 32), softmax_sizes=(4, 6), replicates=4, linear_trials=8, softmax_trials=8)
    rows = run_experiment(tiny, seed=0, device="cpu")
    for claim in CLAIMS:
        if claim.experiment is SoftmaxCapacity:
            assert claim.judge(claim.control(rows))[0] == "fails"


@pytest.mark.parametrize("beta", [None, 0.7])
def test_gradients_pass_through_one_step(beta):
    """``recall`` twice differentiated, on cues that are not contiguous, with patterns for each."""
    patterns = memory.random_patterns(2, 4, 3, generator=stream(1, "grad"))
    cue = torch.randn(3, 2, generator=stream(2, "grad"), dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(lambda c: memory.recall(c.mT, patterns, beta), cue)
    assert torch.autograd.gradgradcheck(lambda c: memory.recall(c.mT, patterns, beta), cue)
