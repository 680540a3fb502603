"""Experiments and measures of the chapter: columns at small sizes, tables with known answers, mutations that show."""

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
import torch

from derived.lab.experiment import run_condition, run_experiment
from derived.lab.rng import stream
from derived.papers.homogenized import claims, cloud, demos, depth, experiments, figures, limits, measures
from derived.papers.homogenized.gram import simulate_gram
from derived.papers.homogenized.slow import mean_cosine

SMALL = {
    experiments.OneToken: {"widths": (3,)},
    experiments.HeadMoments: {"replicates": 4, "heads": 50},
    experiments.OneLayer: {"replicates": 4, "samples": 50},
    experiments.Cosines: {"replicates": 4, "samples": 100},
    experiments.SlowDrift: {"replicates": 4, "samples": 100},
    experiments.FiniteBeta: {"widths": (8, 16), "replicates": 4, "samples": 100},
    experiments.Lipschitz: {"d": 16, "tokens": (2, 8), "pairs": 2, "gammas": (0.3,), "batches": 4, "samples": 10},
    experiments.KernelDistance: {"instances": 5},
    experiments.Angles: {"points": 5},
    experiments.TwoTokens: {"heads": (1, 2), "taus": (0.6, 1.2), "replicates": 4, "batch": 5},
    experiments.WeakError: {"replicates": 4, "batch": 20},
    experiments.Hot: {"replicates": 4, "points": 3, "tau": 1.0},
    experiments.Cold: {"widths": (32, 64), "n": 4, "replicates": 4},
    experiments.Freezing: {"tokens": (8,), "logit_stds": (0.0, 1.0, 8.0), "replicates": 4, "h": 0.1},
    experiments.FinalRate: {"replicates": 4, "tau": 1.0, "points": 3},
    experiments.SlowPaths: {"d": 8, "time": 0.5, "replicates": 6},
    experiments.Clock: {"cases": ((1, 16), (2, 16)), "tau": 1.6, "replicates": 4, "points": 3},
    experiments.Flows: {"steps": (4, 8), "fine": 8, "replicates": 4},
    experiments.SelfAttention: {"cases": ((2, 0.5),)},
    experiments.Interpolation: {"heads": (1, 4), "etas": (0.1,), "depths": (4, 8), "replicates": 48},
    experiments.Prompts: {"tokens": (8, 16), "parts": 2, "replicates": 4, "d": 4},
    experiments.PrivateNoise: {"replicates": 4, "points": 3, "tau": 1.0},
    experiments.Stack: {"d": 16, "n": 4, "tau": 1.0, "points": 3, "replicates": 4},
}
CHAIN = {"layer", "tau", "replicate"}
COLUMNS = {
    experiments.OneToken: {"d", "h", "degree", "rate", "exact", "error"},
    experiments.HeadMoments: {"tokens", "replicate", "quantity", "value", "target"},
    experiments.OneLayer: {"tokens", "replicate", "pair", "drift", "drift_theory", "bracket", "retold"},
    experiments.Cosines: {"d", "factors", "replicate", "kappa"},
    experiments.SlowDrift: {"d", "factors", "R", "replicate", "drift", "bracket"},
    experiments.FiniteBeta: {"d", "ratio", "replicate", "drift", "coldest"},
    experiments.Lipschitz: {"n", "logit_std", "prompts", "pair", "quotient", "gap", "bound"},
    experiments.KernelDistance: {"cloud", "gap", "bound", "quotient"},
    experiments.Angles: {"angle", "u", "gap", "bound"},
    experiments.TwoTokens: CHAIN | {"logit_std", "H", "first", "second_theory"},
    experiments.WeakError: {"eta", "H", "h", "replicate", "error"},
    experiments.Hot: CHAIN | {"d", "m", "u"},
    experiments.Cold: CHAIN | {"d", "gamma", "spread", "gamma_theory"},
    experiments.Freezing: {"n", "logit_std", "ode", "ode_d", "hot", "chain", "replicate"},
    experiments.FinalRate: CHAIN | {"d", "n", "logit_std", "log_missing"},
    experiments.SlowPaths: {"factors", "replicate", "returned", "y", "recurrent", "transient"},
    experiments.Clock: CHAIN | {"H", "L", "eta", "m", "m_theory"},
    experiments.Flows: {"update", "corrector", "replicate", "eta", "grid", "between"},
    experiments.SelfAttention: {"gap", "bound"},
    experiments.Interpolation: {"kind", "eta", "L", "H", "replicate", "m", "m_ode"},
    experiments.Prompts: {"n", "part", "replicate", "distance", "mean_0", "mean_3"},
    experiments.PrivateNoise: CHAIN | {"noise", "gamma0", "gamma"},
    experiments.Stack: CHAIN | {"scale", "H", "m", "m_theory"},
}


