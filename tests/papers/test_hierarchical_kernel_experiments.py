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
    trained,
    training,
)
from derived.papers.hierarchical_kernel import rules as rule_experiments
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


def test_every_claim_rests_on_an_experiment_of_the_list_or_gives_a_reason():
    for claim in claims.CLAIMS:
        assert claim.experiment in experiments.EXPERIMENTS or (claim.experiment is None and claim.reason)
        assert claim.experiment is None or set(claim.expected) <= set(claim.experiment.tiers)


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


def test_kinds_share_data_batches_and_the_weights_they_have_in_common():
    small = dataclasses.replace(trained.ShortListOps.at("ci"), **TRAINED)
    models = {kind: small.model(kind, seed=4, device=torch.device("cpu"), dtype=torch.float32) for kind in small.kinds}
    plain, hkt = (models[kind].blocks[0].attention for kind in ("plain", "hkt"))
    assert torch.equal(plain.W_Q, hkt.scores.W_Q[0])
    assert torch.equal(plain.W_V, models["wide"].blocks[0].attention.W_V)
    assert torch.equal(models["plain"].E, models["hkt-average"].E)
    tables = [run_condition(small, {"kind": kind, "part": 0}, 0, "cpu") for kind in ("plain", "hkt")]
    assert (tables[0]["rule"].iloc[:2].to_numpy() == tables[1]["rule"].iloc[:2].to_numpy()).all()


def test_replicates_have_data_of_their_own():
    small = dataclasses.replace(trained.ShortListOps.at("ci"), **TRAINED)
    found = run_condition(small, {"kind": "plain", "part": 0}, 0, "cpu")
    assert found.loc[found["block"] == 0, "rule"].nunique() == 2  # the rule's accuracy depends on the data alone


def test_every_seed_and_part_has_initial_weights_of_its_own(monkeypatch):
    small, seeds, model = dataclasses.replace(trained.ShortListOps.at("ci"), **TRAINED), [], trained.Comparison.model

    def noted(self, kind, *, seed, **facts):
        seeds.append(seed)
        return model(self, kind, seed=seed, **facts)

    monkeypatch.setattr(trained.Comparison, "model", noted)
    for seed in (0, 1):
        for part in (0, 1):
            assert "failure" not in run_condition(small, {"kind": "plain", "part": part}, seed, "cpu")
    assert len(set(seeds)) == 4


def test_replicates_do_not_depend_on_how_many_stand_beside_them():
    """Losses of separate networks are summed, so their gradients never mix."""
    small = dataclasses.replace(trained.ShortListOps.at("ci"), **TRAINED | {"batch_size": 4})
    tables = {}
    for count in (1, 2):
        one = dataclasses.replace(small, replicates=count)
        data = training.stack([one.task(stream(0, "train", 0, r), 8) for r in range(count)])
        model = one.model("hkt", seed=0, device=torch.device("cpu"), dtype=torch.float64)
        order = torch.arange(8).expand(count, -1)
        for _ in range(2):
            batch = data.take(order)
            training.per_network_loss(model(batch.tokens, batch.lengths), batch.labels).sum().backward()
        tables[count] = model.blocks[0].attention.scores.W_Q[1].grad[0]
    assert torch.allclose(tables[1], tables[2], rtol=1e-9, atol=1e-12)


def test_training_learns_a_task_that_one_symbol_decides():
    tokens = torch.randint(1, 4, (2, 64, 5), generator=stream(1, "easy"))
    data = training.Data(tokens, torch.full((2, 64), 5), tokens[:, :, 0] - 1)
    facts = {"vocabulary": 4, "classes": 3, "max_length": 5, "width": 16, "depth": 1, "num_networks": 2}
    model = trained.SequenceClassifier(**facts, attention="hkt", levels=2)
    losses = training.train(model, data, steps=120, batch_size=16, lr=5e-3, generator=stream(1, "batches"))
    loss, accuracy = training.evaluate(model, data)
    assert losses.shape == (2, 120)
    assert (accuracy > 0.95).all()
    assert (loss < losses[:, 0] / 4).all()


