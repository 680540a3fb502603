"""Generated images, the embedding of ViT-Base, and vision transformers that train side by side."""

import math
import re

import numpy as np
import pytest
import torch
from torch.nn.functional import conv2d, cross_entropy

from derived.lab.rng import stream
from derived.papers.signal_propagation.images import (
    LabelledImages,
    patches,
    power_law_fields,
    power_law_images,
    template_images,
)
from derived.papers.signal_propagation.kernels import ErfKernel, LayerNormKernel
from derived.papers.signal_propagation.meanfield import propagate
from derived.papers.signal_propagation.training import evaluate, gradient_amplification, per_network_loss, train
from derived.papers.signal_propagation.transformer import RandomTransformer, Sigmas, token_moments
from derived.papers.signal_propagation.vit import VisionTransformer, embed

SMALL = {"image_size": 16, "patch": 4, "width": 24, "depth": 2, "num_heads": 2, "num_classes": 3}


def small(norm: str = "erf", **changes) -> VisionTransformer:
    return VisionTransformer(norm=norm, **SMALL | {"num_networks": 2, "generator": stream(0, "vit")} | changes)


def pictures(num: int, name: str = "train", **changes) -> LabelledImages:
    facts = {"num_classes": 3, "size": 16, "shift": 1, "noise": 0.5} | changes
    return template_images(num, classes=stream(0, "classes"), generator=stream(0, name), **facts)


# --- images -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0])
def test_fields_have_the_power_spectrum(exponent):
    """log power against log frequency, averaged over fields: slope -exponent, from frequency 2 to 12."""
    fields = power_law_fields(200, 32, exponent=exponent, generator=stream(0, "fields", int(exponent)))
    power = torch.fft.fft2(fields[:, 0]).abs().square().mean(dim=0)
    rows = torch.fft.fftfreq(32) * 32
    radius = torch.hypot(rows[:, None], rows[None])
    ring = (radius >= 2) & (radius <= 12)
    slope = np.polyfit(radius[ring].log().numpy(), power[ring].log().numpy(), 1)[0]
    assert abs(slope + exponent) < 0.05
    assert float(power[0, 0]) < 1e-6 * float(power.max())
    assert abs(float(fields[:, 0].square().mean()) - 1) < 0.02


def test_fields_can_be_cut_off_and_share_luminance():
    fields = power_law_fields(100, 16, exponent=1.0, cutoff=3.0, generator=stream(0, "cut"))
    power = torch.fft.fft2(fields).abs()
    rows = torch.fft.fftfreq(16) * 16
    beyond = torch.hypot(rows[:, None], rows[None]) > 3
    assert float(power[..., beyond].max()) < 1e-4
    correlation = float((fields[:, 0] * fields[:, 1]).mean())
    assert abs(correlation - 0.9) < 0.03


def test_images_are_normalised_and_vary_in_contrast():
    images = power_law_images(64, 32, generator=stream(0, "images"))
    assert images.shape == (64, 3, 32, 32)
    assert images.dtype == torch.float32
    contrast = images.std(dim=(-2, -1))[:, 0]
    assert 0.25 < float(contrast.log().std()) < 0.55  # 0.4 asked for
    even = power_law_images(8, 32, contrast=0.0, generator=stream(0, "images"), dtype=torch.float64)
    assert even.dtype == torch.float64
    assert float(even.std(dim=(-2, -1))[:, 0].log().std()) < 0.05


def test_patches_are_those_of_a_convolution():
    """A patch embedding is a convolution whose stride is its size."""
    images = torch.randn(2, 3, 12, 12, generator=stream(0, "patches"))
    W = torch.randn(5, 3, 4, 4, generator=stream(0, "kernel"))
    expected = conv2d(images, W, stride=4).flatten(2).mT
    torch.testing.assert_close(patches(images, 4) @ W.flatten(1).T, expected, rtol=1e-4, atol=1e-4)


