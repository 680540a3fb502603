"""Experiments, measures and claims of the chapter: columns at tier ci, tables with known answers, twins of the laws."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch

from derived.lab.experiment import run_condition, run_experiment
from derived.lab.rng import stream
from derived.papers.cactus import (
    claims,
    divergences,
    exact,
    experiments,
    measures,
    mutations,
    pairs,
    positions,
    theory,
    trained,
    writing,
)
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
    experiments.PairTime: {"steps": 3, "draft_steps": 2},
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
    experiments.TrainedPair: {"shape", "draft", "rule", "knob", "matched", "prompt", "kept", "valid", "surprise"},
    experiments.PairTime: {"shape", "rule", "knob", "matched", "prompt", "tokens", "seconds"},
    experiments.SamplerTime: {"B", "V", "repeat", "exact", "cactus", "tas", "rows"},
}
SPARSE = {"ratio", "kl_share", "tv_share", "kl_cactus", "acceptance_cactus", "gain", "best_gain"}


@pytest.mark.parametrize("experiment", experiments.EXPERIMENTS, ids=lambda one: one.__name__)
def test_rows_have_the_promised_columns_and_no_failure(rows, experiment):
    table = rows[experiment]
    assert "failure" not in table.columns
    assert COLUMNS[experiment] <= set(table.columns)
    assert set(experiment.deterministic) <= set(table.columns)
    numbers = table.select_dtypes("number").drop(columns=list(SPARSE), errors="ignore")
    assert not numbers.isna().any(axis=None)


def test_claims_on_laws_get_the_expected_verdict_from_small_rows(rows):
    statistics = {experiments.TrainedPair, experiments.PairTime, experiments.SamplerTime, experiments.NearOptimal, None}
    for claim in (claims.CONTROL, *(one for one in claims.CLAIMS if one.experiment not in statistics)):
        verdict, _ = claim.judge(claim.measure(rows[claim.experiment]))
        assert verdict == claim.expected["ci"], claim.id


SHARES = {  # (shape, draft, rule, knob or matched): how many of 40 texts are without fault
    **{("truncated", "trained", "cactus", 0.0): 30, ("truncated", "trained", "cactus", 1.0): 29},
    **{("plain", "trained", "cactus", 0.0): 28, ("plain", "trained", "cactus", 0.01): 27},
    **{("plain", "trained", "cactus", 1.0): 10, ("plain", "unrelated", "cactus", 0.0): 25},
    **{("plain", "unrelated", "cactus", 1.0): 5, ("truncated", "trained", "interp", 1.0): 20},
    **{("truncated", "trained", "tas", 1.0): 26, ("truncated", "trained", "topk", 1.0): 24},
    **{("plain", "trained", "interp", 0.01): 19, ("plain", "trained", "mentored", 0.01): 31},
    **{("plain", "trained", "lenience", 0.01): 33},
}
#: What each claim is of these: a difference of shares in fortieths, or (12.a, d, g) of what goes with the share.
DIFFERENCES = {
    **{
        "CAC-12.a": -1,
        "CAC-12.b": -1,
        "CAC-12.c": -18,
        "CAC-12.d": -2,
        "CAC-12.f": -20,
        "CAC-12.g": -20,
        "CAC-12.h": -1,
    },
    **{"CAC-13.a": 9, "CAC-13.b": 3, "CAC-13.c": 5, "CAC-13.d": 8, "CAC-13.e": -4, "CAC-13.f": -6},
}


@pytest.mark.parametrize(
    "claim", [one for one in claims.TRAINED if one.experiment is experiments.TrainedPair], ids=lambda one: one.id
)
def test_every_trained_claim_picks_its_own_rows(claim):
    tables = []
    for (shape, draft, rule, knob), good in SHARES.items():
        facts = {"shape": shape, "draft": draft, "rule": rule, "knob": knob, "prompt": range(40)}
        facts |= {"matched": 0.0 if rule == "cactus" else knob, "kept": good / 4, "blocks": 10.0}
        facts |= {"valid": (np.arange(40) < good).astype(float), "surprise": good / 20}
        tables += [pd.DataFrame({"pair": pair, **facts}) for pair in (0, 1)]
    found = claim.measure(pd.concat(tables, ignore_index=True))
    assert found.value == pytest.approx(DIFFERENCES[claim.id] / 40)
    assert found.n == 40


def test_knobs_are_set_on_other_prompts_than_those_that_judge(monkeypatch):
    begun = {"write": [], "blocks": []}
    for name, calls in begun.items():
        real = getattr(trained, name)

        def note(draft, verifier, ids, *, real=real, calls=calls, **options):
            calls.append(ids[:, :16].clone())
            return real(draft, verifier, ids, **options)

        monkeypatch.setattr(trained, name, note)
    small = dataclasses.replace(experiments.TrainedPair.at("ci"), **SMALL[experiments.TrainedPair], calibration=7)
    assert "failure" not in run_experiment(small, seed=0, device="cpu")
    judged, tuned = ({tuple(row) for ids in begun[name] for row in ids.tolist()} for name in ("write", "blocks"))
    assert (len(judged), len(tuned)) == (5, 7)
    assert not judged & tuned


def test_rules_of_one_setting_start_from_the_same_prompts_and_noise(monkeypatch):
    begun = []

    def note(*models, generator, **options):
        begun.append((models[-1].clone(), generator.get_state()))
        return writing.write(*models, generator=generator, **options)

    monkeypatch.setattr(trained, "write", note)
    small = dataclasses.replace(experiments.TrainedPair.at("ci"), **SMALL[experiments.TrainedPair])
    assert "failure" not in run_experiment(small, seed=0, device="cpu")
    assert len(begun) == 2 * (2 + 5 + 2)  # laws; budgets, rivals, the unrelated draft
    for ids, state in begun:
        assert torch.equal(ids, begun[0][0])
        assert torch.equal(state, begun[0][1])
    assert len(ids) == 5
    assert (ids[:, 1 : small.prompt] > 0).all()
    assert (ids[:, small.prompt :] == 0).all()


def test_the_clock_runs_every_setting_on_every_prompt_in_turning_order(rows):
    table = rows[experiments.PairTime]
    for _, part in table.groupby("shape"):
        orders = [list(zip(one["rule"], one["knob"], strict=True)) for _, one in part.groupby("prompt")]
        assert orders[0][1:] + orders[0][:1] == orders[1]
        assert orders[0][0] == ("alone", 0.0)
        assert len(set(orders[0])) == 1 + 2 + 5
    assert (table["seconds"] > 0).all()
    assert (table.query("rule == 'alone'")["tokens"] == 10).all()
    assert table.query("rule != 'alone'")["tokens"].between(10, 10 + 3).all()  # the last block may reach beyond the end


def test_speedup_is_that_of_the_slower_pair():
    def timed(pair: int, rule: str, knob: float, cost: float) -> pd.DataFrame:
        facts = {"pair": pair, "shape": "truncated", "rule": rule, "knob": knob, "prompt": range(6), "tokens": 10}
        return pd.DataFrame(facts | {"seconds": 10 * cost * np.linspace(0.9, 1.1, 6)})

    cases = ((0, "alone", 0.0, 3.0), (0, "cactus", 0.0, 9.0), (0, "cactus", 1.0, 2.0), (0, "tas", 5.0, 0.1))
    cases += ((1, "alone", 0.0, 3.0), (1, "cactus", 1.0, 2.5))
    found = measures.speedup(pd.concat([timed(*case) for case in cases]))
    assert found.value == pytest.approx(1.2)
    assert found.n == 6
    assert found.low == pytest.approx(1.2)  # both times rise and fall together


def test_paired_over_all_pairs_covers_each():
    settings = [{"rule": "cactus", "shape": "plain", "matched": 0.0, "draft": "trained", "knob": k} for k in (-1, 0.0)]
    low, high, both = (measures.paired("valid", *settings, sign)(trained_rows(0.2)) for sign in (1, -1, 0))
    assert (both.low, both.high, both.n) == (low.low, high.high, 400)
    assert min(low.value, high.value) <= both.value <= max(low.value, high.value)


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


@pytest.mark.parametrize("name", mutations.MUTATIONS)
def test_mutations_are_seen_by_the_definition_of_the_law(name):
    """`cac-emitted`, `cac-lenience`: each changed line changes the law; two of four leave exactness and price whole."""
    p, q = pairs.random_pairs(100, 7, "noised", stream(9, "pairs"))
    rule, law = mutations.MUTATIONS[name], positions.drafted_law(p, q, theory.gamma_cactus(q, 0.02))
    seen = (exact.output_law(p, q, rule(0.02)) - law).abs().max() > 1e-3
    assert bool(seen) == (name != "none")
    found = mutations.damage(rule, p, q)
    harmless = name not in ("recover from $q$", "raise $p_n$ for $q_n$")
    assert (found.inexact < 1e-12) == harmless
    assert (max(found.outside, found.unpaid) < 1e-12) == (name != "recover from $q$")


def test_every_rule_emits_what_its_definition_says(rows):
    """`cac-emitted`, `cac-lenience`: the law of each rule is that of acceptance and recovery written out by hand."""
    table = rows[experiments.RandomPairs]
    assert set(table["rule"]) == {"cactus", *pairs.RIVALS}
    assert (table["law_gap"] <= table["bound"]).all()


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
            facts |= {"matched": 0.0, "blocks": 10.0, "kept": 30.0 + 10 * knob}
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


def test_intervals_of_several_pairs_hold_jointly():
    table = trained_rows(0.2)
    levels = [measures.LEVEL, 1 - (1 - measures.LEVEL) / 2]
    taken = []

    def note(case, level):
        taken.append(level)
        return measures.mean(case["valid"], level)

    found = measures._over_pairs(table, note)
    assert taken == [levels[1]] * 2
    assert found[0].high - found[0].low > measures.mean(table.query("pair == 0")["valid"], levels[0]).high - (
        measures.mean(table.query("pair == 0")["valid"], levels[0]).low
    )


def test_drafts_kept_per_block_are_a_ratio_of_totals():
    """Not a mean over texts of ratios, which gives a short text's few blocks too much weight; nor is its interval."""
    which = {"rule": "cactus", "shape": "plain", "draft": "trained"}
    table = trained_rows(0.2).query("pair == 0")
    few = table["prompt"] % 4 == 0
    table = table.assign(blocks=np.where(few, 2.0, 10.0), kept=np.where(few, 20.0, 30.0))
    table.loc[table["knob"] == 1, ["blocks", "kept"]] = (5.0, 25.0)
    assert measures.average("al", **which, knob=0.0)(table).value == pytest.approx(110 / 32)
    found = measures.paired("al", which | {"knob": -1}, which | {"knob": 0.0})(table)
    assert found.value == pytest.approx(5 - 110 / 32)
    spread = (
        table.query("knob == 0")["kept"] - 110 / 32 * table.query("knob == 0")["blocks"]
    ).std() / 8  # delta method
    assert found.error == pytest.approx(spread / 400**0.5, rel=0.05)


