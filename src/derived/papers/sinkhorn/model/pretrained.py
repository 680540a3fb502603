"""The attention of trained encoders, and of the same shapes before training.

symbol   name   meaning                                axes
A        -      attention weights of every layer       (layers, heads, n, n)
"""

import json
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import AlbertConfig, AlbertModel, BertConfig, BertModel, PreTrainedModel

from derived.lab.rng import stream

SHAPE = (
    *("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "hidden_act", "layer_norm_eps"),
    *("max_position_embeddings", "type_vocab_size", "vocab_size", "initializer_range"),
)


def albert(folder: Path) -> AlbertModel:
    """The encoder of ``rxnmapper``: one layer that is passed twelve times, 591 tokens of SMILES."""
    facts = json.loads((folder / "config.json").read_text("utf-8"))
    config = AlbertConfig(**{name: facts[name] for name in (*SHAPE, "embedding_size")}, attn_implementation="eager")
    weights = torch.load(folder / "pytorch_model.bin", weights_only=True, map_location="cpu")
    encoder = {name.removeprefix("albert."): each for name, each in weights.items() if name.startswith("albert.")}
    return _loaded(AlbertModel(config), encoder)


def minilm(folder: Path) -> BertModel:
    """The sentence encoder all-MiniLM-L6-v2: a BERT of six layers."""
    facts = json.loads((folder / "config.json").read_text("utf-8"))
    config = BertConfig(**{name: facts[name] for name in SHAPE}, attn_implementation="eager")
    weights = load_file(folder / "model.safetensors")
    weights.pop("embeddings.position_ids")  # 0, 1, 2, ...
    return _loaded(BertModel(config), weights)


def _loaded(model: PreTrainedModel, weights: dict[str, Tensor]) -> PreTrainedModel:
    model.load_state_dict(weights, strict=True)
    return model.eval()


@torch.no_grad()
def untrained(model: PreTrainedModel, seed: int) -> PreTrainedModel:
    """The same shape as its training began: matrices N(0, initializer_range^2), no biases, norms of gain one."""
    fresh = type(model)(model.config)
    for name, weight in fresh.named_parameters():
        if weight.dim() == 2:
            drawn = torch.randn(weight.shape, generator=stream(seed, "untrained", name))
            weight.copy_(model.config.initializer_range * drawn)
        else:
            weight.fill_(1.0 if name.endswith("LayerNorm.weight") or name.endswith("layer_norm.weight") else 0.0)
    return fresh.eval()


@torch.no_grad()
def attention(model: PreTrainedModel, ids: Tensor) -> Tensor:
    """A of one text, (layers, heads, n, n), float64."""
    return torch.cat(model(ids.unsqueeze(0), output_attentions=True).attentions).double()
