"""Races of Cactus: ``python bench/cactus.py [--quick] [--threads 1] [--output FILE]``.

1. The sampler, blocks of 10 drafts of 16 sequences, against the lean version that a careful programmer would write,
   with torch.multinomial and with a cumulative sum; for scale against a version that builds every row of the target and
   of the recovery law; and against the author's patch. For one sequence what our checks cost, which it has not.
2. The sampler with the exact rule, from logits, against the lean version from logits and against
   ``_speculative_sampling`` of transformers, which takes one sequence at a time.
3. Texts one at a time with the exact rule, beside ``generate`` of transformers without a draft and with one,
   ``generate(assistant_model=...)``, both of us with the block length that a pilot finds best. That is a report and no
   race: both make the same passes of the same models, and almost all time is theirs. The draft is the first
   layer of the verifier with the verifier's own embeddings, an eighth of its layers.
4. The same texts in one batch, against ``generate`` of the batch without a draft (transformers has no batched assisted
   generation) and, for scale, with a draft one by one.

The budget of the sampler is such that part of the blocks are cut: a race in which fewer than a quarter are is refused,
since the recovery law would never be drawn from. Results are compared before anything is timed. Samplers: with the same
uniform numbers the acceptances are equal and inversion gives the same token, and on 20,000 small blocks all have one
law of the number kept and of the last token. Texts: equal greedy ones; sampled ones equally likely under the verifier
and, with a draft, as many tokens per pass, in standard errors.

The author's patch is run unmodified, compiled as vLLM compiles it, where $AUTHORS/Cactus is a clone of
github.com/MANGA-UOFA/Cactus (commit 3b01b81) and $AUTHORS/vllm-0.7.3 has the files of that release of vLLM, which it
patches; it is left out elsewhere. transformers is imported where it is used, so that the processes that measure memory
start fast.
"""

import functools
import importlib
import itertools
import logging
import sys
import types
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from unittest.mock import MagicMock

import harness
import torch
from harness import Peer, Race, require, within
from scipy import stats

from derived.lab.rng import stream
from derived.papers.cactus.model.generate import speculative_generate
from derived.papers.cactus.model.rules import Cactus, SpS
from derived.papers.cactus.model.sampler import accept_reject, uniform

RULE = Cactus(0.001)
LEAST_CUT = 0.25  # of the blocks
LEAST_P = 1e-4  # of a chi-square test of equal laws
FAR = 4.5  # standard errors between two estimates of one number, at most
DRAFTS = (3, 5, 8, 10, 12)  # block lengths that the pilot tries
NEARNESS = 0.1  # how much the verifier's layers behind the first one count; at 0 every draft would be kept


