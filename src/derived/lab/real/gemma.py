"""Gemma 3 270M from its quantised GGUF file, in float32; its terms are Google's (``make real ACCEPT_TERMS=1``)."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
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


def gemma() -> tuple[Gemma3ForCausalLM, Callable[[str], Tensor]]:
    """The model and its tokens. The first call takes a minute and leaves 1.1 GB of safetensors beside the package."""
    folder = path("gemma")
    file, kept = _joined(folder), folder / "model.safetensors"
    if not kept.is_file():
        part = folder / f".model-{os.getpid()}"
        save_file(_states(file), part)
        os.replace(part, kept)
    config = Gemma3TextConfig(
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
        attn_implementation="eager",
    )
    states = load_file(kept)
    model = Gemma3ForCausalLM(config)
    model.load_state_dict(states | {"lm_head.weight": states["model.embed_tokens.weight"]}, strict=True)
    model.tie_weights()
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=file.name, local_files_only=True)
    return model.eval(), lambda text: tokenizer(text, return_tensors="pt").input_ids


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
