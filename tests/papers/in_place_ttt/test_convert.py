"""Models of Hugging Face transformers with memories: equal at the start, and then the same however they are read."""

import copy
from functools import partial

import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    OPTConfig,
    OPTForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from derived.lab.rng import stream
from derived.papers.in_place_ttt.model.convert import _cache, convert_model
from derived.papers.in_place_ttt.model.forms import depthwise_target, in_place_ttt
from derived.papers.in_place_ttt.model.module import InPlaceTTTMLP, memories

SIZES = {"vocab_size": 50, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 3}
SIZES |= {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8}
SIZES |= {"pad_token_id": 0, "eos_token_id": None, "bos_token_id": None}
KINDS = {"qwen3": (Qwen3Config, Qwen3ForCausalLM), "llama": (LlamaConfig, LlamaForCausalLM)}


def plain(kind: str) -> nn.Module:
    config, cls = KINDS[kind]
    model, g = cls(config(**SIZES)).double().eval(), stream(0, "weights")
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn(weight.shape, generator=g, dtype=torch.float64) / 4)
    return model


def trained(model: nn.Module, target: str = "hidden_states") -> nn.Module:
    """Converted, with memories as if they had been trained."""
    convert_model(model, [0, 2], chunk=4, lr=0.5, target=target)
    with torch.no_grad():
        for i, memory in enumerate(memories(model)):
            for name, weight in (("kernel", memory.ttt_kernel), ("projection", memory.ttt_projection)):
                weight.copy_(torch.randn(weight.shape, generator=stream(1, name, i), dtype=torch.float64))
    return model


IDS = torch.randint(1, 50, (3, 19), generator=stream(0, "ids"))


@pytest.fixture(scope="module", params=[("qwen3", "hidden_states"), ("llama", "input_embed")], ids=str)
def model(request):
    kind, target = request.param
    return trained(plain(kind), target)


@pytest.fixture(scope="module")
def logits(model):
    with torch.no_grad():
        return model(IDS, use_cache=False).logits


def close(a, b):
    return torch.allclose(a, b, rtol=0, atol=1e-11)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_a_converted_model_computes_what_it_did_bit_for_bit(kind, dtype):
    """`ipt-start`."""
    model = plain(kind).to(dtype)
    before = model(IDS).logits
    assert torch.equal(convert_model(model, chunk=4)(IDS).logits, before)
    assert model.config.in_place_ttt["layers"] == [0]


def test_the_memory_is_the_layer_of_the_paper():
    memory = memories(trained(plain("qwen3")))[0]
    x = torch.randn(2, 11, 16, generator=stream(0, "x"), dtype=torch.float64)
    keys = memory.act_fn(memory.gate_proj(x)) * memory.up_proj(x)
    values = depthwise_target(x, memory.ttt_kernel, memory.ttt_projection, chunk=4)
    assert close(memory(x), in_place_ttt(keys, values, memory.down_proj.weight, 0.5, 4, impl="loop"))


def test_a_trained_memory_is_seen_by_the_logits(model, logits):
    static = copy.deepcopy(model)
    for memory in memories(static):
        nn.init.zeros_(memory.ttt_kernel)
    found = static(IDS, use_cache=False).logits
    assert torch.equal(found[:, :4], logits[:, :4])  # the first chunk reads what was trained
    assert (found[:, 4:] - logits[:, 4:]).abs().amax(dim=(1, 2)).min() > 1e-3


@torch.no_grad()
def test_a_cache_may_be_filled_in_pieces(model, logits):
    """`ipt-stream`."""
    parts, cache = [], None
    for begin, end in ((0, 7), (7, 8), (8, 13), (13, 19)):
        found = model(IDS[:, begin:end], past_key_values=cache, use_cache=True)
        cache = found.past_key_values
        parts.append(found.logits)
    assert close(torch.cat(parts, dim=1), logits)


