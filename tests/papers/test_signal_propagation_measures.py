"""What the claims measure: tables whose answer is known, and tables that must not pass."""

import numpy as np
import pandas as pd
import pytest
import torch

from derived.lab.rng import stream
from derived.papers.signal_propagation import asymptotics, measures

DEPTHS = np.unique(np.geomspace(4, 20_000, 60).round().astype(int))


def networks(ratio: np.ndarray, norm: str = "erf", **columns) -> pd.DataFrame:
    """Rows whose J is a given multiple (inits, blocks) of a theory that doubles towards the input."""
    inits, blocks = ratio.shape
    theory = np.tile(2.0 ** np.arange(blocks - 1, -1, -1), (inits, 1))
    index = {"replicate": np.repeat(np.arange(inits), blocks), "b": np.tile(np.arange(blocks), inits)}
    table = pd.DataFrame({**index, "norm": norm, "heads": 1, "J": (ratio * theory).ravel(), "J_theory": theory.ravel()})
    return table.assign(**columns)


def noise(*shape: int) -> np.ndarray:
    return torch.randn(*shape, generator=stream(5, "noise", *shape), dtype=torch.float64).numpy()


def curve(log_J, *, norm: str = "layernorm", attn_mult: float = 1.0, tokens: int = 0, alpha: float = 1.0, **columns):
    """Rows of one curve of ``Regimes``."""
    facts = {"norm": norm, "attn_mult": attn_mult, "tokens": tokens, "alpha": alpha}
    return pd.DataFrame({"b": DEPTHS, "log_J": log_J, **columns}).assign(**facts)


# --- fold errors ---------------------------------------------------------------------------------------------------


def test_fold_error_is_of_the_mean_over_initialisations_and_leaves_out_the_trivial_block():
    ratio = np.array([[1.1, 1.2, 1.0], [1.3, 1.2, 1.0], [1.2, 1.2, 1.0]])
    found = measures.gmfe_of("J")(networks(ratio))
    assert found.value == pytest.approx(1.2, rel=1e-12)
    assert found.n == 3
    assert found.low < 1.2 < found.high
    assert measures.gmfe_of("J", edge="first")(networks(ratio)).value == pytest.approx(1.2**0.5, rel=1e-12)


def test_fold_error_holds_a_right_theory_and_rejects_a_wrong_one():
    right, wrong = (measures.gmfe_of("J")(networks(c * (1 + 0.02 * noise(40, 4)))) for c in (1.0, 1.2))
    assert right.high < 1.03
    assert wrong.low > 1.1
    assert right.low == 1  # a fold error cannot be less


def test_fold_error_is_of_the_worst_case_at_the_joint_level():
    """Two cases share the error probability: each interval is wider than alone, and the higher one is reported."""
    near, far = networks(1 + 0.05 * noise(20, 3), "erf"), networks(1.1 * (1 + 0.05 * noise(20, 3)), "tanh")
    both, alone = (measures.gmfe_of("J")(table) for table in (pd.concat([near, far]), far))
    assert both.value == alone.value
    assert both.high > alone.high


