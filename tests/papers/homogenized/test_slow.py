"""The slow overlap: its experiments, measures and figure."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch

from derived.lab.experiment import run_experiment
from derived.lab.rng import stream
from derived.papers.homogenized import slow
from derived.papers.homogenized.model.cloud import image, mean_cosine, vmf_mean_ratio
from derived.papers.homogenized.model.flows import observed_order
from derived.papers.homogenized.slow import CLAIMS, SlowPaths, SlowSteps, SlowWidths

MEASURES = {claim.id: claim.measure for claim in CLAIMS}
EXPERIMENTS = (SlowPaths, SlowWidths, SlowSteps)


PATHS = {"factors", "replicate", "returned", "y", "recurrent", "transient"}
COLUMNS = {SlowPaths: PATHS, SlowWidths: PATHS | {"d"}, SlowSteps: PATHS | {"h"}}


def test_rows_have_the_promised_columns_and_no_failure(rows, complete):
    complete(rows, COLUMNS)


def test_finite_temperature():
    """`ht-finite`: |A(t) - A(t')| <= (d-1)/2 |1/t - 1/t'|; at beta_eff = 100 d and 50 d parts near -3/100 and -3/50
    are missing, first order in epsilon."""
    t = np.geomspace(0.05, 1e5, 80)
    for d in (3, 8, 100):
        ratio = vmf_mean_ratio(d, t)
        rounding = 16 * np.finfo(float).eps
        assert (np.diff(t * (1 - ratio)) > -rounding * t[1:]).all()
        assert (np.diff(ratio) > 0).all()
        assert (np.diff(ratio) <= (d - 1) / 2 * -np.diff(1 / t) + rounding).all()
        assert (np.diff(ratio)[-40:] > (d - 1) / 2 * -np.diff(1 / t)[-40:] / 3).all()  # and not much less
        lost = [1 - vmf_mean_ratio(d, (d - 1) / (2 * epsilon)) ** 2 for epsilon in (0.01, 0.005)]
        assert observed_order([0.01, 0.005], lost) == pytest.approx(1, abs=0.02)  # 1 - s_xx
    for d in (24, 96):
        pair = image(torch.full((16, 4000), 0.5, dtype=torch.float64), d, 2, generator=stream(63, "cloud", d))
        coldest = (d - 1.75) * (mean_cosine(0.5, d) - (d - 1) / (d - 1.75) * 0.5) / -0.375
        for ratio in (50.0, 100.0):
            a, b = (torch.from_numpy(vmf_mean_ratio(d, ratio * d * each.numpy())) for each in (pair[1], pair[2]))
            part = (d - 1.75) * a * b * (pair.cosine - pair.control) - (d - 1) / 4 * (a.square() + b.square())
            missing = ratio * (part.mean(dim=1) / -0.375 - coldest)
            assert abs(missing.mean() + 3) < 5 * missing.std() / 4 + 15 / ratio  # 3/d and 100/beta_eff


def test_slow_paths_run_for_their_time_on_the_clock(monkeypatch):
    layers = []

    def count(R, h, d, factors, *, generator):
        layers.append(h)
        return R, R

    monkeypatch.setattr(slow, "cloud_layer", count)
    small = dataclasses.replace(SlowPaths.at("tiny"), factors=(0,))
    run_experiment(small, seed=0, device="cpu")
    assert sum(layers) / small.d == pytest.approx(small.time)


def test_returned_compares_a_share_with_a_probability():
    table = pd.DataFrame({"factors": 2, "returned": np.arange(100) < 80, "recurrent": 0.8})
    found = MEASURES["HT-13.b"](table)
    assert found.value == pytest.approx(0.0)
    assert found.low < 0 < found.high
    both = pd.concat([table.assign(d=1024), table.assign(d=64, returned=False)])
    assert MEASURES["HT-13.d"](both).value == pytest.approx(0.0)


def test_the_line_through_three_steps_meets_the_limit_at_step_zero():
    """HT-13.e: shares on a line lead to its end, with the error of the sum; a share that does not move is refused."""
    shares = {0.025: 780, 0.05: 760, 0.1: 720, 0.2: 100}
    table = pd.concat(
        pd.DataFrame({"factors": 2, "h": h, "returned": np.arange(1000) < count, "recurrent": 0.8})
        for h, count in shares.items()
    )
    claim = {claim.id: claim for claim in CLAIMS}["HT-13.e"]
    found = claim.measure(table)
    assert (found.value, found.n) == (pytest.approx(0.0), 1000)
    weights = np.linalg.pinv(np.array([[1, 0.025], [1, 0.05], [1, 0.1]]))[0]
    variance = sum(w**2 * p * (1 - p) / 1000 for w, p in zip(weights, (0.78, 0.76, 0.72), strict=True))
    assert found.error == pytest.approx(variance**0.5)
    assert claim.control(table).value == pytest.approx(-0.7)
    assert claim.judge(claim.measure(table.assign(returned=table["h"] > 0.1)))[0] == "fails"


def test_the_slow_overlap_says_in_words_what_it_shows():
    paths = pd.DataFrame({"factors": np.repeat([2, 0], 20), "y": np.linspace(-5, 5, 40), "returned": True})
    paths = paths.assign(recurrent=0.8, transient=0.4, recorded=False, tier="ci")
    laws = pd.DataFrame({"kappa": [0, 0, 1, 1], "y": [-1.0, 1.0, -1.0, 1.0], "density": 0.1})
    label = slow.slow_overlap(paths, laws).get_label()
    assert "100 % returned" in label
    assert "$" not in label