def test_templates_are_shared_shifted_and_mixed():
    clean = pictures(60, noise=0.0, shift=0)
    for label in range(3):
        same = clean.images[clean.labels == label]
        torch.testing.assert_close(same, same[:1].expand_as(same), rtol=0, atol=0)
    moved = pictures(60, noise=0.0, shift=3)
    torch.testing.assert_close(moved.labels, clean.labels, rtol=0, atol=0)  # the same draws but for the shift
    rolls = [clean.images[0].roll((i, j), dims=(1, 2)) for i in range(-3, 4) for j in range(-3, 4)]
    assert min(float((roll - moved.images[0]).abs().max()) for roll in rolls) == 0
    other = pictures(60, "test", noise=0.0, shift=0)
    first = other.images[other.labels == clean.labels[0]][0]
    torch.testing.assert_close(first, clean.images[0], rtol=0, atol=0)  # test and train share classes
    noisy = pictures(500, noise=1.0)
    assert abs(float(noisy.images.square().mean()) - 1) < 0.15


# --- the embedding of ViT-Base ------------------------------------------------------------------------------------


def test_embedding_of_vit_base_has_its_shape_and_scale():
    images = power_law_images(2, generator=stream(0, "vit images"))
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


# --- the small vision transformer ---------------------------------------------------------------------------------


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
    loss = per_network_loss(model(data.images), data.labels)
    by_hand = [cross_entropy(logits, data.labels) for logits in model(data.images)]
    torch.testing.assert_close(loss, torch.stack(by_hand))
    loss[0].backward()
    for name, parameter in model.named_parameters():
        assert float(parameter.grad[1].abs().max()) == 0, name
    assert sum(float(parameter.grad[0].abs().sum()) > 0 for parameter in model.parameters()) > 20


def test_a_diverged_network_leaves_the_other_alone():
    data, test = pictures(64), pictures(16, "test")
    facts = {"steps": 4, "batch_size": 16, "lr": 1e-3}
    models = [small(), small()]
    with torch.no_grad():
        models[1].head[0] = math.nan
    runs = [train(model, data, test, generator=stream(0, "batches"), **facts) for model in models]
    assert bool(torch.isnan(runs[1].losses[0]).all())
    torch.testing.assert_close(runs[1].losses[1], runs[0].losses[1], rtol=0, atol=0)


def test_training_learns_and_repeats():
    data, test = pictures(256), pictures(96, "test")
    facts = {"steps": 60, "batch_size": 32, "lr": 3e-3, "warmup": 10}
    runs = [
        train(small(norm), data, test, generator=stream(0, "batches"), **facts) for norm in ("erf", "erf", "layernorm")
    ]
    for run in runs:
        assert run.losses.shape == (2, 60)
        assert bool((run.losses[:, -10:].mean(dim=-1) < 0.6 * run.losses[:, 0]).all())
        assert bool((run.test_accuracy > 0.6).all())
    torch.testing.assert_close(runs[0].losses, runs[1].losses, rtol=0, atol=0)


def test_warm_up_scales_the_first_step():
    """AdamW's first step moves every coordinate by lr whatever the gradient, so its size reads the rate off."""
    data = pictures(32)
    moved = {}
    for warmup in (0, 10):
        model = small()
        before = model.blocks[0].norms[0].gain.detach().clone()
        train(model, data, data, steps=1, batch_size=8, lr=1e-3, warmup=warmup, generator=stream(0, "step"))
        moved[warmup] = float((model.blocks[0].norms[0].gain.detach() - before).abs().median())
    assert moved[0] == pytest.approx(1e-3, rel=1e-2)
    assert moved[10] == pytest.approx(1e-4, rel=1e-2)


def test_weight_decay_shrinks_matrices_and_nothing_else():
    """Behind a head of zeros no gradient reaches the network, so one step of AdamW is the factor 1 - lr decay alone."""
    data = pictures(16)
    before, after = small(alpha=0.7), small(alpha=0.7)
    with torch.no_grad():
        after.head.zero_()
        after.head_bias.fill_(1.0)
    train(after, data, data, steps=1, batch_size=8, lr=0.1, weight_decay=0.5, generator=stream(0, "decay"))
    trained = dict(after.named_parameters())
    for name, start in before.named_parameters():
        if name not in ("head", "head_bias") and "last_norm" not in name:
            factor = 0.95 if "weights" in name or name == "embedding" else 1.0
            torch.testing.assert_close(trained[name], factor * start, rtol=1e-6, atol=0, msg=name)
    torch.testing.assert_close((after.head_bias - 1).abs(), torch.full_like(after.head_bias, 0.1), rtol=1e-3, atol=0)


