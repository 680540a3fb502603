"""Races of Cactus: ``python bench/cactus.py [--quick] [--threads 1] [--output FILE]``.

1. The sampler, blocks of 10 drafts, against a naive version that builds every row of the target and of the recovery
   law, and against our rewriting in the style of the released patch (recovered tokens for every draft by exponential
   races).
2. The sampler with the exact rule, from logits, against ``_speculative_sampling`` of transformers, which takes one
   sequence at a time.
3. Whole texts with the exact rule against plain decoding by the verifier, and against ``generate(assistant_model=...)``
   of transformers at several block lengths, one text at a time as the peer requires; then ours in one batch. The draft
   is the first layer of the verifier with the verifier's own embeddings, an eighth of its layers.

Results are compared before anything is timed: the naive version with the same uniform numbers token by token, the
rewriting in the patch's style draft by draft, the sampler of transformers (which draws from the global generator) by
the law of whole blocks in standard errors, texts by their greedy versions and by the tokens per pass of the verifier in
standard errors. transformers is imported where it is used, so that the processes that measure memory start fast.
"""

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version

import harness
import torch

from derived.lab.rng import stream
from derived.papers.cactus.model.generate import speculative_generate
from derived.papers.cactus.model.rules import Cactus, SpS
from derived.papers.cactus.model.sampler import accept_reject, accept_reject_logits, uniform

RULE = Cactus(1.0)
NEW_TOKENS, DRAFTS = 96, 5
NEARNESS = 0.1  # how much the verifier's layers behind the first one count; at 0 every draft would be kept


