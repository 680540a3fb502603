"""The pyramid: causal summaries of the tokens, each level half as long as the one before it.

symbol    name          meaning                                                   axes
X^(0)     x             tokens, the finest level                                  (R, *batch, T, d)
X^(l)     pyramid[l]    level-l rows; row j reads tokens t <= 2^l j               (R, *batch, T_l, d), T_l = ceil(T/2^l)
C_l       weight        causal stride-2 convolution, taps rows 2j-w+1 .. 2j       (R, d, w, d): out, tap, in

R is an axis of independent networks. No definition of the paper was visible: the construction fits its abstract. [ours]
"""

from collections.abc import Sequence
from typing import Literal

from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from derived.lab.checks import check_choice, check_count
from derived.lab.nets import linear

Pooling = Literal["convolution", "average", "block"]
POOLINGS = ("convolution", "average", "block")


def num_rows(T: int, level: int) -> int:
    """T_l = ceil(T / 2^l): the rows that causal downsampling, row j after token 2^l j, needs for T tokens."""
    check_count("T", T)
    check_count("level", level, 0)
    return -(-T // 2**level)


def causal_windows(
    x: Float[Tensor, "*lead T d"], kernel: int, stride: int, dilation: int = 1
) -> Float[Tensor, "*lead rows kernel d"]:
    """Rows stride j - m dilation of x, m = kernel - 1 .. 0, zeros before the first: (..., ceil(T / stride), kernel, d)."""
    span = (kernel - 1) * dilation + 1
    return pad(x, (0, 0, span - 1, 0)).unfold(-2, span, stride)[..., ::dilation].transpose(-1, -2)


def causal_convolution(
    x: Float[Tensor, "R *batch T d"], weight: Float[Tensor, "R out kernel d"], stride: int = 1, dilation: int = 1
) -> Float[Tensor, "R *batch rows out"]:
    """y_j = sum_m weight[:, kernel - 1 - m] x_{stride j - m dilation}: row j reads rows <= stride j, so nothing leaks.

    Zeros stand before the first row; ceil(T / stride) rows come out. [ours]
    """
    # the kernel rows of a window side by side, so that all taps are one product: (..., kernel d) with (out, kernel d)
    return linear(causal_windows(x, weight.shape[-2], stride, dilation).flatten(-2), weight.flatten(-2))


def causal_average(x: Float[Tensor, "*lead T d"]) -> Float[Tensor, "*lead rows d"]:
    """Row j is (x_{2j-1} + x_{2j}) / 2, with x_{-1} = 0: the frozen kernel of length 2. ceil(T / 2) rows. [ours]"""
    return causal_windows(x, 2, 2).mean(dim=-2)


def block_average(x: Float[Tensor, "*lead T d"]) -> Float[Tensor, "*lead rows d"]:
    """Row j is (x_{2j} + x_{2j+1}) / 2, with x_T = 0: the usual pooling, which reads a token of the future. [ours]"""
    return pad(x, (0, 0, 0, x.shape[-2] % 2)).unflatten(-2, (-1, 2)).mean(dim=-2)


def pyramid(
    x: Float[Tensor, "*lead T d"],
    levels: int,
    pooling: Pooling = "average",
    weights: Sequence[Tensor] | None = None,
    *,
    stride: bool = True,
) -> list[Tensor]:
    """The levels [X^(0), ..., X^(L-1)] of a sequence: each has half the rows of the one before it.

    x is (*lead, T, d), level l (*lead, T_l, d). "convolution": causal with ``weights``, L - 1 of (R, d, kernel, d), so
    that row j reads tokens t <= 2^l j only; "average": the same frozen at (1/2, 1/2); "block": means of [2^l j, 2^l
    (j+1)), which leak. A short text has few coarse rows, at least one a level. Without ``stride`` (convolution alone)
    every level has T rows, by the same taps 2^(l-1) rows apart: row 2^l j is row j of the pyramid. ValueError for an
    unknown pooling and for weights that do not fit it. [ours]

    >>> import torch
    >>> [rows.flatten().tolist() for rows in pyramid(torch.tensor([[2.0], [4.0], [6.0], [8.0]]), 2)]
    [[2.0, 4.0, 6.0, 8.0], [1.0, 5.0]]
    """
    check_choice("pooling", pooling, POOLINGS)
    check_count("levels", levels)
    if (pooling == "convolution") != (weights is not None) or (weights is not None and len(weights) != levels - 1):
        given = "none" if weights is None else f"{len(weights)}"
        raise ValueError(f"pooling = {pooling!r} with weights: {given}; only 'convolution' has any, {levels - 1}")
    if not stride and pooling != "convolution":
        raise ValueError(f"pooling = {pooling!r} without stride; only 'convolution' has this form")
    rows = [x]
    for l in range(1, levels):  # X^(l) = C_l X^(l-1)
        if pooling == "convolution":
            step = {"stride": 2} if stride else {"dilation": 2 ** (l - 1)}
            rows.append(causal_convolution(rows[-1], weights[l - 1], **step))
        else:
            rows.append(causal_average(rows[-1]) if pooling == "average" else block_average(rows[-1]))
    return rows
