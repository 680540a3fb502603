"""Topic flows: drifts, the energy that one of them descends, and the narrow limit, as the rows have them."""

import pytest

from derived.lab.experiment import run_experiment
from derived.papers.sinkhorn import flows
from derived.papers.sinkhorn.flows import HeatLimit
from derived.papers.sinkhorn.model.flows import limit_drift

EXPERIMENTS = (HeatLimit,)


@pytest.mark.parametrize("claim", flows.CLAIMS[1:], ids=lambda claim: claim.id)
def test_claims_are_judged_as_expected(rows, claim, expected):
    assert claim.judge(claim.measure(rows[claim.experiment]))[0] == expected[claim.id]


def test_the_other_normaliser_has_the_other_slope(monkeypatch):
    other = {"softmax": "sinkhorn", "sinkhorn": "softmax"}
    monkeypatch.setattr(flows, "limit_drift", lambda width, name, num: limit_drift(width, other[name], num))
    rows = run_experiment(HeatLimit.at("tiny"), seed=0, device="cpu")
    for claim in flows.CLAIMS[1:]:
        assert claim.judge(claim.measure(rows))[0] == "fails", claim.id


def test_the_slope_settles_as_kernels_narrow(rows):
    slopes = rows[HeatLimit].groupby(["normaliser", "width"])["slope"].first()
    for name, limit in (("softmax", 1.0), ("sinkhorn", 0.5)):
        assert abs(slopes[name, 0.05] - limit) < abs(slopes[name, 0.2] - limit) / 8  # second order: a sixteenth
