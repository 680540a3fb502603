"""The sampler: one block of drafted tokens for each sequence of a batch is kept, cut or replaced.

symbol        name           meaning                                                        axes
p_1..p_m      draft_probs    the laws that the drafts were drawn from                       (B, m, V)
n_1..n_m      draft_ids      drafted tokens                                                 (B, m)
q_1..q_m+1    target_probs   the verifier's laws                                            (B, m + 1, V)
u             uniform        one number per draft and one for the last token                (B, m + 1)

A rule that reads no rows needs two numbers per draft, and both rows at one position per sequence, the first rejected
one. Nothing of the size (B, m, V) is made, and on a CPU hardly a row of logits after that position is read.
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
    *,
    strict: bool = False,
) -> Block:
    """One block: draft i is kept with probability min(1, gamma_i / p_i[n_i]) until the first rejection.

    The rejected draft is replaced by a draw from the rule's recovery law; if all are kept, one more token is drawn from
    the last verifier law. ``draft_probs`` must be the laws that the drafts were really drawn from, after temperature,
    top-k and top-p. Where rounding leaves no recovery weight the draft itself is emitted. float16 and bfloat16 rows
    are read in float32.

    Shapes: draft_probs (B, m, V), draft_ids (B, m), target_probs (B, m + 1, V); returns ids (B, m + 1), padded with -1,
    and n_accepted (B,).

    Raises ValueError for shapes that do not fit, different vocabularies, m = 0, ids outside the vocabulary, a draft of
    probability 0, and rows that do not sum to one: the rows that are read, or with ``strict`` all of them (a pass over
    everything). [repo, reworded]

    >>> from derived.papers.cactus import Cactus
    >>> q = torch.full((1, 3, 3), 1 / 3)
    >>> p = torch.tensor([0.5, 0.5, 0.0]).expand(1, 2, 3)
    >>> accept_reject(p, torch.tensor([[0, 1]]), q, Cactus(1 / 16), torch.Generator()).n_accepted
    tensor([2])
    """
    _check_block("probs", draft_probs, draft_ids, target_probs)
    if strict:
        check_laws("draft_probs", draft_probs)
        check_laws("target_probs", target_probs)
    return _judge(_Laws(draft_probs), draft_ids, _Laws(target_probs), rule, generator)


def accept_reject_logits(
    draft_logits: Float[Tensor, "B m V"],
    draft_ids: Int[Tensor, "B m"],
    target_logits: Float[Tensor, "B m_plus_1 V"],
    rule: Rule,
    generator: torch.Generator,
) -> Block:
    """``accept_reject`` for the laws softmax(logits).

    A rule that reads no rows makes a few laws of one sequence at a time, on a CPU until a draft is rejected; then one
    row for each sequence of a group. Shapes, results and errors as there; logits may be -inf, and a row of nothing
    else, +inf or NaN is an error where it is read. [ours]
    """
    _check_block("logits", draft_logits, draft_ids, target_logits)
    return _judge(_Softmax(draft_logits), draft_ids, _Softmax(target_logits), rule, generator)


class _Laws:
    """Rows that are laws already."""

    def __init__(self, rows: Tensor) -> None:
        self.rows = rows

    def steps(self, m: int) -> tuple[Tensor, ...]:
        """The m places, in the groups in which they are judged."""
        return (torch.arange(m, device=self.rows.device),)

    def at(self, batch: Tensor, places: Tensor, ids: Tensor) -> Tensor:
        """The probabilities of one token per sequence and place, (batch, places) float64 like ``ids``."""
        return as_float64(self.rows[batch.unsqueeze(-1), places, ids])

    def row(self, batch: Tensor, place: Tensor, name: str) -> Tensor:
        """One law per sequence, (B, V), checked and in at least float32."""
        rows = self.rows[batch, place]
        check_laws(name, rows, f" (rows where sequences {int(batch[0])} to {int(batch[-1])} are cut)")
        return _readable(rows)

    def all(self, m: int) -> Tensor:
        """The first m laws of every sequence, for rules that read rows."""
        return _readable(self.rows[:, :m])


class _Softmax(_Laws):
    """Rows of logits; a few laws of one sequence at a time are made and forgotten."""

    def steps(self, m: int) -> tuple[Tensor, ...]:
        (places,) = super().steps(m)
        return places.split(torch.get_num_threads()) if places.device.type == "cpu" else (places,)

    def at(self, batch: Tensor, places: Tensor, ids: Tensor) -> Tensor:
        logits, run = self.rows.detach(), slice(int(places[0]), int(places[-1]) + 1)
        law = logits.new_empty(len(places), logits.shape[-1], dtype=torch.promote_types(logits.dtype, torch.float32))
        parts = [
            torch.softmax(_readable(logits[b, run]), dim=-1, out=law).gather(-1, chosen)  # all in one place
            for b, chosen in zip(batch.tolist(), ids.unsqueeze(-1), strict=True)
        ]
        return as_float64(torch.stack(parts).squeeze(-1))

    def row(self, batch: Tensor, place: Tensor, name: str) -> Tensor:
        rows = _readable(self.rows[batch, place]).softmax(dim=-1)
        if bool(rows[:, 0].isnan().any()):  # one logit without a law makes its whole row NaN
            raise ValueError(f"{name} has a row of -inf alone, or with NaN or +inf; give logits with a finite maximum")
        return rows

    def all(self, m: int) -> Tensor:
        return _readable(self.rows[:, :m]).softmax(dim=-1)


def _judge(draft: _Laws, draft_ids: Tensor, target: _Laws, rule: Rule, generator: torch.Generator) -> Block:
    m = draft_ids.shape[1]
    summaries = rule.summaries(draft.all(m), target.all(m)) if rule.reads_rows else ()
    u = uniform((len(draft_ids), m + 1), generator, draft_ids.device)
    q_n, gamma, n_accepted = _kept(draft, draft_ids, target, rule, summaries, u)

    cut = n_accepted.clamp(max=m - 1).unsqueeze(-1)  # the rejected place, or the last one
    # One more token: from the rule's recovery law at the rejected place, or from the verifier's own law after m drafts.
    scale = rule.scale(q_n, gamma, *summaries).gather(-1, cut).squeeze(-1)
    token = []
    for batch in _few(draft_ids, draft.rows.shape[-1]):
        p, q = draft.row(batch, cut[batch, 0], "draft"), target.row(batch, n_accepted[batch], "target")
        weights, all_kept = rule.recovery(p, q, scale[batch]), n_accepted[batch] == m
        weights[all_kept] = q[all_kept]
        token.append(draw(weights, u[batch, m]))
    token = torch.cat(token)
    # Where rounding leaves no recovery weight the draft itself is emitted.
    token = torch.where(token < 0, draft_ids.gather(-1, cut).squeeze(-1), token)

    place = torch.arange(m + 1, device=draft_ids.device)
    ids = torch.where(place < n_accepted.unsqueeze(-1), pad(draft_ids, (0, 1)), -1)
    return Block(ids.scatter(-1, n_accepted.unsqueeze(-1), token.unsqueeze(-1)), n_accepted)


def _kept(
    draft: _Laws, draft_ids: Tensor, target: _Laws, rule: Rule, summaries: tuple[Tensor, ...], u: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """q_n and gamma (B, m) up to the first rejected draft, 0 where nothing was read; and how many drafts are kept (B,).

    Draft i is kept with probability min(1, gamma_i / p_i), and all that follow the first rejection are lost.
    """
    q_n, gamma = u.new_zeros(draft_ids.shape), u.new_zeros(draft_ids.shape)
    n_accepted = torch.zeros_like(draft_ids[:, 0])
    left = torch.arange(len(draft_ids), device=draft_ids.device)  # sequences of which every draft so far is kept
    for places in draft.steps(draft_ids.shape[1]):
        here = left.unsqueeze(-1), places
        p, q = (law.at(left, places, draft_ids[here]) for law in (draft, target))
        if not bool((p > 0).all()):
            raise ValueError(
                "the draft's law gives a drafted token the probability 0 or NaN, so it was not drawn from that law; "
                "give the law after the draft's own temperature, top-k and top-p"
            )
        if len(lost := q.isnan().nonzero()):
            target.row(left[lost[:1, 0]], places[lost[:1, 1]], "target")  # says what is wrong with this row
        q_n[here], gamma[here] = q, rule.gamma(p, q, *(each[here] for each in summaries))
        kept = (u[here] * p < gamma[here]).cumprod(dim=-1).sum(dim=-1)
        n_accepted[left] += kept
        left = left[kept == len(places)]
        if not len(left):
            break
    return q_n, gamma, n_accepted


def _few(draft_ids: Tensor, V: int) -> tuple[Tensor, ...]:
    """The numbers of the sequences, all at once, or on a CPU in groups whose rows make a table of bounded size."""
    batch = torch.arange(len(draft_ids), device=draft_ids.device)
    return batch.split(max(1, TABLE // V)) if batch.device.type == "cpu" else (batch,)


def _readable(rows: Tensor) -> Tensor:
    """Rows in at least float32; no copy where they are already."""
    return rows.to(torch.promote_types(rows.dtype, torch.float32))


def _check_block(what: str, draft: Tensor, draft_ids: Tensor, target: Tensor) -> None:
    for name, rows in ((f"draft_{what}", draft), (f"target_{what}", target)):
        if not isinstance(rows, Tensor) or not rows.is_floating_point() or rows.ndim != 3:
            given = f"{rows.dtype} {tuple(rows.shape)}" if isinstance(rows, Tensor) else type(rows).__name__
            raise ValueError(f"{name} is {given}; give a floating-point tensor (B, places, V)")
    check_same_vocabulary(f"draft_{what}", draft.shape[-1], f"target_{what}", target.shape[-1])
    B, m, V = draft.shape
    if m == 0 or B == 0:
        raise ValueError(f"draft_{what} has shape {tuple(draft.shape)}: no draft to judge; give B >= 1 and m >= 1")
    if tuple(draft_ids.shape) != (B, m) or draft_ids.dtype != torch.int64:
        raise ValueError(f"draft_ids is {draft_ids.dtype} {tuple(draft_ids.shape)}; give int64 ({B}, {m})")
    if tuple(target.shape) != (B, m + 1, V):
        raise ValueError(
            f"target_{what} has shape {tuple(target.shape)}; give ({B}, {m + 1}, {V}): a law per draft, one more"
        )
    low, high = draft_ids.aminmax()
    if int(low) < 0 or int(high) >= V:
        raise ValueError(f"draft_ids run from {int(low)} to {int(high)}; give token numbers from 0 to {V - 1}")
