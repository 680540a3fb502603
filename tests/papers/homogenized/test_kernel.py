"""The kernel of the noise: distances of two clouds against drawn fields."""

import math

import pytest
import torch

from derived.lab.rng import stream
from derived.papers.homogenized.model.heads import tangent, uniform_tokens
from derived.papers.homogenized.model.overlaps import kernel_distance


def test_kernels_of_two_clouds_have_the_distance_of_drawn_fields():
    """Different points x and y as well as different clouds, with V drawn; the bound by hand."""
    d = 3
    pairs = uniform_tokens(5, d, generator=stream(11, "clouds"), replicas=2)
    points, clouds = pairs[:, 0], pairs[:, 1:]
    V = torch.randn(60_000, d, d, generator=stream(11, "V"), dtype=torch.float64) / d**0.5
    fields = [tangent(x, (V @ cloud.mean(dim=0))) for x, cloud in zip(points, clouds, strict=True)]
    drawn = (fields[0] - fields[1]).square().sum(dim=-1)
    gap, bound = kernel_distance(points, clouds)
    assert abs(drawn.mean() - gap) < 5 * drawn.std() / len(V) ** 0.5
    by_hand = 2 * math.dist(*points) ** 2 + 2 * sum(math.dist(p, q) ** 2 for p, q in zip(*clouds, strict=True)) / 4
    assert bound.item() == pytest.approx(by_hand)
    together = torch.stack([points[:1].expand(4, d), points[1:].expand(4, d)])
    gap, bound = kernel_distance(points[:1].expand(2, d), together)
    assert gap.item() == pytest.approx((d - 1) / d * math.dist(*points) ** 2)  # x = y, the clouds move as a whole
    assert bound.item() == pytest.approx(2 * math.dist(*points) ** 2)
