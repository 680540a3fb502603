"""The layers: multi-scale attention, and the controls that a gain has to beat, with weights that they share.

symbol          name            meaning                                                         axes
R               num_networks    independent networks side by side; network r has its own draws  leading axis
x               x               tokens                                                          (R, *batch, T, width)
W_Q^(l)         W_Q[l]          queries of level l                                              (R, heads d_k, width)
W_K^(l)         W_K[l]          keys of level l                                                 (R, heads d_k, width)
W_V, W_O        W_V, W_O        values (of level 0) and output                                  (R, width, width)
a               a               logits of alpha = softmax(a), one set per head                  (R, heads, L)
C_l             downsample      downsampling from level l - 1 to l, L - 1 of                    (R, d, kernel, d)

Weight ``name`` of network r comes from stream(seed, "weights", layer, name, r): layers of different kinds with one seed
share every weight that they both have, and a network does not depend on how many stand beside it.
"""

import math
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from derived.lab.checks import check_choice, check_count, check_within
from derived.lab.nets import Draws, linear, merge_heads, split_heads

from .attention import IMPLEMENTATIONS, attend_plain, mix, score_tables
from .pyramid import POOLINGS, Pooling, causal_convolution, pyramid

Implementation = Literal["reference", "fused", "tables"]


def _check_tokens(x: Tensor, weight: Tensor, width: int) -> None:
    """ValueError unless tokens have the networks, the width and the type of numbers of a layer with this weight."""
    if x.ndim < 3 or x.shape[0] != len(weight) or x.shape[-1] != width:
        raise ValueError(
            f"x has shape {tuple(x.shape)}; give (R, *batch, T, width) with R = {len(weight)}, width = {width}; "
            f"for one network x.unsqueeze(0)"
        )
    if x.dtype != weight.dtype:
        raise ValueError(
            f"x is {x.dtype}, and the weights are {weight.dtype}; "
            f"give x.to({weight.dtype}), or the layer dtype={x.dtype}"
        )


class CausalDownsample(nn.Module):
    """C_l, a causal convolution of stride 2: y_j = sum_m W_m x_{2j - kernel + 1 + m}, with zeros before the first row.

    (R, *batch, T, d) to (R, *batch, ceil(T / 2), d); row j reads rows up to 2j, so nothing leaks. ``weight`` (R, d,
    kernel, d) starts as the average, W_m = I / kernel, so that training starts from the frozen control. ``networks``
    are the arguments of ``derived.lab.nets.Draws``. ValueError for d < 1, kernel < 2 and tokens of another shape.
    [ours]

    >>> CausalDownsample(1)(torch.tensor([2.0, 4.0, 6.0, 8.0]).view(1, 4, 1)).flatten().tolist()
    [1.0, 5.0]
    """

    def __init__(self, d: int, kernel: int = 2, **networks) -> None:
        super().__init__()
        check_count("d", d)
        check_count("kernel", kernel, 2)
        start = torch.eye(d).unsqueeze(1).repeat(1, kernel, 1) / kernel
        self.weight = Draws(**networks).full(start)

    def forward(self, x: Float[Tensor, "R *batch T d"]) -> Float[Tensor, "R *batch rows d"]:
        """(R, *batch, T, d) -> (R, *batch, ceil(T / 2), d)."""
        _check_tokens(x, self.weight, self.weight.shape[1])
        return causal_convolution(x, self.weight, 2)


