"""Real pictures, read from a package (``derived.lab.real.pinned``)."""

import gzip

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from derived.lab.real.pinned import path

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet's channels


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