@torch.no_grad()
def test_padding_is_neither_read_nor_written(model, logits):
    padded = torch.cat([torch.zeros(3, 5, dtype=torch.long), IDS], dim=1)
    mask = (torch.arange(24) >= torch.tensor([5, 8, 5]).unsqueeze(-1)).long()
    padded[1, 5:8] = 0
    positions = (mask.cumsum(dim=-1) - 1).clamp(min=0)
    found = model(padded, attention_mask=mask, position_ids=positions).logits
    assert close(found[0, 5:], logits[0])
    assert close(found[1, 8:], model(IDS[1:2, 3:]).logits[0])
    # without positions none is 0, which would begin a document and forget what padding wrote
    found = model(padded, attention_mask=mask).logits
    for b, begin in ((0, 5), (1, 8)):
        alone = model(IDS[b : b + 1, begin - 5 :], position_ids=torch.arange(begin, 24).unsqueeze(0)).logits
        assert close(found[b, begin:], alone[0])
    right = model(IDS, attention_mask=(torch.arange(19) < 13).long().expand(3, -1)).logits
    assert close(right[:, :13], logits[:, :13])


@torch.no_grad()
def test_positions_that_begin_anew_are_documents(model):
    """`ipt-documents`: one that begins inside a chunk."""
    positions = torch.cat([torch.arange(6), torch.arange(13)]).unsqueeze(0)
    found = model(IDS[:1], position_ids=positions, use_cache=False).logits[0]
    for span in (slice(0, 6), slice(6, 19)):
        assert close(found[span], model(IDS[:1, span]).logits[0])


@torch.no_grad()
def test_generate_writes_what_it_generates(model):
    ids = IDS[:, :6]
    for _ in range(10):
        ids = torch.cat([ids, model(ids, use_cache=False).logits[:, -1:].argmax(dim=-1)], dim=1)
    assert torch.equal(model.generate(IDS[:, :6], max_new_tokens=10, do_sample=False), ids)


def test_generate_with_padding_is_generate_alone(model):
    padded = torch.cat([torch.zeros(1, 5, dtype=torch.long), IDS[:1, :6]], dim=1)
    both = torch.cat([padded, IDS[1:2, :11]])
    found = model.generate(both, attention_mask=(both > 0).long(), max_new_tokens=8, do_sample=False)
    assert torch.equal(found[0, 5:], model.generate(IDS[:1, :6], max_new_tokens=8, do_sample=False)[0])


def test_beams_take_their_memory_along(model):
    options = {"max_new_tokens": 8, "num_beams": 3, "do_sample": False}
    cached = model.generate(IDS[:, :6], **options)
    assert torch.equal(cached, model.generate(IDS[:, :6], use_cache=False, **options))


def test_a_saved_model_comes_back(model, logits, tmp_path):
    """As the docstring says: load the model as usual, convert it, then load the saved tensors."""
    model.save_pretrained(tmp_path)
    again = type(model).from_pretrained(tmp_path, dtype=torch.float64).eval()
    convert_model(again, **again.config.in_place_ttt).load_state_dict(load_file(tmp_path / "model.safetensors"))
    assert torch.equal(again(IDS, use_cache=False).logits, logits)
    assert again.config.in_place_ttt == model.config.in_place_ttt


def test_settings_are_the_released_ones_where_none_are_given():
    released = {"layers": [0], "chunk": 512, "lr": 0.3, "taps": 5, "projection": True, "target": "hidden_states"}
    assert convert_model(plain("qwen3")).config.in_place_ttt.items() >= released.items()


def test_gradients_do_not_depend_on_cache_or_checkpoints(model):
    def gradients(**options):
        model.zero_grad()
        model(IDS, labels=IDS, **options).loss.backward()
        return [weight.grad.clone() for memory in memories(model) for weight in memory.parameters()]

    model.train()
    wanted, cached = gradients(use_cache=False), gradients(use_cache=True)
    model.activation_checkpointing_enable()
    again = gradients(use_cache=False)
    model.activation_checkpointing_disable()
    model.eval()
    assert all(close(a, b) and close(a, c) for a, b, c in zip(wanted, cached, again, strict=True))


def test_a_wrapped_down_projection_stays_what_it_is():
    """As PEFT wraps it: an adapter beside the frozen weight, which keeps its name."""

    class Adapter(nn.Module):
        def __init__(self, base):
            super().__init__()
            self.base, self.low = base, nn.Linear(base.in_features, 2, bias=False, dtype=base.weight.dtype)
            self.high = nn.Linear(2, base.out_features, bias=False, dtype=base.weight.dtype)

        def forward(self, x):
            return self.base(x) + self.high(self.low(x))

    model = trained(plain("llama"))
    before = model(IDS).logits
    memory = memories(model)[0]
    memory.down_proj = Adapter(memory.down_proj)
    nn.init.zeros_(memory.down_proj.high.weight)
    assert close(model(IDS).logits, before)


