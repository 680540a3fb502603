"""Claims without chance hold on other instances than those of the page."""

import dataclasses

import pytest

from derived.lab.experiment import run_experiment
from derived.papers.hierarchical_kernel.claims import CLAIMS
from derived.papers.hierarchical_kernel.experiments.information import (
    Averages,
    Budgets,
    Memory,
    Pruning,
    Quadratures,
    SmallSamples,
)
from derived.papers.hierarchical_kernel.experiments.kernel import Forms, Splits
from derived.papers.hierarchical_kernel.experiments.layer import Agreement, Contents, Convolution, Entries, MultiplyAdds
from derived.papers.hierarchical_kernel.experiments.leak import Causality
from derived.papers.hierarchical_kernel.experiments.listops import Evaluators

SMALL = {
    Entries: {"longest": 20},
    MultiplyAdds: {},
    Agreement: {"instances": 3},
    Causality: {"instances": 3},
    Contents: {"instances": 3},
    Convolution: {"grid": 41, "instances": 3},
    Forms: {"instances": 4},
    Splits: {"instances": 4},
    Budgets: {"instances": 2},
    Quadratures: {"instances": 2},
    Averages: {},
    SmallSamples: {"instances": 3},
    Memory: {},
    Pruning: {"instances": 3, "T": 32},
    Evaluators: {"trees": 5},
}


@pytest.mark.parametrize("experiment", SMALL, ids=lambda one: one.__name__)
def test_exact_claims_hold_as_expected_on_other_instances(experiment, expected):
    small = dataclasses.replace(experiment.at("ci"), **SMALL[experiment])
    rows = run_experiment(small, seed=3, device="cpu")
    for claim in CLAIMS:
        if claim.experiment is experiment:
            assert claim.judge(claim.measure(rows))[0] == expected[claim.id], claim.id
