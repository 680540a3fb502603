"""Topic labels: cross-entropy and the order of labels, and the staircase."""

import math

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad, trapezoid
from scipy.stats import norm
from torch.nn.functional import cross_entropy

from derived.lab.rng import stream
from derived.papers.geometric_tax import fisher_rao_length, reference
from derived.papers.geometric_tax.labels import FisherRao, LabelPaths
from derived.papers.geometric_tax.model.labels import (
    bin_law,
    fisher_information,
    staircase_lower_bound,
)

EXPERIMENTS = (FisherRao, LabelPaths)
examples = settings(derandomize=True, max_examples=40, deadline=None, database=None)


def softmax_gradients(W, h, y, targets=None):
    """Cross-entropy of softmax(W h) at labels y, and its gradient in h, by hand: W^T (softmax - target)."""
    p = torch.softmax(h @ W.mT, dim=-1)
    target = (torch.eye(len(W), dtype=W.dtype) if targets is None else targets)[y]
    return -(target * p.log()).sum(dim=-1), (p - target) @ W


def trained_encoder(A, B, W, x, y, steps=24):
    """The two matrices of a tanh encoder under a softmax head W after steps of AdamW on labels y."""
    A, B, head = (each.clone().requires_grad_() for each in (A, B, W))
    optimiser = torch.optim.AdamW([A, B, head], lr=0.01, betas=(0.9, 0.99), weight_decay=0.01)
    for _ in range(steps):
        optimiser.zero_grad()
        cross_entropy(torch.tanh(torch.tanh(x @ A.mT) @ B.mT) @ head.mT, y).backward()
        optimiser.step()
    return A.detach(), B.detach()


@examples
@given(st.integers(2, 12), st.integers(1, 6), st.integers(0, 5))
def test_renaming_the_labels_changes_no_loss_and_no_gradient(K, p, seed):
    """`gt-labels`: the rows of the softmax are renamed with them; without that the loss is another one."""
    g = stream(seed, "labels", K, p)
    W, h = torch.randn(K, p, generator=g, dtype=torch.float64), torch.randn(7, p, generator=g, dtype=torch.float64)
    y, new = torch.randint(K, (7,), generator=g), torch.randperm(K, generator=g)
    renamed = torch.empty_like(W)
    renamed[new] = W
    (loss, slope), (other, turned) = softmax_gradients(W, h, y), softmax_gradients(renamed, h, new[y])
    assert (loss - other).abs().max() <= 1e-12
    there = torch.autograd.functional.jacobian(lambda h: cross_entropy(h @ W.mT, y, reduction="sum"), h)
    assert (there - slope).abs().max() <= 1e-12
    assert (slope - turned).abs().max() <= 1e-12
    if (new[y] != y).any() and p > 1:
        assert (softmax_gradients(W, h, new[y])[0] - loss).abs().max() > 1e-6


def test_renamed_labels_train_the_same_encoder():
    """`gt-labels` (2): if the head is renamed with them; without that it is another encoder, as after fewer steps."""
    g = stream(0, "trained")
    x, A, B, W = (torch.randn(*shape, generator=g, dtype=torch.float64) for shape in ((30, 4), (6, 4), (6, 6), (9, 6)))
    y, new = torch.randint(9, (30,), generator=g), torch.randperm(9, generator=g)
    renamed = torch.empty_like(W)
    renamed[new] = W
    plain, same, other = (trained_encoder(A, B, *rest) for rest in ((W, x, y), (renamed, x, new[y]), (W, x, new[y])))
    assert max((a - b).abs().max() for a, b in zip(plain, same, strict=True)) <= 1e-11
    assert max((a - b).abs().max() for a, b in zip(plain, other, strict=True)) > 1e-3
    assert (plain[0] - trained_encoder(A, B, W, x, y, steps=12)[0]).abs().max() > 1e-3


