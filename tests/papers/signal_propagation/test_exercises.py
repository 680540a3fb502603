"""Answers to the exercises of the chapter: right ones in odd forms, and wrong ones that a check once took for right."""

import math

import numpy as np
import pytest
import torch

from derived.lab.exercises import judged
from derived.papers.signal_propagation.exercises import EXERCISES
from derived.papers.signal_propagation.model import kernels


def said(label, answer, part=None):
    return judged(label, EXERCISES[label] if part is None else EXERCISES[label][part], answer)


def sine(variance, overlap, slope):
    """In torch, with other names, as a list."""
    variance, overlap, slope = map(torch.as_tensor, (variance, overlap, slope))
    c = slope**2
    damp = torch.exp(-c * variance)
    odd = [damp * torch.sinh(c * each) for each in (variance, overlap)]
    return [*odd, *(c * damp * torch.cosh(c * each) for each in (variance, overlap))]


def forward(q0, p0, kernel, a, s, n, depth):
    """From the source on, with the row vector (1, 0): the product of blocks is the same read from the other end."""
    q, p, row = np.asarray(q0), np.asarray(p0), np.array([1.0, 0.0])
    for _ in range(depth):
        m = kernel.moments(q, p)
        mixed = a * (m.p_tilde + (m.q_tilde - m.p_tilde) / n)
        q, p = q + mixed, p + mixed
        attention = np.eye(2) + a / n * np.outer([m.q_hat, m.p_hat], [1, n - 1])
        m = kernel.moments(q, p)
        rho = min(1.0, m.p_tilde / m.q_tilde)
        row = row @ attention * [1 + s / 2 * m.q_hat, 1 + s * kernels.arccos_kernel_prime(rho) * m.p_hat]
        q, p = q + s / 2 * m.q_tilde, p + s * m.q_tilde * kernels.arccos_kernel(rho)
    return torch.tensor(row[0])


@pytest.mark.parametrize(
    ("label", "part", "answer"),
    [
        ("sp-ex-two-thirds", 0, lambda ratio: np.float32(ratio) / (ratio + 2)),
        ("sp-ex-two-thirds", 1, 2),
        ("sp-ex-match", None, 0.75),
        ("sp-ex-match", None, torch.tensor(0.7499)),
        ("sp-ex-sine", None, sine),
        ("sp-ex-amplification", None, forward),
        ("sp-ex-amplification", None, lambda x1, x2, x3, x4, x5, x6, x7: forward(x1, x2, x3, x4, x5, x6, x7)),
    ],
)
def test_right_answers_of_any_kind_are_right(label, part, answer):
    assert said(label, answer, part) == "right"


@pytest.mark.parametrize(
    ("label", "part", "answer"),
    [
        ("sp-ex-two-thirds", 0, 2 / 3),
        ("sp-ex-two-thirds", 0, lambda r: r / 6),
        ("sp-ex-two-thirds", 0, lambda r: (r - 2) / (r - 1)),
        ("sp-ex-match", None, 0.8),
        ("sp-ex-sine", None, lambda q, p, alpha: 0.5),
        ("sp-ex-amplification", None, lambda q0, p0, kernel, a, s, n, depth: math.nan),
    ],
)
def test_what_a_check_once_took_for_right_is_refused(label, part, answer):
    assert said(label, answer, part).startswith("not right: ")