class HierarchicalScores(nn.Module):
    """S = sum_l alpha_l U_l S^(l) U_l^T with S^(l) = X^(l) M_l X^(l)T, M_l = W_Q^(l) W_K^(l)T / sqrt(d_k), per head.

    A convex mixture of score tables, each repeated to the finest level: (R, *batch, T, d) to (R, *batch, heads, T, T).
    ``pooling``: "convolution" (trainable, the layer of the chapter), "average" (frozen) or "block" (leaks the future:
    the negative control). Without ``stride`` every level has a summary at each token. ``alpha0`` is the initial weight
    of level 0, the rest shared evenly; if it is not given all are equal, which flattens the start of the softmax by 1/L.
    ``networks`` are the arguments of ``derived.lab.nets.Draws``. ValueError for sizes < 1, an unknown pooling, heads
    that do not divide d, and alpha0 outside (0, 1). [ours]

    >>> scores = HierarchicalScores(d=6, heads=2, levels=3)
    >>> x = torch.linspace(-1, 1, 54).view(1, 9, 6)
    >>> [tuple(table.shape) for table in scores.tables(x)], tuple(scores(x).shape)
    ([(1, 2, 9, 9), (1, 2, 5, 5), (1, 2, 3, 3)], (1, 2, 9, 9))
    """

    def __init__(
        self,
        d: int,
        heads: int = 1,
        levels: int = 3,
        *,
        pooling: Pooling = "convolution",
        kernel: int = 2,
        stride: bool = True,
        alpha0: float | None = None,
        **networks,
    ) -> None:
        super().__init__()
        check_choice("pooling", pooling, POOLINGS)
        check_count("levels", levels)
        check_heads(d, heads)
        draws = Draws(**networks)
        self.d, self.heads, self.levels, self.pooling, self.stride = d, heads, levels, pooling, stride
        self.W_Q = nn.ParameterList([draws.matrix(f"W_Q{l}", d, d) for l in range(levels)])
        self.W_K = nn.ParameterList([draws.matrix(f"W_K{l}", d, d) for l in range(levels)])
        self.a = draws.full(initial_logits(levels, alpha0).repeat(heads, 1))
        trainable = levels - 1 if pooling == "convolution" else 0  # only these have C_1, ..., C_{L-1}
        self.downsample = nn.ModuleList([CausalDownsample(d, kernel, **networks) for _ in range(trainable)])

    def alpha(self) -> Float[Tensor, "R heads L"]:
        """The convex weights of the levels."""
        return torch.softmax(self.a, dim=-1)

    def pyramid(self, x: Float[Tensor, "R *batch T d"]) -> list[Tensor]:
        """[X^(0), ..., X^(L-1)], level l of (R, *batch, T_l, d)."""
        _check_tokens(x, self.a, self.d)
        weights = [each.weight for each in self.downsample] if self.pooling == "convolution" else None
        return pyramid(x, self.levels, self.pooling, weights, stride=self.stride)

    def features(self, x: Float[Tensor, "R *batch T d"]) -> tuple[list[Tensor], list[Tensor], Tensor]:
        """q, k of each level, (R, *batch, heads, T_l, d_k), and alpha as (R, 1, ..., heads, L)."""
        rows = self.pyramid(x)
        q, k = (
            [split_heads(linear(z, W), self.heads) for z, W in zip(rows, side, strict=True)]
            for side in (self.W_Q, self.W_K)
        )
        return q, k, self.alpha().view(len(self.a), *[1] * (x.ndim - 3), self.heads, self.levels)

    def tables(self, x: Float[Tensor, "R *batch T d"]) -> list[Tensor]:
        """The score pyramid [S^(0), ..., S^(L-1)], level l of (R, *batch, heads, T_l, T_l)."""
        q, k, _ = self.features(x)
        return score_tables(q, k)

    def forward(self, x: Float[Tensor, "R *batch T d"]) -> Float[Tensor, "R *batch heads T T"]:
        """S, not masked."""
        q, k, alpha = self.features(x)
        return mix(score_tables(q, k), alpha)


def check_heads(d: int, heads: int) -> None:
    """Raise ValueError unless ``heads`` divides the width."""
    check_count("d", d)
    check_count("heads", heads)
    if d % heads:
        raise ValueError(f"heads = {heads} does not divide the width d = {d}; give a divisor")


def initial_logits(levels: int, alpha0: float | None) -> Float[Tensor, "L"]:
    """a with softmax(a) = (alpha0, the rest shared evenly); zeros if alpha0 is None or there is one level."""
    a = torch.zeros(levels, dtype=torch.float64)
    # softmax(a_0, 0, ..., 0) has first entry alpha0 iff e^a_0 / (L - 1) = alpha0 / (1 - alpha0)
    if alpha0 is not None and levels > 1:
        check_within("alpha0", alpha0, torch.finfo(torch.float32).eps, 1 - torch.finfo(torch.float32).eps)
        a[0] = math.log(alpha0 * (levels - 1) / (1 - alpha0))
    return a


