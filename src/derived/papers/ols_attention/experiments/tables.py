"""Rows from columns, and the norm in which gaps are measured."""

from typing import Any

import pandas as pd
import torch
from torch import Tensor


def norm(matrices: Tensor) -> Tensor:
    """Frobenius norms over the last two axes."""
    return torch.linalg.matrix_norm(matrices)


def table(**columns: Tensor | Any) -> pd.DataFrame:
    """Columns of equal length as rows."""
    return pd.DataFrame({k: v.cpu().numpy().ravel() if isinstance(v, Tensor) else v for k, v in columns.items()})
