"""What chains over depth share: where they start, when they are looked at, and their rows."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch

from ..model.heads import simplex_gram


def tidy(index: Mapping[str, Any], columns: Mapping[str, torch.Tensor]) -> pd.DataFrame:
    """A table of flattened tensors beside index columns of the same length."""
    return pd.DataFrame({**index, **{name: value.detach().cpu().numpy().ravel() for name, value in columns.items()}})


def start(n: int, gamma: float, replicas: int, device, dtype) -> torch.Tensor:
    """Gram matrices (replicas, n, n) of equiangular tokens."""
    return simplex_gram(n, gamma, device=device, dtype=dtype).expand(replicas, n, n)


def layer_counts(taus, eta: float, H: int) -> list[int]:
    """The layers at which the clock shows ``taus``, to the nearest whole layer."""
    return [round(tau * H / eta**2) for tau in taus]


def long(gram_function, layers, tau, replicas: int) -> pd.DataFrame:
    """Rows (layer, replicate) of (T, R) tensors."""
    index = {"layer": np.repeat(layers, replicas), "tau": np.repeat(tau, replicas)}
    index["replicate"] = np.tile(np.arange(replicas), len(layers))
    return pd.DataFrame({**index, **{name: value.cpu().numpy().ravel() for name, value in gram_function.items()}})


def off_diagonal(gram: torch.Tensor) -> torch.Tensor:
    """The pairs i < j of (..., n, n), as (..., pairs)."""
    n = gram.shape[-1]
    first, second = torch.triu_indices(n, n, 1, device=gram.device).unbind(dim=0)
    return gram[..., first, second]
