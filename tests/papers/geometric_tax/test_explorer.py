"""The explorer: its first view, distributions and lengths that are the model's, and its path."""

import numpy as np
import pytest

from derived.lab.experiment import run_experiment
from derived.papers.geometric_tax.explorer import explorer
from derived.papers.geometric_tax.labels import LabelPaths
from derived.papers.geometric_tax.model.labels import bin_law, fisher_rao_length, path_length


def test_the_explorer_opens_with_the_distributions_and_the_length_of_the_model_and_stays_small():
    rows = run_experiment(LabelPaths(), seed=0, device="cpu")
    figure = explorer(rows)
    assert [slider.steps[slider.active].label for slider in figure.layout.sliders] == ["0.005", "16"]
    assert len(figure.to_json()) < 60_000
    map_, even, length, said = figure.data
    np.testing.assert_allclose(np.array(map_.z).T, bin_law(np.array(map_.x), 16, 0.005), atol=1e-4)
    whole = fisher_rao_length(16, 0.005)
    assert (length.y[-1], even.y[-1]) == (pytest.approx(whole, rel=3e-3),) * 2
    assert said.text[0] == f"length {whole:.0f}<br>at most 15π = 47, and 1/σ = 200"
    assert f"is {whole:.0f} long" in figure.layout.meta["alt"]


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
