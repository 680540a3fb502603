"""Generated images in place of photographs: power-law fields, and classes made of a template, a shift and a field.

symbol      name        meaning                                             axes
S(f)        exponent    power spectrum |f|^{-exponent}; 2 is natural images'
images      images      normalised with ImageNet's means and deviations     (num, 3, size, size)
labels      labels      class indices                                       (num,)
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from derived.lab.checks import check_at_least, check_count

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet's channels


class LabelledImages(NamedTuple):
    """Images with their classes."""

    images: Tensor  # (num, 3, size, size)
    labels: Tensor  # (num,)


def power_law_fields(
    num: int, size: int, *, exponent: float = 2.0, generator: torch.Generator, cutoff: float | None = None
) -> Float[Tensor, "num channel=3 size size"]:
    """Gaussian fields of mean 0 and variance 1 with power spectrum |f|^{-exponent}, three correlated channels.

    White noise is filtered by |f|^{-exponent/2}, f = 0 removed; ``cutoff`` keeps |f| <= cutoff cycles per image. The
    channels share a field (luminance) that carries 90 % of the variance. float32, on the generator's device. [ours]
    """
    check_count("num", num)
    check_count("size", size, 2)
    check_at_least("exponent", exponent, 0.0)
    device = generator.device
    rows, columns = torch.fft.fftfreq(size, device=device) * size, torch.fft.rfftfreq(size, device=device) * size
    frequency = torch.hypot(rows.unsqueeze(-1), columns)
    gain = torch.where(frequency > 0, frequency ** (-exponent / 2), 0.0)
    if cutoff is not None:
        gain = gain * (frequency <= cutoff)
    noise = torch.randn(num, 4, size, size, generator=generator, device=device)
    fields = torch.fft.irfft2(torch.fft.rfft2(noise) * gain, s=(size, size))
    fields = fields / fields.std(dim=(-2, -1), keepdim=True, correction=0)
    return 0.9**0.5 * fields[:, :1] + 0.1**0.5 * fields[:, 1:]


def template_images(
    num: int,
    *,
    num_classes: int = 100,
    size: int = 64,
    noise: float = 1.0,
    shift: int = 8,
    classes: torch.Generator,
    generator: torch.Generator,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> LabelledImages:
    """A class is a random low-frequency template; an image is it, shifted cyclically, plus ``noise`` 1/f field.

    ``classes`` draws the templates (give two sets an equal one: train and test share classes), ``generator`` labels,
    shifts (up to ``shift`` pixels each way) and fields. Unit variance before normalisation by its own deviation. [ours]
    """
    check_count("num_classes", num_classes, 2)
    check_count("shift", shift, 0)
    check_at_least("noise", noise, 0.0)
    templates = power_law_fields(num_classes, size, exponent=1.0, cutoff=4.0, generator=classes)
    fields = power_law_fields(num, size, generator=generator)
    labels = torch.randint(num_classes, (num,), generator=generator, device=generator.device)
    moved = torch.randint(-shift, shift + 1, (2, num, 1), generator=generator, device=generator.device)
    rows, columns = ((torch.arange(size, device=generator.device) + way) % size for way in moved)
    picked = templates.to(generator.device)[labels]
    index = torch.arange(num, device=generator.device).view(-1, 1, 1)
    shifted = picked.movedim(1, -1)[index, rows.unsqueeze(-1), columns.unsqueeze(-2)].movedim(-1, 1)
    images = (shifted + noise * fields) / (1 + noise**2) ** 0.5
    return LabelledImages(images.to(device, dtype), labels.to(device))