def test_initial_scales_are_those_of_the_docstring():
    model = VisionTransformer(width=96, depth=1, num_networks=2, generator=stream(0, "scales"), num_classes=50)
    for parameter, std in ((model.embedding, (3 * 8**2) ** -0.5), (model.positions, 0.02), (model.head, 96**-0.5)):
        assert float(parameter.detach().std()) == pytest.approx(std, rel=0.03)
    assert not model.head_bias.any()


def test_evaluation_is_the_mean_over_the_set():
    model, test = small(), pictures(50, "test")
    loss, accuracy = evaluate(model, test, batch_size=16)  # the last batch is smaller
    logits = model(test.images)
    torch.testing.assert_close(loss, per_network_loss(logits, test.labels).double(), rtol=1e-5, atol=0)
    torch.testing.assert_close(accuracy, (logits.argmax(dim=-1) == test.labels).double().mean(dim=-1))


@pytest.mark.parametrize(("norm", "kernel"), [("erf", ErfKernel(1.0)), ("layernorm", LayerNormKernel())])
def test_gradient_amplification_is_the_pooled_recurrence_sp18(norm, kernel):
    """The loss behind global average pooling: (J, K)^B = (1, 1) predicts it, (1, 0) does not."""
    depth, sigmas = 6, Sigmas(v=1, o=1, one=1, two=1)
    facts = {"image_size": 32, "patch": 8, "width": 96, "depth": depth, "num_heads": 3, "num_networks": 6}
    model = VisionTransformer(norm=norm, alpha=1.0, sigmas=sigmas, generator=stream(0, "pooled"), **facts)
    data = template_images(16, num_classes=100, size=32, classes=stream(0, "c"), generator=stream(0, "g"))
    amplification = gradient_amplification(model, data).mean(dim=0).numpy()
    q, p, _ = (float(m.mean()) for m in token_moments(model.states(data.images)[0].detach()))
    common = {"kernel": kernel, "a": 1.0, "s": 1.0, "n": 16, "depth": depth}
    pooled = propagate(q, p, output_gradient="pooled", **common).J_backward
    alone = propagate(q, p, **common).J_backward
    assert amplification[-1] == pytest.approx(1)
    assert np.exp(np.abs(np.log(amplification / pooled)).mean()) < 1.12
    assert amplification[0] > 1.3 * alone[0]


# --- bad input ----------------------------------------------------------------------------------------------------

G = torch.Generator()
BAD = [
    (lambda: power_law_fields(0, 8, generator=G), "num = 0"),
    (lambda: power_law_fields(1, 1, generator=G), "size = 1; give an integer >= 2"),
    (lambda: power_law_fields(1, 8, exponent=-1.0, generator=G), "exponent = -1.0"),
    (lambda: power_law_images(1, 8, contrast=-1.0, generator=G), "contrast = -1.0"),
    (lambda: pictures(4, num_classes=1), "num_classes = 1; give an integer >= 2"),
    (lambda: pictures(4, noise=-1.0), "noise = -1.0"),
    (lambda: patches(torch.ones(1, 3, 10, 10), 4), "patch | size"),
    (lambda: embed(torch.ones(1, 3, 16, 16), patch=5, generator=G), "patch = 5"),
    (lambda: small(norm="rms"), "norm = 'rms'"),
    (lambda: small(patch=5), "patch = 5 must divide image_size = 16"),
    (lambda: small(num_heads=5), "num_heads = 5 width = 24"),
    (lambda: small(alpha=[1.0, 2.0, 3.0]), "one per network (2)"),
    (lambda: small(sigmas=Sigmas(one=-0.1)), "give standard deviations that are finite and not negative"),
    (lambda: train(small(), pictures(4), pictures(4), steps=0, generator=G), "steps = 0"),
    (lambda: train(small(), pictures(4), pictures(4), steps=1, lr=0.0, generator=G), "lr = 0.0"),
    (lambda: train(small(), pictures(4), pictures(4), steps=1, warmup=-1, generator=G), "warmup = -1"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
