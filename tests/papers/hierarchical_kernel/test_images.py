"""Generated pictures: classes, areas, contrast."""

import math

import numpy as np
import pytest
import torch

from derived.lab.rng import stream
from derived.papers.hierarchical_kernel.data.images import draw_shapes, inside_shapes, shapes_sequence


def test_pictures_are_what_they_are_called():
    drawn = shapes_sequence(600, generator=stream(0, "pictures"))
    assert drawn.tokens.shape == (600, 1024)
    assert drawn.tokens.dtype == torch.int64
    assert 0 <= int(drawn.tokens.min()) < 40
    assert 215 < int(drawn.tokens.max()) <= 255
    assert set(drawn.lengths.tolist()) == {1024}
    counts = torch.bincount(drawn.labels, minlength=10)
    assert bool(((counts - 60).abs() < 4.5 * math.sqrt(60)).all())


@pytest.mark.parametrize("size", [8, 32])
def test_shapes_have_their_areas(size):
    """Areas in units of the half-width squared: pi, 1.8^2, the triangle's, the cross's, the ring's."""
    axis = (torch.arange(400, dtype=torch.float64) + 0.5) / 100 - 2
    u, v = axis.expand(400, 400), axis.unsqueeze(-1).expand(400, 400)
    areas = [float(each.sum()) / 1e4 for each in inside_shapes(u, v)]
    exact = [math.pi, 1.8**2, 1.8 * 2 * 1.8 / math.sqrt(3) / 2, 2 * 2 * 0.6 - 0.6**2, math.pi * (1 - 0.55**2)]
    np.testing.assert_allclose(areas, exact, rtol=0.02)
    assert shapes_sequence(3, size, generator=stream(0, "size")).tokens.shape == (3, size**2)


def test_shapes_differ_from_their_background_and_stripes_from_smooth():
    """Same draws, other class: stripes change about half of a shape's pixels, and pixels outside never."""
    smooth, striped = (draw_shapes(torch.full((50,), label), 32, stream(0, "same")) for label in (0, 5))
    changed = (smooth - striped).abs() > 0.1
    disc = 2 * math.pi * 5.5**2 / 2
    assert 0.3 * disc < float(changed.sum(dim=(1, 2)).double().mean()) < 0.7 * disc
    other = draw_shapes(torch.full((50,), 4), 32, stream(0, "same"))
    inner = ((smooth - other).abs() > 0.1).sum(dim=(1, 2)).double().mean()
    assert float(inner) == pytest.approx(0.55**2 * math.pi * 5.5**2, rel=0.3)
