"""Attention as a memory: one step from a damaged pattern, and how many other patterns it bears.

symbol     name       meaning                                               axes
x_1, x_j   patterns   stored patterns on the sphere of radius sqrt(d)       (..., K + 1, d)
xi         cue        the state from which one step is made, of that length (..., d)
omega      overlap    x_1 . xi / d, the cosine of cue and stored pattern    scalar
K          K          number of OTHER patterns                              scalar
beta       beta       inverse temperature, scores beta x_j . xi             scalar

The damage of a step is sin^2 of the angle between answer and stored pattern over that between cue and stored pattern:
1 for a step that does nothing, 0 for a perfect repair.
"""

from typing import Literal, get_args

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy import special
from torch import Tensor

from derived.lab.checks import check_choice, check_count, check_one_dtype, check_positive, check_within

from .checks import check_columns, check_matrix

Ensemble = Literal["sphere", "signs"]
ENSEMBLES = get_args(Ensemble)


def recall(
    cue: Float[Tensor, "*batch d"], patterns: Float[Tensor, "*batch k d"], beta: float | None = None
) -> Float[Tensor, "*batch d"]:
    """One step of attention from ``cue``, with the patterns as keys and values.

    Without ``beta`` it is linear attention, (1/d) sum_j (x_j . xi) x_j; with it softmax attention at that inverse
    temperature. Raises ValueError for axes that do not fit, NaN and beta <= 0. [prior]

    >>> patterns = torch.tensor([[2.0, 0.0], [0.0, 2.0]])
    >>> recall(torch.tensor([1.0, 0.5]), patterns)  # orthogonal patterns: each part of the cue is kept
    tensor([2., 1.])
    >>> recall(torch.tensor([1.0, 0.5]), patterns, beta=1.0)  # weights e^2 and e^1 over their sum
    tensor([1.4621, 0.5379])
    """
    check_matrix("patterns", patterns)
    check_one_dtype(cue=cue, patterns=patterns)
    row = cue.unsqueeze(-2)
    check_matrix("cue", row)
    check_columns("cue", row, "patterns", patterns)
    scores = row @ patterns.mT
    if beta is None:
        weights = scores / patterns.shape[-1]
    else:
        check_positive("beta", beta)
        weights = torch.softmax(beta * scores, dim=-1)
    return (weights @ patterns).squeeze(-2)


