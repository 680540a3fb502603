"""The topics: rows, temperatures, measures, figures."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch

from derived.lab.experiment import run_condition, run_experiment
from derived.lab.rng import stream
from derived.papers.homogenized import claims, collapse, errata, noise, odds, slow
from derived.papers.homogenized.chains import layer_counts
from derived.papers.homogenized.model.overlaps import odds_after
from derived.papers.homogenized.odds import error_ratio

EXPERIMENTS = claims.EXPERIMENTS
CLAIM = {claim.id: claim for claim in claims.CLAIMS}
CHAIN = {"layer", "replicate"}
PATHS = {"factors", "replicate", "returned", "y", "recurrent", "transient"}
COLUMNS = {
    odds.Odds: CHAIN | {"kind", "d", "H", "h", "u", "law", "clock"},
    odds.Deep: CHAIN | {"kind", "d", "H", "h", "u", "law", "clock"},
    odds.TwoTokens: CHAIN | {"logit_std", "H", "first", "second_theory"},
    odds.WeakError: {"eta", "H", "h", "replicate", "error"},
    collapse.Cold: CHAIN | {"d", "gamma", "spread", "gamma_theory"},
    collapse.Brakes: {"n", "logit_std", "ode", "near", "hot"},
    noise.Prompts: {"n", "part", "replicate", "distance", "mean_0", "mean_3"},
    noise.PrivateNoise: CHAIN | {"noise", "gamma0", "gamma"},
    slow.SlowPaths: PATHS,
    slow.SlowSteps: PATHS | {"h"},
    slow.Wide: {"kind", "d", "replicate", "moved"},
    errata.Errata: {"erratum", "gap", "limit"},
}


def test_rows_have_the_promised_columns_and_no_failure(rows, complete):
    assert COLUMNS.keys() == {*EXPERIMENTS}
    complete(rows, COLUMNS)


@pytest.mark.parametrize("experiment", [odds.TwoTokens, odds.WeakError, collapse.Cold], ids=lambda one: one.__name__)
def test_chains_have_the_temperature_of_their_rows(experiment, has_its_temperature):
    has_its_temperature(odds if experiment is not collapse.Cold else collapse, experiment)


def test_rows_follow_the_seed():
    small = odds.Odds.at("tiny")
    for condition in small.conditions():
        first, again, other = (run_condition(small, condition, seed, "cpu") for seed in (0, 0, 1))
        pd.testing.assert_frame_equal(first, again)
        assert not np.allclose(first["u"], other["u"])


def test_the_deepest_recorded_layer_shows_the_last_tau():
    assert layer_counts([0.6, 3.0], 0.06**0.5, 2) == [20, 100]


def table_of_odds(shift: float) -> pd.DataFrame:
    """Blocks whose overlap misses the law by a shift, give or take a little."""
    g, tables = stream(6, "odds"), []
    for h in (0.25, 1.0):
        for layer, law in ((0, 0.02), (4, 0.5)):
            u = law + shift * (layer > 0) + 0.01 * torch.randn(40, generator=g).numpy()
            tables.append(pd.DataFrame({"h": h, "layer": layer, "replicate": range(40), "u": u, "law": law}))
    return pd.concat(tables).assign(kind="block", d=512, H=1, clock=0.8)


def test_blocks_on_the_law_are_told_from_those_off_it():
    """HT-25.b: within 0.06, and neither motionless tokens nor the clock of small steps."""
    claim = CLAIM["HT-25.b"]
    for shift, verdict in ((0.02, "holds"), (-0.1, "fails"), (0.1, "fails")):
        assert claim.judge(claim.measure(table_of_odds(shift)))[0] == verdict
    assert claim.judge(claim.control(table_of_odds(0.02)))[0] == "fails"
    assert claim.control(table_of_odds(0.02)).value == pytest.approx(-0.48, abs=0.01)
    assert claim.judge(claim.comparison[1](table_of_odds(0.02)))[0] == "fails"


def test_the_figure_says_where_its_blocks_end(rows, tells):
    last = rows[odds.Odds].query("kind == 'block' and h == 1 and H == 8").groupby("layer")["u"].mean()
    tells(odds.alike(rows[odds.Odds]), f"scale 1, {last.iloc[-1]:.2f} after {last.index[-1]} layers")


def test_a_causal_law_without_later_tokens_is_that_of_one():
    """Two tokens: the first reads itself alone."""
    law = odds.causal_law(torch.eye(2, dtype=torch.float64)[None], 1.0, [0, 1])
    R = (0 + 0.5) / (2 * 1.5) ** 0.5  # <m_1, m_2> = 1/2, <m_1, m_1> = 1, <m_2, m_2> = 1/2
    assert law[:, 0] == pytest.approx([0.5, (1 + R) / 2])


def table_of_errors(big: float, small: float) -> pd.DataFrame:
    drawn = 0.001 * torch.randn(2, 30, generator=stream(6, "errors"), dtype=torch.float64).numpy()
    one, other = (pd.DataFrame({"H": 1, "error": e + part}) for e, part in zip((big, small), drawn, strict=True))
    return pd.concat([one.assign(eta=0.8), other.assign(eta=0.4)])


@pytest.mark.parametrize(("large", "verdict"), [(-0.12, "holds"), (-0.06, "fails")])
def test_an_error_of_order_one_is_told_from_one_of_order_two(large, verdict):
    claim = CLAIM["HT-6.a"]
    assert claim.judge(claim.measure(table_of_errors(large, -0.03)))[0] == verdict


def test_error_ratio_covers_the_truth_and_is_open_where_the_small_error_may_vanish():
    found = error_ratio((0.8, 1), (0.4, 1))(table_of_errors(-0.06, 0.02))
    assert 2 < found.low < 3 < found.high
    assert error_ratio((0.8, 1), (0.4, 1))(table_of_errors(-0.06, 0.0)).high == np.inf


def test_a_time_that_is_missing_leaves_its_claim_undecided():
    n, logit_std = (each.ravel() for each in np.meshgrid([8, 32], [0.0, 1.0, 2.0]))
    table = pd.DataFrame({"n": n, "logit_std": logit_std, "ode": np.log(n + 1.0) + logit_std, "hot": np.log(n + 1.0)})
    colder, longer = CLAIM["HT-9.c"].measure, CLAIM["HT-9.e"].measure
    assert (colder(table).value, longer(table).value) == (pytest.approx(1.0), pytest.approx(np.log(33 / 9)))
    table.loc[2, "ode"] = np.nan
    for each in (colder, longer):
        with pytest.raises(ValueError, match=r"1 of . rows have no number"):
            each(table)


def test_two_prompts_with_other_weights_do_not_come_together(monkeypatch):
    """The weights are the same for both prompts because their generator is; with fresh ones the distance stays."""
    small = dataclasses.replace(noise.Prompts.at("tiny"), tokens=(64,), parts=1, replicates=6, d=6, tau=2.0)
    condition = small.conditions()[0]
    options = {"seed": 0, "device": torch.device("cpu"), "dtype": torch.float64}
    same = small.run(condition, **options)["distance"].mean()
    calls = []

    def fresh(seed, *names, **more):
        calls.append(names)
        return stream(seed, *names, len(calls), **more)

    monkeypatch.setattr(noise, "stream", fresh)
    assert small.run(condition, **options)["distance"].mean() > 3 * same


def test_common_noise_is_the_variance_over_weights():
    values = 0.5 * torch.randn(400, 2, generator=stream(8, "weights"), dtype=torch.float64).numpy()
    table = pd.DataFrame({"n": 8, "part": 0, "replicate": range(400), "mean_0": values[:, 0], "mean_1": values[:, 1]})
    found = noise.common_noise(table)
    assert found.low < 0.5 < found.high
    assert found.n == 200


def test_slow_paths_run_for_their_time_on_the_clock(monkeypatch):
    layers = []

    def count(R, h, d, factors, *, generator):
        layers.append(h)
        return R

    monkeypatch.setattr(slow, "cloud_layer", count)
    small = dataclasses.replace(slow.SlowPaths.at("tiny"), factors=(0,))
    run_experiment(small, seed=0, device="cpu")
    assert sum(layers) / small.d == pytest.approx(small.time)


def test_the_line_through_three_steps_meets_the_limit_at_step_zero():
    """HT-13.e: shares on a line lead to its end, with the error of the sum; a share that does not move is refused."""
    shares = {0.025: 780, 0.05: 760, 0.1: 720, 0.2: 100}
    table = pd.concat(
        pd.DataFrame({"factors": 2, "h": h, "returned": np.arange(1000) < count, "recurrent": 0.8})
        for h, count in shares.items()
    )
    claim = CLAIM["HT-13.e"]
    found = claim.measure(table)
    assert (found.value, found.n) == (pytest.approx(0.0), 1000)
    weights = np.linalg.pinv(np.array([[1, 0.025], [1, 0.05], [1, 0.1]]))[0]
    variance = sum(w**2 * p * (1 - p) / 1000 for w, p in zip(weights, (0.78, 0.76, 0.72), strict=True))
    assert found.error == pytest.approx(variance**0.5)
    assert claim.control(table).value == pytest.approx(-0.7)
    assert claim.judge(claim.measure(table.assign(returned=table["h"] > 0.1)))[0] == "fails"


def test_with_a_mask_a_long_prompt_starts_sooner_and_finishes_later():
    """From 64 tokens at right angles, where what two tokens read overlaps by 1 / max(i, j), twice 1/n on average."""
    masked = odds.causal_law(torch.eye(64, dtype=torch.float64)[None], 1.0, [1, 6, 12])[:, 0]
    free = np.array([float(odds_after(1 / 64, 1.0, layer)) for layer in (1, 6, 12)])
    later = np.maximum.outer(np.arange(1, 65), np.arange(1, 65))
    assert 1.9 < 64 * np.mean(1 / later) < 2
    assert (masked[:2] > free[:2] + 0.01).all()
    assert masked[2] < free[2] - 0.005
