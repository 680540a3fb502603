"""The embedding of ViT-Base, and vision transformers side by side."""

import re

import numpy as np
import pytest
import torch
from torch.nn.functional import conv2d, cross_entropy

from derived.lab.rng import stream
from derived.lab.training import mean_cross_entropy
from derived.papers.signal_propagation.data.generated import LabelledImages, power_law_fields, template_images
from derived.papers.signal_propagation.model.jacobian import gradient_amplification
from derived.papers.signal_propagation.model.kernels import (
    ErfKernel,
    LayerNormKernel,
)
from derived.papers.signal_propagation.model.meanfield import propagate
from derived.papers.signal_propagation.model.transformer import RandomTransformer, Sigmas, token_moments
from derived.papers.signal_propagation.model.vit import (
    VisionTransformer,
    embed,
    patches,
)

SMALL = {"image_size": 16, "patch": 4, "width": 24, "depth": 2, "num_heads": 2, "num_classes": 3}


def small(norm: str = "erf", **changes) -> VisionTransformer:
    return VisionTransformer(norm=norm, **SMALL | {"num_networks": 2, "generator": stream(0, "vit")} | changes)


def pictures(num: int, name: str = "train", **changes) -> LabelledImages:
    arguments = {"num_classes": 3, "size": 16, "shift": 1, "noise": 0.5} | changes
    return template_images(num, classes=stream(0, "classes"), generator=stream(0, name), **arguments)


def test_patches_are_those_of_a_convolution():
    """A patch embedding is a convolution whose stride is its size."""
    images = torch.randn(2, 3, 12, 12, generator=stream(0, "patches"))
    W = torch.randn(5, 3, 4, 4, generator=stream(0, "kernel"))
    expected = conv2d(images, W, stride=4).flatten(2).mT
    torch.testing.assert_close(patches(images, 4) @ W.flatten(1).T, expected, rtol=1e-4, atol=1e-4)


def test_embedding_of_vit_base_has_its_shape_and_scale():
    images = power_law_fields(2, 224, generator=stream(0, "vit images"))
    h = embed(images, num_networks=2, generator=stream(0, "embed"))
    assert h.shape == (2, 2, 197, 768)
    scale = images.square().mean(dim=(1, 2, 3)) / 3 + 1 / (3 * 768) + 0.02**2  # variance of U(-r, r) is r^2 / 3
    q, _, spread = token_moments(h[:, :, 1:])
    np.testing.assert_allclose(q, scale.expand(2, 2), rtol=0.1)
    assert bool((spread > 0).all())
    assert float(h[:, :, 0].std()) == pytest.approx(0.02, rel=0.1)  # class token: its position alone
    plain = embed(images, num_networks=2, class_token=False, generator=stream(0, "embed"))
    assert plain.shape == (2, 2, 196, 768)
    narrow = embed(images, width=64, generator=stream(0, "embed"))
    np.testing.assert_allclose(token_moments(narrow[:, :, 1:])[0][0], scale, rtol=0.4)  # 64 directions of 768


@pytest.mark.parametrize("norm", ["layernorm", "erf", "tanh"])
def test_at_initialisation_it_is_the_random_transformer(norm):
    """The same weights through RandomTransformer give the same states: gains 1 and biases 0 do nothing."""
    model = small(norm, alpha=[0.4, 1.1], dtype=torch.float64)
    plain = RandomTransformer(
        width=24,
        depth=2,
        norm=norm,
        alpha=[0.4, 1.1],
        num_heads=2,
        num_networks=2,
        generator=stream(0, "x"),
        dtype=torch.float64,
    )
    plain.weights = [type(plain.weights[0])(*block.weights) for block in model.blocks]
    states = model.states(pictures(5, dtype=torch.float64).images)
    for h, other in zip(states, plain.states(states[0]), strict=True):
        torch.testing.assert_close(h, other, rtol=1e-12, atol=1e-12)
    assert model(pictures(5, dtype=torch.float64).images).shape == (2, 5, 3)


def test_networks_do_not_see_each_other():
    data = pictures(6)
    model = small(alpha=[0.4, 1.1])
    loss = mean_cross_entropy(model(data.images), data.labels)
    by_hand = [cross_entropy(logits, data.labels) for logits in model(data.images)]
    torch.testing.assert_close(loss, torch.stack(by_hand))
    loss[0].backward()
    for name, parameter in model.named_parameters():
        assert float(parameter.grad[1].abs().max()) == 0, name
    assert sum(float(parameter.grad[0].abs().sum()) > 0 for parameter in model.parameters()) > 20


def test_initial_scales_are_those_of_the_docstring():
    model = VisionTransformer(width=96, depth=1, num_networks=2, generator=stream(0, "scales"), num_classes=50)
    for parameter, std in ((model.embedding, (3 * 8**2) ** -0.5), (model.positions, 0.02), (model.head, 96**-0.5)):
        assert float(parameter.detach().std()) == pytest.approx(std, rel=0.03)
    assert not model.head_bias.any()


@pytest.mark.parametrize(("norm", "kernel"), [("erf", ErfKernel(1.0)), ("layernorm", LayerNormKernel())])
def test_gradient_amplification_is_the_pooled_recurrence_sp18(norm, kernel):
    """The loss after global average pooling: (J, K)^B = (1, 1) predicts it, (1, 0) does not."""
    depth, sigmas = 6, Sigmas(v=1, o=1, one=1, two=1)
    arguments = {"image_size": 32, "patch": 8, "width": 96, "depth": depth, "num_heads": 3, "num_networks": 6}
    model = VisionTransformer(norm=norm, alpha=1.0, sigmas=sigmas, generator=stream(0, "pooled"), **arguments)
    data = template_images(16, num_classes=100, size=32, classes=stream(0, "c"), generator=stream(0, "g"))
    states = model.states(data.images)
    amplification = (
        gradient_amplification(mean_cross_entropy(model.read_out(states[-1]), data.labels).sum(), states)
        .mean(dim=0)
        .numpy()
    )
    q, p, _ = (float(m.mean()) for m in token_moments(states[0].detach()))
    common = {"kernel": kernel, "a": 1.0, "s": 1.0, "n": 16, "depth": depth}
    pooled = propagate(q, p, output_gradient="pooled", **common).J_backward
    alone = propagate(q, p, **common).J_backward
    assert amplification[-1] == pytest.approx(1)
    assert np.exp(np.abs(np.log(amplification / pooled)).mean()) < 1.12
    assert amplification[0] > 1.3 * alone[0]


G = torch.Generator()
BAD = [
    (lambda: patches(torch.ones(1, 3, 10, 10), 4), "patch | size"),
    (lambda: embed(torch.ones(1, 3, 16, 16), patch=5, generator=G), "patch = 5"),
    (lambda: embed(torch.ones(1, 3, 16, 16, dtype=torch.uint8), generator=G), "images is a tensor of torch.uint8"),
    (lambda: small(dtype=torch.int64), "dtype = torch.int64; give a floating-point type"),
    (lambda: small()(torch.ones(1, 3, 16, 16).half()), "images has the dtype torch.float16, the weights have"),
    (lambda: small(norm="rms"), "norm = 'rms'"),
    (lambda: small(patch=5), "patch = 5 must divide image_size = 16"),
    (lambda: small(num_heads=5), "num_heads = 5 width = 24"),
    (lambda: small(alpha=[1.0, 2.0, 3.0]), "one per network (2)"),
    (lambda: small(sigmas=Sigmas(one=-0.1)), "give standard deviations that are finite and not negative"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
