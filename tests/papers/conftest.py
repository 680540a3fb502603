"""What the tests of every paper's experiments share: rows of all of them, smaller than tier ci."""

import dataclasses

import matplotlib.pyplot as plt
import pytest

from derived.lab.experiment import run_experiment


@pytest.fixture(scope="module")
def rows(request):
    """Rows of each of the module's EXPERIMENTS at tier ci, with the fields that the module's SMALL changes."""
    found = {}
    for experiment in request.module.EXPERIMENTS:
        small = dataclasses.replace(experiment.at("ci"), **request.module.SMALL.get(experiment, {}))
        found[experiment] = run_experiment(small, seed=0, device="cpu").assign(tier="ci", recorded=False)
    return found


@pytest.fixture(autouse=True)
def no_figure_stays_open():
    """matplotlib warns of more than twenty open figures, and a warning is an error here."""
    yield
    plt.close("all")
