"""Sinkhorn's plan by scaling a kernel: the fast way, kept safe by absorbing the scalings into the potentials.

symbol   name         meaning                                                               axes
K        -            e^(S + f_i + g_j) at the potentials absorbed so far                   (..., n, m)
u, v     -            scalings: the plan is u_i K_ij v_j                                    (..., n), (..., m)
omega    -            over-relaxation, set from the rate at which the residual falls        scalar

Two matrix-vector products an iteration and no logarithm. It starts from one iteration in the log domain, so that the
kernel has row sums a; where a scaling leaves [e^-30, e^30] it moves into the potential and K is made anew (Schmitzer
2019). Problems of a batch are solved a few at a time, so that their kernels stay in the processor's cache.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from derived.lab.checks import check_count, check_positive

from .plan import SinkhornResult, problem
from .theory import optimal_relaxation

ABSORB = 30.0
CACHE = 2**20  # bytes of kernels solved side by side
PAUSE = 5  # iterations between two looks at the residual


def sinkhorn_kernel(
    scores: Float[Tensor, "*batch n m"],
    a: Float[Tensor, "*#batch n"] | None = None,
    b: Float[Tensor, "*#batch m"] | None = None,
    *,
    tol: float = 1e-9,
    max_iterations: int = 1000,
) -> SinkhornResult:
    """The plan of ``sinkhorn`` within the same ``tol``, some times faster; ``iterations`` is the largest of the batch.

    Over-relaxes by itself once the residual falls at a steady rate r: omega = 2 / (1 + sqrt(1 - r)). ValueError as
    ``sinkhorn``. Not differentiable, but ``implicit_vjp`` needs only the plan.

    >>> result = sinkhorn_kernel(torch.tensor([[1.0, 0.0], [0.0, 0.0]], dtype=torch.float64))
    >>> result.plan
    tensor([[0.3112, 0.1888],
            [0.1888, 0.3112]], dtype=torch.float64)
    """
    check_count("max_iterations", max_iterations, least=1)
    check_positive("tol", tol)
    with torch.no_grad():
        scores, a, b = problem(scores, a, b)
        n, m = scores.shape[-2:]
        flat = scores.reshape(-1, n, m), a.reshape(-1, n), b.reshape(-1, m)
        side = max(1, CACHE // (n * m * scores.element_size()))
        parts = [_solve(*part, tol, max_iterations) for part in zip(*(each.split(side) for each in flat), strict=True)]
        f, g, iterations, residual = zip(*parts, strict=True)
        f, g, residual = (torch.cat(each).view((*scores.shape[:-2], *each[0].shape[1:])) for each in (f, g, residual))
        log_plan = scores + f.unsqueeze(-1) + g.unsqueeze(-2)
        return SinkhornResult(log_plan, f, g, max(iterations), residual, tol)


def _solve(S: Tensor, a: Tensor, b: Tensor, tol: float, max_iterations: int) -> tuple[Tensor, Tensor, int, Tensor]:
    """Potentials, iterations and residuals of a few problems (B, n, m)."""
    f, g = _log_step(S, b.log(), a), b.log()
    g = _log_step(S.mT, f, b)
    f = _log_step(S, g, a)
    K = (S + f.unsqueeze(-1) + g.unsqueeze(-2)).exp()
    u, v, omega, before, iterations = torch.ones_like(a), torch.ones_like(b), 1.0, None, 1
    while True:
        column = _times(K.mT, u)
        residual = (v * column - b).abs().sum(dim=-1)
        if iterations >= max_iterations or bool((residual <= tol).all()):
            return f + u.log(), g + v.log(), iterations, residual
        omega, before = _relaxation(omega, before, residual)
        for _ in range(min(PAUSE, max_iterations - iterations)):
            v = _scaled(v, b, column, omega)
            u = _scaled(u, a, _times(K, v), omega)
            column = _times(K.mT, u)
            iterations += 1
        if omega != 1:  # end on rows
            u = _scaled(u, a, _times(K, v), 1.0)
        if max(float(u.log().nan_to_num(0, 0, 0).abs().max()), float(v.log().nan_to_num(0, 0, 0).abs().max())) > ABSORB:
            f, g = f + u.log(), g + v.log()
            K, u, v = (S + f.unsqueeze(-1) + g.unsqueeze(-2)).exp(), torch.ones_like(a), torch.ones_like(b)


def _relaxation(omega: float, before: Tensor | None, residual: Tensor) -> tuple[float, Tensor]:
    """omega from the slowest rate of the batch over the last iterations; back to 1 where the residual has grown."""
    if before is None:
        return 1.0, residual
    rate = float((residual / before.clamp(min=1e-300)).amax()) ** (1 / PAUSE)
    if omega == 1 and rate < 1 and float(residual.amax()) < 0.1:
        return float(optimal_relaxation(rate)), residual
    return (1.0 if rate >= 1 else omega), residual


def _log_step(S: Tensor, g: Tensor, a: Tensor) -> Tensor:
    return torch.where(a > 0, a.log() - torch.logsumexp(S + g.unsqueeze(-2), dim=-1), -torch.inf)


def _times(K: Tensor, x: Tensor) -> Tensor:
    return (K @ x.unsqueeze(-1)).squeeze(dim=-1) if len(K) > 1 else (K[0] @ x[0]).unsqueeze(0)


def _scaled(old: Tensor, weights: Tensor, sums: Tensor, omega: float) -> Tensor:
    new = torch.where(weights > 0, weights / sums, 0.0)
    return new if omega == 1 else torch.where(weights > 0, old * (new / old) ** omega, 0.0)
