"""Reading on: the state of one layer between calls, for prefill in pieces and for decoding.

symbol   name           meaning                                                     axes
W_i      weight         the state with which the present chunk is read              (*B, d, h)
Z        keys           keys of the present chunk; the first ``fill`` rows count    (*B, C, h)
X_0      source         what its values will be made of                             (*B, C, d)

A chunk is written when its last token has come, so that each value has seen its future within the chunk.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from derived.lab.checks import check_count

from .forms import depthwise_target, in_place_ttt


@dataclass
class InPlaceTTTState:
    """The memory of B texts after some tokens; begun by ``InPlaceTTTState.begin``, moved on by ``step``.

    Gradients go through the tokens of one call, and not from one call into those before.

    >>> state = InPlaceTTTState.begin(torch.zeros(2, 2), chunk=2, lr=1.0)
    >>> x, centre = torch.eye(2), torch.tensor([[0.0, 1.0, 0.0]] * 2)
    >>> state.step(x, x, centre), state.step(x, x, centre)  # the second chunk is read after the first was written
    (tensor([[0., 0.],
            [0., 0.]]), tensor([[1., 0.],
            [0., 1.]]))
    """

    weight: Float[Tensor, "*B d h"]
    keys: Float[Tensor, "*B C h"]
    source: Float[Tensor, "*B C d"]
    fill: int
    lr: float
    tau: float | None = None
    start: Float[Tensor, "*#B d h"] | None = None  # W_0, which reads where the memory is off

    @property
    def chunk(self) -> int:
        """Tokens per chunk."""
        return self.keys.shape[-2]

    @classmethod
    def begin(
        cls,
        w_down: Float[Tensor, "*#B d h"],
        *,
        chunk: int,
        lr: float,
        tau: float | None = None,
        batch: tuple[int, ...] = (),
        memory_off: bool = False,
    ):
        """The state before the first token: an own copy of W_0 for each text. With ``memory_off`` all is written as
        before and every token is read with W_0."""
        check_count("chunk", chunk)
        w_down = w_down.detach()
        d, h = w_down.shape[-2:]
        weight = w_down.expand(*batch, d, h).clone()
        buffers = weight.new_zeros(*batch, chunk, h), weight.new_zeros(*batch, chunk, d)
        return cls(weight, *buffers, 0, lr, tau, w_down if memory_off else None)

    def step(
        self,
        keys: Float[Tensor, "*B n h"],
        source: Float[Tensor, "*B n d"],
        kernel: Float[Tensor, "d K"],
        projection: Float[Tensor, "d d"] | None = None,
    ) -> Float[Tensor, "*B n d"]:
        """Outputs of n more tokens; any split of a text gives what one call gives.

        ValueError for tokens that do not belong to this state: another batch, width or dtype.
        """
        self._check(keys, source)
        static = None if self.start is None else keys @ self.start.mT
        chunk, outputs = self.chunk, []
        head = min(keys.shape[-2], chunk - self.fill) if self.fill else 0
        if head:
            outputs.append(keys[..., :head, :] @ self.weight.mT)
            self._buffer(keys[..., :head, :], source[..., :head, :])
            if self.fill == chunk:
                self.weight = self._written(self.keys, self.source, kernel, projection)[1].detach()
                self.fill = 0
        keys, source = keys[..., head:, :], source[..., head:, :]
        if keys.shape[-2]:
            out, weight = self._written(keys, source, kernel, projection)
            outputs.append(out)
            self.weight = weight.detach()
            rest = keys.shape[-2] % chunk
            if rest:
                self._buffer(keys[..., -rest:, :], source[..., -rest:, :])
        read = torch.cat([keys.new_zeros(*source.shape[:-2], 0, source.shape[-1]), *outputs], dim=-2)
        return read if static is None else static

    def copy(self) -> "InPlaceTTTState":
        """The same memory in separate tensors: for another continuation of the text."""
        return replace(self, weight=self.weight.clone(), keys=self.keys.clone(), source=self.source.clone())

    def rows(self) -> list["InPlaceTTTState"]:
        """The states of single texts, along the first batch axis."""
        starts = [None] * len(self.weight) if self.start is None else self.start.expand_as(self.weight)
        parts = zip(self.weight, self.keys, self.source, starts, strict=True)
        return [InPlaceTTTState(*each, self.fill, self.lr, self.tau, start) for *each, start in parts]

    def _written(self, keys, source, kernel, projection) -> tuple[Tensor, Tensor]:
        values = depthwise_target(source, kernel, projection, chunk=self.chunk)
        return in_place_ttt(keys, values, self.weight, self.lr, self.chunk, tau=self.tau, return_state=True)

    def _buffer(self, keys: Tensor, source: Tensor) -> None:
        stop = self.fill + keys.shape[-2]
        self.keys[..., self.fill : stop, :] = keys.detach()
        self.source[..., self.fill : stop, :] = source.detach()
        self.fill = stop

    def _check(self, keys: Tensor, source: Tensor) -> None:
        held = {"keys": (keys, self.keys), "source": (source, self.source)}
        for name, (given, own) in held.items():
            if given.shape[:-2] != own.shape[:-2] or given.shape[-1] != own.shape[-1] or given.dtype != own.dtype:
                raise ValueError(
                    f"{name} {tuple(given.shape)} {given.dtype} for a state of texts {tuple(own.shape[:-2])}, width "
                    f"{own.shape[-1]}, {own.dtype}; it is the state of another model or batch: begin a new one"
                )
