"""Which later inputs an output depends on, by derivative: the layer, and what was said or could be tried instead."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import pandas as pd
import torch
from torch import Tensor

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..model.forms import chunk_grid, depthwise_target, in_place_ttt

# variant -> (taps ahead, taps cross the edge)
TARGETS = {
    "taps inside": (2, False),
    "one tap across": (1, True),
    "two taps across": (2, True),
    "past taps": (0, False),
}
VARIANTS = (*TARGETS, "update first")


@dataclass(frozen=True, kw_only=True)
class Leaks(Experiment):
    """Derivatives of outputs by later inputs, keys made causally of all earlier inputs; for the figure.

    Rows: variant, instance, chunk, position (n), future (m - n > 0), jacobian (largest |entry| of dO_n / ds_m).
    """

    instances: int = 3
    tokens: int = 12
    d: int = 3
    chunks: tuple[int, ...] = (4, 5)

    tiny: ClassVar = {"instances": 1, "tokens": 8, "d": 2, "chunks": (3,)}

    def conditions(self) -> list[dict]:
        return [{"variant": variant} for variant in VARIANTS]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        return pd.concat(
            [self.table(condition["variant"], chunk, seed, device, dtype) for chunk in self.chunks], ignore_index=True
        )

    def table(self, variant: str, chunk: int, seed: int, device, dtype) -> pd.DataFrame:
        n, draw = self.tokens, stream(seed, "leaks", variant, chunk)
        normal = lambda *shape: torch.randn(*shape, generator=draw, dtype=dtype).to(device)  # noqa: E731
        source = normal(self.instances, n, self.d).requires_grad_()
        mix, kernel, w_down = normal(n, n).tril(), normal(self.d, 5), normal(self.d, self.d)
        keys = mix @ source  # what attention does: every earlier input
        ahead, cross = TARGETS.get(variant, (2, False))
        taps = torch.arange(-2, 3, device=kernel.device)
        values = depthwise_target(source, kernel * (taps <= ahead), chunk=chunk, cross=cross)
        layer = written_first if variant == "update first" else partial(in_place_ttt, impl="loop")
        size = largest_derivative(layer(keys, values, w_down, 1.0, chunk), source)
        place = torch.ones(n, n).triu(1).nonzero()
        cells = {("position", "future"): (place[:, 0], place[:, 1] - place[:, 0])}
        found = size[:, place[:, 0].to(device), place[:, 1].to(device)]
        return rows({"instance": range(self.instances)} | cells, {"chunk": chunk, "jacobian": found})


def written_first(keys: Tensor, values: Tensor, w_down: Tensor, lr: float, chunk: int) -> Tensor:
    """The layer in the order of classical test-time training: a chunk is written, then read."""
    outputs = []
    for one in chunk_grid(keys.shape[1], chunk):
        W = w_down + lr * values[:, : one.stop].mT @ keys[:, : one.stop]
        outputs.append(keys[:, one.start : one.stop] @ W.mT)
    return torch.cat(outputs, dim=1)


def largest_derivative(outputs: Tensor, source: Tensor) -> Tensor:
    """max |d outputs_n / d source_m| over the features of both, (instances, n, m); instances never interact."""
    shape = outputs.shape[1:]
    basis = torch.eye(shape.numel(), dtype=outputs.dtype, device=outputs.device).view(-1, 1, *shape)
    basis = basis.expand(-1, *outputs.shape)
    (blocks,) = torch.autograd.grad(outputs, source, basis, is_grads_batched=True)  # (n d, instances, m, d)
    return blocks.unflatten(0, shape).abs().amax(dim=(1, 4)).transpose(0, 1)
