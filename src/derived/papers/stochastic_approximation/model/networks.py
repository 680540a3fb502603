"""A small transformer for streams of tokens, R of them side by side.

symbol   name      meaning                                                                  axes
y        tokens    tokens 0..S-1; a further token, S, begins every text                     (R, B, T)
d        width     features of the residual stream                                          scalar
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from derived.lab.checks import check_count
from derived.lab.nets import Draws, layer_norm, linear, merge_heads, split_heads


class TinyAttention(nn.Module):
    """Layers of causal softmax attention and ReLU, pre-norm, that read tokens y_0..y_{t-1} and give logits for y_t.

    There are no positions: a layer sees the past as a bag, and can average and no more. Networks r and
    r + num_networks, ... (``copies`` of each) start alike. ValueError for counts below one and a text longer than
    ``context``.

    >>> TinyAttention(2, 8)(torch.zeros(1, 3, 8, dtype=torch.long)).shape
    torch.Size([1, 3, 8, 2])
    """

    def __init__(
        self,
        symbols: int,
        context: int,
        *,
        layers: int = 1,
        width: int = 16,
        hidden: int = 32,
        heads: int = 2,
        num_networks: int = 1,
        copies: int = 1,
        seed: int = 0,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__()
        counts = {"symbols": symbols, "context": context, "layers": layers, "width": width, "hidden": hidden}
        for name, value in (counts | {"heads": heads, "copies": copies}).items():
            check_count(name, value)
        if width % heads:
            raise ValueError(f"{heads} heads do not share {width} features; give a width that heads divide")
        self.symbols, self.context, self.heads = symbols, context, heads

        def matrix(layer: int, name: str, rows: int, columns: int) -> nn.Parameter:
            drawn = Draws(num_networks=num_networks, seed=seed, layer=f"tiny {layer}", dtype=dtype, device=device)
            return nn.Parameter(drawn.matrix(name, rows, columns).detach().repeat(copies, 1, 1))

        def zeros(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.zeros(num_networks * copies, *shape, dtype=dtype, device=device))

        self.embedding = matrix(-1, "embedding", width, symbols + 1)  # the last column begins a text
        self.layers = nn.ModuleList()
        for layer in range(layers):
            weights = {name: matrix(layer, name, width, width) for name in ("query", "key", "value", "out")}
            weights |= {"up": matrix(layer, "up", hidden, width), "up_bias": zeros(hidden)}
            weights |= {"down": matrix(layer, "down", width, hidden)}
            self.layers.append(nn.ParameterDict(weights))
        self.readout, self.readout_bias = matrix(layers, "readout", symbols, width), zeros(symbols)
        place = torch.arange(context, device=device)
        self.register_buffer("future", place[:, None] < place)

    def forward(self, tokens: Int[Tensor, "R B T"]) -> Float[Tensor, "R B T S"]:
        length = tokens.shape[-1]
        if length > self.context:
            raise ValueError(f"{length} tokens, but the context is {self.context}; give at most as many")
        begin = torch.full_like(tokens[..., :1], self.symbols)
        seen = torch.cat([begin, tokens[..., :-1]], dim=-1)
        network = torch.arange(len(tokens), device=tokens.device).view(-1, 1, 1)
        x = self.embedding.mT[network, seen]
        for weights in self.layers:
            x = x + self._attend(layer_norm(x), weights)
            inner = linear(layer_norm(x), weights["up"]) + weights["up_bias"][:, None, None]
            x = x + linear(torch.relu(inner), weights["down"])
        return linear(layer_norm(x), self.readout) + self.readout_bias[:, None, None]

    def _attend(self, x: Tensor, weights: nn.ParameterDict) -> Tensor:
        """Causal softmax attention, (R, B, T, d) to the same."""
        q, k, v = (split_heads(linear(x, weights[name]), self.heads) for name in ("query", "key", "value"))
        scores = q @ k.mT / q.shape[-1] ** 0.5  # (R, B, heads, T, T)
        length = x.shape[-2]
        scores = scores.masked_fill(self.future[:length, :length], float("-inf"))
        return linear(merge_heads(torch.softmax(scores, dim=-1) @ v), weights["out"])
