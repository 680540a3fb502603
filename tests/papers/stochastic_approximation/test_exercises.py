"""The exercises: what is right by another road, right answers in odd forms, and the package's own refused."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from derived.lab.exercises import judged
from derived.lab.rng import stream
from derived.papers.stochastic_approximation import exercises
from derived.papers.stochastic_approximation.exercises import EXERCISES


def said(label, answer):
    return judged(label, EXERCISES[label], answer)


RIGHT = [
    ("sa-ex-steep", lambda A2, w, A1: Fraction(str(w * A1)) / Fraction(str(w * A1 + (1 - w) * A2))),
    (
        "sa-ex-steep",
        lambda weight, steep, flat: float(f"{weight * steep / (weight * steep + (1 - weight) * flat):.4g}"),
    ),
    ("sa-ex-threshold", lambda alpha, beta: round(1 - alpha * beta, 2)),
    (
        "sa-ex-late",
        lambda a, epsilon, delay: (
            1
            + a * (1 + (1 - a) * (1 - epsilon)) / (2 - a) / (1 - (1 - a) * (1 - epsilon))
            - 2 * (1 - epsilon) ** delay * a / (1 - (1 - a) * (1 - epsilon))
        ),
    ),
    ("sa-ex-tail", lambda u, n, q: [(k + int(u * q)) % q for k in range(n)]),
    ("sa-ex-tail", lambda n, q, u: torch.arange(n).add(math.floor(u * q)).neg().remainder(q)),
    ("sa-ex-tail", lambda u, n, q: (np.arange(n) + math.floor(u * 2 * q)) // 2 % q),  # each value twice
]


@pytest.mark.parametrize(("label", "answer"), RIGHT)
def test_right_answers_in_odd_forms(label, answer):
    assert said(label, answer) == "right"


def test_the_end_of_a_learner_between_two_worlds():
    """`sa-many` by the iteration itself, on fresh worlds."""
    draw, slopes, roots = stream(0, "worlds"), (3.0, 0.5), (1.0, 0.0)
    x, n = torch.zeros(400, dtype=torch.float64), 0
    for n in range(1, 4001):
        first = torch.rand(400, generator=draw) < 0.3
        A, root = (torch.where(first, *pair).double() for pair in (slopes, roots))
        x = x + 2 / (n + 8) * A * (root - x)
    assert abs(x.mean() - exercises.steep.right(0.3, *slopes)) < 5 * x.std() / 20 + 1e-3


def test_the_error_of_late_news_on_a_stream():
    """`sa-tracking` with a delay, by the iteration itself."""
    draw, lag, step, change = stream(0, "late"), 3, 0.2, 0.1
    size = (3000, 400)
    fresh = torch.rand(size, generator=draw) < change
    coins = 2.0 * (torch.rand(size, generator=draw) < 0.5) - 1
    world, x, errors = [coins[0].double()], torch.zeros(400, dtype=torch.float64), []
    for n in range(1, 3000):
        world.append(torch.where(fresh[n], coins[n].double(), world[-1]))
        if n >= lag:
            x = x + step * (world[n - lag] - x)
        if n > 300:
            errors.append((x - world[n]) ** 2)
    each = torch.stack(errors).mean(dim=0)
    assert abs(each.mean() - exercises.late.right(step, change, lag)) < 5 * each.std() / 20


def word(letters):
    """The process that reads a word from a random letter on, for ever."""
    return lambda u, n, q: np.resize(np.roll(letters(q), -math.floor(u * len(letters(q)))), n)


def either(one, other):
    return lambda u, n, q: one(2 * u, n, q) if u < 0.5 else other(2 * u - 1, n, q)


@pytest.mark.parametrize("letters", [np.arange, lambda q: np.arange(q)[::-1], lambda q: np.repeat(np.arange(q), 3)])
def test_a_word_with_each_value_as_often_is_ergodic_from_a_random_letter_on(letters):
    assert said("sa-ex-tail", word(letters)) == "right"


@pytest.mark.parametrize(
    ("process", "words"),
    [
        (either(word(np.arange), word(lambda q: np.arange(q)[::-1])), "depends on u for ever"),
        (either(word(np.arange), word(lambda q: np.repeat(np.arange(q), 2))), "come more often"),
        (lambda u, n, q: np.floor(q * ((math.floor(20 * u) / 20 + np.arange(n) * 0.6180339887) % 1)), "none of yours"),
        (word(lambda q: np.append(np.repeat(np.arange(q), 3), 0)), "of its time in one value"),
    ],
    ids=["forwards or backwards", "two words", "an irrational rotation", "one value once more"],
)
def test_a_mixture_or_what_does_not_stay_is_not_ergodic(process, words):
    assert words in said("sa-ex-tail", process)
