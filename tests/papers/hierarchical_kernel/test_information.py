"""Entropies, the three-term decomposition, and what the claims on them measure (HKT-7)."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from derived.lab.rng import stream
from derived.papers.hierarchical_kernel import information as figures
from derived.papers.hierarchical_kernel.information import Averages, Budgets, Memory, SmallSamples, telling_samples
from derived.papers.hierarchical_kernel.model import information
from derived.papers.hierarchical_kernel.model.information import (
    LatentMixture,
    conditional_information,
    entropy,
    gaussian_mutual_information,
    information_budget,
    mardia_kurtosis,
    mean_negentropy,
    mutual_information,
    negentropy,
    non_gaussian_correction,
)
from derived.papers.hierarchical_kernel.model.pyramid import pyramid

EXPERIMENTS = (Budgets, Averages, SmallSamples, Memory)

examples = settings(derandomize=True, max_examples=20, deadline=None, database=None)
# The scalar integrals of some 400 terms of order one are good to 1e-13 (a finer step changes nothing beyond), a
# determinant of order ten likewise; a budget adds a dozen of them.
TOLERANCE = 1e-11


def normal(*shape: int, name: object = "x") -> torch.Tensor:
    return torch.randn(*shape, generator=stream(0, str(name), *shape), dtype=torch.float64)


def random_law(p: int, name: object = 0, weight: float = 0.3) -> LatentMixture:
    A = normal(p, 2 * p, name=f"A{name}")
    return LatentMixture(normal(p, name=f"m{name}"), A @ A.mT / (2 * p), weight)


def density(law: LatentMixture, u: np.ndarray) -> np.ndarray:
    """p(u) on points (..., p), by scipy."""
    m, Sigma = law.m.numpy(), law.Sigma.numpy()
    return law.weight * stats.multivariate_normal(m, Sigma).pdf(u) + (1 - law.weight) * stats.multivariate_normal(
        -m, Sigma
    ).pdf(u)


def sample(law: LatentMixture, num: int, generator: torch.Generator) -> torch.Tensor:
    """Independent draws from their definition, s m + N(0, Sigma): (num, p)."""
    sign = torch.where(torch.rand(num, 1, generator=generator) < law.weight, 1.0, -1.0).double()
    noise = torch.randn(num, len(law.m), generator=generator, dtype=torch.float64)
    return sign * law.m + noise @ torch.linalg.cholesky(law.Sigma).mT


def plane_entropy(law: LatentMixture, points: int = 701) -> float:
    """h of a plane law by a double sum over a grid: the second witness."""
    reach = np.sqrt(law.covariance.diagonal().numpy()) * 9 + np.abs(law.m.numpy())
    axes = [np.linspace(-r, r, points) for r in reach]
    p = density(law, np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1))
    return float(-np.sum(p * np.log(np.where(p > 0, p, 1)), axis=(0, 1)) * math.prod(a[1] - a[0] for a in axes))


@examples
@given(st.floats(0, 6), st.floats(0, 1))
def test_scalar_entropy_against_adaptive_quadrature(separation, weight):
    law = LatentMixture(torch.tensor([separation], dtype=torch.float64), torch.eye(1).double(), weight)
    found = information.scalar_entropy(separation, weight)
    u = np.linspace(-separation - 13, separation + 13, 20_001)
    p = density(law, u[:, None])
    terms = -p * np.log(np.where(p > 0, p, 1))
    assert found == pytest.approx(float(np.trapezoid(terms, u, axis=0)), abs=1e-11)
    if weight in (0, 1) or separation == 0:
        assert found == pytest.approx(math.log(2 * math.pi * math.e) / 2, abs=1e-12)
    both = information.scalar_entropy(separation, np.array([[weight, 0.5]]))  # a batch of weights, one law per entry
    assert both.shape == (1, 2)
    assert both[0, 0] == found


def test_scalar_entropy_has_its_limits():
    """Far apart the sign is known: h = h(normal) + h(sign); one weight gone, or no distance: h(normal)."""
    normal_entropy = math.log(2 * math.pi * math.e) / 2
    assert information.scalar_entropy(40.0, 0.5) == pytest.approx(normal_entropy + math.log(2), abs=1e-11)
    sign = -0.2 * math.log(0.2) - 0.8 * math.log(0.8)
    assert information.scalar_entropy(40.0, 0.2) == pytest.approx(normal_entropy + sign, abs=1e-11)
    assert information.scalar_entropy(3.0, 1.0) == pytest.approx(normal_entropy, abs=1e-12)


def test_entropy_and_information_against_a_grid():
    """`hkt-negentropy`: each entropy against a double sum; I = I_G + J(U,Y) - J(U) - J(Y) from those sums alone."""
    for name, weight in ((2, 0.2), (3, 0.9), (4, 0.5)):
        law = random_law(2, name, weight)
        joint = plane_entropy(law)
        assert entropy(law) == pytest.approx(joint, abs=1e-9)
        sides = [information.scalar_entropy(abs(float(law.m[i])) / math.sqrt(float(law.Sigma[i, i])), weight)
                 + math.log(float(law.Sigma[i, i])) / 2 for i in range(2)]  # fmt: skip
        total = sum(sides) - joint
        gaussian = float(gaussian_mutual_information(law.covariance, 1))
        assert mutual_information(law, 1) == pytest.approx(total, abs=1e-9)
        assert gaussian + non_gaussian_correction(law, 1) == pytest.approx(total, abs=1e-9)
        assert abs(total - gaussian) > 1e-4  # and the correction is not nothing


def test_information_against_simulation():
    """Mean log density ratio over draws, within 4.5 standard errors; a value 5 % off is rejected."""
    law = random_law(2, 4, 0.5)
    draws = sample(law, 200_000, stream(0, "information")).numpy()
    one = [LatentMixture(law.m[i : i + 1], law.Sigma[i : i + 1, i : i + 1], law.weight) for i in range(2)]
    ratio = np.log(density(law, draws)) - sum(np.log(density(each, draws[:, i : i + 1])) for i, each in enumerate(one))
    error = ratio.std() / math.sqrt(len(ratio))
    exact = mutual_information(law, 1)
    assert abs(ratio.mean() - exact) < 4.5 * error < 0.05 * exact
    scale = law.covariance.diagonal().sqrt()  # a product of two coordinates has at most three times their variance
    off = np.abs(np.cov(draws.T) - law.covariance.numpy()) / torch.outer(scale, scale).numpy()
    assert off.max() < 4.5 * math.sqrt(3 / len(draws))


def test_correction_has_either_sign():
    """`hkt-negentropy`: a common sign adds to the information; a sign that U alone carries is over-rated by I_G."""
    eye = torch.eye(2, dtype=torch.float64)
    assert non_gaussian_correction(LatentMixture(torch.tensor([2.0, 2.0]).double(), eye), 1) > 0.05
    found = [non_gaussian_correction(random_law(3, name, 0.5), 1) for name in range(40)]
    assert min(found) < -1e-3 < 1e-3 < max(found)


def test_correction_is_at_least_minus_the_gaussian_value():
    """`hkt-negentropy`: never below -I_G, and arbitrarily near to it: rare joint jumps keep I_G and lose I."""
    for name in range(40):
        law = random_law(3, name, 0.5)
        assert non_gaussian_correction(law, 1) > -float(gaussian_mutual_information(law.covariance, 1))
    shares = []
    for rare in (1e-2, 1e-3, 4e-4):
        jump = torch.full((2,), 1 / math.sqrt(4 * rare * (1 - rare)), dtype=torch.float64)  # of covariance 1
        law = LatentMixture(jump, torch.eye(2, dtype=torch.float64), rare)
        gaussian = float(gaussian_mutual_information(law.covariance, 1))
        assert gaussian == pytest.approx(-math.log(1 - 1 / 4) / 2, rel=1e-9)  # correlation 1/2, however rare
        shares.append(-non_gaussian_correction(law, 1) / gaussian)
        surprise = -rare * math.log(rare) - (1 - rare) * math.log(1 - rare)
        assert 1 - surprise / gaussian - 1e-9 <= shares[-1] < 1  # I(U; Y) is at most the entropy of the sign
    assert shares == sorted(shares)
    assert shares[-1] > 0.97


@examples
@given(st.integers(1, 6), st.floats(0.05, 0.95))
def test_negentropy_is_invariant_and_not_negative(p, weight):
    law, A = random_law(p, p, weight), normal(p, p, name="map")
    J = negentropy(law)
    assert J > 0
    assert negentropy(law.project(A)) == pytest.approx(J, rel=1e-7)
    gaussian = float(information.log_determinant(law.covariance)) / 2 + p * math.log(2 * math.pi * math.e) / 2
    assert gaussian - entropy(law) == pytest.approx(J, abs=TOLERANCE)
    flat = LatentMixture(torch.zeros(p).double(), law.Sigma, weight)
    assert abs(negentropy(flat)) < 1e-12


def test_gaussian_information_against_correlation_and_sampling():
    for rho in (-0.9, 0.0, 0.3, 0.99):
        covariance = torch.tensor([[2.0, rho * math.sqrt(6)], [rho * math.sqrt(6), 3.0]], dtype=torch.float64)
        found = float(gaussian_mutual_information(covariance, 1))
        assert found == pytest.approx(-math.log(1 - rho**2) / 2, abs=1e-13)
    A = normal(5, 9, name="A")
    covariance = A @ A.mT
    cca = torch.linalg.cholesky(covariance[:2, :2]).inverse() @ covariance[:2, 2:]
    cca = cca @ torch.linalg.cholesky(covariance[2:, 2:]).inverse().mT
    canonical = torch.linalg.svdvals(cca)  # I_G is a sum over canonical correlations
    expected = -float((1 - canonical**2).log().sum(dim=0)) / 2
    assert float(gaussian_mutual_information(covariance, 2)) == pytest.approx(expected, rel=1e-10)


@examples
@given(st.integers(1, 4), st.integers(1, 2), st.floats(0.1, 0.9))
def test_three_terms_add_up(levels, outputs, weight):
    """`hkt-information`: the gap is rounding, every loss of information is >= 0, the levels telescope."""
    T = 2 ** (levels - 1) * 2
    law = random_law(T + outputs, f"{levels}{outputs}", weight)
    found = information_budget(law, T, levels, normal(1, 2, name="B"))
    assert abs(found.gap) < TOLERANCE
    assert len(found.resolution) == levels - 1
    assert min((*found.resolution, found.head_width)) > -TOLERANCE
    assert found.total == pytest.approx(mutual_information(law, T), abs=TOLERANCE)
    assert abs(found.correction) > 1e-6


@examples
@given(st.integers(1, 4), st.integers(1, 2), st.floats(0.05, 0.95), st.floats(0, 5))
def test_conditional_information_is_what_the_chain_rule_leaves(first, outputs, weight, size):
    """`hkt-information`: I(U; Y | P U), a mean over what P U shows, is I(U; Y) - I(P U; Y), though it uses neither."""
    law = random_law(first + outputs, f"chain{first}{outputs}", weight)
    law = law._replace(m=size * law.m / law.separation)
    eye = torch.eye(outputs, dtype=torch.float64)
    for r in range(1, first + 1):
        P = normal(r, first, name="seen")
        left = mutual_information(law, first) - mutual_information(law.project(torch.block_diag(P, eye)), r)
        assert conditional_information(law, P) == pytest.approx(float(left), abs=TOLERANCE)


def test_conditional_information_has_its_limits():
    """Gaussian: I(U; Y | V) from partial covariances; all of U seen: nothing left; a hidden part that is noise: 0."""
    covariance = random_law(3, "limits").covariance
    rest, given = covariance[1:, 1:], covariance[1:, :1]
    partial = rest - given @ given.mT / covariance[0, 0]
    law = LatentMixture(torch.zeros(3).double(), covariance)
    P = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    expected = float(gaussian_mutual_information(partial, 1))
    assert conditional_information(law, P) == pytest.approx(expected, abs=TOLERANCE)
    assert conditional_information(law, torch.eye(2, dtype=torch.float64)) == 0
    noise = LatentMixture(torch.tensor([1.0, 0.0, 2.0]).double(), torch.eye(3).double(), 0.3)
    assert conditional_information(noise, P) == pytest.approx(0, abs=TOLERANCE)


def test_gaussian_pyramid_telescopes():
    """`hkt-information` without a correction: information falls with the level and the terms are differences."""
    A = normal(9, 20, name="chain")
    covariance = A @ A.mT / 20
    values = []
    for P in pyramid(torch.eye(8, dtype=torch.float64), 4, "block"):
        U, c, v = P @ covariance[:8, :8] @ P.mT, P @ covariance[:8, 8], covariance[8, 8]
        explained = c @ torch.linalg.solve(U, c) / v  # R^2 of the regression of Y on the rows
        values.append(-math.log(1 - float(explained)) / 2)
    assert values == sorted(values, reverse=True)
    law = LatentMixture(torch.zeros(9).double(), covariance)
    budget = information_budget(law, 8, 4, torch.eye(1, dtype=torch.float64))
    assert budget.total == pytest.approx(values[0], rel=1e-10)
    np.testing.assert_allclose(budget.resolution, -np.diff(values), atol=1e-11)
    assert abs(budget.correction) < 1e-11


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gaussian_mutual_information(torch.eye(3), 0), "first = 0"),
        (lambda: gaussian_mutual_information(torch.eye(3), 3), "first = 3"),
        (lambda: gaussian_mutual_information(torch.ones(2, 2), 1), "not positive definite"),
        (lambda: gaussian_mutual_information(torch.tensor([[1.0, 0.5], [0.1, 1.0]]), 1), "not symmetric"),
        (lambda: mutual_information(random_law(2), 2), "first = 2"),
        (lambda: information.scalar_entropy(1.0, 1.5), "weight = 1.5"),
        (lambda: information.scalar_entropy(60.0), "separation = 60"),
        (lambda: mean_negentropy("normal", 2), "law = 'normal'"),
        (lambda: mean_negentropy("uniform", 65), "num_terms = 65"),
        (lambda: mean_negentropy("uniform", 0), "num_terms = 0"),
        (lambda: mardia_kurtosis(torch.zeros(4, 4)), "more samples n than variables p"),
        (lambda: information_budget(random_law(5), 4, 2, torch.eye(3).double()), r"give \(q, 2\)"),
        (lambda: information_budget(random_law(5), 5, 2, torch.eye(3).double()), "T = 5"),
        (lambda: information_budget(random_law(5), 4, 4, torch.eye(3).double()), "T = 4 tokens are fewer than the 8"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_samples_that_tell_laws_apart():
    offsets = {
        "a": (0.0, 0.0),
        "b": (1.0, 5.0),
        "c": (9.0, 9.0),
    }  # at n = 10 bars overlap, at 40 none do
    rows = [
        {"p": p, "n": n, "law": law, "b": offset[n == 40] + noise}
        for p in (2, 4)
        for n in (10, 40)
        for law, offset in offsets.items()
        for noise in (-1.0, 0.0, 1.0)
    ]
    assert telling_samples(pd.DataFrame(rows)) == 40 / 4
    assert telling_samples(pd.DataFrame(rows).query("n == 10")) == float("inf")


FIGURES = {
    Budgets: (figures.information, "correction"),
    Averages: (figures.averages, "value"),
    SmallSamples: (figures.blindness, "b"),
    Memory: (figures.memory, "variance"),
}


def test_a_budget_without_one_of_its_terms_is_no_identity(rows, monkeypatch):
    """The gap is within its rounding, replicates differ, and a correction with another sign is far outside."""
    table = rows[Budgets]
    assert (table["gap"] <= table["bound"]).all()
    assert table["total"].nunique() == len(table)
    correction = information.non_gaussian_correction
    monkeypatch.setattr(information, "non_gaussian_correction", lambda *given: -correction(*given))
    wrong = Budgets.at("tiny").run({"size": 3.0}, seed=0, device="cpu", dtype=torch.float64)
    assert (wrong["gap"] > 1e3 * wrong["bound"]).all()


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda one: one.__name__)
def test_figures_say_in_words_what_they_show(experiment, rows, follows):
    draw, column = FIGURES[experiment]
    follows(draw, rows[experiment], column)


def test_the_figure_of_budgets_says_how_much_second_moments_promise_too_much(rows):
    table = rows[Budgets].assign(correction=0.1)
    assert "at most 0.00 nats too high" in figures.information(table).axes[0].texts[0].get_text()
    first = table["size"] == table.query("size > 0")["size"].min()
    told = figures.information(table.assign(correction=table["correction"].mask(first, -0.25)))
    assert told.axes[0].texts[0].get_text() == "near centres: second moments\nat most 0.25 nats too high"


def test_the_rounding_of_a_budget_follows_the_condition_of_its_covariance():
    """Units change no entropy's rounding; a direction of little spread costs digits."""
    law = random_law(4)
    rounding = Budgets()._rounding
    for unit in (0.01, 100.0):
        other = LatentMixture(unit * law.m, unit**2 * law.Sigma, law.weight)
        assert rounding(other) == pytest.approx(rounding(law), rel=1e-6)
    thin = torch.diag(torch.tensor([1.0, 1.0, 1.0, 1e-6], dtype=torch.float64))
    assert rounding(LatentMixture(law.m, thin, law.weight)) > 1e4 * rounding(
        LatentMixture(law.m, torch.eye(4).double(), law.weight)
    )
