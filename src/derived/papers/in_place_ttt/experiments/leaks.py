"""Which later inputs an output depends on, by derivative: the layer, and what was said or could be tried instead."""

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import torch
from torch import Tensor

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..model.forms import chunk_grid, depthwise_target, in_place_ttt
from ..model.theory import reach

# variant -> (taps ahead, taps cross the edge)
TARGETS = {
    "taps inside": (2, False),
    "one tap across": (1, True),
    "two taps across": (2, True),
    "past taps": (0, False),
}
VARIANTS = (*TARGETS, "update first", "chunks of one")


@dataclass(frozen=True, kw_only=True)
class Leaks(Experiment):
    """IPT-4, 9.b: derivatives of outputs by later inputs, keys made causally of all earlier inputs.

    Rows: variant, instance, chunk, position (n), future (m - n > 0), jacobian (largest |entry| of dO_n / ds_m),
    expected (1 where the theorem says that O_n depends on s_m). In "chunks of one" the output is that of the target
    alone, and future counts how far away the neighbour is, to either side.
    """

    instances: int = 3
    tokens: int = 12
    d: int = 3
    chunks: tuple[int, ...] = (4, 5)

    tiny: ClassVar = {"instances": 1, "tokens": 8, "d": 2, "chunks": (3,)}

    def conditions(self) -> list[dict]:
        return [{"variant": variant} for variant in VARIANTS]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        variant = condition["variant"]
        chunks = (1,) if variant == "chunks of one" else self.chunks
        return pd.concat([self.table(variant, chunk, seed, device, dtype) for chunk in chunks], ignore_index=True)

    def table(self, variant: str, chunk: int, seed: int, device, dtype) -> pd.DataFrame:
        n, draw = self.tokens, stream(seed, "leaks", variant, chunk)
        normal = lambda *shape: torch.randn(*shape, generator=draw, dtype=dtype).to(device)  # noqa: E731
        source = normal(self.instances, n, self.d).requires_grad_()
        mix, kernel, w_down = normal(n, n).tril(), normal(self.d, 5), normal(self.d, self.d)
        keys = mix @ source  # what attention does: every earlier input
        if variant == "chunks of one":
            outputs = depthwise_target(source, kernel, chunk=1)
            apart = (torch.arange(n).unsqueeze(0) - torch.arange(n).unsqueeze(1)).abs()
            expected, shown = torch.zeros(n, n), apart > 0
        else:
            outputs = self.outputs(variant, source, keys, kernel, w_down, chunk)
            apart = torch.arange(n).unsqueeze(0) - torch.arange(n).unsqueeze(1)
            expected, shown = self.expected(variant, chunk), apart > 0
        size = largest_derivative(outputs, source)
        place = shown.nonzero()
        cells = {("position", "future"): (place[:, 0], apart[shown])}
        columns = {"chunk": chunk, "jacobian": size[:, shown.to(device)], "expected": expected[shown].int()}
        return rows({"instance": range(self.instances)} | cells, columns)

    def outputs(self, variant, source, keys, kernel, w_down, chunk) -> Tensor:
        """The layer in a variant."""
        if variant == "update first":
            values = depthwise_target(source, kernel, chunk=chunk)
            grid = chunk_grid(self.tokens, chunk)
            written = [values[:, : one.stop].mT @ keys[:, : one.stop] for one in grid]
            read = [keys[:, one.start : one.stop] @ (w_down + W).mT for one, W in zip(grid, written, strict=True)]
            return torch.cat(read, dim=1)
        ahead, cross = TARGETS[variant]
        taps = torch.arange(-2, 3, device=kernel.device)
        values = depthwise_target(source, kernel * (taps <= ahead), chunk=chunk, cross=cross)
        return in_place_ttt(keys, values, w_down, 1.0, chunk, impl="loop")

    def expected(self, variant: str, chunk: int) -> Tensor:
        """Which outputs depend on which later inputs, by the theorem on causality."""
        if variant != "update first":
            ahead, cross = TARGETS[variant]
            return reach(self.tokens, chunk, 2, ahead, cross)
        index = torch.arange(self.tokens) // chunk
        return index.unsqueeze(0) == index.unsqueeze(1)


def largest_derivative(outputs: Tensor, source: Tensor) -> Tensor:
    """max |d outputs_n / d source_m| over the features of both, (instances, n, m); instances never interact."""
    shape = outputs.shape[1:]
    basis = torch.eye(shape.numel(), dtype=outputs.dtype, device=outputs.device).view(-1, 1, *shape)
    basis = basis.expand(-1, *outputs.shape)
    (blocks,) = torch.autograd.grad(outputs, source, basis, is_grads_batched=True)  # (n d, instances, m, d)
    return blocks.unflatten(0, shape).abs().amax(dim=(1, 4)).transpose(0, 1)
