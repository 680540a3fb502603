"""The mean-field engine: (q, p), the averaged partial Jacobian norm J and its cross-token companion K, block by block.

symbol        name          meaning                                                            axes
b             index         blocks before it, 0 .. depth; a block is attention, then MLP       last axis
q, p          q, p          |h_a|^2 / d and h_a . h_c / d (a != c) of the residual stream       (..., depth + 1)
a             a             (sigma_O sigma_V)^2                                                (...)
s             s             (sigma_2 sigma_1)^2                                                (...)
n             n             number of tokens, or math.inf                                       (...)
J^{B,b}       J_backward    E |dh^B/dh^b|_F^2 / (n d)                                          (..., depth + 1)
K^{B,b}       K_backward    sum_{a != c} E tr[(dh^B/dh_a)^T dh^B/dh_c] / (n (n - 1) d)          (..., depth + 1)
J^{b,0}       J_forward     the same with the source fixed and the target moving               (..., depth + 1)
K^{b,0}       K_forward     what a gradient common to all tokens of h^b adds to J^{b,0}         (..., depth + 1)
f, g          attention_overlaps   E sum_c A_ac^2 and E sum_c A_ac A_a'c                        (...)

J grows beyond any float for deep stacks, so log J and K / J are what is computed; J and K are properties.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from derived.lab.checks import check_at_least, check_choice, check_count

from .checks import check_moments, check_tokens
from .kernels import NormKernel

Attention = Literal["uniform", "annealed", "infinite"]
OutputGradient = Literal["independent", "pooled"]
CHUNK = 5000  # curves at a time: numpy's cost per call is spread, their intermediate arrays stay in the cache


@dataclass(frozen=True)
class MeanFieldTrajectory:
    """(q, p), the averaged partial Jacobian norm J and its companion K at every block: what ``propagate`` returns.

    J^{B,b} = E |dh^B/dh^b|_F^2 / (n d) backward, J^{b,0} forward; every array is (..., depth + 1), the last axis the
    number b of blocks before the stream. J and K may overflow; their logarithm and ratio do not. [repo]

    >>> from derived.papers.signal_propagation import LayerNormKernel
    >>> path = propagate(1.0, 0.2, kernel=LayerNormKernel(), a=1.0, s=1.0, n=12, depth=2)
    >>> path.rho.round(3), path.J_backward.round(3)
    (array([0.2  , 0.413, 0.552]), array([2.003, 1.282, 1.   ]))
    """

    q: np.ndarray
    p: np.ndarray
    log_J_backward: np.ndarray  # log J^{B,b}
    ratio_backward: np.ndarray  # K^{B,b} / J^{B,b}, in [-1/(n-1), 1]
    log_J_forward: np.ndarray  # log J^{b,0}
    ratio_forward: np.ndarray  # K^{b,0} / J^{b,0}

    @property
    def rho(self) -> np.ndarray:
        """The overlap p / q."""
        return self.p / self.q

    @property
    def J_backward(self) -> np.ndarray:
        """J^{B,b}; infinite where it exceeds the largest float (use ``log_J_backward``)."""
        return _exponential(self.log_J_backward)

    @property
    def K_backward(self) -> np.ndarray:
        """K^{B,b} = ratio J^{B,b}."""
        return _times(self.ratio_backward, self.J_backward)

    @property
    def J_forward(self) -> np.ndarray:
        """J^{b,0}."""
        return _exponential(self.log_J_forward)

    @property
    def K_forward(self) -> np.ndarray:
        """K^{b,0}: J^{b,0} + K^{b,0} is the amplification of a gradient common to all tokens of h^b."""
        return _times(self.ratio_forward, self.J_forward)


def _exponential(log_J: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.exp(log_J)


def _times(ratio: np.ndarray, J: np.ndarray) -> np.ndarray:
    return np.where(ratio == 0, 0.0, ratio * np.where(ratio == 0, 0.0, J))


def attention_overlaps(
    q_tilde: ArrayLike, p_tilde: ArrayLike, n: ArrayLike, sigma_qk: ArrayLike
) -> tuple[np.ndarray, np.ndarray]:
    """The annealed f = 1/(1 + (n-1) e^{-t q~}) and g = 1/(1 + (n-1) e^{-t p~}), t = sigma_qk^2 (q~ - p~).

    f = E sum_c A_ac^2 and g = E sum_c A_ac A_a'c for softmax attention; sigma_qk = sigma_Q sigma_K. Right for many
    tokens whose logits vary little; sigma_qk = 0 gives f = g = 1/n. [repo]
    """
    n = np.asarray(n, dtype=float)
    spread = np.square(sigma_qk) * np.subtract(q_tilde, p_tilde)
    return 1 / (1 + (n - 1) * np.exp(-spread * q_tilde)), 1 / (1 + (n - 1) * np.exp(-spread * p_tilde))


def propagate(
    q0: ArrayLike,
    p0: ArrayLike,
    *,
    kernel: NormKernel,
    a: ArrayLike,
    s: ArrayLike,
    n: ArrayLike,
    depth: int,
    attention: Attention = "uniform",
    output_gradient: OutputGradient = "independent",
    cross_token: bool = True,
    sigma_qk: ArrayLike | None = None,
) -> MeanFieldTrajectory:
    r"""Run the recurrences of (q, p) and of (J, K) through ``depth`` blocks, for all curves at once.

    Forward, with m = p~ + (q~ - p~) f and m' = p~ + (q~ - p~) g: q += a m, p += a m' (attention), then
    q += (s/2) q~, p += s q~ kappa(p~/q~) (MLP). Backward, (J, K)^B = (1, 0), or (1, 1) if ``pooled``:
    J <- (1 + (s/2) q^) J, K <- (1 + s kappa'(rho~) p^) K (MLP), then (J, K) <- M (J, K) (attention) with
    M = I + a [[q^ f, q^ (n-1) g], [p^ (1-f)/(n-1), p^ (1-g)]].

    ``attention``: "uniform" f = g = 1/n, weights 1/n and (n-1)/n; "annealed" the softmax's f and g at
    ``sigma_qk`` = sigma_Q sigma_K, its derivative neglected; "infinite" n -> infinity first, f = g = 0. With
    ``cross_token=False`` K is dropped (J <- (1 + a q^ f) J), which is wrong at finite n and here for comparison.

    Shapes: q0, p0, a, s, n, sigma_qk and the kernel's alpha broadcast to (...); returns arrays (..., depth + 1).
    Raises ValueError for depth < 1, n < 2, a, s < 0, q <= 0, p outside [-q/(n-1), q]. [repo; exact weights,
    annealed backward weights and finite-n forward terms ours]

    >>> from derived.papers.signal_propagation import ErfKernel
    >>> path = propagate(1.0, 0.2, kernel=ErfKernel([0.5, 1.0]), a=0.1, s=0.4, n=math.inf, depth=12)
    >>> path.J_backward[:, 0].round(2)
    array([1.64, 2.94])
    """
    a, s, n, sigma_qk = _checked(a, s, n, depth, attention, output_gradient, cross_token, sigma_qk)
    q, p = np.asarray(q0, dtype=float), np.asarray(p0, dtype=float)
    if attention == "infinite":
        n = np.full_like(n, np.inf)
    check_moments(q, p, n)
    given = (a, s, n) if sigma_qk is None else (a, s, n, sigma_qk)
    shape = np.broadcast_shapes(*(np.shape(x) for x in (q, p, *given, getattr(kernel, "alpha", 0.0))))
    given = [np.broadcast_to(x, shape).reshape(-1) if x.ndim else x for x in given]
    path = np.empty((6, depth + 1, math.prod(shape)))
    path[0, 0], path[1, 0] = (np.broadcast_to(x, shape).reshape(-1) for x in (q, p))
    path[2:, 0], path[2, depth], path[3, depth] = 0.0, 0.0, output_gradient == "pooled"
    steps = np.empty((depth, 4, min(CHUNK, path.shape[-1])))
    for first in range(0, path.shape[-1], CHUNK):
        piece = slice(first, first + CHUNK)
        part = [x[piece] if x.ndim else x for x in given]
        _run(path[..., piece], steps, _part(kernel, shape, piece), part, cross_token)
    return MeanFieldTrajectory(*np.moveaxis(path, 1, -1).reshape(6, *shape, depth + 1))


def _part(kernel: NormKernel, shape: tuple[int, ...], piece: slice) -> NormKernel:
    """The kernel of some of the flattened curves: what differs between curves is its attribute ``alpha``."""
    alpha = getattr(kernel, "alpha", None)
    return kernel if np.ndim(alpha) == 0 else kernel.at(np.broadcast_to(alpha, shape).reshape(-1)[piece])


def _run(path: np.ndarray, steps: np.ndarray, kernel: NormKernel, given: list[np.ndarray], cross_token: bool) -> None:
    """Fill ``path`` (6, depth + 1, curves) from its starting values: forward through the blocks, then back."""
    depth, curves = path.shape[1] - 1, path.shape[2]
    steps = steps[..., :curves]
    q, p = path[0, 0], path[1, 0]
    for b in range(depth):
        q, p = _block(q, p, kernel, given, cross_token, steps[b])
        path[0, b + 1], path[1, b + 1] = q, p
        m11, m12, m21, m22 = steps[b]
        # Forward the product grows on the other side: J^{b+1,0} = J^{b,0} M, so the transposed step advances (J, K).
        _advance(path[4:, b], path[4:, b + 1], m11, m21, m12, m22)
    for b in reversed(range(depth)):
        _advance(path[2:4, b + 1], path[2:4, b], *steps[b])


def _checked(a, s, n, depth, attention, output_gradient, cross_token, sigma_qk) -> tuple[np.ndarray, ...]:
    check_choice("attention", attention, ("uniform", "annealed", "infinite"))
    check_choice("output_gradient", output_gradient, ("independent", "pooled"))
    check_count("depth", depth)
    a, s, n = (np.asarray(x, dtype=float) for x in (a, s, n))
    check_at_least("a", a, 0.0)
    check_at_least("s", s, 0.0)
    check_tokens(n)
    if output_gradient == "pooled" and not cross_token:
        raise ValueError("a pooled output gradient lives in K; give cross_token=True, or output_gradient='independent'")
    if attention == "annealed":
        if sigma_qk is None:
            raise ValueError("annealed attention needs sigma_qk = sigma_Q sigma_K; give it, or attention='uniform'")
        sigma_qk = np.asarray(sigma_qk, dtype=float)
        check_at_least("sigma_qk", sigma_qk, 0.0)
        if not np.isfinite(n).all():
            raise ValueError("annealed attention needs finite n; give attention='infinite' for the limit")
    return a, s, n, sigma_qk if attention == "annealed" else None


def _block(q, p, kernel: NormKernel, given: list[np.ndarray], cross_token: bool, step: np.ndarray):
    """One block: returns the new (q, p) and writes M_attention diag(M_mlp) - I into ``step`` (4, ...)."""
    a, s, n, *sigma_qk = given
    q_tilde, p_tilde, q_hat, p_hat = kernel.moments(q, p)
    # Attention: m = p~ + (q~ - p~) f to q, m' = p~ + (q~ - p~) g to p; M - I = [[query f, query (n-1) g], [pair ..]].
    spread, query, pair = q_tilde - p_tilde, a * q_hat, a * p_hat
    if not sigma_qk:  # uniform attention: every weight is 1/n
        f = g = back = 1 / n
        others = 1 - f
        mixed = a * (p_tilde + spread * f)
        q, p = q + mixed, p + mixed
    else:
        f, g = attention_overlaps(q_tilde, p_tilde, n, *sigma_qk)
        others, back = (n - 1) * g, (1 - f) / (n - 1)
        q, p = q + a * (p_tilde + spread * f), p + a * (p_tilde + spread * g)
    # MLP, at the new (q, p): kappa and kappa' of rho~ = p~/q~, with arccos rho~ computed once for both.
    q_tilde, p_tilde, q_hat, p_hat = kernel.moments(q, p)
    rho = np.clip(p_tilde / q_tilde, -1.0, 1.0)
    both = (np.pi - np.arccos(rho)) * (1 / (2 * np.pi))
    gain_J, gain_K = (0.5 * s) * q_hat, s * both * p_hat
    up_J, up_K = 1 + gain_J, 1 + gain_K
    # M_attention diag(M_mlp) - I: small entries are kept as they are, so that log1p loses none of their digits.
    step[0] = query * f * up_J + gain_J
    step[1] = query * others * up_K if cross_token else 0.0
    step[2] = pair * back * up_J if cross_token else 0.0
    step[3] = pair * (1 - g) * up_K + gain_K
    scale = s * q_tilde
    return q + 0.5 * scale, p + scale * (rho * both + np.sqrt(1 - rho * rho) * (1 / (2 * np.pi)))


def _advance(old: np.ndarray, new: np.ndarray, m11, m12, m21, m22) -> None:
    """(J, K) <- (I + m)(J, K) for J = e^{old[0]}, K = old[1] J: no overflow at any depth."""
    ratio = old[1]
    growth = m11 + m12 * ratio
    np.add(old[0], np.log1p(growth), out=new[0])
    new[1] = (m21 + (1 + m22) * ratio) / (1 + growth)
