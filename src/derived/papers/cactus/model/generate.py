"""Whole texts: draft, verify, roll back, for two Hugging Face causal language models with one vocabulary.

symbol   name        meaning                                                                 axes
x        tokens      the texts so far, right-aligned, padded on the left                     (B', W)
t        length      tokens of each text, prompt included                                    (B',)
m        m           drafted tokens per block                                                scalar
a        n_accepted  drafts that a block keeps                                               (B',)

Between blocks the verifier has read all but the last token of a text and the draft all but the last two. A block feeds
the draft two tokens and then one at a time, and the verifier one token and the m drafts; both then forget m - a
columns. Texts that are finished leave the batch. transformers is not imported here: the models bring it.
"""

import inspect
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from derived.lab.checks import check_at_least, check_count

from .batch import as_batch, check_cache, realign, roll_back, text_config
from .laws import check_same_vocabulary, check_share
from .rules import Rule
from .sampler import accept_reject, draw, uniform


class JudgedBlock(NamedTuple):
    """One block as it was judged, of the B' texts that were still being written."""

    texts: Tensor  # (B',) which of the batch they are
    draft_laws: Tensor  # (B', m, V)
    verifier_laws: Tensor  # (B', m + 1, V)
    ids: Tensor  # (B', m + 1) the kept drafts, then one token, then -1
    n_accepted: Tensor  # (B',)
    counts: Tensor  # (B',) how many of these tokens belong to the text: no more than it lacked, up to a stop token


class Generation(NamedTuple):
    """New tokens, padded with -1, and the course of the blocks.

    A block's ``accepted`` counts the drafts that the rule kept, before a stop token or the length cuts the text;
    ``drafted`` says how many there were to keep. Blocks after a text's end read -1.
    """

    ids: Tensor  # (B, longest)
    lengths: Tensor  # (B,)
    accepted: Tensor  # (B, blocks)
    drafted: Tensor  # (blocks,)


