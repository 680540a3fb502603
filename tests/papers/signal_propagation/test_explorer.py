"""The figures with sliders: a frame for every position, curves that are the recurrences', sizes a phone can load."""

import itertools

import numpy as np
import pandas as pd
import pytest

from derived.papers.signal_propagation.experiments.regimes import recurrence_grid
from derived.papers.signal_propagation.figures import explorer
from derived.papers.signal_propagation.model.kernels import ErfKernel, LayerNormKernel
from derived.papers.signal_propagation.model.meanfield import propagate


@pytest.fixture(scope="module")
def grid():
    return recurrence_grid()


@pytest.fixture(scope="module")
def figure(grid):
    return explorer.recurrences(grid)


def test_each_position_of_the_sliders_has_its_frame_and_the_page_stays_small(figure):
    labels = [[step.label for step in slider.steps] for slider in figure.layout.sliders]
    assert {frame.name for frame in figure.frames} == {"|".join(each) for each in itertools.product(*labels)}
    assert [slider.currentvalue.prefix for slider in figure.layout.sliders] == [
        f"{word} = " for word in ("α", "σ_OV", "σ_21", "n", "B")
    ]
    assert len(figure.to_json()) < 800_000


@pytest.mark.parametrize("position", [(0.3, 0.0, 1.2, 4, 12), (1.5, 1.23, 0.3, 197, 128)])
def test_the_curves_are_those_of_the_recurrences(figure, position):
    alpha, attn, mlp, n, depth = position
    (frame,) = (each for each in figure.frames if each.name == "|".join(f"{value:g}" for value in position))
    kernels = (LayerNormKernel(), ErfKernel(alpha))
    paths = [propagate(1.0, 0.2, kernel=kernel, a=attn**2, s=mlp**2, n=n, depth=depth) for kernel in kernels]
    wanted = [getattr(path, name) for name in ("q", "rho", "log_J_backward") for path in paths]
    for curve, values in zip(frame.data, wanted, strict=True):
        assert (curve.x[0], curve.x[-1]) == (0, depth)
        np.testing.assert_allclose(curve.y, values[list(curve.x)], rtol=1e-3, atol=1e-12)
    for axis in ("", "2", "3"):
        top = frame.layout[f"yaxis{axis}"].range[1]
        assert top >= max(max(c.y) for c in frame.data if c.yaxis == f"y{axis}")


def test_the_start_is_a_frame_and_the_alt_text_gives_its_values(figure, grid):
    name = "|".join(slider.steps[slider.active].label for slider in figure.layout.sliders)
    (frame,) = (each for each in figure.frames if each.name == name)
    assert [trace.y for trace in figure.data] == [trace.y for trace in frame.data]
    ends = [frame.data[index].y[0] for index in (4, 5)]
    assert all(f"{end:.2f} for" in figure.layout.meta["alt"] for end in ends)


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