@examples
@given(st.integers(2, 40), st.floats(1e-3, 1.0), st.floats(0, 1))
def test_the_distribution_of_the_bin(K, sigma, m):
    found = bin_law(np.array([m]), K, sigma)[0]
    edges = np.concatenate([[-np.inf], np.arange(1, K) / K, [np.inf]])
    assert (found >= 0).all()
    assert abs(found.sum() - 1) <= 1e-12
    assert np.abs(found - np.diff(norm.cdf(edges, m, sigma))).max() <= 1e-13


@examples
@given(st.integers(2, 20), st.floats(0.02, 0.5), st.floats(0.02, 0.98))
def test_the_fisher_information_by_differences(K, sigma, m):
    step = 1e-5 * sigma
    low, mid, high = bin_law(np.array([m - step, m, m + step]), K, sigma)
    slow = (((high - low) / (2 * step)) ** 2 / np.maximum(mid, 1e-300))[mid > 1e-12].sum()
    assert abs(fisher_information(np.array([m]), K, sigma)[0] - slow) <= 1e-4 * slow + 1e-6 / sigma**2


def test_the_length_of_one_boundary():
    """`gt-staircase`, its first line: p from 0 to 1 is an arc of length pi, and so is one boundary crossed whole."""
    arc = quad(lambda p: 1 / math.sqrt(p * (1 - p)), 0, 1)[0]
    assert abs(arc - math.pi) <= 1e-6
    assert abs(fisher_rao_length(2, 0.01) - math.pi) <= 1e-9
    assert fisher_rao_length(2, 1.0) < 1.0  # a boundary that is never crossed whole is shorter


@settings(derandomize=True, max_examples=15, deadline=None, database=None)
@given(st.integers(2, 60), st.floats(2e-3, 2.0))
def test_the_staircase_is_no_longer_than_either_cap(K, sigma):
    """`gt-staircase`: both upper bounds, the lower one, and the chords of the reference program."""
    length = fisher_rao_length(K, sigma)
    assert length <= min(math.pi * (K - 1), 1 / sigma) * (1 + 1e-9)
    assert length >= staircase_lower_bound(K, sigma) * (1 - 1e-8)
    chain = reference.fisher_rao_length(K, sigma, 600)
    assert chain <= length * (1 + 1e-7)
    assert chain >= 0.97 * length


@settings(derandomize=True, max_examples=4, deadline=None, database=None)
@example(45, 0.01)  # the parts near two edges overlap
@given(st.integers(2, 60), st.floats(4e-3, 0.5))
def test_the_length_is_the_integral_of_the_speed(K, sigma):
    m = np.linspace(0, 1, 8_001)
    speed = np.sqrt(fisher_information(m, K, sigma))
    assert abs(fisher_rao_length(K, sigma) / trapezoid(speed, m) - 1) <= 1e-4


def test_both_limits():
    assert abs(fisher_rao_length(8, 1e-3) / (7 * math.pi) - 1) <= 1e-9
    for K in (2, 8, 512, 10_000):  # however sharp; ten thousand edges are ten times 1e-5 apart
        assert fisher_rao_length(K, 1e-12) == pytest.approx(math.pi * (K - 1), rel=1e-9)
    assert abs(0.004 * fisher_rao_length(1024, 0.004) - 1) <= 0.005
    lengths = [fisher_rao_length(K, 0.02) for K in (2, 4, 8, 16, 32, 64)]
    assert lengths == sorted(lengths)  # finer bins refine: information only grows


def test_rows_of_lengths(rows):
    table = rows[FisherRao]
    assert (table["length"] <= np.minimum(table["steps_cap"], 1 / table["sigma"]) * (1 + 1e-9)).all()
    grid = rows[LabelPaths]
    sums = grid.groupby(["sigma", "K", "m"])["p"].sum()
    assert (sums - 1).abs().max() <= 1e-12


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fisher_rao_length(1, 0.1), "K = 1"),
        (lambda: fisher_rao_length(4, 0.0), "sigma = 0"),
        (lambda: fisher_rao_length(4, math.nan), "sigma = nan"),
        (lambda: bin_law(np.array([1.5]), 4, 0.1), "m"),
        (lambda: staircase_lower_bound(4, 0.0), "sigma = 0"),
    ],
)
def test_what_is_no_staircase_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
