"""Rows of every experiment: columns, seeds, and claims that hold on other instances."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from derived.lab.experiment import run_condition, run_experiment
from derived.papers.hierarchical_kernel.claims import CLAIMS, EXPERIMENTS
from derived.papers.hierarchical_kernel.experiments import trained
from derived.papers.hierarchical_kernel.experiments.clock import Overhead
from derived.papers.hierarchical_kernel.experiments.information import (
    Averages,
    Budgets,
    Memory,
    Pruning,
    Quadratures,
    SmallSamples,
)
from derived.papers.hierarchical_kernel.experiments.kernel import Forms, RandomHeads, Splits
from derived.papers.hierarchical_kernel.experiments.layer import Agreement, Contents, Convolution, Entries, MultiplyAdds
from derived.papers.hierarchical_kernel.experiments.leak import Causality, Leak
from derived.papers.hierarchical_kernel.experiments.listops import Evaluators, Rules

TRAINED = {"parts": 1, "replicates": 2, "width": 8, "steps": 2, "batch_size": 2, "num_train": 8, "num_test": 70}
SMALL = {
    Entries: {"longest": 20},
    MultiplyAdds: {},
    Agreement: {"instances": 3},
    Causality: {"instances": 3},
    Contents: {"instances": 3},
    Convolution: {"grid": 41, "instances": 3},
    Forms: {"instances": 4},
    RandomHeads: {"trials": 500},
    Splits: {"instances": 4},
    Budgets: {"instances": 2},
    Quadratures: {"instances": 2},
    Averages: {},
    SmallSamples: {"instances": 3},
    Memory: {},
    Pruning: {"instances": 3, "T": 32},
    Evaluators: {"trees": 5},
    Rules: {"trees": 300, "few": 40},
    Leak: {"replicates": 2, "steps": 2, "num_test": 20},
    Overhead: {"rounds": 2},
    trained.ShortListOps: TRAINED,
    trained.LongListOps: TRAINED,
    trained.Shapes: TRAINED,
    trained.Reviews: TRAINED,
}
COMPARED = {"kind", "part", "replicate", "block", "level", "accuracy", "loss", "first_loss", "last_loss", "rule"}
CHECKED = {"check", "instance", "gap", "bound"}
COLUMNS = {
    Entries: {"T", "levels", "entries", "entries_down"},
    MultiplyAdds: {"T", "d", "levels", "entries", "scores_and_values", "layer", "layer_fused"},
    Agreement: CHECKED | {"T", "dtype"},
    Causality: {"pooling", "T", "instance", "future", "past"},
    Contents: {"levels", "instance", "sensitivity"},
    Convolution: {"kernel", "instance", "distance", "closed", "bound"},
    Forms: CHECKED,
    RandomHeads: {"d", "trials", "successes"},
    Splits: CHECKED,
    Budgets: {"size", "instance", "total", "gaussian", "resolution", "width", "correction", "gap", "bound"},
    Quadratures: {"instance", "information", "gaussian", "correction", "closed", "gap", "bound"},
    Averages: {"law", "level", "value", "predicted"},
    SmallSamples: {"law", "p", "n", "instance", "b", "z", "bound"},
    Memory: {"process", "H", "level", "variance", "closed"},
    Pruning: CHECKED | {"kept"},
    Evaluators: {"range", "trees", "mismatches"},
    Rules: {"range", "rule", "trees", "right"},
    Leak: {"kind", "replicate", "loss", "accuracy", "chance"},
    Overhead: {"T", "impl", "round", "seconds"},
    trained.ShortListOps: COMPARED,
    trained.LongListOps: COMPARED,
    trained.Shapes: COMPARED,
    trained.Reviews: COMPARED,
}
LEARNED = (trained.ShortListOps, trained.LongListOps, trained.Shapes, trained.Reviews, Leak)


@pytest.fixture(scope="module")
def rows():
    """Every experiment at tier ci, smaller still."""
    return {
        experiment: run_experiment(dataclasses.replace(experiment.at("ci"), **SMALL[experiment]), seed=3, device="cpu")
        for experiment in EXPERIMENTS
    }


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda one: one.__name__)
def test_rows_have_the_promised_columns_and_no_failure(rows, experiment):
    table = rows[experiment]
    assert "failure" not in table.columns
    assert COLUMNS[experiment] <= set(table.columns)
    assert set(experiment.deterministic) <= set(table.columns)
    assert np.isfinite(table.select_dtypes("number").to_numpy()).all()


def test_exact_claims_hold_as_expected_on_other_instances(rows):
    small = {RandomHeads, Rules, *LEARNED}
    for claim in CLAIMS:
        if claim.experiment is None or claim.experiment in small or "ci" not in claim.expected:
            continue
        verdict, _ = claim.judge(claim.measure(rows[claim.experiment]))
        assert verdict == claim.expected["ci"], claim.id


@pytest.mark.parametrize("experiment", LEARNED, ids=lambda one: one.__name__)
def test_rows_follow_the_seed(experiment):
    small = dataclasses.replace(experiment.at("ci"), **SMALL[experiment])
    condition = small.conditions()[0]
    first, again, other = (run_condition(small, condition, seed, "cpu") for seed in (0, 0, 1))
    pd.testing.assert_frame_equal(first, again)
    assert not np.allclose(first["loss"], other["loss"])
