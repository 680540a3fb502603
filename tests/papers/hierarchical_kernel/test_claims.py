"""Claims without chance hold on other instances than those of the page."""

import pytest

from derived.lab.experiment import run_experiment
from derived.papers.hierarchical_kernel.claims import CLAIMS
from derived.papers.hierarchical_kernel.experiments import information, kernel, layer, leak, listops

EXACT = (
    *(layer.Entries, layer.MultiplyAdds, layer.Agreement, layer.Contents, layer.Convolution),
    *(leak.Causality, kernel.Forms, kernel.Splits, information.Budgets, information.Quadratures, information.Averages),
    *(information.SmallSamples, information.Memory, information.Pruning, listops.Evaluators),
)


@pytest.mark.parametrize("experiment", EXACT, ids=lambda one: one.__name__)
def test_exact_claims_hold_as_expected_on_other_instances(experiment, expected):
    rows = run_experiment(experiment.at("tiny"), seed=3, device="cpu")
    for claim in CLAIMS:
        if claim.experiment is experiment:
            assert claim.judge(claim.measure(rows))[0] == expected[claim.id], claim.id