def next_laws(
    logits: Float[Tensor, "*batch V"],
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Float[Tensor, "*batch V"]:
    """softmax(logits / temperature), cut to the k most likely tokens, then to the fewest whose sum reaches top_p.

    Temperature 0 is greedy decoding: all mass on the first largest logit. At least one token is kept; ties at the k-th
    place are all kept. In float32 or wider. Shapes: (..., V) to (..., V). Raises ValueError for settings out of range.
    """
    check_at_least("temperature", temperature, 0)
    if not bool(logits.amax(dim=-1).isfinite().all()):
        raise ValueError("logits have a row with NaN or +inf, or of -inf alone; give rows with a finite maximum")
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    if temperature == 0:
        return torch.zeros_like(logits).scatter_(-1, logits.argmax(dim=-1, keepdim=True), 1.0)
    if temperature < 2**-60:  # the largest logit becomes 0, so that a tiny temperature leaves nothing infinite or NaN
        logits = logits - logits.amax(dim=-1, keepdim=True)
        temperature = max(temperature, torch.finfo(logits.dtype).tiny)
    if temperature != 1:
        logits = logits / temperature
    if top_k is not None:
        check_count("top_k", top_k)
        least = logits.topk(min(top_k, logits.shape[-1]), dim=-1).values[..., -1:]
        logits = logits.masked_fill(logits < least, -torch.inf)
    laws = logits.softmax(dim=-1)
    if top_p is not None:
        check_share("top_p", top_p)
    if top_p is not None and top_p < 1:  # at 1 nothing is cut, though the rounded sums may reach 1 before the end
        ordered, order = laws.sort(dim=-1, descending=True, stable=True)
        cut = ordered.cumsum(dim=-1) - ordered >= top_p
        laws = laws.masked_fill(torch.zeros_like(cut).scatter(-1, order, cut), 0.0)
        laws = laws / laws.sum(dim=-1, keepdim=True)
    return laws


class Reader:
    """One model that reads right-aligned texts and gives next-token distributions; with its cache, or without."""

    def __init__(
        self,
        model: Any,
        who: str,
        use_cache: bool,
        settings: dict[str, Any],
    ) -> None:
        self.model, self.who, self.use_cache, self.settings = model, who, use_cache, settings
        self.cache: Any = None
        self.num_read = 0  # columns of the texts that the cache holds
        self.known = inspect.signature(model.forward).parameters.keys()
        self.num_places = getattr(text_config(model), "max_position_embeddings", None)

    def laws(self, tokens: Int[Tensor, "B W"], length: Int[Tensor, "B"], num_laws: int) -> Float[Tensor, "B n V"]:
        """The next-token distributions after the last ``num_laws`` columns."""
        arguments = {"input_ids": tokens[:, self.num_read :], "use_cache": self.use_cache}
        width = tokens.shape[1]
        if int(length.min()) < width:  # some text starts later: hide the padding, count places from its start
            mask = torch.arange(width, device=tokens.device) >= width - length[:, None]
            places = (mask.cumsum(dim=-1) - 1).clamp(min=0)
            if self.num_places is not None:  # only drafts beyond the end of a text are that far out
                places = places.clamp(max=self.num_places - 1)
            arguments |= {"attention_mask": mask.to(torch.int64), "position_ids": places[:, self.num_read :]}
        if self.use_cache:
            arguments["past_key_values"] = self.cache
        if "logits_to_keep" in self.known:
            arguments["logits_to_keep"] = num_laws
        output = self.model(**arguments)
        if self.use_cache:
            if self.cache is None:
                check_cache(output, self.who)
            self.cache, self.num_read = output.past_key_values, width
        return next_laws(output.logits[:, -num_laws:], **self.settings)

    def forget(self, rows: Int[Tensor, "new"], removed: Int[Tensor, "new"], width: int) -> None:
        """Roll the cache back to the first ``width`` columns of the realigned texts."""
        if self.use_cache:
            roll_back(self.cache, rows, removed, width)
            self.num_read = width


def _draft_block(
    reader: Reader, tokens: Tensor, length: Tensor, m: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """m drafts appended to the texts, and the distributions (B', m, V) that they were drawn from."""
    u = uniform((m, len(tokens)), generator, tokens.device)
    laws = []
    for i in range(m):
        law = reader.laws(tokens, length + i, 1)
        laws.append(law)
        tokens = torch.cat([tokens, draw(law[:, 0], u[i])[:, None]], dim=1)
    return tokens, torch.cat(laws, dim=1)


@torch.no_grad()
def speculative_generate(
    draft: Any,
    verifier: Any,
    prompts: Int[Tensor, "B T"] | Sequence[Sequence[int]] | Mapping[str, Any],
    *,
    attention_mask: Int[Tensor, "B T"] | None = None,
    rule: Rule,
    m: int = 10,
    max_new_tokens: int,
    generator: torch.Generator,
    temperature: float | None = None,
    top_k: int | None = None,
    top_p: float | None = None,
    stop_ids: Collection[int] | None = None,
    on_block: Callable[[JudgedBlock], None] | None = None,
    use_cache: bool = True,
) -> Generation:
    """Texts of up to ``max_new_tokens`` new tokens, drafted by one model and judged by the other with ``rule``.

    With ``SpS()`` the texts have the verifier's own distribution at this temperature, top_k and top_p, whatever the
    draft. With another rule they have the distribution that ``exact.sequence_law`` enumerates: each drafted position
    has the distribution h_alg, each position after m kept drafts the verifier's. The first tokens have the same
    distribution for every ``max_new_tokens``.

    ``prompts``: (B, T), B lists of different lengths, or what a tokenizer returns, with its ``attention_mask``: tokens
    where that is 0 are padding, on either side, and are left out. ``temperature``, ``top_k``, ``top_p``: by default
    those with which ``verifier.generate`` samples, if its ``generation_config`` says ``do_sample``, the 50 most likely
    tokens where that has no ``top_k``; else 1 and no cut; both models are cut alike. ``stop_ids``: by default the
    verifier's ``generation_config.eos_token_id``; give () to write on after it. A text ends with its first stop token,
    which it keeps. ``on_block`` is called after each block with all that was decided in it, its new tokens among them.
    No more is drafted than the longest rest of a text, so the last blocks of a batch may be shorter than m.

    Greedy decoding, temperature 0, makes both distributions one-hot; every rule but ``Interp`` then is exact
    speculative sampling and its knob does nothing (O9), which a warning says.

    Raises ValueError for an empty prompt or batch, strings, padding that no mask hides, m = 0, different vocabularies,
    token numbers outside them, a model in training mode, texts beyond a model's last position, a
    ``generation_config`` that changes the distribution in another way, such as a ``repetition_penalty``, and a cache
    that cannot be rolled back, such as one of a sliding window. [repo; batch ours]

    >>> from derived.lab.rng import stream
    >>> from derived.papers.cactus import Cactus
    >>> from derived.papers.cactus.data.small_lm import LanguageModel
    >>> draft, verifier = (LanguageModel(depth=depth, generator=stream(0, depth)).eval() for depth in (1, 2))
    >>> options = {"rule": Cactus(0.1), "m": 3, "max_new_tokens": 8, "generator": stream(0, "text")}
    >>> speculative_generate(draft, verifier, [[0, 11], [0]], **options).lengths
    tensor([8, 8])
    """
    tokens, length = as_batch(prompts, attention_mask, verifier)
    stop_ids = _end_of_text(verifier) if stop_ids is None else stop_ids
    _check_request(draft, verifier, tokens, length, m, max_new_tokens, stop_ids)
    settings = _sampling(verifier, temperature, top_k, top_p)
    if settings["temperature"] == 0 and rule.inert_when_greedy and rule.name != "sps":
        warnings.warn(
            f"temperature = 0 makes the verifier's law one-hot, and {rule} is then exact speculative sampling: its "
            "knob does nothing; give a temperature > 0 to accept more",
            stacklevel=2,
        )
    pairs = ((draft, "draft"), (verifier, "verifier"))
    drafter, judge = (Reader(*pair, use_cache, settings) for pair in pairs)
    stops = torch.tensor(sorted(stop_ids), dtype=torch.int64, device=tokens.device)
    ends = length + max_new_tokens
    active = torch.arange(len(tokens), device=tokens.device)
    texts: list[list[int]] = [[] for _ in active]
    course: list[list[int]] = []
    drafted: list[int] = []
    while len(active):
        size = min(m, int((ends[active] - length).max()))
        # Draft one token at a time, read them all in one pass, judge them.
        tokens, p = _draft_block(drafter, tokens, length, size, generator)
        q = judge.laws(tokens, length + size, size + 1)
        block = accept_reject(p, tokens[:, -size:], q, rule, generator)
        keep, counts = _new_tokens(block.ids, block.n_accepted, ends[active] - length, stops)
        if on_block is not None:
            on_block(JudgedBlock(active, p, q, *block, counts))
        course.append([-1] * len(texts))
        drafted.append(size)
        for b, row, count, a in zip(*map(Tensor.tolist, (active, block.ids, counts, block.n_accepted)), strict=True):
            texts[b] += row[:count]
            course[-1][b] = a
        tokens = torch.cat([tokens, tokens[:, -1:]], dim=1)
        tokens[:, -size - 1 :] = block.ids  # what lies after the last token of a text is forgotten below
        # Finished texts leave; the others forget what was rejected, and end in the same column again.
        rows = keep.nonzero().squeeze(-1)
        if not len(rows):
            break
        removed = (size - block.n_accepted)[rows]
        length, active = (length + block.n_accepted + 1)[rows], active[rows]
        width = int(length.max())
        tokens = realign(tokens, rows, removed, width)
        judge.forget(rows, removed, width - 1)
        drafter.forget(rows, removed, width - 2)
    return _collect(texts, course, drafted, tokens.device)


@torch.no_grad()
def generate_alone(
    verifier: Any,
    prompts: Int[Tensor, "B T"],
    *,
    max_new_tokens: int,
    generator: torch.Generator,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    on_token: Callable[[Tensor], None] | None = None,
) -> Int[Tensor, "B new"]:
    """Plain decoding: one pass of the verifier and one draw from its distribution per token, prompts of one length.

    ``on_token`` is called with each new token (B,). Raises ValueError for settings out of range. [prior]
    """
    check_count("max_new_tokens", max_new_tokens)
    reader = Reader(verifier, "verifier", True, {"temperature": temperature, "top_k": top_k, "top_p": top_p})
    tokens = prompts
    for _ in range(max_new_tokens):
        law = reader.laws(tokens, torch.full_like(tokens[:, 0], tokens.shape[1]), 1)[:, 0]
        token = draw(law, uniform((len(tokens),), generator, tokens.device))
        tokens = torch.cat([tokens, token[:, None]], dim=1)
        if on_token is not None:
            on_token(token)
    return tokens[:, prompts.shape[1] :]


def _new_tokens(ids: Tensor, n_accepted: Tensor, left: Tensor, stops: Tensor) -> tuple[Tensor, Tensor]:
    """Which texts go on, and how many tokens of the block each takes: up to a stop token, no more than are left."""
    place = torch.arange(ids.shape[1], device=ids.device)
    stopping = torch.isin(ids, stops) & (place <= n_accepted[:, None])
    first_stop = torch.where(stopping, place, ids.shape[1]).amin(dim=-1)
    counts = torch.minimum(torch.minimum(n_accepted + 1, left), first_stop + 1)
    return (counts < left) & (first_stop >= counts), counts


def _collect(texts: list[list[int]], course: list[list[int]], drafted: list[int], device: torch.device) -> Generation:
    longest = max(map(len, texts))
    ids = torch.tensor([text + [-1] * (longest - len(text)) for text in texts], device=device)
    lengths = torch.tensor([len(text) for text in texts], device=device)
    return Generation(ids, lengths, torch.tensor(course, device=device).T, torch.tensor(drafted, device=device))


def _end_of_text(verifier: Any) -> tuple[int, ...]:
    """The tokens at which ``verifier.generate`` would stop."""
    settings = getattr(verifier, "generation_config", None)
    ids = getattr(settings, "eos_token_id", None)
    return () if ids is None else (ids,) if isinstance(ids, int) else tuple(ids)


# Settings of a generation_config that ``generate`` heeds and we do not, and where they change nothing.
UNHEEDED = {
    **dict.fromkeys(
        ("repetition_penalty", "encoder_repetition_penalty", "typical_p", "guidance_scale", "num_beams"), 1
    ),
    **dict.fromkeys(("no_repeat_ngram_size", "min_length", "min_new_tokens", "epsilon_cutoff", "eta_cutoff"), 0),
    **dict.fromkeys(("min_p", "top_h", "penalty_alpha", "diversity_penalty", "encoder_no_repeat_ngram_size"), 0),
    **dict.fromkeys(("bad_words_ids", "sequence_bias", "suppress_tokens", "begin_suppress_tokens"), None),
    **dict.fromkeys(("forced_bos_token_id", "forced_eos_token_id", "exponential_decay_length_penalty"), None),
    **dict.fromkeys(("watermarking_config", "dola_layers", "stop_strings", "max_time"), None),
}


def _check_heeded(verifier: Any) -> None:
    """Raise ValueError where the verifier's ``generate`` would draw from another distribution or end otherwise."""
    config = getattr(verifier, "generation_config", None)
    for name, neutral in UNHEEDED.items():
        value = getattr(config, name, None)
        if value not in (None, neutral):
            raise ValueError(
                f"the verifier's generation_config says {name} = {value!r}, which changes what it writes and is not "
                "heeded here; set it to None"
            )


def _sampling(verifier: Any, temperature: float | None, top_k: int | None, top_p: float | None) -> dict[str, Any]:
    """What was asked for; what was not, as ``verifier.generate`` would sample: if nothing says top_k, with 50."""
    _check_heeded(verifier)
    given = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
    config = getattr(verifier, "generation_config", None)
    if getattr(config, "do_sample", None):
        given = {name: getattr(config, name, None) if value is None else value for name, value in given.items()}
        given["top_k"] = 50 if given["top_k"] is None else given["top_k"] or None  # 0 is its word for no cut
    return given | {"temperature": 1.0 if given["temperature"] is None else given["temperature"]}


def _check_request(
    draft: Any, verifier: Any, tokens: Tensor, length: Tensor, m: int, max_new_tokens: int, stop_ids: Collection[int]
) -> None:
    check_count("m", m, 1, "plain decoding, without a draft, is verifier.generate")
    check_count("max_new_tokens", max_new_tokens)
    for who, model in (("draft", draft), ("verifier", verifier)):
        if model.training:
            raise ValueError(f"{who} is in training mode: dropout would make its law random; call {who}.eval() first")
        places = getattr(text_config(model), "max_position_embeddings", None)
        if places is not None and int(length.max()) + max_new_tokens > places:
            raise ValueError(
                f"a prompt of {int(length.max())} tokens and {max_new_tokens} new ones exceed the {places} positions "
                f"of {who}; shorten one of them"
            )
    V = text_config(verifier).vocab_size
    check_same_vocabulary("draft", text_config(draft).vocab_size, "verifier", V)
    for name, low, high in (
        ("prompts", int(tokens.min()), int(tokens.max())),
        ("stop_ids", min(stop_ids, default=0), max(stop_ids, default=0)),
    ):
        if low < 0 or high >= V:
            raise ValueError(f"{name} run from {low} to {high}; give token numbers from 0 to {V - 1}")
