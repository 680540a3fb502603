"""Experiments and measures of the chapter: columns, pairing, tables with known answers, and claims that can fail."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch

from derived.lab.experiment import run_condition, run_experiment
from derived.lab.rng import stream
from derived.papers.hierarchical_kernel import (
    claims,
    controls,
    experiments,
    forms,
    instances,
    levels,
    measures,
    theory,
    trained,
)
from derived.papers.hierarchical_kernel import rules as rule_experiments
from derived.papers.hierarchical_kernel.cost import AttentionInputs
from derived.papers.hierarchical_kernel.forest import OPEN
from derived.papers.hierarchical_kernel.layers import HKTAttention

TRAINED = {"parts": 1, "replicates": 2, "width": 8, "steps": 2, "batch_size": 2, "num_train": 8, "num_test": 70}
SMALL = {
    experiments.Entries: {"longest": 20},
    experiments.MultiplyAdds: {},
    experiments.Agreement: {"instances": 3},
    experiments.Causality: {"instances": 3},
    experiments.Contents: {"instances": 3},
    experiments.Convolution: {"grid": 41, "instances": 3},
    forms.Forms: {"instances": 4},
    forms.LuckyHeads: {"trials": 500},
    forms.Splits: {"instances": 4},
    levels.Budgets: {"instances": 2},
    levels.Quadratures: {"instances": 2},
    levels.Averages: {},
    levels.Blindness: {"instances": 3},
    levels.Memory: {},
    levels.Pruning: {"instances": 3, "T": 32},
    rule_experiments.Evaluators: {"trees": 5},
    rule_experiments.Rules: {"trees": 300, "few": 40},
    controls.Leak: {"replicates": 2, "steps": 2, "num_test": 20},
    controls.Overhead: {"rounds": 2},
    trained.ShortListOps: TRAINED,
    trained.LongListOps: TRAINED,
    trained.Shapes: TRAINED,
    trained.Reviews: TRAINED,
}
COMPARED = {"kind", "part", "replicate", "block", "level", "accuracy", "loss", "first_loss", "last_loss", "rule"}
COMPARED |= {"parameters", "alpha", "kurtosis", "mardia", "variance"}
CHECKED = {"check", "instance", "gap", "bound"}
COLUMNS = {
    experiments.Entries: {"T", "levels", "entries", "entries_down"},
    experiments.MultiplyAdds: {"T", "d", "levels", "entries", "scores_and_values", "layer", "layer_fused"},
    experiments.Agreement: CHECKED | {"T", "dtype"},
    experiments.Causality: {"pooling", "T", "instance", "future", "past"},
    experiments.Contents: {"levels", "instance", "sensitivity"},
    experiments.Convolution: {"kernel", "instance", "distance", "closed", "bound"},
    forms.Forms: CHECKED,
    forms.LuckyHeads: {"d", "trials", "successes"},
    forms.Splits: CHECKED,
    levels.Budgets: {"size", "instance", "total", "gaussian", "resolution", "width", "correction", "gap", "bound"},
    levels.Quadratures: {"instance", "information", "gaussian", "correction", "closed", "gap", "bound"},
    levels.Averages: {"law", "level", "value", "predicted"},
    levels.Blindness: {"law", "p", "n", "instance", "b", "z", "bound"},
    levels.Memory: {"process", "H", "level", "variance", "closed"},
    levels.Pruning: CHECKED | {"kept"},
    rule_experiments.Evaluators: {"range", "trees", "mismatches"},
    rule_experiments.Rules: {"range", "rule", "trees", "right"},
    controls.Leak: {"kind", "replicate", "loss", "accuracy", "chance"},
    controls.Overhead: {"T", "impl", "round", "seconds"},
    trained.ShortListOps: COMPARED,
    trained.LongListOps: COMPARED,
    trained.Shapes: COMPARED,
    trained.Reviews: COMPARED,
}
LEARNED = (trained.ShortListOps, trained.LongListOps, trained.Shapes, trained.Reviews, controls.Leak)


@pytest.fixture(scope="module")
def rows():
    """Every experiment at tier ci, smaller still."""
    return {
        experiment: run_experiment(dataclasses.replace(experiment.at("ci"), **SMALL[experiment]), seed=3, device="cpu")
        for experiment in experiments.EXPERIMENTS
    }


@pytest.mark.parametrize("experiment", experiments.EXPERIMENTS, ids=lambda one: one.__name__)
def test_rows_have_the_promised_columns_and_no_failure(rows, experiment):
    table = rows[experiment]
    assert "failure" not in table.columns
    assert COLUMNS[experiment] <= set(table.columns)
    assert set(experiment.deterministic) <= set(table.columns)
    assert np.isfinite(table.select_dtypes("number").to_numpy()).all()


def test_exact_claims_hold_as_expected_on_other_instances(rows):
    small = {forms.LuckyHeads, rule_experiments.Rules, *LEARNED}
    for claim in claims.CLAIMS:
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


def test_the_jacobian_is_that_of_finite_differences():
    layers = instances.random_layers(2, 3, 1, 2, generator=stream(2, "layers"), dtype=torch.float64, impl="reference")
    x = instances.normal((2, 4, 3), stream(2, "tokens"))
    size = experiments.jacobian(layers, x.clone())
    step, numeric = 1e-6, torch.zeros(2, 4, 4, dtype=torch.float64)
    with torch.no_grad():
        for t in range(4):
            for c in range(3):
                moved = torch.zeros_like(x)
                moved[:, t, c] = step
                slope = (layers(x + moved) - layers(x - moved)) / (2 * step)
                numeric[:, :, t] += slope.square().sum(dim=-1)
    assert torch.allclose(size, numeric.sqrt(), rtol=1e-6, atol=1e-8)


def test_random_layers_draw_every_weight():
    layers = instances.random_layers(3, 8, 2, 3, generator=stream(0, "every"), dtype=torch.float64)
    assert isinstance(layers, HKTAttention)
    for weight in layers.parameters():
        assert weight.flatten(1).std(dim=1).min() > 0
        assert not torch.equal(weight[0], weight[1])


def test_score_rounding_covers_a_float32_layer_and_is_not_absurd():
    for dtype in (torch.float32, torch.float64):
        layers = instances.random_layers(4, 6, 1, 3, generator=stream(0, "rounding"), dtype=torch.float64)
        x = instances.normal((4, 9, 6), stream(0, "x"))
        with torch.no_grad():
            q, k, alpha = layers.scores.features(x)
        bound = instances.score_rounding([a.to(dtype) for a in q], [b.to(dtype) for b in k], alpha.to(dtype))
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


def test_corrections_and_distances_are_held_against_their_bounds():
    table = pd.DataFrame({"correction": [0.3, -0.2, -0.1], "gaussian": [0.1, 0.4, 0.2], "bound": 1e-9})
    table["instance"] = [0, 1, 1]
    assert measures.overrated(table).n == measures.lowest_correction(table).n == 2
    assert measures.overrated(table).value == pytest.approx(0.5)
    assert measures.overrated(table.assign(gaussian=0.1)).value == pytest.approx(2.0)
    table = pd.DataFrame({"process": ["fgn", "fgn", "ar1"], "level": 1, "variance": [0.5, 0.6, 9.0], "closed": 0.5})
    assert measures.self_similar(table).value > 1e6  # 20 % off
    assert measures.self_similar(table.query("variance == 0.5")).value == 0
    table = pd.DataFrame({"p": 2, "n": [3, 3, 9], "b": [4.0, 4.1, 7.0], "bound": 0.05})  # b is free where n > p + 1
    assert measures.blind(table).value == pytest.approx(2.0)


def test_samples_that_tell_laws_apart():
    offsets = {
        "a": (0.0, 0.0),
        "b": (1.0, 5.0),
        "c": (9.0, 9.0),
    }  # at n = 10 bars overlap, at 40 none do
    rows = [
        {"p": p, "n": n, "law": law, "b": offset[n == 40] + noise}
        for p in (2, 4)
        for n in (10, 40)
        for law, offset in offsets.items()
        for noise in (-1.0, 0.0, 1.0)
    ]
    assert measures.telling_samples(pd.DataFrame(rows)) == 40 / 4
    assert measures.telling_samples(pd.DataFrame(rows).query("n == 10")) == float("inf")


def test_rank_is_measured_only_where_its_bound_says_something(rows):
    found = rows[experiments.Agreement].query("check == 'rank'")
    assert set(found["T"]) == {32, 45}


def test_uniqueness_notices_another_pair_of_parts():
    splits = forms.Splits(T=4)
    S = instances.normal((3, 4, 4), stream(0, "S"))
    S_s, S_a = (S + S.mT) / 2, (S - S.mT) / 2
    assert float(splits._solved(S, S_s, S_a).max()) < 1e-14
    assert torch.allclose(splits._solved(S, S_s + 0.1, S_a), torch.tensor(0.1).double())
    assert torch.allclose(splits._solved(S, S_s, S_a - 0.1), torch.tensor(0.1).double())


def test_overhead_compares_within_rounds():
    table = pd.DataFrame({"T": 8, "impl": ["fused", "sdpa"] * 3, "round": [0, 0, 1, 1, 2, 2]})
    table = table.assign(seconds=[2.0, 1.0, 4.0, 2.0, 20.0, 10.0])
    assert measures.overhead("fused", "sdpa")(table).value == pytest.approx(2.0)


def test_one_layer_is_one_instance_however_often_it_is_checked():
    table = pd.DataFrame({"check": ["a", "b", "a", "c"], "T": 4, "instance": [0, 0, 1, 2], "gap": [1.0, 3, 2, 9]})
    found = measures.gap("a", "b", unit=("T", "instance"))(table.assign(bound=2.0))
    assert (found.value, found.n) == (1.5, 2)
    assert measures.gap("a", "b")(table.assign(bound=2.0)).n == 3


def test_two_tables_are_witnesses_only_if_their_attention_is_one():
    table = pd.DataFrame({"check": ["split", "split", "output", "output"], "gap": [0.8, 0.5, 0.0, 0.0]})
    assert measures.size("split", same="output")(table).value == 0.5
    table.loc[3, "gap"] = 1e-17
    assert measures.size("split", same="output")(table).value == -1e-17


def test_without_its_mask_the_layer_hides_nothing(monkeypatch):
    """HKT-5.c is refuted by tables that a mask makes equal; where nothing is masked the witness is worth nothing."""
    claim = next(one for one in claims.CLAIMS if one.id == "HKT-5.c")
    small = dataclasses.replace(forms.Splits.at("ci"), instances=4)
    assert claim.judge(claim.measure(run_experiment(small, seed=3, device="cpu")))[0] == "fails"
    monkeypatch.setattr(forms, "causal_mask", lambda S: S)
    assert claim.judge(claim.measure(run_experiment(small, seed=3, device="cpu")))[0] == "undecided"


def test_the_claims_on_convolutions_notice_another_kernel(rows):
    """`hkt-convolution`: each row is held against its closed form from both sides."""
    table = rows[experiments.Convolution]
    assert (table.groupby("kernel")["bound"].max() < 1e-4).all()
    for kernel in ("difference", "positive", "layer", "limit"):
        assert measures.convolved(kernel)(table).value <= 1
        for sign in (1, -1):
            assert measures.convolved(kernel)(table.assign(distance=table["closed"] + sign * 1e-3)).value > 1


def test_edgeworth_takes_the_worse_law():
    table = pd.DataFrame({"law": ["a", "a", "b", "b"], "level": [0, 1, 0, 1], "value": [9.0, 1.01, 9.0, 0.98]})
    found = measures.edgeworth("a", "b")(table.assign(predicted=1.0))
    assert (found.value, found.n) == (0.98, 2)


def test_whole_rules_are_counted_in_full():
    """All lists evaluated, a rule is always right; the root's is that of its best guess, recounted here; HKT-9.c."""
    small = rule_experiments.Rules(chunks=2, trees=2000, few=30, depths=(1, 9))
    table = run_condition(small, {"range": "short"}, 3, "cpu").set_index("rule")
    assert table.loc["depth 9", "right"] == table.loc["depth 9", "trees"] == 30
    assert 10 < table.loc["depth 1", "right"] < 30
    law, right = rule_experiments.law_of("short"), 0
    train = law.sample(2000, stream(3, "rules", "short", "law"))
    best = [int(train.labels[train.tokens[:, 0] == OPEN + o].bincount(minlength=10).argmax(dim=0)) for o in range(4)]
    for chunk in range(2):
        test = law.sample(2000, stream(3, "rules", "short", "test", chunk))
        right += sum(
            best[int(code) - OPEN] == label for code, label in zip(test.tokens[:, 0], test.labels, strict=True)
        )
    assert table.loc["root", "right"] == right
    assert table.loc["majority", "right"] + 500 < right


def test_inputs_of_the_stopwatch_have_convex_weights():
    inputs = AttentionInputs(8, d_k=2, levels=3)
    assert torch.allclose(inputs.alpha, torch.full((3,), 1 / 3))


def test_whole_blocks_have_the_rounded_down_number_of_rows(rows):
    """`hkt-cost`: the tables counted over whole blocks against floor(T / 2^l)."""
    for _, row in rows[experiments.Entries].iterrows():
        sizes = theory.level_rows(int(row["T"]), int(row["levels"]), "down")
        assert row["entries_down"] == sum(size**2 for size in sizes)
