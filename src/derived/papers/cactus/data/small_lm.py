"""Small language models with a cache that can be rolled back row by row, their training, and writing with two of them.

symbol   name       meaning                                                                axes
-        ids        tokens of a batch of texts, padded behind their lengths with -1        (B, T)
-        logits     of the next token at each position                                     (B, t, V)
-        cache      keys and values by position; a row's stale end is masked, then         (layers, 2, B, H, T, d / H)
                    overwritten, so rolling back means nothing but a smaller length
m        m          drafted tokens per block
-        lengths    tokens written so far, different from row to row                       (B,)
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, gelu, layer_norm, scaled_dot_product_attention

from .language import TOKENS, Grammar


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
        self.width, self.head, self.depth = width, head, depth

        def draw(*shape: int, std: float) -> nn.Parameter:
            return nn.Parameter((std * torch.randn(*shape, generator=generator, dtype=dtype)).to(device))

        self.embedding = draw(vocabulary, width, std=width**-0.5)
        shapes = {
            "qkv": (3 * width, width),
            "out": (width, width),
            "up": (4 * width, width),
            "down": (width, 4 * width),
        }
        scale = {"out": (2 * depth) ** -0.5, "down": (2 * depth) ** -0.5}
        self.blocks = nn.ModuleList(
            nn.ParameterDict({k: draw(*s, std=scale.get(k, 1.0) * s[1] ** -0.5) for k, s in shapes.items()})
            for _ in range(depth)
        )

    def empty_cache(self, batch: int, length: int) -> Tensor:
        """Room for ``length`` positions of ``batch`` texts."""
        where = {"dtype": self.embedding.dtype, "device": self.embedding.device}
        return torch.zeros(self.depth, 2, batch, self.width // self.head, length, self.head, **where)

    def forward(
        self, ids: Int[Tensor, "B t"], start: Int[Tensor, "B"] | None = None, cache: Tensor | None = None
    ) -> Float[Tensor, "B t V"]:
        """Logits behind each token of ``ids``, which stand at the positions start, start + 1, ... of their rows.

        Without a cache the texts begin here. With one, keys and values are written into it, and what it held before
        ``start`` is attended to.
        """
        batch, t = ids.shape
        x = self.embedding[ids.clamp(min=0)] * self.width**0.5
        first = torch.zeros(batch, 1, dtype=torch.long, device=ids.device) if start is None else start.unsqueeze(-1)
        position = first + torch.arange(t, device=ids.device)  # (B, t)
        turn = _rotation(position, self.head, x.dtype)
        mask, rows = None, torch.arange(batch, device=ids.device).unsqueeze(-1)
        if cache is not None:
            seen = torch.arange(cache.shape[-2], device=ids.device)
            mask = (seen <= position.unsqueeze(-1)).unsqueeze(1)  # (B, 1, t, T)
        for layer, block in enumerate(self.blocks):
            q, k, v = (layer_norm(x, x.shape[-1:]) @ block["qkv"].mT).unflatten(-1, (3, -1, self.head)).unbind(dim=-3)
            q, k = _turned(q, turn), _turned(k, turn)
            q, k, v = (each.transpose(1, 2) for each in (q, k, v))  # (B, H, t, head)
            if cache is not None:
                kept = cache[layer]
                kept[0][rows, :, position], kept[1][rows, :, position] = k.transpose(1, 2), v.transpose(1, 2)
                k, v = kept.unbind(dim=0)
            mixed = scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=cache is None)
            x = x + mixed.transpose(1, 2).flatten(-2) @ block["out"].mT
            x = x + gelu(layer_norm(x, x.shape[-1:]) @ block["up"].mT) @ block["down"].mT
        return layer_norm(x, x.shape[-1:]) @ self.embedding.mT


def _rotation(position: Tensor, head: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Cosines and sines of rotary positions, (B, t, 1, head / 2)."""
    rate = 1000.0 ** (-torch.arange(0, head, 2, device=position.device, dtype=torch.float64) / head)
    angle = (position.unsqueeze(-1).double() * rate).unsqueeze(-2)
    return angle.cos().to(dtype), angle.sin().to(dtype)


def _turned(x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    cos, sin = turn
    even, odd = x.chunk(2, dim=-1)
    return torch.cat([even * cos - odd * sin, even * sin + odd * cos], dim=-1)


def train(
    model: LanguageModel, grammar: Grammar, *, steps: int, batch_size: int, length: int, lr: float, generator
) -> Tensor:
    """AdamW on fresh texts of the grammar, warm-up for a tenth of the steps, then a cosine to zero: losses (steps,)."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=lr, betas=(0.9, 0.98), weight_decay=0.01)
    device, losses = model.embedding.device, []
    for step in range(steps):
        warm = min(1.0, 10 * (step + 1) / steps)
        for group in optimiser.param_groups:
            group["lr"] = lr * warm * 0.5 * (1 + math.cos(math.pi * step / steps))
        ids = grammar.sample(batch_size, length, generator).to(device)
        loss = cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        losses.append(loss.detach())
    return torch.stack(losses).double().cpu()


def next_law(logits: Float[Tensor, "*batch V"], temperature: float = 1.0, top_p: float = 1.0) -> Tensor:
    """The law to sample from, float64: softmax at a temperature, cut to the smallest set of likely tokens of mass
    top_p."""
    law = torch.softmax(logits.double() / temperature, dim=-1)
    if top_p >= 1:
        return law
    ordered, order = law.sort(dim=-1, descending=True, stable=True)
    ordered = ordered * (ordered.cumsum(dim=-1) - ordered < top_p)
    law = torch.zeros_like(law).scatter(-1, order, ordered)
    return law / law.sum(dim=-1, keepdim=True)


def pick(law: Float[Tensor, "B V"], generator: torch.Generator) -> Int[Tensor, "B"]:
    """One draw from each row."""
    drawn = torch.multinomial(law.to(generator.device), 1, generator=generator).squeeze(dim=-1)
    return drawn.to(law.device)
