"""Context parallelism: consecutive tokens on consecutive ranks; the ranks exchange one matrix (d, h) each.

symbol    name          meaning                                                           axes
Delta_j   increments    V_j^T Z_j of the chunks that a rank holds                         (*B, T_r, d, h)
D_r       totals        the sum of the increments of rank r                               (*B, d, h), one a rank

The state with which a rank begins is W_0 + eta (D_0 + … + D_(r-1)): an exclusive prefix sum over ranks.
"""

from collections.abc import Sequence

import torch
import torch.distributed as dist
from jaxtyping import Float
from torch import Tensor

from .forms import in_place_ttt, increments


def context_parallel_scan(
    local_deltas: Float[Tensor, "*B T d h"], rank_totals: Sequence[Float[Tensor, "*B d h"]]
) -> Float[Tensor, "*B T+1 d h"]:
    """What has been added to W_0, over eta, before each chunk of a rank and after its last.

    ``rank_totals`` are the sums of the increments of all ranks before this one, none for the first.

    >>> ones = torch.ones(2, 1, 1)
    >>> context_parallel_scan(ones, [ones.sum(dim=0)]).flatten()
    tensor([2., 3., 4.])
    """
    start = torch.zeros_like(local_deltas[..., :1, :, :]).sum(dim=-3) + sum(rank_totals)
    return torch.cat([start.unsqueeze(-3), local_deltas], dim=-3).cumsum(dim=-3)


class _Before(torch.autograd.Function):
    """The sum of a tensor over the ranks before this one; its gradient is summed over the ranks after it."""

    @staticmethod
    def forward(ctx, total, group):
        ctx.group = group
        gathered = _gathered(total, group)
        return sum(gathered[: dist.get_rank(group)], torch.zeros_like(total))

    @staticmethod
    def backward(ctx, grad):
        gathered = _gathered(grad, ctx.group)
        return sum(gathered[dist.get_rank(ctx.group) + 1 :], torch.zeros_like(grad)), None


def _gathered(tensor: Tensor, group) -> list[Tensor]:
    gathered = [torch.empty_like(tensor) for _ in range(dist.get_world_size(group))]
    dist.all_gather(gathered, tensor.contiguous(), group=group)
    return gathered


def context_parallel_ttt(
    keys: Float[Tensor, "*B n h"],
    values: Float[Tensor, "*B n d"],
    w_down: Float[Tensor, "d h"],
    lr: float,
    chunk: int,
    *,
    group: dist.ProcessGroup | None = None,
    impl: str = "lean",
) -> Float[Tensor, "*B n d"]:
    """``in_place_ttt`` of a text whose consecutive parts lie on the ranks of ``group``; gradients go through.

    Every rank but the last must hold whole chunks: else ValueError, on all ranks alike. Without an initialised process
    group it is ``in_place_ttt`` itself. The gradient of ``w_down`` is that of the rank's own outputs: add the ranks up,
    as data parallelism does. Start it with ``torchrun --nproc-per-node R script.py``.

    >>> Z = torch.randn(4, 3)
    >>> torch.equal(context_parallel_ttt(Z, Z, torch.eye(3), 0.1, 2), in_place_ttt(Z, Z, torch.eye(3), 0.1, 2))
    True
    """
    if not dist.is_initialized() or dist.get_world_size(group) == 1:
        return in_place_ttt(keys, values, w_down, lr, chunk, impl=impl)
    lengths = [int(each) for each in _gathered(torch.tensor([keys.shape[-2]], device=keys.device), group)]
    if any(length % chunk for length in lengths[:-1]):
        raise ValueError(f"the ranks hold {lengths} tokens; give every rank but the last a multiple of chunk = {chunk}")
    total = increments(keys, values, chunk).sum(dim=-3)
    start = w_down + lr * _Before.apply(total, group)
    return in_place_ttt(keys, values, start, lr, chunk, impl=impl)
