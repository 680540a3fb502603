"""The figures with sliders: curves that are the recurrences', sizes a phone can load."""

import numpy as np
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
