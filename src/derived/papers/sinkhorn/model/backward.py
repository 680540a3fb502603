r"""The derivative of Sinkhorn's plan from the plan alone: one linear system, whatever the number of iterations.

symbol         name          meaning                                                         axes
P              plan          a converged plan                                                (..., n, m)
P bar          grad_plan     derivative of a loss in P                                       (..., n, m)
S bar          grad_scores   derivative of the loss in the scores                            (..., n, m)
lambda, kappa  row, column   P-weighted least-squares fit of P bar by row + column functions  (..., n), (..., m)

S bar = P * (P bar - lambda_i - kappa_j): the residual of the fit. lambda and kappa are also the derivatives
in a and b, up to a constant. Source: Luise et al. 2018, Eisenberger et al. 2022; the form is ours.
"""

import warnings

import torch
from jaxtyping import Float
from torch import Tensor

from .plan import problem, sinkhorn, sinkhorn_symmetric


def implicit_vjp(
    plan: Float[Tensor, "*batch n m"], grad_plan: Float[Tensor, "*batch n m"]
) -> tuple[Float[Tensor, "*batch n m"], Float[Tensor, "*batch n"], Float[Tensor, "*batch m"]]:
    r"""(S bar, a bar, b bar) of a plan: with G = P * P bar, solve [D_a P; P^T D_b] (lambda, kappa) = (G 1, G^T 1).

    The Schur complement D_a - P D_b^-1 P^T is solved by conjugate gradients, scaled to I - M M^T with
    M = D_a^-1/2 P D_b^-1/2; its null vector a^1/2 is the gauge and is projected out. a bar and b bar are centred to
    mean 0. Zero weights take no derivative. RuntimeError where one of the three is differentiated again.

    >>> plan = torch.tensor([[0.3, 0.2], [0.2, 0.3]], dtype=torch.float64)
    >>> implicit_vjp(plan, torch.tensor([[1.0, 0.0], [0.0, 0.0]], dtype=torch.float64))[0]
    tensor([[ 0.0600, -0.0600],
            [-0.0600,  0.0600]], dtype=torch.float64)
    """
    return _Vjp.apply(plan, grad_plan)


def _vjp(plan: Tensor, grad_plan: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    a, b = plan.sum(dim=-1), plan.sum(dim=-2)  # the plan's own sums, so that the system is consistent to rounding
    root_a, root_b = (torch.where(each > 0, each.rsqrt(), 0.0) for each in (a, b))
    M = plan * root_a.unsqueeze(-1) * root_b.unsqueeze(-2)
    grad = plan * grad_plan
    rows, columns = (root_a * grad.sum(dim=-1)).unsqueeze(-1), (root_b * grad.sum(dim=-2)).unsqueeze(-1)
    z = _conjugate_gradients(M, rows - M @ columns, a.sqrt().unsqueeze(-1))
    row, column = root_a * z.squeeze(dim=-1), root_b * (columns - M.mT @ z).squeeze(dim=-1)
    grad_scores = grad - plan * (row.unsqueeze(-1) + column.unsqueeze(-2))
    bars = (torch.where(w > 0, x - x.mean(dim=-1, keepdim=True), 0.0) for x, w in ((row, a), (column, b)))
    return grad_scores, *bars


def _conjugate_gradients(M: Tensor, right: Tensor, gauge: Tensor) -> Tensor:
    """z (..., n, 1) with (I - M M^T) z = right, orthogonal to the gauge; stops at rounding, or where n steps were not
    enough."""
    eps = torch.finfo(M.dtype).eps
    gauge = gauge / _dot(gauge, gauge).sqrt()
    rest = right - gauge * _dot(gauge, right)
    z, direction, size = torch.zeros_like(rest), rest, _dot(rest, rest)
    enough = (4 * eps) ** 2 * size
    for _ in range(4 * rest.shape[-2] + 20):
        image = direction - M @ (M.mT @ direction)
        image = image - gauge * _dot(gauge, image)
        curvature = _dot(direction, image)
        # a plan of several blocks has a gauge for each, along which only rounding remains, without curvature
        active = (size > enough) & (curvature > 64 * eps * _dot(direction, direction))
        if not active.any():
            break
        step = torch.where(active, size / curvature, 0.0)
        z, rest, before = z + step * direction, rest - step * image, size
        size = _dot(rest, rest)
        direction = torch.where(active, rest + size / before * direction, direction)
    return z


def _dot(x: Tensor, y: Tensor) -> Tensor:
    return x.mT @ y


class _Vjp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, plan, grad_plan):
        return _vjp(plan, grad_plan)

    @staticmethod
    def backward(ctx, *_):
        raise RuntimeError(
            "the implicit derivative of Sinkhorn's plan cannot be differentiated again; for second derivatives use "
            "half_steps(scores, num, a, b).exp() with an odd num: autograd goes through it as often as you like"
        )


class _Plan(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores, a, b, symmetric, options):
        result = sinkhorn_symmetric(scores, a, **options) if symmetric else sinkhorn(scores, a, b, **options)
        plan, missed = result.plan, float(result.residual.max())
        if missed > max(result.tol, 256 * torch.finfo(plan.dtype).eps):
            warnings.warn(
                f"Sinkhorn's limit was not reached: after {result.iterations} iterations sums miss their weights by "
                f"{missed:.1e}, and the derivative is off by about as much; give more max_iterations, or a larger tol",
                RuntimeWarning,
                stacklevel=2,
            )
        ctx.save_for_backward(plan)
        ctx.mark_non_differentiable(result.residual)
        return plan, result.residual

    @staticmethod
    def backward(ctx, grad_plan, _):
        return *_Vjp.apply(*ctx.saved_tensors, grad_plan), None, None


def sinkhorn_plan(
    scores: Float[Tensor, "*batch n m"],
    a: Float[Tensor, "*#batch n"] | None = None,
    b: Float[Tensor, "*#batch m"] | None = None,
    *,
    symmetric: bool = False,
    **options,
) -> Float[Tensor, "*batch n m"]:
    """Sinkhorn's plan with the implicit derivative: forward as ``sinkhorn``, backward from the plan alone.

    Memory does not depend on the number of iterations; ``options`` go to ``sinkhorn``. The derivative is that of the
    limit: it is off by about the residual that was reached, and a RuntimeWarning says so where that is above ``tol``
    and rounding. A second derivative raises RuntimeError: ``half_steps`` has one. With ``symmetric`` the
    forward is ``sinkhorn_symmetric``, for scores of a text with itself, whose weights are ``a`` on both sides: where
    tokens are far apart the plain iteration hardly moves, and that one converges. ValueError as these two.

    >>> scores = torch.zeros(2, 2, requires_grad=True)
    >>> sinkhorn_plan(scores)[0, 0].backward()
    >>> scores.grad
    tensor([[ 0.0625, -0.0625],
            [-0.0625,  0.0625]])
    """
    options = dict(options)
    scores, a, b = problem(scores, a, a if symmetric else b, options.pop("mask", None))
    return _Plan.apply(scores, a, b, symmetric, options)[0]
