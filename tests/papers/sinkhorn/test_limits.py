"""The theorems on what can be approximated, what cannot be expressed, derivatives and flows. Each names its label."""

import math

import pytest
import torch
from scipy import stats

from derived.lab.rng import stream
from derived.papers.sinkhorn.model import backward, blocks, couplings, flows, plan, theory

HALF = torch.tensor([0.5, 0.5], dtype=torch.float64)


def random(*shape, name="limits"):
    return torch.randn(*shape, generator=stream(0, name), dtype=torch.float64)


def texts(n=8, name="texts"):
    """Positions in [0, 1] and unequal weights, one of them tiny, of two texts."""
    x, y = random(2, n, name=name).sigmoid()
    a, b = random(2, n, name=f"{name} weights").softmax(dim=-1)
    a[0], b[1] = 1e-9, 1e-9
    return x, y, a / a.sum(), b / b.sum()


def transport(P, Q, x, y):
    return couplings.coupling_w1(P, Q, x, y)


@pytest.mark.parametrize("m", [1, 3, 8])
def test_blocks_make_a_coupling_near_the_target(m):
    """`sk-blocks`: marginals, and W_1 <= sqrt(2) 2 / m; by averaging written out as loops too."""
    x, y, a, b = texts()
    target = couplings.crossed(x, y, a, b)
    found = blocks.block_plan(x, y, a, b, target, m)
    torch.testing.assert_close(found.sum(dim=1), a, rtol=1e-12, atol=1e-16)
    torch.testing.assert_close(found.sum(dim=0), b, rtol=1e-12, atol=1e-16)
    assert transport(found, target, x, y) <= math.sqrt(2) * 2 / m
    phi, psi = blocks.hats(x, m), blocks.hats(y, m)
    slow = torch.zeros_like(found)
    for p in range(m + 1):
        for q in range(m + 1):
            w = sum(phi[i, p] * psi[j, q] * target[i, j] for i in range(8) for j in range(8))
            if w > 0:
                slow += w * torch.outer(phi[:, p] * a, psi[:, q] * b) / ((phi[:, p] @ a) * (psi[:, q] @ b))
    torch.testing.assert_close(found, slow, rtol=1e-10, atol=1e-16)


@pytest.mark.parametrize("tau", [1e-6, 1e-3, 0.1])
def test_sinkhorn_repairs_what_tau_breaks(tau):
    """`sk-blocks`: KL and TV from the block plan; at tau = 0.1 the kernel's own marginals are visibly wrong."""
    x, y, a, b = texts(name="repair")
    m, floor = 4, 1e-3
    target = couplings.comonotone(x, y, a, b)
    scores = blocks.block_kernel(x, y, a, b, target, m, tau, floor)
    wanted = blocks.block_plan(x, y, a, b, target, m, floor)
    found = plan.sinkhorn(scores, a, b, tol=1e-12, max_iterations=20_000).plan
    spent = theory.kl(wanted.flatten(), found.flatten()).item()
    assert spent <= 2 * (m + 1) * tau
    assert couplings.total_variation(wanted, found).item() <= math.sqrt(spent / 2) + 1e-9
    raw = scores.exp() * torch.outer(a, b)
    assert raw.sum().item() <= 1 + 1e-12
    if tau == 0.1:
        assert (raw.sum(dim=1) - a).abs().sum() > 0.1


@pytest.mark.parametrize("zeta", [0.0, 0.2])
def test_the_construction_keeps_its_bound(zeta):
    """`sk-universal`: three targets, scores off by up to zeta; texts with a token of weight 1e-9."""
    for name, rule in (("a", couplings.comonotone), ("b", couplings.antimonotone), ("c", couplings.crossed)):
        x, y, a, b = texts(name=name)
        target, errors = rule(x, y, a, b), []
        for m in (2, 16):
            scores = blocks.block_kernel(x, y, a, b, target, m, tau=1e-7, floor=1e-4)
            noise = zeta * (2 * torch.rand(8, 8, generator=stream(0, "zeta"), dtype=torch.float64) - 1)
            found = plan.sinkhorn(scores + noise, a, b, tol=1e-10, max_iterations=20_000).plan
            errors.append(transport(found, target, x, y))
            assert errors[-1] <= blocks.block_bound(m, 1e-7, 1e-4, zeta)
        assert zeta or errors[1] < errors[0] / 2


