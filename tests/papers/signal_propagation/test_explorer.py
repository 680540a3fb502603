"""The figures with sliders: curves that are the recurrences', a frame for every block, sizes a phone can load."""

import itertools

import numpy as np
import pandas as pd
import pytest

from derived.papers.signal_propagation import explorer
from derived.papers.signal_propagation.model.kernels import ErfKernel, LayerNormKernel
from derived.papers.signal_propagation.model.meanfield import propagate
from derived.papers.signal_propagation.regimes import recurrence_grid


@pytest.fixture(scope="module")
def figure():
    return explorer.recurrences(recurrence_grid())


def test_its_sliders_and_its_size(figure):
    assert [slider.currentvalue.prefix for slider in figure.layout.sliders] == [
        f"{words} = " for words in ("squashing α", "attention σ", "MLP σ", "tokens n", "depth B")
    ]
    assert all(len(slider.steps) >= 50 for slider in figure.layout.sliders)
    assert len(figure.to_json()) < 100_000


def test_the_first_view_is_that_of_the_recurrences_and_the_alt_text_gives_its_values(figure):
    start = [float(slider.steps[slider.active].label) for slider in figure.layout.sliders]
    alpha, attn, mlp, n, depth = start
    kernels = (LayerNormKernel(), ErfKernel(alpha))
    paths = [propagate(1.0, 0.2, kernel=kernel, a=attn**2, s=mlp**2, n=n, depth=int(depth)) for kernel in kernels]
    wanted = [getattr(path, name) for name in ("q", "rho", "log_J_backward") for path in paths]
    for curve, values in zip(figure.data, wanted, strict=True):
        assert (curve.x[0], curve.x[-1]) == (0, depth)
        np.testing.assert_allclose(curve.y, values[list(curve.x)], rtol=1e-3, atol=1e-12)
    for axis in ("", "2", "3"):
        top = figure.layout[f"yaxis{axis}"].range[1]
        assert top >= max(max(c.y) for c in figure.data if c.yaxis == f"y{axis}")
    assert all(f"{path.log_J_backward[0]:.2f} for" in figure.layout.meta["alt"] for path in paths)


def cloud(rho: float) -> pd.DataFrame:
    draw = np.random.default_rng(0).standard_normal((2, 400))
    tables = []
    for norm, b in itertools.product(("layernorm", "erf"), (0, 8)):
        q = 1.0 + b
        overlap = rho if norm == "layernorm" and b else 0.0
        u, v = draw[0], overlap * draw[0] + np.sqrt(1 - overlap**2) * draw[1]
        tables.append(pd.DataFrame({"norm": norm, "b": b, "u": u * q**0.5, "v": v * q**0.5, "q": q, "p": overlap * q}))
    return pd.concat(tables, ignore_index=True)


def test_the_moving_cloud_keeps_its_ellipse_of_two_deviations():
    figure = explorer.moving_clouds(cloud(0.8))
    assert [frame.name for frame in figure.frames] == ["0", "8"]
    assert figure.layout.meta["play"]
    assert "0.80 with pre-LayerNorm and 0.00 with Derf" in figure.layout.meta["alt"]
    for points, ellipse in zip(figure.frames[1].data[::2], figure.frames[1].data[1::2], strict=True):
        x, y = np.array(ellipse.x), np.array(ellipse.y)
        rho = {"ρ = 0.80": 0.8, "ρ = 0.00": 0.0}[ellipse.text]
        np.testing.assert_allclose((x**2 - 2 * rho * x * y + y**2) / (1 - rho**2), 4, atol=0.1)
        u, v = np.array(points.x), np.array(points.y)
        inside = ((u**2 - 2 * rho * u * v + v**2) / (1 - rho**2) < 4).mean()
        assert abs(inside - (1 - np.exp(-2))) < 5 * np.sqrt(0.12 / 400)