def test_the_rate_rises_then_falls_to_zero():
    rates = np.array([training.rate(step, 100) for step in range(100)])
    assert rates.argmax() in (9, 10)
    assert rates.max() == 1
    assert rates[-1] < 1e-3
    assert training.rate(0, 1) == 1


def test_the_leak_looks_too_good_and_only_where_it_leaks():
    small = dataclasses.replace(controls.Leak.at("ci"), replicates=2, steps=200, num_test=300)
    table = run_experiment(small, seed=5, device="cpu").assign(gain=lambda t: t["loss"] - t["chance"])
    means = table.groupby("kind")["gain"].mean()
    assert means["hkt-block"] < -0.1
    assert means[["plain", "hkt"]].abs().max() < 0.02


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


def compared(gains: np.ndarray) -> pd.DataFrame:
    """Rows of a comparison in which HKT gains ``gains`` over plain attention."""
    table = pd.DataFrame({"part": 0, "replicate": np.arange(len(gains)), "block": 0, "level": 0, "rule": 0.3})
    both = [table.assign(kind="plain", accuracy=0.5), table.assign(kind="hkt", accuracy=0.5 + gains)]
    return pd.concat([*both, table.assign(kind="plain", accuracy=9.0, level=1)], ignore_index=True)


def test_gain_is_the_paired_difference_and_ignores_other_levels():
    found = measures.gain("plain")(compared(np.array([0.01, 0.02, 0.03, 0.02])))
    assert found.value == pytest.approx(0.02)
    assert found.n == 4
    assert found.low < 0.02 < found.high


def test_gain_rejects_what_is_not_there():
    noise = torch.randn(16, generator=stream(7, "noise"), dtype=torch.float64).numpy()
    claim = next(one for one in claims.CLAIMS if one.id == "HKT-E1.e")
    assert claim.judge(measures.gain("plain")(compared(0.005 * noise - 0.03)))[0] == "fails"
    assert claim.judge(measures.gain("plain")(compared(0.005 * noise + 0.03)))[0] == "holds"
    assert claim.judge(measures.gain("plain")(compared(0.02 * noise)))[0] == "undecided"


def test_over_rule_takes_the_worst_kind():
    found = measures.over_rule(compared(np.array([0.1, 0.12, 0.11, 0.13])))
    assert found.value == pytest.approx(0.2)


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
    assert measures.overrated(table).value == pytest.approx(0.5)
    assert measures.overrated(table.assign(gaussian=0.1)).value == pytest.approx(2.0)
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


def test_levels_are_measured_from_one_row_per_sequence():
    small = dataclasses.replace(trained.ShortListOps.at("ci"), **TRAINED)
    data = training.stack([small.task(stream(0, "test", 0, r), 70) for r in range(2)])
    model = small.model("hkt", seed=0, device=torch.device("cpu"), dtype=torch.float32)
    found = trained.levels_of(model, data)
    assert len(found) == 2 * 2 * 3
    sums = found.groupby(["replicate", "block"])["alpha"].sum()
    assert np.allclose(sums, 1)
    first = trained.normalise(model.embed(data.tokens.long()))[0, 0, int(data.lengths[0, 0]) // 2]
    at = found[(found["replicate"] == 0) & (found["block"] == 0) & (found["level"] == 0)]
    assert first.shape == (8,)
    assert 0 < at["variance"].item() < 3


def test_reading_one_token_is_the_rule_of_the_root():
    small = dataclasses.replace(trained.ShortListOps.at("ci"), **TRAINED)
    data = training.stack([small.task(stream(0, "root", r), 200) for r in range(2)])
    guess = small.rule(data, data)
    assert set(guess.unique().tolist()) <= {0, 4, 9}
    share = (guess == data.labels).double().mean(dim=-1)
    assert ((share > 0.2) & (share < 0.45)).all()