@pytest.mark.parametrize("experiment", experiments.EXPERIMENTS, ids=lambda one: one.__name__)
def test_rows_have_the_promised_columns_and_no_failure(rows, experiment):
    table = rows[experiment]
    assert "failure" not in table.columns
    assert COLUMNS[experiment] <= set(table.columns)
    assert set(experiment.deterministic) <= set(table.columns)
    assert np.isfinite(table.drop(columns="chain", errors="ignore").select_dtypes("number").to_numpy()).all()


def test_statements_of_version_one_are_worded_as_retold():
    for claim in claims.CLAIMS:
        assert claim.source != "digest" or claim.where.startswith("version 1")
        assert claim.source != "paper" or claim.where.startswith("abstract")


@pytest.mark.parametrize(
    "experiment",
    [depth.TwoTokens, depth.WeakError, depth.Hot, depth.Cold, depth.Freezing, depth.FinalRate, depth.Clock],
    ids=lambda one: one.__name__,
)
def test_chains_have_the_temperature_of_their_rows(experiment, monkeypatch):
    """The law that a chain takes has the deviation of the condition: a theory made from the same law cannot tell."""
    laws = []

    def note(G, L, eta, H, law, beta, **facts):
        laws.append(law.logit_std(beta))
        return simulate_gram(G, L, eta, H, law, beta, **facts)

    monkeypatch.setattr(depth, "simulate_gram", note)
    small = dataclasses.replace(experiment.at("ci"), **SMALL[experiment])
    for condition in small.conditions():
        laws.clear()
        run_condition(small, condition, 0, "cpu")
        own = {**vars(small), **condition}["logit_std"]
        assert laws == pytest.approx([own] * len(laws))


def test_rows_follow_the_seed():
    small = dataclasses.replace(depth.Hot.at("ci"), **SMALL[depth.Hot])
    first, again, other = (run_condition(small, small.conditions()[0], seed, "cpu") for seed in (0, 0, 1))
    pd.testing.assert_frame_equal(first, again)
    assert not np.allclose(first["m"], other["m"])


# One pair in a uniform cloud ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("factors", [0, 1, 2])
def test_images_have_the_exact_mean_cosine_and_controls_of_mean_zero(factors):
    R = torch.full((200_000,), 0.6, dtype=torch.float64)
    found = cloud.image(R, 10, factors, generator=stream(1, "image", factors))
    exact = 0.6 if factors == 0 else float(mean_cosine(0.6, 10, factors))
    for values, target in ((found.cosine, exact), (found.control, 0.0), (found.length_x.square(), 1.0)):
        error = values.std().item() / len(R) ** 0.5
        assert abs(values.mean().item() - target) <= 5 * error + 1e-12


def literal_cloud_layer(R: float, h: float, d: int, paths: int, generator) -> torch.Tensor:
    """The layer with all its matrices, for A = W W'^T."""
    facts = {"generator": generator, "dtype": torch.float64}
    x, y = torch.zeros(2, d, dtype=torch.float64)
    x[0], y[0], y[1] = 1.0, R, math.sqrt(1 - R**2)
    W, W_, V = (torch.randn(paths, d, d, **facts) for _ in range(3))
    a, b = ((W @ (W_.mT @ z).unsqueeze(-1)).squeeze(-1) for z in (x, y))
    a, b = (V @ (each / each.norm(dim=-1, keepdim=True)).unsqueeze(-1) for each in (a, b))
    x, y = (z + (h / d) ** 0.5 * each.squeeze(-1) for z, each in ((x, a), (y, b)))
    return (x * y).sum(dim=-1) / x.norm(dim=-1) / y.norm(dim=-1)


@pytest.mark.parametrize("d", [4, 7])
def test_a_cloud_layer_has_the_law_of_the_literal_one(d):
    paths, R = 40_000, 0.4
    slow = literal_cloud_layer(R, 0.5, d, paths, stream(3, "literal", d))
    fast = cloud.cloud_layer(torch.full((paths,), R, dtype=torch.float64), 0.5, d, 2, generator=stream(3, "fast", d))[0]
    for power in (1, 2, 3):
        one, two = slow**power, fast**power
        error = ((one.var() + two.var()) / paths).sqrt()
        assert abs(one.mean() - two.mean()) <= 5 * error


def test_coinciding_tokens_stay_together_in_a_cloud():
    ones = torch.ones(50, dtype=torch.float64)
    moved = cloud.cloud_layer(ones, 0.5, 8, 2, generator=stream(4, "ones"))
    assert torch.allclose(moved, torch.ones_like(moved), atol=1e-12)


