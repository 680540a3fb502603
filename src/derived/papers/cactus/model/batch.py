"""Texts of different lengths side by side: prompts as one batch, and the roll-back of their key-value caches.

symbol      name      meaning                                                   axes
            keys      keys (or values) of one layer                             (B, heads, columns, size)
            rows      the sequences that go on                                  (B',)
            removed   columns to forget at the end of each of them              (B',)
            width     columns that are left                                     scalar

Sequences are right-aligned: column W - 1 holds the last token of each, and the columns before a sequence starts are
padding that the attention mask hides. When the texts keep different numbers of drafts, sequence b forgets its last
``removed[b]`` columns and moves right by as many, so that all end together again.
"""

from collections.abc import Mapping, Sequence
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


def text_config(model: Any) -> Any:
    """The settings of a model's language part; a model that reads pictures, too, keeps them in a separate part."""
    part = getattr(model.config, "get_text_config", None)
    return part() if part else model.config


def check_cache(output: Any, who: str) -> None:
    """Raise ValueError unless every layer keeps all keys and values, so that any number of columns can be forgotten."""
    cache = getattr(output, "past_key_values", None)
    if cache is None:
        raise ValueError(f"{who} returns no past_key_values ({type(output).__name__}); give use_cache=False")
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


def as_batch(prompts: Any, attention_mask: Tensor | None, verifier: Any) -> tuple[Tensor, Tensor]:
    """Right-aligned tokens (B, T) on the verifier's device and the lengths (B,)."""
    if isinstance(prompts, Mapping):  # a tokenizer's BatchEncoding
        attention_mask = prompts.get("attention_mask") if attention_mask is None else attention_mask
        prompts = prompts.get("input_ids")
    if prompts is None or isinstance(prompts, str) or any(isinstance(row, str) for row in prompts):
        raise ValueError(
            f"prompts = {prompts!r}; give token numbers, or what the tokenizer returns: tokenizer(text, "
            'return_tensors="pt")'
        )
    rows = prompts.tolist() if isinstance(prompts, Tensor) else [_listed(row) for row in prompts]
    if not rows or not all(isinstance(row, list) for row in rows):
        raise ValueError(f"prompts = {prompts!r}; give a batch of prompts: a tensor (B, T) or B lists of token numbers")
    rows = _without_padding(rows, attention_mask, verifier)
    if not all(rows):
        empty = [b for b, row in enumerate(rows) if not row]
        raise ValueError(f"prompts {empty} are empty; a text needs a first token, such as the tokenizer's bos_token_id")
    longest = max(map(len, rows))
    tokens = torch.tensor([[0] * (longest - len(row)) + row for row in rows])
    if tokens.dtype != torch.int64:
        raise ValueError(f"prompts hold {tokens.dtype} entries; give integers, the tokenizer's input_ids")
    device = next(verifier.parameters()).device
    return tokens.to(device), torch.tensor([len(row) for row in rows], device=device)


def _listed(row: Any) -> Any:
    """A prompt as a list; anything that is no sequence stays what it is."""
    return row.tolist() if isinstance(row, Tensor) else list(row) if isinstance(row, Sequence) else row


def _without_padding(rows: list[list[int]], attention_mask: Any, verifier: Any) -> list[list[int]]:
    """The tokens that the mask shows; without a mask, an error for rows that a tokenizer has padded."""
    if attention_mask is not None:
        mask = [_listed(row) for row in attention_mask]
        if [len(row) if isinstance(row, list) else None for row in mask] != [len(row) for row in rows]:
            raise ValueError("attention_mask and prompts have different shapes; give one number per token")
        if any("0" in "".join(str(int(shown)) for shown in row).strip("0") for row in mask):
            raise ValueError("attention_mask hides tokens inside a prompt; only padding before or after may be hidden")
        return [[token for token, shown in zip(*pair, strict=True) if shown] for pair in zip(rows, mask, strict=True)]
    if len({*map(len, rows)}) > 1:  # lists of different lengths: nobody has padded them
        return rows
    config = text_config(verifier)
    begin, end = (getattr(config, f"{name}_token_id", None) for name in ("bos", "eos"))
    pads, last = [getattr(config, "pad_token_id", None)], 1
    if pads == [None]:  # then a tokenizer pads with the end of text, of which a turn of a dialogue may have one
        pads, last = end if isinstance(end, list | tuple) else [end], 2
    padded = [b for b, row in enumerate(rows) for pad in pads if len(rows) > 1 and _is_padded(row, pad, begin, last)]
    if padded:
        raise ValueError(
            f"prompts {sorted({*padded})} are padded with {' or '.join(map(str, pads))} and would be read as text; "
            "give their attention_mask, as tokenizer(texts, padding=True) returns it, or lists of different lengths"
        )
    return rows


def _is_padded(row: list[int], pad: int | None, begin: int | None, last: int) -> bool:
    """Whether a prompt has padding: before its first token, one token that begins texts apart, or ``last`` of it."""
    first = [pad] * (2 if pad == begin else 1)
    return pad is not None and (row[: len(first)] == first or (len(row) > 1 and row[-last:] == [pad] * last))
