"""Derivatives: the implicit derivative against gradcheck, a dense solve and autograd; what a detach loses."""

import warnings

import pytest
import torch
from torch import Tensor

from derived.lab.nets import Draws
from derived.lab.rng import stream
from derived.papers.sinkhorn.data.points import random_weights
from derived.papers.sinkhorn.model.attention import SinkhornTransformer, attention_weights, sinkhorn_attention
from derived.papers.sinkhorn.model.backward import implicit_vjp, sinkhorn_plan
from derived.papers.sinkhorn.model.plan import half_steps

EXACT = {"tol": 1e-14, "max_iterations": 4000}


def gradient(plan_of, scores: Tensor, W: Tensor) -> Tensor:
    """d <W, P(S)> / dS."""
    leaf = scores.detach().clone().requires_grad_()
    return torch.autograd.grad((W * plan_of(leaf)).sum(), leaf)[0]


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
    """`sk-detached`: rows see g as a constant: dP = P (dS - <dS>_row), whatever the number of half-steps."""
    scores, _, _ = problems(4, 4)
    W = torch.randn(4, 4, generator=stream(0, "frozen"), dtype=torch.float64)
    cut = gradient(lambda S: half_steps(S, 7, detach_columns=True).exp(), scores, W)
    plan = half_steps(scores, 7).exp()
    assert (cut - plan * (W - 4 * (plan * W).sum(dim=-1, keepdim=True))).abs().max() < 1e-15


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


@pytest.mark.parametrize("num", [1, 2, 3, 5, None])
@pytest.mark.parametrize("masked", [False, True])
def test_padding_by_weights_has_the_gradient_of_the_text_without_padding(num, masked):
    """Faults 2: NaN in every gradient, by a division and by ln 0, both under a torch.where."""
    scores, W = torch.randn(2, 3, 3, generator=stream(0, "padding"), dtype=torch.float64)
    padded = torch.full((5, 5), -torch.inf if masked else 0.7, dtype=torch.float64)
    padded[:3, :3] = scores
    keep = torch.tensor([1.0, 1, 1, 0, 0], dtype=torch.float64)
    found = []
    for table, kept in ((scores, keep[:3]), (padded, keep)):
        leaf, mass = table.clone().requires_grad_(), kept.clone().requires_grad_()
        weights = mass / mass.sum()
        if num == 2:
            A = half_steps(leaf, num, weights, weights).exp()
        else:
            A = attention_weights(leaf, num, weights, weights)
        found.append(torch.autograd.grad((W * A[:3, :3]).sum(), (leaf, mass)))
    (alone, of_mass), (inside, of_padded) = found
    assert (inside[:3, :3] - alone).abs().max() < 1e-9
    assert not inside[3:].any()
    assert not inside[:, 3:].any()
    assert (of_padded[:3] - of_mass).abs().max() < 1e-6
    assert of_padded.isfinite().all()


@pytest.mark.parametrize("num", [1, 3, None])
def test_a_padded_text_trains_a_transformer_as_the_text_alone(num):
    net = SinkhornTransformer(3, 2, num_half_steps=num, width=8, depth=1, draws=Draws(dtype=torch.float64))
    x = torch.randn(1, 1, 5, 3, generator=stream(0, "padded text"), dtype=torch.float64)
    keep, grads = torch.tensor([[[1.0, 1, 1, 0, 0]]], dtype=torch.float64), []
    for text, weights in ((x[:, :, :3], None), (x, keep / 3)):
        net.zero_grad()
        net(text, weights)[:, :, :3].square().sum().backward()
        grads.append(torch.cat([each.grad.flatten() for each in net.parameters()]))
    assert (grads[0] - grads[1]).abs().max() < 1e-6


def test_a_second_derivative_raises_on_three_roads_and_the_half_steps_have_it():
    S = torch.randn(3, 3, generator=stream(0, "twice"), dtype=torch.float64).requires_grad_()
    W = torch.randn(3, 3, generator=stream(0, "twice W"), dtype=torch.float64)
    roads = {
        "the scores reach the loss twice": lambda leaf, P: (P(leaf) * leaf).sum(),
        "the scores are a curved map of the leaf": lambda leaf, P: (W * P(leaf**2)).sum(),
        "the scores are linear in the leaf": lambda leaf, P: (W * P(leaf)).sum(),
    }
    for name, road in roads.items():
        (first,) = torch.autograd.grad(road(S, sinkhorn_plan), S, create_graph=True)
        with pytest.raises(RuntimeError, match=r"half_steps\(scores, num"):
            first.sum().backward()
        with pytest.raises(RuntimeError, match="half_steps"):
            torch.autograd.functional.hessian(lambda leaf, road=road: road(leaf, sinkhorn_plan), S.detach())
        slope = torch.autograd.grad(road(S, lambda leaf: half_steps(leaf, 401).exp()), S)[0]
        assert (slope - first).abs().max() < 1e-9, name
    assert torch.autograd.gradgradcheck(lambda leaf: half_steps(leaf, 5).exp(), S)
    plan = torch.full((2, 2), 0.25, dtype=torch.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="differentiated again"):
        implicit_vjp(plan, torch.eye(2).double())[0].sum().backward()


def test_the_second_derivative_of_two_tokens_is_known():
    """d^2 P_11 / dS_11^2 = s (1 - s)(1 - 2 s) / 8 at s = logistic(cross-difference / 2)."""
    S = torch.tensor([[0.7, -0.4], [0.1, 0.5]], dtype=torch.float64)
    hessian = torch.autograd.functional.hessian(lambda leaf: half_steps(leaf, 401).exp()[0, 0], S)
    s = torch.sigmoid((S[0, 0] + S[1, 1] - S[0, 1] - S[1, 0]) / 2)
    assert abs(hessian[0, 0, 0, 0] - s * (1 - s) * (1 - 2 * s) / 8) < 1e-10


@pytest.mark.parametrize("num", [1, 3, None])
def test_values_and_gradients_of_attention_do_not_depend_on_the_order_in_memory(num):
    q, k, v = torch.randn(3, 4, 2, 5, generator=stream(0, "strides"), dtype=torch.float64)
    turned = [each.transpose(0, 1).requires_grad_() for each in (q, k, v)]
    plain = [each.transpose(0, 1).contiguous().requires_grad_() for each in (q, k, v)]
    one, other = (sinkhorn_attention(*each, num_half_steps=num) for each in (turned, plain))
    assert (one - other).abs().max() < 1e-12
    grads = [torch.autograd.grad(out.square().sum(), inputs) for out, inputs in ((one, turned), (other, plain))]
    assert all((x - y).abs().max() < 1e-8 for x, y in zip(*grads, strict=True))
