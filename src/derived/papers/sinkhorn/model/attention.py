"""Attention whose weights are normalised by rows, or by rows and columns, and small transformers made of it.

symbol   name            meaning                                                         axes
q, k, v  q, k, v         queries, keys, values                          (..., n, d), (..., m, d), (..., m, e)
A        -               attention weights, rows of sum 1: A_ij = P_ij / a_i             (..., n, m)
a, b     *_weights       weights of the tokens; None is uniform                          (..., n), (..., m)
-        num_half_steps  1 is softmax, 3 and 5 are the published Sinkformers; None is the limit
R        -               independent networks side by side                               leading axis
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from derived.lab.checks import check_count
from derived.lab.nets import Draws, layer_norm, linear, merge_heads, split_heads

from .backward import sinkhorn_plan
from .plan import half_steps


def attention_weights(
    scores: Float[Tensor, "*batch n m"],
    num_half_steps: int | None = 3,
    query_weights: Float[Tensor, "*#batch n"] | None = None,
    key_weights: Float[Tensor, "*#batch m"] | None = None,
    *,
    mask: Tensor | None = None,
    **options,
) -> Float[Tensor, "*batch n m"]:
    """A = P / a, whose rows sum to 1: after an odd number of half-steps, or (None) of the limit, derived implicitly.

    ``options`` go to ``sinkhorn`` in the limit, which can cost hundreds of times what three half-steps do: see
    ``sinkhorn_attention``. Rows of query weight 0 are 0. ValueError for an even number, which
    would end on columns, and as ``sinkhorn``.

    >>> attention_weights(torch.tensor([[2.0, 0.0], [2.0, 0.0]]), 1)  # softmax
    tensor([[0.8808, 0.1192],
            [0.8808, 0.1192]])
    >>> attention_weights(torch.tensor([[2.0, 0.0], [2.0, 0.0]]), 3)  # both columns receive as much
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """
    weights, facts = (query_weights, key_weights), {"mask": mask}
    if num_half_steps is None:
        plan = sinkhorn_plan(scores, *weights, **facts, **options)
    else:
        check_count("num_half_steps", num_half_steps)
        if num_half_steps % 2 == 0:
            raise ValueError(
                f"num_half_steps = {num_half_steps} ends on columns, so that rows do not sum to 1; give an odd number"
            )
        plan = half_steps(scores, num_half_steps, *weights, **facts).exp()
    if query_weights is None:
        return plan * plan.shape[-2]
    a = query_weights.to(plan).unsqueeze(-1)
    return plan / torch.where(a > 0, a, 1.0)  # where a = 0 the plan is 0


def sinkhorn_attention(
    q: Float[Tensor, "*batch n d"],
    k: Float[Tensor, "*batch m d"],
    v: Float[Tensor, "*batch m e"],
    *,
    num_half_steps: int | None = 3,
    scale: float | None = None,
    query_weights: Float[Tensor, "*#batch n"] | None = None,
    key_weights: Float[Tensor, "*#batch m"] | None = None,
    mask: Tensor | None = None,
    **options,
) -> Float[Tensor, "*batch n e"]:
    """A v with the scores scale * q k^T, scale = d^-1/2 by default; ValueError as ``attention_weights``,
    and where q, k and v have more than one dtype.

    All scores are written out, and each half-step passes over them: three cost several times a fused
    ``scaled_dot_product_attention``. The limit (None) costs a few times as much again where scores are small, and
    hundreds of times where they are large, since the slowest table of a batch holds up all. Where nearly right columns
    will do, keep three or five half-steps, or give the limit a ``tol`` such as 1e-3.

    Padded tokens get the weight 0 as queries and as keys; a mask alone would leave them their share of the mass.

    >>> x = torch.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> sinkhorn_attention(x, x, x, num_half_steps=None).mean(dim=0)  # the limit keeps the mean of the tokens
    tensor([0.6667, 0.6667])
    >>> padded, keep = torch.nn.functional.pad(x, (0, 0, 0, 2)), torch.tensor([1.0, 1.0, 1.0, 0.0, 0.0])
    >>> weights = {"query_weights": keep / keep.sum(), "key_weights": keep / keep.sum()}
    >>> torch.allclose(sinkhorn_attention(padded, padded, padded, **weights)[:3], sinkhorn_attention(x, x, x))
    True
    """
    if not q.dtype == k.dtype == v.dtype:
        kinds = ", ".join(str(each.dtype).removeprefix("torch.") for each in (q, k, v))
        raise ValueError(f"q, k and v are {kinds}; give all three in one dtype, such as k.to(q.dtype)")
    facts = {"query_weights": query_weights, "key_weights": key_weights, "mask": mask}
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    A = attention_weights(scale * q @ k.mT, num_half_steps, **facts, **options)  # float32 at least
    return A.to(v.dtype) @ v


class SinkhornTransformer(nn.Module):
    """R transformers side by side, unmasked, pre-norm, without positions: functions of a weighted set of tokens.

    ``depth`` layers of attention with ``heads`` heads and an MLP of twice the width. ``num_half_steps`` alone decides
    the normaliser; parameters are the same in number and in their start. ValueError for num_half_steps even or < 1.

    >>> net = SinkhornTransformer(3, 2, width=8, depth=1, num_half_steps=1, draws=Draws(num_networks=4))
    >>> net(torch.randn(1, 5, 6, 3)).shape  # the same five texts for all four networks
    torch.Size([4, 5, 6, 2])
    """

    def __init__(
        self,
        features: int,
        outputs: int,
        *,
        width: int = 32,
        depth: int = 2,
        heads: int = 2,
        num_half_steps: int | None = 3,
        draws: Draws | None = None,
    ) -> None:
        super().__init__()
        draws = draws or Draws()
        self.heads, self.depth, self.num_half_steps = heads, depth, num_half_steps
        attention_weights(torch.zeros(1, 1), num_half_steps)  # an even number is refused here
        self.enter = draws.matrix("enter", width, features)
        shapes = {
            "qkv": (3 * width, width),
            "out": (width, width),
            "up": (2 * width, width),
            "down": (width, 2 * width),
        }
        self.layers = nn.ModuleList(
            nn.ParameterDict({name: draws.matrix(f"{name} {layer}", *shape) for name, shape in shapes.items()})
            for layer in range(depth)
        )
        self.leave = draws.matrix("leave", outputs, width)

    def forward(
        self,
        x: Float[Tensor, "#R batch T features"],
        weights: Float[Tensor, "#R batch T"] | None = None,
        attended: list[Tensor] | None = None,
    ) -> Float[Tensor, "R batch T outputs"]:
        """The outputs at every token; ``attended`` receives A of each layer, (R, batch, heads, T, T)."""
        h = linear(x.expand(len(self.enter), -1, -1, -1), self.enter)
        per_head = None if weights is None else weights.unsqueeze(-2)
        for layer in self.layers:
            q, k, v = (split_heads(each, self.heads) for each in linear(layer_norm(h), layer["qkv"]).chunk(3, dim=-1))
            A = attention_weights(q @ k.mT * q.shape[-1] ** -0.5, self.num_half_steps, per_head, per_head)
            if attended is not None:
                attended.append(A)
            h = h + linear(merge_heads(A.to(v.dtype) @ v), layer["out"])
            h = h + linear(functional.gelu(linear(layer_norm(h), layer["up"])), layer["down"])
        return linear(layer_norm(h), self.leave)

    def operations(self, tokens: int) -> int:
        """Floating-point operations of one network's forward pass over a text: two for each multiplication of a matrix
        product, and five for each score in each half-step (add the potential, compare with the largest, subtract it,
        exponentiate, sum); norms and activations are left out. ValueError for the limit, whose steps are not fixed.

        >>> one, five = (SinkhornTransformer(3, 2, num_half_steps=num) for num in (1, 5))
        >>> round(five.operations(32) / one.operations(32), 3)
        1.061
        """
        if self.num_half_steps is None:
            raise ValueError("the limit takes as many half-steps as it needs; give num_half_steps to count them")
        width, features = self.enter.shape[1:]
        ends = 2 * tokens * width * (features + self.leave.shape[1])
        products = 2 * tokens * 8 * width**2 + 4 * tokens**2 * width  # qkv, out, up and down; scores and A v
        return ends + self.depth * (products + 5 * self.num_half_steps * self.heads * tokens**2)


class CouplingTransformer(nn.Module):
    """R learned contextual relations: scores <F, G> between the tokens of two texts, for Sinkhorn to normalise.

    F and G are the outputs of one ``SinkhornTransformer`` over both texts, whose tokens carry a tag; attention inside
    is softmax over the weighted tokens, so that the whole is a function of two measures, of whatever length.

    >>> half = torch.tensor([[[0.5, 0.5]]])
    >>> CouplingTransformer(rank=4, width=8, depth=1)(torch.rand(1, 1, 2), torch.rand(1, 1, 2), half, half).shape
    torch.Size([1, 1, 2, 2])
    """

    def __init__(self, *, rank: int = 16, width: int = 32, depth: int = 2, heads: int = 2, draws: Draws | None = None):
        super().__init__()
        sizes = {"width": width, "depth": depth, "heads": heads, "draws": draws}
        self.encoder = SinkhornTransformer(4, 2 * rank, num_half_steps=1, **sizes)

    def forward(
        self,
        x: Float[Tensor, "#R batch n"],
        y: Float[Tensor, "#R batch m"],
        a: Float[Tensor, "#R batch n"],
        b: Float[Tensor, "#R batch m"],
    ) -> Float[Tensor, "R batch n m"]:
        """The scores between tokens on the line of weights a and b."""
        first, second = (_tagged(each, tag) for tag, each in enumerate((x, y)))
        both = torch.cat([first, second], dim=-2).to(self.encoder.enter)
        weights = torch.cat([a, b], dim=-1).to(both) / 2
        F, G = self.encoder(both, weights).chunk(2, dim=-1)
        return F[..., : x.shape[-1], :] @ G[..., x.shape[-1] :, :].mT


def _tagged(x: Tensor, tag: int) -> Tensor:
    """A position on [0, 1], centred, under the tag of its text, and the tags: (..., n, 4)."""
    zero, one = torch.zeros_like(x), torch.ones_like(x)
    columns = (4 * x - 2, zero, one, zero) if tag == 0 else (zero, 4 * x - 2, zero, one)
    return torch.stack(columns, dim=-1)
