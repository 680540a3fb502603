"""The exercises: what is right by another road, and right answers in odd forms."""

import math

import numpy as np
import pytest
import torch

from derived.lab.exercises import judged
from derived.papers.hierarchical_kernel import exercises
from derived.papers.hierarchical_kernel.exercises import EXERCISES
from derived.papers.hierarchical_kernel.model.pyramid import pyramid


def verdict(label, answer, part=None):
    asked = EXERCISES[label]
    return judged(label, asked if part is None else asked[part], answer)


RIGHT = [
    ("hkt-ex-leak", None, lambda x: torch.softmax(torch.tensor([1, 1, 1 + x]).double() * (1 + x) / 4, 0)[[0, 2]].sum()),
    (
        "hkt-ex-inertia",
        None,
        lambda q, k: [(q @ k - math.hypot(*q) * math.hypot(*k)) / 2, (q @ k + math.hypot(*q) * math.hypot(*k)) / 2],
    ),
    ("hkt-ex-inertia", None, lambda k, q: torch.linalg.eigvalsh(torch.tensor(np.outer(q, k) + np.outer(k, q)) / 2)),
]


@pytest.mark.parametrize(("label", "part", "answer"), RIGHT)
def test_right_answers_in_odd_forms(label, part, answer):
    assert verdict(label, answer, part) == "right"


def test_the_leak_by_the_layer_in_loops():
    """`hkt-leak` with numbers: block means, the mask, softmax, and no code of the package."""

    def second(t):
        x = [1, 0, 1, t]
        blocks = [(x[0] + x[1]) / 2, (x[2] + x[3]) / 2]
        weights = [math.exp(blocks[1] * blocks[j // 2]) for j in range(3)]
        return sum(w * x[j] for j, w in enumerate(weights)) / sum(weights)

    assert verdict("hkt-ex-leak", second) == "right"


def from_the_packages_pyramid(x, W_Q, W_K, alpha):
    x, S = torch.tensor(x), 0
    for l, rows in enumerate(pyramid(x, len(alpha))):
        table = rows @ torch.tensor(W_Q[l]) @ torch.tensor(W_K[l]).T @ rows.T / W_Q.shape[2] ** 0.5
        index = torch.arange(len(x)) >> l
        S = S + alpha[l] * table[index][:, index]
    return S.masked_fill(torch.ones_like(S).triu(1).bool(), -math.inf).softmax(dim=-1)


def test_attention_by_the_packages_pyramid():
    assert verdict("hkt-ex-attention", from_the_packages_pyramid) == "right"


def by_moving(layer, T, d):
    x, later = torch.randn(T, d, generator=torch.Generator().manual_seed(3), dtype=torch.float64), []
    for i in range(1, T):
        other = x.clone()
        other[i:] += torch.linspace(1, 2, (T - i) * d).double().view(T - i, d)
        later.append((layer(other) - layer(x))[:i].abs().max() > 1e-10)
    return torch.stack(later).any()


def test_a_detector_that_moves_tokens():
    assert verdict("hkt-ex-detector", by_moving) == "right"


def test_a_detector_at_tokens_of_zero_misses_products():
    def at_zero(layer, T, d):
        J = torch.autograd.functional.jacobian(layer, torch.zeros(T, d, dtype=torch.float64)).abs().amax(dim=(1, 3))
        return bool(J.triu(1).max() > 1e-12)

    assert "a leak is not seen" in verdict("hkt-ex-detector", at_zero)


def test_the_scores_of_the_check_are_those_of_the_package():
    """`hkt-layer`: a causal average by its window, and by the pyramid."""
    x = exercises._layer(4, 3, 7)["x"]
    for l, rows in enumerate(pyramid(torch.tensor(x), 3)):
        for j, row in enumerate(rows.numpy()):
            window = x[max(0, (j - 1) * 2**l + 1) : j * 2**l + 1].sum(axis=0) / 2**l
            assert np.abs(row - window).max() < 1e-14
