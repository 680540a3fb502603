"""Topic rates: Birkhoff's bound, the local rate, over-relaxation, random scores, and the clock."""

import dataclasses

import torch

from derived.lab.experiment import run_experiment
from derived.lab.rng import stream
from derived.papers.sinkhorn import rates
from derived.papers.sinkhorn.model.plan import sinkhorn
from derived.papers.sinkhorn.model.theory import local_rate, random_rate
from derived.papers.sinkhorn.rates import AttentionTime, Contraction, RandomScores

EXPERIMENTS = (Contraction, RandomScores, AttentionTime)


def test_half_of_the_calculated_rate_is_refused(monkeypatch):
    monkeypatch.setattr(rates, "random_rate", lambda s, n: random_rate(s, n) / 2)
    small = dataclasses.replace(RandomScores.at("tiny"), sizes=(256,), replicates=16)
    rows = run_experiment(small, seed=0, device="cpu")
    claim = next(each for each in rates.CONVERGENCE if each.id == "SK-5")
    assert claim.judge(claim.measure(rows))[0] == "fails"


def test_a_push_dies_at_the_predicted_rate(rows):
    table = rows[Contraction].query("iteration == 0")
    plain, best = (table[table["omega"] == name] for name in ("plain", "best"))
    assert (plain["rate"] / plain["predicted"] - 1).abs().max() < 0.01
    assert (best["rate"] - best["predicted"]).abs().max() < 0.12  # at the best omega the error carries a factor T
    moved = rows[Contraction].query("omega == 'plain' and ratio == ratio")
    assert (moved["ratio"] <= moved["kappa2"]).all()


def test_distances_fall_to_rounding(rows):
    table = rows[Contraction].query("omega == 'plain' and spread < 1")
    last = table[table["iteration"] == table["iteration"].max()]
    assert (last["distance"] < 1e-12).all()
    assert (last["column_error"] < 1e-13).all()


def test_over_relaxation_is_faster_where_the_plain_way_is_slow(rows):
    table = rows[Contraction].query("spread == 2.0 and iteration == 0").pivot(index="instance", columns="omega")
    assert (table["rate", "best"] < table["rate", "plain"]).all()


def test_the_rate_of_random_scores_falls_with_length(rows):
    means = rows[RandomScores].query("s == 0.5").groupby("n")["sigma2"].mean()
    assert 1.4 < means[32] / means[64] < 2.8


def test_iterations_are_counted_from_softmax(rows):
    table = rows[RandomScores]
    easy = table[table["softmax_error"] <= 1e-2]
    assert (easy["it_1e2"] == 0).all()
    assert (table["it_1e6"] >= table["it_1e3"]).all()
    assert (table["it_1e3"] >= table["it_1e2"]).all()


def test_the_local_rate_is_that_of_the_iteration_at_its_end():
    scores = 2 * torch.randn(6, 5, generator=stream(0, "end"), dtype=torch.float64)
    limit = sinkhorn(scores, tol=1e-14, max_iterations=5000)
    errors = [float((sinkhorn(scores, tol=1e-300, max_iterations=k).f - limit.f).diff().norm()) for k in (30, 31)]
    assert abs(errors[1] / errors[0] - float(local_rate(limit.plan))) < 1e-3


def test_the_clock_has_a_time_for_each(rows):
    assert (rows[AttentionTime][["softmax", "sinkhorn_3", "sinkhorn_21"]] > 0).all(axis=None)
