"""Topic flows: drifts, the energy that one of them descends, and the narrow limit, as the rows have them."""

import pytest

from derived.lab.experiment import run_experiment
from derived.papers.sinkhorn import flows
from derived.papers.sinkhorn.flows import HeatLimit, Particles
from derived.papers.sinkhorn.model.flows import limit_drift, sinkhorn_drift

EXPERIMENTS = (Particles, HeatLimit)


@pytest.mark.parametrize("claim", [flows.GRADIENT[2], *flows.HEAT], ids=lambda claim: claim.id)
def test_claims_are_judged_as_expected(rows, claim, expected):
    assert claim.judge(claim.measure(rows[claim.experiment]))[0] == expected[claim.id]


def test_both_normalisers_start_from_the_same_cloud(rows):
    start = rows[Particles].query("step == 0").pivot(index="particle", columns="normaliser", values=["x", "y"])
    for axis in ("x", "y"):
        assert (start[axis, "softmax"] == start[axis, "sinkhorn"]).all()


def test_the_mean_of_the_particles_stands_still_under_sinkhorn_alone(rows):
    mean = rows[Particles].groupby(["normaliser", "step"])[["x", "y"]].mean()
    moved = (mean.xs(8, level="step") - mean.xs(0, level="step")).abs().max(axis="columns")
    assert moved["sinkhorn"] < 1e-10 < 1e-3 < moved["softmax"]


def test_energy_rises_against_the_drift(monkeypatch):
    monkeypatch.setitem(flows.DRIFTS, "sinkhorn", lambda x: -sinkhorn_drift(x))
    rows = run_experiment(Particles.at("tiny"), seed=0, device="cpu")
    claim = flows.GRADIENT[2]
    assert claim.judge(claim.measure(rows))[0] == "fails"


def test_along_half_the_drift_the_energy_falls_too_but_not_at_the_rate_of_its_gradient(monkeypatch):
    monkeypatch.setitem(flows.DRIFTS, "sinkhorn", lambda x: sinkhorn_drift(x) / 2)
    rows = run_experiment(Particles.at("tiny"), seed=0, device="cpu")
    claim = flows.GRADIENT[2]
    assert (rows.query("normaliser == 'sinkhorn' and step > 0")["rise"] < 0).all()
    assert claim.measure(rows).value == pytest.approx(2, abs=0.05)
    assert claim.judge(claim.measure(rows))[0] == "fails"


def test_softmax_fails_where_sinkhorn_holds(rows):
    claim = flows.GRADIENT[2]
    assert claim.judge(claim.control(rows[Particles]))[0] == "fails"


def test_the_other_normaliser_has_the_other_slope(monkeypatch):
    other = {"softmax": "sinkhorn", "sinkhorn": "softmax"}
    monkeypatch.setattr(flows, "limit_drift", lambda width, name, num: limit_drift(width, other[name], num))
    rows = run_experiment(HeatLimit.at("tiny"), seed=0, device="cpu")
    for claim in flows.HEAT:
        assert claim.judge(claim.measure(rows))[0] == "fails", claim.id


def test_the_slope_settles_as_kernels_narrow(rows):
    slopes = rows[HeatLimit].groupby(["normaliser", "width"])["slope"].first()
    for name, limit in (("softmax", 1.0), ("sinkhorn", 0.5)):
        assert abs(slopes[name, 0.05] - limit) < abs(slopes[name, 0.2] - limit) / 8  # second order: a sixteenth
