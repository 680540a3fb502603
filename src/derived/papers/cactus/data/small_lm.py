"""A small language model with the call signature of one of ``transformers``, so that the same loop writes with both.

symbol   name              meaning                                                axes
-        input_ids         tokens to be read, after the ones in the cache         (B, t)
-        logits            of the next token after each of them                   (B, t, V)
W        columns           tokens read so far, padding included                   scalar
-        keys, values      of one layer                                           (B, heads, W, size)
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import gelu, layer_norm, scaled_dot_product_attention

from .language import TOKENS


class DynamicLayer:
    """Keys and values of all columns read, under the name that transformers gives to a layer that forgets nothing."""

    def __init__(self) -> None:
        self.keys: Tensor | None = None
        self.values: Tensor | None = None

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """All keys and values, the new ones last."""
        if self.keys is not None:
            keys, values = torch.cat([self.keys, keys], dim=-2), torch.cat([self.values, values], dim=-2)
        self.keys, self.values = keys, values
        return keys, values


class Cache(NamedTuple):
    """What a model has read."""

    layers: list[DynamicLayer]

    @property
    def columns(self) -> int:
        """How many columns of the texts it holds."""
        return 0 if self.layers[0].keys is None else self.layers[0].keys.shape[-2]


class Config(NamedTuple):
    """What a caller asks about a model."""

    vocab_size: int


class Output(NamedTuple):
    """What a call returns."""

    logits: Float[Tensor, "B t V"]
    past_key_values: Cache | None


class LanguageModel(nn.Module):
    """A decoder: pre-LayerNorm blocks, rotary positions, attention of ``width // head`` heads, GELU, tied read-out."""

    def __init__(
        self,
        *,
        width: int = 64,
        depth: int = 4,
        head: int = 32,
        vocabulary: int = len(TOKENS),
        generator: torch.Generator,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ):
        super().__init__()
        if width % head or head % 2:
            raise ValueError(f"width = {width} must be a multiple of head = {head}, and head even")
        self.width, self.head, self.depth, self.config = width, head, depth, Config(vocabulary)

        def normal(*shape: int, std: float) -> nn.Parameter:
            return nn.Parameter((std * torch.randn(*shape, generator=generator, dtype=dtype)).to(device))

        self.embedding = normal(vocabulary, width, std=width**-0.5)
        shapes = {
            "qkv": (3 * width, width),
            "out": (width, width),
            "up": (4 * width, width),
            "down": (width, 4 * width),
        }
        scale = {"out": (2 * depth) ** -0.5, "down": (2 * depth) ** -0.5}  # the variance of a sum of 2 depth terms
        self.blocks = nn.ModuleList(
            nn.ParameterDict({k: normal(*s, std=scale.get(k, 1.0) * s[1] ** -0.5) for k, s in shapes.items()})
            for _ in range(depth)
        )

    def forward(
        self,
        input_ids: Int[Tensor, "B t"],
        attention_mask: Int[Tensor, "B W"] | None = None,
        position_ids: Int[Tensor, "B t"] | None = None,
        past_key_values: Cache | None = None,
        use_cache: bool = False,
        logits_to_keep: int = 0,
    ) -> Output:
        """Logits after each token of ``input_ids``, or after the last ``logits_to_keep`` of them.

        The tokens follow the columns of ``past_key_values``, which grows in place; with ``use_cache`` a new one is
        begun where none is given. ``attention_mask`` is 0 at the padding of all columns, and ``position_ids`` count
        from the start of each text; without them nothing is padding.
        """
        if use_cache and past_key_values is None:
            past_key_values = Cache([DynamicLayer() for _ in self.blocks])
        before, t = past_key_values.columns if past_key_values else 0, input_ids.shape[1]
        columns = torch.arange(before + t, device=input_ids.device)
        turn = _rotation(columns[None, before:] if position_ids is None else position_ids, self.head, self.embedding)
        mask = _mask(columns, before, attention_mask)
        x = self.embedding[input_ids] * self.width**0.5
        for layer, block in enumerate(self.blocks):
            qkv = layer_norm(x, x.shape[-1:]) @ block["qkv"].mT
            q, k, v = qkv.unflatten(-1, (3, -1, self.head)).permute(2, 0, 3, 1, 4)  # (B, heads, t, head) each
            q, k = _turned(q, turn), _turned(k, turn)
            if past_key_values is not None:
                k, v = past_key_values.layers[layer].append(k, v)
            mixed = scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None and t > 1)
            x = x + mixed.transpose(1, 2).flatten(-2) @ block["out"].mT
            x = x + gelu(layer_norm(x, x.shape[-1:]) @ block["up"].mT) @ block["down"].mT
        x = layer_norm(x[:, -logits_to_keep:], x.shape[-1:])
        return Output(x @ self.embedding.mT, past_key_values)


def _mask(columns: Tensor, before: int, attention_mask: Tensor | None) -> Tensor | None:
    """Which columns each new token attends to, (t, W) or (B, 1, t, W); None for all, or where the texts begin here."""
    new = columns[before:, None]
    if attention_mask is None:
        return columns <= new if before and len(new) > 1 else None
    seen = (columns <= new) & attention_mask.bool()[:, None, None, :]
    return seen | (columns == new)  # padding sees itself, or its softmax would be over nothing


def _rotation(position: Int[Tensor, "B t"], head: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Cosines and sines of rotary positions, (B, 1, t, head / 2)."""
    rate = 1000.0 ** (-torch.arange(0, head, 2, device=position.device, dtype=torch.float64) / head)
    angle = (position.unsqueeze(-1).double() * rate).unsqueeze(1)
    return angle.cos().to(like.dtype), angle.sin().to(like.dtype)


def _turned(x: Float[Tensor, "B heads t head"], turn: tuple[Tensor, Tensor]) -> Float[Tensor, "B heads t head"]:
    cos, sin = turn
    even, odd = x.chunk(2, dim=-1)
    return torch.cat([even * cos - odd * sin, even * sin + odd * cos], dim=-1)
