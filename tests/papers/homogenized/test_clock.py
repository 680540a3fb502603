"""The clock: the temperature of the chains, their error, and the torch stack."""

import dataclasses
import math

import pandas as pd
import pytest
import torch

from derived.lab.experiment import run_experiment
from derived.lab.rng import stream
from derived.papers.homogenized import clock
from derived.papers.homogenized.chains import layer_counts
from derived.papers.homogenized.claims import CLAIMS
from derived.papers.homogenized.clock import (
    Clock,
    Stack,
    TwoTokens,
    WeakError,
    as_at_first,
    error_ratio,
    one_less_eight,
)
from derived.papers.homogenized.model.chain import multi_head
from derived.papers.homogenized.model.heads import matched_law
from derived.papers.homogenized.model.two_token import two_token_attention_moments, two_token_pde

EXPERIMENTS = (TwoTokens, WeakError, Clock, Stack)


CHAIN = {"layer", "tau", "replicate"}


COLUMNS = {
    TwoTokens: CHAIN | {"logit_std", "H", "first", "second_theory"},
    WeakError: {"eta", "H", "h", "replicate", "error"},
    Clock: CHAIN | {"H", "L", "eta", "m", "m_theory"},
    Stack: CHAIN | {"scale", "H", "m", "m_theory"},
}


def test_rows_have_the_promised_columns_and_no_failure(rows, complete):
    complete(rows, COLUMNS)


@pytest.mark.parametrize("experiment", [TwoTokens, WeakError, Clock], ids=lambda one: one.__name__)
def test_chains_have_the_temperature_of_their_rows(experiment, has_its_temperature):
    has_its_temperature(clock, experiment)


def test_the_deepest_recorded_layer_shows_the_last_tau():
    assert layer_counts([0.6, 3.0], math.sqrt(0.06), 2) == [20, 100]


def table_of_errors(big: float, small: float) -> pd.DataFrame:
    noise = 0.001 * torch.randn(2, 30, generator=stream(6, "errors"), dtype=torch.float64).numpy()
    return pd.concat(
        [
            pd.DataFrame({"eta": 0.8, "H": 1, "error": big + noise[0]}),
            pd.DataFrame({"eta": 0.4, "H": 1, "error": small + noise[1]}),
        ]
    )


@pytest.mark.parametrize(("large", "verdict"), [(-0.12, "holds"), (-0.06, "fails")])
def test_an_error_of_order_one_is_told_from_one_of_order_two(large, verdict):
    claim = next(each for each in CLAIMS if each.id == "HT-6.a")
    assert claim.judge(claim.measure(table_of_errors(large, -0.03)))[0] == verdict


def test_heads_that_divide_the_clock_are_told_from_heads_that_do_not():
    tau = [1.0, 2.0, 3.0] * 30
    one = pd.DataFrame({"tau": tau, "layer": 1, "scale": 0.2, "replicate": [k // 3 for k in range(90)]})
    overlap = one["tau"] / 4 + 0.001 * torch.randn(90, generator=stream(6, "overlaps"), dtype=torch.float64).numpy()
    for shift, inside in ((0.0, True), (0.1, False)):
        rows = pd.concat([one.assign(H=1, m=overlap), one.assign(H=8, m=one["tau"] / 4 - shift)])
        found = one_less_eight(rows)
        assert (found.low < 0 < found.high) == inside
        assert found.value == pytest.approx(shift, abs=0.01)
    assert one_less_eight(rows, counted=True).value == pytest.approx(0.6, abs=0.01)  # those of tau = 3 and of tau = 1


def test_error_ratio_covers_the_truth_and_is_open_where_the_small_error_may_vanish():
    found = error_ratio((0.8, 1), (0.4, 1))(table_of_errors(-0.06, 0.02))
    assert found.low < 3 < found.high
    assert found.low > 2
    assert error_ratio((0.8, 1), (0.4, 1))(table_of_errors(-0.06, 0.0)).high == math.inf


def test_multi_head_attention_has_a_clock_without_heads():
    """The covariance of the increment does not depend on H: fresh weights of variance 1/d, heads summed."""
    x = torch.nn.functional.layer_norm(torch.randn(200, 4, 32, generator=stream(9, "x")), (32,))
    sizes = [multi_head(x, H, generator=stream(9, H)).square().mean().item() for H in (1, 4, 32)]
    assert max(sizes) / min(sizes) < 1.15


@pytest.mark.parametrize(("H", "rank"), [(1, 16), (4, 4)])
def test_multi_head_attention_has_logits_of_deviation_one(H, rank):
    """Two orthogonal tokens of length sqrt(d): the mean square of an entry is f, by quadrature over keys of d/H."""
    x = (4.0 * torch.eye(16)[:2]).expand(20_000, 2, 16)
    sizes = multi_head(x, H, generator=stream(12, H)).square().mean(dim=(-2, -1)).double()
    error = 5 * sizes.std().item() / len(x) ** 0.5
    f = {s: two_token_attention_moments(0.0, 16, 1.0, (s / rank**0.5) ** 0.5, rank=rank)[0] for s in (0.0, 1.0, 3.0)}
    assert abs(sizes.mean().item() - f[1.0]) < error
    assert all(abs(sizes.mean().item() - f[s]) > 2 * error for s in (0.0, 3.0))


def test_weak_error_vanishes_with_the_step_and_only_against_its_own_temperature():
    small = dataclasses.replace(
        WeakError.at("tiny"), replicates=WeakError.at("ci").replicates, logit_std=8.0, cases=((0.2, 1),), batch=2000
    )
    error, reach = run_experiment(small, seed=0, device="cpu")["error"].mean(), 5 * 0.4 / 48_000**0.5
    assert abs(error) < reach + 0.005  # and 0.04 is the step
    uniform, attending = (two_token_pde(8, 1.0, matched_law(8, s).sigma_a, 0.0, [1.92]).first[0] for s in (0.0, 8.0))
    assert abs(error + attending - uniform) > reach + 0.005


def test_figures_say_in_words_what_they_show(rows, follows):
    follows(clock.two_tokens, rows[TwoTokens], "first")
    follows(clock.clock, rows[Clock], "m")
    follows(clock.stack, rows[Stack], "m")


def test_layers_that_do_nothing_keep_the_overlap_that_each_replicate_starts_with():
    """The control of HT-19."""
    table = pd.DataFrame(
        {"scale": 0.2, "H": 1, "replicate": [0, 0, 1, 1], "layer": [0, 9, 0, 9], "m": [0.1, 0.8, 0.3, 0.7]}
    )
    assert list(as_at_first(table)["m"]) == [0.1, 0.1, 0.3, 0.3]
