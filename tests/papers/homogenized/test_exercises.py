"""The exercises: what is right by another road, right answers in odd forms, and the package's own refused."""

import math

import numpy as np
import pytest
import torch

from derived.lab.exercises import judged
from derived.lab.rng import stream
from derived.papers.homogenized import exercises
from derived.papers.homogenized.exercises import EXERCISES


def said(label, answer):
    return judged(label, EXERCISES[label], answer)


RIGHT = [
    ("ht-ex-start", lambda L, n, h: (math.exp(L * math.log1p(h)) - 1) / (math.exp(L * math.log1p(h)) + n - 1)),
    ("ht-ex-speed", lambda d, p: np.array(p - p / d - 2 * p**2 / d)),
    ("ht-ex-speed", lambda d, p: float(f"{p * (1 - (1 + 2 * p) / d):.3g}")),
]


@pytest.mark.parametrize(("label", "answer"), RIGHT)
def test_right_answers_in_odd_forms(label, answer):
    assert said(label, answer) == "right"


def test_the_rate_of_a_moment_on_drawn_paths():
    """`ht-clock`: y after one unit of the clock, from y = 6 by small steps of the whole equation."""
    draw, y, step = stream(0, "moments"), torch.full((200_000,), 6.0, dtype=torch.float64), 0.05
    for _ in range(20):
        noise = torch.randn(y.shape, generator=draw, dtype=y.dtype)
        y = y + step * (12 - 2 + torch.tanh(y)) / 24 + math.sqrt(step / 12) * noise
    fallen = torch.exp(-2 * 0.8 * (y - 6))
    right = math.exp(-exercises.moment.right(12, 0.8))
    assert abs(fallen.mean() - right) < 5 * fallen.std() / math.sqrt(len(y)) + 1e-4


def written_out(R, pi, d):
    found = np.zeros_like(R)
    for i in range(len(R)):
        for j in range(len(R)):
            s = {pair: pi[pair[0]] @ R @ pi[pair[1]] for pair in ((i, j), (i, i), (j, j))}
            found[i, j] = (d - 2 + R[i, j] ** 2) / d * s[i, j] - (d - 1) / (2 * d) * R[i, j] * (s[i, i] + s[j, j])
    return found


def in_torch(pi, R, d):
    R, pi = torch.as_tensor(R), torch.as_tensor(pi)
    s = torch.einsum("ik,kl,jl->ij", pi, R, pi)
    return (d - 2 + R**2) / d * s - (d - 1) / (2 * d) * R * (s.diag().unsqueeze(1) + s.diag())


@pytest.mark.parametrize("answer", [written_out, in_torch])
def test_drifts_written_in_other_ways(answer):
    assert said("ht-ex-drift", answer) == "right"


def token_by_token(R, h):
    n = len(R)
    moved = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            moved[i, j] = R[i, j] + h * sum(R[k, l] for k in range(i + 1) for l in range(j + 1)) / (i + 1) / (j + 1)
    return [[moved[i, j] / math.sqrt(moved[i, i] * moved[j, j]) for j in range(n)] for i in range(n)]


def test_a_causal_layer_token_by_token():
    """`ht-wide`: the sums written out; six orthogonal tokens after four layers with h = 1, with a mask and without."""
    assert said("ht-ex-causal", token_by_token) == "right"
    R, S = np.eye(6), np.eye(6)
    for _ in range(4):
        R = np.array(token_by_token(R, 1.0))
        S = (S + S.mean()) / (1 + S.mean())
    assert R.mean() == pytest.approx(0.754, abs=5e-4)
    assert S.mean() == pytest.approx(0.762, abs=5e-4)


@pytest.mark.parametrize("label", EXERCISES)
def test_each_common_mistake_is_refused(label):
    for words, mistake in EXERCISES[label].mistakes.items():
        assert said(label, mistake) != "right", words


def test_a_causal_layer_that_looks_ahead_a_little_is_refused():
    ahead = lambda R, h: np.array(token_by_token(R, h)) + 1e-3 * len(R) * (1 - np.eye(len(R)))  # noqa: E731
    assert "move otherwise when two more follow" in said("ht-ex-causal", ahead)
