"""The explorer: its first view, laws and lengths that are the table's, and its path."""

import numpy as np
import pytest

from derived.lab.experiment import run_experiment
from derived.papers.geometric_tax.experiments.labels import LawGrid, Path
from derived.papers.geometric_tax.figures.explorer import explorer
from derived.papers.geometric_tax.model.labels import bin_law, fisher_rao_length, path_length

LAWS, PATHS = (
    run_experiment(one.at("ci"), seed=0, device="cpu").assign(tier="ci", recorded=False) for one in (LawGrid, Path)
)


def test_the_explorer_opens_with_the_laws_and_lengths_of_the_table_and_stays_small():
    figure = explorer(LAWS, PATHS)
    assert [slider.steps[slider.active].label for slider in figure.layout.sliders] == ["0.005", "16"]
    assert len(figure.to_json()) < 50_000
    np.testing.assert_allclose(figure.data[0].y, bin_law(np.array([LAWS["m"].min()]), 16, 0.005)[0], atol=1e-12)
    assert figure.data[3].y[-1] == pytest.approx(fisher_rao_length(16, 0.005), rel=3e-3)
    assert (figure.data[7].x[0], figure.data[7].y[0]) == (16, pytest.approx(fisher_rao_length(16, 0.005)))
    assert f"{fisher_rao_length(64, 0.002):.0f}" in figure.layout.meta["alt"]


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
