"""What the experiments call geometry: Procrustes distortion, matrices of distances, and the scores built of them.

symbol   name            meaning                                                          axes
X, Y     X, Y            clouds: embeddings of clean and of perturbed inputs              (*b, n, p)
M        -               X_n^T Y_n, both centred and of norm one                          (*b, p, p)
D        -               Procrustes distortion, in [0, 1]                                 (*b,)
s        s               tr Sigma_E / tr Sigma_X, noise over signal                       any
r        r               share of positions that are perturbed                            any
L        L               positions in a sequence                                          any
J        J               mean square by which a perturbed token moves its state           any
V        V               tr Cov of the pooled embeddings, between sequences               any
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from derived.lab.checks import check_at_least, check_choice, check_count, check_finite, check_positive

METRICS = ("cosine", "euclidean")


def _unit(name: str, X: Tensor, scale: bool) -> Tensor:
    """The cloud with its mean at zero and, if asked, its norm one."""
    check_finite(name, X)
    X = X.float() if X.dtype.itemsize < 4 else X  # torch has no singular values in half precision
    centred = X - X.mean(dim=-2, keepdim=True)
    norm = torch.linalg.matrix_norm(centred)[..., None, None]
    rounding = torch.finfo(X.dtype).eps * torch.linalg.matrix_norm(X)[..., None, None]
    if bool((norm <= 4 * rounding).any()):
        raise ValueError(f"{name} is a constant cloud: all points are equal, its norm is zero, it has no geometry")
    return centred / norm if scale else centred


def _pair(X: Tensor, Y: Tensor, scale: bool) -> tuple[Tensor, Tensor]:
    return _unit("X", X, scale), _unit("Y", Y, scale)


def best_rotation(X: Float[Tensor, "*b n p"], Y: Float[Tensor, "*b n p"]) -> Float[Tensor, "*b p p"]:
    """R, R^T R = 1, with the least ||X R - Y||_F: U V^T of the singular vectors of X^T Y [prior: Schönemann 1966].

    >>> best_rotation(torch.eye(2), torch.tensor([[0.0, 1.0], [1.0, 0.0]])).round()
    tensor([[0., 1.],
            [1., 0.]])
    """
    U, _, V = torch.linalg.svd(X.mT @ Y)
    return U @ V


def procrustes_distortion(
    X: Float[Tensor, "*b n p"], Y: Float[Tensor, "*b n p"], scale: bool = True
) -> Float[Tensor, "*b"]:
    """D = sqrt(1 - ||X_n^T Y_n||_*): how far Y is from X after the best rotation, reflection, shift and scale.

    The same as min_R ||X_n R - Y_n||_F / sqrt 2. Without ``scale`` the clouds keep their sizes: min_R ||X R -
    Y||_F. Below D of about 1e-4 the difference 1 - ||.||_* has lost its digits, and the residual itself is summed.
    There may be fewer points than dimensions; the noise law is for many more. Half precision is computed in float32.
    ValueError for a constant cloud, or clouds of different shapes. [code; the nuclear norm: earlier]

    >>> X = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]], dtype=torch.float64)
    >>> bool(procrustes_distortion(X, 3 * X.flip(-1) + 1) < 1e-15)
    True
    """
    x, y = _pair(X, Y, scale)
    M = x.mT @ y
    sizes = 2.0 if scale else x.square().sum(dim=(-2, -1)) + y.square().sum(dim=(-2, -1))
    square = (sizes - 2 * torch.linalg.svdvals(M).sum(dim=-1)).clamp(min=0.0)
    if bool((square < 1e-7 * torch.as_tensor(sizes)).any()):
        residual = (x @ best_rotation(x, y) - y).square().sum(dim=(-2, -1))
        square = torch.where(square < 1e-7 * torch.as_tensor(sizes), residual, square)
    return (square / 2).clamp(max=1.0).sqrt() if scale else square.sqrt()


class Ratio(NamedTuple):
    """Errors per point before and after alignment; ``repaired`` is the share that a similarity of the plane repairs."""

    raw: Tensor
    aligned: Tensor
    ratio: Tensor
    repaired: Tensor


def procrustes_ratio(X: Float[Tensor, "*b n p"], Y: Float[Tensor, "*b n p"]) -> Ratio:
    """||X - Y||_F / sqrt n of centred clouds, the same after the best rotation and scale of Y, and their ratio [code].

    The best scale is ||Y^T X||_* / ||Y||^2, which leaves ||X||^2 - ||Y^T X||_*^2 / ||Y||^2. Equal clouds have
    ratio 1, as in the author's code: nothing is there to be repaired.

    >>> X = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]], dtype=torch.float64)
    >>> round(procrustes_ratio(X, 2 * X).repaired.item(), 6)
    1.0
    """
    x, y = _pair(X, Y, False)
    R = best_rotation(y, x)
    turned = y @ R
    scale = (x * turned).sum(dim=(-2, -1)) / turned.square().sum(dim=(-2, -1))
    root = math.sqrt(x.shape[-2])
    raw = torch.linalg.matrix_norm(x - y) / root
    aligned = torch.linalg.matrix_norm(x - scale[..., None, None] * turned) / root
    ratio = torch.where(raw > 1e-10, aligned / raw.clamp(min=1e-300), 1.0)
    return Ratio(raw, aligned, ratio, 1 - ratio)


# What noise does to D -----------------------------------------------------------------------------------------------


def noise_law(s: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
    """D of Y = X + E, E independent of X and of any covariance, for n to infinity: sqrt(1 - (1 + s)^(-1/2)) [ours].

    >>> round(noise_law(torch.tensor(0.02)).item(), 4), round((0.02 / 2) ** 0.5, 4)
    (0.0993, 0.1)
    """
    check_at_least("s", s, 0)
    return (-torch.expm1(-torch.log1p(s) / 2)).sqrt()


def unrelated_law(n: int, p: int) -> float:
    """D of two independent standard Gaussian clouds, n >> p: sqrt(1 - 8 / (3 pi) sqrt(p / n)) [ours].

    >>> round(unrelated_law(2000, 256), 2)
    0.83
    """
    check_count("n", n, p)
    return math.sqrt(1 - 8 / (3 * math.pi) * math.sqrt(p / n))


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


# Matrices of distances ----------------------------------------------------------------------------------------------


def ranks(x: Float[Tensor, "*b m"]) -> Float[Tensor, "*b m"]:
    """Ranks from 1; equal values share the mean of theirs.

    >>> ranks(torch.tensor([3.0, 1.0, 3.0, 2.0]))
    tensor([3.5000, 1.0000, 3.5000, 2.0000], dtype=torch.float64)
    """
    flat = x.reshape(-1, x.shape[-1])
    ordered, order = flat.sort(dim=-1)
    place = torch.arange(1.0, flat.shape[-1] + 1, dtype=torch.float64, device=x.device).expand_as(flat)
    tied = ordered[..., 1:] == ordered[..., :-1]
    if bool(tied.any()):
        place = torch.stack([_shared(row, each) for row, each in zip(tied, place, strict=True)])
    return torch.empty_like(place).scatter_(-1, order, place).view(x.shape)


def _shared(tied: Tensor, place: Tensor) -> Tensor:
    group = functional.pad((~tied).cumsum(dim=-1), (1, 0))
    count = torch.bincount(group).to(place)
    return (torch.zeros_like(count).index_add_(0, group, place) / count)[group]


def spearman(x: Float[Tensor, "*b m"], y: Float[Tensor, "*b m"]) -> Float[Tensor, "*b"]:
    """Correlation of ranks; 0 where one side is constant, as in the author's package.

    >>> round(spearman(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([1.0, 9.0, 10.0])).item(), 12)
    1.0
    """
    centred = [each - each.mean(dim=-1, keepdim=True) for each in (ranks(x), ranks(y))]
    size = torch.linalg.vector_norm(centred[0], dim=-1) * torch.linalg.vector_norm(centred[1], dim=-1)
    return torch.where(size > 0, torch.linalg.vecdot(*centred) / size.clamp(min=0.25), 0.0)


def distances(X: Float[Tensor, "*b n p"], Z: Float[Tensor, "*b m p"], metric: str) -> Float[Tensor, "*b n m"]:
    """Cosine or Euclidean distances of all points of X to all points of Z; ValueError for a zero vector and a
    cosine."""
    check_choice("metric", metric, METRICS)
    if metric == "euclidean":
        return torch.cdist(X, Z, compute_mode="donot_use_mm_for_euclid_dist")
    x, z = (_directions(each) for each in (X, Z))
    return 1 - x @ z.mT


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
    check_finite("X", X)
    if metric == "euclidean":
        return functional.pdist(X)
    full = distances(X, X, metric)
    return torch.cat([full[i, i + 1 :] for i in range(len(X) - 1)])


def rdm_similarity(X: Float[Tensor, "n p"], Y: Float[Tensor, "n q"], metric: str = "cosine") -> Float[Tensor, ""]:
    """Spearman correlation of the distances within X and those of the same pairs within Y [code].

    >>> X = torch.randn(20, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> round(rdm_similarity(X, X.flip(-1)).item(), 12)
    1.0
    """
    return spearman(rdm(X, metric), rdm(Y, metric))


def lipschitz_profile(path: Float[Tensor, "steps p"], metric: str = "euclidean") -> Float[Tensor, "steps-1"]:
    """Length of each step of a path of embeddings; a cosine is of second order in the step, a norm of first [code].

    >>> lipschitz_profile(torch.tensor([[0.0, 1.0], [0.0, 3.0], [4.0, 3.0]]))
    tensor([2., 4.])
    """
    check_choice("metric", metric, METRICS)
    if len(path) < 2:
        raise ValueError("the path has one point; give two steps or more")
    step = path[1:] - path[:-1]
    if metric == "euclidean":
        return torch.linalg.vector_norm(step, dim=-1)
    unit = _directions(path)
    return (unit[1:] - unit[:-1]).square().sum(dim=-1) / 2  # 1 - cos without its cancellation


# The composite score ------------------------------------------------------------------------------------------------


def random_halves(size: int, splits: int, generator: torch.Generator) -> Int[Tensor, "splits 2 half"]:
    """Two disjoint random halves of 0..size-1, ``splits`` times.

    >>> random_halves(7, 5, torch.Generator().manual_seed(0)).shape
    torch.Size([5, 2, 3])
    """
    check_count("size", size, 4)
    order = torch.rand(splits, size, generator=generator, dtype=torch.float64).argsort(dim=-1)
    return order[:, : size // 2 * 2].unflatten(-1, (2, -1))


def random_subsets(size: int, share: float, splits: int, generator: torch.Generator) -> Int[Tensor, "splits 2 m"]:
    """Two independent random subsets of ``share`` of 0..size-1, ``splits`` times; they may overlap.

    >>> random_subsets(10, 0.4, 30, torch.Generator().manual_seed(0)).shape
    torch.Size([30, 2, 4])
    """
    check_count("size", size, 10)
    order = torch.rand(splits, 2, size, generator=generator, dtype=torch.float64).argsort(dim=-1)
    return order[..., : int(size * share)]


def feature_split(X: Float[Tensor, "n p"], halves: Int[Tensor, "splits 2 half"], metric: str = "cosine") -> Tensor:
    """Mean RDM similarity of two random halves of the coordinates: redundancy of coordinates, not geometry [code].

    The halves come from ``random_halves``.
    """
    return torch.stack([rdm_similarity(X[:, a], X[:, b], metric) for a, b in halves]).mean()


def sample_split(X: Float[Tensor, "n p"], subsets: Int[Tensor, "splits 2 m"], metric: str = "cosine") -> Tensor:
    """Mean correlation of the RDMs of two subsamples, entry by entry, though entry k is of other points [code].

    Kept to be shown wrong: its expectation is zero, whatever the cloud. The subsets come from ``random_subsets``.
    """
    return torch.stack([rdm_similarity(X[a], X[b], metric) for a, b in subsets]).mean()


def anchor_stability(
    X: Float[Tensor, "n p"], anchors: Int[Tensor, "a"], sets: Int[Tensor, "splits 2 m"], metric: str = "cosine"
) -> Tensor:
    """Mean correlation of the ranks of distances from fixed anchors to two disjoint sets, entry by entry [code].

    Each anchor ranks its own distances. Kept to be shown wrong, as ``sample_split``.
    """
    found = []
    for pair in sets:
        first, second = (ranks(distances(X[anchors], X[each], metric)).flatten() for each in pair)
        found.append(spearman(first, second))
    return torch.stack(found).mean()


def perturbation_coherence(X: Float[Tensor, "n p"], Y: Float[Tensor, "n p"]) -> Float[Tensor, ""]:
    """Mean cosine between each shift from the clean centroid and the mean shift [code: perturbation stability]."""
    shift = Y - X.mean(dim=0)
    return (_directions(shift) @ functional.normalize(shift.mean(dim=0), dim=0)).mean()


def shift_magnitude(X: Float[Tensor, "n p"], Y: Float[Tensor, "n p"]) -> Float[Tensor, ""]:
    """Distance of the two centroids [code: perturbation magnitude]."""
    return torch.linalg.vector_norm(Y.mean(dim=0) - X.mean(dim=0))
