"""Whole texts from tiny random models: their distribution, roll-back against no cache, stops, streams."""

import math
import re

import pytest
import torch
from scipy import stats
from transformers import (
    BatchEncoding,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    LogitsProcessorList,
    MambaConfig,
    MambaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from derived.lab.rng import stream
from derived.papers.cactus.model.exact import sequence_law
from derived.papers.cactus.model.generate import UNHEEDED, next_laws, speculative_generate
from derived.papers.cactus.model.rules import Cactus, Calibrated, Interp, Lenience, Mentored, SpS, TopK, Typical

PROMPT = [1, 2]
LEVEL = 1e-4


def randomised(model, seed: int, size: float = 0.7):
    """The model in float64 with every parameter drawn, so that its distributions are far from uniform."""
    g = stream(seed, "model")
    with torch.no_grad():
        for parameter in model.to(torch.float64).parameters():
            parameter.copy_(size * torch.randn(parameter.shape, generator=g, dtype=torch.float64))
    return model.eval()


def gpt2(seed: int, layers: int = 1, V: int = 3, places: int = 32):
    config = GPT2Config(
        **{"vocab_size": V, "n_positions": places, "n_embd": 8, "n_layer": layers, "n_head": 2},
        **{"bos_token_id": None, "eos_token_id": None},
    )
    return randomised(GPT2LMHeadModel(config), seed)


def rotary(seed: int, layers: int, kind=LlamaForCausalLM, config=LlamaConfig, **more):
    sizes = {"hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": layers, "num_attention_heads": 2}
    sizes |= {"num_key_value_heads": 1, "max_position_embeddings": 64, "vocab_size": 7}
    return randomised(kind(config(**sizes, bos_token_id=None, eos_token_id=None, pad_token_id=None, **more)), seed)


def laws_of(model, temperature: float = 1.0):
    """The model's next-token distributions after the prompt and a prefix, each time without a cache."""

    @torch.no_grad()
    def laws(prefixes):
        prompt = torch.tensor(PROMPT).expand(len(prefixes), -1)
        logits = model(input_ids=torch.cat([prompt, prefixes], dim=1)).logits[:, -1]
        return (logits / temperature).softmax(dim=-1)

    return laws


def chi_square(texts: list[tuple[int, ...]], law: dict[tuple[int, ...], float]) -> float:
    """Pearson's p-value of the texts under the distribution; rare cells are pooled."""
    assert set(texts) <= set(law)
    counts = {text: 0 for text in law}
    for text in texts:
        counts[text] += 1
    cells = [(counts[text], len(texts) * probability) for text, probability in law.items()]
    rare = [cell for cell in cells if cell[1] < 10]
    cells = [cell for cell in cells if cell[1] >= 10] + ([tuple(map(sum, zip(*rare, strict=True)))] if rare else [])
    return float(stats.chi2.sf(sum((count - mean) ** 2 / mean for count, mean in cells), len(cells) - 1))


def texts_of(generation) -> list[tuple[int, ...]]:
    return [tuple(row[:n]) for row, n in zip(generation.ids.tolist(), generation.lengths.tolist(), strict=True)]


DRAFT, VERIFIER = gpt2(1), gpt2(2, layers=2)


@pytest.mark.parametrize("rule", [SpS(), Cactus(0.2), Typical(), Calibrated(0.1)], ids=lambda rule: rule.name)
def test_law_of_texts_in_a_batch(rule):
    """8,000 texts at once have the enumerated distribution, not another rule's or that of m = 1."""
    facts = {"num_tokens": 4, "num_vocab": 3}
    law = sequence_law(laws_of(DRAFT), laws_of(VERIFIER), rule, m=2, **facts)
    assert abs(sum(law.values()) - 1) <= 1e-12
    prompts = torch.tensor(PROMPT).expand(8_000, -1)
    texts = texts_of(
        speculative_generate(
            DRAFT, VERIFIER, prompts, rule=rule, m=2, max_new_tokens=4, generator=stream(20, rule.name)
        )
    )
    assert LEVEL < chi_square(texts, law) < 1 - LEVEL
    other = Cactus(0.03) if rule == SpS() else SpS()
    assert chi_square(texts, sequence_law(laws_of(DRAFT), laws_of(VERIFIER), other, m=2, **facts)) < 1e-6
    if rule != SpS():  # the bonus token comes earlier
        assert chi_square(texts, sequence_law(laws_of(DRAFT), laws_of(VERIFIER), rule, m=1, **facts)) < 1e-6


PAIRS = {
    "gpt2": lambda: (gpt2(3, 1, V=7, places=64), gpt2(4, 2, V=7, places=64)),
    "llama": lambda: (rotary(5, 1), rotary(6, 2)),
    "mixed": lambda: (gpt2(7, 1, V=7, places=64), rotary(8, 2)),
}


@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize("rule", [SpS(), Cactus(0.5), Mentored(0.3)], ids=lambda rule: rule.name)
def test_roll_back_equals_no_cache(kind, rule):
    """With the same uniform numbers the cache changes no token, at batch 1 and for prompts of different lengths."""
    draft, verifier = PAIRS[kind]()
    for prompts in ([[3]], [[1, 2, 3, 4, 5]], [[1, 2], [0], [2, 6, 0, 1, 4], [5]], [[4], [1, 1, 2]]):
        cached, plain = (
            speculative_generate(
                *(draft, verifier, prompts),
                **{"rule": rule, "m": 4, "max_new_tokens": 15, "stop_ids": [0], "use_cache": use_cache},
                generator=stream(22, kind, len(prompts)),
            )
            for use_cache in (True, False)
        )
        assert all(torch.equal(x, y) for x, y in zip(cached, plain, strict=True))


@pytest.mark.parametrize("kind", PAIRS)
def test_greedy_is_the_verifiers_own_greedy_text(kind):
    """At temperature 0 every inert rule writes what transformers' generate writes alone, and a
    warning says so."""
    draft, verifier = PAIRS[kind]()
    prompt = torch.tensor([[1, 4, 2]])
    own = verifier.generate(
        prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=20, pad_token_id=0
    )[:, 3:]
    facts = {"m": 3, "max_new_tokens": 20, "temperature": 0}
    exact = speculative_generate(draft, verifier, prompt, rule=SpS(), generator=stream(23), **facts)
    assert torch.equal(exact.ids, own)
    for rule in (Cactus(2.0), Calibrated(0.5), Lenience(0.1), Mentored(1.0), Typical(), TopK(2)):
        with pytest.warns(UserWarning, match="its knob does nothing"):
            text = speculative_generate(draft, verifier, prompt, rule=rule, generator=stream(23), **facts)
        assert torch.equal(text.ids, own)
    assert not torch.equal(
        speculative_generate(draft, verifier, prompt, rule=Interp(1.0), generator=stream(23), **facts).ids, own
    )


def test_laws_against_transformers_own_warpers():
    """Temperature, then top-k, then top-p give the distributions of the library's logits warpers."""
    logits = 2 * torch.randn(30, 20, generator=stream(24), dtype=torch.float64)
    for temperature, top_k, top_p in ((0.6, 5, 0.95), (2.0, None, 0.5), (0.3, 50, None), (1.0, 1, 1.0), (1, 3, 0.01)):
        warpers = LogitsProcessorList([TemperatureLogitsWarper(float(temperature))])
        if top_k is not None:
            warpers.append(TopKLogitsWarper(top_k))
        if top_p is not None:
            warpers.append(TopPLogitsWarper(top_p))
        peer = warpers(None, logits).softmax(dim=-1)
        assert (next_laws(logits, temperature, top_k, top_p) - peer).abs().max() <= 1e-12
    flat = next_laws(torch.zeros(4), top_p=0.5)  # two of four equal tokens reach one half exactly
    assert flat.sort().values.tolist() == [0.0, 0.0, 0.5, 0.5]
    assert torch.equal(next_laws(logits, 0).argmax(dim=-1), logits.argmax(dim=-1))
    assert next_laws(logits.half(), 0.5).dtype == torch.float32


def test_stop_tokens_end_a_text():
    """A text ends with its first stop token, with the enumerated distribution of stopped texts."""
    law = sequence_law(laws_of(DRAFT), laws_of(VERIFIER), Cactus(0.2), m=3, num_tokens=3, num_vocab=3, stop_ids=[1])
    prompts = torch.tensor(PROMPT).expand(5_000, -1)
    generation = speculative_generate(
        DRAFT, VERIFIER, prompts, rule=Cactus(0.2), m=3, max_new_tokens=3, generator=stream(25), stop_ids=[1]
    )
    texts = texts_of(generation)
    assert {len(text) for text in texts} == {1, 2, 3}
    assert all(1 not in text[:-1] for text in texts)
    assert LEVEL < chi_square(texts, law) < 1 - LEVEL
    assert (generation.ids[torch.arange(generation.ids.shape[1]) >= generation.lengths[:, None]] == -1).all()


def test_texts_may_end_at_the_last_position():
    """Prompt and text fill all 32 positions; drafts beyond them are read at the last one and thrown away."""
    prompts = [[1] * 20, [2], [0, 1]]
    generation = speculative_generate(
        DRAFT, VERIFIER, prompts, rule=SpS(), m=10, max_new_tokens=12, generator=stream(28)
    )
    assert generation.lengths.tolist() == [12, 12, 12]
    with pytest.raises(ValueError, match="exceed the 32 positions"):
        speculative_generate(DRAFT, VERIFIER, prompts, rule=SpS(), max_new_tokens=13, generator=stream(28))


def test_a_cache_that_forgets_is_refused():
    """A sliding window cannot be rolled back: refused with the way out, which works."""
    draft = rotary(9, 1, MistralForCausalLM, MistralConfig, sliding_window=4)
    verifier = rotary(6, 2)
    facts = {"rule": SpS(), "m": 2, "max_new_tokens": 4}
    with pytest.raises(ValueError, match="use_cache=False"):
        speculative_generate(draft, verifier, [[1, 2]], **facts, generator=stream(29))
    generation = speculative_generate(draft, verifier, [[1, 2]], **facts, generator=stream(29), use_cache=False)
    assert generation.lengths.tolist() == [4]


def test_bad_requests():
    """Empty prompts, m = 0, other vocabularies, training mode: each error says what would be right."""
    facts = {"rule": SpS(), "max_new_tokens": 3, "generator": stream(30)}
    cases = [
        ("what the tokenizer returns", DRAFT, VERIFIER, ["two", "words"], {}),
        ("give a batch of prompts", DRAFT, VERIFIER, [1, 2], {}),
        ("different shapes", DRAFT, VERIFIER, [PROMPT], {"attention_mask": [[1]]}),
        ("inside a prompt", DRAFT, VERIFIER, [[1, 2, 1]], {"attention_mask": [[1, 0, 1]]}),
        ("a text needs a first token", DRAFT, VERIFIER, [[1], []], {}),
        ("give a batch of prompts", DRAFT, VERIFIER, torch.tensor([1, 2]), {}),
        ("give integers", DRAFT, VERIFIER, [[1.5, 2.0]], {}),
        ("prompts run from 0 to 3", DRAFT, VERIFIER, [[0, 3]], {}),
        ("stop_ids run from -1", DRAFT, VERIFIER, [PROMPT], {"stop_ids": [-1]}),
        ("plain decoding", DRAFT, VERIFIER, [PROMPT], {"m": 0}),
        ("max_new_tokens = 0", DRAFT, VERIFIER, [PROMPT], {"max_new_tokens": 0}),
        ("share one vocabulary", gpt2(1, V=4), VERIFIER, [PROMPT], {}),
        ("dropout", gpt2(1).train(), VERIFIER, [PROMPT], {}),
        ("temperature = -1", DRAFT, VERIFIER, [PROMPT], {"temperature": -1}),
        ("temperature = nan", DRAFT, VERIFIER, [PROMPT], {"temperature": math.nan}),
        ("top_k = 0", DRAFT, VERIFIER, [PROMPT], {"top_k": 0}),
        ("top_p = 0", DRAFT, VERIFIER, [PROMPT], {"top_p": 0.0}),
    ]
    for message, draft, verifier, prompts, more in cases:
        with pytest.raises(ValueError, match=message):
            speculative_generate(draft, verifier, prompts, **(facts | more))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_logits_without_a_law_are_refused(bad):
    for row in ([0.0, bad], [-math.inf, -math.inf]):
        with pytest.raises(ValueError, match="finite maximum"):
            next_laws(torch.tensor(row))


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_tokenizers_padding_is_left_out(side):
    """A BatchEncoding padded on either side gives what lists of different lengths give; so does the mask by itself."""
    facts = {"rule": SpS(), "m": 2, "max_new_tokens": 4}
    ragged = [[1, 2, 0], [2]]
    width = [0, 0]
    padded = [ragged[0], width + ragged[1] if side == "left" else ragged[1] + width]
    mask = [[1, 1, 1], [0, 0, 1] if side == "left" else [1, 0, 0]]
    expected = speculative_generate(DRAFT, VERIFIER, ragged, **facts, generator=stream(32)).ids
    encoding = BatchEncoding({"input_ids": torch.tensor(padded), "attention_mask": torch.tensor(mask)})
    for prompts, more in ((encoding, {}), (torch.tensor(padded), {"attention_mask": torch.tensor(mask)})):
        found = speculative_generate(DRAFT, VERIFIER, prompts, **facts, **more, generator=stream(32)).ids
        assert torch.equal(found, expected)


def test_padding_that_no_mask_hides_is_refused(monkeypatch):
    monkeypatch.setattr(VERIFIER.config, "pad_token_id", 0, raising=False)
    facts = {"rule": SpS(), "max_new_tokens": 3}
    for padded in ([[1, 2, 1], [0, 0, 2]], [[1, 2, 1], [2, 0, 0]]):
        with pytest.raises(ValueError, match="attention_mask"):
            speculative_generate(DRAFT, VERIFIER, torch.tensor(padded), **facts, generator=stream(33))


@pytest.mark.parametrize("name", ["pad_token_id", "eos_token_id"])
def test_lists_of_different_lengths_are_taken_as_they_are(name, monkeypatch):
    """Nobody has padded them, even where one ends or begins with the token that pads."""
    facts = {"rule": SpS(), "m": 2, "max_new_tokens": 3, "stop_ids": ()}
    ragged = [[1, 0, 2, 0], [0, 0], [0]]
    expected = speculative_generate(DRAFT, VERIFIER, ragged, **facts, generator=stream(33)).ids
    monkeypatch.setattr(VERIFIER.config, name, 0, raising=False)
    assert torch.equal(speculative_generate(DRAFT, VERIFIER, ragged, **facts, generator=stream(33)).ids, expected)


def test_a_model_without_a_cache_of_keys_is_refused_in_one_line():
    config = MambaConfig(vocab_size=3, hidden_size=8, num_hidden_layers=1, state_size=2, bos_token_id=None)
    model, facts = MambaForCausalLM(config).eval(), {"rule": SpS(), "m": 2, "max_new_tokens": 2}
    with pytest.raises(ValueError, match=r"draft returns no past_key_values .* give use_cache=False"):
        speculative_generate(model, VERIFIER, [PROMPT], **facts, generator=stream(43))
    written = speculative_generate(model, VERIFIER, [PROMPT], **facts, use_cache=False, generator=stream(43))
    assert written.lengths.tolist() == [2]


@pytest.mark.parametrize("temperature", [1e-40, 5e-324, 1e-20])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_tiny_temperature_is_nearly_greedy(temperature, dtype):
    logits = torch.tensor([[1.0, 3.0, -torch.inf, 2.0], [200.0, 200.0, -200.0, 0.0]], dtype=dtype)
    expected = [[0.0, 1.0, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0]]
    assert next_laws(logits, temperature).tolist() == expected


def test_without_a_padding_token_the_end_of_text_pads(monkeypatch):
    monkeypatch.setattr(VERIFIER.config, "eos_token_id", 2)
    facts = {"rule": SpS(), "max_new_tokens": 3, "stop_ids": ()}
    for padded in ([[1, 0, 1], [2, 0, 1]], [[1, 0, 1], [0, 2, 2]]):
        with pytest.raises(ValueError, match=r"prompts \[1\] are padded with 2"):
            speculative_generate(DRAFT, VERIFIER, torch.tensor(padded), **facts, generator=stream(33))
    for whole in ([[2, 0, 1]], [[1, 0, 2], [0, 1, 2]]):  # one prompt is no batch, and a turn may end a prompt
        speculative_generate(DRAFT, VERIFIER, torch.tensor(whole), **facts, generator=stream(33))
    monkeypatch.setattr(VERIFIER.config, "bos_token_id", 2)
    speculative_generate(DRAFT, VERIFIER, torch.tensor([[2, 0], [2, 1]]), **facts, generator=stream(33))


def test_a_text_stops_where_the_verifiers_generation_config_says(monkeypatch):
    facts = {"rule": SpS(), "m": 2, "max_new_tokens": 12}
    given = speculative_generate(DRAFT, VERIFIER, [PROMPT] * 8, **facts, stop_ids=[0], generator=stream(34))
    monkeypatch.setattr(VERIFIER.generation_config, "eos_token_id", 0)
    found = speculative_generate(DRAFT, VERIFIER, [PROMPT] * 8, **facts, generator=stream(34))
    assert torch.equal(found.ids, given.ids)
    on = speculative_generate(DRAFT, VERIFIER, [PROMPT] * 8, **facts, stop_ids=(), generator=stream(34))
    assert (on.lengths == 12).all()
    assert (found.lengths < 12).any()


def test_the_verifiers_generation_config_speaks_where_nothing_is_said():
    """do_sample with temperature, top_k and top_p are the defaults; what is given wins; without do_sample: no cut."""
    draft, verifier = gpt2(3, 1, V=7, places=64), gpt2(4, 2, V=7, places=64)
    said = {"temperature": 0.4, "top_k": 4, "top_p": 0.9}
    facts = {"rule": SpS(), "m": 3, "max_new_tokens": 12}

    def written(**more):
        return speculative_generate(draft, verifier, [[1]] * 8, **facts, **more, generator=stream(36)).ids

    free, cut = written(), written(**said)
    for name, value in said.items():
        setattr(verifier.generation_config, name, value)
    assert torch.equal(written(), free)  # greedy by its own account: its settings of sampling mean nothing
    verifier.generation_config.do_sample = True
    assert torch.equal(written(), cut)
    assert not torch.equal(free[:, : cut.shape[1]], cut[:, : free.shape[1]])
    assert torch.equal(written(temperature=1.0, top_k=7, top_p=1.0), free)


def test_where_the_generation_config_has_no_top_k_it_is_that_of_generate():
    """`generate` cuts to the 50 most likely tokens by itself, and 0 is its word for no cut."""
    draft, verifier = gpt2(3, 1, V=200), gpt2(4, 2, V=200)
    verifier.generation_config.do_sample = True
    prompt = torch.tensor([[1]]).expand(1_000, -1)
    with torch.no_grad():
        likely = set(verifier(prompt[:1]).logits[0, -1].topk(50).indices.tolist())

    def seen(**more):
        facts = {"rule": SpS(), "m": 1, "max_new_tokens": 1, "generator": stream(37)}
        return set(speculative_generate(draft, verifier, prompt, **facts, **more).ids.flatten().tolist())

    torch.manual_seed(0)
    own = verifier.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=1, pad_token_id=0)
    assert {*own[:, -1].tolist()} <= likely
    assert seen() <= likely
    assert not seen(top_k=200) <= likely
    verifier.generation_config.top_k = 0
    assert not seen() <= likely


@pytest.mark.parametrize(
    ("name", "value"),
    [("repetition_penalty", 5.0), ("min_p", 0.2), ("bad_words_ids", [[3]]), ("num_beams", 4), ("max_time", 1.0)],
)
def test_a_generation_config_that_changes_the_law_or_the_end_otherwise_is_refused(name, value):
    draft, verifier = gpt2(3, 1, V=7), gpt2(4, 2, V=7)
    setattr(verifier.generation_config, name, value)
    with pytest.raises(ValueError, match=re.escape(f"{name} = {value!r}, which changes what it writes")):
        speculative_generate(draft, verifier, [[1]], rule=SpS(), max_new_tokens=2, generator=stream(38))
    setattr(verifier.generation_config, name, UNHEEDED[name])
    speculative_generate(draft, verifier, [[1]], rule=SpS(), max_new_tokens=2, generator=stream(38))
