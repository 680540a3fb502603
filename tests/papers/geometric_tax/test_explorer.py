"""The explorer: one frame for every setting of its sliders, laws and lengths that are the table's, and its path."""

import numpy as np
import pytest

from derived.lab.experiment import run_experiment
from derived.papers.geometric_tax.experiments.labels import LawGrid, Path
from derived.papers.geometric_tax.figures.explorer import explorer
from derived.papers.geometric_tax.model.labels import bin_law, fisher_rao_length, path_length

LAWS, PATHS = (
    run_experiment(one.at("ci"), seed=0, device="cpu").assign(tier="ci", recorded=False) for one in (LawGrid, Path)
)


def test_the_explorer_has_a_frame_for_every_setting_and_stays_small():
    figure = explorer(LAWS, PATHS)
    frames = {frame.name: frame.data for frame in figure.frames}
    settings = {(sigma, K) for sigma, K in zip(LAWS["sigma"], LAWS["K"], strict=True)}
    assert set(frames) == {f"{sigma:.3g}|{K}" for sigma, K in settings}
    assert len(figure.to_json()) < 500_000
    shown = frames["0.05|8"]
    np.testing.assert_allclose(shown[0].y, bin_law(np.array([LAWS["m"].min()]), 8, 0.05)[0], atol=1e-4)
    assert shown[3].y[-1] == pytest.approx(fisher_rao_length(8, 0.05), rel=3e-3)
    assert shown[7].x[0] == 8
    assert shown[7].y[0] == pytest.approx(fisher_rao_length(8, 0.05), rel=1e-3)
    assert f"{fisher_rao_length(64, 0.002):.0f}" in figure.layout.meta["alt"]


def test_every_slider_changes_every_panel_at_the_start():
    frames = {frame.name: frame.data for frame in explorer(LAWS, PATHS).frames}
    start = frames["0.005|16"]
    for other in (frames["0.01|16"], frames["0.005|32"]):
        for trace in (0, 3):
            assert start[trace].y != other[trace].y
        assert (start[7].x, start[7].y) != (other[7].x, other[7].y)


@pytest.mark.parametrize("K", [2, 5, 33])
@pytest.mark.parametrize("sigma", [0.003, 0.04, 0.5])
def test_the_path_grows_to_the_length(K, sigma):
    path = path_length(np.linspace(0, 1, 33), K, sigma)
    assert path[0] == 0
    assert (np.diff(path) >= 0).all()
    assert path[-1] == pytest.approx(fisher_rao_length(K, sigma), rel=3e-3)


def test_a_path_over_places_out_of_order_is_refused():
    with pytest.raises(ValueError, match="no growing list"):
        path_length(np.array([0.5, 0.2]), 3, 0.1)
