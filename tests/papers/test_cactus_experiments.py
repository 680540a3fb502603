"""Experiments, measures and claims of the chapter: columns at tier ci, tables with known answers, twins of the laws."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch

from derived.lab.experiment import run_condition, run_experiment
from derived.lab.rng import stream
from derived.papers.cactus import claims, divergences, exact, experiments, measures, pairs, positions, trained
from derived.papers.cactus.rules import SpS

SMALL = {
    experiments.RandomPairs: {"pairs": 6, "sizes": (2, 5)},
    experiments.Couplings: {"pairs": 3, "V": 3},
    experiments.ClosedForms: {"instances": 2, "V": 3},
    experiments.Budget: {"points": 40, "budgets": 5},
    experiments.NearOptimal: {"pairs": 12, "V": 6},
    experiments.TypicalProgram: {"instances": 12, "V": 4},
    experiments.FlatFamily: {"largest": 4},
    experiments.Blocks: {"replicates": 2, "tokens": 3},
    experiments.Limits: {"pairs": 4},
    experiments.TrainedPair: {"prompts": 5, "steps": 3, "draft_steps": 2},
    experiments.SamplerTime: {"sizes": (20,), "repeats": 3},
}
COLUMNS = {
    experiments.RandomPairs: {"rule", "knob", "acceptance", "tv", "kl", "law_gap", "price_gap", "outside", "bound"},
    experiments.Couplings: {"best", "promised", "gap", "bound"},
    experiments.ClosedForms: {"divergence", "gamma", "searched", "gap", "spent_gap", "bound"},
    experiments.SecondOrder: {"q_n", "delta", "cost_gap", "predicted_gap", "root_gap", "predicted_root"},
    experiments.Budget: {"q_n", "delta", "gamma", "kl", "ratio", "over", "excess", "bound"},
    experiments.FlatFamily: {"V", "delta", "kl", "ratio", "predicted", "gap", "bound"},
    experiments.NearOptimal: {"kind", "rule", "gain", "best_gain", "kl", "kl_cactus"},
    experiments.TypicalProgram: {"q_n", "closed", "program", "gap", "kept"},
    experiments.Blocks: {"check", "replicate", "gap", "bound"},
    experiments.Limits: {"limit", "gap", "bound"},
    experiments.TrainedPair: {
        "shape",
        "draft",
        "rule",
        "knob",
        "matched",
        "mode",
        "prompt",
        "kept",
        "valid",
        "seconds",
    },
    experiments.SamplerTime: {"B", "V", "repeat", "exact", "cactus", "tas", "rows"},
}
SPARSE = {"ratio", "kl_share", "tv_share", "law_gap", "kl_cactus", "acceptance_cactus", "gain", "best_gain"}


@pytest.fixture(scope="module")
def rows():
    """Every experiment at tier ci, smaller still."""
    found = {}
    for experiment in experiments.EXPERIMENTS:
        small = dataclasses.replace(experiment.at("ci"), **SMALL.get(experiment, {}))
        found[experiment] = run_experiment(small, seed=0, device="cpu").assign(tier="ci", recorded=False)
    return found


@pytest.mark.parametrize("experiment", experiments.EXPERIMENTS, ids=lambda one: one.__name__)
def test_rows_have_the_promised_columns_and_no_failure(rows, experiment):
    table = rows[experiment]
    assert "failure" not in table.columns
    assert COLUMNS[experiment] <= set(table.columns)
    assert set(experiment.deterministic) <= set(table.columns)
    numbers = table.select_dtypes("number").drop(columns=list(SPARSE), errors="ignore")
    assert not numbers.isna().any(axis=None)


def test_every_claim_rests_on_an_experiment_of_the_list_or_gives_a_reason():
    for claim in claims.CLAIMS:
        assert claim.experiment in experiments.EXPERIMENTS or (claim.experiment is None and claim.reason)
        assert claim.experiment is None or set(claim.expected) <= set(claim.experiment.tiers)


def test_claims_on_laws_get_the_expected_verdict_from_small_rows(rows):
    statistics = {experiments.TrainedPair, experiments.SamplerTime, experiments.NearOptimal, None}
    for claim in (one for one in claims.CLAIMS if one.experiment not in statistics):
        verdict, _ = claim.judge(claim.measure(rows[claim.experiment]))
        assert verdict == claim.expected["ci"], claim.id


def test_trained_claims_can_be_measured_from_the_rows_of_a_toy(rows):
    table = rows[experiments.TrainedPair]
    for claim in (one for one in claims.TRAINED if one.id not in ("CAC-12.e", "CAC-13.d", "CAC-13.e")):
        assert np.isfinite(claim.measure(table).value)


def test_rules_of_one_setting_start_from_the_same_prompts(rows):
    table = rows[experiments.TrainedPair].query("mode == 'batch'")
    assert (table.groupby(["shape", "draft", "rule", "knob", "matched"]).size() == 5).all()


def test_rows_follow_the_seed():
    small = dataclasses.replace(experiments.RandomPairs.at("ci"), **SMALL[experiments.RandomPairs])
    condition = small.conditions()[1]
    first, again, other = (run_condition(small, condition, seed, "cpu") for seed in (0, 0, 1))
    pd.testing.assert_frame_equal(first, again)
    assert not np.allclose(first["acceptance"], other["acceptance"])


def test_drafted_law_is_the_output_law_and_sees_a_wrong_gamma():
    p, q = pairs.random_pairs(40, 7, "noised", stream(3, "pairs"))
    gamma = divergences.gamma_constrained(q, 0.3, "chi2")
    rule = pairs.rule_of("cactus", 0.15)
    assert torch.allclose(positions.drafted_law(p, q, gamma), exact.output_law(p, q, rule), rtol=0, atol=1e-14)
    assert not torch.allclose(positions.drafted_law(p, q, 1.1 * gamma), exact.output_law(p, q, rule), rtol=0, atol=1e-3)


def test_random_pairs_are_laws_and_noised_ones_are_nearer():
    distance = {}
    for kind in pairs.KINDS:
        p, q = pairs.random_pairs(200, 9, kind, stream(4, kind))
        for law in (p, q):
            assert (law >= 0).all()
            assert torch.allclose(law.sum(dim=-1), torch.ones(200).double(), rtol=0, atol=1e-13)
        distance[kind] = divergences.divergence(p, q, "tv").mean(dim=0)
    assert distance["noised"] < 0.6 * distance["independent"]
    with pytest.raises(ValueError, match="kind"):
        pairs.random_pairs(2, 3, "other", stream(0, "x"))


def test_dirichlet_laws_have_the_variance_of_dirichlet():
    found = pairs.dirichlet(torch.full((40_000,), 2.0).double(), 4, stream(5, "dirichlet"))
    exact_variance = (1 / 4) * (3 / 4) / (4 * 2 + 1)
    assert abs(found.var(dim=0).mean(dim=0).item() / exact_variance - 1) < 0.03


@pytest.mark.parametrize("name", [*pairs.KNOBS, "topk"])
def test_match_sets_the_knob_to_the_acceptance(name):
    p, q = pairs.random_pairs(200, 8, "noised", stream(6, "pairs"))
    span = exact.acceptance_rate(p, q, SpS()).mean(dim=0).item()
    target = span + 0.4 * (1 - span)
    knob = pairs.match(name, p, q, target)
    found = exact.acceptance_rate(p, q, pairs.rule_of(name, knob)).mean(dim=0).item()
    assert abs(found - target) < (0.2 if name == "topk" else 0.01 if name == "tas" else 1e-5)


def test_best_coupling_of_equal_and_of_disjoint_laws():
    law = np.array([0.2, 0.5, 0.3])
    assert pairs.best_coupling(law, law) == pytest.approx(1.0, abs=1e-9)
    assert pairs.best_coupling(np.array([1.0, 0, 0]), np.array([0, 0.5, 0.5])) == pytest.approx(0.0, abs=1e-9)


def test_the_optimiser_knows_total_masses():
    q = np.array([0.25, 0.75])
    assert experiments._searched(q, 0, 0.12, "chi2") == pytest.approx(0.25 + (0.12 * 0.1875) ** 0.5, abs=1e-6)


def trained_rows(shift: float) -> pd.DataFrame:
    """Two pairs of models, 400 prompts; the budget 1 keeps one draft more per block and is valid less often."""
    draw = torch.rand(2, 400, generator=stream(7, "valid"), dtype=torch.float64).numpy()
    tables = []
    for pair in (0, 1):
        for knob, share in ((0.0, 0.8), (1.0, 0.8 - shift)):
            facts = {"pair": pair, "shape": "plain", "draft": "trained", "rule": "cactus", "knob": knob}
            facts |= {"matched": 0.0, "mode": "batch", "blocks": 10.0, "kept": 30.0 + 10 * knob, "seconds": 1.0}
            valid = (draw[pair] < share).astype(float)
            tables.append(pd.DataFrame({**facts, "prompt": range(400), "valid": valid}))
    return pd.concat(tables, ignore_index=True)


def test_paired_takes_the_pair_at_the_edge_and_covers_the_difference():
    settings = [{"rule": "cactus", "shape": "plain", "matched": 0.0, "draft": "trained", "knob": k} for k in (-1, 0.0)]
    found = measures.paired("valid", *settings)(trained_rows(0.2))
    assert found.low < -0.2 < found.high < -0.1
    assert found.n == 400
    gained = measures.paired("al", *settings)(trained_rows(0.2))
    assert (gained.value, gained.low, gained.high) == pytest.approx((1.0, 1.0, 1.0))


def test_bootstrap_agrees_with_students_interval_and_is_reproducible():
    values = torch.randn(500, generator=stream(8, "values"), dtype=torch.float64).numpy() + 0.3
    found, again = measures.bootstrap(values), measures.bootstrap(values)
    assert found == again
    assert found.error == pytest.approx(values.std() / 500**0.5, rel=0.05)
    assert found.high - found.low == pytest.approx(2 * 3.29 * found.error, rel=0.12)
    with pytest.raises(ValueError, match="1 prompts"):
        measures.bootstrap(np.ones(1))


def test_cost_slope_reads_off_a_power():
    table = pd.DataFrame({"q_n": 0.1, "delta": [1e-6, 1e-5, 1e-4]}).assign(cost_gap=lambda t: -3 * t["delta"] ** 1.5)
    assert measures.cost_slope(table).value == pytest.approx(1.5)


def test_gain_share_is_a_ratio_of_totals():
    table = pd.DataFrame({"gain": [0.1, 0.3], "best_gain": [0.2, 0.3]})
    assert measures.gain_share(table).value == pytest.approx(0.8)


def test_shapes_are_those_of_the_published_script():
    assert trained.SHAPES["truncated"] == (0.6, 0.95)
    assert trained.SHAPES["plain"] == (1.0, 1.0)
