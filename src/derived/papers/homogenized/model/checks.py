"""Checks of what this paper has: widths, overlaps, times, tokens on the sphere, Gram matrices, steps."""

import math

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from derived.lab.checks import check_at_least, check_count, check_factored, check_one_dtype


def check_dimension(d: int) -> None:
    """d is a whole number of at least 2."""
    check_count("d", d, 2, "on the sphere of dimension 0 nothing can move")


def check_width(d: float) -> None:
    """d is at least 2; math.inf asks for the limit."""
    if math.isnan(d) or d < 2:
        raise ValueError(f"d = {d!r}: the width is at least 2, or math.inf for the limit")


def check_times(times: ArrayLike) -> np.ndarray:
    """``times`` as an array, after a check that they start at 0 or later and do not decrease."""
    times = np.asarray(times, dtype=float)
    if times.ndim != 1 or not times.size or not times[0] >= 0 or not (np.diff(times) >= 0).all() or times[-1] == np.inf:
        raise ValueError(f"times = {times}; give a list of finite numbers from 0 upwards")
    return times


def check_overlap(gamma: float, n: int) -> None:
    """n >= 2 unit vectors of common overlap gamma exist only for -1/(n-1) <= gamma <= 1."""
    least = -1 / (n - 1) if n > 1 else -1.0
    if not least <= gamma <= 1:
        raise ValueError(f"overlap {gamma!r} of {n} tokens: unit vectors can share it only in [{least:.6g}, 1]")


def check_on_sphere(X: Tensor) -> None:
    """Rows have norm 1 up to the rounding of a normalisation, (d/2 + 2) unit roundoffs and a factor 2."""
    check_one_dtype(tokens=X)
    if X.ndim < 2:
        raise ValueError(f"tokens of shape {tuple(X.shape)}: give (..., n, d), one token a row")
    gap = (torch.linalg.vector_norm(X, dim=-1) - 1).abs().max().item()
    bound = (X.shape[-1] + 4) * torch.finfo(X.dtype).eps
    if not gap <= bound:
        raise ValueError(
            f"a token has a norm that differs from 1 by {gap:.3g} (rounding explains {bound:.1g}): "
            "tokens live on the unit sphere, divide each row by its norm"
        )


def check_gram(G: Tensor, d: int) -> None:
    """A stack (R, n, n) of Gram matrices of n unit vectors in R^d: symmetric, unit diagonal, no negative direction,
    rank at most d."""
    check_factored(G=G)
    if G.ndim != 3 or G.shape[1] != G.shape[2]:
        raise ValueError(f"Gram matrices of shape {tuple(G.shape)}: give (R, n, n)")
    n, eps = G.shape[-1], torch.finfo(G.dtype).eps
    bound = 8 * (n + min(d, 1024)) * eps
    gap = torch.maximum((G - G.mT).abs().amax(), (torch.diagonal(G, dim1=-2, dim2=-1) - 1).abs().amax()).item()
    if not gap <= bound:
        raise ValueError(f"not symmetric with unit diagonal (gap {gap:.3g}): the Gram matrix of unit vectors is")
    spectrum = torch.linalg.eigvalsh(G)
    if spectrum.min().item() < -n * bound:
        raise ValueError(
            f"a Gram matrix has the eigenvalue {spectrum.min().item():.3g}: no vectors have these overlaps"
        )
    rank = int((spectrum > n * bound).sum(dim=-1).max().item())
    if rank > d:
        raise ValueError(f"a Gram matrix has rank {rank}: its vectors need width d >= {rank}, but d = {d}")


def check_step(eta: float, H: int) -> None:
    """One layer must not throw a token further than its own length."""
    check_at_least("eta", eta, 0)
    if (h := eta**2 / H) > 1 + 1e-9:  # the square of a square root
        raise ValueError(
            f"eta = {eta:g} with H = {H} overshoots: h = eta^2 / H = {h:.3g} exceeds 1, a layer's noise is longer than "
            f"the token; take eta <= {math.sqrt(H):.3g} or H >= {math.ceil(eta**2 * (1 - 1e-9))}"
        )