def test_bootstrap_agrees_with_students_interval_and_is_reproducible():
    values = torch.randn(500, generator=stream(8, "values"), dtype=torch.float64).numpy() + 0.3
    found, again = measures.bootstrap(values), measures.bootstrap(values)
    assert found == again
    assert found.error == pytest.approx(values.std() / 500**0.5, rel=0.05)
    assert found.high - found.low == pytest.approx(2 * 3.29 * found.error, rel=0.12)
    with pytest.raises(ValueError, match="1 prompts"):
        measures.bootstrap(np.ones(1))
    with pytest.raises(ValueError, match="0 prompts"):
        measures.bootstrap(np.ones(0))


def test_cost_slope_reads_off_a_power():
    table = pd.DataFrame({"q_n": 0.1, "delta": [1e-6, 1e-5, 1e-4]}).assign(cost_gap=lambda t: -3 * t["delta"] ** 1.5)
    assert measures.cost_slope(table).value == pytest.approx(1.5)


def test_share_is_a_ratio_of_totals_and_near_optimal_picks_budget_and_kind():
    table = pd.DataFrame({"gain": [0.1, 0.3], "best_gain": [0.2, 0.3], "kind": "noised", "rule": "cactus"})
    table = pd.concat(
        [table.assign(knob=0.25), table.assign(knob=0.01, gain=0.1), table.assign(knob=0.25, kind="x", gain=0.02)]
    )
    assert measures.near_optimal("noised", 0.25)(table).value == pytest.approx(0.8)
    assert measures.near_optimal("noised", 0.01)(table).value == pytest.approx(0.4)
    assert measures.share(table["gain"], 2 * table["gain"]).high == pytest.approx(0.5)


def test_a_rival_stands_at_the_budget_that_it_matches():
    rows = pd.DataFrame({"rule": ["cactus", "cactus", "topk"], "knob": [0.0, 0.1, 3.0], "matched": [0.0, 0.0, 1.0]})
    assert measures.budget(rows).tolist() == [0.0, 0.1, 1.0]


def test_the_control_would_hold_if_total_variation_came_cheaper(rows):
    table = rows[experiments.RandomPairs]
    assert claims.CONTROL.judge(claims.CONTROL.measure(table))[0] == "fails"
    cheaper = table.assign(tv=0.85 * table["tv"])
    assert claims.CONTROL.judge(claims.CONTROL.measure(cheaper))[0] == "holds"


def test_shapes_are_those_of_the_published_script():
    assert trained.SHAPES["truncated"] == (0.6, 0.95)
    assert trained.SHAPES["plain"] == (1.0, 1.0)
