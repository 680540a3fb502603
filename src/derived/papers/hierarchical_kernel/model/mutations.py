"""The layer with one line of it changed: what a slip in an implementation computes, and which property it loses.

symbol   name      meaning                                                              axes
A        mutated   attention of a change                                                (R, *batch, heads, T, T)
future   Damage    how far early rows of A move when later tokens do                    0 in a causal layer
odds     Damage    how far ln A_ij / A_ii is from S_ij - S_ii, j <= i                   0 up to rounding

Both properties are theorems of the chapter: no row reads the future, and a row attends by its mixed scores. [ours]
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from .attention import attend_reference, causal_mask, mix, score_tables, upsample
from .layers import HierarchicalScores

HARMLESS = "harmless: features of q and k in another order"


def mutated(scores: HierarchicalScores, x: Float[Tensor, "R *batch T d"]) -> dict[str, Tensor]:
    """The attention of the layer under each change, by its name; the first change is harmless.

    ``scores`` has two levels or more, and T is even, so that a coarse row can be looked up one too late. [ours]
    """
    q, k, alpha = scores.features(x)
    one = torch.eye(x.shape[-2], dtype=x.dtype, device=x.device)  # with values e_1, ..., e_T the output is A itself
    later = [[a[0], *(torch.cat([b, b[..., -1:, :]], dim=-2) for b in a[1:])] for a in (q, k)]
    half = [a * alpha[..., l, None, None].sqrt() for l, a in enumerate(q)]
    early = [upsample(table, len(one), l) for l, table in enumerate(score_tables(q, k))]
    early = [alpha[..., l, None, None] * torch.softmax(causal_mask(table), dim=-1) for l, table in enumerate(early)]
    return {
        HARMLESS: attend_reference([a.flip(-1) for a in q], [b.flip(-1) for b in k], one, alpha),
        "no mask": attend_reference(q, k, one, alpha, causal=False),
        "the coarse row after the right one": attend_reference(*later, one, alpha, offset=1),
        "no scaling": attend_reference([a * a.shape[-1] ** 0.5 for a in q], k, one, alpha),
        "level 0 only": attend_reference(q[:1], k[:1], one, torch.ones_like(alpha[..., :1])),
        "equal weights": attend_reference(q, k, one, torch.full_like(alpha, 1 / len(q))),
        "the root of alpha on one side only": attend_reference(half, k, one, torch.ones_like(alpha)),
        "softmax before mixing": sum(early),
    }


class Damage(NamedTuple):
    """The two properties of the layer, as sizes of what is lost of them."""

    future: float
    odds: float


@torch.no_grad()
def damage(scores: HierarchicalScores, x: Float[Tensor, "R *batch T d"]) -> dict[str, Damage]:
    """What each change does to causality and to the log-odds, the worst over all networks, heads and rows. [ours]"""
    other, seen = x.clone(), 2 * (x.shape[-2] // 4)  # an even number of tokens stays as it is
    other[..., seen:, :] *= -1
    q, k, alpha = scores.features(x)
    S = mix(score_tables(q, k), alpha)
    after, found = mutated(scores, other), {}
    for name, A in mutated(scores, x).items():
        future = (A - after[name])[..., :seen, :].abs().max()
        log_odds = (A.log() - A.diagonal(dim1=-2, dim2=-1).log().unsqueeze(-1)).tril()
        right = (S - S.diagonal(dim1=-2, dim2=-1).unsqueeze(-1)).tril()
        found[name] = Damage(float(future), float((log_odds - right).abs().max()))
    return found
