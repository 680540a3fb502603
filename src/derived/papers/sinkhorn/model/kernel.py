"""Sinkhorn's plan by scaling a kernel: the fast way, kept safe by absorbing the scalings into the potentials.

symbol   name         meaning                                                               axes
K        -            e^(S + f_i + g_j) at the potentials absorbed so far                   (..., n, m)
u, v     -            scalings: the plan is u_i K_ij v_j                                    (..., n), (..., m)
omega    -            over-relaxation, set from the rate at which the residual falls        scalar

Two matrix-vector products an iteration and no logarithm. The largest entry of every row starts at one; where that
loses a column, the first iteration is taken in the log domain. Where a scaling leaves [e^-30, e^30] it moves into the
potential and K is made anew (Schmitzer 2019). The plan is K itself, scaled in place. Small problems of a batch are
solved a few at a time, so that their kernels stay in the processor's cache, and larger ones one by one. On a CPU the
loop is NumPy's, on the same memory: its exponential and its products are faster there, and a call of it costs half.
"""

import math
from collections.abc import Callable
from types import ModuleType
from typing import NamedTuple

import numpy as np
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
PAUSE = 5  # iterations between two looks at the residual, at most: as many as its last rate asks for
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
        library = np if scores.device.type == "cpu" else torch
        if library is np:
            flat = [each.detach().numpy() for each in flat]
        side = max(CACHE // (n * m * scores.element_size()), 1) if n * m <= SMALL else 1
        places = range(len(flat[0])) if side == 1 or len(flat[0]) == 1 else _slices(len(flat[0]), side)
        with np.errstate(all="ignore"):
            found = [_solve(library, *(each[place] for each in flat), tol, max_iterations) for place in places]
        f, g, iterations, residual = zip(*found, strict=True)
        join, batch = library.concatenate if isinstance(places, list) else library.stack, scores.shape[:-2]
        f, g, residual = (torch.as_tensor(join(each)) for each in (f, g, residual))
        return KernelResult(
            scores, plan, f.view(*batch, n), g.view(*batch, m), max(iterations), residual.view(batch), tol
        )


def _slices(length: int, side: int) -> list[slice]:
    return [slice(start, start + side) for start in range(0, length, side)]


Array = Tensor | np.ndarray


def _solve(
    library: ModuleType, S: Array, a: Array, b: Array, plan: Array, tol: float, max_iterations: int
) -> tuple[Array, Array, int, Array]:
    """Potentials, iterations and residual of one problem (n, m) or of a few (B, n, m), whose plan is put in place."""
    positive = bool((a > 0).all() and (b > 0).all())
    f, g, v = -library.amax(S, -1), library.zeros_like(b), b
    f = library.where(f < math.inf, f, 0.0)  # a row of weight 0 may be empty
    rows, columns = _products(_kernel(library, S, f, None, plan))
    u = _divided(library, a, rows(v), positive)
    column = columns(u)
    if bool((column < LEAST).any()):  # a column is lost: the first row step in the log domain, and its mend
        f = _log_step(library, S, library.log(b), a)
        g = _log_step(library, S.swapaxes(-1, -2), f, b)
        rows, columns = _products(_kernel(library, S, f, g, plan))
        v = library.ones_like(b)
        u = _divided(library, a, rows(v), positive)
        column = columns(u)
    omega, before, iterations, steps = 1.0, math.inf, 0, PAUSE
    while True:
        residual = abs(b - v * column).sum(-1)
        worst = float(residual.max())
        if iterations >= max_iterations or worst <= tol:
            plan *= u[..., :, None]
            plan *= v[..., None, :]
            return f + library.log(u), g + library.log(v), iterations, residual
        rate = (worst / before) ** (1 / steps)
        if positive:  # a power of 0 / 0 is none
            omega = _relaxation(omega, rate, worst)
        needed = math.ceil(math.log(tol / worst) / math.log(rate)) if 0 < rate < 1 else PAUSE
        before, steps = worst, min(PAUSE, needed, max_iterations - iterations)
        for left in reversed(range(steps)):
            v = _scaled(v, _divided(library, b, column, positive), omega)
            u = _scaled(u, _divided(library, a, rows(v), positive), omega if left else 1.0)  # end on rows
            column = columns(u)
        iterations += steps
        if any(_far(each if positive else library.where(each > 0, each, 1.0)) for each in (u, v)):
            f, g = f + library.log(u), g + library.log(v)
            rows, columns = _products(_kernel(library, S, f, g, plan))
            u, v = library.ones_like(f), library.ones_like(g)
            column = columns(u)


def _kernel(library: ModuleType, S: Array, f: Array, g: Array | None, out: Array) -> Array:
    """e^(S + f_i + g_j), put in place; without g it is zero."""
    library.add(S, f[..., :, None], out=out)
    if g is not None:
        out += g[..., None, :]
    return library.exp(out, out=out)


def _products(K: Array) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
    """x -> K x and x -> K^T x."""
    if K.ndim == 2:
        return K.__matmul__, K.T.__matmul__
    return lambda x: (K @ x[..., None])[..., 0], lambda x: (x[..., None, :] @ K)[..., 0, :]


def _relaxation(omega: float, rate: float, residual: float) -> float:
    """omega from the rate of the batch's worst residual over the last iterations; back to 1 where it has grown."""
    if not rate < 1:
        return 1.0
    return float(optimal_relaxation(rate)) if omega == 1 and rate > STEADY and residual < 0.1 else omega


def _log_step(library: ModuleType, S: Array, g: Array, a: Array) -> Array:
    scores = S + g[..., None, :]
    largest = library.amax(scores, -1)
    largest = library.where(largest > -math.inf, largest, 0.0)
    sums = library.exp(scores - largest[..., None]).sum(-1)
    return library.where(a > 0, library.log(a) - largest - library.log(sums), -math.inf)


def _divided(library: ModuleType, weights: Array, sums: Array, positive: bool) -> Array:
    return weights / sums if positive else library.where(weights > 0, weights / sums, 0.0)


def _scaled(old: Array, new: Array, omega: float) -> Array:
    return new if omega == 1 else (new / old) ** omega * old


def _far(u: Array) -> bool:
    """Whether a scaling leaves [e^-ABSORB, e^ABSORB]."""
    return float(u.max()) > math.exp(ABSORB) or float(u.min()) < math.exp(-ABSORB)