def build_logits(B: int, m: int, V: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Logits of draft (B, m, V) and verifier (B, m + 1, V), and drafts; acceptance of a draft is about 0.8."""
    g = stream(0, "bench logits")
    target = torch.randn(B, m + 1, V, generator=g).mul_(3)
    draft = target[:, :m] + torch.randn(B, m, V, generator=g).mul_(0.5)
    ids = torch.multinomial(draft.flatten(0, 1).softmax(dim=-1), 1, generator=g).view(B, m)
    return draft, ids, target


def build_rows(B: int, m: int, V: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    draft, ids, target = build_logits(B, m, V)
    return draft.softmax(dim=-1), ids, target.softmax(dim=-1)


def gather_only(inputs: tuple) -> tuple:
    """accept_reject, which gathers"""
    p, ids, q = inputs
    return tuple(accept_reject(p, ids, q, RULE, stream(0, "bench block")))


def full_targets(inputs: tuple) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Every number of every target h^(n): gamma at the drafts, the rest of the verifier's law in proportion."""
    p, ids, q = inputs
    q = q[:, :-1]
    q_n = q.gather(-1, ids.unsqueeze(-1))
    gamma = (q_n + (2 * RULE.delta * q_n * (1 - q_n)).sqrt()).clamp(max=1.0)
    target = (q * ((1 - gamma) / (1 - q_n))).scatter(-1, ids.unsqueeze(-1), gamma)
    return target, gamma.squeeze(-1), p.gather(-1, ids.unsqueeze(-1)).squeeze(-1)


def put_together(kept: torch.Tensor, ids: torch.Tensor, recovered: torch.Tensor, bonus: torch.Tensor) -> tuple:
    """(ids, n_accepted) from what was found for every draft."""
    m = ids.shape[1]
    n_accepted = kept.cumprod(dim=-1).sum(dim=-1)
    place = torch.arange(m + 1)
    last = torch.cat([recovered, bonus], dim=1)
    kept_ids = torch.cat([ids, bonus], dim=1)
    out = torch.where(place < n_accepted[:, None], kept_ids, torch.where(place == n_accepted[:, None], last, -1))
    return out, n_accepted


def full_rows(inputs: tuple) -> tuple:
    """every row of target and recovery"""
    p, ids, q = inputs
    B, m = ids.shape
    u = uniform((B, m + 1), stream(0, "bench block"), p.device)
    target, gamma, p_n = full_targets(inputs)
    sums = (target - p).clamp(min=0.0).cumsum(dim=-1)
    goal = u[:, -1:, None].to(p.dtype)
    recovered = torch.searchsorted(sums, goal * sums[..., -1:], right=True).squeeze(-1)
    sums = q[:, -1].cumsum(dim=-1)
    bonus = torch.searchsorted(sums, goal[:, 0] * sums[:, -1:], right=True)
    return put_together(u[:, :m] * p_n < gamma, ids, recovered, bonus)


def patched(inputs: tuple) -> tuple:
    """every row, exponential races: our rewriting in the patch's style"""
    p, ids, q = inputs
    B, m = ids.shape
    u = uniform((B, m + 1), stream(0, "bench block"), p.device)
    g = stream(0, "bench races")
    target, gamma, p_n = full_targets(inputs)
    rows = (target - p).clamp(min=torch.finfo(p.dtype).tiny)
    rows = rows / rows.sum(dim=-1, keepdim=True)
    recovered = (rows / torch.empty_like(rows).exponential_(generator=g)).argmax(dim=-1)
    bonus = torch.multinomial(q[:, -1], 1, generator=g)
    return put_together(u[:, :m] * p_n < gamma, ids, recovered, bonus)


def same_tokens(inputs: tuple, ours: tuple, peer: tuple) -> float:
    """The same uniform numbers: equal acceptances, and both last tokens y where F(y - 1) <= u < F(y) in float64.

    Only a u within rounding of a border F may go either way. A weight (s q - p)_+ in float32 is off by at most 8 eps of
    s q + p, and these sum to at most 2; the sums of a row are off by at most 256 eps of their total. Returns how far a
    token's own interval is missed, over that rounding.
    """
    require(torch.equal(ours[1], peer[1]), "the acceptances differ")
    p, ids, q = inputs
    target, *_ = full_targets((p.double(), ids, q.double()))
    u, place, worst = uniform((len(p), p.shape[1] + 1), stream(0, "bench block"), p.device)[:, -1], ours[1], 0.0
    for b, at in enumerate(place.tolist()):
        weights = q[b, at].double() if at == p.shape[1] else (target[b, at] - p[b, at].double()).clamp(min=0.0)
        sums = weights.cumsum(dim=0)
        goal, rounding = u[b] * sums[-1], torch.finfo(p.dtype).eps * (16 + 256 * sums[-1])
        for tokens in (ours[0], peer[0]):
            y = int(tokens[b, at])
            missed = torch.maximum(goal - sums[y], sums[y] - weights[y] - goal)
            worst = max(worst, float(missed / rounding))
    require(worst <= 1, f"a last token misses its interval by {worst:.3g} roundings")
    return worst


def same_acceptances(inputs: tuple, ours: tuple, peer: tuple) -> float:
    """The same uniform numbers: equal acceptances and equal kept drafts; the last tokens are drawn differently."""
    require(torch.equal(ours[1], peer[1]), "the acceptances differ")
    kept = torch.arange(ours[0].shape[1]) < ours[1][:, None]
    require(torch.equal(ours[0][kept], peer[0][kept]), "the kept drafts differ")
    return 0.0


def exact_from_logits(inputs: tuple) -> list[torch.Tensor]:
    """accept_reject_logits, one batch"""
    draft, ids, target = inputs
    return list(accept_reject_logits(draft, ids, target, SpS(), stream(0, "bench block")).ids)


def transformers_sampler(inputs: tuple) -> list[torch.Tensor]:
    """_speculative_sampling, one by one"""
    from transformers.generation.utils import _speculative_sampling

    draft, ids, target = inputs
    m = ids.shape[1]
    return [_speculative_sampling(ids[b : b + 1], draft[b : b + 1], m, target[b : b + 1])[0] for b in range(len(ids))]


def same_law(inputs: tuple, ours: list, peer: list) -> float:
    """Both samplers on 4,000 small blocks: the frequencies of accepted lengths and first tokens, in standard errors."""
    num = 4000
    draft, _, target = build_logits(1, 3, 6)
    ids = torch.stack(
        [torch.multinomial(draft[0, i].softmax(-1), num, True, generator=stream(0, "small", i)) for i in range(3)], 1
    )
    block = accept_reject_logits(
        draft.expand(num, -1, -1), ids, target.expand(num, -1, -1), SpS(), stream(0, "small block")
    )
    theirs = [transformers_sampler((draft, row[None], target))[0][0] for row in ids]
    one = torch.stack([block.n_accepted, block.ids[:, 0]])
    two = torch.tensor([[len(text) - 1, int(text[0])] for text in theirs]).T
    worst = 0.0
    for a, b in zip(one, two, strict=True):
        share, other = (torch.bincount(x, minlength=7) / num for x in (a, b))
        error = ((share + other) / num).sqrt()  # at least the standard error of the difference
        worst = max(worst, float(((share - other).abs() / error.clamp(min=1 / num)).max()))
    require(worst <= 4.5, f"the laws of the blocks differ by {worst:.1f} standard errors")
    return worst


def build_models(width: int, layers: int, texts: int) -> tuple:
    """A verifier with random weights, a draft of its embeddings and its first layer, and prompts of 8 tokens."""
    from transformers import GPT2Config, GPT2LMHeadModel

    width, g = max(width, 16), stream(0, "bench verifier")
    draft, verifier = (
        GPT2LMHeadModel(
            GPT2Config(
                **{"vocab_size": 1000, "n_positions": 256, "n_embd": width, "n_layer": depth, "n_head": 4},
                **{"bos_token_id": None, "eos_token_id": None},
            )
        ).eval()
        for depth in (1, max(layers, 1))
    )
    with torch.no_grad():
        for name, parameter in verifier.named_parameters():
            if parameter.ndim > 1:
                parameter.copy_(torch.randn(parameter.shape, generator=g) / width**0.5)
            if name.endswith("c_proj.weight") and ".h.0." not in name:
                parameter.mul_(NEARNESS)
    draft.load_state_dict(verifier.state_dict(), strict=False)
    return draft, verifier, torch.randint(1000, (texts, 8), generator=stream(0, "bench prompts"))


TURN = itertools.count()  # every call writes other texts, as the peer's global generator makes it do


def write_ours(inputs: tuple, m: int = DRAFTS, temperature: float = 1.0, singly: bool = True) -> torch.Tensor:
    """speculative_generate, one by one"""
    draft, verifier, prompts = inputs
    texts = [
        speculative_generate(
            *(draft, verifier, batch),
            **{"rule": SpS(), "m": m, "max_new_tokens": NEW_TOKENS, "temperature": temperature},
            generator=stream(0, "bench text", next(TURN)),
        ).ids
        for batch in prompts.split(1 if singly else len(prompts))
    ]
    return torch.cat(texts)


def write_batch(inputs: tuple) -> torch.Tensor:
    """speculative_generate, one batch"""
    return write_ours(inputs, singly=False)


def generated(inputs: tuple, sample: bool, **options: object) -> torch.Tensor:
    """What ``generate`` of transformers writes, text by text."""
    _, verifier, prompts = inputs
    law = {"do_sample": True, "top_k": 0, "top_p": 1.0, "temperature": 1.0} if sample else {"do_sample": False}
    facts = {"max_new_tokens": NEW_TOKENS, "pad_token_id": 0, **law, **options}
    texts = [verifier.generate(row[None], attention_mask=torch.ones_like(row[None]), **facts) for row in prompts]
    return torch.cat(texts)[:, prompts.shape[1] :]


def write_alone(inputs: tuple, sample: bool = True) -> torch.Tensor:
    """generate, no draft"""
    return generated(inputs, sample)


def write_transformers(inputs: tuple, m: int = DRAFTS, sample: bool = True) -> torch.Tensor:
    """generate(assistant_model=...), the same blocks"""
    draft = inputs[0]
    blocks = {"num_assistant_tokens": m, "num_assistant_tokens_schedule": "constant"}
    for name, value in (blocks | {"assistant_confidence_threshold": 0.0}).items():
        setattr(draft.generation_config, name, value)
    return generated(inputs, sample, assistant_model=draft)


def ours_at(m: int) -> Callable[[tuple], torch.Tensor]:
    """``write_ours`` with blocks of m drafts."""
    return named(partial(write_ours, m=m), f"speculative_generate, one by one, m = {m}")


def transformers_at(m: int) -> Callable[[tuple], torch.Tensor]:
    """``write_transformers`` with blocks of m drafts."""
    return named(partial(write_transformers, m=m), f"generate(assistant_model=...), m = {m}")


def named(call: partial, doc: str) -> partial:
    """The call with the words for the table."""
    call.__doc__ = doc
    call.__name__ = doc
    return call


def per_pass(write: Callable[[tuple], torch.Tensor], inputs: tuple, texts: int = 12) -> torch.Tensor:
    """Tokens per pass of the verifier, one number for each of ``texts`` texts."""
    draft, verifier, prompts = inputs
    found, passes = [], []
    handle = verifier.register_forward_hook(lambda *_: passes.append(1))
    for row in prompts.repeat(-(-texts // len(prompts)), 1)[:texts]:
        passes.clear()
        write((draft, verifier, row[None]))
        found.append(NEW_TOKENS / len(passes))
    handle.remove()
    return torch.tensor(found)


def same_texts(inputs: tuple, ours: torch.Tensor, peer: torch.Tensor, m: int = DRAFTS, drafts: bool = True) -> float:
    """As many tokens; the same greedy texts; sampled, as many tokens per pass of the verifier, in standard errors."""
    require(ours.shape == peer.shape, f"{tuple(ours.shape)} and {tuple(peer.shape)} tokens")
    greedy = write_transformers(inputs, m, sample=False) if drafts else write_alone(inputs, sample=False)
    differ = float((write_ours(inputs, m, temperature=0) != greedy).double().mean())
    require(differ == 0, f"{differ:.1%} of the tokens of the greedy texts differ")
    mine = per_pass(partial(write_ours, m=m), inputs)
    require(
        1.3 < mine.mean() < 0.95 * (m + 1), f"{mine.mean():.2f} tokens per pass: too few or too many drafts are kept"
    )
    if not drafts:
        return 0.0
    theirs = per_pass(partial(write_transformers, m=m), inputs)
    apart = float((mine.mean() - theirs.mean()).abs() / ((mine.var() + theirs.var()) / len(mine)).sqrt())
    require(apart <= 4.5, f"{mine.mean():.2f} and {theirs.mean():.2f} tokens per pass: {apart:.1f} standard errors")
    return apart


def require(condition: bool, message: str) -> None:
    if not condition:
        raise SystemExit(message)


def sampler_races(quick: bool, rounds: int, threads: int) -> Iterator[harness.Row]:
    for V in (1000, 4000) if quick else (32_000, 152_000):
        for B in (1, 4) if quick else (1, 16, 64):
            sizes, name = {"B": B, "m": 10, "V": V}, f"B = {B}, m = 10, V = {V:,}"
            some = rounds if B * V < 2_000_000 else min(rounds, 5) if B * V < 9_000_000 else min(rounds, 3)
            facts = {"rounds": some, "threads": threads}
            naive = facts | {"target": 5.0 if (B, V) == (16, 152_000) else 1.0}
            yield harness.race(name, build_rows, sizes, gather_only, full_rows, gap=same_tokens, **naive)
            yield harness.race(name, build_rows, sizes, gather_only, patched, gap=same_acceptances, **naive)
            exact = (exact_from_logits, transformers_sampler)
            yield harness.race(name, build_logits, sizes, *exact, gap=same_law, target=1.0, **facts)


def text_races(quick: bool, rounds: int, threads: int) -> Iterator[harness.Row]:
    sizes = {"width": 64, "layers": 4, "texts": 2} if quick else {"width": 256, "layers": 8, "texts": 4}
    name = f"{sizes['texts']} texts of {NEW_TOKENS} tokens, width {sizes['width']}, {sizes['layers']} layers"
    name += f", transformers {version('transformers')}"
    facts = {"target": 1.0, "rounds": min(rounds, 5), "threads": threads}
    plain = partial(same_texts, drafts=False)
    yield harness.race(name, build_models, sizes, ours_at(DRAFTS), write_alone, gap=plain, **facts)
    for m in (2, 3, 5):
        pair = (ours_at(m), transformers_at(m))
        yield harness.race(name, build_models, sizes, *pair, gap=partial(same_texts, m=m), **facts)
    yield harness.race(name, build_models, sizes, write_batch, write_transformers, gap=same_texts, **facts)


def races(quick: bool, rounds: int, threads: int) -> Iterator[harness.Row]:
    yield from sampler_races(quick, rounds, threads)
    yield from text_races(quick, rounds, threads)


if __name__ == "__main__":
    harness.command("cactus", races, rounds=7, quick_rounds=3, dtype="float32")
