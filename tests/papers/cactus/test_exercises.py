"""Answers to the exercises of the chapter: right ones in odd forms, and wrong ones that a check once took for right."""

import re
from fractions import Fraction

import numpy as np
import pytest
import torch

from derived.lab.exercises import judged
from derived.papers.cactus.exercises import EXERCISES


def said(label, answer, part=None):
    return judged(label, EXERCISES[label] if part is None else EXERCISES[label][part], answer)


def raised(q, delta):
    return (q + (2 * delta * q * (1 - q)).sqrt()).clamp(max=1)


def law(p, q, delta):
    """In torch, with a loop over all drafts."""
    p, q = torch.as_tensor(p), torch.as_tensor(q)
    gamma = raised(q, delta)
    emitted = torch.minimum(p, gamma)
    for n in range(len(p)):
        h = (1 - gamma[n]) / (1 - q[n]) * q
        h[n] = gamma[n]
        rest = (h - p).clamp(min=0)
        emitted = emitted + (p[n] - gamma[n]).clamp(min=0) * rest / rest.sum().clamp(min=1e-300)
    return emitted


@pytest.mark.parametrize(
    ("label", "part", "answer"),
    [
        ("cac-ex-hand", 0, Fraction(1, 2)),
        ("cac-ex-hand", 0, torch.tensor(0.5)),
        ("cac-ex-hand", 1, [Fraction(1, 2), 0, 0.5]),
        ("cac-ex-hand", 1, np.float32([0.5, 0, 0.5])),
        ("cac-ex-tv", None, lambda delta, q_n: np.minimum(q_n + delta, 1)),
        ("cac-ex-rule", None, lambda delta, q_n: np.minimum(1, q_n + np.sqrt(np.float32(2 * delta * q_n * (1 - q_n))))),
        ("cac-ex-law", None, law),
        ("cac-ex-law", None, lambda draft, verifier, budget: law(draft, verifier, budget).float()),
    ],
)
def test_right_answers_of_any_kind_are_right(label, part, answer):
    assert said(label, answer, part) == "right"


@pytest.mark.parametrize(
    ("label", "part", "answer"),
    [
        ("cac-ex-hand", 1, []),
        ("cac-ex-hand", 1, [(0.5, 0.0, 0.5)] * 5),
        ("cac-ex-hand", 0, [0.5]),
        ("cac-ex-tv", None, lambda q_n, delta: min(1.5 * q_n, 1)),
        ("cac-ex-tv", None, lambda q_n, delta: min(q_n + 0.1, 1)),
        ("cac-ex-law", None, lambda p, q, d: law(p, q, d) + 0 * torch.as_tensor(p).log()),
        ("cac-ex-law", None, lambda p, q, d: law(p, q, d) if len(p) == 4 else torch.full((len(p),), 1 / len(p))),
        ("cac-ex-law", None, lambda p, q, d: law(p, q, min(d, 0.5))),
    ],
)
def test_what_a_check_once_took_for_right_is_refused(label, part, answer):
    assert said(label, answer, part).startswith("not right: ")


def test_a_counterexample_names_point_value_and_mistake():
    assert re.search(
        r"yours is 1\.\d+; a probability stops somewhere", said("cac-ex-tv", lambda q_n, delta: q_n + delta)
    )


def test_a_rounded_rule_is_told_how_far_off_it_is():
    found = said("cac-ex-rule", lambda q_n, delta: round(min(q_n + (2 * delta * q_n * (1 - q_n)) ** 0.5, 1), 4))
    assert " 2 delta, by " in found
