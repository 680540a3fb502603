"""The theorems on one plan: what it solves, how fast it is reached, how stable it is. Each test names its label."""

import math

import pytest
import torch
from scipy import optimize

from derived.lab.rng import stream
from derived.papers.sinkhorn.model import couplings, plan, theory

EPS = torch.finfo(torch.float64).eps


def random(*shape, name="scores"):
    return torch.randn(*shape, generator=stream(0, "theory", name), dtype=torch.float64)


def weights(*shape, name="weights"):
    return random(*shape, name=name).softmax(dim=-1)


def solved(scores, a=None, b=None):
    return plan.sinkhorn(scores, a, b, tol=1e-13, max_iterations=4000)


def total_variation(p, q):
    return (p - q).abs().sum(dim=-1) / 2


def test_softmax_and_sinkhorn_maximise_the_same_objective():
    """`sk-softmax`, `sk-gibbs`: no table with the rows, and no coupling, has more than <P, S> - KL(P | a b^T)."""
    S, a, b = 2 * random(50, 4, 5), weights(50, 4), weights(50, 5, name="b")
    product = a.unsqueeze(-1) * b.unsqueeze(-2)

    def objective(P):
        return (P * S).sum(dim=(-2, -1)) - theory.kl(P.flatten(1), product.flatten(1))

    rows, found = plan.half_steps(S, 1, a, b).exp(), solved(S, a, b).plan
    for turn in range(3):
        other = solved(random(50, 4, 5, name=f"other {turn}"), a, b).plan  # couplings, and so tables with the rows too
        assert (objective(other) < objective(found)).all()
        assert (objective(other) < objective(rows)).all()
        left = theory.kl(other.flatten(1), S.exp().flatten(1))
        right = theory.kl(other.flatten(1), found.flatten(1)) + theory.kl(found.flatten(1), S.exp().flatten(1))
        torch.testing.assert_close(left, right, rtol=1e-12, atol=0)
    assert (objective(found) < objective(rows)).all()  # one constraint less


def test_offsets_leave_the_plan_and_row_offsets_leave_every_half_step():
    """`sk-offsets`; column offsets do change the first half-step, so the test can fail."""
    S, u, v = 2 * random(6, 5), random(6, 1, name="u"), random(1, 5, name="v")
    torch.testing.assert_close(solved(S + u + v).plan, solved(S).plan, rtol=1e-11, atol=0)
    for k in range(1, 6):
        torch.testing.assert_close(plan.half_steps(S + u, k), plan.half_steps(S, k), rtol=1e-12, atol=1e-13)
    assert (plan.half_steps(S + v, 1) - plan.half_steps(S, 1)).abs().max() > 0.1
    q, k = random(6, 3, name="q"), random(5, 3, name="k")
    squared = -torch.cdist(q, k).square() / 2
    torch.testing.assert_close(solved(squared).plan, solved(q @ k.mT).plan, rtol=1e-11, atol=0)
    torch.testing.assert_close(theory.double_centre(solved(S).plan.log()), theory.double_centre(S), rtol=0, atol=1e-13)


def test_log_ratio_bounds_total_variation_and_is_attained():
    """`sk-hilbert` (a)."""
    p, q = (4 * random(2000, 5)).softmax(dim=-1), (4 * random(2000, 5, name="q")).softmax(dim=-1)
    bound = torch.tanh(theory.hilbert_distance(p.log(), q.log()) / 4)
    assert (total_variation(p, q) <= bound * (1 + 8 * EPS)).all()
    for width in (1e-6, 0.3, 5.0, 30.0):
        two = torch.tensor([width, -width], dtype=torch.float64) / 4
        reached = total_variation(two.softmax(dim=-1), (-two).softmax(dim=-1))
        torch.testing.assert_close(reached, torch.tensor(math.tanh(width / 4), dtype=torch.float64), rtol=1e-9, atol=0)


def test_birkhoff_contracts_and_no_smaller_factor_does():
    """`sk-hilbert`: random potentials stay below, and a search comes near."""
    S, u = random(300, 4, 5), 3 * random(2, 300, 5, name="u")
    image = torch.logsumexp(S.unsqueeze(0) + u.unsqueeze(-2), dim=-1)
    before, after = theory.hilbert_distance(*u), theory.hilbert_distance(*image)
    assert (after <= theory.birkhoff_coefficient(S) * before * (1 + 1e-12)).all()
    table, gap = 2 * random(2, 2, name="sharp"), 1e-6

    def slope(z):
        ends = [
            torch.logsumexp(table + torch.tensor([0.0, z + move], dtype=torch.float64), dim=-1) for move in (0.0, gap)
        ]
        return -theory.hilbert_distance(*ends).item() / gap

    best = -optimize.minimize_scalar(slope, bounds=(-20, 20), method="bounded").fun
    assert best == pytest.approx(theory.birkhoff_coefficient(table).item(), abs=1e-4)


def test_every_iteration_shrinks_the_error_by_kappa_squared():
    """`sk-hilbert`."""
    S, a, b = 1.5 * random(30, 5, 4), weights(30, 5), weights(30, 4, name="b")
    limit, kappa = solved(S, a, b), theory.birkhoff_coefficient(S)
    way = plan.iterates(*plan.problem(S, a, b))
    gaps = torch.stack([theory.hilbert_distance(each.f, limit.f) for _, each in zip(range(12), way, strict=False)])
    assert (gaps[1:] <= kappa**2 * gaps[:-1] + 1e-11).all()
    assert (gaps[1] > 0.001 * kappa**2 * gaps[0]).any()  # it is no bound of zeros


