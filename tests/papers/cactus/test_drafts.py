"""Drafts without a second model: an early exit of the verifier, counts with the signature of a model, long memories."""

import pytest
import torch
from transformers import Gemma3ForCausalLM, Gemma3TextConfig

from derived.lab.rng import stream
from derived.papers.cactus.data.drafts import RIDGE, Head, early_exit, scaled, trained_head
from derived.papers.cactus.data.ngrams import lookup

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


def test_lookup_takes_the_latest_of_the_longest():
    assert lookup([1, 2, 3, 9, 2, 3, 5, 1, 2, 3]) == {9: 1.0}  # three in a row, not the later two
    assert lookup([2, 3, 9, 2, 3, 5, 2, 3]) == {5: 1.0}
    assert lookup([7, 7]) == {7: 1.0}
    assert lookup([4]) == lookup([1, 2]) == {}
