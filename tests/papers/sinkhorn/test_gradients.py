"""Topic gradients: the implicit derivative against gradcheck, a dense solve and autograd; what a detach loses."""

import warnings

import pytest
import torch
from torch import Tensor

from derived.lab.rng import stream
from derived.papers.sinkhorn.data.points import random_weights
from derived.papers.sinkhorn.gradients import Truncated, gradient
from derived.papers.sinkhorn.model import backward
from derived.papers.sinkhorn.model.attention import attention_weights
from derived.papers.sinkhorn.model.backward import implicit_vjp, sinkhorn_plan
from derived.papers.sinkhorn.model.plan import half_steps, sinkhorn

EXPERIMENTS = (Truncated,)
EXACT = {"tol": 1e-14, "max_iterations": 4000}


def problems(*shape: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = stream(0, "gradients", *shape)
    scores = torch.randn(*shape, generator=generator, dtype=torch.float64)
    return scores, *(random_weights((*shape[:-2], size), generator, least=0.2) for size in shape[-2:])


@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (4, 1), (1, 2, 3), (2, 3, 4, 3)])
def test_the_derivative_in_scores_is_that_of_differences(shape):
    scores, a, b = problems(*shape)
    assert torch.autograd.gradcheck(lambda S: sinkhorn_plan(S, a, b, **EXACT), scores.requires_grad_(), atol=1e-7)


def test_the_derivative_in_weights_is_that_of_differences():
    scores, a, b = problems(2, 3, 4)
    inner = [each.log().requires_grad_() for each in (a, b)]  # weights by softmax stay weights under differences

    def plan(log_a: Tensor, log_b: Tensor) -> Tensor:
        return sinkhorn_plan(scores, log_a.softmax(dim=-1), log_b.softmax(dim=-1), **EXACT)

    assert torch.autograd.gradcheck(plan, inner, atol=1e-7)


def test_the_system_solved_densely_says_the_same():
    scores, a, b = problems(5, 4)
    plan, bar = sinkhorn(scores, a, b, **EXACT).plan, torch.randn(5, 4, generator=stream(0, "bar"), dtype=torch.float64)
    grad = plan * bar
    system = torch.cat([torch.cat([a.diag(), plan], 1), torch.cat([plan.mT, b.diag()], 1)])
    found = torch.linalg.lstsq(system, torch.cat([grad.sum(1), grad.sum(0)]), driver="gelsd").solution
    dense = grad - plan * (found[:5, None] + found[5:])
    bars = implicit_vjp(plan, bar)
    assert (bars[0] - dense).abs().max() < 1e-13
    for one, other in zip(bars[1:], (found[:5], found[5:]), strict=True):
        assert (one - (other - other.mean())).abs().max() < 1e-12


def test_torch_solves_as_numpy_does(monkeypatch):
    """A card has torch alone; the second plan has two blocks, the third is in a dtype that NumPy lacks."""
    scores, a, b = problems(2, 5, 4)
    blocks = sinkhorn(scores[0].where(torch.arange(5)[:, None].lt(2) == torch.arange(4).lt(2), -torch.inf)).plan
    plans = sinkhorn(scores, a, b, **EXACT).plan, blocks, scores.softmax(dim=-1).bfloat16()
    bars = [torch.randn(plan.shape, generator=stream(0, "bar")).to(plan) for plan in plans]
    ours = [implicit_vjp(*two)[0] for two in zip(plans, bars, strict=True)]
    monkeypatch.setattr(backward, "_solved", lambda *facts: backward._conjugate_gradients(torch, *facts))
    for plan, bar, found in zip(plans, bars, ours, strict=True):
        assert (implicit_vjp(plan, bar)[0] - found).abs().max() < 1e-13


def test_what_is_left_of_rows_and_columns_is_nothing():
    scores, a, b = problems(6, 5)
    plan = sinkhorn(scores, a, b, **EXACT).plan
    offsets = torch.randn(6, 1, dtype=torch.float64, generator=stream(0, "o")) + torch.arange(5.0).double()
    assert implicit_vjp(plan, offsets)[0].abs().max() < 1e-13


def test_weights_of_zero_pass_no_derivative_and_no_nan():
    scores, a, b = problems(4, 4)
    a = a.clone()
    a[1] = 0
    a = (a / a.sum()).requires_grad_()
    leaf = scores.requires_grad_()
    W = torch.randn(4, 4, generator=stream(0, "zero"), dtype=torch.float64)
    (W * sinkhorn_plan(leaf, a, b, **EXACT)).sum().backward()
    assert leaf.grad.isfinite().all()
    assert a.grad.isfinite().all()
    assert not leaf.grad[1].any()


