"""What the experiments call geometry: Procrustes distortion, what noise makes of it, jump and spread, distances.

symbol   name            meaning                                                          axes
X, Y     X, Y            clouds: embeddings of clean and of perturbed inputs              (*b, n, p)
M        -               X_n^T Y_n, both centred and of norm one                          (*b, p, p)
D        -               Procrustes distortion, in [0, 1]                                 (*b,)
s        s               tr Sigma_E / tr Sigma_X, noise over signal                       any
r        r               share of positions that are perturbed                            any
L        L               positions in a sequence                                          any
J        J               mean square by which a struck token moves the sum of states      any
V        V               tr Cov of the pooled embeddings, between sequences               any
T        T               tr Cov of single states, over sequences and positions            any
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from derived.lab.checks import check_at_least, check_choice, check_finite, check_positive

METRICS = ("cosine", "euclidean")


def _unit(name: str, X: Tensor) -> Tensor:
    """The cloud with its mean at zero and its norm one."""
    check_finite(name, X)
    X = X.float() if X.dtype.itemsize < 4 else X  # torch has no singular values in half precision
    centred = X - X.mean(dim=-2, keepdim=True)
    norm = torch.linalg.matrix_norm(centred)[..., None, None]
    rounding = torch.finfo(X.dtype).eps * torch.linalg.matrix_norm(X)[..., None, None]
    if bool((norm <= 4 * rounding).any()):
        raise ValueError(f"{name} is a constant cloud: all points are equal, its norm is zero, it has no geometry")
    return centred / norm


def best_rotation(X: Float[Tensor, "*b n p"], Y: Float[Tensor, "*b n p"]) -> Float[Tensor, "*b p p"]:
    """R, R^T R = 1, with the least ||X R - Y||_F: U V^T of the singular vectors of X^T Y [prior: Schönemann 1966].

    >>> best_rotation(torch.eye(2), torch.tensor([[0.0, 1.0], [1.0, 0.0]])).round()
    tensor([[0., 1.],
            [1., 0.]])
    """
    U, _, V = torch.linalg.svd(X.mT @ Y)
    return U @ V


def procrustes_distortion(X: Float[Tensor, "*b n p"], Y: Float[Tensor, "*b n p"]) -> Float[Tensor, "*b"]:
    """D = sqrt(1 - ||X_n^T Y_n||_*): how far Y is from X after the best rotation, reflection, shift and scale.

    The same as min_R ||X_n R - Y_n||_F / sqrt 2. Below D of about 1e-4 the difference 1 - ||.||_* has lost its digits,
    and the residual itself is summed. There may be fewer points than dimensions; the formula for noise is for many
    more. Half precision is computed in float32.
    ValueError for a constant cloud, or clouds of different shapes. [code; the nuclear norm: earlier]

    >>> X = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]], dtype=torch.float64)
    >>> bool(procrustes_distortion(X, 3 * X.flip(-1) + 1) < 1e-15)
    True
    """
    x, y = _unit("X", X), _unit("Y", Y)
    square = (2 - 2 * torch.linalg.svdvals(x.mT @ y).sum(dim=-1)).clamp(min=0.0)
    if bool((square < 2e-7).any()):
        residual = (x @ best_rotation(x, y) - y).square().sum(dim=(-2, -1))
        square = torch.where(square < 2e-7, residual, square)
    return (square / 2).clamp(max=1.0).sqrt()


# What noise does to D -----------------------------------------------------------------------------------------------


def noise_law(s: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
    """D of Y = X + E, E independent of X and of any covariance, for n to infinity: sqrt(1 - (1 + s)^(-1/2)) [ours].

    >>> round(noise_law(torch.tensor(0.02)).item(), 4), round((0.02 / 2) ** 0.5, 4)
    (0.0993, 0.1)
    """
    check_at_least("s", s, 0)
    return (-torch.expm1(-torch.log1p(s) / 2)).sqrt()


def pooled_law(r: float, L: int, J: Tensor, V: Tensor, bias: float | Tensor = 0.0) -> Tensor:
    """D of mean-pooled embeddings when a share r of L tokens moves: ``noise_law`` at s = r J / (L V) [ours].

    With ``bias`` = E |E[delta | sequence]|^2 above zero, s is 1 + r (L - 1) bias / J times as large.

    >>> J, V = torch.tensor(1.0), torch.tensor(0.5)
    >>> round((pooled_law(0.1, 512, J, V) / pooled_law(0.01, 512, J, V)).item(), 2)  # sqrt 10
    3.16
    """
    check_at_least("r", r, 0)
    check_positive("V", V)
    return noise_law(r * (J + r * (L - 1) * bias) / (L * V))


class JumpAndSpread(NamedTuple):
    """What a pooled distortion is made of; ``bias`` is E |E[delta | sequence]|^2, to be set against J."""

    J: Tensor
    V: Tensor
    T: Tensor
    bias: Tensor


def jump_and_spread(states: Float[Tensor, "*b n L p"], struck: Float[Tensor, "strikes *b n L p"]) -> JumpAndSpread:
    """J, V and T of hidden states: ``struck`` has the states of the same sequences, each with one token struck [ours].

    J is the mean square by which a strike moves the sum of a sequence's states, V the variance of the means of
    sequences, T that of single states; variances are traces, over n and over n L. J / T and V / T have no unit, and V / T
    is in [0, 1]. With a single strike the bias is unknown, and NaN. ValueError where ``struck`` is of other sequences.

    >>> states = torch.tensor([0.0, 1.0, 2.0, 3.0]).view(4, 1, 1)  # four sequences of one token, an ordered code
    >>> found = jump_and_spread(states, states.roll(1, dims=0)[None])
    >>> found.J, found.V, found.T
    (tensor(3.), tensor(1.2500), tensor(1.2500))
    """
    check_finite("states", states)
    check_finite("struck", struck)
    moved = (struck - states).sum(dim=-2)
    q = len(moved)
    J = moved.square().sum(dim=-1).mean(dim=(0, -1))
    both = moved.sum(dim=0).square().sum(dim=-1).mean(dim=-1)  # q J + q (q - 1) bias
    bias = (both / q - J) / (q - 1) if q > 1 else torch.full_like(J, math.nan)
    V = (states - states[..., :1, :1, :]).mean(dim=-2).var(dim=-2, correction=0).sum(dim=-1)
    T = states.flatten(-3, -2).var(dim=-2, correction=0).sum(dim=-1)
    return JumpAndSpread(J, V, T, bias)


# Matrices of distances ----------------------------------------------------------------------------------------------


def ranks(x: Float[Tensor, "*b m"], tolerance: float | Tensor = 0.0) -> Float[Tensor, "*b m"]:
    """Ranks from 1; values that differ by ``tolerance`` or less, such as their rounding, share the mean of theirs.

    Where values lie closer than that in a row without a gap, they are tied by cells of this width.

    >>> ranks(torch.tensor([3.0, 1.0, 3.0, 2.0]))
    tensor([3.5000, 1.0000, 3.5000, 2.0000], dtype=torch.float64)
    """
    flat = x.reshape(-1, x.shape[-1])
    ordered, order = flat.sort(dim=-1)
    near = torch.as_tensor(tolerance, dtype=x.dtype, device=x.device).expand(x.shape[:-1]).reshape(-1, 1)
    place = torch.arange(1.0, flat.shape[-1] + 1, dtype=torch.float64, device=x.device).expand_as(flat)
    if bool((ordered.diff(dim=-1) <= near).any()):
        place = torch.stack([_shared(*each) for each in zip(ordered, near, place, strict=True)])
    return torch.empty_like(place).scatter_(-1, order, place).view(x.shape)


def _shared(ordered: Tensor, near: Tensor, place: Tensor) -> Tensor:
    """The mean place of each run of ordered values without a gap above ``near``, or of its cells, where it is wider."""
    run = functional.pad((ordered.diff() > near).cumsum(dim=-1), (1, 0))
    start = ordered[torch.searchsorted(run, run)]  # the first of the run
    cell = ((ordered - start) / (1.001 * near.clamp(min=torch.finfo(ordered.dtype).tiny))).floor()
    first = (run.diff() > 0) | (cell.diff() != 0)
    group = functional.pad(first.cumsum(dim=-1), (1, 0))
    count = torch.bincount(group).to(place)
    return (torch.zeros_like(count).index_add_(0, group, place) / count)[group]


def spearman(
    x: Float[Tensor, "*b m"], y: Float[Tensor, "*b m"], near: tuple[float | Tensor, float | Tensor] = (0.0, 0.0)
) -> Float[Tensor, "*b"]:
    """Correlation of ranks, tied as ``near`` says on either side; 0 where one side is constant, as in the author's
    package.

    >>> round(spearman(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([1.0, 9.0, 10.0])).item(), 12)
    1.0
    """
    centred = [each - each.mean(dim=-1, keepdim=True) for each in (ranks(x, near[0]), ranks(y, near[1]))]
    size = torch.linalg.vector_norm(centred[0], dim=-1) * torch.linalg.vector_norm(centred[1], dim=-1)
    return torch.where(size > 0, torch.linalg.vecdot(*centred) / size.clamp(min=0.25), 0.0)


def _directions(X: Tensor) -> Tensor:
    norm = torch.linalg.vector_norm(X, dim=-1, keepdim=True)
    if bool((norm == 0).any()):
        raise ValueError("a point is zero and has no direction: its cosine distances are not defined")
    return X / norm


def rdm(X: Float[Tensor, "n p"], metric: str = "cosine") -> Float[Tensor, "pairs"]:
    """Distances of all pairs i < j of a cloud, row by row as SciPy has them: n (n - 1) / 2 numbers.

    >>> rdm(torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]))
    tensor([1., 2., 1.])
    """
    if len(X) < 3:
        raise ValueError(f"X has {len(X)} points; give at least three points")
    check_choice("metric", metric, METRICS)
    check_finite("X", X)
    X = X.float() if X.dtype.itemsize < 4 else X  # torch has no pairs' distances in half precision
    if metric == "euclidean":
        return functional.pdist(X)
    x = _directions(X)
    full = 1 - x @ x.mT
    return torch.cat([full[i, i + 1 :] for i in range(len(X) - 1)])


def rounding(X: Float[Tensor, "n p"], metric: str) -> Tensor:
    """How far two distances within X may differ that are equal in exact arithmetic, if each coordinate is rounded."""
    p, eps = X.shape[-1], torch.finfo(X.dtype).eps
    reach = torch.linalg.vector_norm(X, dim=-1).max() if metric == "euclidean" else torch.ones((), dtype=X.dtype)
    return 4 * (p + 4) * eps * reach


def rdm_similarity(X: Float[Tensor, "n p"], Y: Float[Tensor, "n q"], metric: str = "cosine") -> Float[Tensor, ""]:
    """Spearman correlation of the distances within X and those of the same pairs within Y [code].

    Distances that are equal up to rounding are tied, so that a rotation, which changes none, changes no rank.

    >>> X = torch.randn(20, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> round(rdm_similarity(X, X.flip(-1)).item(), 12)
    1.0
    """
    return spearman(rdm(X, metric), rdm(Y, metric), (rounding(X, metric), rounding(Y, metric)))
