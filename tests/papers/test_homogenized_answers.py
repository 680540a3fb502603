"""Experiments against answers known otherwise: quadrature, drawn fields, another temperature."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
import torch

from derived.lab.experiment import run_experiment
from derived.lab.rng import stream
from derived.papers.homogenized import depth, experiments, limits
from derived.papers.homogenized.heads import matched_law, simplex_gram, tangent, uniform_tokens
from derived.papers.homogenized.two_token import two_token_attention_moments, two_token_pde


def test_lipschitz_pairs_share_their_heads(monkeypatch):
    """Prompts that differ by 1e-9 have kernels that do, under the same heads."""
    small = dataclasses.replace(experiments.Lipschitz.at("ci"), tokens=(2, 8), d=16, gammas=(), batches=4, samples=10)
    one = simplex_gram(8, 0.3)
    sides = itertools.cycle([one, one + 1e-9 * (1 - torch.eye(8, dtype=one.dtype))])
    monkeypatch.setattr(experiments, "overlaps", lambda X: next(sides)[: X.shape[0], : X.shape[0]])
    found = run_experiment(small, seed=0, device="cpu")
    assert (found["gap"] < 100).all()  # heads of their own would give 1e7


def test_lipschitz_quotients_of_two_tokens_are_those_of_the_quadrature():
    small = dataclasses.replace(experiments.Lipschitz.at("ci"), tokens=(2,), pairs=0, samples=400)
    for (s, gamma), row in run_experiment(small, seed=0, device="cpu").groupby(["logit_std", "pair"]):
        R = np.array([gamma, gamma + small.move])
        moments = two_token_attention_moments(R, small.d, 1.0, matched_law(small.d, s).sigma_a)
        exact = max(abs(np.diff(R + (1 - R) * moment)).item() for moment in moments) / small.move
        error = (row["gap"] - row["quotient"]).item()  # five standard errors
        assert abs(row["quotient"].item() - exact) < error < 0.1
        assert row["bound"].item() == pytest.approx(1 + 9 * s**2)


def test_kernels_of_two_clouds_have_the_distance_of_drawn_fields():
    """Different points x and y as well as different clouds, with V drawn; the bound by hand."""
    d = 3
    pairs = uniform_tokens(5, d, generator=stream(11, "clouds"), replicas=2)
    points, clouds = pairs[:, 0], pairs[:, 1:]
    V = torch.randn(60_000, d, d, generator=stream(11, "V"), dtype=torch.float64) / d**0.5
    fields = [tangent(x, (V @ cloud.mean(dim=0))) for x, cloud in zip(points, clouds, strict=True)]
    drawn = (fields[0] - fields[1]).square().sum(dim=-1)
    gap, bound = experiments.kernel_distance(points, clouds)
    assert abs(drawn.mean() - gap) < 5 * drawn.std() / len(V) ** 0.5
    by_hand = 2 * math.dist(*points) ** 2 + 2 * sum(math.dist(p, q) ** 2 for p, q in zip(*clouds, strict=True)) / 4
    assert bound.item() == pytest.approx(by_hand)
    rows = experiments.KernelDistance.at("ci").run({"cloud": "together"}, seed=0, device="cpu", dtype=torch.float64)
    assert np.allclose(rows["gap"] / rows["bound"], 4 / 10)  # (d - 1) / 2d: the clouds move as a whole


def test_finite_temperature_becomes_the_coldest():
    small = dataclasses.replace(
        experiments.FiniteBeta.at("ci"), widths=(32,), ratios=(10.0, 1e4), replicates=4, samples=200
    )
    rows = run_experiment(small, seed=0, device="cpu")
    gap = (rows["drift"] - rows["coldest"]).groupby(rows["ratio"]).mean()
    assert abs(gap[1e4]) < 1e-3
    assert gap[10.0] < -0.2


def test_multi_head_attention_has_a_clock_without_heads():
    """The covariance of the increment does not depend on H: fresh weights of variance 1/d, heads summed."""
    x = torch.nn.functional.layer_norm(torch.randn(200, 4, 32, generator=stream(9, "x")), (32,))
    sizes = [limits.multi_head(x, H, generator=stream(9, H)).square().mean().item() for H in (1, 4, 32)]
    assert max(sizes) / min(sizes) < 1.15


@pytest.mark.parametrize(("H", "rank"), [(1, 16), (4, 4)])
def test_multi_head_attention_has_logits_of_deviation_one(H, rank):
    """Two orthogonal tokens of length sqrt(d): the mean square of an entry is f, by quadrature over keys of d/H."""
    x = (4.0 * torch.eye(16)[:2]).expand(20_000, 2, 16)
    sizes = limits.multi_head(x, H, generator=stream(12, H)).square().mean(dim=(-2, -1)).double()
    error = 5 * sizes.std().item() / len(x) ** 0.5
    f = {s: two_token_attention_moments(0.0, 16, 1.0, (s / rank**0.5) ** 0.5, rank=rank)[0] for s in (0.0, 1.0, 3.0)}
    assert abs(sizes.mean().item() - f[1.0]) < error
    assert all(abs(sizes.mean().item() - f[s]) > 2 * error for s in (0.0, 3.0))


def test_weak_error_vanishes_with_the_step_and_only_against_its_own_temperature():
    small = dataclasses.replace(depth.WeakError.at("ci"), logit_std=8.0, cases=((0.2, 1),), batch=2000)
    error, reach = run_experiment(small, seed=0, device="cpu")["error"].mean(), 5 * 0.4 / 48_000**0.5
    assert abs(error) < reach + 0.005  # and 0.04 is the step
    uniform, attending = (two_token_pde(8, 1.0, matched_law(8, s).sigma_a, 0.0, [1.92]).first[0] for s in (0.0, 8.0))
    assert abs(error + attending - uniform) > reach + 0.005
