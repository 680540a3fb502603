"""The chain of Gram matrices alone: exact in distribution, at a cost that does not depend on the width d.

symbol         name           meaning                                                        axes
G              G              overlaps <x_i, x_j>                                             (R, n, n)
C              C              a factor, C C^T = G, k = min(n, d) columns                      (R, n, k)
T              bartlett       lower factor of a Wishart matrix of d degrees of freedom        (R, ..., q, min(q, dof))
Pi             Pi             attention probabilities                                         (R, H, n, n)
F              F              factor of sum_h Pi_h G Pi_h^T, q = min(n, H k) columns, k if H = 1   (R, n, q)

If X = C Q with orthonormal rows of Q, then X W is distributed as sigma_A C Xi with normal Xi (k, d), and
Xi Xi'^T = T Z in distribution: T from the QR factors of Xi^T, Z (., k) normal. Given the attention, the sum over heads of
sigma_V Pi_h X V_h^T is one Gaussian matrix with row covariance F F^T, so a single normal matrix serves all heads; its
part inside the span of the tokens is (., k) normal, its part outside enters by its Gram matrix alone, a Wishart matrix
of d - k degrees of freedom. [ours]
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from derived.lab.checks import check_at_least, check_count

from .checks import check_gram, check_step
from .heads import HeadLaw


@dataclass(frozen=True)
class Chain:
    """What a simulation recorded."""

    layers: tuple[int, ...]  # the recorded layers, 0 is the start
    tau: tuple[float, ...]  # eta^2 layer / H, the clock
    gram: Tensor  # (T, R, n, n)
    tokens: Tensor | None = None  # (T, R, n, d), where they were kept

    @property
    def mean_overlap(self) -> Tensor:
        """m = (1/n^2) sum_ij R_ij, (T, R)."""
        return self.gram.mean(dim=(-2, -1))


def bartlett(
    shape: Sequence[int], q: int, dof: int, *, generator: torch.Generator, dtype=torch.float64
) -> Float[Tensor, "..."]:
    """T (*shape, q, min(q, dof)) with T T^T a Wishart_q(I, dof) matrix, the Gram matrix of q normal vectors of R^dof.

    For dof >= q: T_ii^2 ~ chi^2 of dof - i degrees (i = 0 ..), normals below the diagonal; else the vectors themselves.
    """
    factory = {"generator": generator, "device": generator.device, "dtype": dtype}
    if dof < q:
        return torch.randn(*shape, q, dof, **factory)
    freedom = torch.arange(dof, dof - q, -1, device=generator.device, dtype=dtype)
    halves = (freedom / 2).expand(*shape, q).contiguous()
    T = torch.randn(*shape, q, q, **factory) * torch.ones(q, q, device=generator.device, dtype=dtype).tril(-1)
    T.diagonal(dim1=-2, dim2=-1).copy_((2 * torch._standard_gamma(halves, generator=generator)).sqrt())
    return T


def psd_factor(S: Float[Tensor, "*batch n n"], columns: int) -> Float[Tensor, "*batch n k"]:
    """C (*batch, n, columns) with C C^T = S, for positive semidefinite S of rank at most ``columns``; else ValueError.

    Cholesky where every matrix of the batch is regular, else by steps that take the largest remaining diagonal
    entry as pivot, so that singular matrices (coinciding tokens, uniform attention, n > d) keep full accuracy.
    """
    if columns == S.shape[-1]:
        C, failed = torch.linalg.cholesky_ex(S)
        if not failed.any():
            return C
    return pivoted_factor(S, columns)


def pivoted_factor(S: Float[Tensor, "*batch n n"], columns: int) -> Float[Tensor, "*batch n k"]:
    """Cholesky with diagonal pivoting, without carrying the permutation out; pivots at rounding level count as 0.

    ValueError where C C^T misses the diagonal of S by more than n^2 roundings of its largest entry, times 64.
    """
    n = S.shape[-1]
    left = S.diagonal(dim1=-2, dim2=-1).clone()
    nothing = n * torch.finfo(S.dtype).eps * left.amax(dim=-1, keepdim=True)
    C = S.new_zeros(*S.shape[:-1], columns)
    for j in range(columns):
        # Step j: the row with the largest remaining diagonal is the pivot; its column, less what is known, over sqrt.
        pivot, where = left.max(dim=-1, keepdim=True)
        rows = where.unsqueeze(-1)
        column = torch.take_along_dim(S, rows, dim=-2).squeeze(-2)
        known = torch.take_along_dim(C[..., :j], rows, dim=-2).squeeze(-2)
        column = column - (C[..., :j] @ known.unsqueeze(-1)).squeeze(-1)
        column = torch.where(pivot > nothing, column / pivot.clamp_min(torch.finfo(S.dtype).tiny).sqrt(), 0.0)
        C[..., j] = column
        left = left - column.square()
    if not (left.abs() <= 64 * n * nothing).all():
        raise ValueError(
            f"no factor of {columns} columns: the matrix is not positive semidefinite of rank <= {columns}"
        )
    return C


def attention_probabilities(
    C: Float[Tensor, "R n k"], law: HeadLaw, beta: float, H: int, *, generator: torch.Generator
) -> Float[Tensor, "R heads n n"]:
    """Pi_h, rows softmax(beta <A_h x_i, x_k>) for tokens with the factor C; one for all heads where it is uniform."""
    R, n, k = C.shape
    if not (beta and law.sigma_a):
        return C.new_full((R, 1, n, n), 1 / n)
    # Xi Xi'^T = T Z in distribution: with Xi^T = Q T^T (QR) the factor T is Bartlett's and Q^T Xi'^T is normal.
    T = bartlett((R, H), k, law.d, generator=generator, dtype=C.dtype)
    Z = torch.randn(R, H, T.shape[-1], k, generator=generator, device=generator.device, dtype=C.dtype)
    factor = C.unsqueeze(1)
    return torch.softmax(beta * law.sigma_a**2 * (factor @ (T @ (Z @ factor.mT))), dim=-1)


def value_factor(C: Tensor, Pi: Tensor, H: int, *, common: bool) -> Float[Tensor, "R n q"]:
    """F with F F^T = sum_h Pi_h G Pi_h^T; without common noise the diagonal of it, a value matrix for each token.

    Pi (R, H, n, n), or (R, 1, n, n) where all heads have one.
    """
    moved, alike = Pi @ C.unsqueeze(1), H // Pi.shape[1]
    if not common:
        return torch.diag_embed((alike * moved.square().sum(dim=(1, 3))).sqrt())
    if H == 1:
        return moved.squeeze(1)
    wide = moved.transpose(1, 2).flatten(2)
    n, k = C.shape[1:]
    return psd_factor(alike * wide @ wide.mT, n) if H * k > n else wide.repeat(1, 1, alike)  # rank up to min(n, H k)


def gram_step(
    G: Float[Tensor, "R n n"],
    eta: float | Float[Tensor, "R 1 1"],
    H: int,
    law: HeadLaw,
    beta: float,
    *,
    generator: torch.Generator,
    common: bool = True,
) -> Float[Tensor, "R n n"]:
    """The overlaps after one layer, given the overlaps G before it, exactly in distribution; eta may differ by replica. [ours]"""
    R, n, _ = G.shape
    k = min(n, law.d)
    C = psd_factor(G, k)  # the tokens in a basis of their span
    Pi = attention_probabilities(C, law, beta, H, generator=generator)
    F = eta * law.value_std / H * value_factor(C, Pi, H, common=common)
    q = F.shape[-1]
    # Of F Z, Z (q, d) normal: k columns lie in the span, the other d - k enter by their Gram matrix alone.
    inner = torch.randn(R, q, k, generator=generator, device=generator.device, dtype=G.dtype)
    moved = C + F @ inner
    if law.d > k:
        outer = F @ bartlett((R,), q, law.d - k, generator=generator, dtype=G.dtype)
        moved = torch.cat([moved, outer], dim=-1)
    moved = moved / torch.linalg.vector_norm(moved, dim=-1, keepdim=True)
    G = moved @ moved.mT
    G.diagonal(dim1=-2, dim2=-1).fill_(1.0)
    return G


def simulate_gram(
    G0: Float[Tensor, "R n n"],
    L: int,
    eta: float,
    H: int,
    law: HeadLaw,
    beta: float,
    *,
    generator: torch.Generator,
    record: Sequence[int] | None = None,
    common: bool = True,
) -> Chain:
    """L layers of the chain of Gram matrices: the distribution of the tokens' overlaps, at a cost independent of d. [ours]

    Shapes: G0 (R, n, n); memory and time O(R H n^3) for any d, n > d included. ``record`` lists layers, None the first
    and last. Errors: no Gram matrix of vectors in R^d, a step that overshoots.
    """
    layers = check_run(L, eta, H, law, beta, record)
    check_gram(G0, law.d)
    G, kept = G0, []
    for layer in range(L + 1):
        if layer:
            G = gram_step(G, eta, H, law, beta, generator=generator, common=common)
        if layer in layers:
            kept.append(G)
    return Chain(layers, tuple(eta**2 * layer / H for layer in layers), torch.stack(kept))


def check_run(L: int, eta: float, H: int, law: HeadLaw, beta: float, record: Sequence[int] | None) -> tuple[int, ...]:
    """The layers to record, in order; errors for bad counts, a bad temperature and a step that overshoots."""
    check_count("L", L, 0)
    check_count("H", H)
    check_at_least("beta", beta, 0)
    check_step(eta, H)
    layers = tuple(sorted({0, L} if record is None else {int(layer) for layer in record}))
    if not layers or layers[0] < 0 or layers[-1] > L:
        raise ValueError(f"record = {record}: layers between 0 and L = {L}, at least one")
    return layers
