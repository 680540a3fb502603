"""The exercises: what is right by another road, and right answers in odd forms."""

import math
from fractions import Fraction

import numpy as np
import pytest
import sympy
import torch
from scipy import integrate

from derived.lab.exercises import judged
from derived.lab.rng import stream
from derived.papers.homogenized import exercises
from derived.papers.homogenized.exercises import EXERCISES
from derived.papers.homogenized.model.cloud import slow_bracket, slow_drift, slow_overlap_sde
from derived.papers.homogenized.model.heads import Heads, layer_step, tangent, uniform_tokens
from derived.papers.homogenized.model.overlaps import gram_flow


def said(label, answer):
    return judged(label, EXERCISES[label], answer)


d, R, n, start, target, p, gamma, eta = sympy.symbols("d R n start target p gamma eta")

RIGHT = [
    ("ht-ex-trace", lambda d, R: d - 2 + R**4),
    ("ht-ex-trace", d - 2 + R**4),
    ("ht-ex-trace", lambda width, overlap: Fraction(width) - 2 + Fraction(str(overlap)) ** 4),
    ("ht-ex-trace", lambda R, d: torch.tensor(d - 2.0).double() + R**4),
    ("ht-ex-trace", lambda d, R: float(f"{d - 2 + R**4:.4g}")),
    ("ht-ex-start", sympy.log((1 + (n - 1) * target) * (1 - start) / ((1 + (n - 1) * start) * (1 - target)))),
    ("ht-ex-speed", lambda d, p: np.array(p - p / d - 2 * p**2 / d)),
    ("ht-ex-speed", lambda d, p: float(f"{p * (1 - (1 + 2 * p) / d):.3g}")),
    ("ht-ex-corrector", lambda eta, gamma: torch.clamp(torch.tensor(-eta / 2 * (1 + gamma) ** 2 * (1 - gamma)), max=0)),
    ("ht-ex-corrector", -eta / 2 * (1 + gamma) * (1 - gamma**2)),
]


@pytest.mark.parametrize(("label", "answer"), RIGHT)
def test_right_answers_in_odd_forms(label, answer):
    assert said(label, answer) == "right"


def test_the_stationary_share_from_drift_and_bracket_of_u():
    """`ht-recurrent`: the density of u is exp(int 2 drift / bracket) / bracket, here by quadrature in u."""

    def share(k, v):
        rate = lambda u: 2 * slow_drift(u, k / 2) / slow_bracket(u)  # noqa: E731
        density = lambda u: math.exp(integrate.quad(rate, 0, u)[0]) / slow_bracket(u)  # noqa: E731
        inside, outside = integrate.quad(density, 0, v)[0], integrate.quad(density, v, 1, limit=200)[0]
        return inside / (inside + outside)

    for k, v in ((4, 0.5), (8, 0.2)):
        assert abs(share(k, v) - exercises.factors.right(k, v)) < 1e-4


def test_the_stationary_share_on_long_paths():
    y = slow_overlap_sde(2.0, np.arange(20.0, 60, 5), paths=20_000, generator=stream(0, "long paths"))
    inside = (torch.tanh(y).abs() < 0.5).double().mean(dim=1)
    right = exercises.factors.right(4, 0.5)
    assert (inside - right).abs().max() < 5 * math.sqrt(right * (1 - right) / 20_000)


def test_the_time_between_overlaps_is_that_of_the_flow_of_a_gram_matrix():
    """`ht-hot`: eight tokens at a width of 10^9, by Runge and Kutta's steps."""
    gram = torch.full((8, 8), 0.1, dtype=torch.float64).fill_diagonal_(1.0)
    tau = exercises.clock.right(8, 0.1, 0.7)
    assert abs(float(gram_flow(gram, [tau], 10**9)[0, 0, 1]) - 0.7) < 1e-6


def test_the_rate_of_a_moment_on_drawn_paths():
    """`ht-two`: y after one unit of the clock, from y = 6 by small steps of the whole equation."""
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


def test_second_derivatives_know_what_a_layer_does():
    """`ht-overlap`: the drift that the check compares with is that of drawn layers, V and -V in pairs."""
    X, R, pi = exercises._prompt(5, 7)
    V = torch.randn(200_000, 1, 5, 5, generator=stream(0, "V"), dtype=X.dtype) / 5**0.5
    m, h = torch.from_numpy(pi) @ X, 1e-3
    pairs = [torch.nn.functional.normalize(X + sign * h**0.5 * m @ V[:, 0].mT, dim=-1) for sign in (1, -1)]
    change = (sum(Y @ Y.mT for Y in pairs) / 2 - torch.from_numpy(R)) / h
    error = change.std(dim=0) / len(change) ** 0.5
    assert ((change.mean(dim=0) - exercises.ito_drift(X, torch.from_numpy(pi))).abs() < 5 * error + 10 * h).all()


def by_differences(field, eta):
    b = lambda X: tangent(X, field(X))  # noqa: E731

    def drift(X):
        step, v = 1e-5, b(X)
        turned = (b(X + step * v) - b(X - step * v)) / (2 * step)
        outward = (X * field(X)).sum(dim=-1, keepdim=True)
        return (v - eta / 2 * tangent(X, turned) - eta * outward * v).numpy()

    return drift


def test_a_corrected_field_by_differences_and_in_numpy():
    assert said("ht-ex-order", by_differences) == "right"
    assert said("ht-ex-order", lambda b_star, step: by_differences(b_star, step)) == "right"


def test_the_layer_of_the_check_is_that_of_the_package():
    X = uniform_tokens(3, 3, generator=stream(0, "X"))[0]
    one = torch.eye(3, dtype=X.dtype)[None]
    moved = layer_step(X, 0.1, Heads(one, one, 0.0))
    assert torch.allclose(moved, torch.nn.functional.normalize(X + 0.1 * X.mean(dim=0), dim=-1), atol=1e-12)
