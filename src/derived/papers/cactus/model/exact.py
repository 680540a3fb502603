"""Exact distributions by enumeration: what a rule emits at one position, and what a text of blocks is distributed as.

symbol     name            meaning                                                       axes
p, q       p, q            draft's and verifier's distribution                           (..., V)
h_alg      output_law      distribution of the token emitted at a drafted position       (..., V)
A          acceptance_rate sum_n min(p_n, gamma_n)                                       (...)
m, T       m, num_tokens   drafted tokens per block, tokens of the text                  scalar
x          prefix          the tokens so far                                             (N, t)

Costs: output_law V^2 numbers per pair (V for a rule whose recovery ignores the drafted token), sequence_law V^T rows.
"""

from collections.abc import Callable, Collection
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from derived.lab.checks import check_count

from .divergences import divergence
from .laws import as_float64, check_laws, check_pair
from .rules import Rule

Laws = Callable[[Tensor], Tensor]  # prefixes (N, t) of token numbers -> next-token distributions (N, V)


class Emission(NamedTuple):
    """Probabilities of emitting each token at a drafted position, (..., V) each; their sum is h_alg."""

    accepted: Tensor  # it was drafted and kept
    rejected: Tensor  # it replaced a rejected draft


def _judged(p: Tensor, q: Tensor, rule: Rule) -> tuple[Tensor, Tensor, Tensor, list[Tensor]]:
    """Both distributions in float64, the raised probability of each token that may be drafted, the rule's summaries."""
    check_pair(p, q)
    p, q = as_float64(p), as_float64(q)
    summaries = [summary.unsqueeze(-1) for summary in rule.summaries(p, q)]
    return p, q, rule.gamma(p, q, *summaries), summaries


def emission(p: Float[Tensor, "*batch V"], q: Float[Tensor, "*batch V"], rule: Rule) -> Emission:
    """min(p_y, gamma_y) and sum_n (p_n - gamma_n)_+ r^(n)_y / Z_n, with r^(n) the rule's recovery weights.

    Where rounding leaves no recovery weight at all the draft is emitted, as the sampler does.
    Shapes: p, q (..., V). Raises ValueError for rows that are no distributions. [ours]
    """
    p, q, gamma, summaries = _judged(p, q, rule)
    # A draft n is kept with min(p_n, gamma_n) in all, and rejected with (p_n - gamma_n)_+.
    accepted, lost = torch.minimum(p, gamma), (p - gamma).clamp(min=0.0)
    scale = rule.scale(q, gamma, *summaries)
    if not rule.per_draft:
        scale = scale[..., :1]
    weights = rule.recovery(p.unsqueeze(-2), q.unsqueeze(-2), scale)  # (..., V or 1 drafted, V emitted)
    totals = weights.sum(dim=-1)  # Z_n
    lawful = totals > 0
    share = torch.where(lawful, lost / torch.where(lawful, totals, 1.0), 0.0)
    rejected = (share.unsqueeze(-1) * weights).sum(dim=-2) + torch.where(lawful, 0.0, lost)
    return Emission(accepted, rejected)


def output_law(p: Float[Tensor, "*batch V"], q: Float[Tensor, "*batch V"], rule: Rule) -> Float[Tensor, "*batch V"]:
    """h_alg, the distribution of the token emitted at a drafted position: kept drafts and replaced ones together.

    Shapes: p, q (..., V), returns (..., V), float64. Raises ValueError for rows that are no distributions. [ours]

    >>> from derived.papers.cactus import Cactus
    >>> output_law(torch.tensor([0.5, 0.5, 0.0]), torch.full((3,), 1 / 3), Cactus(1 / 16))
    tensor([0.5000, 0.5000, 0.0000], dtype=torch.float64)
    """
    return torch.stack(emission(p, q, rule)).sum(dim=0)


def acceptance_rate(p: Float[Tensor, "*batch V"], q: Float[Tensor, "*batch V"], rule: Rule) -> Float[Tensor, "*batch"]:
    """A = sum_n min(p_n, gamma_n), the probability that a draft is kept.

    Shapes: p, q (..., V), returns (...), float64. Raises ValueError for rows that are no distributions. [prior]

    >>> from derived.papers.cactus import Cactus, SpS
    >>> p, q = torch.tensor([0.5, 0.5, 0.0]), torch.full((3,), 1 / 3)
    >>> [round(acceptance_rate(p, q, rule).item(), 6) for rule in (SpS(), Cactus(1 / 16))]
    [0.666667, 1.0]
    """
    p, _, gamma, _ = _judged(p, q, rule)
    return torch.minimum(p, gamma).sum(dim=-1)


