"""Models of Hugging Face transformers with memories: equal at the start, and then the same however they are read."""

import copy
import math
import pickle
from functools import partial

import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from transformers import (
    GemmaConfig,
    GemmaForCausalLM,
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
from derived.papers.in_place_ttt.model.forms import FORMS, clip_writes, depthwise_target, in_place_ttt, increments
from derived.papers.in_place_ttt.model.module import InPlaceTTTMLP, memories, memory_off

SIZES = {"vocab_size": 50, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 3}
SIZES |= {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8}
SIZES |= {"pad_token_id": 0, "eos_token_id": None, "bos_token_id": None}
KINDS = {"qwen3": (Qwen3Config, Qwen3ForCausalLM), "llama": (LlamaConfig, LlamaForCausalLM)}
KINDS |= {"gemma": (GemmaConfig, GemmaForCausalLM)}


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


@pytest.mark.parametrize("name", ["past_key_values", "cache"])
def test_the_cache_is_found_under_both_of_its_names(name):
    """From transformers 5.24 on layers get it as ``cache``: a layer that overlooked it would write without a memory."""
    held = object()
    assert _cache({name: held, "use_cache": True}) is held
    assert _cache({"past_key_values": None, "cache": None}) is None


# In training ----------------------------------------------------------------------------------------------------------


OTHER = torch.randint(1, 50, (3, 19), generator=stream(1, "ids"))
PADDED = (torch.arange(19) >= torch.tensor([0, 5, 3]).unsqueeze(-1)).long()  # 1 where the token is real


def as_trained(kind: str, target: str = "hidden_states", **options) -> nn.Module:
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


STEPS = (two_before_one, one_padded, documents, judged_in_between)


@pytest.mark.parametrize("target", ["hidden_states", "input_embed"])
@pytest.mark.parametrize("kind", KINDS)
def test_checkpoints_change_no_gradient(kind, target):
    """A layer that is computed again hears what it heard the first time."""
    model = as_trained(kind, target)
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
    model = as_trained(kind, "input_embed", tau=0.7)
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
    model = as_trained("qwen3", "input_embed").eval()
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
    model, ids = as_trained("qwen3", "input_embed"), IDS[:, :9]
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    wanted = gradients(model, lambda model: model(ids, labels=ids, use_cache=False).loss.backward())
    found = gradients(model, lambda _: compiled(ids, labels=ids, use_cache=False).loss.backward())
    for name, each in wanted.items():
        assert torch.allclose(found[name], each, rtol=1e-9, atol=1e-12), name


@torchs_own
@torch.no_grad()
def test_a_compiler_is_told_what_it_cannot_take():
    model = as_trained("qwen3").eval()
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
    model = as_trained("qwen3", tau=1e-3).eval()
    with torch.no_grad():
        whole = model(IDS, use_cache=False).logits
        cache = model(IDS[:, :7]).past_key_values
        assert torch.allclose(model(IDS[:, 7:], past_key_values=cache).logits, whole[:, 7:], atol=1e-11)
        assert (as_trained("qwen3").eval()(IDS).logits - whole).abs().max() > 1e-3
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
    model = as_trained("qwen3").eval()
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
    assert all(memory.memory_off for memory in memories(as_trained("qwen3", memory_off=True)))
    memory = memories(model)[0]
    with pytest.raises(IndexError), memory_off(model):
        model(IDS + 50)
    assert not memory.memory_off  # whatever happened in between
    with pytest.raises(ValueError, match="Linear has no memory to switch off"), memory_off(nn.Linear(2, 2)):
        pass