@pytest.mark.parametrize(("d", "factors"), [(1, 2), (5, -1)])
def test_a_cloud_refuses_bad_sizes(d, factors):
    with pytest.raises(ValueError, match="need d >= 2"):
        cloud.image(torch.zeros(1), d, factors, generator=stream(0, "bad"))
    with pytest.raises(ValueError, match="d >= 4"):
        cloud.cloud_layer(torch.zeros(1), 0.1, 3, 2, generator=stream(0, "bad"))


# Measures on tables with known answers --------------------------------------------------------------------------------


def test_joint_interval_takes_the_case_farthest_off():
    noise = torch.randn(2, 50, generator=stream(5, "noise"), dtype=torch.float64).numpy()
    near, far = pd.Series(0.01 * noise[0]), pd.Series(0.2 + 0.01 * noise[1])
    assert measures.joint([near, far]).value == pytest.approx(far.mean())
    assert measures.joint([near, far], 0.2).value == pytest.approx(near.mean())


def table_of_errors(big: float, small: float) -> pd.DataFrame:
    noise = 0.001 * torch.randn(2, 30, generator=stream(6, "errors"), dtype=torch.float64).numpy()
    return pd.concat(
        [
            pd.DataFrame({"eta": 0.8, "H": 1, "error": big + noise[0]}),
            pd.DataFrame({"eta": 0.4, "H": 1, "error": small + noise[1]}),
        ]
    )


def test_error_ratio_covers_the_truth_and_is_open_where_the_small_error_may_vanish():
    found = measures.error_ratio((0.8, 1), (0.4, 1))(table_of_errors(-0.06, 0.02))
    assert found.low < 3 < found.high
    assert found.low > 2
    assert measures.error_ratio((0.8, 1), (0.4, 1))(table_of_errors(-0.06, 0.0)).high == math.inf


def test_drift_by_width_sees_a_drift_that_falls_like_one_over_d():
    noise = 0.01 * torch.randn(2, 2, 30, generator=stream(10, "drift"), dtype=torch.float64).numpy()
    keys = [(d, R) for d in (24, 40) for R in (0.4, 0.7)]
    scaled = pd.concat(
        [
            pd.DataFrame({"d": d, "R": R, "drift": 2 + part})
            for (d, R), part in zip(keys, noise.reshape(4, -1), strict=True)
        ]
    ).assign(factors=2)
    found = measures.drift_by_width(scaled)
    assert found.low < 0.6 < found.high < 0.65
    assert measures.drift_by_width(scaled.assign(drift=scaled["drift"] * scaled["d"])).low > 0.95
    one, other = (scaled.loc[scaled["d"] == d, "drift"] for d in (24, 40))
    assert measures.ratio(one, other, cases=4).high > measures.ratio(one, other).high


def test_the_quotient_of_a_kernel_grows_or_falls_with_the_number_of_tokens():
    n = np.tile([2, 8, 32], 2)
    table = pd.DataFrame({"n": n, "quotient": np.repeat([0.7, 0.1], 3) * n ** np.repeat([-0.25, 0.0], 3)})
    assert measures.quotient_slope(table).value == pytest.approx(-0.25)  # of the largest, whatever the others do


def test_spread_is_judged_at_its_worst_time_and_over_all_widths():
    d, tau, replicate = (axis.ravel() for axis in np.meshgrid([64, 256, 4096], [0.0, 1.0, 2.0], range(5)))
    table = pd.DataFrame({"d": d, "tau": tau, "replicate": replicate, "layer": tau})
    table["spread"] = d ** np.where(tau == 2, -0.4, -0.5)
    assert measures.spread_slopes(table).value == pytest.approx(-0.4)
    assert measures.spread_slopes(table[table["tau"] < 2]).value == pytest.approx(-0.5)


def test_missing_part_of_the_drift_tells_d_from_its_square():
    d, replicate = (axis.ravel() for axis in np.meshgrid([32, 128], range(5)))
    table = pd.DataFrame({"d": d, "replicate": replicate, "ratio": 10.0, "coldest": 2.0})
    law, square = (table.assign(drift=2 - part) for part in (0.3, 0.01 * d))
    assert measures.missing(10.0, 10.0, -3.0)(law).value == pytest.approx(-3)
    assert measures.missing_slope(10.0)(law).value == pytest.approx(0)
    assert measures.missing_slope(10.0)(square).value == pytest.approx(1)


def test_halving_finds_first_and_rejects_second_order():
    h = np.array([0.04, 0.02, 0.01])
    table = pd.DataFrame({"h": h, "d": 3, "degree": 1})
    assert measures.halving(table.assign(error=-0.3 * h)).value == pytest.approx(2)
    assert measures.halving(table.assign(error=h**2)).value == pytest.approx(4)