def test_logits_of_the_construction_factor_over_cells():
    """`sk-universal`: <F, G> with F the hats of x is near ln k, and nearer on a finer partition."""
    x, y, a, b = texts(name="factor")
    grid = torch.linspace(0, 1, 65, dtype=torch.float64)
    target = couplings.comonotone(x, y, a, b)

    def kernel(at_x, at_y):
        """ln k of the texts at any two points: the hats there, the masses of the text."""
        m, tau, floor = 4, 1e-2, 0.05
        phi, psi = blocks.hats(x, m), blocks.hats(y, m)
        mass = phi.mT @ target @ psi / ((phi.mT @ a + tau).unsqueeze(1) * (psi.mT @ b + tau))
        return (floor + (1 - floor) * blocks.hats(at_x, m) @ mass @ blocks.hats(at_y, m).mT).log()

    truth, gaps = kernel(x, y), []
    for fine in (8, 64):
        nodes = grid[:: 64 // fine]
        F, G = blocks.hats(x, fine), kernel(nodes, nodes) @ blocks.hats(y, fine).mT
        gaps.append((F @ G - truth).abs().max().item())
    assert gaps[1] < gaps[0] / 2
    torch.testing.assert_close(truth, blocks.block_kernel(x, y, a, b, target, 4, 1e-2, 0.05), rtol=1e-10, atol=1e-12)


def test_softmax_stays_on_the_tokens_that_are_there():
    """`sk-conditional`: W_1 from a distribution beside the tokens, by scipy; sending each atom home is as near."""
    y, places = torch.tensor([0.1, 0.35, 0.9]).double(), torch.tensor([0.2, 0.5, 0.7, 0.9]).double()
    beside = random(4, name="beside").softmax(dim=-1)
    gaps = (places.unsqueeze(-1) - y).abs()
    bound = (beside * gaps.amin(dim=-1)).sum().item()
    for scores in 3 * random(100, 3):
        assert stats.wasserstein_distance(y, places, scores.softmax(dim=-1), beside) >= bound - 1e-12
    home = torch.zeros(3).double().index_add(0, gaps.argmin(dim=-1), beside)
    reached = (1e-12 + home).log().softmax(dim=-1)
    assert stats.wasserstein_distance(y, places, reached, beside) == pytest.approx(bound, abs=1e-9)


@pytest.mark.parametrize("m", [2, 8])
def test_conditional_distributions_are_within_their_bound(m):
    """`sk-conditional`: W_1 of every row by a linear program, and the lost mass goes with tau."""
    x, y, a, b = texts(6, name="conditional")
    rows = couplings.crossed(x, y, a, b)
    rows, lost = rows / rows.sum(dim=1, keepdim=True), []
    for tau in (1e-2, 1e-5):
        scores, mass = blocks.conditional_kernel(y, b, rows, m, tau, floor=1e-3)
        found = plan.half_steps(scores, 1, None, b).exp() * 6
        bound = blocks.conditional_bound(m, 1e-3, mass)
        for i in range(6):
            at = torch.zeros(1, dtype=torch.float64)
            assert transport(found[i : i + 1], rows[i : i + 1], at, y) <= bound[i] + 1e-9
        lost.append(mass[1:].max().item())
    assert lost[1] < lost[0]


@pytest.mark.parametrize("n", [2, 5])
def test_every_coupling_is_as_far_from_the_sink(n):
    """`sk-sink`: random couplings and the identity; softmax comes near."""
    sink = torch.zeros(n, n, dtype=torch.float64)
    sink[:, 0] = 1 / n
    many = plan.sinkhorn(random(50, n, n), tol=1e-13, max_iterations=2000).plan
    every = torch.cat([many, torch.eye(n).double().unsqueeze(0) / n])
    distances = couplings.total_variation(every, sink.expand_as(every))
    torch.testing.assert_close(distances, torch.full_like(distances, 1 - 1 / n), rtol=0, atol=1e-12)
    beta = torch.zeros(n, n, dtype=torch.float64)
    beta[:, 0] = 25.0
    assert couplings.total_variation(plan.half_steps(beta, 1).exp(), sink) < 1e-9


def test_a_causal_coupling_of_equal_weights_is_diagonal():
    """`sk-sink` (b): by linear programs, and the order-keeping coupling where one exists."""
    a, lower = random(5).softmax(dim=-1), torch.ones(5, 5).tril()
    assert couplings.largest_mass(lower, lower - torch.eye(5), a, a) == pytest.approx(0, abs=1e-9)
    b = a.clone()
    b[0], b[4] = a[0] + a[4] / 2, a[4] / 2  # keys come earlier: sums of a stay below those of b
    exists = couplings.comonotone(torch.arange(5.0), torch.arange(5.0), a, b)
    assert exists.triu(1).abs().max() < 1e-15
    assert couplings.largest_mass(lower, lower - torch.eye(5), a, b) > 0.1 * a[4]
    with pytest.raises(ValueError, match="no coupling lives there"):
        couplings.largest_mass(lower, lower, b, a)


def test_the_causal_iteration_of_two_tokens_is_known():
    """Mass off the diagonal falls like one over the number of iterations."""
    x0 = 0.37
    masked = torch.tensor([[1.0, 0.0], [x0, 1 - x0]], dtype=torch.float64).log()
    way = plan.iterates(masked, HALF, HALF)
    for T, each in zip(range(200), way, strict=False):
        x = 2 * (masked + each.f.unsqueeze(-1) + each.g).exp()[1, 0].item()
        assert x == pytest.approx(x0 / (1 + 2 * T * x0), rel=1e-11)


def test_the_optimal_plan_jumps_and_the_entropic_one_does_not():
    """`sk-jump`."""
    x = torch.tensor([[-1.0, 0.0], [1.0, 0.0]], dtype=torch.float64)

    def second(degrees):
        u = torch.tensor([math.cos(math.radians(degrees)), math.sin(math.radians(degrees))], dtype=torch.float64)
        return torch.stack([-u, u])

    same, swapped = torch.eye(2).double() / 2, torch.eye(2).double().flip(0) / 2
    costs = {side: torch.cdist(x, second(90 + side)).square() for side in (-1e-3, 1e-3)}
    assert (same * costs[-1e-3]).sum() < (swapped * costs[-1e-3]).sum()
    assert (same * costs[1e-3]).sum() > (swapped * costs[1e-3]).sum()
    apart = transport(same, swapped, x, second(90.0))
    assert apart == pytest.approx(2, abs=1e-9)
    assert couplings.total_variation(same, swapped) == 1
    moved = [plan.entropic_plan(cost, 0.1, tol=1e-12).plan for cost in costs.values()]
    assert couplings.total_variation(*moved).item() < 1e-3


@pytest.mark.parametrize(("n", "m"), [(1, 3), (2, 2), (3, 4)])
def test_the_derivative_of_a_plan(n, m):
    """`sk-vjp`: against a dense solve and differences; symmetry, signs, rank."""
    S = random(n, m)
    a, b = random(n, name="a").softmax(dim=-1), random(m, name="b").softmax(dim=-1)
    P, bar = plan.sinkhorn(S, a, b, tol=1e-14, max_iterations=4000).plan, random(n, m, name="bar")
    found, grad_a, _ = backward.implicit_vjp(P, bar)
    system = torch.cat([torch.cat([a.diag(), P], dim=1), torch.cat([P.mT, b.diag()], dim=1)])
    G = P * bar
    solution = torch.linalg.pinv(system, rtol=1e-12) @ torch.cat([G.sum(dim=1), G.sum(dim=0)])
    dense = P * (bar - solution[:n].unsqueeze(-1) - solution[n:])
    torch.testing.assert_close(found, dense, rtol=0, atol=1e-12)
    torch.testing.assert_close(grad_a, solution[:n] - solution[:n].mean(), rtol=0, atol=1e-11)
    columns = [backward.implicit_vjp(P, each.view(n, m))[0].flatten() for each in torch.eye(n * m).double()]
    J = torch.stack(columns)
    torch.testing.assert_close(J, J.mT, rtol=0, atol=1e-12)
    values = torch.linalg.eigvalsh((J + J.mT) / 2)
    assert values.min() > -1e-12
    assert (values > 1e-10).sum() == (n - 1) * (m - 1)
    for i in range(n):
        step = torch.zeros_like(S)
        step[i, 0] = 1e-5
        ends = [plan.sinkhorn(S + sign * step, a, b, tol=1e-14, max_iterations=4000).plan for sign in (1, -1)]
        assert (bar * (ends[0] - ends[1])).sum().item() / 2e-5 == pytest.approx(found[i, 0].item(), abs=1e-8)


def test_the_drift_of_two_particles_far_apart_is_the_closed_form():
    """The plain iteration would need a hundred thousand steps here."""
    x = torch.tensor([[-0.6, 1.2], [2.3, -1.9]], dtype=torch.float64, requires_grad=True)
    crossing = torch.sigmoid(-(x[0] - x[1]).square().sum(dim=0) / 2)  # n times the plan off its diagonal
    wanted = torch.stack([crossing * (x[1] - x[0]), crossing * (x[0] - x[1])])
    found = flows.sinkhorn_drift(x)
    assert (found - wanted).abs().max() <= 1e-12
    upstream = torch.tensor([[1.0, 2.0], [-0.5, 0.3]], dtype=torch.float64)
    slopes = [torch.autograd.grad((upstream * each).sum(dim=(0, 1)), x)[0] for each in (found, wanted)]
    assert (slopes[0] - slopes[1]).abs().max() <= 1e-9


def test_sinkhorns_drift_is_a_gradient_and_that_of_softmax_is_not():
    """`sk-gradient`: by differences of the energy; the two tokens of the proof."""
    x = random(5, 2)
    slopes = torch.zeros_like(x)
    for i in range(5):
        for d in range(2):
            move = torch.zeros_like(x)
            move[i, d] = 1e-4
            slopes[i, d] = (flows.self_transport(x + move, 0.7) - flows.self_transport(x - move, 0.7)) / 2e-4
    torch.testing.assert_close(flows.sinkhorn_drift(x, 0.7), -5 / 2 * slopes, rtol=0, atol=1e-6)
    leaf = x.clone().requires_grad_()
    flows.self_transport(leaf, 0.7).backward()
    torch.testing.assert_close(leaf.grad, slopes, rtol=0, atol=1e-6)
    two = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    drifts = (flows.softmax_drift, flows.sinkhorn_drift)
    soft, full = (torch.autograd.functional.jacobian(each, two).view(2, 2) for each in drifts)
    assert soft[0, 1].item() == pytest.approx(0.5)
    assert soft[1, 0].item() == pytest.approx(0.0723, abs=1e-4)
    assert full[0, 1].item() == pytest.approx(full[1, 0].item(), abs=1e-12)


def test_a_negative_temperature_is_refused():
    with pytest.raises(ValueError, match="epsilon = -1"):
        flows.softmax_drift(torch.zeros(2, 1), epsilon=-1.0)
