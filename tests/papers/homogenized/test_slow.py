"""The slow overlap: its experiments, measures and figure."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch

from derived.lab.experiment import run_experiment
from derived.lab.rng import stream
from derived.papers.homogenized.claims.measures import ratio
from derived.papers.homogenized.claims.slow import CLAIMS, drift_by_width
from derived.papers.homogenized.experiments import slow
from derived.papers.homogenized.experiments.slow import Cosines, FiniteBeta, SlowDrift, SlowPaths
from derived.papers.homogenized.figures import slow as figures
from derived.papers.homogenized.model.cloud import vmf_mean_ratio
from derived.papers.homogenized.model.flows import observed_order

MEASURES = {claim.id: claim.measure for claim in CLAIMS}
EXPERIMENTS = (Cosines, SlowDrift, FiniteBeta, SlowPaths)


COLUMNS = {
    Cosines: {"d", "factors", "replicate", "kappa"},
    SlowDrift: {"d", "factors", "R", "replicate", "drift", "bracket"},
    FiniteBeta: {"d", "ratio", "replicate", "drift", "coldest"},
    SlowPaths: {"factors", "replicate", "returned", "y", "recurrent", "transient"},
}


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
    found = FiniteBeta(widths=(24, 96), ratios=(50.0, 100.0), replicates=16, samples=4000)
    rows = run_experiment(found, seed=63, device="cpu")
    for (_, ratio), part in rows.groupby(["d", "ratio"]):
        missing = ratio * (part["drift"] - part["coldest"])
        assert abs(missing.mean() + 3) < 5 * missing.std() / 4 + 15 / ratio  # 3/d and 100/beta_eff


def test_finite_temperature_becomes_the_coldest():
    small = dataclasses.replace(FiniteBeta.at("tiny"), widths=(32,), ratios=(10.0, 1e4), samples=200)
    rows = run_experiment(small, seed=0, device="cpu")
    gap = (rows["drift"] - rows["coldest"]).groupby(rows["ratio"]).mean()
    assert abs(gap[1e4]) < 1e-3
    assert gap[10.0] < -0.2


def test_slow_paths_run_for_their_time_on_the_clock(monkeypatch):
    layers = []

    def count(R, h, d, factors, *, generator):
        layers.append(h)
        return R, R

    monkeypatch.setattr(slow, "cloud_layer", count)
    small = dataclasses.replace(SlowPaths.at("tiny"), factors=(0,))
    run_experiment(small, seed=0, device="cpu")
    assert sum(layers) / small.d == pytest.approx(small.time)


def test_drift_by_width_sees_a_drift_that_falls_like_one_over_d():
    noise = 0.01 * torch.randn(2, 2, 30, generator=stream(10, "drift"), dtype=torch.float64).numpy()
    keys = [(d, R) for d in (24, 40) for R in (0.4, 0.7)]
    scaled = pd.concat(
        [
            pd.DataFrame({"d": d, "R": R, "drift": 2 + part})
            for (d, R), part in zip(keys, noise.reshape(4, -1), strict=True)
        ]
    ).assign(factors=2)
    found = drift_by_width(scaled)
    assert found.low < 0.6 < found.high < 0.65
    assert drift_by_width(scaled.assign(drift=scaled["drift"] * scaled["d"])).low > 0.95
    one, other = (scaled.loc[scaled["d"] == d, "drift"] for d in (24, 40))
    assert ratio(one, other, cases=4).high > ratio(one, other).high


def test_missing_part_of_the_drift_tells_d_from_its_square():
    d, replicate = (axis.ravel() for axis in np.meshgrid([32, 128], range(5)))
    table = pd.DataFrame({"d": d, "replicate": replicate, "coldest": 2.0})
    law, square = (table.assign(drift=2 - part, ratio=10) for part in (0.3, 0.01 * d))
    assert MEASURES["HT-18.c"](law.assign(ratio=100, drift=2 - 0.03)).value == pytest.approx(-3)
    assert MEASURES["HT-18.d"](law).value == pytest.approx(0)
    assert MEASURES["HT-18.d"](square).value == pytest.approx(1)


def test_returned_compares_a_share_with_a_probability():
    table = pd.DataFrame({"factors": 2, "returned": np.arange(100) < 80, "recurrent": 0.8})
    found = MEASURES["HT-13.b"](table)
    assert found.value == pytest.approx(0.0)
    assert found.low < 0 < found.high


def test_the_slow_overlap_says_in_words_what_it_shows():
    paths = pd.DataFrame({"factors": np.repeat([2, 0], 20), "y": np.linspace(-5, 5, 40), "returned": True})
    paths = paths.assign(recurrent=0.8, transient=0.4, recorded=False, tier="ci")
    laws = pd.DataFrame({"kappa": [0, 0, 1, 1], "y": [-1.0, 1.0, -1.0, 1.0], "density": 0.1})
    label = figures.slow_overlap(paths, laws).get_label()
    assert "100 % returned" in label
    assert "$" not in label
