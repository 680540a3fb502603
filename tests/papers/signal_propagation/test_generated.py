"""Generated images: their spectrum, and classes that train and test share."""

import re

import numpy as np
import pytest
import torch

from derived.lab.rng import stream
from derived.papers.signal_propagation.data.generated import (
    LabelledImages,
    power_law_fields,
    template_images,
)


def pictures(num: int, name: str = "train", **changes) -> LabelledImages:
    arguments = {"num_classes": 3, "size": 16, "shift": 1, "noise": 0.5} | changes
    return template_images(num, classes=stream(0, "classes"), generator=stream(0, name), **arguments)


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
    noisy = pictures(500, noise=2.0)
    assert abs(float(noisy.images.square().mean()) - 1) < 0.15


G = torch.Generator()
BAD = [
    (lambda: power_law_fields(0, 8, generator=G), "num = 0"),
    (lambda: power_law_fields(1, 1, generator=G), "size = 1; give an integer >= 2"),
    (lambda: power_law_fields(1, 8, exponent=-1.0, generator=G), "exponent = -1"),
    (lambda: pictures(4, num_classes=1), "num_classes = 1; give an integer >= 2"),
    (lambda: pictures(4, noise=-1.0), "noise = -1"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
