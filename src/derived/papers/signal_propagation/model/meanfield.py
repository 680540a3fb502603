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
K^{b,0}                     what a gradient common to all tokens of h^b adds to J^{b,0}         (..., depth + 1)
sigma         sigma         sigma_Q sigma_K, the sharpness of attention; 0 is uniform              (...)
f, g          f, g          E sum_c A_ac^2 and E sum_c A_ac A_a'c                              (...)

J grows beyond any float for deep stacks, so log J and K / J are what is computed; J and K are properties.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import ArrayLike

from derived.lab.checks import check_at_least, check_choice, check_count

from .checks import check_moments, check_tokens
from .kernels import NormKernel
from .softmax import AttentionWeights, first_order, softmax_terms

OutputGradient = Literal["independent", "pooled"]
Weights = Callable[[ArrayLike, ArrayLike, ArrayLike, ArrayLike], AttentionWeights]  # at q~, p~, n, sigma


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


def _exponential(log_J: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.exp(log_J)


def _times(ratio: np.ndarray, J: np.ndarray) -> np.ndarray:
    return np.where(ratio == 0, 0.0, ratio * np.where(ratio == 0, 0.0, J))


def propagate(
    q0: ArrayLike,
    p0: ArrayLike,
    *,
    kernel: NormKernel,
    a: ArrayLike,
    s: ArrayLike,
    n: ArrayLike,
    depth: int,
    sigma: ArrayLike = 0.0,
    output_gradient: OutputGradient = "independent",
    cross_token: bool = True,
    weights: Weights = first_order,
) -> MeanFieldTrajectory:
    r"""Run the recurrences of (q, p) and of (J, K) through ``depth`` blocks, for all curves at once.

    Forward, with m = p~ + (q~ - p~) f and m' = p~ + (q~ - p~) g: q += a m, p += a m' (attention), then
    q += (s/2) q~, p += s q~ kappa(p~/q~) (MLP). Backward, (J, K)^B = (1, 0), or (1, 1) if ``pooled``:
    J <- (1 + (s/2) q^) J, K <- (1 + s kappa'(rho~) p^) K (MLP), then J += a q^ (JJ J + JK K) and
    K += a p^ (KJ J + KK K) (attention).

    ``sigma`` = sigma_Q sigma_K: 0 is uniform attention, f = g = 1/n, JJ = KJ = 1/n, JK = KK = (n-1)/n; else the terms
    of first order in sigma^2, the derivative of softmax included. ``weights`` gives the six numbers at (q~, p~, n,
    sigma) in another way, as ``softmax_growth`` does. n = math.inf takes many tokens first. With ``cross_token=False``
    K is dropped, which is wrong at finite n and here for comparison.

    Shapes: q0, p0, a, s, n, sigma and the kernel's alpha broadcast to (...); returns arrays (..., depth + 1). Raises
    ValueError for depth < 1, n < 2, a, s, sigma < 0, q <= 0, p outside [-q/(n-1), q]. [repo; exact weights, the
    derivative of softmax and finite-n forward terms ours]

    >>> from derived.papers.signal_propagation import ErfKernel
    >>> path = propagate(1.0, 0.2, kernel=ErfKernel([0.5, 1.0]), a=0.1, s=0.4, n=np.inf, depth=12)
    >>> path.J_backward[:, 0].round(2)
    array([1.64, 2.94])
    """
    given = _checked(a, s, n, sigma, depth, output_gradient, cross_token)
    q, p = np.asarray(q0, dtype=float), np.asarray(p0, dtype=float)
    check_moments(q, p, given[2])
    shape = np.broadcast_shapes(*(np.shape(x) for x in (q, p, *given, getattr(kernel, "alpha", 0.0))))
    path = np.empty((6, depth + 1, *shape))
    path[0, 0], path[1, 0] = q, p
    path[2:, 0], path[2, depth], path[3, depth] = 0.0, 0.0, output_gradient == "pooled"
    _run(path, kernel, given, cross_token, weights)
    return MeanFieldTrajectory(*np.moveaxis(path, 1, -1))


def softmax_growth(
    q0: float,
    p0: float,
    *,
    kernel: NormKernel,
    a: float,
    s: float,
    n: int,
    sigma: float,
    depth: int,
    draws: int = 400,
    output_gradient: OutputGradient = "independent",
    generator: torch.Generator,
) -> MeanFieldTrajectory:
    """The recurrences with all that softmax attention adds, at any sigma = sigma_Q sigma_K: one curve. [ours]

    The six weights of each block are means over ``draws`` tables of logits; the next block gets the mean stream.

    >>> from derived.papers.signal_propagation import LayerNormKernel
    >>> sizes = {"a": 1.0, "s": 1.0, "n": 8, "sigma": 1.0, "depth": 2}
    >>> softmax_growth(1.0, 0.2, kernel=LayerNormKernel(), **sizes, generator=torch.Generator()).J_backward.shape
    (3,)
    """

    def sampled(q, p, n, sigma):
        found = softmax_terms(float(q), float(p), int(n), float(sigma), draws=draws, generator=generator)
        return AttentionWeights(*found)

    common = {"kernel": kernel, "a": a, "s": s, "n": n, "sigma": sigma, "depth": depth}
    return propagate(q0, p0, **common, output_gradient=output_gradient, weights=sampled)


def _run(path: np.ndarray, kernel: NormKernel, given: list[np.ndarray], cross_token: bool, weights: Weights) -> None:
    """Fill ``path`` (6, depth + 1, ...) from its starting values: the stream block by block, then all that rests on it."""
    a, s, n, sigma = given
    depth, curves = path.shape[1] - 1, path.shape[2:]
    hats, both, factors = (np.empty((*lead, depth, *curves)) for lead in ((4,), (), (6,)))
    frozen = weights is first_order and not np.any(sigma)
    if frozen:  # the same numbers in every block
        for factor, value in zip(factors, first_order(1.0, 0.0, n, 0.0), strict=True):
            factor[:] = value
    q, p = path[:2, 0]
    for b in range(depth):
        q_tilde, p_tilde, hats[0, b], hats[1, b] = kernel.moments(q, p)
        if not frozen:
            for factor, value in zip(factors, weights(q_tilde, p_tilde, n, sigma), strict=True):
                factor[b] = value
        spread = q_tilde - p_tilde
        q, p = q + a * (p_tilde + spread * factors[0, b]), p + a * (p_tilde + spread * factors[1, b])
        # MLP, at the new (q, p): kappa and kappa' of rho~ = p~/q~, with arccos rho~ computed once for both.
        q_tilde, p_tilde, hats[2, b], hats[3, b] = kernel.moments(q, p)
        rho = np.minimum(np.maximum(p_tilde / q_tilde, -1.0), 1.0)
        both[b] = half = (np.pi - np.arccos(rho)) * (1 / (2 * np.pi))
        scale = s * q_tilde
        q, p = q + 0.5 * scale, p + scale * (rho * half + np.sqrt(1 - rho * rho) * (1 / (2 * np.pi)))
        path[0, b + 1], path[1, b + 1] = q, p
    query, pair, (JJ, JK, KJ, KK) = a * hats[0], a * hats[1], factors[2:]
    gain_J, gain_K = (0.5 * s) * hats[2], s * both * hats[3]
    # M_attention diag(M_mlp) - I: small entries are kept as they are, so that log1p loses none of their digits.
    step = [query * JJ * (1 + gain_J) + gain_J, query * JK * (1 + gain_K), pair * KJ * (1 + gain_J)]
    step = np.array([*step, pair * KK * (1 + gain_K) + gain_K])
    if not cross_token:
        step[1:3] = 0.0
    # Forward the product grows on the other side: J^{b+1,0} = J^{b,0} M, so the transposed step advances (J, K).
    _advance(path[4:], step[[0, 2, 1, 3]])
    _advance(path[2:4, ::-1], step[:, ::-1])


def _checked(a, s, n, sigma, depth, output_gradient, cross_token) -> list[np.ndarray]:
    check_choice("output_gradient", output_gradient, ("independent", "pooled"))
    check_count("depth", depth)
    given = [np.asarray(x, dtype=float) for x in (a, s, n, sigma)]
    for name, value in zip(("a", "s", "sigma"), (given[0], given[1], given[3]), strict=True):
        check_at_least(name, value, 0.0)
    check_tokens(given[2])
    if output_gradient == "pooled" and not cross_token:
        raise ValueError("a pooled output gradient lives in K; give cross_token=True, or output_gradient='independent'")
    return given


def _advance(path: np.ndarray, step: np.ndarray) -> None:
    """(J, K) <- (I + m)(J, K) for all steps (4, depth, ...), J = e^{path[0]}, K = path[1] J: no overflow at any depth."""
    m11, m12, m21, m22 = step
    ratio, base, gain = path[1, 0], 1 + m11, 1 + m22
    for b in range(len(m11)):
        path[1, b + 1] = ratio = (m21[b] + gain[b] * ratio) / (base[b] + m12[b] * ratio)
    path[0, 1:] = np.cumsum(np.log1p(m11 + m12 * path[1, :-1]), axis=0)