def test_what_cannot_be_converted_is_named():
    without = r"GPT2LMHeadModel has no decoder with embed_tokens and layers; give a model like"
    with pytest.raises(ValueError, match=without):
        convert_model(GPT2LMHeadModel(GPT2Config(n_layer=1, n_embd=8, n_head=1, vocab_size=20)))
    with pytest.raises(ValueError, match="Linear has no gate_proj, up_proj, down_proj, act_fn"):
        InPlaceTTTMLP.from_mlp(nn.Linear(2, 2))
    opt = OPTConfig(vocab_size=20, hidden_size=8, num_hidden_layers=1, ffn_dim=8, num_attention_heads=1)
    opt.word_embed_proj_dim = 8
    with pytest.raises(
        ValueError, match=r"layer 0 is a OPTDecoderLayer without mlp; it has self_attn .*fc1 \(Linear\)"
    ):
        convert_model(OPTForCausalLM(opt))
    for layers in ([3], [], [0, 0]):
        with pytest.raises(ValueError, match="give different numbers from 0 to 2"):
            convert_model(plain("qwen3"), layers)
    with pytest.raises(ValueError, match="converted before"):
        convert_model(convert_model(plain("qwen3")))
    for wrong, words in (({"chunk": 0}, "chunk = 0"), ({"taps": 4}, "taps = 4"), ({"target": "labels"}, "target")):
        with pytest.raises(ValueError, match=words):
            convert_model(plain("qwen3"), **wrong)


def test_a_failed_conversion_leaves_the_model_as_it_was():
    model = plain("qwen3")
    with pytest.raises(ValueError, match="taps"):
        convert_model(model, taps=2)
    assert not memories(model)
    assert model(IDS).logits.shape == (3, 19, 50)


@torch.no_grad()
def test_a_wrong_cache_or_mask_is_refused(model):
    cache = plain("qwen3")(IDS[:, :6]).past_key_values
    with pytest.raises(ValueError, match="6 tokens without the memory"):
        model(IDS[:, 6:8], past_key_values=cache)
    cache = model(IDS[:, :6]).past_key_values
    with pytest.raises(ValueError, match="cannot take back"):
        cache.crop(1)
    with pytest.raises(ValueError, match="attention_mask of 4 axes"):
        model(IDS, attention_mask=torch.ones(3, 1, 19, 19, dtype=torch.bool))
    for texts, asked in ((1, 2), (3, 2)):
        cache = model(IDS[:texts, :6]).past_key_values
        with pytest.raises(ValueError, match=f"a cache of {texts} texts for a batch of {asked}"):
            model(IDS[:asked, 6:8], past_key_values=cache)
    other, cache = copy.deepcopy(model), model(IDS[:, :6]).past_key_values
    for memory in memories(other):
        memory.chunk = 8
    with pytest.raises(
        ValueError, match=r"a state with \(chunk, lr, tau\) = \(4, 0.5, None\) for a memory with \(8, 0.5, None\)"
    ):
        other(IDS[:, 6:8], past_key_values=cache)
    with pytest.raises(ValueError, match=r"attention_mask .*; .* dynamic cache"):
        model.generate(IDS, max_new_tokens=2, do_sample=False, cache_implementation="static")


