"""Experiments, measures and figures of the chapter: columns at tier ci, tables with known answers, alt texts."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch

from derived.lab.experiment import run_condition, run_experiment
from derived.lab.rng import stream
from derived.papers.signal_propagation import claims, deep, experiments, figures, measures
from derived.papers.signal_propagation.meanfield import propagate
from derived.papers.signal_propagation.transformer import Sigmas

SMALL = {
    experiments.ClosedForms: {"instances": 4},
    experiments.Ends: {"instances": 4, "depth": 8},
    experiments.Regimes: {"depth": 400, "depth_tanh": 400, "points": 40},
    experiments.Window: {"alphas": (0.05,)},
    experiments.Networks: {"width": 32, "n": 4, "depth": 3, "inits": 4, "probes": 2},
    deep.DeepOverlap: {"width": 32, "depth": 4, "inits": 3},
    deep.ManyTokens: {"width": 24, "n": 8, "depth": 4},
    deep.VisionTransformer: {"width": 24, "n": 8, "depth": 3},
    experiments.GeneratedImages: {"width": 24, "depth": 4, "start": 1},
    experiments.Trainability: {"width": 12},
}
MEASURED = {"b", "replicate", "q", "p", "J", "K", "pooled", "q_theory", "p_theory", "J_theory", "K_theory"}
COLUMNS = {
    experiments.ClosedForms: {"instance", "moment", "closed", "quadrature", "gap", "bound"},
    experiments.Ends: {"instance", "gap", "bound"},
    experiments.Regimes: {"norm", "alpha", "attn_mult", "tokens", "b", "q", "rho", "log_J", "log_difference"},
    experiments.Window: {"alpha", "b", "q", "p", "log_J", "low", "high", "crossover", "predicted"},
    experiments.Networks: MEASURED | {"norm", "heads", "J_without_K", "J_without_attention", "pooled_theory"},
    deep.DeepOverlap: {"norm", "replicate", "b", "q", "p", "q_theory", "p_theory"},
    deep.ManyTokens: MEASURED | {"init", "J_infinite", "J_without_K"},
    deep.VisionTransformer: MEASURED | {"norm", "alpha", "init"},
    experiments.GeneratedImages: {"norm", "alpha", "init", "replicate", "b", "q", "p", "spread", "J", "J_theory"},
    experiments.Trainability: {
        "norm",
        "depth",
        "warmup",
        "replicate",
        "alpha",
        "test_loss",
        "log_pooled",
        "log_measured",
    },
}


@pytest.fixture(scope="module")
def rows():
    """Every experiment at its smallest tier, smaller still."""
    found = {}
    for experiment in experiments.EXPERIMENTS:
        small = dataclasses.replace(experiment.at("ci"), **SMALL[experiment])
        found[experiment] = run_experiment(small, seed=0, device="cpu").assign(tier="ci", recorded=False)
    return found


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


def test_claims_on_recurrences_can_be_measured_from_small_rows(rows):
    for claim in claims.CLAIMS:
        if claim.experiment in (experiments.ClosedForms, experiments.Ends, experiments.Regimes, experiments.Window):
            assert np.isfinite(claim.measure(rows[claim.experiment]).value)


def test_networks_share_weights_and_tokens_across_normalisers(rows):
    wide = rows[experiments.Networks].query("b == 0").pivot(index=["heads", "replicate"], columns="norm", values="q")
    assert np.allclose(wide["layernorm"], wide["erf"], rtol=0, atol=0)


def test_rows_follow_the_seed():
    small = dataclasses.replace(experiments.Networks.at("ci"), **SMALL[experiments.Networks])
    condition = small.conditions()[0]
    first, again, other = (run_condition(small, condition, seed, "cpu") for seed in (0, 0, 1))
    pd.testing.assert_frame_equal(first, again)
    assert not np.allclose(first["J"], other["J"])


def test_half_blocks_are_recovered_from_whole_blocks():
    sigmas, kernel = Sigmas(v=1.0, o=1.0, one=1.0, two=1.0), deep.kernel_of("erf", 0.8)
    course = propagate(1.0, 0.2, kernel=kernel, a=1.0, s=1.0, n=6, depth=5)
    q, p = experiments.propagate_half(course, kernel, sigmas)
    q_tilde, p_tilde, *_ = kernel.moments(course.q[:-1], course.p[:-1])
    added = p_tilde + (q_tilde - p_tilde) / 6
    assert np.allclose(q, course.q[:-1] + added, rtol=1e-12)
    assert np.allclose(p, course.p[:-1] + added, rtol=1e-12)


def test_without_attention_the_mlp_factors_are_the_whole_apjn():
    sigmas, kernel = Sigmas(v=0.0, o=0.0, one=1.0, two=1.0), deep.kernel_of("layernorm")
    course = propagate(1.0, 0.2, kernel=kernel, a=0.0, s=1.0, n=6, depth=5)
    assert np.allclose(experiments.mlp_only(course, kernel, sigmas), course.J_backward, rtol=1e-10)


def table_of_networks(ratio: np.ndarray) -> pd.DataFrame:
    """Rows whose J is a given multiple (inits, blocks) of a theory that doubles towards the input."""
    inits, blocks = ratio.shape
    theory = np.tile(2.0 ** np.arange(blocks - 1, -1, -1), (inits, 1))
    index = {"replicate": np.repeat(np.arange(inits), blocks), "b": np.tile(np.arange(blocks), inits)}
    return pd.DataFrame({**index, "norm": "erf", "heads": 1, "J": (ratio * theory).ravel(), "J_theory": theory.ravel()})


def test_fold_error_is_of_the_mean_over_initialisations_and_leaves_out_the_trivial_block():
    ratio = np.array([[1.1, 1.2, 1.0], [1.3, 1.2, 1.0], [1.2, 1.2, 1.0]])
    found = measures.gmfe_of("J")(table_of_networks(ratio))
    assert found.value == pytest.approx(1.2, rel=1e-12)
    assert found.n == 3
    assert found.low < 1.2 < found.high


def test_fold_error_covers_the_truth_and_rejects_a_wrong_theory():
    noise = torch.randn(40, 4, generator=stream(5, "noise"), dtype=torch.float64).numpy()
    right, wrong = (measures.gmfe_of("J")(table_of_networks(c * (1 + 0.02 * noise))) for c in (1.0, 1.2))
    assert right.high < 1.03
    assert wrong.low > 1.1


def test_end_ratio_takes_the_worst_case_and_only_the_input_block():
    table = table_of_networks(np.array([[1.1, 9.0], [1.3, 9.0], [1.2, 9.0]]))
    found = measures.end_ratio("J", "J_theory", ("norm",))(table)
    assert found.value == pytest.approx(1.2)
    assert found.n == 3


def test_trainability_is_one_when_losses_grow_with_the_prediction_and_nan_counts_as_worst():
    grid = pd.DataFrame({"replicate": np.repeat([0, 1], 4), "log_pooled": np.tile(np.arange(4.0), 2)})
    grid = grid.assign(norm="erf", warmup=0, test_loss=np.tile([1.0, 2.0, 3.0, np.nan], 2))
    assert measures.trainability(grid).value == pytest.approx(1.0)


def drawn(rows):
    vision, networks, regimes = (
        rows[each] for each in (deep.VisionTransformer, experiments.Networks, experiments.Regimes)
    )
    cloud = pd.DataFrame({"norm": "erf", "b": [0, 0, 0, 2, 2, 2], "u": 0.3, "v": -0.2, "q": 1.0, "p": 0.5})
    side = np.array([0.5, 1.0])
    maps = pd.DataFrame({"sigma_OV": np.repeat(side, 2), "sigma_21": np.tile(side, 2), "zeta": 0.5, "rate": 1.0})
    yield figures.token_clouds(cloud)
    yield from (draw(vision) for draw in (figures.stream_moments, figures.vision_gradients))
    yield from (draw(networks) for draw in (figures.companion, figures.two_heads))
    yield from (draw(regimes) for draw in (figures.two_laws, figures.order_of_limits))
    yield figures.small_alpha(rows[experiments.Window])
    yield figures.constants(maps)
    yield figures.training_tiles(rows[experiments.Trainability])


def test_figures_say_in_words_what_they_show(rows):
    for figure in drawn(rows):
        assert len(figure.get_label()) > 60
        assert "nan" not in figure.get_label().split()
        assert "$" not in figure.get_label()


def test_the_explorer_has_a_frame_for_every_setting_and_stays_small():
    axes = {"alpha": (0.5, 1.0), "attn": (0.0, 1.0), "mlp": (0.5,), "tokens": (4, 16)}
    grid = pd.MultiIndex.from_product(axes.values(), names=axes).to_frame(index=False)
    rows = pd.concat([grid.assign(b=b, q=1.0 + b, rho=0.5, log_J=0.1 * b) for b in range(3)])
    rows = pd.concat([rows.assign(norm=norm) for norm in ("layernorm", "erf")])
    figure = figures.explorer(rows)
    assert {frame.name for frame in figure.frames} == {
        "|".join(f"{value:g}" for value in each) for each in grid.to_numpy()
    }
    assert len(figure.to_json()) < 1_500_000
