"""What chains over depth share: where they start, when they are looked at, and gaps of means."""

import numpy as np
import torch
from numpy.typing import ArrayLike

from .model.heads import simplex_gram


def start(n: int, gamma: float, replicas: int, device, dtype) -> torch.Tensor:
    """Gram matrices (replicas, n, n) of equiangular tokens."""
    return simplex_gram(n, gamma, device=device, dtype=dtype).expand(replicas, n, n)


def layer_counts(taus, eta: float, H: int) -> list[int]:
    """The layers at which the clock shows ``taus``, to the nearest whole layer."""
    return [round(tau * H / eta**2) for tau in taus]


def off_diagonal(gram: torch.Tensor) -> torch.Tensor:
    """The pairs i < j of (..., n, n), as (..., pairs)."""
    n = gram.shape[-1]
    first, second = torch.triu_indices(n, n, 1, device=gram.device).unbind(dim=0)
    return gram[..., first, second]


def mean_gap(values: ArrayLike, target: ArrayLike, slack: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """The distance of means over the first axis from their targets, and five standard errors plus a stated slack."""
    values = np.asarray(values, dtype=float)
    error = values.std(axis=0, ddof=1) / len(values) ** 0.5
    return np.abs(values.mean(axis=0) - np.asarray(target)), 5 * error + slack