def test_mixed_precision_leaves_the_fast_part_in_float32():
    """As a trainer's bf16 does it: under autocast products are bfloat16, but not those of the memory."""
    model = trained(plain("qwen3").float())
    seen = []
    memory = memories(model)[0]
    memory.register_forward_hook(lambda module, given, out: seen.append((given[0], out)))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(IDS, labels=IDS).loss
    loss.backward()
    assert memory.ttt_kernel.grad.abs().max() > 0
    x, out = seen[0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        keys = memory.act_fn(memory.gate_proj(x)) * memory.up_proj(x)
        static = memory.down_proj(keys)
    values = depthwise_target(x.float(), memory.ttt_kernel.float(), memory.ttt_projection.float(), chunk=4)
    fast = in_place_ttt(keys.float(), values, torch.zeros_like(memory.down_proj.weight), 0.5, 4)
    assert torch.equal(out, static + fast.to(static.dtype))


class Wrapper(nn.Module):
    """As PEFT wraps a model: it hands on attributes of the model, its configuration among them."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.base_model, self.peft_config, self.config = model, {}, model.config
        self.config_class = type(model.config)


def hooked(model: nn.Module, where: str) -> nn.Module:
    """As libraries hook a module: its forward is replaced on the instance."""
    module = model.get_submodule(where)
    module.forward = module.forward
    return model


@pytest.mark.parametrize(
    ("wrapped", "words"),
    [
        (
            partial(torch.compile, backend="eager"),
            "OptimizedModule is no model of transformers, or wraps one; give the model",
        ),
        (nn.DataParallel, "DataParallel is no model of transformers, or wraps one; give the model"),
        (nn.Sequential, "Sequential is no model of transformers, or wraps one; give the model"),
        (Wrapper, "Wrapper is no model of transformers, or wraps one; give the model"),
        (lambda model: hooked(model, "model.layers.1"), "model.layers.1 .* has its forward replaced; give the model"),
        (lambda model: hooked(model, "model.layers.0.mlp"), "layers.0.mlp .* has its forward replaced; give the model"),
        (lambda model: hooked(model, ""), "Qwen3ForCausalLM .* has its forward replaced; give the model"),
    ],
    ids=["compile", "DataParallel", "Sequential", "PEFT", "hooked layer", "hooked MLP", "hooked model"],
)
def test_what_wraps_or_hooks_a_model_is_refused_before_anything_is_touched(wrapped, words):
    model = plain("qwen3")
    before, settings = {name: type(module) for name, module in model.named_modules()}, {**vars(model.config)}
    with pytest.raises(ValueError, match=words):
        convert_model(wrapped(model), layers=[1], chunk=4)
    assert {name: type(module) for name, module in model.named_modules()} == before
    assert vars(model.config) == settings
    assert not model.model._forward_pre_hooks


def test_a_compiled_layer_is_refused():
    model = plain("qwen3")
    model.model.layers[1] = torch.compile(model.model.layers[1], backend="eager")
    with pytest.raises(
        ValueError, match=r"model.layers.1 \(OptimizedModule\) has (been compiled|its forward replaced)"
    ):
        convert_model(model, [0])
    assert not memories(model)


@pytest.mark.parametrize("name", ["past_key_values", "cache"])
def test_the_cache_is_found_under_both_of_its_names(model, logits, name):
    """From transformers 5.24 on layers get it as ``cache``: a layer that overlooked it would write without a memory."""
    held = object()
    assert _cache({name: held, "use_cache": True}) is held
    assert _cache({"past_key_values": None, "cache": None}) is None

    def renamed(layer, arguments, named):
        named["cache"] = named.pop("past_key_values", None)
        return arguments, named

    def back(attention, arguments, named):
        named["past_key_values"] = named.pop("cache", named.get("past_key_values"))
        return arguments, named

    other = copy.deepcopy(model)
    if name == "cache":  # between the decoder and what its layers do with it the other name stands
        for layer in other.model.layers:
            layer.register_forward_pre_hook(renamed, with_kwargs=True)
            layer.self_attn.register_forward_pre_hook(back, with_kwargs=True)
    with torch.no_grad():
        cache = other(IDS[:, :7]).past_key_values
        found = other(IDS[:, 7:], past_key_values=cache).logits
    assert close(found, logits[:, 7:])
    assert len(cache.layers[0].states) == 3


@torch.no_grad()
def test_packed_documents_need_a_call_without_a_cache(model):
    """As the docstring of convert_model says: with use_cache=False, each document is read as if alone."""
    assert "use_cache=False" in convert_model.__doc__
    positions = torch.cat([torch.arange(7), torch.arange(12)]).unsqueeze(0)
    found = model(IDS[:1], position_ids=positions, use_cache=False).logits[0, 7:]
    assert close(found, model(IDS[:1, 7:], use_cache=False).logits[0])
