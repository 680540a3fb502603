"""Experiments, measures and figures of the chapter: columns at tier ci, tables with known answers, alt texts."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch

from derived.lab.experiment import run_condition
from derived.lab.rng import stream
from derived.papers.signal_propagation import claims, deep, experiments, figures
from derived.papers.signal_propagation.asymptotics import vit_variances
from derived.papers.signal_propagation.jacobian import apjn_exact
from derived.papers.signal_propagation.meanfield import propagate
from derived.papers.signal_propagation.transformer import (
    RandomTransformer,
    Sigmas,
    equiangular_tokens,
    normalise,
    token_moments,
)

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


@pytest.mark.parametrize("experiment", experiments.EXPERIMENTS, ids=lambda one: one.__name__)
def test_rows_have_the_promised_columns_and_no_failure(rows, experiment):
    table = rows[experiment]
    assert "failure" not in table.columns
    assert COLUMNS[experiment] <= set(table.columns)
    assert set(experiment.deterministic) <= set(table.columns)
    assert np.isfinite(table.select_dtypes("number").to_numpy()).all()


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


@pytest.mark.parametrize("experiment", [deep.ManyTokens, experiments.Networks])
def test_each_theory_column_is_the_recurrence_it_is_named_after(rows, experiment):
    """Behind LayerNorm, at the input: what is dropped makes J smaller, a common gradient makes it larger."""
    table = rows[experiment]
    first = table[(table["b"] == 0) & (table.get("norm", "layernorm") == "layernorm")].iloc[0]
    assert first["J_without_K"] < first["J_theory"] < first["pooled_theory"]
    assert 0 < first["K_theory"] < first["J_theory"]
    if "J_infinite" in table.columns:
        assert first["J_infinite"] < first["J_without_K"]
    else:
        assert first["J_without_attention"] < first["J_without_K"]
    last = table[table["b"] == table["b"].max()]
    assert (last[["J_theory", "pooled_theory"]] == 1).all(axis=None)
    assert (last["K_theory"] == 0).all()


@pytest.mark.parametrize("norm", ["layernorm", "erf", "tanh"])
def test_the_kernel_of_a_normaliser_is_that_of_its_map(norm):
    """q~ and p~ of wide tokens, pushed through the network's own normaliser."""
    x = equiangular_tokens(2, 4096, 1.0, 0.4, batch=(40,), generator=stream(0, "map"), dtype=torch.float64)
    q_tilde, p_tilde, _ = (each.mean().item() for each in token_moments(normalise(x, norm, 1.3)))
    expected = deep.kernel_of(norm, 1.3).moments(np.array(1.0), np.array(0.4))
    np.testing.assert_allclose((q_tilde, p_tilde), expected[:2], rtol=0.01)


def test_measured_columns_are_the_moments_they_are_named_after():
    """Means over 4000 probes against exact Jacobians, 5 % apart at most; J, K and pooled differ by more."""
    facts = {"width": 8, "depth": 2, "norm": "erf", "sigmas": Sigmas(v=1.0, o=1.0, one=1.0, two=1.0)}
    model = RandomTransformer(**facts, generator=stream(0, "measured"), dtype=torch.float64)
    x = equiangular_tokens(4, 8, 1.0, 0.3, batch=(1,), generator=stream(0, "x"), dtype=torch.float64)
    table = deep.measure(model, x, probes=4000, generator=stream(0, "many"))
    alone, pooled = apjn_exact(model, x), apjn_exact(model, x, output_gradient="pooled")
    for name, exact in (("J", alone.J), ("K", alone.K), ("pooled", pooled.J)):
        np.testing.assert_allclose(table[name], exact[0], rtol=0.05, atol=0.05)
    assert (table["pooled"] > 1.2 * table["J"]).iloc[0]
    assert abs(pooled.J[0, 0] - pooled.K[0, 0]) > 0.2
    q, p, _ = token_moments(model(x))
    assert tuple(table[["q", "p"]].iloc[-1]) == pytest.approx((q.item(), p.item()), rel=1e-12)


def test_deep_networks_start_on_their_recurrence(rows):
    first = rows[deep.DeepOverlap].query("b == 0")
    np.testing.assert_allclose(first[["q", "q_theory"]], 1.0, rtol=1e-5)
    np.testing.assert_allclose(first[["p", "p_theory"]], 0.2, rtol=1e-5)


def test_images_start_their_recurrence_from_the_measured_block(rows):
    """J_theory of an image: from its own (q, p), over the patches as tokens, 1 at the output."""
    experiment = dataclasses.replace(experiments.GeneratedImages.at("ci"), **SMALL[experiments.GeneratedImages])
    table = rows[experiments.GeneratedImages].query("norm == 'erf' and init == 0 and replicate == 1")
    table = table[table["alpha"] == table["alpha"].min()].sort_values("b")
    a, s = vit_variances()
    facts = {"kernel": deep.kernel_of("erf", table["alpha"].iloc[0]), "a": a, "s": s}
    facts |= {"n": (experiment.size // experiment.patch) ** 2, "depth": experiment.depth - experiment.start}
    course = propagate(table["q"].iloc[0], table["p"].iloc[0], **facts)
    np.testing.assert_allclose(table["J_theory"], course.J_backward, rtol=1e-12)
    assert table["b"].tolist() == list(range(experiment.start, experiment.depth + 1))


def test_predicted_amplification_of_training_grows_with_alpha_and_is_of_the_input(rows):
    table = rows[experiments.Trainability].query("norm == 'erf'")
    by_alpha = table.groupby("alpha")["log_pooled"].mean()
    assert (by_alpha > 0).all()
    assert by_alpha.is_monotonic_increasing
    assert np.corrcoef(table["log_pooled"], table["log_measured"])[0, 1] > 0.5


def test_window_rows_stay_between_bounds_that_meet_at_small_alpha(rows):
    table = rows[experiments.Window]
    assert (table["low"] < table["high"]).all()
    start = table[table["b"] == 1]
    np.testing.assert_allclose(start["low"], start["high"], rtol=3 * 0.05**2 * start["q"].max())  # 1 - 2 alpha^2 q


def test_rows_of_infinitely_many_tokens_are_those_of_the_limit(rows):
    table = rows[experiments.Regimes].query("norm == 'layernorm' and attn_mult == 1")
    a, s = vit_variances()
    for tokens, n in ((0, np.inf), (16, 16)):
        course = propagate(1.0, 0.2, kernel=deep.kernel_of("layernorm"), a=a, s=s, n=n, depth=400)
        curve = table[table["tokens"] == tokens]
        np.testing.assert_allclose(curve["log_J"], course.log_J_forward[curve["b"]], rtol=1e-12)
        np.testing.assert_allclose(np.exp(curve["log_difference"]), (course.q - course.p)[curve["b"]], rtol=1e-12)


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
