"""Sinkhorn's plan by scaling a kernel: the fast way, kept safe by absorbing the scalings into the potentials.

symbol   name         meaning                                                               axes
K        -            e^(S + f_i + g_j) at the potentials absorbed so far                   (..., n, m)
u, v     -            scalings: the plan is u_i K_ij v_j                                    (..., n), (..., m)
omega    -            over-relaxation, set from the rate at which the residual falls        scalar

Two matrix-vector products an iteration and no logarithm. The largest entry of every row starts at one; where that
loses a column, the first iteration is taken in the log domain. Where a scaling leaves [e^-30, e^30] it moves into the
potential and K is made anew (Schmitzer 2019). The plan is K itself, scaled in place. Small problems of a batch are
solved a few at a time, so that their kernels stay in the processor's cache, and larger ones one by one.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from derived.lab.checks import check_count, check_positive

from .plan import SinkhornResult, problem
from .theory import optimal_relaxation

ABSORB = 30.0  # the largest |ln u| and |ln v|
CACHE = 2**21  # bytes of kernels solved side by side
SMALL = 128**2  # entries of a kernel up to which a batched product is faster than a product for each
LEAST = 1e-30  # a column's mass under which float32 would lose it
PAUSE = 5  # iterations between two looks at the residual
STEADY = 0.64  # the rate under which fewer iterations do not pay for the powers that they take; omega is 1.25 there


class KernelResult(NamedTuple):
    """A ``SinkhornResult`` whose plan is at hand; its logarithm is made where it is asked for."""

    scores: Float[Tensor, "*batch n m"]
    plan: Float[Tensor, "*batch n m"]
    f: Float[Tensor, "*batch n"]
    g: Float[Tensor, "*batch m"]
    iterations: int
    residual: Float[Tensor, "*batch"]
    tol: float

    @property
    def log_plan(self) -> Float[Tensor, "*batch n m"]:
        """ln P = S + f_i + g_j."""
        return self.scores + self.f.unsqueeze(-1) + self.g.unsqueeze(-2)

    converged = SinkhornResult.converged


def sinkhorn_kernel(
    scores: Float[Tensor, "*batch n m"],
    a: Float[Tensor, "*#batch n"] | None = None,
    b: Float[Tensor, "*#batch m"] | None = None,
    *,
    tol: float = 1e-9,
    max_iterations: int = 1000,
) -> KernelResult:
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
        plan = torch.empty_like(scores, memory_format=torch.contiguous_format)
        flat = scores.reshape(-1, n, m), a.reshape(-1, n), b.reshape(-1, m), plan.view(-1, n, m)
        side = CACHE // (n * m * scores.element_size()) if n * m <= SMALL else 1
        alone = min(side, len(flat[0])) <= 1
        parts = zip(*(each.unbind() if alone else each.split(side) for each in flat), strict=True)
        f, g, iterations, residual = zip(*(_solve(*part, tol, max_iterations) for part in parts), strict=True)
        join, batch = torch.stack if alone else torch.cat, scores.shape[:-2]
        f, g, residual = join(f).view(*batch, n), join(g).view(*batch, m), join(residual).view(batch)
        return KernelResult(scores, plan, f, g, max(iterations), residual, tol)


def _solve(
    S: Tensor, a: Tensor, b: Tensor, plan: Tensor, tol: float, max_iterations: int
) -> tuple[Tensor, Tensor, int, Tensor]:
    """Potentials, iterations and residual of one problem (n, m) or of a few (B, n, m), whose plan is put in place."""
    positive = float(a.amin()) > 0 and float(b.amin()) > 0
    divide = torch.div if positive else _divide
    f, g, v = -S.amax(dim=-1), torch.zeros_like(b), b
    f = torch.where(f < torch.inf, f, 0.0)  # a row of weight 0 may be empty
    rows, columns = _products(torch.add(S, f.unsqueeze(-1), out=plan).exp_())
    u = divide(a, rows(v))
    column = columns(u)
    if bool((column < LEAST).any()):  # a column is lost: the first row step in the log domain, and its mend
        f = _log_step(S, b.log(), a)
        g = _log_step(S.mT, f, b)
        rows, columns = _products(torch.add(S, f.unsqueeze(-1), out=plan).add_(g.unsqueeze(-2)).exp_())
        v = torch.ones_like(b)
        u = divide(a, rows(v))
        column = columns(u)
    omega, before, iterations = 1.0, math.inf, 0
    while True:
        residual = torch.addcmul(b, v, column, value=-1).abs_().sum(dim=-1)
        worst = float(residual.amax())
        if iterations >= max_iterations or worst <= tol:
            plan.mul_(u.unsqueeze(-1)).mul_(v.unsqueeze(-2))
            return f + u.log(), g + v.log(), iterations, residual
        if positive:  # a power of 0 / 0 is none
            omega = _relaxation(omega, before, worst)
        before, steps = worst, min(PAUSE, max_iterations - iterations)
        for left in reversed(range(steps)):
            v = _scaled(v, divide(b, column), omega)
            u = _scaled(u, divide(a, rows(v)), omega if left else 1.0)  # end on rows
            column = columns(u)
        iterations += steps
        if any(_far(each if positive else torch.where(each > 0, each, 1.0)) for each in (u, v)):
            f, g = f + u.log(), g + v.log()
            rows, columns = _products(torch.add(S, f.unsqueeze(-1), out=plan).add_(g.unsqueeze(-2)).exp_())
            u, v = torch.ones_like(f), torch.ones_like(g)
            column = columns(u)


def _products(K: Tensor) -> tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]:
    """K x and K^T x; in a batch x K is faster than K x, so that K^T is kept as well."""
    if K.ndim == 2:
        return K.mv, K.mT.mv
    KT = K.mT.contiguous()
    return tuple(lambda x, M=M: torch.bmm(x.unsqueeze(1), M).squeeze(dim=1) for M in (KT, K))


def _relaxation(omega: float, before: float, residual: float) -> float:
    """omega from the rate of the batch's worst residual over the last iterations; back to 1 where it has grown."""
    rate = (residual / before) ** (1 / PAUSE)
    if not rate < 1:
        return 1.0
    return float(optimal_relaxation(rate)) if omega == 1 and rate > STEADY and residual < 0.1 else omega


def _log_step(S: Tensor, g: Tensor, a: Tensor) -> Tensor:
    return torch.where(a > 0, a.log() - torch.logsumexp(S + g.unsqueeze(-2), dim=-1), -torch.inf)


def _divide(weights: Tensor, sums: Tensor) -> Tensor:
    return torch.where(weights > 0, weights / sums, 0.0)


def _scaled(old: Tensor, new: Tensor, omega: float) -> Tensor:
    return new if omega == 1 else torch.pow(new / old, omega).mul_(old)


def _far(u: Tensor) -> bool:
    """Whether a scaling leaves [e^-ABSORB, e^ABSORB]."""
    low, high = u.aminmax()
    return float(high) > math.exp(ABSORB) or float(low) < math.exp(-ABSORB)