def test_plans_of_several_blocks_and_cold_ones_have_derivatives():
    """A plan that falls into parts has a gauge for each, which conjugate gradients must not follow."""
    generator = stream(0, "blocks")
    mask = torch.block_diag(torch.ones(2, 2), torch.ones(2, 2)).bool()
    scores, W = torch.randn(2, 100, 4, 4, generator=generator, dtype=torch.float64)
    facts = {"mask": mask, "tol": 1e-13, "max_iterations": 5000}
    found = gradient(lambda S: sinkhorn_plan(S, **facts), scores, W)
    alone = gradient(lambda S: sinkhorn_plan(S, tol=1e-13, max_iterations=5000) / 2, scores[:, :2, :2], W[:, :2, :2])
    assert (found[:, :2, :2] - alone).abs().max() < 1e-12
    assert not found[:, ~mask].any()
    cold = torch.eye(6, dtype=torch.float64).mul(80)
    bar = torch.randn(6, 6, generator=generator, dtype=torch.float64)
    assert gradient(lambda S: sinkhorn_plan(S), cold, bar).abs().max() < 1e-12


def kept_bytes(plan_of, scores: Tensor) -> int:
    """What autograd keeps for the backward pass of a plan, each tensor's storage once."""
    kept = {}

    def note(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        plan_of(scores.clone().requires_grad_())
    return sum(storage.nbytes() for storage in kept.values())


@pytest.mark.filterwarnings("ignore:Sinkhorn's limit")
def test_the_memory_of_unrolling_grows_with_the_iterations_and_that_of_the_implicit_derivative_does_not():
    scores = problems(3, 4, 3)[0]
    few, many = (kept_bytes(lambda S, k=k: half_steps(S, 2 * k + 1).exp(), scores) for k in (10, 100))
    assert many > 8 * few
    few, many = (kept_bytes(lambda S, k=k: sinkhorn_plan(S, tol=1e-300, max_iterations=k), scores) for k in (10, 100))
    assert few == many <= 3 * scores.nbytes


def test_a_detach_changes_the_derivative_and_not_the_plan():
    scores, a, b = problems(3, 5, 5)
    assert torch.equal(half_steps(scores, 5, a, b), half_steps(scores, 5, a, b, detach_columns=True))
    W = torch.randn(3, 5, 5, generator=stream(0, "W"), dtype=torch.float64)
    whole, cut = (
        gradient(lambda S, d=d: half_steps(S, 5, a, b, detach_columns=d).exp(), scores, W) for d in (False, True)
    )
    assert (whole - cut).norm() > 0.1 * whole.norm()
    one, same = (
        gradient(lambda S, d=d: half_steps(S, 1, a, b, detach_columns=d).exp(), scores, W) for d in (False, True)
    )
    assert torch.equal(one, same)  # softmax has no column step


def test_the_detached_derivative_is_that_of_softmax_at_the_frozen_potential():
    """Rows see g as a constant: dP = P (dS - <dS>_row), whatever the number of half-steps."""
    scores, _, _ = problems(4, 4)
    W = torch.randn(4, 4, generator=stream(0, "frozen"), dtype=torch.float64)
    cut = gradient(lambda S: half_steps(S, 7, detach_columns=True).exp(), scores, W)
    plan = half_steps(scores, 7).exp()
    assert (cut - plan * (W - 4 * (plan * W).sum(dim=-1, keepdim=True))).abs().max() < 1e-15


def test_unrolling_tends_to_the_implicit_derivative(rows):
    table = rows[Truncated].query("method == 'unrolled'").groupby("num_half_steps")["limit_error"].max()
    assert table[81] < 1e-3 < table[3]
    assert (rows[Truncated].query("method == 'detached'")["limit_error"] > 0.02).all()


def test_it_is_not_differentiated_twice():
    S = torch.zeros(2, 2, dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad((sinkhorn_plan(S) ** 2).sum(), S, create_graph=True)
    with pytest.raises(RuntimeError):
        first.sum().backward()


def test_a_limit_that_was_not_reached_is_said():
    """Ten iterations of steep scores are not the limit; enough of them, or softmax itself, say nothing."""
    scores = 8 * torch.randn(32, 32, generator=stream(0, "steep"), dtype=torch.float64)
    with pytest.warns(RuntimeWarning, match=r"after 10 iterations sums miss their weights by \d"):
        sinkhorn_plan(scores, max_iterations=10)
    with pytest.warns(RuntimeWarning, match="more max_iterations"):
        attention_weights(scores, None, max_iterations=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sinkhorn_plan(scores / 8)
        sinkhorn_plan((scores / 8).float())
        attention_weights(scores, 3)