@pytest.mark.parametrize("shared", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("truth", [0.0, 0.003, 0.01])
def test_fold_error_interval_covers_however_blocks_are_correlated(shared, truth):
    """1000 tables of 48 initialisations: the true fold error is missed at most as often as the level says.

    A delta method or a jackknife misses far more: where signs are in doubt the errors of blocks seem to cancel.
    """
    draws, inits, blocks = 1000, 48, 8
    common, own = noise(draws, inits, 1), noise(draws, inits, blocks)
    table = np.exp(truth) * (1 + 0.05 * (shared**0.5 * common + (1 - shared) ** 0.5 * own))
    found = [measures.fold(one, np.ones(blocks), 0.95) for one in table]
    missed = np.mean([not one.low <= np.exp(truth) * (1 + 1e-12) <= one.high * (1 + 1e-12) for one in found])
    assert missed < 0.05 + 3 * (0.05 * 0.95 / draws) ** 0.5


def test_improvement_has_an_interval_that_a_noisy_table_widens_past_four():
    """e = ln(J / J_theory) about 0.02, D = 0.3: ratio 16. With ten times the noise it could be anything down to 2."""
    for scatter, holds in ((0.01, True), (0.6, False)):
        ratio = np.exp(0.02) * (1 + scatter * noise(100, 2)) / (1 + scatter * noise(100, 2).mean(axis=0))
        table = networks(ratio)
        found = measures.improvement(table.assign(J_without_K=table["J_theory"] * np.exp(-0.3)))
        assert found.value == pytest.approx(16, rel=1e-6)
        assert found.n == 100
        assert (found.low > 4) == holds
        assert found.low < found.value < found.high
    equal = table.assign(J_without_K=table["J_theory"] * np.exp(-0.3))
    equal["J"] *= np.exp(-0.32)  # the theory without K is exact
    assert measures.improvement(equal).low == 0


def test_end_ratio_takes_the_worst_case_and_only_the_input_block():
    low, high = (networks(np.array([[c, 9.0], [c + 0.2, 9.0], [c + 0.1, 9.0]]), n) for c, n in ((1.1, "a"), (2.0, "b")))
    found = measures.end_ratio("J", "J_theory", ("norm",))(pd.concat([low, high]))
    assert found.value == pytest.approx(1.2)
    assert found.n == 3
    assert found.low < measures.end_ratio("J", "J_theory")(low).low  # the joint level of two cases


def test_overlap_of_networks_is_of_the_norm_farthest_off_at_the_last_block():
    off = {"layernorm": 0.001, "erf": -0.05}
    tables = []
    for norm, gap in off.items():
        overlap = 0.5 + gap + 0.001 * noise(10, 1)
        table = pd.DataFrame({"b": np.tile([0, 4], 10), "q": 2.0, "q_theory": 4.0, "p_theory": 2.0, "norm": norm})
        tables.append(table.assign(p=np.where(table["b"] == 4, 2 * np.repeat(overlap, 2), 99.0)))
    assert measures.overlap_of_networks(pd.concat(tables)).value == pytest.approx(-0.05, abs=0.002)


def test_against_author_is_the_largest_disagreement():
    rows = [("erf", 0.5, 3.078), ("erf", 1.9, 0.9 * 51.30), ("layernorm", 1.0, 6.003), ("erf", 0.123, 1e9)]
    table = pd.DataFrame(rows * 3, columns=["norm", "alpha", "J"]).assign(b=0)
    assert measures.against_author(table).value == pytest.approx(0.9)


# --- recurrences carried far ---------------------------------------------------------------------------------------


def test_exponents_are_read_at_the_deepest_block_of_the_right_curve():
    rows = pd.concat([curve(0.7 * np.log(DEPTHS)), curve(np.log(DEPTHS), tokens=4, attn_mult=2.0)])
    rows = pd.concat([rows, curve(0.95 * np.log(DEPTHS), attn_mult=0.0)])
    assert measures.last_exponent()(rows).value == pytest.approx(0.7)
    assert measures.last_exponent(2.0, 4)(rows).value == pytest.approx(1.0)
    assert measures.exponent_lost(rows).value == pytest.approx(-0.25)


def test_an_exponent_that_rises_or_undershoots_is_caught():
    middle = np.log(DEPTHS)
    falling = curve(2 / 3 * middle - 3 * DEPTHS ** (-1 / 3))  # exponent 2/3 + b^{-1/3}
    assert measures.rises(falling).value < 0
    assert measures.rises(curve(2 / 3 * middle + 3 * DEPTHS ** (-1 / 3))).value > 0.01  # rises from below
    bump = falling.assign(log_J=falling["log_J"] + 0.1 * (DEPTHS > 2000))
    assert measures.rises(bump).value > 0.1
    below = curve(0.6 * middle - 3 * DEPTHS ** (-1 / 3))
    assert measures.rises(below).value > 0  # falls, to less than zeta


def test_collapse_is_the_exponent_of_one_minus_rho():
    rows = curve(0 * DEPTHS, q=5.0 * DEPTHS, log_difference=2 / 3 * np.log(DEPTHS))
    assert measures.collapse(rows).value == pytest.approx(-1 / 3)


def test_stretched_is_the_slope_over_the_law_for_the_alpha_farthest_from_it():
    a, s = asymptotics.vit_variances()
    tables = []
    for alpha, factor in ((0.5, 1.01), (1.0, 0.97)):
        law = np.sqrt(DEPTHS / asymptotics.lambda_stretched(a, s, asymptotics.stretch_constant("erf", alpha)))
        tables.append(curve(factor * law, norm="erf", alpha=alpha))
    assert measures.stretched("erf")(pd.concat(tables)).value == pytest.approx(0.97)


def test_lambda_gained_is_a_ratio_of_lambdas():
    rows = pd.concat([curve(np.sqrt(DEPTHS / lam), norm="erf", attn_mult=m) for m, lam in ((1.0, 4.0), (0.0, 3.0))])
    assert measures.lambda_gained(rows).value == pytest.approx(4 / 3)


def test_overlaps_are_read_at_the_deepest_block():
    target = float(asymptotics.overlap_fixed_point(*asymptotics.vit_variances()))
    rho = np.linspace(0.1, 0.9, len(DEPTHS))
    rows = pd.concat([curve(0.0, norm=norm, rho=rho) for norm in ("erf", "layernorm")])
    assert measures.overlap_gap(rows).value == pytest.approx(0.9 - target)
    assert measures.last_overlap(rows).value == pytest.approx(0.9)


# --- the window ----------------------------------------------------------------------------------------------------


def test_window_bounds_catch_a_violation_on_either_side():
    rows = pd.DataFrame({"b": [1, 2], "log_J": [1.0, 2.0], "low": [0.9, 1.9], "high": [1.1, 2.1]})
    assert measures.window_bounds(rows).value < 1
    assert measures.window_bounds(rows.assign(low=[0.9, 2.01])).value > 1
    assert measures.window_bounds(rows.assign(high=[0.99, 2.1])).value > 1


def test_window_rate_is_the_smallest_inside_the_window():
    rows = pd.DataFrame({"alpha": 0.1, "q": [0.1, 0.4, 0.6], "log_J": [0.99, 0.97, 0.5], "high": 1.0})
    assert measures.window_rate(rows).value == pytest.approx(0.97)


def test_crossover_is_read_at_the_smallest_alpha():
    rows = pd.DataFrame({"alpha": [0.1, 0.05, 0.05], "crossover": [30, 22, 22], "predicted": [10.0, 20.0, 20.0]})
    assert measures.crossover(rows).value == pytest.approx(1.1)


# --- images and training -------------------------------------------------------------------------------------------


def test_images_fold_error_counts_the_last_two_thirds_below_the_output():
    blocks = np.arange(8, 21)
    factor = np.where(blocks <= 12, 5.0, np.where(blocks < 20, 1.1, 7.0))  # early, late, output
    tables = [
        pd.DataFrame({"b": blocks, "J": factor ** (1 - 2 * (init % 2)), "J_theory": 1.0}).assign(init=init)
        for init in range(4)
    ]
    found = measures.images_fold_error(pd.concat(tables).assign(norm="erf", alpha=0.5))
    assert found.value == pytest.approx(1.1)  # too large and too small do not cancel
    assert found.n == 4


def training(**changes) -> pd.DataFrame:
    grid = pd.DataFrame({"replicate": np.repeat([0, 1], 4), "log_pooled": np.tile(np.arange(4.0), 2)})
    return grid.assign(norm="erf", warmup=0, test_loss=np.tile([1.0, 2.0, 3.0, np.nan], 2), **changes)


def test_trainability_is_one_when_losses_grow_with_the_prediction_and_nan_counts_as_worst():
    assert measures.trainability(training()).value == pytest.approx(1.0)
    turned = training().assign(test_loss=[np.inf, 3.0, 2.0, 1.0] * 2)
    assert measures.trainability(turned).value == pytest.approx(-1.0)
    with_others = pd.concat([training(), turned.assign(warmup=100), turned.assign(norm="layernorm")])
    assert measures.trainability(with_others).value == pytest.approx(1.0)


def test_warm_up_gain_is_with_less_without_where_amplification_is_largest():
    rows = [
        (depth, alpha, warmup, replicate, accuracy + 0.01 * replicate)
        for depth, alpha, warmup, accuracy in (
            *((6, 1.6, 0, 0.9), (6, 1.6, 100, 0.1), (36, 0.3, 0, 0.9), (36, 0.3, 100, 0.1)),
            *((36, 1.6, 0, 0.2), (36, 1.6, 100, 0.5)),
        )
        for replicate in range(3)
    ]
    table = pd.DataFrame(rows, columns=["depth", "alpha", "warmup", "replicate", "test_accuracy"]).assign(norm="erf")
    found = measures.warmup_gain(pd.concat([table, table.assign(norm="layernorm", test_accuracy=0.0)]))
    assert found.value == pytest.approx(0.3)
    assert found.n == 3