def test_the_local_rate_is_the_second_eigenvalue_of_one_iteration():
    """`sk-local`: by automatic differentiation of the two steps written out; and at most kappa^2."""
    S, a, b = 1.2 * random(4, 3, name="local"), weights(4), weights(3, name="b")
    limit = solved(S, a, b)

    def step(f):
        g = b.log() - torch.logsumexp(S + f.unsqueeze(-1), dim=0)
        return a.log() - torch.logsumexp(S + g, dim=1)

    values = torch.linalg.eigvals(torch.func.jacrev(step)(limit.f)).real.sort(descending=True).values
    assert values[0].item() == pytest.approx(1, abs=1e-12)
    assert values[1].item() == pytest.approx(theory.local_rate(limit.plan).item(), abs=1e-11)
    many = 2 * random(200, 4, 6, name="many")
    assert (theory.local_rate(solved(many).plan) <= theory.birkhoff_coefficient(many) ** 2 + 1e-12).all()


def test_the_symmetric_iteration_halves_its_error_where_scores_are_inner_products():
    """Its derivative by automatic differentiation, and its steps, where Sinkhorn's own rate is slow."""
    x = 3 * random(7, 2, name="symmetric")
    S, a = x @ x.mT, weights(7)
    S = (S + S.mT) / 2

    def step(f):
        return (f + a.log() - torch.logsumexp(S + f, dim=1)) / 2

    limit = plan.sinkhorn_symmetric(S, a, tol=1e-15, max_iterations=60)
    values = torch.linalg.eigvals(torch.func.jacrev(step)(limit.f)).real.sort().values
    sigma = torch.linalg.eigvalsh(theory.normalised_plan(limit.plan)).flip(0)
    torch.testing.assert_close(values, (1 - sigma) / 2, rtol=0, atol=1e-9)
    assert -1e-9 <= values.min() <= values.max() <= 0.5 + 1e-9
    assert theory.local_rate(limit.plan) > 0.9
    hollow = torch.tensor([[0.0, 4.0], [4.0, 0.0]], dtype=torch.float64)  # no inner products: slower than one half
    sigma = torch.linalg.eigvalsh(theory.normalised_plan(plan.sinkhorn_symmetric(hollow).plan))
    assert (1 - sigma.min()) / 2 > 0.9


def test_the_temperature_bounds_cost_and_distance_from_independence():
    """`sk-stability`: against a linear program for unequal weights."""
    C, a, b = random(5, 6).square(), weights(5), weights(6, name="b")
    least = -couplings.largest_mass(torch.ones(5, 6), C.max() - C, a, b) + C.max().item()
    entropies = [torch.special.entr(each).sum().item() for each in (a, b)]
    for epsilon in (0.05, 0.3, 2.0):
        P = plan.entropic_plan(C, epsilon, a, b, tol=1e-12, max_iterations=50_000).plan
        gap = (P * C).sum().item() - least
        assert -1e-9 <= gap <= epsilon * min(entropies)
        independence = total_variation(P.flatten(), (a.unsqueeze(-1) * b).flatten()).item()
        assert independence <= math.tanh((C.max() - C.min()).item() / (4 * epsilon))


@pytest.mark.parametrize("size", [0.01, 1.0, 6.0])
def test_plans_and_softmax_move_less_than_the_oscillation_says(size):
    """`sk-stability`: random changes, with offsets taken off; and the two tables that attain it."""
    S, E = random(200, 4, 5), size * random(200, 4, 5, name="E")
    a, b = weights(200, 4), weights(200, 5, name="b")
    moved = couplings.total_variation(solved(S, a, b).plan, solved(S + E, a, b).plan)
    for change in (E, theory.double_centre(E)):
        assert (moved <= torch.tanh(theory.oscillation(change.flatten(1)) / 4) + 1e-12).all()
    assert (moved <= E.abs().amax(dim=(-2, -1)) / 2).all()
    rows = total_variation(S.softmax(dim=-1), (S + E).softmax(dim=-1))
    assert (rows <= torch.tanh(theory.oscillation(E) / 4) + 1e-12).all()
    J = torch.tensor([[1.0, -1.0], [-1.0, 1.0]], dtype=torch.float64)
    sharp = couplings.total_variation(solved(size * J / 2).plan, solved(-size * J / 2).plan).item()
    assert sharp == pytest.approx(math.tanh(size / 2), rel=1e-10)


def test_a_rate_above_one_is_refused():
    with pytest.raises(ValueError, match="number from 0 to 1"):
        theory.optimal_relaxation(1.5)


def test_kl_of_nearby_distributions_keeps_its_digits_and_masses_may_differ():
    p = torch.tensor([0.3, 0.7], dtype=torch.float64)
    q = p * (1 + torch.tensor([7e-9, -3e-9], dtype=torch.float64))
    exact = 0.5 * (0.3 * 49e-18 + 0.7 * 9e-18)
    assert theory.kl(p, q).item() == pytest.approx(exact, rel=1e-6)
    assert theory.kl(p, 2 * p).item() == pytest.approx(1 - math.log(2), rel=1e-14)
    assert theory.kl(torch.tensor([0.0, 1.0]), torch.tensor([0.5, 0.5])).item() == pytest.approx(math.log(2))
    assert theory.kl(torch.tensor([0.5, 0.5]), torch.tensor([0.0, 1.0])).item() == math.inf
