"""The layer: random instances and their rounding, entries counted, kernels that it computes (HKT-1, 2, 6)."""

import dataclasses

import pandas as pd
import pytest
import torch

from derived.lab.experiment import run_experiment
from derived.lab.rng import stream
from derived.papers.hierarchical_kernel.claims import EXPERIMENTS, measures
from derived.papers.hierarchical_kernel.experiments import trained
from derived.papers.hierarchical_kernel.experiments.clock import Overhead
from derived.papers.hierarchical_kernel.experiments.information import (
    Averages,
    Blindness,
    Budgets,
    Memory,
    Pruning,
    Quadratures,
)
from derived.papers.hierarchical_kernel.experiments.instances import normal, random_layers, score_rounding
from derived.papers.hierarchical_kernel.experiments.kernel import Forms, LuckyHeads, Splits
from derived.papers.hierarchical_kernel.experiments.layer import Agreement, Contents, Convolution, Entries, MultiplyAdds
from derived.papers.hierarchical_kernel.experiments.leak import Causality, Leak
from derived.papers.hierarchical_kernel.experiments.listops import Evaluators, Rules
from derived.papers.hierarchical_kernel.model import theory
from derived.papers.hierarchical_kernel.model.layers import HKTAttention

TRAINED = {"parts": 1, "replicates": 2, "width": 8, "steps": 2, "batch_size": 2, "num_train": 8, "num_test": 70}
SMALL = {
    Entries: {"longest": 20},
    MultiplyAdds: {},
    Agreement: {"instances": 3},
    Causality: {"instances": 3},
    Contents: {"instances": 3},
    Convolution: {"grid": 41, "instances": 3},
    Forms: {"instances": 4},
    LuckyHeads: {"trials": 500},
    Splits: {"instances": 4},
    Budgets: {"instances": 2},
    Quadratures: {"instances": 2},
    Averages: {},
    Blindness: {"instances": 3},
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


@pytest.fixture(scope="module")
def rows():
    """Every experiment at tier ci, smaller still."""
    return {
        experiment: run_experiment(dataclasses.replace(experiment.at("ci"), **SMALL[experiment]), seed=3, device="cpu")
        for experiment in EXPERIMENTS
    }


def test_random_layers_draw_every_weight():
    layers = random_layers(3, 8, 2, 3, generator=stream(0, "every"), dtype=torch.float64)
    assert isinstance(layers, HKTAttention)
    for weight in layers.parameters():
        assert weight.flatten(1).std(dim=1).min() > 0
        assert not torch.equal(weight[0], weight[1])


def test_score_rounding_covers_a_float32_layer_and_is_not_absurd():
    for dtype in (torch.float32, torch.float64):
        layers = random_layers(4, 6, 1, 3, generator=stream(0, "rounding"), dtype=torch.float64)
        x = normal((4, 9, 6), stream(0, "x"))
        with torch.no_grad():
            q, k, alpha = layers.scores.features(x)
        bound = score_rounding([a.to(dtype) for a in q], [b.to(dtype) for b in k], alpha.to(dtype))
        assert (bound > 0).all()
        assert (bound < 1e4 * torch.finfo(dtype).eps).all()


def test_whole_numbers_catch_one_entry_too_many():
    good = pd.DataFrame({"T": [4, 8, 12], "levels": [3, 3, 3], "entries": [21, 84, 189]})
    assert measures.whole_levels(good).value == 0
    assert measures.whole_levels(good.assign(entries=good["entries"] + 1)).value > 1
    assert measures.three_levels(good).value == 1.3125


def test_leaks_and_sensitivities_are_measured_on_the_right_rows():
    table = pd.DataFrame({"pooling": ["block", "convolution"], "future": [0.3, 0.0]})
    assert measures.future("block")(table).value == 0.3
    assert measures.future("convolution")(table).value == 0.0
    table = pd.DataFrame({"levels": [1, 1, 2, 3], "sensitivity": [0.0, 0.0, 0.4, 0.3]})
    assert measures.sensitivity(table).value == 0.3
    table.loc[1, "sensitivity"] = 1e-12  # one level must not depend on a third token at all
    assert measures.sensitivity(table).value == -1e-12


def test_rank_is_measured_only_where_its_bound_says_something(rows):
    found = rows[Agreement].query("check == 'rank'")
    assert set(found["T"]) == {32, 45}


def test_one_layer_is_one_instance_however_often_it_is_checked():
    table = pd.DataFrame({"check": ["a", "b", "a", "c"], "T": 4, "instance": [0, 0, 1, 2], "gap": [1.0, 3, 2, 9]})
    found = measures.gap("a", "b", unit=("T", "instance"))(table.assign(bound=2.0))
    assert (found.value, found.n) == (1.5, 2)
    assert measures.gap("a", "b")(table.assign(bound=2.0)).n == 3


def test_the_claims_on_convolutions_notice_another_kernel(rows):
    """`hkt-convolution`: each row is held against its closed form from both sides."""
    table = rows[Convolution]
    assert (table.groupby("kernel")["bound"].max() < 1e-4).all()
    for kernel in ("difference", "positive", "layer", "limit"):
        assert measures.convolved(kernel)(table).value <= 1
        for sign in (1, -1):
            assert measures.convolved(kernel)(table.assign(distance=table["closed"] + sign * 1e-3)).value > 1


def test_whole_blocks_have_the_rounded_down_number_of_rows(rows):
    """`hkt-cost`: the tables counted over whole blocks against floor(T / 2^l)."""
    for _, row in rows[Entries].iterrows():
        sizes = theory.level_rows(int(row["T"]), int(row["levels"]), "down")
        assert row["entries_down"] == sum(size**2 for size in sizes)
