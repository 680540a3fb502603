"""Random layers and their diffusion, by the pencil and by the package."""

import itertools
import math

import pytest
import torch
from pencil import homogenized as pencil

from derived.papers import homogenized as package
from derived.papers.homogenized.model.heads import Heads


@pytest.mark.parametrize("beta", [0.0, 1.5])
def test_a_head_and_a_layer(draw, table, beta):
    x = [pencil.normalise(row) for row in table(4, 5)]
    V, A = table(5, 5), table(5, 5)
    tokens, v, form = (torch.tensor(each, dtype=torch.float64) for each in (x, V, A))
    pushes = pencil.head(x, V, A, beta)
    torch.testing.assert_close(
        torch.tensor(pushes, dtype=torch.float64), package.attention_field(tokens, v, form, beta)
    )
    moved = [
        pencil.normalise([a + 0.3 * p for a, p in zip(*pair, strict=True)]) for pair in zip(x, pushes, strict=True)
    ]
    heads = Heads(V=v[None], A=form[None], beta=beta)
    torch.testing.assert_close(torch.tensor(moved, dtype=torch.float64), package.layer_step(tokens, 0.3, heads))


@pytest.mark.parametrize("R", [-0.5, 0.0, 0.3, 0.9])
def test_the_drift_of_two_tokens(R):
    """Uniform attention: f = g = 1/2."""
    assert pencil.drift(R, 16) == pytest.approx(float(package.simplex_drift(R, f=0.5, g=0.5, d=16)))


def test_the_logistic_curve():
    """`HT-7`: the curve, and a stack of layers near it where private noise stays at its start."""
    assert pencil.logistic(0.25, 3.0) == pytest.approx(float(package.logistic_overlap(3.0, 0.25)))


def test_heads_have_no_mean(draw):
    """`HT-2.a`: the mean push is zero, the mean product of two pushes is not: within five standard errors."""
    x, y = pencil.axes(2, 6)[0], pencil.normalise([1.0] * 6)
    samples = 2000
    first, second = pencil.kernel_moments(x, y, draw, samples)
    assert abs(first) < 5 * (1 / 6 / samples) ** 0.5
    overlap = pencil.dot(x, y)
    assert abs(second - overlap) < 5 * ((1 + overlap**2) / 6 / samples) ** 0.5
    assert abs(second) > 5 * ((1 + overlap**2) / 6 / samples) ** 0.5  # a product of zero would be refused


def test_shared_noise_gathers_and_private_noise_does_not(draw):
    x = pencil.axes(4, 16)
    shared, private = x, x
    for _ in range(16):
        shared = pencil.layer(shared, 0.5, 1, 0.0, draw)
        private = pencil.layer(private, 0.5, 1, 0.0, draw, shared=False)
    assert pencil.mean_overlap(shared) > 0.6 > 0.55 > pencil.mean_overlap(private)


def stepped(x, step, V, A):
    """One layer of a deterministic head, N(x + step b)."""
    pushes = pencil.head(x, V, A, 1.0)
    return [
        pencil.normalise([a + step * b for a, b in zip(*pair, strict=True)]) for pair in zip(x, pushes, strict=True)
    ]


def flowed(x, V, A, steps=64):
    """The flow of the tangent part of b over the time one, by Heun's rule."""

    def tangent(x):
        pairs = zip(x, pencil.head(x, V, A, 1.0), strict=True)
        return [[b - pencil.dot(row, push) * a for a, b in zip(row, push, strict=True)] for row, push in pairs]

    def moved(x, velocity, h):
        return [[a + h * v for a, v in zip(*pair, strict=True)] for pair in zip(x, velocity, strict=True)]

    for _ in range(steps):
        first = tangent(x)
        x = moved(moved(x, first, 0.5 / steps), tangent(moved(x, first, 1 / steps)), 0.5 / steps)
    return x


def test_layers_follow_the_flow_with_an_error_of_order_one(table):
    """`HT-14.a` fails: where the step is halved the error is halved, too; order two would leave a quarter."""
    x, V, A = [pencil.normalise(row) for row in table(3, 3)], table(3, 3), table(3, 3)
    end, errors = flowed(x, V, A, 256), []
    for layers in (32, 64):
        y = x
        for _ in range(layers):
            y = stepped(y, 1 / layers, V, A)
        errors.append(math.dist(*([*itertools.chain(*each)] for each in (y, end))))
    assert 1.6 < errors[0] / errors[1] < 2.4
