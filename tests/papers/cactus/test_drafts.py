"""Drafts without a second model: an early exit of the verifier, counts with the signature of a model, long memories."""

import pytest
import torch
from transformers import Gemma3ForCausalLM, Gemma3TextConfig

from derived.lab.rng import stream
from derived.papers.cactus.data.drafts import RIDGE, FromCounts, Head, early_exit, remembering, scaled, trained_head
from derived.papers.cactus.data.ngrams import lookup
from derived.papers.cactus.model.generate import speculative_generate
from derived.papers.cactus.model.rules import Cactus, SpS

V = 11


@pytest.fixture
def tiny():
    """A Gemma of four layers with windows of three tokens; every parameter drawn."""
    config = Gemma3TextConfig(
        **{"vocab_size": V, "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 4, "head_dim": 4},
        **{"num_attention_heads": 2, "num_key_value_heads": 1, "sliding_window": 3, "max_position_embeddings": 64},
        **{
            "layer_types": ["sliding_attention", "full_attention"] * 2,
            "pad_token_id": 0,
            "attn_implementation": "eager",
        },
    )
    model, g = Gemma3ForCausalLM(config), stream(0, "tiny")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.5 * torch.randn(parameter.shape, generator=g))
    return model.eval()


@pytest.fixture
def pages():
    return torch.randint(1, V, (12, 20), generator=stream(0, "pages"))


def test_an_exit_after_all_layers_is_the_verifier(tiny, pages):
    """Where the head is given what it has to predict, the read-out gives the verifier's own distributions."""
    draft = early_exit(tiny, torch.nn.Identity(), 4, V)
    draft.model.norm = tiny.model.norm
    torch.testing.assert_close(draft(pages).logits, tiny(pages).logits)


def test_an_exit_reads_its_first_layers_alone(tiny, pages):
    head = Head(torch.randn(9, 8, generator=stream(0, "head")))
    draft = early_exit(tiny, head, 2, 4)
    early = tiny.model(pages, output_hidden_states=True).hidden_states[2]
    logits = draft(pages).logits
    whole = tiny.lm_head(head(early))
    assert (logits.isfinite().sum(dim=-1) == 4).all()
    torch.testing.assert_close(logits.amax(dim=-1), whole.amax(dim=-1))
    with torch.no_grad():
        tiny.model.layers[3].mlp.down_proj.weight.mul_(2)
    torch.testing.assert_close(draft(pages).logits, logits)


def test_the_head_is_least_squares(tiny, pages):
    """Its gradient vanishes up to the ridge, and it predicts better than the mean does."""
    head = trained_head(tiny, pages, 2, skip=4)
    states = tiny.model(pages, output_hidden_states=True).hidden_states
    early, late = states[2][:, 4:].flatten(0, 1), states[-1][:, 4:].flatten(0, 1)
    residual = late - head(early)
    pull = scaled(early).mT @ residual / len(early)
    torch.testing.assert_close(pull, RIDGE * head.weight, atol=1e-5, rtol=1e-2)
    assert residual.square().mean() < (late - late.mean(dim=0)).square().mean()


def test_features_have_one_size_whatever_the_state():
    state = torch.randn(3, 8, generator=stream(0, "state"))
    features = scaled(state)
    torch.testing.assert_close(features[:, :-1].square().mean(dim=-1), torch.ones(3))
    torch.testing.assert_close(scaled(7 * state), features)
    assert (features[:, -1] == 1).all()


def test_windows_remember_and_change_nothing(tiny, pages):
    """Tokens beyond a window are kept and hidden: a text goes on alike with the cache and without it."""
    head = trained_head(tiny, pages, 2, skip=4)
    with pytest.raises(ValueError, match="cannot be rolled back"):
        write(tiny, tiny, True)
    draft, verifier = early_exit(tiny, head, 2, 6), remembering(tiny)
    kept, anew = (write(draft, verifier, use_cache) for use_cache in (True, False))
    assert kept.ids.tolist() == anew.ids.tolist()
    assert kept.accepted.tolist() == anew.accepted.tolist()


def write(draft, verifier, use_cache, rule=None):
    return speculative_generate(
        *(draft, verifier, [[1, 2, 3, 4, 5, 1, 2], [3, 4, 9]]),
        **{"rule": rule or Cactus(0.1), "m": 3, "max_new_tokens": 12, "temperature": 1.0, "stop_ids": ()},
        **{"generator": stream(0, "write"), "use_cache": use_cache},
    )


def test_counts_draft_with_a_cache_of_tokens(tiny):
    draft, verifier = FromCounts(tiny.config, lookup), remembering(tiny)
    kept, anew = (write(draft, verifier, use_cache) for use_cache in (True, False))
    assert kept.ids.tolist() == anew.ids.tolist()
    assert torch.equal(kept.accepted, anew.accepted)
    assert (kept.accepted > 0).any()


def test_counts_draft_what_they_propose(tiny):
    """Padding on the left is no part of a text, and where nothing is proposed the last token comes again."""
    draft = FromCounts(tiny.config, lambda before: {4: 0.25, 5: 0.75} if before == [1, 2] else {})
    laws = draft(torch.tensor([[0, 1, 2], [1, 1, 2]]), torch.tensor([[0, 1, 1], [1, 1, 1]])).logits.softmax(dim=-1)[
        :, 0
    ]
    torch.testing.assert_close(laws[0, [4, 5]], torch.tensor([0.25, 0.75]))
    assert laws[1, 2] == 1


def test_lookup_takes_the_latest_of_the_longest():
    assert lookup([1, 2, 3, 9, 2, 3, 5, 1, 2, 3]) == {9: 1.0}  # three in a row, not the later two
    assert lookup([2, 3, 9, 2, 3, 5, 2, 3]) == {5: 1.0}
    assert lookup([7, 7]) == {7: 1.0}
    assert lookup([4]) == lookup([1, 2]) == {}


def test_exact_sampling_keeps_the_verifier_whatever_the_draft(tiny):
    """With SpS a draft for certain is kept as often as the verifier would write it."""
    draft, verifier = FromCounts(tiny.config, lambda before: {6: 1.0}), remembering(tiny)
    prompts = [[1, 2, 3]] * 2000
    written = speculative_generate(
        *(draft, verifier, prompts),
        **{"rule": SpS(), "m": 1, "max_new_tokens": 1, "temperature": 1.0, "stop_ids": ()},
        generator=stream(0, "exact"),
    )
    law = tiny(torch.tensor(prompts[:1])).logits[0, -1].softmax(dim=-1)
    seen = torch.bincount(written.ids[:, 0], minlength=V) / 2000
    assert ((seen - law).abs() < 4 * (law * (1 - law) / 2000).sqrt() + 1e-9).all()
