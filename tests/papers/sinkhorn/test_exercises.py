"""The exercises: what is right by another road, and right answers in odd forms."""

import math

import numpy as np
import pytest
import torch
from scipy import optimize

from derived.lab.exercises import judged
from derived.papers.sinkhorn import exercises
from derived.papers.sinkhorn.exercises import EXERCISES
from derived.papers.sinkhorn.model import plan, theory


def said(label, answer, part=None):
    asked = EXERCISES[label]
    return judged(label, asked if part is None else asked[part], answer)


RIGHT = [
    ("sk-ex-two", 0, lambda s11, s12, s21, s22: torch.sigmoid(torch.tensor(s11 + s22 - s12 - s21).double() / 2)),
    ("sk-ex-two", 0, lambda *S: float(f"{1 / (1 + np.exp(-(S[0] + S[3] - S[1] - S[2]) / 2)):.4g}")),
    ("sk-ex-two", 1, lambda s21, s22, s11, s12: float(f"{math.tanh((s11 + s22 - s12 - s21) / 4) ** 2:.3g}")),
    ("sk-ex-sink", None, lambda beta: np.float32(1 - beta)),
]


@pytest.mark.parametrize(("label", "part", "answer"), RIGHT)
def test_right_answers_in_odd_forms(label, part, answer):
    assert said(label, answer, part) == "right"


def test_the_share_and_the_cost_by_minimising_over_couplings():
    """`sk-gibbs` at two tokens: one free number, found by a search that knows no Sinkhorn."""

    def least(scores):
        def objective(p):
            P = np.array([[p, 1 - p], [1 - p, p]]) / 2
            return (P * np.log(4 * P)).sum() - (P * scores).sum()

        return optimize.minimize_scalar(
            objective, bounds=(1e-9, 1 - 1e-9), method="bounded", options={"xatol": 1e-12}
        ).x

    assert said("sk-ex-two", lambda s11, s12, s21, s22: least(np.array([[s11, s12], [s21, s22]])), 0) == "right"


def test_the_rate_by_iterating():
    """`sk-local`: the ratio of successive errors of the columns."""

    def ratio(s11, s12, s21, s22):
        K, v, errors = np.exp([[s11, s12], [s21, s22]]), np.ones(2), []
        for _ in range(2000):
            u = 0.5 / (K @ v)
            errors.append(abs(v[0] * (K[:, 0] @ u) - 0.5))
            v = 0.5 / (K.T @ u)
            if errors[-1] < 1e-9:
                break
        return errors[-1] / errors[-2] if len(errors) > 2 else 0.0

    for point in ((1.0, -0.5, 0.3, 1.5), (-1.2, 1.9, 0.4, -0.7), (0.2, 0.1, -2.0, 1.1)):
        assert abs(ratio(*point) - float(theory.local_rate(exercises._converged(*point)))) < 1e-4


def in_loops(S, num, a, b):
    S, f, g = np.asarray(S), np.zeros(len(a)), np.log(b)
    for step in range(num):
        for i in range(len(a) if step % 2 == 0 else 0):
            row = S[i] + g
            f[i] = np.log(a[i]) - row.max() - np.log(np.exp(row - row.max()).sum())
        for j in range(len(b) if step % 2 else 0):
            column = S[:, j] + f
            g[j] = np.log(b[j]) - column.max() - np.log(np.exp(column - column.max()).sum())
    return np.exp(S + f[:, None] + g).tolist()


def test_half_steps_written_as_loops():
    assert said("sk-ex-steps", in_loops) == "right"


def by_centring(P, P_bar):
    left = np.array(P_bar)
    for _ in range(3000):  # the projections in turn
        before = left.copy()
        left -= (P * left).sum(axis=1, keepdims=True) / P.sum(axis=1, keepdims=True)
        left -= (P * left).sum(axis=0) / P.sum(axis=0)
        if np.abs(left - before).max() < 1e-14:
            break
    return P * left


def test_a_derivative_by_projections_in_turn():
    assert said("sk-ex-regression", by_centring) == "right"


def test_columns_first_is_harmless_in_the_limit_only():
    S, a, b = (torch.from_numpy(each) for each in exercises._problem(3, 4, 5))
    turned = plan.half_steps(S.mT, 401, b, a).exp().mT
    assert torch.allclose(turned, plan.sinkhorn(S, a, b, tol=1e-13).plan, atol=1e-10)
    assert said("sk-ex-steps", exercises.half_steps.mistakes["columns first"]).startswith("not right: at ")
