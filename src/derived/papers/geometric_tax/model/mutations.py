"""The metric and the counts with one line changed: each still runs, and loses a property that a test names.

name                     change                                            what is lost
no centring              clouds as they are                                a shift counts as distortion
no rotation              R = 1                                             a turned copy counts as distortion
rotated the wrong way    R^T in place of R                                 the same
largest value alone      the operator norm in place of the nuclear norm    a perfect copy is distorted
mean in place of sum     of the squared entries of the residual            noise is hardly seen
words in one frame       each letter belongs to one word                   the other strand is another cloud

symbol   name    meaning                                                   axes
X, Y     X, Y    clouds, rows correspond                                   (n, p)
g        g       DNA letters, ACGT = 0123                                  (n, L)
"""

from collections.abc import Callable
from types import MappingProxyType
from typing import NamedTuple

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from .metrics import best_rotation, noise_law, procrustes_distortion

Distortion = Callable[[Tensor, Tensor], Tensor]


def _unit(X: Tensor, centre: bool = True) -> Tensor:
    X = X - X.mean(dim=0) if centre else X
    return X / torch.linalg.matrix_norm(X)


def _residual(x: Tensor, y: Tensor, R: Tensor) -> Tensor:
    return torch.linalg.matrix_norm(x @ R - y) / 2**0.5


def no_centring(X: Float[Tensor, "n p"], Y: Float[Tensor, "n p"]) -> Float[Tensor, ""]:
    """The distance of the clouds after the best rotation about the origin."""
    x, y = _unit(X, False), _unit(Y, False)
    return _residual(x, y, best_rotation(x, y))


def no_rotation(X: Float[Tensor, "n p"], Y: Float[Tensor, "n p"]) -> Float[Tensor, ""]:
    """The distance of the clouds as they lie."""
    return torch.linalg.matrix_norm(_unit(X) - _unit(Y)) / 2**0.5


def wrong_way(X: Float[Tensor, "n p"], Y: Float[Tensor, "n p"]) -> Float[Tensor, ""]:
    """The rotation of X to Y, applied to Y: version 0.2.27 of the author's package did so [code]."""
    x, y = _unit(X), _unit(Y)
    return torch.linalg.matrix_norm(x - y @ best_rotation(x, y)) / 2**0.5


def largest_alone(X: Float[Tensor, "n p"], Y: Float[Tensor, "n p"]) -> Float[Tensor, ""]:
    """sqrt(1 - largest singular value)."""
    return (1 - torch.linalg.matrix_norm(_unit(X).mT @ _unit(Y), ord=2)).clamp(min=0).sqrt()


def mean_for_sum(X: Float[Tensor, "n p"], Y: Float[Tensor, "n p"]) -> Float[Tensor, ""]:
    """The root of the mean of the squared entries: smaller by sqrt(n p), as in version 0.2.27 [code]."""
    return procrustes_distortion(X, Y) / X.numel() ** 0.5


DISTORTIONS = MappingProxyType(
    {
        "none": procrustes_distortion,
        "no centring": no_centring,
        "no rotation": no_rotation,
        "rotated the wrong way": wrong_way,
        "largest value alone": largest_alone,
        "mean in place of sum": mean_for_sum,
    }
)


class Damage(NamedTuple):
    """D of a rotated copy and of a shifted one, which must be 0, and of a noisy one over the noise law, near 1."""

    turned: float
    shifted: float
    noise: float


def damage(distortion: Distortion, X: Float[Tensor, "n p"], noise: Float[Tensor, "n p"], s: float = 0.05) -> Damage:
    """What a version of D says of the three copies of X; ``noise`` becomes s times the total variance of X.

    >>> g = torch.Generator().manual_seed(0)
    >>> X, E = torch.randn(2, 4000, 3, generator=g, dtype=torch.float64)
    >>> [round(each, 1) for each in damage(procrustes_distortion, X, E)]
    [0.0, 0.0, 1.0]
    """
    turn = torch.linalg.qr(noise[: X.shape[1]]).Q
    size = (s * X.var(dim=0).sum() / noise.var(dim=0).sum()).sqrt()
    noisy = distortion(X, X + size * noise) / noise_law(torch.tensor(s))
    return Damage(*(each.item() for each in (distortion(X, 2 * X @ turn), distortion(X, X + 1), noisy)))


def framed_counts(g: UInt8[Tensor, "n L"], k: int) -> Float[Tensor, "n 4^k"]:
    """How often each word of k letters stands at a multiple of k: what a tokeniser of such words reads.

    >>> framed_counts(torch.tensor([[0, 1, 0, 1, 3]], dtype=torch.uint8), 2)[0].nonzero().tolist()  # AC AC, T left over
    [[1]]
    """
    words = g.long().unfold(1, k, k) @ 4 ** torch.arange(k - 1, -1, -1)
    return torch.zeros(len(g), 4**k, dtype=torch.float64).scatter_add_(1, words, torch.ones_like(words).double())
