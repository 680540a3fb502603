"""The exercises of chapter 9: what is right by another route, right answers in odd forms, wrong ones refused."""

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon
from scipy.special import entr, rel_entr
from scipy.stats import binom, entropy

from derived.lab.exercises import judged
from derived.papers.task_ecologies import FiniteEcology, exercises, split_gain
from derived.papers.task_ecologies.model import codes

EX = exercises.EXERCISES


def right(label, *answers, part=None):
    for answer in answers:
        assert judged(label, part or EX[label], answer) == "right"


def refused(label, *answers, part=None):
    for answer in answers:
        assert judged(label, part or EX[label], answer).startswith("not right: ")


# What is right, by another route -------------------------------------------------------------------------------------


@pytest.mark.parametrize("x", [0.02, 0.25, 0.4])
def test_two_coins_by_scipys_distance(x):
    excess, price = (part.right(x=x) for part in EX["te-ex-hand"])
    assert excess == pytest.approx(jensenshannon([x, 1 - x], [1 - x, x]) ** 2)
    assert price == pytest.approx(jensenshannon([x, 1 - x], [1 - x, x], base=2) ** 2)


def test_the_packages_own_gain_and_cost_meet_every_property_of_worth():
    def own(prior, contexts, laws, A, B):
        ecology = FiniteEcology(*map(torch.as_tensor, (prior, contexts, laws)))
        return split_gain(ecology, A, B) / codes.split_cost(ecology, A, B)

    right("te-ex-worth", own)


def by_heads(prior, laws, R):
    """What each toss costs, from the number of heads before it."""
    known = [sum(prior[w] * binom.entropy(r, laws[w][0]) for w in range(3)) for r in range(R + 1)]
    mixed = [entropy(prior @ binom.pmf(np.arange(r + 1), r, laws[:, :1])) for r in range(R + 1)]
    return np.diff(np.subtract(mixed, known))


def test_what_a_text_has_spent_by_counting_heads():
    right("te-ex-text", by_heads, lambda prior, laws, R: torch.as_tensor(by_heads(prior, laws, R)))
    refused("te-ex-text", lambda prior, laws, R: by_heads(prior, laws, R)[::-1], lambda prior, laws, R: np.zeros(R))


def test_worth_in_numpy_is_right():
    right("te-ex-worth", split_price)
    refused("te-ex-worth", lambda prior, contexts, laws, A, B: 2 * split_price(prior, contexts, laws, A, B))


# Right answers in odd forms, wrong ones ------------------------------------------------------------------------------


def split_price(prior, contexts, laws, A, B):
    A, B = list(A), list(B)
    mass = np.array([prior[A].sum(), prior[B].sum()])
    both = np.stack([np.tensordot(prior[each], laws[each], axes=1) for each in (A, B)]) / mass[:, None, None]
    share = mass / mass.sum()
    mean = np.tensordot(share, both, axes=1)
    return share @ rel_entr(both, mean).sum(axis=2) @ contexts / entr(share).sum()


def test_a_paradox_of_any_size_and_none_that_breaks_a_rule():
    table = np.array([[0, 0.25, 1.0], [0.01, 0.25, 0.9], [0.99, 0.25, 60.1], [1, 0.25, 60.0]])
    right("te-ex-simpson", lambda drop: table, lambda drop: table.tolist(), lambda drop: torch.as_tensor(table))
    sized = lambda drop: [[0, 0.5 - drop / 2, 1], [0.1, 0.005, 0.9], [0.9, 0.005, 60], [1, drop / 2 + 0.49, 59]]  # noqa: E731
    right("te-ex-simpson", sized)
    refused("te-ex-simpson", table, lambda drop: table.T, lambda drop: table[::-1], lambda drop: [])
