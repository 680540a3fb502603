"""Sinkhorn's plan by scaling a kernel: the fast way, kept safe by absorbing the scalings into the potentials.

symbol   name         meaning                                                               axes
K        -            e^(S + f_i + g_j) at the potentials absorbed so far                   (..., n, m)
u, v     -            scalings: the plan is u_i K_ij v_j                                    (..., n), (..., m)
omega    -            over-relaxation, set from the rate at which the residual falls        scalar

Two matrix-vector products an iteration and no logarithm. The largest entry of every row starts at one; where that
loses a column, the first iteration is taken in the log domain. Where a scaling leaves [e^-30, e^30] it moves into the
potential and K is made anew (Schmitzer 2019). Problems of a batch are solved a few at a time, so that their kernels
stay in the processor's cache.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from derived.lab.checks import check_count, check_positive

from .plan import SinkhornResult, problem
from .theory import optimal_relaxation

ABSORB = 30.0  # the largest |ln u| and |ln v|
CACHE = 2**21  # bytes of kernels solved side by side
SMALL = 128**2  # entries of a kernel up to which one batched product is faster than a product for each
LEAST = 1e-30  # a column's mass under which float32 would lose it
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
        log_plan = (scores + f.unsqueeze(-1)).add_(g.unsqueeze(-2))
        return SinkhornResult(log_plan, f, g, max(iterations), residual, tol)


def _solve(S: Tensor, a: Tensor, b: Tensor, tol: float, max_iterations: int) -> tuple[Tensor, Tensor, int, Tensor]:
    """Potentials, iterations and residuals of a few problems (B, n, m)."""
    positive = bool((a > 0).all() and (b > 0).all())
    g = b.log()
    f = torch.where(a > 0, -(S + g.unsqueeze(-2)).amax(dim=-1), -torch.inf)
    K, KT, u, v = _fresh(S, f, g)
    if bool((_times(KT, a) < LEAST).any()):  # a column is lost: the first row step in the log domain, and its mend
        f = _log_step(S, g, a)
        g = _log_step(S.mT, f, b)
        K, KT, u, v = _fresh(S, f, g)
    divide = torch.div if positive else _divide
    omega, before, iterations = 1.0, torch.full_like(a[:, 0], torch.nan), 0
    while True:
        u = divide(a, _times(K, v))  # end on rows
        column = _times(KT, u)
        residual = (v * column - b).abs().sum(dim=-1)
        if iterations >= max_iterations or bool((residual <= tol).all()):
            return f + u.log(), g + v.log(), iterations, residual
        omega = _relaxation(omega, before, residual) if positive else 1.0  # a power of 0 / 0 is none
        before = residual
        for _ in range(min(PAUSE, max_iterations - iterations)):
            v = _scaled(v, divide(b, column), omega)
            u = _scaled(u, divide(a, _times(K, v)), omega)
            column = _times(KT, u)
            iterations += 1
        if any(_far(each) for each in (u, v)):
            f, g = f + u.log(), g + v.log()
            K, KT, u, v = _fresh(S, f, g)


def _fresh(S: Tensor, f: Tensor, g: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The kernel at new potentials, its transpose as memory likes it, and scalings of one."""
    K = (S + f.unsqueeze(-1)).add_(g.unsqueeze(-2)).exp_()
    if K[0].numel() <= SMALL:  # x K is faster than K x in a batch
        return K.mT.contiguous(), K, torch.ones_like(f), torch.ones_like(g)
    return K, K.mT, torch.ones_like(f), torch.ones_like(g)


def _times(K: Tensor, x: Tensor) -> Tensor:
    """K x of each problem, (B, n); small kernels stand transposed."""
    if K[0].numel() <= SMALL:
        return torch.bmm(x.unsqueeze(1), K).squeeze(dim=1)
    return torch.stack([torch.mv(*each) for each in zip(K, x, strict=True)])


def _relaxation(omega: float, before: Tensor, residual: Tensor) -> float:
    """omega from the slowest rate of the batch over the last iterations; back to 1 where the residual has grown."""
    rate = float((residual / before.clamp(min=1e-300)).amax()) ** (1 / PAUSE)
    if not rate < 1:  # grown, or no rate yet
        return 1.0
    return float(optimal_relaxation(rate)) if omega == 1 and float(residual.amax()) < 0.1 else omega


def _log_step(S: Tensor, g: Tensor, a: Tensor) -> Tensor:
    return torch.where(a > 0, a.log() - torch.logsumexp(S + g.unsqueeze(-2), dim=-1), -torch.inf)


def _divide(weights: Tensor, sums: Tensor) -> Tensor:
    return torch.where(weights > 0, weights / sums, 0.0)


def _scaled(old: Tensor, new: Tensor, omega: float) -> Tensor:
    return new if omega == 1 else old * (new / old) ** omega


def _far(u: Tensor) -> bool:
    """Whether a scaling leaves [e^-ABSORB, e^ABSORB]; those of weight 0 stay 0."""
    return bool((u > math.exp(ABSORB)).any() | ((u < math.exp(-ABSORB)) & (u > 0)).any())
