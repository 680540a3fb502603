"""Writing many texts at once with a draft and a verifier, and what each drafted position was expected to cost.

symbol      name       meaning                                                        axes
p, q        p, q       laws of draft and verifier in the current block                (B, m, V), (B, m + 1, V)
-           reached    drafted positions at which the rule had to decide               (B, m)
AL          kept       drafts kept, summed over the blocks of a text                   (B,)
TV, KL      tv, kl     TV and KL of the emitted law from q, summed over those reached  (B,)
"""

import time
from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from ..data.small_lm import LanguageModel, next_law, pick
from ..model.divergences import divergence
from ..model.exact import output_law
from ..model.rules import Rule
from ..model.sampler import accept_reject


class Shape(NamedTuple):
    """How laws are made from logits, for both models alike."""

    temperature: float = 1.0
    top_p: float = 1.0


class Block(NamedTuple):
    """One block of every text: what was proposed, and what became of it."""

    p: Tensor  # (B, m, V)
    q: Tensor  # (B, m + 1, V)
    drafted: Tensor  # (B, m)
    kept: Tensor  # (B,)
    reached: Tensor  # (B, m), only positions that belong to the text
    unfinished: Tensor  # (B,)
    seconds: float  # since the block before, or since the prompts were read


class Written(NamedTuple):
    """Texts and their accounts, each per text."""

    ids: Tensor  # (B, length)
    kept: Tensor  # drafts kept, all blocks
    blocks: Tensor  # verifier passes
    reached: Tensor  # drafted positions at which the rule decided
    tv: Tensor
    kl: Tensor


def clock(device: torch.device) -> float:
    """The time in seconds, once the device's queue is empty."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


@torch.no_grad()
def blocks(
    draft: LanguageModel,
    verifier: LanguageModel,
    ids: Int[Tensor, "B length"],
    *,
    prompt: int,
    m: int,
    rule: Rule,
    shape: Shape,
    generator: torch.Generator,
) -> Iterator[Block]:
    """Fill ``ids`` from position ``prompt`` >= 2 on, block by block; every row goes at its own pace.

    A cache is rolled back by moving the row's start: what lies behind it is masked, and overwritten later.
    """
    batch, length = ids.shape
    if not 2 <= prompt < length or m < 1:
        raise ValueError(f"prompt = {prompt}, m = {m}; give 2 <= prompt < {length}, the length, and m >= 1")
    room = torch.nn.functional.pad(ids, (0, m + 1), value=0)  # finished rows write behind their end
    written = torch.full((batch,), prompt, device=ids.device)
    caches = [model.empty_cache(batch, length + m + 1) for model in (draft, verifier)]
    for model, cache in zip((draft, verifier), caches, strict=True):
        model(ids[:, :prompt], torch.zeros_like(written), cache)
    rows, steps = torch.arange(batch, device=ids.device), torch.arange(m + 1, device=ids.device)
    begun = clock(ids.device)
    while bool((unfinished := written < length).any()):
        at = written.clamp(max=length - 1)
        last = room[rows.unsqueeze(-1), (at - 2).unsqueeze(-1) + steps[:2]]  # the draft may have missed one token
        logits, p, drafted = draft(last, at - 2, caches[0])[:, -1], [], []
        for step in range(m):
            p.append(next_law(logits, *shape))
            drafted.append(pick(p[-1], generator))
            if step + 1 < m:
                logits = draft(drafted[-1].unsqueeze(-1), at + step, caches[0])[:, -1]
        p, drafted = torch.stack(p, dim=1), torch.stack(drafted, dim=1)
        proposal = torch.cat([last[:, 1:], drafted], dim=-1)
        q = next_law(verifier(proposal, at - 1, caches[1]), *shape)
        emitted, kept = accept_reject(p, drafted, q, rule, generator)
        room[rows.unsqueeze(-1), at.unsqueeze(-1) + steps] = emitted.clamp(min=0)
        inside = steps[:m] + at.unsqueeze(-1) < length
        reached = (steps[:m] <= kept.unsqueeze(-1)) & inside & unfinished.unsqueeze(-1)
        yield Block(p, q, drafted, kept, reached, unfinished, clock(ids.device) - begun)
        begun = clock(ids.device)
        written = torch.where(unfinished, written + kept + 1, written)
        ids.copy_(room[:, :length])


def write(
    draft: LanguageModel, verifier: LanguageModel, ids: Int[Tensor, "B length"], *, prompt: int, rule: Rule, **options
) -> Written:
    """The texts of ``blocks`` with their accounts; at each position reached the emitted law is known exactly, so its TV
    and KL from the verifier's are summed without sampling error."""
    ids = ids.clone()
    kept, passes, reached, tv, kl = torch.zeros(5, len(ids), dtype=torch.float64, device=ids.device)
    for block in blocks(draft, verifier, ids, prompt=prompt, rule=rule, **options):
        p, q = block.p[block.reached], block.q[:, :-1][block.reached]
        emitted = output_law(p, q, rule)
        for total, name in ((tv, "tv"), (kl, "kl")):
            spent = torch.zeros(block.reached.shape, dtype=torch.float64, device=ids.device)
            total += spent.masked_scatter(block.reached, divergence(emitted, q, name)).sum(dim=-1)
        kept += torch.where(block.unfinished, block.kept, 0)
        passes += block.unfinished
        reached += block.reached.sum(dim=-1)
    return Written(ids, kept, passes, reached, tv, kl)


def time_blocks(
    draft: LanguageModel, verifier: LanguageModel, ids: Int[Tensor, "1 length"], **options
) -> tuple[int, float]:
    """The tokens that ``blocks`` writes for one text, those beyond its length included, and the seconds that they take
    once the prompt has been read."""
    found = [(int(block.kept) + 1, block.seconds) for block in blocks(draft, verifier, ids.clone(), **options)]
    tokens, seconds = zip(*found, strict=True)
    return sum(tokens), sum(seconds)


@torch.no_grad()
def write_alone(
    verifier: LanguageModel, ids: Int[Tensor, "B length"], *, prompt: int, shape: Shape, generator
) -> tuple[Tensor, float]:
    """The verifier's own texts, one pass per token, and the seconds since the prompts were read, but for the last token
    of each: the first pass reads it, as a block's does."""
    ids = ids.clone()
    cache, zero = verifier.empty_cache(*ids.shape), torch.zeros(len(ids), dtype=torch.long, device=ids.device)
    verifier(ids[:, : prompt - 1], zero, cache)
    begun = clock(ids.device)
    for last in range(prompt - 1, ids.shape[-1] - 1):
        logits = verifier(ids[:, last : last + 1], zero + last, cache)[:, -1]
        ids[:, last + 1] = pick(next_law(logits, *shape), generator)
    return ids, clock(ids.device) - begun


@torch.no_grad()
def surprise(verifier: LanguageModel, ids: Int[Tensor, "B length"], prompt: int) -> Tensor:
    """-ln of the verifier's probability (temperature 1) of each text behind its prompt, per token: (B,)."""
    laws = torch.log_softmax(verifier(ids[:, :-1]).double(), dim=-1)
    each = -laws.gather(-1, ids[:, 1:].unsqueeze(-1)).squeeze(dim=-1)
    return each[:, prompt - 1 :].mean(dim=-1)
