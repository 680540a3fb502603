"""Random layers and their diffusion, by the reference program and by the package."""

import pytest
import torch

from derived.papers import homogenized as package
from derived.papers.homogenized import reference
from derived.papers.homogenized.model.heads import Heads


@pytest.mark.parametrize("beta", [0.0, 1.5])
def test_a_head_and_a_layer(draw, table, beta):
    x = [reference.normalise(row) for row in table(4, 5)]
    V, A = table(5, 5), table(5, 5)
    tokens, v, form = (torch.tensor(each, dtype=torch.float64) for each in (x, V, A))
    pushes = reference.head(x, V, A, beta)
    torch.testing.assert_close(
        torch.tensor(pushes, dtype=torch.float64), package.attention_field(tokens, v, form, beta)
    )
    moved = [
        reference.normalise([a + 0.3 * p for a, p in zip(*pair, strict=True)]) for pair in zip(x, pushes, strict=True)
    ]
    heads = Heads(V=v[None], A=form[None], beta=beta)
    torch.testing.assert_close(torch.tensor(moved, dtype=torch.float64), package.layer_step(tokens, 0.3, heads))


@pytest.mark.parametrize("R", [-0.5, 0.0, 0.3, 0.9])
def test_the_drift_of_two_tokens(R):
    """Uniform attention: f = g = 1/2."""
    assert reference.drift(R, 16) == pytest.approx(float(package.simplex_drift(R, f=0.5, g=0.5, d=16)))


def test_the_logistic_curve():
    assert reference.logistic(0.25, 3.0) == pytest.approx(float(package.logistic_overlap(3.0, 0.25)))


def test_heads_have_no_mean(draw):
    """the mean push is zero, the mean product of two pushes is not: within five standard errors."""
    x, y = reference.axes(2, 6)[0], reference.normalise([1.0] * 6)
    samples = 2000
    first, second = reference.kernel_moments(x, y, draw, samples)
    assert abs(first) < 5 * (1 / 6 / samples) ** 0.5
    overlap = reference.dot(x, y)
    assert abs(second - overlap) < 5 * ((1 + overlap**2) / 6 / samples) ** 0.5
    assert abs(second) > 5 * ((1 + overlap**2) / 6 / samples) ** 0.5  # a product of zero would be refused


def test_shared_noise_gathers_and_private_noise_does_not(draw):
    x = reference.axes(4, 16)
    shared, private = x, x
    for _ in range(16):
        shared = reference.layer(shared, 0.5, 1, 0.0, draw)
        private = reference.layer(private, 0.5, 1, 0.0, draw, shared=False)
    assert reference.mean_overlap(shared) > 0.6 > 0.55 > reference.mean_overlap(private)
