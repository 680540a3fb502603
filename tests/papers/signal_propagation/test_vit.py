"""The embedding of ViT-Base."""

import re

import numpy as np
import pytest
import torch
from torch.nn.functional import conv2d

from derived.lab.rng import stream
from derived.papers.signal_propagation.model.transformer import token_moments
from derived.papers.signal_propagation.model.vit import embed, patches


def test_patches_are_those_of_a_convolution():
    """A patch embedding is a convolution whose stride is its size."""
    images = torch.randn(2, 3, 12, 12, generator=stream(0, "patches"))
    W = torch.randn(5, 3, 4, 4, generator=stream(0, "kernel"))
    expected = conv2d(images, W, stride=4).flatten(2).mT
    torch.testing.assert_close(patches(images, 4) @ W.flatten(1).T, expected, rtol=1e-4, atol=1e-4)


def test_embedding_of_vit_base_has_its_shape_and_scale():
    images = torch.randn(2, 3, 224, 224, generator=stream(0, "vit images"))
    h = embed(images, num_networks=2, generator=stream(0, "embed"))
    assert h.shape == (2, 2, 196, 768)
    scale = images.square().mean(dim=(1, 2, 3)) / 3 + 1 / (3 * 768) + 0.02**2  # variance of U(-r, r) is r^2 / 3
    q, _, spread = token_moments(h)
    np.testing.assert_allclose(q, scale.expand(2, 2), rtol=0.1)
    assert bool((spread > 0).all())
    narrow = embed(images, width=64, generator=stream(0, "embed"))
    np.testing.assert_allclose(token_moments(narrow)[0][0], scale, rtol=0.4)  # 64 directions of 768


G = torch.Generator()
BAD = [
    (lambda: patches(torch.ones(1, 3, 10, 10), 4), "patch | size"),
    (lambda: embed(torch.ones(1, 3, 16, 16), patch=5, generator=G), "patch = 5"),
    (lambda: embed(torch.ones(1, 3, 16, 16, dtype=torch.uint8), generator=G), "images is a tensor of torch.uint8"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
