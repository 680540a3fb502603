"""The pyramid: causal summaries of the tokens, each level half as long as the one before it.

symbol    name          meaning                                                   axes
X^(0)     x             tokens, the finest level                                  (R, *batch, T, d)
X^(l)     pyramid[l]    level-l rows; row j reads tokens t <= 2^l j               (R, *batch, T_l, d), T_l = ceil(T/2^l)
D_l       weight        causal stride-2 convolution, taps rows 2j-k+1 .. 2j       (R, d, kernel, d): out, tap, in
U_l       row_index     (U_l)_ij = 1 iff j = floor((i + offset) / 2^l)            (T,)

R is an axis of independent networks. No definition of the paper was visible: the construction fits its abstract. [ours]
"""

import math
from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from derived.lab.checks import check_choice, check_count
from derived.lab.nets import linear

Pooling = Literal["convolution", "average", "block", "delayed"]
POOLINGS = ("convolution", "average", "block", "delayed")


def check_levels(T: int, levels: int) -> None:
    """ValueError unless T >= 2^(levels - 1), for what needs a row that summarises a whole block of tokens."""
    check_count("levels", levels)
    check_count("T", T)
    if 2 ** (levels - 1) > T:
        raise ValueError(
            f"T = {T} tokens are fewer than the {2 ** (levels - 1)} of a row of level {levels - 1}; "
            f"give a longer sequence or at most {int(math.log2(T)) + 1} levels"
        )


def num_rows(T: int, level: int) -> int:
    """T_l = ceil(T / 2^l): the rows that causal downsampling, row j after token 2^l j, needs for T tokens."""
    check_count("T", T)
    check_count("level", level, 0)
    return -(-T // 2**level)


def row_index(T: int, level: int, offset: int = 0, device: torch.device | str = "cpu") -> Tensor:
    """floor((i + offset) / 2^l) for i < T, i itself at level 0: the row that stands for token i. Shape (T,), int64."""
    return (torch.arange(T, device=device) + (offset if level else 0)) >> level


def causal_windows(x: Float[Tensor, "*lead T d"], kernel: int, stride: int) -> Float[Tensor, "*lead rows kernel d"]:
    """Rows stride j - kernel + 1 .. stride j of x, zeros before the first: (..., ceil(T / stride), kernel, d)."""
    return pad(x, (0, 0, kernel - 1, 0)).unfold(-2, kernel, stride).transpose(-1, -2)


def causal_convolution(
    x: Float[Tensor, "R *batch T d"], weight: Float[Tensor, "R out kernel d"], stride: int = 1
) -> Float[Tensor, "R *batch rows out"]:
    """y_j = sum_m weight[:, m] x_{stride j - kernel + 1 + m}: row j reads rows <= stride j, so nothing leaks.

    Zeros stand before the first row; ceil(T / stride) rows come out. [ours]
    """
    # the kernel rows of a window side by side, so that all taps are one product: (..., kernel d) with (out, kernel d)
    return linear(causal_windows(x, weight.shape[-2], stride).flatten(-2), weight.flatten(-2))


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
) -> list[Tensor]:
    """The levels [X^(0), ..., X^(L-1)] of a sequence, X^(l) = D_l X^(l-1): each has half the rows of the one before it.

    x is (*lead, T, d), level l (*lead, T_l, d). "convolution": causal with ``weights``, L - 1 of (R, d, kernel, d), so
    that row j reads tokens t <= 2^l j only; "average": the same frozen at (1/2, 1/2); "block": means of [2^l j, 2^l
    (j+1)), which leak; "delayed": complete blocks only, after a row of zeros, to be read with offset = 1 (row
    floor((i+1)/2^l) is the last block that ended by token i). A short text has few coarse rows, at least one a level.
    ValueError for an unknown pooling and weights that do not fit it. [ours]

    >>> [rows.flatten().tolist() for rows in pyramid(torch.tensor([[2.0], [4.0], [6.0], [8.0]]), 2)]
    [[2.0, 4.0, 6.0, 8.0], [1.0, 5.0]]
    """
    check_choice("pooling", pooling, POOLINGS)
    check_count("levels", levels)
    if (pooling == "convolution") != (weights is not None) or (weights is not None and len(weights) != levels - 1):
        given = "none" if weights is None else f"{len(weights)}"
        raise ValueError(f"pooling = {pooling!r} with weights: {given}; only 'convolution' has any, {levels - 1}")
    rows = [x]
    for l in range(1, levels):  # X^(l) = D_l X^(l-1)
        if pooling == "convolution":
            rows.append(causal_convolution(rows[-1], weights[l - 1], 2))
        else:
            rows.append(causal_average(rows[-1]) if pooling == "average" else block_average(rows[-1]))
    if pooling == "delayed":
        T = x.shape[-2]  # row j of "block" is complete only if T >= 2^l (j + 1)
        rows[1:] = [pad(level[..., : T // 2 ** (l + 1), :], (0, 0, 1, 0)) for l, level in enumerate(rows[1:])]
    return rows


def offset_of(pooling: Pooling) -> int:
    """What is added to i before the row of a coarse level is looked up: 1 for "delayed", else 0."""
    return int(pooling == "delayed")