class Course(NamedTuple):
    """The first T tokens that blocks emit, exactly."""

    law: dict[tuple[int, ...], float]  # {tokens: probability}
    kept: float  # the expected number of drafts among them
    spent: float  # the expected sum of KL(o || q) over the positions that were drafted


def course(
    draft: Laws,
    verifier: Laws,
    rule: Rule,
    *,
    m: int,
    num_tokens: int,
    num_vocab: int,
    stop_ids: Collection[int] = (),
) -> Course:
    """The first T tokens that blocks of m drafts emit, by enumerating (prefix, place within the block).

    At place i < m the token is drafted: kept, it leads to place i + 1, replaced, to place 0; at place m it is drawn
    from the verifier itself and leads to place 0. A text ends after a stop token. Raises ValueError for m or
    num_tokens < 1. [ours]
    """
    check_count("m", m)
    check_count("num_tokens", num_tokens)
    prefixes = torch.zeros(1, 0, dtype=torch.int64)
    weight = torch.zeros(1, m + 1, dtype=torch.float64)
    weight[:, 0] = 1.0
    ended: dict[tuple[int, ...], float] = {}
    num_kept = spent = 0.0
    for _ in range(num_tokens):
        p, q = as_float64(draft(prefixes)), as_float64(verifier(prefixes))
        kept, replaced = emission(p, q, rule)  # (N, V)
        drafted = weight[:, :m].sum(dim=-1)
        num_kept += float(drafted @ kept.sum(dim=-1))
        spent += float(drafted @ divergence(kept + replaced, q))
        step = torch.zeros(len(prefixes), num_vocab, m + 1, dtype=torch.float64)
        step[..., 1:] = weight[:, None, :m] * kept[..., None]
        step[..., 0] = drafted[:, None] * replaced + weight[:, m, None] * q
        tokens = torch.arange(num_vocab).repeat(len(prefixes))
        prefixes = torch.cat([prefixes.repeat_interleave(num_vocab, dim=0), tokens[:, None]], dim=1)
        weight = step.reshape(-1, m + 1)
        stopped = torch.isin(tokens, torch.tensor(list(stop_ids), dtype=torch.int64))
        ended |= _as_dict(prefixes[stopped], weight[stopped])
        prefixes, weight = prefixes[~stopped], weight[~stopped]
    return Course(ended | _as_dict(prefixes, weight), num_kept, spent)


def sequence_law(draft: Laws, verifier: Laws, rule: Rule, **sizes) -> dict[tuple[int, ...], float]:
    """The distribution of the texts that blocks emit, {tokens: probability}; ``sizes`` and errors as in ``course``.

    For ``SpS`` it is the verifier's own, whatever m is. [ours]

    >>> from derived.papers.cactus import Cactus
    >>> alike = [markov_laws(law, law.expand(2, 2)) for law in torch.tensor([[0.9, 0.1], [0.5, 0.5]]).double()]
    >>> law = sequence_law(*alike, Cactus(0.02), m=1, num_tokens=2, num_vocab=2)
    >>> {tokens: round(probability, 3) for tokens, probability in law.items()}
    {(0, 0): 0.3, (0, 1): 0.3, (1, 0): 0.23, (1, 1): 0.17}
    """
    return course(draft, verifier, rule, **sizes).law


def _as_dict(prefixes: Tensor, weight: Tensor) -> dict[tuple[int, ...], float]:
    return dict(zip(map(tuple, prefixes.tolist()), weight.sum(dim=-1).tolist(), strict=True))


def markov_laws(start: Float[Tensor, "V"], matrix: Float[Tensor, "V V"]) -> Laws:
    """The next-token distributions of a Markov chain: ``start`` for the empty prefix, then one a token. [prior]"""
    check_laws("start", start)
    check_laws("matrix", matrix)

    def laws(prefixes: Tensor) -> Tensor:
        if prefixes.shape[1] == 0:
            return start.expand(len(prefixes), -1)
        return matrix[prefixes[:, -1]]

    return laws