def across(answer: Float[Tensor, "*batch d"], pattern: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
    """sin^2 of the angle between an answer and a pattern.

    >>> across(torch.tensor([1.0, 1.0]), torch.tensor([0.0, 3.0]))
    tensor(0.5000)
    """
    along = (answer * pattern).sum(dim=-1) ** 2
    return 1 - along / (answer.square().sum(dim=-1) * pattern.square().sum(dim=-1))


def random_patterns(
    *shape: int, ensemble: Ensemble = "sphere", generator: torch.Generator, dtype: torch.dtype = torch.float64
) -> Tensor:
    """Patterns of length sqrt(d), d the last axis: uniform on the sphere, or fair signs."""
    check_choice("ensemble", ensemble, ENSEMBLES)
    drawn = torch.randn(*shape, generator=generator, dtype=dtype, device=generator.device)
    return drawn.sign() if ensemble == "signs" else drawn.mul_(shape[-1] ** 0.5 / drawn.norm(dim=-1, keepdim=True))


def damaged(
    pattern: Float[Tensor, "*batch d"], overlap: float, generator: torch.Generator
) -> Float[Tensor, "*batch d"]:
    """A cue of the pattern's length at a given overlap with it, in a random direction otherwise."""
    check_within("overlap", overlap, -1, 1)
    noise = torch.randn(pattern.shape, generator=generator, dtype=pattern.dtype, device=pattern.device)
    square = pattern.square().sum(dim=-1, keepdim=True)
    noise = noise - (noise * pattern).sum(dim=-1, keepdim=True) / square * pattern
    noise = noise * (square.sqrt() / noise.norm(dim=-1, keepdim=True))
    return overlap * pattern + (1 - overlap**2) ** 0.5 * noise


# Linear attention -----------------------------------------------------------------------------------------------------


def linear_moments(d: int, K: int, overlap: float) -> tuple[float, float]:
    """E <answer, x_1> / d and E |answer|^2 / d of one linear step, exactly, see `ols-memory`. [ours]

    omega (1 + K/d) and omega^2 (1 + 2K/d) + (K/d) (1 + (K-1)/d).
    """
    check_count("d", d)
    check_count("K", K)
    a = K / d
    return overlap * (1 + a), overlap**2 * (1 + 2 * a) + a * (1 + (K - 1) / d)


def linear_load(overlap: ArrayLike) -> np.ndarray:
    """The K/d up to which one linear step halves sin^2 of the angle, for large d. [ours]

    With q = omega^2, sin^2 after the step is (a + (1-q) a^2) / (q + (1+2q) a + a^2), and the condition is
    (1-q)/2 a^2 + (1 - (1-q)(1+2q)/2) a <= q (1-q) / 2.

    >>> round(float(linear_load(0.8**0.5)), 4)
    0.1066
    """
    overlap = np.asarray(overlap, dtype=np.float64)
    check_within("overlap", overlap, 0, 1)
    q = overlap**2
    half, middle, right = (1 - q) / 2, 1 - (1 - q) * (1 + 2 * q) / 2, q * (1 - q) / 2
    return 2 * right / (middle + np.sqrt(middle**2 + 4 * half * right))


# Softmax attention ----------------------------------------------------------------------------------------------------


def crowd_overlap(beta: ArrayLike) -> np.ndarray:
    """omega_*, the overlap with the cue at which most of the weight of random patterns on the sphere lies."""
    beta = np.asarray(beta, dtype=np.float64)
    check_positive("beta", beta)
    return 2 * beta / (1 + np.sqrt(1 + 4 * beta**2))


def softmax_rate(beta: ArrayLike, overlap: ArrayLike = 1.0, ensemble: Ensemble = "sphere") -> np.ndarray:
    """The rate of ln K in d up to which a stored pattern keeps the softmax weight, from a cue at ``overlap``.

    On the sphere beta omega - max_u [beta u + ln(1 - u^2) / 2]; for signs beta omega - ln cosh beta, asked at the
    pattern itself. Raises ValueError for beta <= 0. [prior: Lucibello and Mezard 2024; derivation ours]

    >>> [round(float(softmax_rate(1.0, ensemble=ensemble)), 4) for ensemble in ("sphere", "signs")]
    [0.6226, 0.5662]
    """
    check_choice("ensemble", ensemble, ENSEMBLES)
    beta, overlap = np.asarray(beta, dtype=np.float64), np.asarray(overlap, dtype=np.float64)
    u = crowd_overlap(beta)
    crowd = beta * u + 0.5 * np.log1p(-(u**2)) if ensemble == "sphere" else np.log(np.cosh(beta))
    return beta * overlap - crowd


def crowd_weight(d: int, beta: float, ensemble: Ensemble = "sphere") -> float:
    """ln E e^{beta x . xi} of a random pattern x, exactly at every d: a Bessel function, or d ln cosh beta for signs.

    On the sphere the overlap u has the density proportional to (1 - u^2)^((d-3)/2), so the mean is
    Gamma(d/2) (2 / (beta d))^{d/2 - 1} I_{d/2 - 1}(beta d). [prior; use ours]
    """
    check_count("d", d, least=2)
    check_positive("beta", beta)
    check_choice("ensemble", ensemble, ENSEMBLES)
    if ensemble == "signs":
        return float(d * np.log(np.cosh(beta)))
    order, z = d / 2 - 1, beta * d
    bessel = special.ive(order, z)
    if bessel == 0:
        raise ValueError(f"d = {d} is too large at beta = {beta}: a Bessel function underflows; use softmax_rate")
    return float(special.gammaln(d / 2) - order * np.log(z / 2) + np.log(bessel) + z)
