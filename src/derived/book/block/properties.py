"""What must still be true of each mechanism wherever its change stands: a gap and the largest gap that rounding allows.

A property looks at a composed model through the methods of ``Plain``, whichever class they come from, so that it is
lost where another change undoes it. ``PROPERTIES`` has one for each slug of ``CHANGES``.
"""

import copy

import torch
from torch import Tensor

from derived.book.block.changes import InPlaceTTT
from derived.book.block.plain import VOCABULARY, WIDTH, Plain
from derived.lab.rng import stream
from derived.papers.cactus import SpS, acceptance_rate

EXACT = 0.0
ROUNDING = 1e3 * torch.finfo(torch.float64).eps  # sums of at most 48 products of numbers of order one, a few in a row


def _normed(model: Plain, ids: Tensor) -> Tensor:
    return model.norm(model.embed(ids))


def ols_attention(model: Plain, ids: Tensor) -> tuple[float, float]:
    r"""The weights are a projection: $AA=A$ and $A=A^\top$."""
    A = model.weigh(_normed(model, ids))
    return torch.maximum((A @ A - A).abs().max(), (A - A.mT).abs().max()).item(), ROUNDING


def signal_propagation(model: Plain, ids: Tensor) -> tuple[float, float]:
    """A coordinate after the normaliser depends on itself alone."""
    x = model.embed(ids)
    moved = x.clone()
    moved[..., 0] += 1.0
    return (model.norm(moved) - model.norm(x))[..., 1:].abs().max().item(), EXACT


def homogenized(model: Plain, ids: Tensor) -> tuple[float, float]:
    """Tokens leave the block with length one."""
    return (torch.linalg.vector_norm(model.block(model.embed(ids)), dim=-1) - 1).abs().max().item(), ROUNDING


def sinkhorn(model: Plain, ids: Tensor) -> tuple[float, float]:
    """The columns of the weights sum to one."""
    A = model.weigh(_normed(model, ids))
    # The iteration stops where columns of the plan, which has total mass 1, miss theirs by 1e-12 together.
    return (A.sum(dim=-2) - 1).abs().max().item(), 1e-12 * A.shape[-1] + ROUNDING


def hierarchical_kernel(model: Plain, ids: Tensor) -> tuple[float, float]:
    """However coarse, the scores of two tokens do not depend on those after them."""
    x = _normed(model, ids)
    later = x.clone()
    later[..., -1, :] += 1.0
    return (model.scores(later) - model.scores(x))[..., :-1, :-1].abs().max().item(), ROUNDING


def stochastic_approximation(model: Plain, ids: Tensor) -> tuple[float, float]:
    """With steps 1/n the memory is the mean of the values so far."""
    x = _normed(model, ids)
    v = torch.linspace(-1, 1, ids.shape[-1], dtype=x.dtype).view(-1, 1).expand(*x.shape[:2], 2, -1, WIDTH // 2)
    times = torch.arange(1, ids.shape[-1] + 1, dtype=x.dtype).view(-1, 1)
    return (model.mix(x, v) - v.cumsum(dim=-2) / times).abs().max().item(), ROUNDING


def in_place_ttt(model: Plain, ids: Tensor) -> tuple[float, float]:
    """The first chunk reads the weights as they stand; what is read later was written before."""
    x = _normed(model, ids)
    gap = (model.mlp(x) - Plain.mlp(model, x)).abs().amax(dim=-1)
    first, later = gap[..., : InPlaceTTT.chunk].max().item(), gap[..., InPlaceTTT.chunk :].min().item()
    return (first if later > ROUNDING else float("inf")), ROUNDING


def cactus(model: Plain, ids: Tensor) -> tuple[float, float]:
    """What is written has a law, and a draft is kept at least as often as by exact speculative sampling."""
    draft = Plain.forward(_headless(model), ids)[..., -1, :].softmax(dim=-1)
    exact, law = model(ids)[..., -1, :].softmax(dim=-1), model.emit(ids)
    kept = torch.minimum(draft, law).sum(dim=-1) - acceptance_rate(draft, exact, SpS())
    changed = (law - exact).abs().amax(dim=-1).min().item() > ROUNDING
    gap = max(-kept.min().item(), (law.sum(dim=-1) - 1).abs().max().item())
    return (gap if changed else float("inf")), ROUNDING


def _headless(model: Plain) -> Plain:
    """The model without its block: what it drafts with."""
    made = copy.copy(model)
    made.block = lambda x: x
    return made


def task_ecologies(model: Plain, ids: Tensor) -> tuple[float, float]:
    """A network of the next generation does what its parent did, and not all parents are themselves."""
    before = model(ids)
    bred = copy.deepcopy(model)
    parents = bred.breed(torch.arange(float(len(before))), stream(1, "parents"))
    same = torch.equal(parents, torch.arange(len(before)))
    return (float("inf") if same else (bred(ids) - before[parents]).abs().max().item()), ROUNDING


def geometric_tax(model: Plain, ids: Tensor) -> tuple[float, float]:
    """A guess one code beside the label costs less than a guess at the far end."""
    following = torch.zeros_like(ids)
    near, far = (
        model.loss(4.0 * torch.eye(VOCABULARY, dtype=torch.float64)[code].expand(3, *ids.shape, -1), following)
        for code in (1, VOCABULARY - 1)
    )
    return (0.0 if bool((near < far - ROUNDING).all()) else float("inf")), EXACT


PROPERTIES = {
    each.__name__: each
    for each in (
        ols_attention,
        signal_propagation,
        homogenized,
        sinkhorn,
        hierarchical_kernel,
        stochastic_approximation,
        in_place_ttt,
        cactus,
        task_ecologies,
        geometric_tax,
    )
}