def test_order_is_that_of_a_power_law():
    eta = np.tile([0.1, 0.05, 0.025], 4)
    table = pd.DataFrame({"eta": eta, "replicate": np.repeat(range(4), 3), "grid": 3 * eta**2})
    table = table.assign(update="ambient", corrector="full")
    assert measures.order("ambient", "full")(table).value == pytest.approx(2)


def test_noise_slope_sees_one_over_h():
    normal = torch.randn(480, 3, generator=stream(7, "heads"), dtype=torch.float64).numpy()
    heads = np.array([1, 16, 256])
    table = pd.DataFrame({"H": np.tile(heads, 480), "replicate": np.repeat(range(480), 3), "kind": "heads"})
    found = measures.noise_slope(table.assign(m=(normal / heads**0.5).ravel()))
    assert found.low < -1 < found.high
    assert found.n == 24


def test_returned_compares_a_share_with_a_probability():
    table = pd.DataFrame({"factors": 2, "returned": np.arange(100) < 80, "recurrent": 0.8})
    found = measures.returned(table, "recurrent")
    assert found.value == pytest.approx(0.0)
    assert found.low < 0 < found.high


def test_common_noise_is_the_variance_over_weights():
    g = stream(8, "weights")
    values = 0.5 * torch.randn(400, 2, generator=g, dtype=torch.float64).numpy()
    table = pd.DataFrame({"n": 8, "part": 0, "replicate": range(400), "mean_0": values[:, 0], "mean_1": values[:, 1]})
    found = measures.common_noise(table)
    assert found.low < 0.5 < found.high
    assert found.n == 200


# Mutations ------------------------------------------------------------------------------------------------------------


def test_two_prompts_with_other_weights_do_not_come_together(monkeypatch):
    """The weights are the same for both prompts because their generator is; with fresh ones the distance stays."""
    small = dataclasses.replace(limits.Prompts.at("ci"), tokens=(64,), parts=1, replicates=6, d=6, tau=2.0)
    condition = small.conditions()[0]
    facts = {"seed": 0, "device": torch.device("cpu"), "dtype": torch.float64}
    same = small.run(condition, **facts)["distance"].mean()
    calls = []

    def fresh(seed, *names, **more):
        calls.append(names)
        return stream(seed, *names, len(calls), **more)

    monkeypatch.setattr(limits, "stream", fresh)
    assert small.run(condition, **facts)["distance"].mean() > 3 * same


def test_the_deepest_recorded_layer_shows_the_last_tau():
    assert depth.layer_counts([0.6, 3.0], math.sqrt(0.06), 2) == [20, 100]


def test_slow_paths_run_for_their_time_on_the_clock(monkeypatch):
    layers = []

    def count(R, h, d, factors, *, generator):
        layers.append(h)
        return R, R

    monkeypatch.setattr(depth, "cloud_layer", count)
    small = dataclasses.replace(depth.SlowPaths.at("ci"), **SMALL[depth.SlowPaths] | {"factors": (0,)})
    run_experiment(small, seed=0, device="cpu")
    assert sum(layers) / small.d == pytest.approx(small.time)


# Figures --------------------------------------------------------------------------------------------------------------


def test_demos_give_tokens_on_the_sphere_and_overlaps():
    tokens = demos.sphere_rows(0, n=5, L=10)
    assert np.allclose(tokens["x"] ** 2 + tokens["y"] ** 2 + tokens["z"] ** 2, 1)
    first = tokens[tokens["layer"] == 0]
    same = first.groupby("panel")[["x", "z"]].sum()
    assert np.allclose(same.iloc[0], same.iloc[1])
    assert not np.allclose(same.iloc[0], same.iloc[2])


def test_figures_of_experiments_say_in_words_what_they_show(rows):
    drawn = [
        figures.two_tokens(rows[depth.TwoTokens]),
        figures.logistic(rows[depth.Hot]),
        figures.freezing(rows[depth.Freezing]),
        figures.final_rate(rows[depth.FinalRate]),
        figures.clock(rows[depth.Clock]),
        figures.phase_diagram(rows[limits.Interpolation]),
        figures.heads_to_ode(rows[limits.Interpolation]),
        figures.prompts(rows[limits.Prompts]),
        figures.control(rows[limits.PrivateNoise]),
        figures.stack(rows[limits.Stack]),
    ]
    for figure in drawn:
        assert len(figure.get_label()) > 60
        assert "nan" not in figure.get_label().split()
        assert "$" not in figure.get_label()
