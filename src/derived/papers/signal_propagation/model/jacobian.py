"""The averaged partial Jacobian norm of a network: exact, or one backward pass for all layers.

symbol      name        meaning                                                          axes
h^b         states      residual stream before block b                                    (R, *batch, n, d)
xi          probe       N(0, I) at the output; one token's noise for all if "pooled"      as h^B
J, K        J, K        APJN and cross-token companion, per network, prompt and probe      (R, *batch, probes, layers)

J^{B,b} = E |g^b|^2 / (n d) and K^{B,b} = E (|sum_a g_a|^2 - |g|^2) / (n (n-1) d), g^b = d(xi . h^B) / dh^b.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from derived.lab.checks import check_choice, check_count

from .checks import check_states
from .transformer import RandomTransformer


class Apjn(NamedTuple):
    """J and K in float64 on the CPU; the last axis runs over the depths 0 .. depth."""

    J: Tensor
    K: Tensor


def gradient_moments(gradients: Sequence[Float[Tensor, "*batch n d"]]) -> Apjn:
    """|g|^2 / (n d) and (|sum_a g_a|^2 - |g|^2) / (n (n-1) d) of each gradient: (*batch, layers), in float64."""
    J, K = [], []
    for g in gradients:
        n, d = g.shape[-2:]
        g = g.double()
        square = g.square().sum(dim=(-2, -1))
        total = g.sum(dim=-2).square().sum(dim=-1)
        J.append(square / (n * d))
        K.append((total - square) / (n * max(n - 1, 1) * d))
    return Apjn(torch.stack(J, dim=-1).cpu(), torch.stack(K, dim=-1).cpu())


def _probes(x: Tensor, num_probes: int, generator: torch.Generator, pooled: bool) -> Tensor:
    """(R, *batch, probes, n, d) from N(0, I), drawn on the generator's device; one for all tokens if ``pooled``."""
    *batch, n, d = x.shape
    shape = (*batch, num_probes, 1 if pooled else n, d)
    probe = torch.randn(shape, generator=generator, dtype=x.dtype, device=generator.device)
    return probe.to(x.device).expand(*batch, num_probes, n, d)


def _check_input(model: RandomTransformer | Iterable[Callable], x: Tensor) -> None:
    check_states("x", x, getattr(model, "dtype", None))
    if x.ndim < 3 or x.shape[-2] < 2:
        raise ValueError(f"x has shape {tuple(x.shape)}; give (R, *batch, n, d), prompts of n >= 2 tokens per network")


def apjn_hutchinson(
    model: RandomTransformer | Iterable[Callable],
    x: Float[Tensor, "R *batch n d"],
    *,
    num_probes: int = 10,
    generator: torch.Generator,
    output_gradient: str = "independent",
) -> Apjn:
    """J^{B,b} and K^{B,b} for all b, O(B) for each probe: (R, *batch, num_probes, B + 1).

    One forward pass, then for each probe one gradient of xi . h^B with respect to every stored h^b, over the same graph.
    ``output_gradient="pooled"`` gives every token the same xi, (J, K)^B = (1, 1).
    Unbiased; one row per probe, nothing averaged. In place of a model the blocks of any network will do, each a map of
    (*batch, n, d) into itself or into a tuple that begins with it, such as ``vit.layers``.
    Raises ValueError for num_probes < 1, prompts of one token or an unknown output_gradient. [repo; in one pass: ours]

    >>> model = RandomTransformer(width=8, depth=2, norm="erf", generator=torch.Generator())
    >>> apjn_hutchinson(model, torch.ones(1, 3, 8), num_probes=5, generator=torch.Generator()).J.shape
    torch.Size([1, 5, 3])
    >>> blocks = [torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval() for _ in range(2)]
    >>> apjn_hutchinson(blocks, torch.randn(1, 3, 8), num_probes=5, generator=torch.Generator()).J.shape
    torch.Size([1, 5, 3])
    """
    check_choice("output_gradient", output_gradient, ("independent", "pooled"))
    check_count("num_probes", num_probes)
    _check_input(model, x)
    return _backward(model, x, _probes(x, num_probes, generator, output_gradient == "pooled"))


def _states(model: RandomTransformer | Iterable[Callable], x: Tensor) -> list[Tensor]:
    """The stream before each block, and after the last."""
    if hasattr(model, "states"):
        return model.states(x)
    states = [x]
    for block in model:
        found = block(states[-1])
        states.append(found if isinstance(found, Tensor) else found[0])
    return states


def _backward(model: RandomTransformer | Iterable[Callable], x: Tensor, probe: Tensor) -> Apjn:
    """Moments of the gradients of xi . h^B for every row xi of ``probe`` (R, *batch, probes, n, d).

    A pass for each row over one graph: ``is_grads_batched`` would copy all weights for each of them.
    """
    states = _states(model, x.detach().clone().requires_grad_())
    passes = (torch.autograd.grad(states[-1], states, each, retain_graph=True) for each in probe.unbind(-3))
    return Apjn(*(torch.stack(each, dim=-2) for each in zip(*map(gradient_moments, passes), strict=True)))


def apjn_exact(
    model: RandomTransformer, x: Float[Tensor, "R *batch n d"], *, output_gradient: str = "independent"
) -> Apjn:
    """J^{B,b} and K^{B,b} of the given networks without noise, all b: (R, *batch, B + 1).

    n d basis vectors take the place of the probes (d, common to all tokens, if "pooled"); for n d up to about 500.
    Raises ValueError for prompts of one token or an unknown output_gradient. [repo; K ours]

    >>> model = RandomTransformer(width=8, depth=2, norm="erf", generator=torch.Generator())
    >>> exact = apjn_exact(model, torch.ones(1, 3, 8))
    >>> exact.J[0, -1].round(decimals=6).item(), exact.K[0, -1].item()  # at the output: the identity
    (1.0, 0.0)
    """
    check_choice("output_gradient", output_gradient, ("independent", "pooled"))
    _check_input(model, x)
    *batch, n, d = x.shape
    if output_gradient == "pooled":
        basis = torch.eye(d, dtype=x.dtype, device=x.device).unsqueeze(-2).expand(d, n, d)
    else:
        basis = torch.eye(n * d, dtype=x.dtype, device=x.device).view(n * d, n, d)
    basis = basis.expand(*batch, *basis.shape)
    J, K = _backward(model, x, basis)
    return Apjn(J.sum(dim=-2), K.sum(dim=-2))