class HKTAttention(nn.Module):
    """Y = W_O concat_heads(softmax(mask(S)) X W_V) with hierarchical scores S; values and output are of level 0. [ours]

    (R, *batch, T, d) to the same. ``impl``: "reference" (every table materialised), "fused" (one ordinary attention of
    width L d_k) or "tables" (coarse tables spread over tiles); they agree up to rounding. ``levels`` = 1 is ordinary
    attention. Other arguments and errors as in ``HierarchicalScores``; ValueError for an unknown ``impl``.

    Layers of one ``layer`` name and seed have equal weights: give each layer of a stack a name. Texts of unequal length
    are padded on the right, where a causal layer does not look; padding on the left would move a text against the
    blocks. A prompt may be as short as one token.

    >>> first, second = (HKTAttention(8, heads=2, levels=3, layer=f"block {i}") for i in (1, 2))
    >>> torch.equal(first.W_V, second.W_V)
    False
    >>> texts = torch.linspace(-1, 1, 160).view(1, 2, 10, 8)  # one network, two texts
    >>> padded = torch.nn.functional.pad(texts[:, :, :3], (0, 0, 0, 7))  # three tokens each, and padding
    >>> torch.allclose(first(padded)[:, :, :3], first(texts)[:, :, :3], atol=1e-6)
    True
    """

    def __init__(
        self,
        d: int,
        heads: int = 1,
        levels: int = 3,
        impl: Implementation = "fused",
        *,
        pooling: Pooling = "convolution",
        kernel: int = 2,
        stride: bool = True,
        alpha0: float | None = None,
        **networks,
    ) -> None:
        super().__init__()
        check_choice("impl", impl, tuple(IMPLEMENTATIONS))
        if impl == "tables" and not stride:
            raise ValueError("impl = 'tables' without stride; no table is small then, give 'fused' or 'reference'")
        options = {"pooling": pooling, "kernel": kernel, "stride": stride, "alpha0": alpha0}
        self.scores = HierarchicalScores(d, heads, levels, **options, **networks)
        draws = Draws(**networks)
        self.W_V, self.W_O = draws.matrix("W_V", d, d), draws.matrix("W_O", d, d)
        self.heads, self.impl = heads, impl

    def forward(self, x: Float[Tensor, "R *batch T d"]) -> Float[Tensor, "R *batch T d"]:
        """What attention adds to the stream."""
        q, k, alpha = self.scores.features(x)
        v = split_heads(linear(x, self.W_V), self.heads)
        # Y = W_O concat_heads(softmax(mask(S)) V)
        return linear(merge_heads(IMPLEMENTATIONS[self.impl](q, k, v, alpha)), self.W_O)


class PlainAttention(nn.Module):
    """Ordinary attention with query/key width ``widen`` d / heads; widen = L is the control of equal width.

    Queries and keys of part l are the weights that level l of HKTAttention starts from. With widen = 1 this is HKT with
    one level. ``networks`` are the arguments of ``Draws``. [ours]
    """

    def __init__(self, d: int, heads: int = 1, widen: int = 1, **networks) -> None:
        super().__init__()
        check_heads(d, heads)
        check_count("widen", widen)
        draws = Draws(**networks)
        self.W_Q = nn.Parameter(torch.cat([draws.matrix(f"W_Q{l}", d, d).detach() for l in range(widen)], dim=1))
        self.W_K = nn.Parameter(torch.cat([draws.matrix(f"W_K{l}", d, d).detach() for l in range(widen)], dim=1))
        self.W_V, self.W_O = draws.matrix("W_V", d, d), draws.matrix("W_O", d, d)
        self.d, self.heads = d, heads

    def compared(self, x: Float[Tensor, "R *batch T d"]) -> Float[Tensor, "R *batch T d"]:
        """What queries and keys are taken from: the tokens themselves."""
        return x

    def forward(self, x: Float[Tensor, "R *batch T d"]) -> Float[Tensor, "R *batch T d"]:
        """What attention adds to the stream."""
        _check_tokens(x, self.W_V, self.d)
        z = self.compared(x)
        q, k, v = (split_heads(linear(*pair), self.heads) for pair in ((z, self.W_Q), (z, self.W_K), (x, self.W_V)))
        # by its own width: 1/sqrt(L d_k)
        return linear(merge_heads(attend_plain(q, k, v, scale=q.shape[-1] ** -0.5)), self.W_O)


class ConvQKAttention(PlainAttention):
    """Ordinary attention whose queries and keys see one causal convolution of the tokens: the control without levels.

    z_i = sum_m weight[:, m] x_{i - kernel + 1 + m}; kernel = 2^(L-1) is as many tokens as a row of the coarsest of L
    levels reads. Starts as the identity, that is as ordinary attention. (R, *batch, T, d) to the same. ValueError for
    sizes < 1, heads that do not divide d and tokens of another shape. [ours]

    >>> x = torch.linspace(-1, 1, 20).view(1, 5, 4)
    >>> torch.allclose(ConvQKAttention(4)(x), PlainAttention(4)(x), atol=1e-6)
    True
    """

    def __init__(self, d: int, heads: int = 1, kernel: int = 4, **networks) -> None:
        check_count("kernel", kernel)
        super().__init__(d, heads, **networks)
        start = torch.zeros(d, kernel, d)
        start[:, -1] = torch.eye(d)
        self.weight = Draws(**networks).full(start)

    def compared(self, x: Float[Tensor, "R *batch T d"]) -> Float[Tensor, "R *batch T d"]:
        """The convolved tokens."""
        return causal_convolution(x, self.weight)
