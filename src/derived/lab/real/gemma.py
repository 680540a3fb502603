"""Gemma 3 270M from its quantised GGUF file, in float32; its terms are Google's (``make real ACCEPT_TERMS=1``)."""

import hashlib
import os
from pathlib import Path

import torch
from torch import Tensor
from transformers import AutoTokenizer, Gemma3ForCausalLM, Gemma3TextConfig

from derived.lab.real.pinned import path

MODEL = Gemma3ForCausalLM
SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"  # of the joined file, as the package has it
LAYERS = 18
RENAMED = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "blk.": "model.layers.",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_norm": "input_layernorm",
    "post_attention_norm": "post_attention_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}  # parts of GGUF's names, in an order in which none spoils another


CONFIG = Gemma3TextConfig(
    vocab_size=262_144,
    hidden_size=640,
    intermediate_size=2048,
    num_hidden_layers=LAYERS,
    num_attention_heads=4,
    num_key_value_heads=1,
    head_dim=256,
    max_position_embeddings=32_768,
    sliding_window=512,
    layer_types=["sliding_attention" if (layer + 1) % 6 else "full_attention" for layer in range(LAYERS)],
    query_pre_attn_scalar=256,
)


def assembled() -> Path:
    """A Hugging Face folder with the model and its tokenizer, beside the package: 1.1 GB, made once (``make real``)."""
    place = path("gemma")
    kept = place / "model"
    if not kept.is_dir():
        file, part = _joined(place), place / f".model-{os.getpid()}"
        model = Gemma3ForCausalLM(CONFIG)
        states = _states(file)
        model.load_state_dict(states | {"lm_head.weight": states["model.embed_tokens.weight"]}, strict=True)
        model.tie_weights()
        model.save_pretrained(part)
        AutoTokenizer.from_pretrained(place, gguf_file=file.name, local_files_only=True).save_pretrained(part)
        os.replace(part, kept)
    return kept


def _joined(folder: Path) -> Path:
    """The parts of the file as one, checked; ValueError where they are not what the package says."""
    file = folder / "gemma-3-270m-q4_k_m.gguf"
    if not file.is_file():
        content = b"".join(part.read_bytes() for part in sorted(folder.glob("*_part?/data/*.gguf.part0?")))
        if hashlib.sha256(content).hexdigest() != SHA256:
            raise ValueError(f"the parts of {file.name} do not make the file that they should: make real again")
        part = folder / f".joined-{os.getpid()}"
        part.write_bytes(content)
        os.replace(part, file)
    return file


def _states(file: Path) -> dict[str, Tensor]:
    """All tensors, no longer quantised. GGUF keeps each gain of a norm as the factor, the model as what exceeds one."""
    import gguf

    states = {}
    for each in gguf.GGUFReader(file).tensors:
        tensor = torch.from_numpy(gguf.dequantize(each.data, each.tensor_type).copy()).float()
        name = each.name
        for theirs, ours in RENAMED.items():
            name = name.replace(theirs, ours)
        states[name] = tensor - 1 if name.endswith("norm.weight") else tensor
    return states
