"""The sampler: one block of drafted tokens for each sequence of a batch is kept, cut or replaced.

symbol        name           meaning                                                        axes
p_1..p_m      draft_probs    the distributions that the drafts were drawn from              (B, m, V)
n_1..n_m      draft_ids      drafted tokens                                                 (B, m)
q_1..q_m+1    target_probs   the verifier's distributions                                   (B, m + 1, V)
u             uniform        one number per draft and one for the last token                (B, m + 1)

A rule that reads no rows needs two numbers per draft, and both rows at one position per sequence, the first rejected
one. Nothing of the size (B, m, V) is made.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from .laws import as_float64, check_laws, check_same_vocabulary
from .rules import Rule

SHORT = 4096  # rows up to this length are summed at once
PIECE = 512  # tokens per piece of a row: the cumulative sums of a draw stay short
TABLE = 2**20  # numbers in a table of rows on a CPU: it stays in the cache, and its memory is used again


class Block(NamedTuple):
    """What one block emits: the kept drafts, then one token, then -1."""

    ids: Tensor  # (B, m + 1)
    n_accepted: Tensor  # (B,)


def uniform(shape: tuple[int, ...], generator: torch.Generator, device: torch.device) -> Tensor:
    """float64 numbers in [0, 1), drawn on the generator's device and moved."""
    return torch.rand(shape, generator=generator, device=generator.device, dtype=torch.float64).to(device)


