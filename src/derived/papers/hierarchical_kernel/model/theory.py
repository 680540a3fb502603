"""Theory of the score tables: cost, positive semidefiniteness, the two parts of a table, what is contained.

symbol      name              meaning                                                     axes
T, L        T, levels         length, number of levels (the finest included)              integers
T_l         level_rows        T / 2^l, rounded up                                         integers
M_l         M                 bilinear form W_Q^(l) W_K^(l)T / sqrt(d_k)                  (..., d, d)
sym(M)      symmetric         (M + M^T) / 2                                               (..., d, d)
S_s, S_a    symmetric, anti-  (S + S^T) / 2, (S - S^T) / 2                                (..., T, T)

All of it is about the layer of ``layers``, since the paper's proofs were not visible. [ours]
"""

import math
from fractions import Fraction
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from derived.lab.checks import check_at_least, check_count, check_finite

from .pyramid import num_rows, pyramid

# --- cost ---------------------------------------------------------------------------------------------------------


def level_rows(T: int, levels: int) -> list[int]:
    """T_0, ..., T_{L-1}: T / 2^l rounded up, as causal padding needs."""
    check_count("levels", levels)
    return [num_rows(T, l) for l in range(levels)]


def entry_ratio(T: int, levels: int) -> Fraction:
    """sum_l T_l^2 / T^2, exactly: entries of all score tables over those of one. [paper: 1.3125 at L = 3, below 4/3]

    >>> entry_ratio(1024, 3), entry_ratio(3, 2)
    (Fraction(21, 16), Fraction(13, 9))
    """
    return Fraction(sum(rows**2 for rows in level_rows(T, levels)), T**2)


class Products(NamedTuple):
    """Multiply-adds of one single-head layer, by part."""

    projections: int  # queries and keys of every level
    downsampling: int  # convolutions of kernel ``kernel``
    scores: int  # query-key products
    values: int  # value and output projections, of level 0 only
    averaging: int  # attention times values

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self)


def attention_flops(T: int, d: int, d_k: int, levels: int, *, kernel: int = 2) -> Products:
    """Multiply-adds of a layer without a mask: T_l (2 d d_k + T_l d_k + kernel d^2) per level, T (2 d^2 + T d) once.

    Level 0 has no kernel. Each level's products are counted once; one fused attention has L T^2 d_k in the place of
    ``scores``. Values have width d. Additions of the mixture and the softmax are not counted. ValueError for sizes < 1.
    [ours]

    >>> three, one = (attention_flops(1024, 64, 64, levels) for levels in (3, 1))
    >>> three.scores / one.scores, round(three.total / one.total, 3)
    (1.3125, 1.222)
    """
    for name, count in (("d", d), ("d_k", d_k), ("kernel", kernel)):
        check_count(name, count)
    rows = level_rows(T, levels)
    return Products(
        projections=sum(2 * each * d * d_k for each in rows),
        downsampling=sum(kernel * each * d * d for each in rows[1:]),
        scores=sum(each**2 * d_k for each in rows),
        values=2 * T * d * d,
        averaging=T**2 * d,
    )


# --- positive semidefiniteness ------------------------------------------------------------------------------------


class Split(NamedTuple):
    """A matrix as the sum of a symmetric and an antisymmetric one."""

    symmetric: Tensor  # (..., n, n), mutual attention
    antisymmetric: Tensor  # (..., n, n), direction


def symmetric_antisymmetric(S: Float[Tensor, "*batch n n"]) -> Split:
    """The only symmetric and antisymmetric matrices with S = S_s + S_a: S_s = (S + S^T)/2 and S_a = (S - S^T)/2.

    They are orthogonal in Frobenius' inner product. Shapes (*batch, n, n). ValueError for numbers that are not finite.
    [paper: the decomposition]

    >>> symmetric_antisymmetric(torch.tensor([[1.0, 4.0], [0.0, 1.0]])).antisymmetric
    tensor([[ 0.,  2.],
            [-2.,  0.]])
    """
    check_finite("S", S)
    return Split((S + S.mT) / 2, (S - S.mT) / 2)


