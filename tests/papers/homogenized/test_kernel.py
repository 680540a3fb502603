"""The kernel of the noise: quotients and distances against quadrature and drawn fields."""

import dataclasses
import itertools
import math

import numpy as np
import pandas as pd
import pytest
import torch

from derived.lab.experiment import run_experiment
from derived.lab.rng import stream
from derived.papers.homogenized.claims.kernel import quotient_power
from derived.papers.homogenized.experiments import kernel
from derived.papers.homogenized.experiments.kernel import KernelDistance, Lipschitz
from derived.papers.homogenized.model.heads import matched_law, simplex_gram, tangent, uniform_tokens
from derived.papers.homogenized.model.overlaps import kernel_distance
from derived.papers.homogenized.model.two_token import two_token_attention_moments

EXPERIMENTS = (Lipschitz, KernelDistance)


COLUMNS = {
    Lipschitz: {"n", "logit_std", "prompts", "pair", "quotient", "gap", "bound"},
    KernelDistance: {"cloud", "gap", "bound", "quotient"},
}


def test_rows_have_the_promised_columns_and_no_failure(rows, complete):
    complete(rows, COLUMNS)


def test_lipschitz_pairs_share_their_heads(monkeypatch):
    """Prompts that differ by 1e-9 have kernels that do, under the same heads."""
    small = dataclasses.replace(Lipschitz.at("tiny"), gammas=())
    one = simplex_gram(8, 0.3)
    sides = itertools.cycle([one, one + 1e-9 * (1 - torch.eye(8, dtype=one.dtype))])
    monkeypatch.setattr(kernel, "overlaps", lambda X: next(sides)[: X.shape[0], : X.shape[0]])
    found = run_experiment(small, seed=0, device="cpu")
    assert (found["gap"] < 100).all()  # heads of their own would give 1e7


def test_lipschitz_quotients_of_two_tokens_are_those_of_the_quadrature():
    small = dataclasses.replace(Lipschitz.at("ci"), tokens=(2,), pairs=0, samples=400)
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
    gap, bound = kernel_distance(points, clouds)
    assert abs(drawn.mean() - gap) < 5 * drawn.std() / len(V) ** 0.5
    by_hand = 2 * math.dist(*points) ** 2 + 2 * sum(math.dist(p, q) ** 2 for p, q in zip(*clouds, strict=True)) / 4
    assert bound.item() == pytest.approx(by_hand)
    rows = KernelDistance.at("ci").run({"cloud": "together"}, seed=0, device="cpu", dtype=torch.float64)
    assert np.allclose(rows["gap"] / rows["bound"], 4 / 10)  # (d - 1) / 2d: the clouds move as a whole


def test_the_quotient_of_a_kernel_grows_or_falls_with_the_number_of_tokens():
    n = np.tile([2, 8, 32], 2)
    table = pd.DataFrame({"n": n, "quotient": np.repeat([0.7, 0.1], 3) * n ** np.repeat([-0.25, 0.0], 3)})
    assert quotient_power(table).value == pytest.approx(-0.25)  # of the largest, whatever the others do
    table.loc[1, "quotient"] = np.nan
    with pytest.raises(ValueError, match="1 of 6 rows have no number"):
        quotient_power(table)