def draw(weights: Float[Tensor, "B V"], u: Float[Tensor, "B"]) -> Int[Tensor, "B"]:
    """The token y with F(y - 1) <= u < F(y), F the cumulative sum of the weights over their total; -1 for a zero row.

    Inversion; of long rows in two steps, pieces of 512 tokens by their sums, then tokens within the piece in float64.
    It never gives a token of weight 0. A piece is summed in the weights' dtype, so a probability is off by 256 eps of
    itself at worst.
    Shapes: weights (B, V) >= 0, u (B,) in [0, 1), returns (B,). ValueError for NaN and for another u. [ours]
    """
    if weights.shape[-1] <= SHORT:
        sums = weights.cumsum(dim=-1, dtype=torch.float64)
        _check_draw(sums[:, -1], u)
        token = torch.searchsorted(sums, (u * sums[:, -1]).unsqueeze(-1), right=True).squeeze(-1)
        return torch.where(sums[:, -1] > 0, token, -1)
    V = weights.shape[-1]
    body = weights[:, : (V - 1) // PIECE * PIECE].unflatten(-1, (-1, PIECE))
    tail = pad(weights[:, body.shape[1] * PIECE :], (0, -V % PIECE))  # the last piece alone is copied to be filled up
    masses = torch.cat([body.sum(dim=-1), tail.sum(dim=-1, keepdim=True)], dim=-1)
    _check_draw(masses.sum(dim=-1), u)
    piece, rest = _first_above(masses, u)
    inside = piece.clamp(max=body.shape[1] - 1)
    chosen = body.gather(-2, inside[:, None, None].expand(-1, 1, PIECE)).squeeze(-2)
    chosen = torch.where((piece == inside).unsqueeze(-1), chosen, tail)
    token, _ = _first_above(chosen, rest)
    return torch.where(chosen.sum(dim=-1) > 0, piece * PIECE + token, -1)


def _check_draw(mass: Tensor, u: Tensor) -> None:
    if not bool(((mass < torch.inf) & (u >= 0) & (u < 1)).all()):
        raise ValueError("the weights hold NaN or infinity, or u is outside [0, 1); give finite weights and 0 <= u < 1")


def _first_above(weights: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    """The first cell whose cumulative sum is above u times the total, and how far into the cell that is, in [0, 1)."""
    sums = weights.to(torch.float64).cumsum(dim=-1)
    goal = (u * sums[..., -1]).unsqueeze(-1)
    cell = torch.searchsorted(sums, goal, right=True).clamp_(max=weights.shape[-1] - 1)
    width = weights.gather(-1, cell).to(torch.float64)
    into = (goal - (sums.gather(-1, cell) - width)) / torch.where(width > 0, width, 1.0)
    below_one = 1 - torch.finfo(torch.float64).eps / 2
    return cell.squeeze(-1), into.clamp(min=0.0, max=below_one).squeeze(-1)


def accept_reject(
    draft_probs: Float[Tensor, "B m V"],
    draft_ids: Int[Tensor, "B m"],
    target_probs: Float[Tensor, "B m_plus_1 V"],
    rule: Rule,
    generator: torch.Generator,
) -> Block:
    """One block: draft i is kept with probability min(1, gamma_i / p_i[n_i]) until the first rejection.

    The rejected draft is replaced by a draw from the rule's recovery distribution; if all are kept, one more token is
    drawn from the last verifier distribution. ``draft_probs`` must be the distributions that the drafts were really
    drawn from, after temperature, top-k and top-p. Where rounding leaves no recovery weight the draft itself is
    emitted. float16 and bfloat16 rows are read in float32. For one text a lean sampler that checks nothing
    is faster (``bench/cactus.py``).

    Shapes: draft_probs (B, m, V), draft_ids (B, m), target_probs (B, m + 1, V); returns ids (B, m + 1), padded with -1,
    and n_accepted (B,).

    Raises ValueError for shapes that do not fit, different vocabularies, m = 0, ids outside the vocabulary, a draft of
    probability 0, and rows that are read and do not sum to one. [repo, reworded]

    >>> from derived.papers.cactus import Cactus
    >>> q = torch.full((1, 3, 3), 1 / 3)
    >>> p = torch.tensor([0.5, 0.5, 0.0]).expand(1, 2, 3)
    >>> accept_reject(p, torch.tensor([[0, 1]]), q, Cactus(1 / 16), torch.Generator()).n_accepted
    tensor([2])
    """
    _check_block(draft_probs, draft_ids, target_probs)
    p, q, (m, V) = draft_probs, target_probs, draft_probs.shape[1:]
    summaries = rule.summaries(_readable(p), _readable(q[:, :m])) if rule.reads_rows else ()
    u = uniform((len(draft_ids), m + 1), generator, draft_ids.device)
    p_n, q_n = (as_float64(rows[:, :m].gather(-1, draft_ids.unsqueeze(-1)).squeeze(-1)) for rows in (p, q))
    # Draft i is kept with probability min(1, gamma_i / p_i), and all that follow the first rejection are lost.
    gamma = rule.gamma(p_n, q_n, *summaries)
    n_accepted = (u[:, :m] * p_n < gamma).cumprod(dim=-1).sum(dim=-1)
    _check_read(p_n, q_n, n_accepted, q)

    cut = n_accepted.clamp(max=m - 1).unsqueeze(-1)  # the rejected place, or the last one
    # One more token: from the rule's recovery weights at the rejected place, or from the verifier after m drafts.
    scale = rule.scale(q_n, gamma, *summaries).gather(-1, cut).squeeze(-1)
    token = []
    for batch in _few(draft_ids, V):
        own, verifier = _row(p, batch, cut[batch, 0], "draft"), _row(q, batch, n_accepted[batch], "target")
        weights, all_kept = rule.recovery(own, verifier, scale[batch]), n_accepted[batch] == m
        if bool(all_kept.any()):
            weights[all_kept] = verifier[all_kept]
        token.append(draw(weights, u[batch, m]))
    token = torch.cat(token)
    # Where rounding leaves no recovery weight the draft itself is emitted.
    token = torch.where(token < 0, draft_ids.gather(-1, cut).squeeze(-1), token)

    place = torch.arange(m + 1, device=draft_ids.device)
    ids = torch.where(place < n_accepted.unsqueeze(-1), pad(draft_ids, (0, 1)), -1)
    return Block(ids.scatter(-1, n_accepted.unsqueeze(-1), token.unsqueeze(-1)), n_accepted)


def _check_read(p_n: Tensor, q_n: Tensor, n_accepted: Tensor, q: Tensor) -> None:
    """Raise ValueError for probabilities that cannot be right among the drafts up to the first rejection."""
    read = torch.arange(p_n.shape[1], device=p_n.device) <= n_accepted.unsqueeze(-1)
    if not bool((p_n > 0)[read].all()):
        raise ValueError(
            "the draft's distribution gives a drafted token the probability 0 or NaN, so it was not drawn from that "
            "one; give the distribution after the draft's own temperature, top-k and top-p"
        )
    if len(lost := (q_n.isnan() & read).nonzero()):
        _row(q, lost[:1, 0], lost[:1, 1], "target")  # says what is wrong with this row


def _row(rows: Tensor, batch: Tensor, place: Tensor, name: str) -> Tensor:
    """One distribution per sequence, (B, V), checked and in at least float32; of one sequence a view."""
    chosen = rows[batch, place] if len(batch) > 1 else rows[batch[0], place[0]].unsqueeze(0)
    check_laws(name, chosen, f" (rows where sequences {int(batch[0])} to {int(batch[-1])} are cut)")
    return _readable(chosen)


def _few(draft_ids: Tensor, V: int) -> tuple[Tensor, ...]:
    """The numbers of the sequences, all at once, or on a CPU in groups whose rows make a table of bounded size."""
    batch = torch.arange(len(draft_ids), device=draft_ids.device)
    return batch.split(max(1, TABLE // V)) if batch.device.type == "cpu" else (batch,)


def _readable(rows: Tensor) -> Tensor:
    """Rows in at least float32; no copy where they are already."""
    return rows.to(torch.promote_types(rows.dtype, torch.float32))


def _check_block(draft: Tensor, draft_ids: Tensor, target: Tensor) -> None:
    for name, rows in (("draft_probs", draft), ("target_probs", target)):
        if not isinstance(rows, Tensor) or not rows.is_floating_point() or rows.ndim != 3:
            given = f"{rows.dtype} {tuple(rows.shape)}" if isinstance(rows, Tensor) else type(rows).__name__
            raise ValueError(f"{name} is {given}; give a floating-point tensor (B, places, V)")
    check_same_vocabulary("draft_probs", draft.shape[-1], "target_probs", target.shape[-1])
    B, m, V = draft.shape
    if m == 0 or B == 0:
        raise ValueError(f"draft_probs has shape {tuple(draft.shape)}: no draft to judge; give B >= 1 and m >= 1")
    if tuple(draft_ids.shape) != (B, m) or draft_ids.dtype != torch.int64:
        raise ValueError(f"draft_ids is {draft_ids.dtype} {tuple(draft_ids.shape)}; give int64 ({B}, {m})")
    if tuple(target.shape) != (B, m + 1, V):
        raise ValueError(
            f"target_probs has shape {tuple(target.shape)}; give ({B}, {m + 1}, {V}): a law per draft, one more"
        )
    low, high = draft_ids.aminmax()
    if int(low) < 0 or int(high) >= V:
        raise ValueError(f"draft_ids run from {int(low)} to {int(high)}; give token numbers from 0 to {V - 1}")
