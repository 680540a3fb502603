"""Generated pictures of ten classes: a smooth pattern, shifted, under noise with the spectrum of photographs.

symbol      name        meaning                                             axes
S(f)        exponent    power spectrum |f|^{-exponent}, f in cycles         a number
            templates   the pattern of each class                           (classes, 3, size, size)
"""

import torch
from torch import Tensor

SIZE = 32


def smooth(num: int, exponent: float, cutoff: float, generator: torch.Generator) -> Tensor:
    """Gaussian fields (num, 3, size, size) of mean 0 and variance 1 with power spectrum |f|^{-exponent} up to
    |f| = ``cutoff``; the three channels share 90 % of it. [ours]"""
    f = torch.fft.fftfreq(SIZE) * SIZE
    frequency = torch.hypot(f[:, None], f[: SIZE // 2 + 1])
    gain = frequency.clamp(min=1) ** (-exponent / 2) * ((frequency > 0) & (frequency <= cutoff))
    fields = torch.fft.irfft2(torch.fft.rfft2(torch.randn(num, 4, SIZE, SIZE, generator=generator)) * gain)
    fields = fields / fields.std(dim=(-2, -1), keepdim=True)
    return 0.9**0.5 * fields[:, :1] + 0.1**0.5 * fields[:, 1:]


def pictures(num: int, templates: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Pictures (num, 3, size, size) and their classes (num,): the class's template, shifted cyclically by up to 8 pixels
    each way, and as much noise. [ours]"""
    labels = torch.randint(len(templates), (num,), generator=generator)
    shifts = torch.randint(-8, 9, (num, 2), generator=generator)
    moved = [templates[label].roll(shift, (1, 2)) for label, shift in zip(labels, shifts.tolist(), strict=True)]
    return (torch.stack(moved) + smooth(num, 2.0, SIZE, generator)) / 2**0.5, labels
