"""Race of Cactus, one text at a time: ``python bench/cactus.py [--quick] [--keep]``.

The sampler on one block of ten drafts against the lean version that a careful programmer would write. The budget is
such that the block is cut, so that a recovery is drawn. With equal uniform numbers both keep the same drafts, and both
last tokens y have F(y - 1) <= u < F(y) up to rounding.
"""

import torch
from race import Race, command, require

from derived.lab.rng import stream
from derived.papers.cactus.model.rules import Cactus
from derived.papers.cactus.model.sampler import accept_reject, uniform

RULE = Cactus(0.001)


def build(B: int, m: int, V: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The draft's rows (B, m, V); drafts, of which about 0.8 are kept; the verifier's rows (B, m + 1, V)."""
    g = stream(0, "bench logits")
    target = torch.randn(B, m + 1, V, generator=g).mul_(3)
    draft = (target[:, :m] + torch.randn(B, m, V, generator=g).mul_(0.5)).softmax(dim=-1)
    ids = torch.multinomial(draft.flatten(0, 1), 1, generator=g).view(B, m)
    return draft, ids, target.softmax(dim=-1)


def ours(inputs: tuple) -> tuple[torch.Tensor, torch.Tensor]:
    """accept_reject, which gathers"""
    return tuple(accept_reject(*inputs, RULE, stream(0, "bench block")))


def weights_of_last(p: torch.Tensor, ids: torch.Tensor, q: torch.Tensor, u: torch.Tensor) -> tuple:
    """Number of kept drafts (B,), and the weights by which the last token is drawn, one row per text (B, V)."""
    m, place = ids.shape[1], torch.arange(len(ids))
    p_n, q_n = (rows[:, :m].gather(-1, ids.unsqueeze(-1)).squeeze(-1).double() for rows in (p, q))
    gamma = (q_n + (2 * RULE.delta * q_n * (1 - q_n)).sqrt()).clamp(max=1.0)
    kept = (u[:, :m] * p_n < gamma).cumprod(dim=-1).sum(dim=-1)
    scale = ((1 - gamma) / (1 - q_n)).gather(1, kept.clamp(max=m - 1)[:, None]).to(q.dtype)
    q_row = q[place, kept]
    recovery = (scale * q_row - p[place, kept.clamp(max=m - 1)]).clamp(min=0.0)
    return kept, torch.where(kept[:, None] == m, q_row, recovery)


def peer(inputs: tuple) -> tuple[torch.Tensor, torch.Tensor]:
    """a lean sampler with a cumulative sum"""
    p, ids, q = inputs
    u = uniform((len(ids), ids.shape[1] + 1), stream(0, "bench block"), ids.device)
    kept, weights = weights_of_last(p, ids, q, u)
    sums = weights.cumsum(dim=-1, dtype=torch.float64)
    last = torch.searchsorted(sums, u[:, -1:] * sums[:, -1:], right=True)
    drafts = torch.where(torch.arange(ids.shape[1] + 1) < kept[:, None], torch.cat([ids, last], dim=1), -1)
    return drafts.scatter(1, kept[:, None], last), kept


def check(inputs: tuple, mine: tuple, theirs: tuple) -> None:
    """Equal kept drafts; each last token holds u in its interval of the distribution in float64.

    A weight (s q - p)_+ in float32 is off by at most 8 eps of s q + p, and these sum to at most 2; the sums of a row
    are off by at most 256 eps of their total.
    """
    p, ids, q = inputs
    require(bool((mine[1] < ids.shape[1]).any()), "no block is cut: no recovery is drawn")
    require(torch.equal(mine[1], theirs[1]), "the numbers of kept drafts differ")
    kept = torch.arange(mine[0].shape[1]) < mine[1][:, None]
    require(torch.equal(mine[0][kept], theirs[0][kept]), "the kept drafts differ")
    u = uniform((len(ids), ids.shape[1] + 1), stream(0, "bench block"), ids.device)
    weights = weights_of_last(p.double(), ids, q.double(), u)[1]
    sums = weights.cumsum(dim=-1)
    goal, rounding = u[:, -1:] * sums[:, -1:], torch.finfo(p.dtype).eps * (16 + 256 * sums[:, -1:])
    for tokens, _ in (mine, theirs):
        y = tokens.gather(1, mine[1][:, None])
        above = sums.gather(1, y)
        missed = torch.maximum(goal - above, above - weights.gather(1, y) - goal)
        require(bool((missed <= rounding).all()), "a last token does not hold the uniform number in its interval")


NOTE = "It checks nothing that it is given; for one sequence the checks are a good part of the time."
SIZES, TOY = {"B": 1, "m": 10, "V": 152_000}, {"B": 1, "m": 10, "V": 300}
RACE = Race("Cactus, B = 1, m = 10, V = 152,000", build, ours, peer, check, SIZES, TOY, "float32", note=NOTE)

if __name__ == "__main__":
    command("cactus", RACE)
