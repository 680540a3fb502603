"""Memories in training: gradients that checkpoints do not change, copies, a compiler, and what is refused."""

import copy
import math
import pickle

import pytest
import torch
from torch import nn
from transformers import (
    GemmaConfig,
    GemmaForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from derived.lab.rng import stream
from derived.papers.in_place_ttt.model.convert import convert_model
from derived.papers.in_place_ttt.model.forms import FORMS, clip_writes, depthwise_target, in_place_ttt, increments
from derived.papers.in_place_ttt.model.module import InPlaceTTTMLP, memories, memory_off

SIZES = {"vocab_size": 50, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 3}
SIZES |= {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8}
SIZES |= {"pad_token_id": 0, "eos_token_id": None, "bos_token_id": None}
KINDS = {
    "qwen3": (Qwen3Config, Qwen3ForCausalLM),
    "llama": (LlamaConfig, LlamaForCausalLM),
    "gemma": (GemmaConfig, GemmaForCausalLM),
}
IDS = torch.randint(1, 50, (3, 19), generator=stream(0, "ids"))
OTHER = torch.randint(1, 50, (3, 19), generator=stream(1, "ids"))
PADDED = (torch.arange(19) >= torch.tensor([0, 5, 3]).unsqueeze(-1)).long()  # 1 where the token is real


def trained(kind: str, target: str = "hidden_states", **options) -> nn.Module:
    """A small model with memories, and weights as if all had been trained."""
    config, cls = KINDS[kind]
    model = convert_model(cls(config(**SIZES)).double(), [0, 2], chunk=4, lr=0.5, target=target, **options)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            size = 1 if "ttt_" in name else 0.25
            weight.copy_(size * torch.randn(weight.shape, generator=stream(0, name), dtype=torch.float64))
    return model.train()


def gradients(model: nn.Module, step) -> dict[str, torch.Tensor]:
    model.zero_grad()
    step(model)
    return {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}


def two_before_one(model, **other):
    """As in preference training: both texts are read before either is learned from."""
    first, second = model(IDS, labels=IDS).loss, model(OTHER, labels=OTHER, **other).loss
    (first - 2 * second).backward()


def one_padded(model):
    two_before_one(model, attention_mask=PADDED)


def another_batch(model):
    """Of other sizes."""
    first, second = model(IDS, labels=IDS).loss, model(OTHER[:2, :9], labels=OTHER[:2, :9]).loss
    (first - 2 * second).backward()


def documents(model):
    positions = torch.cat([torch.arange(6), torch.arange(13)]).expand(3, -1)
    model(IDS, labels=IDS, position_ids=positions, use_cache=False).loss.backward()


def judged_in_between(model):
    loss = model(IDS, labels=IDS).loss
    with torch.no_grad():
        model(OTHER, attention_mask=PADDED)
        model.eval().generate(OTHER[:, :6], max_new_tokens=3, do_sample=False)
    model.train()
    loss.backward()


STEPS = (two_before_one, one_padded, another_batch, documents, judged_in_between)


@pytest.mark.parametrize("target", ["hidden_states", "input_embed"])
@pytest.mark.parametrize("kind", KINDS)
def test_checkpoints_change_no_gradient(kind, target):
    """A layer that is computed again hears what it heard the first time."""
    model = trained(kind, target)
    for step in STEPS:
        model.activation_checkpointing_disable()
        wanted = gradients(model, step)
        assert wanted["model.layers.0.mlp.ttt_kernel"].abs().max() > 1e-5
        for reentrant in (True, False):
            model.activation_checkpointing_enable({"use_reentrant": reentrant})
            model.enable_input_require_grads()
            found = gradients(model, step)
            assert found.keys() == wanted.keys()
            for name, each in wanted.items():
                assert torch.allclose(found[name], each, rtol=1e-9, atol=1e-12), (step.__name__, reentrant, name)


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_is_copied_and_pickled_while_it_is_trained(kind, tmp_path):
    model = trained(kind, "input_embed", tau=0.7)
    loss = model(IDS, labels=IDS).loss
    loss.backward()
    model.eval()
    cache = model(IDS[:, :6]).past_key_values
    wanted = model(IDS).logits
    torch.save(model, tmp_path / "whole.pt")
    others = {
        "deepcopy": copy.deepcopy(model),
        "pickle": pickle.loads(pickle.dumps(model)),
        "torch.load": torch.load(tmp_path / "whole.pt", weights_only=False),
    }
    for how, other in others.items():
        assert type(other) is type(model), how
        assert other.config.in_place_ttt == model.config.in_place_ttt, how
        assert torch.equal(other(IDS).logits, wanted), how
    again = pickle.loads(pickle.dumps(cache))
    assert torch.equal(*(model(IDS[:, 6:], past_key_values=each).logits for each in (again, cache)))


def test_a_layer_alone_has_forgotten_its_model():
    model = trained("qwen3", "input_embed").eval()
    layer, memory = model.model.layers[0], memories(model)[0]
    x = torch.randn(2, 19, 16, generator=stream(0, "x"), dtype=torch.float64)
    alone = memory(x)
    keys = memory.act_fn(memory.gate_proj(x)) * memory.up_proj(x)
    values = depthwise_target(x, memory.ttt_kernel, memory.ttt_projection, chunk=4)
    assert torch.allclose(alone, in_place_ttt(keys, values, memory.down_proj.weight, 0.5, 4), atol=1e-11)
    turn = model.model.rotary_emb(x, torch.arange(19).unsqueeze(0))
    whole = layer(x, position_embeddings=turn)
    model(IDS, attention_mask=PADDED)
    with pytest.raises(IndexError):
        model(IDS + 50)  # a call that fails leaves nothing behind
    model.generate(IDS[:, :6], max_new_tokens=3, do_sample=False)
    assert torch.equal(memory(x), alone)
    assert torch.equal(layer(x, position_embeddings=turn), whole)


torchs_own = pytest.mark.filterwarnings("ignore:.*Function.* should not be instantiated:DeprecationWarning")


@torchs_own
def test_a_compiler_takes_the_whole_model():
    model, ids = trained("qwen3", "input_embed"), IDS[:, :9]
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    wanted = gradients(model, lambda model: model(ids, labels=ids, use_cache=False).loss.backward())
    found = gradients(model, lambda _: compiled(ids, labels=ids, use_cache=False).loss.backward())
    for name, each in wanted.items():
        assert torch.allclose(found[name], each, rtol=1e-9, atol=1e-12), name


@torchs_own
@torch.no_grad()
def test_a_compiler_is_told_what_it_cannot_take():
    model = trained("qwen3").eval()
    for options in ({"use_cache": False, "attention_mask": PADDED}, {}):
        with pytest.raises(Exception, match=r"In-Place TTT looks at .*: compile without fullgraph=True"):
            torch.compile(model, fullgraph=True, backend="eager")(IDS, **options)


def drawn(*shape, name):
    return torch.randn(shape, generator=stream(0, name), dtype=torch.float64)


@pytest.mark.parametrize("impl", FORMS)
def test_a_rate_may_be_learned(impl):
    keys, values, w_down = drawn(2, 11, 4, name="Z"), drawn(2, 11, 3, name="V"), drawn(3, 4, name="W")
    rate = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    read = lambda rate: in_place_ttt(keys, values, w_down, rate, 3, impl=impl)  # noqa: E731
    assert torch.allclose(read(rate), read(0.3), atol=1e-12)
    assert torch.autograd.gradcheck(read, rate)


@pytest.mark.parametrize("impl", FORMS)
def test_a_clipped_write_keeps_its_direction_and_has_the_norm_allowed(impl):
    keys, values = drawn(2, 11, 4, name="Z"), drawn(2, 11, 3, name="V").requires_grad_()
    w_down, eta, tau = drawn(3, 4, name="W"), 0.3, 1.2
    writes = eta * increments(keys, values, 3)
    norms = torch.linalg.matrix_norm(writes)
    assert 0 < (norms > tau).sum() < norms.numel()
    W, outputs = w_down.expand(2, 3, 4), []
    for i, start in enumerate(range(0, 11, 3)):
        outputs.append(keys[:, start : start + 3] @ W.mT)
        W = W + writes[:, i] * (tau / norms[:, i]).clamp(max=1)[:, None, None] if i < 3 else W
    found, state = in_place_ttt(keys, values, w_down, eta, 3, impl=impl, tau=tau, return_state=True)
    assert torch.allclose(found, torch.cat(outputs, dim=1), atol=1e-12)
    assert torch.allclose(state, W, atol=1e-12)
    (found - torch.cat(outputs, dim=1)).sum().backward()
    assert values.grad.abs().max() < 1e-11
    small = clip_writes(keys, values, eta, 3, 1e3)
    assert torch.equal(small, values)


def test_a_clipped_memory_starts_at_zero_and_reads_on():
    """At the zero start a write has norm 0, where a norm has no derivative."""
    model = trained("qwen3", tau=1e-3).eval()
    with torch.no_grad():
        whole = model(IDS, use_cache=False).logits
        cache = model(IDS[:, :7]).past_key_values
        assert torch.allclose(model(IDS[:, 7:], past_key_values=cache).logits, whole[:, 7:], atol=1e-11)
        assert (trained("qwen3").eval()(IDS).logits - whole).abs().max() > 1e-3
    for memory in memories(model):
        memory.start()
    model(IDS, labels=IDS).loss.backward()
    assert all(0 < memory.ttt_kernel.grad.abs().max() < math.inf for memory in memories(model))


def test_settings_that_cannot_be_meant_are_refused():
    model = Qwen3ForCausalLM(Qwen3Config(**SIZES))
    wrong = [({"lr": lr}, rf"lr = '?{lr}'?; give a (finite )?number") for lr in (math.nan, math.inf, "a", -1, True)]
    wrong += [({"tau": tau}, rf"tau = '?{tau}'?; give a (finite )?number") for tau in (math.nan, 0, "a")]
    wrong += [({"lr": torch.tensor(0.3)}, r"lr is a (torch.T|t)ensor; give a number"), ({"taps": -1}, "taps = -1")]
    wrong += [({"layers": "01"}, r"layers\[0\] = '0'"), ({"layers": [0, 0.5]}, r"layers\[1\] = 0.5")]
    wrong += [({"layers": [True]}, r"layers\[0\] = True")]
    for options, words in wrong:
        with pytest.raises(ValueError, match=words):
            convert_model(model, **options)
    assert not any(isinstance(module, InPlaceTTTMLP) for module in model.modules())
    assert type(model) is Qwen3ForCausalLM


def test_a_memory_switched_off_gives_the_static_model_and_goes_on_writing():
    """As an argument, as an attribute and for a while: the outputs of the model before, and the same cache."""
    model = trained("qwen3").eval()
    with torch.no_grad():
        on = model(IDS, use_cache=False).logits
        with memory_off(model):
            off = model(IDS, use_cache=False).logits
            cache = model(IDS[:, :7]).past_key_values
            assert torch.allclose(model(IDS, use_cache=True).logits, off, rtol=0, atol=1e-11)
        assert torch.equal(model(IDS, use_cache=False).logits, on)
        again = model(IDS[:, :7]).past_key_values
        for one, other in zip(cache.layers[0].states, again.layers[0].states, strict=True):
            assert one.weight.abs().max() > 0  # what the switched-off memory wrote
            assert one.weight.shape == other.weight.shape
        for memory in memories(model):
            memory.start()
        assert torch.equal(model(IDS, use_cache=False).logits, off)
    assert (on - off).abs().max() > 1e-3
    assert all(memory.memory_off for memory in memories(trained("qwen3", memory_off=True)))
    memory = memories(model)[0]
    with pytest.raises(IndexError), memory_off(model):
        model(IDS + 50)
    assert not memory.memory_off  # whatever happened in between
    with pytest.raises(ValueError, match="Linear has no memory to switch off"), memory_off(nn.Linear(2, 2)):
        pass
