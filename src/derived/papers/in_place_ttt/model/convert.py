"""In-Place TTT for a decoder of Hugging Face transformers with gated MLPs: Qwen3, LLaMA and their like.

name       meaning
settings   what ``config.in_place_ttt`` holds: layers, chunk, lr, taps, projection, target, tau
context    what the decoder tells its layers in a call: padding, documents, embeddings (``module.Context``)
kept       the layer of the model's own cache, which then also holds the fast state of each text

The context travels in the arguments of the layers, inside whatever checkpoints them, so that each layer that is
computed again hears what it heard the first time. The fast states live in the cache, so that beams reorder them.
transformers is imported late: only who converts a model needs it.
"""

import functools
import inspect
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from derived.lab.checks import check_count

from .module import Context, InPlaceTTTMLP, Settings, eager, memories


def convert_model(
    model: nn.Module, layers: Sequence[int] | None = None, *, memory_off: bool = False, **settings: Any
) -> nn.Module:
    """Give the gated MLPs of these layers (every sixth if none are named) a memory at its zero start, in place.

    The model computes what it did, bit for bit, until the memories are trained. Padding (``attention_mask``),
    ``generate`` with cache and beams, and gradient checkpointing are understood; so are documents that are packed into
    one row, if ``position_ids`` begin again at 0 and ``use_cache=False``, since a cache does not part documents.
    ``settings`` are those of ``module.Settings``: ``chunk`` (512 tokens), ``lr`` (0.3), ``taps`` (5), ``projection``
    (True), ``target`` ("hidden_states", or "input_embed") and ``tau``, which clips the norm of each write, as the paper
    does when it evaluates (None: no clip). ``memory_off`` reads nothing of what is written, and the context manager of
    that name switches it for a while.

    ``config.in_place_ttt`` holds the settings. To load what ``save_pretrained`` wrote: load the model as usual, convert
    it with these settings, then ``load_state_dict`` the saved tensors.

    ValueError, before anything is touched, for a wrapped or hooked model (``torch.compile``, ``DataParallel``,
    ``nn.Sequential``, PEFT, a replaced ``forward``), one without gated MLPs, a layer that it lacks, or one converted
    before. Wrap, compile and hook the model after its conversion.

    >>> from transformers import Qwen3Config, Qwen3ForCausalLM
    >>> sizes = {"vocab_size": 32, "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 2, "head_dim": 4}
    >>> model = Qwen3ForCausalLM(Qwen3Config(num_attention_heads=2, num_key_value_heads=1, **sizes)).eval()
    >>> ids = torch.arange(9).unsqueeze(0)
    >>> before = model(ids).logits
    >>> torch.equal(convert_model(model, layers=[1], chunk=4)(ids).logits, before)
    True
    """
    _check_whole(model)
    count = len(_decoder(model).layers)
    layers = list(range(0, count, 6) if layers is None else layers)
    for i, layer in enumerate(layers):
        check_count(f"layers[{i}]", layer, least=0)
    layers = [int(layer) for layer in layers]
    if not layers or len(set(layers)) < len(layers) or not set(layers) <= set(range(count)):
        raise ValueError(f"layers = {layers}; give different numbers from 0 to {count - 1}")
    settings = Settings(**settings)._asdict()
    _install(model, layers, settings)
    for memory in memories(model):
        memory.start(getattr(model.config.get_text_config(), "initializer_range", 0.02))
        memory.memory_off = memory_off
    model.config.in_place_ttt = {"layers": layers, **settings}
    return model


def _check_whole(model: nn.Module) -> None:
    """ValueError for a model that is wrapped, hooked or converted, naming the module and what to give instead."""
    name, advice = type(model).__name__, "give the model of transformers itself, and wrap or hook it afterwards"
    own = hasattr(model, "config") and hasattr(model, "config_class")
    if not own or hasattr(model, "_orig_mod") or hasattr(model, "peft_config"):
        raise ValueError(f"{name} is no model of transformers, or wraps one; {advice}")
    if memories(model):
        raise ValueError(f"{name} was converted before; convert the model that it was made of")
    for path, module in model.named_modules():
        if "forward" in vars(module) or hasattr(module, "_orig_mod"):
            how = "its forward replaced" if "forward" in vars(module) else "been compiled"
            raise ValueError(f"{path or name} ({type(module).__name__}) has {how}; {advice}")


def _reduce(made: Any) -> tuple:
    """Copy or serialise an object of a class that ``made_by[0]`` makes of the class ``made_by[1]``."""
    return _blank, made.made_by, made.__dict__


def _blank(maker, base):
    cls = maker(base)
    return cls.__new__(cls)


def _decoder(model: nn.Module) -> nn.Module:
    """The module that holds the embeddings and the list ``layers``."""
    for module in (model, getattr(model, "model", None), *model.modules()):
        if isinstance(getattr(module, "layers", None), nn.ModuleList) and hasattr(module, "embed_tokens"):
            return module
    raise ValueError(f"{type(model).__name__} has no decoder with embed_tokens and layers; give a model like Qwen3's")


def _install(model: nn.Module, layers: list[int], settings: dict[str, Any]) -> None:
    """Put a memory into each layer named, and tell the layers what the decoder was called with."""
    decoder = _decoder(model)
    made = {i: InPlaceTTTMLP(_mlp(decoder.layers[i], i), **settings) for i in layers}
    for i, memory in made.items():
        decoder.layers[i].mlp = memory
    for i, layer in enumerate(decoder.layers):
        layer.__class__, layer.ttt_index = _telling(type(layer)), i
    decoder.register_forward_pre_hook(_tell, with_kwargs=True)


