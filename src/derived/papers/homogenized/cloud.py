"""One pair of tokens in a uniform cloud: the coldest case, where a head sends x to A_d(beta |A x|) V A x / |A x|.

symbol      name        meaning                                                            axes
R           R           overlap of the two tokens                                          (paths,)
k           factors     Gaussian d x d factors of A: 2 for W W'^T, 1 for W, 0 orthogonal
rho         cosine      cosine of A x and A y                                              (paths,)
h           h           eta^2 / H

The pair enters a layer by R alone, so a layer costs a few numbers for each path, whatever the width d. [ours]
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor


class Image(NamedTuple):
    """A x and A y for unit vectors of overlap R."""

    cosine: Tensor  # (paths,)
    length_x: Tensor  # |A x| over sigma_A^k d^(k/2)
    length_y: Tensor
    control: Tensor  # of mean zero: the first-order change of the cosine


def _chi(shape: torch.Size, freedom: float, facts: dict) -> Tensor:
    """Lengths of normal vectors of ``freedom`` dimensions."""
    halves = torch.full(shape, freedom / 2, device=facts["device"], dtype=facts["dtype"])
    return (2 * torch._standard_gamma(halves, generator=facts["generator"])).sqrt()


def image(R: Float[Tensor, " paths"], d: int, factors: int, *, generator: torch.Generator) -> Image:
    """Apply ``factors`` independent Gaussian d x d matrices to two unit vectors of overlap R: see `ht-delta`."""
    if d < 2 or factors < 0:
        raise ValueError(f"d = {d}, factors = {factors}: need d >= 2 and factors >= 0")
    facts = {"generator": generator, "device": R.device, "dtype": R.dtype}
    cosine, one = R, torch.ones_like(R)
    length_x, length_y, control = one, one, torch.zeros_like(R)
    for _ in range(factors):
        c = (1 - cosine.square()).clamp_min(0).sqrt()
        p, across = _chi(R.shape, d, facts) / d**0.5, _chi(R.shape, d - 1, facts) / d**0.5
        q = torch.randn(R.shape, **facts) / d**0.5
        step = c * (cosine * (p.square() - 1) / 2 + c * q) - cosine * c * (across.square() - (d - 1) / d) / 2
        along, over = cosine * p + c * q, c * across
        size = torch.hypot(along, over)
        control = control + c * step
        length_x, length_y, cosine = length_x * p, length_y * size, along / size
    return Image(cosine, length_x, length_y, control)


def cloud_layer(
    R: Float[Tensor, " paths"], h: float, d: int, factors: int, *, generator: torch.Generator
) -> Float[Tensor, "two paths"]:
    """The overlap after one layer at beta = infinity, with V and with -V: x <- N(x + sqrt(h) V A x / |A x|).

    In the basis x, (y - R x)/sqrt(1 - R^2), rest: a = sqrt(h) V m_x has normal entries of variance h/d, and
    b = rho a + sqrt(1 - rho^2) g; of the rest only lengths and one inner product are needed. Needs d >= 4.
    """
    if d < 4:
        raise ValueError(f"d = {d}: the rest beside the two tokens needs at least two dimensions, so d >= 4")
    facts = {"generator": generator, "device": R.device, "dtype": R.dtype}
    rho = image(R, d, factors, generator=generator).cosine
    a1, a2, g1, g2, along = ((h / d) ** 0.5 * torch.randn(R.shape, **facts) for _ in range(5))
    rest, across = ((h / d) ** 0.5 * _chi(R.shape, freedom, facts) for freedom in (d - 2, d - 3))
    spread = (1 - rho.square()).clamp_min(0).sqrt()
    b1, b2, along = rho * a1 + spread * g1, rho * a2 + spread * g2, rho * rest + spread * along
    aa, ab = a1**2 + a2**2 + rest**2, a1 * b1 + a2 * b2 + rest * along
    bb = b1**2 + b2**2 + along**2 + (spread * across) ** 2
    c = (1 - R.square()).clamp_min(0).sqrt()
    ya, yb = R * a1 + c * a2, R * b1 + c * b2
    found = []
    for sign in (1, -1):
        inner = R + sign * (b1 + ya) + ab
        found.append(inner / ((1 + 2 * sign * a1 + aa) * (1 + 2 * sign * yb + bb)).sqrt())
    return torch.stack(found)
