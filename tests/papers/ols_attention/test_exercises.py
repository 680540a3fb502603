"""Answers to the exercises of the chapter: right ones in odd forms, and wrong ones that a check once took for right."""

from fractions import Fraction

import pytest
import sympy
import torch

from derived.lab.exercises import judged
from derived.papers.ols_attention.exercises import EXERCISES
from derived.papers.ols_attention.model import mechanism


def said(label, answer, part=None):
    return judged(label, EXERCISES[label] if part is None else EXERCISES[label][part], answer)


def by_torch(X):
    """Turned by a rotation, which the layer does not see, and with a column of zeros."""
    _, s, Vh = torch.linalg.svd(X, full_matrices=False)
    kept = s > s[0] * max(X.shape) * torch.finfo(X.dtype).eps
    L = len(X) ** 0.5 * Vh[kept].mT / s[kept]
    turn = torch.linalg.qr(torch.ones(L.shape[1], L.shape[1], dtype=X.dtype).tril()).Q
    return torch.cat([L @ turn, torch.zeros(len(L), 1, dtype=X.dtype)], dim=1)


def by_scores(Xq, X, Y, ridge):
    L = torch.linalg.cholesky(torch.linalg.inv(X.mT @ X / len(X) + ridge * torch.eye(X.shape[1], dtype=X.dtype)))
    return mechanism.linear_attention(Xq @ L, X @ L, Y)


@pytest.mark.parametrize(
    ("label", "part", "answer"),
    [
        ("ols-ex-leverage", 0, 0),
        ("ols-ex-leverage", 1, torch.tensor(1)),
        ("ols-ex-leverage", 2, sympy.Integer(3)),
        ("ols-ex-scale", None, Fraction(3, 2)),
        ("ols-ex-scale", None, sympy.Rational(3, 2)),
        ("ols-ex-whitening", None, by_torch),
        ("ols-ex-context", None, by_scores),
        ("ols-ex-context", None, lambda a, b, c, d: by_scores(a, b, c, d).float()),
    ],
)
def test_right_answers_of_any_kind_are_right(label, part, answer):
    assert said(label, answer, part) == "right"


@pytest.mark.parametrize(
    ("label", "part", "answer"),
    [
        ("ols-ex-leverage", 0, []),
        ("ols-ex-leverage", 2, [3.0]),
        ("ols-ex-scale", None, 1e17),
    ],
)
def test_what_a_check_once_took_for_right_is_refused(label, part, answer):
    assert said(label, answer, part).startswith("not right: ")


def test_the_lonely_token_of_the_first_exercise_has_leverage_one():
    assert said("ols-ex-leverage", 1 + 1e-9, 1) == "right"