def _mlp(layer: nn.Module, index: int) -> nn.Module:
    if hasattr(layer, "mlp"):
        return layer.mlp
    found = ", ".join(f"{name} ({type(part).__name__})" for name, part in layer.named_children())
    raise ValueError(f"layer {index} is a {type(layer).__name__} without mlp; it has {found}; give a gated MLP as mlp")


def _tell(decoder: nn.Module, arguments: tuple, named: dict[str, Any]):
    """Before the decoder: read padding, documents and embeddings off its arguments, and hand them to every layer."""
    given = inspect.signature(decoder.forward).bind_partial(*arguments, **named).arguments
    given = given | given.get("kwargs", {})
    ids, embeddings = given.get("input_ids"), given.get("inputs_embeds")
    embeddings = decoder.embed_tokens(ids) if embeddings is None else embeddings
    mask, positions = given.get("attention_mask"), given.get("position_ids")
    if mask is not None and not (isinstance(mask, Tensor) and mask.ndim == 2):
        what = f"of {mask.ndim} axes" if isinstance(mask, Tensor) else type(mask).__name__
        raise ValueError(
            f"attention_mask {what}; In-Place TTT must know which tokens are padding: give (B, tokens), and "
            "let generate use its dynamic cache"
        )
    B, n = embeddings.shape[:2]
    for layer in getattr(_cache(given), "layers", ()):
        if (states := getattr(layer, "states", None)) is not None and len(states) != B:
            raise ValueError(f"a cache of {len(states)} texts for a batch of {B}; begin a new cache")
    real = None if mask is None else _unless_all(mask[:, -n:].bool(), True)
    starts = None
    if positions is not None and positions.ndim == 2 and _unless_all(positions[:, 1:] == 0, False) is not None:
        starts = (positions == 0).expand(B, n)
    return arguments, named | {"in_place_ttt": Context(real, starts, embeddings)}


def _cache(given: dict[str, Any]) -> Any:
    """The cache among the arguments: ``past_key_values``, or ``cache`` from transformers 5.24 on."""
    return next((given[name] for name in ("past_key_values", "cache") if given.get(name) is not None), None)


@eager
def _unless_all(found: Tensor, value: bool) -> Tensor | None:
    return None if bool((found == value).all()) else found


@functools.cache
def _telling(cls: type) -> type:
    """A class of decoder layers that hand their memory what the decoder hands them; a layer of ``cls`` can become one.

    What checkpoints a layer keeps the arguments of ``forward`` and runs it again with them. Some of it takes gradients
    of positional tensors alone, so the embeddings are one.
    """

    class Telling(cls):
        made_by, __reduce__ = (_telling, cls), _reduce

        def __call__(self, x, *arguments, in_place_ttt=None, **named):
            given = in_place_ttt or Context()  # alone, without its decoder
            rest = given._replace(embeddings=None)
            return super().__call__(x, given.embeddings, *arguments, in_place_ttt=rest, **named)

        def forward(self, x, embeddings, *arguments, in_place_ttt, **named):
            if not isinstance(getattr(self, "mlp", None), InPlaceTTTMLP):
                return super().forward(x, *arguments, **named)
            cache = _cache(named)
            kept = None if cache is None else _Kept(cache, self.ttt_index)
            self.mlp.context = in_place_ttt._replace(embeddings=embeddings, kept=kept)
            try:
                return super().forward(x, *arguments, **named)
            finally:
                self.mlp.context = Context()

    Telling.__name__ = cls.__name__  # by which layers are found that one device must hold
    return Telling


class _Kept:
    """The states of one layer, in the model's cache, whose own layer exists once attention has run."""

    def __init__(self, cache: Any, index: int) -> None:
        self.cache, self.index = cache, index
        layers = getattr(cache, "layers", [])
        self.before = cache.get_seq_length(index) if len(layers) > index else 0

    @property
    def states(self):
        states = getattr(self.cache.layers[self.index], "states", None)
        if states is None and self.before:
            raise ValueError(
                f"the cache has read {self.before} tokens without the memory of layer {self.index}: it is the cache of "
                "another model; begin a new one"
            )
        return states

    @states.setter
    def states(self, states) -> None:
        layer = self.cache.layers[self.index]
        if not hasattr(layer, "states"):
            layer.__class__ = _written(type(layer))
        layer.states = states


@functools.cache
def _written(cls: type) -> type:
    """A class of cache layers with fast states, which follow the texts; a layer of ``cls`` can become one."""

    class Written(cls):
        made_by, __reduce__ = (_written, cls), _reduce
        _layer_type = None  # transformers registers cache layers by it; this one stands for none
        states: list | None = None

        def _take(self, indices: Sequence[int]) -> None:
            self.states = [self.states[i].copy() for i in indices]

        def reorder_cache(self, beam_idx: Tensor) -> None:
            super().reorder_cache(beam_idx)
            self._take(beam_idx.tolist())

        def batch_select_indices(self, indices: Tensor) -> None:
            super().batch_select_indices(indices)
            self._take(torch.arange(len(self.states))[indices.cpu()].tolist())

        def batch_repeat_interleave(self, repeats: int) -> None:
            super().batch_repeat_interleave(repeats)
            self._take([i for i in range(len(self.states)) for _ in range(repeats)])

        def reset(self) -> None:
            super().reset()
            self.states = None

        def crop(self, *arguments) -> None:
            raise ValueError(
                "a memory cannot take back what it has written: generate without an assistant, or start again"
            )

    return Written