def build_logits(B: int, m: int, V: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Logits of draft (B, m, V) and verifier (B, m + 1, V), and drafts, of which about 0.8 are kept."""
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


def put_together(ids: torch.Tensor, n_accepted: torch.Tensor, last: torch.Tensor) -> tuple:
    """(ids, n_accepted): the kept drafts, then ``last`` (B, 1), then -1."""
    place = torch.arange(ids.shape[1] + 1)
    kept = torch.where(place < n_accepted[:, None], torch.cat([ids, last], dim=1), -1)
    return kept.scatter(1, n_accepted[:, None], last), n_accepted


def number_kept(ids: torch.Tensor, p_n: torch.Tensor, q_n: torch.Tensor, delta: float) -> tuple:
    """How many drafts each sequence keeps, the factor of its recovery law, and the number that is left for a draw."""
    B, m = ids.shape
    u = uniform((B, m + 1), stream(0, "bench block"), ids.device)
    p_n, q_n = p_n.double(), q_n.double()
    gamma = (q_n + (2 * delta * q_n * (1 - q_n)).sqrt()).clamp(max=1.0)
    n_accepted = (u[:, :m] * p_n < gamma).cumprod(dim=-1).sum(dim=-1)
    scale = ((1 - gamma) / (1 - q_n)).gather(1, n_accepted.clamp(max=m - 1)[:, None])
    return n_accepted, scale.float(), u[:, m:]


def lean_weights(inputs: tuple) -> tuple:
    """What the last token is drawn by: one row of either law per sequence."""
    p, ids, q = inputs
    m, place = ids.shape[1], torch.arange(len(ids))
    p_n, q_n = (rows[:, :m].gather(-1, ids.unsqueeze(-1)).squeeze(-1) for rows in (p, q))
    n_accepted, scale, u = number_kept(ids, p_n, q_n, RULE.delta)
    q_row = q[place, n_accepted]
    recovery = (scale * q_row - p[place, n_accepted.clamp(max=m - 1)]).clamp(min=0.0)
    return torch.where(n_accepted[:, None] == m, q_row, recovery), n_accepted, u


def lean_multinomial(inputs: tuple) -> tuple:
    """a lean sampler with torch.multinomial"""
    weights, n_accepted, _ = lean_weights(inputs)
    last = torch.multinomial(weights, 1, generator=stream(0, "bench races"))
    return put_together(inputs[1], n_accepted, last)


def lean_inversion(inputs: tuple) -> tuple:
    """a lean sampler with a cumulative sum"""
    weights, n_accepted, u = lean_weights(inputs)
    sums = weights.cumsum(dim=-1, dtype=torch.float64)
    return put_together(inputs[1], n_accepted, torch.searchsorted(sums, u * sums[:, -1:], right=True))


def full_targets(inputs: tuple) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Every number of every target h^(n): gamma at the drafts, the rest of the verifier's law in proportion."""
    p, ids, q = inputs
    q = q[:, :-1]
    q_n = q.gather(-1, ids.unsqueeze(-1))
    gamma = (q_n + (2 * RULE.delta * q_n * (1 - q_n)).sqrt()).clamp(max=1.0)
    target = (q * ((1 - gamma) / (1 - q_n))).scatter(-1, ids.unsqueeze(-1), gamma)
    return target, gamma.squeeze(-1), p.gather(-1, ids.unsqueeze(-1)).squeeze(-1)


def full_rows(inputs: tuple) -> tuple:
    """every row of target and recovery"""
    p, ids, q = inputs
    B, m = ids.shape
    u = uniform((B, m + 1), stream(0, "bench block"), p.device)
    target, gamma, p_n = full_targets(inputs)
    n_accepted = (u[:, :m] * p_n < gamma).cumprod(dim=-1).sum(dim=-1)
    weights = torch.cat([(target - p).clamp(min=0.0), q[:, -1:]], dim=1)
    sums = weights.cumsum(dim=-1, dtype=torch.float64)
    tokens = torch.searchsorted(sums, u[:, -1:, None] * sums[..., -1:], right=True).squeeze(-1)
    return put_together(ids, n_accepted, tokens.gather(1, n_accepted[:, None]))


def have_patch() -> bool:
    return bool(harness.authors_code("Cactus", "cactus") and harness.authors_code("vllm-0.7.3", "vllm"))


@functools.cache
def patch() -> torch.nn.Module:
    """The author's sampler, on that of vLLM 0.7.3; what both need to log and to serve is not imported."""
    ours = {name: sys.modules.pop(name) for name in [*sys.modules] if name.split(".")[0] == "cactus"}  # this script
    for name, folder in (
        ("cactus", harness.authors_code("Cactus", "cactus")),
        ("vllm", harness.authors_code("vllm-0.7.3", "vllm")),
        ("vllm.model_executor", harness.authors_code("vllm-0.7.3", "vllm", "model_executor")),
        ("vllm.model_executor.layers", harness.authors_code("vllm-0.7.3", "vllm", "model_executor", "layers")),
    ):
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = [str(folder)]
    facts = {"vllm.envs": {"VLLM_USE_FLASHINFER_SAMPLER": False}, "vllm.logger": {"init_logger": logging.getLogger}}
    facts |= {"vllm.platforms": {"current_platform": types.SimpleNamespace(simple_compile_backend="inductor")}}
    for name, values in (facts | {"wandb": {"log": MagicMock()}}).items():
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__dict__.update(values)
    sys.modules["vllm"].envs = sys.modules["vllm.envs"]
    found = importlib.import_module("cactus.cactus").CactusRejectionSampler()
    for name in [name for name in sys.modules if name.split(".")[0] == "cactus"]:
        del sys.modules[name]
    sys.modules.update(ours)
    found.delta = RULE.delta
    found.init_gpu_tensors("cpu")
    return found


def authors_patch(inputs: tuple) -> tuple:
    """the author's patch of vLLM 0.7.3, compiled"""
    p, ids, q = inputs
    bonus = torch.multinomial(q[:, -1], 1)
    out = patch()(q, bonus, p, ids)
    return out, (out >= 0).sum(dim=-1) - 1


def enough_are_cut(n_accepted: torch.Tensor, m: int) -> None:
    share = float((n_accepted < m).double().mean())
    require(share >= LEAST_CUT, f"{share:.0%} of the blocks are cut: the recovery law is hardly ever drawn from")


def same_acceptances(inputs: tuple, ours: tuple, peer: tuple) -> float:
    """The same uniform numbers: equal acceptances and equal kept drafts; the last tokens may be drawn differently."""
    enough_are_cut(ours[1], inputs[1].shape[1])
    require(torch.equal(ours[1], peer[1]), "the acceptances differ")
    kept = torch.arange(ours[0].shape[1]) < ours[1][:, None]
    require(torch.equal(ours[0][kept], peer[0][kept]), "the kept drafts differ")
    return 0.0


def same_tokens(inputs: tuple, ours: tuple, peer: tuple) -> float:
    """The same uniform numbers: equal acceptances, and both last tokens y where F(y - 1) <= u < F(y) in float64.

    Only a u within rounding of a border F may go either way. A weight (s q - p)_+ in float32 is off by at most 8 eps of
    s q + p, and these sum to at most 2; the sums of a row are off by at most 256 eps of their total. Returns how far a
    token's own interval is missed, over that rounding.
    """
    same_acceptances(inputs, ours, peer)
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
    return within(worst)


def other_numbers(inputs: tuple, ours: tuple, peer: tuple) -> float:
    """Drawn from another generator: here as many blocks and the same drafts; ``same_law`` compares the rest."""
    enough_are_cut(ours[1], inputs[1].shape[1])
    require(ours[0].shape == peer[0].shape, f"{tuple(ours[0].shape)} and {tuple(peer[0].shape)} tokens")
    kept = torch.arange(peer[0].shape[1]) < peer[1][:, None]
    require(torch.equal(peer[0][kept], torch.nn.functional.pad(inputs[1], (0, 1))[kept]), "other drafts are kept")
    return 0.0


def same_law(ours: Callable, theirs: Callable, logits: bool = False, blocks: int = 20_000) -> float:
    """The p-value of a chi-square test: the number kept and the last token of so many blocks of two drafts."""
    g = stream(0, "bench small")
    draft, target = (3 * torch.rand(places, 6, generator=g) for places in (2, 3))
    p, q = draft.softmax(dim=-1), target.softmax(dim=-1)
    ids = torch.multinomial(p, blocks, replacement=True, generator=g).T.contiguous()
    rows = (draft, target) if logits else (p, q)
    draft, target = (law.expand(blocks, -1, -1) for law in rows)
    counts = []
    with torch.random.fork_rng():
        torch.manual_seed(0)  # transformers and the author's patch draw from torch's own generator
        for run in (ours, theirs):
            tokens, kept = run((draft, ids, target))
            require(bool((torch.where(tokens >= 0, tokens, 0) < 6).all()), "a token is outside the vocabulary")
            last = tokens.gather(1, kept[:, None]).squeeze(1)
            counts.append(torch.bincount(6 * kept + last, minlength=18))
    table = torch.stack(counts)
    chance = float(stats.chi2_contingency(table[:, table.sum(dim=0) > 0].numpy()).pvalue)
    require(chance >= LEAST_P, f"the laws differ: p = {chance:.2g}")
    return chance


def exact_from_logits(inputs: tuple) -> tuple:
    """accept_reject after two softmaxes, one batch"""
    draft, ids, target = inputs
    return tuple(accept_reject(draft.softmax(-1), ids, target.softmax(-1), SpS(), stream(0, "bench block")))


def lean_from_logits(inputs: tuple) -> tuple:
    """a lean sampler from logits, with torch.logsumexp"""
    draft, ids, target = inputs
    m, place = ids.shape[1], torch.arange(len(ids))
    log_p, log_q = (rows[:, :m].logsumexp(dim=-1) for rows in (draft, target))
    p_n, q_n = (
        (rows[:, :m].gather(-1, ids.unsqueeze(-1)).squeeze(-1) - total).exp()
        for rows, total in ((draft, log_p), (target, log_q))
    )
    n_accepted, _, u = number_kept(ids, p_n, q_n, 0.0)
    q_row = target[place, n_accepted].softmax(dim=-1)
    recovery = (q_row - draft[place, n_accepted.clamp(max=m - 1)].softmax(dim=-1)).clamp(min=0.0)
    sums = torch.where(n_accepted[:, None] == m, q_row, recovery).cumsum(dim=-1, dtype=torch.float64)
    return put_together(ids, n_accepted, torch.searchsorted(sums, u * sums[:, -1:], right=True))


def transformers_sampler(inputs: tuple) -> tuple:
    """_speculative_sampling of transformers, one by one"""
    from transformers.generation.utils import _speculative_sampling

    draft, ids, target = inputs
    m, out = ids.shape[1], torch.full((len(ids), ids.shape[1] + 1), -1)
    for b in range(len(ids)):
        tokens, _ = _speculative_sampling(ids[b : b + 1], draft[b : b + 1], m, target[b : b + 1])
        out[b, : tokens.shape[1]] = tokens
    return out, (out >= 0).sum(dim=-1) - 1


def build_models(width: int, layers: int, texts: int, tokens: int) -> tuple:
    """A verifier with random weights, a draft of its embeddings and its first layer, prompts of 8 tokens, and how
    many tokens follow."""
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
    return draft, verifier, torch.randint(1000, (texts, 8), generator=stream(0, "bench prompts")), max(tokens, 16)


TURN = itertools.count()  # every call writes other texts, as the peer's global generator makes it do


def write_ours(inputs: tuple, m: int = 5, sample: bool = True, singly: bool = True) -> torch.Tensor:
    draft, verifier, prompts, tokens = inputs
    texts = [
        speculative_generate(
            *(draft, verifier, batch),
            **{"rule": SpS(), "m": m, "max_new_tokens": tokens, "temperature": float(sample)},
            generator=stream(0, "bench text", next(TURN)),
        ).ids
        for batch in prompts.split(1 if singly else len(prompts))
    ]
    return torch.cat(texts)


def generated(inputs: tuple, sample: bool, singly: bool = True, **options: object) -> torch.Tensor:
    """What ``generate`` of transformers writes, text by text or all at once."""
    _, verifier, prompts, tokens = inputs
    law = {"do_sample": True, "top_k": 0, "top_p": 1.0, "temperature": 1.0} if sample else {"do_sample": False}
    facts = {"max_new_tokens": tokens, "pad_token_id": 0, **law, **options}
    texts = [
        verifier.generate(batch, attention_mask=torch.ones_like(batch), **facts)
        for batch in prompts.split(1 if singly else len(prompts))
    ]
    return torch.cat(texts)[:, prompts.shape[1] :]


def write_alone(inputs: tuple, sample: bool = True) -> torch.Tensor:
    """generate, no draft, one by one"""
    return generated(inputs, sample)


def write_alone_in_batch(inputs: tuple, sample: bool = True) -> torch.Tensor:
    """generate, no draft, one batch"""
    return generated(inputs, sample, singly=False)


def write_assisted(inputs: tuple, m: int = 5, sample: bool = True, threshold: float = 0.0) -> torch.Tensor:
    draft = inputs[0]
    blocks = {"num_assistant_tokens": m, "num_assistant_tokens_schedule": "constant"}
    for name, value in (blocks | {"assistant_confidence_threshold": threshold}).items():
        setattr(draft.generation_config, name, value)
    return generated(inputs, sample, assistant_model=draft)


def ours_at(m: int, singly: bool = True) -> partial:
    how = "one by one" if singly else "one batch"
    return named(partial(write_ours, m=m, singly=singly), f"speculative_generate, {how}, m = {m}")


def assisted_at(m: int, threshold: float = 0.0) -> partial:
    until = f", until the draft is unsure ({threshold:g})" if threshold else ""
    return named(partial(write_assisted, m=m, threshold=threshold), f"generate(assistant_model=...), m = {m}{until}")


def named(call: partial, doc: str) -> partial:
    """The call with the words for the table."""
    call.__doc__ = doc
    call.__name__ = doc
    return call


def best_of(contenders: list[partial], inputs: tuple) -> partial:
    """The fastest of one's settings in a pilot of three turns, whose times are thrown away."""
    seconds = harness.interleaved({place: partial(run, inputs) for place, run in enumerate(contenders)}, 3)
    return contenders[min(seconds, key=lambda which: sum(seconds[which]))]


def written(write: Callable, inputs: tuple) -> tuple[torch.Tensor, torch.Tensor]:
    """Texts written one by one, and the tokens per pass of the verifier of each."""
    draft, verifier, prompts, tokens = inputs
    texts, found, passes = [], [], []
    handle = verifier.register_forward_hook(lambda *_: passes.append(1))
    for row in prompts:
        passes.clear()
        texts.append(write((draft, verifier, row[None], tokens)))
        found.append(tokens / len(passes))
    handle.remove()
    return torch.cat(texts), torch.tensor(found)


@torch.no_grad()
def likelihoods(inputs: tuple, text: torch.Tensor) -> torch.Tensor:
    """The mean log-probability of the tokens of each text under the verifier."""
    _, verifier, prompts, _ = inputs
    laws = verifier(torch.cat([prompts, text], dim=1)).logits[:, prompts.shape[1] - 1 : -1].log_softmax(dim=-1)
    return laws.gather(-1, text.unsqueeze(-1)).squeeze(-1).mean(dim=-1)


def apart(a: torch.Tensor, b: torch.Tensor, what: str) -> float:
    """The distance of two means in standard errors."""
    found = float((a.mean() - b.mean()).abs() / (a.var() / len(a) + b.var() / len(b)).sqrt())
    require(found <= FAR, f"{a.mean():.3g} and {b.mean():.3g} {what}: {found:.1f} standard errors")
    return found


def same_texts(ours: Callable, theirs: Callable, drafts: bool = True, texts: int = 24, tokens: int = 32) -> float:
    """Small models: the same greedy texts; sampled ones equally likely and, both with drafts, in as many passes.

    The laws of these models are sharpened: under a flat one every text is as likely as any other.
    """
    inputs = build_models(width=32, layers=3, texts=texts, tokens=tokens)
    with torch.no_grad():
        for model in inputs[:2]:
            model.transformer.ln_f.weight.mul_(3)
    few = (*inputs[:2], inputs[2][:2], tokens)
    differ = float((ours(few, sample=False) != theirs(few, sample=False)).double().mean())
    require(differ == 0, f"{differ:.1%} of the tokens of the greedy texts differ")
    with torch.random.fork_rng():
        torch.manual_seed(0)  # generate draws from torch's own generator
        (mine, my_rate), (others, rate) = (
            written(run, inputs) if drafts else (run(inputs), torch.ones(texts)) for run in (ours, theirs)
        )
    found = apart(likelihoods(inputs, mine), likelihoods(inputs, others), "nats per token")
    return max(found, apart(my_rate, rate, "tokens per pass")) if drafts else found


def as_many_tokens(inputs: tuple, ours: torch.Tensor, peer: torch.Tensor) -> float:
    """Here the numbers of texts and tokens alone; ``same_texts`` compares the rest."""
    require(ours.shape == peer.shape == (len(inputs[2]), inputs[3]), f"{tuple(ours.shape)}, {tuple(peer.shape)} tokens")
    return 0.0


def two_rows_each(inputs: tuple) -> tuple[float, float]:
    """One row of either law is read for each sequence."""
    p, _, q = inputs
    return p[:, 0].nbytes + q[:, 0].nbytes, 0.0


def all_rows(inputs: tuple) -> tuple[float, float]:
    """Every logit is read, for the sums of its row."""
    draft, _, target = inputs
    return draft.nbytes + target.nbytes, 0.0


UNCHECKED = "It checks nothing that it is given; for one sequence the checks are a good part of the time."
SAME_PASSES = "Both libraries make the same passes of the same models: one text at a time, transformers serves as well."


def sampler_races(quick: bool) -> Iterator[Race]:
    singles = 1000 if quick else 4000
    peers = (
        Peer(run=lean_inversion, gap=same_tokens, law=same_law),
        Peer(run=lean_multinomial, gap=same_acceptances, law=same_law),
    )
    unchecked = Peer(run=lean_inversion, gap=same_tokens, law=same_law, why=UNCHECKED)
    author = Peer(run=authors_patch, gap=other_numbers, law=same_law, role="author")
    author = (author,) if have_patch() else ()  # compiled anew for each process, so at one batch size
    law = partial(same_law, logits=True)
    exact = (
        Peer(run=lean_from_logits, gap=other_numbers, law=law),
        Peer(run=transformers_sampler, gap=other_numbers, law=partial(law, blocks=singles)),
    )
    for V, B in ((4000, 1), (4000, 4)) if quick else ((152_000, 1), (152_000, 16)):
        sizes, name = {"B": B, "m": 10, "V": V}, f"B = {B}, m = 10, V = {V:,}"
        naive = Peer(run=full_rows, gap=same_tokens, law=same_law, role="plain", target=5.0)
        everyone = (*peers, naive, *author) if B > 1 else (unchecked,)
        facts = {"sizes": sizes, "dtype": torch.float32, "rounds": 31}
        yield Race(
            name=f"Cactus, {name}", build=build_rows, ours=gather_only, peers=everyone, work=two_rows_each, **facts
        )
        yield Race(
            name=f"exact, {name}", build=build_logits, ours=exact_from_logits, peers=exact, work=all_rows, **facts
        )


def text_races(quick: bool) -> Iterator[Race]:
    sizes = {"width": 256, "layers": 8, "texts": 4, "tokens": 96}
    if quick:
        sizes = {"width": 32, "layers": 3, "texts": 2, "tokens": 16}
    name = "{texts} texts of {tokens} tokens, width {width}, {layers} layers".format(**sizes)
    name += f", transformers {version('transformers')}"
    inputs = build_models(**(sizes | {"texts": 2}))
    tried = DRAFTS[:2] if quick else DRAFTS
    single, batch = (best_of([ours_at(m, singly) for m in tried], inputs) for singly in (True, False))
    assisted = best_of([*map(assisted_at, tried), assisted_at(20, 0.4)], inputs)
    kept = float(written(single, inputs)[1].mean())
    require(1.3 < kept < 0.95 * (single.keywords["m"] + 1), f"{kept:.2f} tokens per pass: too few or too many are kept")
    law = partial(same_texts, texts=12, tokens=16) if quick else same_texts
    plain = partial(law, drafts=False)
    unequal = assisted.keywords["m"] != single.keywords["m"] or assisted.keywords["threshold"] > 0
    drafted = Peer(run=assisted, gap=as_many_tokens, law=partial(law, drafts=not unequal), why=SAME_PASSES)
    alone = (Peer(run=write_alone, gap=as_many_tokens, law=plain, why=SAME_PASSES), drafted)
    yield Race(name=f"one by one, {name}", build=build_models, sizes=sizes, ours=single, peers=alone, rounds=7)
    together = Peer(run=write_alone_in_batch, gap=as_many_tokens, law=plain)
    scale = Peer(run=assisted, gap=as_many_tokens, law=plain, role="plain")
    yield Race(
        name=f"one batch, {name}", build=build_models, sizes=sizes, ours=batch, peers=(together, scale), rounds=7
    )


def races(quick: bool) -> Iterator[Race]:
    yield from sampler_races(quick)
    yield from text_races(quick)


if __name__ == "__main__":
    harness.command("cactus", harness.contests(races), rounds=11, quick_rounds=6, dtype="float32")
