"""The exercises of chapter 9: what is right by another route, right answers in odd forms, wrong ones refused."""

import math
from fractions import Fraction

import numpy as np
import pytest
import sympy
import torch
from scipy.spatial.distance import jensenshannon
from scipy.special import entr, rel_entr

from derived.lab.exercises import judged
from derived.papers.task_ecologies import FiniteEcology, exercises, quasispecies, split_gain
from derived.papers.task_ecologies.model import codes

EX = exercises.EXERCISES
dice = np.random.default_rng(0)


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


def test_the_wrong_prior_by_a_sum_over_worlds_and_tokens():
    P, (pi, b) = dice.dirichlet(np.ones(4), 3), dice.dirichlet(np.ones(3), 2)
    q = sum(b[u] * P[u] for u in range(3))
    slow = sum(pi[w] * P[w, v] * math.log(P[w, v] / q[v]) for w in range(3) for v in range(4))
    assert EX["te-ex-prior"].right(P=P, pi=pi, b=b) == pytest.approx(slow)


def test_the_price_of_a_merge_by_scanning_prices():
    """The price at which the value of the merged code and of the quotient change places, by a fine grid."""
    for n, m, t in ((3, 2, 0.3), (6, 4, 0.8), (5, 5, 0.5)):
        laws = (1 - t) / n + t * np.eye(n)
        mean = laws[:m].mean(axis=0)
        cost = sum(rel_entr(laws[w], mean).sum() for w in range(m)) / n
        merged = [m / n] + [1 / n] * (n - m)
        saved = math.log(n) - sum(-x * math.log(x) for x in merged)
        grid = np.linspace(0, 1, 100_001)
        first = grid[np.argmax(grid * saved > cost)]
        assert EX["te-ex-price"].right(n=n, m=m, t=t) == pytest.approx(first, abs=2e-5)


def test_the_properties_of_worth_are_those_of_the_packages_own_gain_and_cost():
    """The package's own function meets every property, on other draws."""
    generator = torch.Generator().manual_seed(7)
    for _ in range(5):
        point = exercises._split(generator)
        own = lambda prior, contexts, laws, A, B: (  # noqa: E731
            split_gain(FiniteEcology(prior, contexts, laws), A, B)
            / codes.split_cost(FiniteEcology(prior, contexts, laws), A, B)
        )
        assert all(holds(own, **point) is None for holds in EX["te-ex-worth"].properties)


def test_the_properties_of_the_least_cost_hold_for_the_packages_own():
    for n in (1, 3, 6):
        costs = dice.uniform(size=2**n)
        costs[0] = 0.0
        own = lambda costs: costs[codes.best_partition(np.asarray(costs))].sum()  # noqa: E731
        assert all(holds(own, costs=costs) is None for holds in EX["te-ex-recursion"].properties)


def test_the_properties_of_a_limit_hold_for_the_packages_own():
    fitness, kernel = dice.uniform(0.5, 1, 4), dice.dirichlet(np.ones(4), 4)
    for holds in EX["te-ex-settled"].properties:
        point = {"kernel": kernel} if holds is exercises._neutral else {"fitness": fitness, "kernel": kernel}
        assert holds(quasispecies, **point) is None


# Right answers in odd forms, wrong ones ------------------------------------------------------------------------------


def test_right_numbers_of_any_kind_are_right():
    x = sympy.Symbol("x", positive=True)
    excess = sympy.log(2) + x * sympy.log(x) + (1 - x) * sympy.log(1 - x)
    first, second = EX["te-ex-hand"]
    right("te-ex-hand", excess, lambda p: float(f"{math.log(2) - entr(p) - entr(1 - p):.3g}"), part=first)
    right(
        "te-ex-hand",
        excess / sympy.log(2),
        lambda x: Fraction(1 - float(entr(x) + entr(1 - x)) / math.log(2)),
        part=second,
    )
    right("te-ex-hand", lambda x: 1 + x * torch.log2(torch.tensor(x)) + (1 - x) * math.log2(1 - x), part=second)
    right("te-ex-prior", lambda P, pi, b: (pi[:, None] * rel_entr(P, b @ P)).sum())
    right("te-ex-prior", lambda b, pi, P: torch.as_tensor(pi) @ (P * np.log(P / (b @ P))).sum(axis=1))
    right(
        "te-ex-prior",
        lambda laws, true, believed: sum(true[w] * rel_entr(laws[w], believed @ laws).sum() for w in range(3)),
    )


def by_merged_entropies(n, m, t):
    law = (1 - t) / n + t * np.eye(n)
    return (entr(law[:m].mean(axis=0)).sum() - entr(law[0]).sum()) / np.log(m)


def test_the_price_of_a_merge_in_odd_forms():
    right("te-ex-price", by_merged_entropies, lambda t, m, n: torch.tensor(by_merged_entropies(n, m, t)))
    right("te-ex-price", lambda n, m, t: round(by_merged_entropies(n, m, t), 5))
    refused("te-ex-price", lambda n, m, t: 1.0, lambda n, m, t: by_merged_entropies(n, 2, t), 0.5)


def split_price(prior, contexts, laws, A, B):
    A, B = list(A), list(B)
    mass = np.array([prior[A].sum(), prior[B].sum()])
    both = np.stack([np.tensordot(prior[each], laws[each], axes=1) for each in (A, B)]) / mass[:, None, None]
    share = mass / mass.sum()
    mean = np.tensordot(share, both, axes=1)
    return share @ rel_entr(both, mean).sum(axis=2) @ contexts / entr(share).sum()


def by_subsets(costs):
    best = [0.0]
    for U in range(1, len(costs)):
        first, rest = U & -U, U & (U - 1)
        inside = [B for B in range(rest + 1) if B & ~rest == 0]
        best.append(min(costs[first | B] + best[rest ^ B] for B in inside))
    return best[-1]


def test_a_paradox_of_any_size_and_none_that_breaks_a_rule():
    table = np.array([[0, 0.25, 1.0], [0.01, 0.25, 0.9], [0.99, 0.25, 60.1], [1, 0.25, 60.0]])
    right("te-ex-simpson", lambda drop: table, lambda drop: table.tolist(), lambda drop: torch.as_tensor(table))
    sized = lambda drop: [[0, 0.5 - drop / 2, 1], [0.1, 0.005, 0.9], [0.9, 0.005, 60], [1, drop / 2 + 0.49, 59]]  # noqa: E731
    right("te-ex-simpson", sized)
    refused("te-ex-simpson", table, lambda drop: table.T, lambda drop: table[::-1], lambda drop: [])


def test_a_check_does_not_print_the_answer(capsys):
    exercises.check("te-ex-hand", lambda x: 0.5, lambda x: 2.0)
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("(a) not right: at x = ")
    assert said[1].endswith("yours is 2, above 1")
