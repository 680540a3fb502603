"""Roll-back of key-value caches when the sequences of a batch keep different numbers of drafts.

symbol      name      meaning                                                   axes
            keys      keys (or values) of one layer                             (B, heads, columns, size)
            rows      the sequences that go on                                  (B',)
            removed   columns to forget at the end of each of them              (B',)
            width     columns that are left                                     scalar

Sequences are right-aligned: column W - 1 holds the last token of each, and the columns before a sequence starts are
padding that the attention mask hides. After a block, sequence b forgets its last ``removed[b]`` columns and moves right
by as many, so that all end together again.
"""

from typing import Any

import torch
from jaxtyping import Int, Shaped
from torch import Tensor


def realign(
    columns: Shaped[Tensor, "B W *rest"], rows: Int[Tensor, "new"], removed: Int[Tensor, "new"], width: int
) -> Shaped[Tensor, "new width *rest"]:
    """The chosen rows without their last ``removed`` columns, right-aligned in ``width`` columns.

    Column j of the result is column W - removed - width + j; what lies before the first column is padding, filled with
    the first column.
    """
    source = columns.shape[1] - removed[:, None] - width + torch.arange(width, device=columns.device)
    return columns[rows[:, None], source.clamp(min=0)]


def check_cache(cache: Any, who: str) -> None:
    """Raise ValueError unless every layer keeps all keys and values, so that any number of columns can be forgotten."""
    layers = getattr(cache, "layers", None)
    if not layers or any(type(layer).__name__ != "DynamicLayer" for layer in layers):
        kinds = sorted({type(layer).__name__ for layer in layers or [cache]})
        raise ValueError(
            f"{who} keeps a cache of {', '.join(kinds)}, which cannot be rolled back token by token; give a model with "
            "full attention in every layer, or use_cache=False"
        )


def roll_back(cache: Any, rows: Int[Tensor, "new"], removed: Int[Tensor, "new"], width: int) -> None:
    """Forget the last ``removed`` columns of each chosen row and right-align the rest in ``width`` columns, in place.

    Nothing is copied if all rows go on and forget equally many columns.
    """
    for layer in cache.layers:
        num_rows, _, num_columns, _ = layer.keys.shape
        if len(rows) == num_rows and num_columns - width == int(removed.min()) == int(removed.max()):
            layer.keys, layer.values = layer.keys[:, :, :width], layer.values[:, :, :width]
        else:
            layer.keys, layer.values = (
                realign(x.transpose(1, 2), rows, removed, width).transpose(1, 2) for x in (layer.keys, layer.values)
            )