def bilinear_form(
    W_Q: Float[Tensor, "*batch d d_k"], W_K: Float[Tensor, "*batch d d_k"]
) -> Float[Tensor, "*batch d d"]:
    """M = W_Q W_K^T / sqrt(d_k), (*batch, d, d), so that S = X M X^T."""
    return W_Q @ W_K.mT / math.sqrt(W_Q.shape[-1])


class Inertia(NamedTuple):
    """Numbers of positive, negative and zero eigenvalues of a symmetric part."""

    positive: Tensor  # (...,) int64
    negative: Tensor
    zero: Tensor


def inertia(M: Float[Tensor, "*batch n n"]) -> Inertia:
    """The inertia of sym(M). An eigenvalue within n eps of the largest in modulus counts as zero: the backward error of
    a symmetric eigensolver. A head with 2 d_k <= d has (d_k, d_k, d - 2 d_k) unless its weights are degenerate. [ours]
    """
    eigenvalues = torch.linalg.eigvalsh(symmetric_antisymmetric(M).symmetric)
    n = eigenvalues.shape[-1]
    threshold = n * torch.finfo(M.dtype).eps * eigenvalues.abs().amax(dim=-1, keepdim=True)
    positive, negative = (eigenvalues > threshold).sum(dim=-1), (eigenvalues < -threshold).sum(dim=-1)
    return Inertia(positive, negative, n - positive - negative)


def tied_keys(
    W_Q: Float[Tensor, "*batch d d_k"], skew: Float[Tensor, "*batch d_k d_k"], root: Float[Tensor, "*batch d_k d_k"]
) -> Float[Tensor, "*batch d d_k"]:
    """W_K = W_Q R with R = root root^T + (skew - skew^T): every R with R + R^T psd is of this form.

    These keys, and for W_Q of full column rank no others, make sym(W_Q W_K^T) positive semidefinite. [ours]
    """
    return W_Q @ (root @ root.mT + skew - skew.mT)


def reaching_tokens(targets: Float[Tensor, "L d"], T: int, i: int) -> Float[Tensor, "T d"]:
    """The smallest X whose causal averages have x^(l)_{floor(i/2^l)} = targets[l] for every level at once.

    It exists for i >= 2^(L-1): the windows that end in rows floor(i/2^l) have 2^l tokens, more than all shorter ones
    together, so they are independent. With it a negative direction of one M_l becomes one of S. Raises ValueError for
    another i. [ours]
    """
    levels = len(targets)
    if not 2 ** (levels - 1) <= i < T:
        raise ValueError(f"i = {i} with {levels} levels and T = {T}; give 2^(L-1) = {2 ** (levels - 1)} <= i < T")
    averages = pyramid(torch.eye(T, dtype=targets.dtype), levels)  # as matrices, (T_l, T)
    rows = torch.stack([each[i >> l] for l, each in enumerate(averages)])
    return torch.linalg.pinv(rows).to(targets) @ targets


# --- what the layer contains --------------------------------------------------------------------------------------


def channel_gap(kernels: Float[Tensor, "*batch lags channels"]) -> Float[Tensor, "*batch"]:
    """min over w and p >= 0 of sum_mc (p_m w_c - kappa_mc)^2: how far one head stays from a kernel for each channel.

    One attention serves all channels, so a head's coefficients p_m w_c have rank one. Kernels kappa >= 0 have leading
    singular vectors of one sign, so the minimum is the sum of the other squared singular values: 0 iff all kernels are
    multiples of one. ValueError for a negative tap. [ours]
    """
    check_at_least("kernels", kernels, 0)
    return torch.linalg.svdvals(kernels)[..., 1:].square().sum(dim=-1)
