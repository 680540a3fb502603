"""A text is one letter: excess letter by letter, its sum, its price; and the pressure along generated texts."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import entropy

from derived.lab.rng import stream
from derived.papers.task_ecologies import (
    FiniteEcology,
    letter,
    optimal_partition,
    repeated,
    set_partitions,
    texts,
)
from derived.papers.task_ecologies.data.languages import LanguageFamily, language_family

EXPERIMENTS = (texts.Pressure,)
dice = np.random.default_rng(0)
COINS = [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]


def information(prior, laws, labels) -> float:
    """I(Y; W | X) from the joint distribution of world and text, by entropies, one cell after the other."""
    found = 0.0
    for cell in set(labels):
        inside = [w for w, x in enumerate(labels) if x == cell]
        mass = sum(prior[w] for w in inside)
        mixture = sum(prior[w] / mass * laws[w] for w in inside)
        found += mass * entropy(mixture) - sum(prior[w] * entropy(laws[w]) for w in inside)
    return found


@pytest.mark.parametrize("V", [2, 3])
def test_the_excess_letter_by_letter_sums_to_the_information_of_the_text(V):
    """`te-text`: any distributions of texts of four letters, every code, by entropies of whole texts; never more than
    the entropy that the code dropped."""
    for _ in range(5):
        prior, laws = dice.dirichlet(np.ones(3)), dice.dirichlet(np.full(V**4, 0.2), 3)
        each = [letter(prior, laws.reshape(3, *[V] * 4), r) for r in range(4)]
        for labels in set_partitions(3).tolist():
            spent = sum(one.js_excess(labels) for one in each)
            assert abs(spent - information(prior, laws, labels)) <= 1e-13
            dropped = entropy(prior) - entropy(np.bincount(labels, weights=prior))
            assert spent <= dropped + 1e-13
            assert abs(sum(one.bayes_loss(labels) for one in each) - spent - prior @ entropy(laws, axis=1)) <= 1e-12


def test_the_free_codes_of_a_text_are_the_refinements_of_one_quotient():
    """`te-text`: worlds that differ in one last letter, after one prefix, are told apart; equal ones are not."""
    laws = np.repeat(dice.dirichlet(np.ones(8))[None], 3, axis=0)
    laws[2, [6, 7]] = laws[2, [7, 6]]
    prior = [0.2, 0.3, 0.5]
    each = [letter(prior, laws.reshape(3, 2, 2, 2), r) for r in range(3)]
    free = [p.tolist() for p in set_partitions(3) if sum(one.js_excess(p) for one in each) < 1e-12]
    assert free == [[0, 0, 1], [0, 1, 2]]
    assert FiniteEcology(prior, [1.0], laws[:, None]).quotient().tolist() == [0, 0, 1]


def test_nothing_pays_at_a_price_of_one_over_the_length():
    """`te-text`: by listing the codes of four worlds; far below, something does; for coins the edge is near 1 / R."""
    for R in (1, 2, 4):
        prior, laws = dice.dirichlet(np.ones(4)), repeated(dice.dirichlet(np.ones(2), 4), R).reshape(4, 1, -1)
        whole = FiniteEcology(prior, [1.0], laws)
        cost = lambda p, beta: whole.bayes_loss(p) / R + beta * whole.complexity(p)  # noqa: B023, E731
        others = [p for p in set_partitions(4) if p.max() > 0]
        assert all(cost(p, 1 / R) > cost([0] * 4, 1 / R) for p in others)
        assert any(cost(p, 1e-4) < cost([0] * 4, 1e-4) for p in others)
    ten = FiniteEcology([1 / 3] * 3, [1.0], repeated(COINS, 10).reshape(3, 1, -1))
    assert [optimal_partition(ten, 10 * beta).labels.max() for beta in (0.0994, 0.0996, 0.1)] == [2, 0, 0]


def test_the_bound_holds_for_codes_that_are_drawn():
    """`te-text`: I(Y; W | X) <= H(W) - I(X; W) for random channels from world to code word."""
    for _ in range(50):
        prior, laws = dice.dirichlet(np.ones(3)), dice.dirichlet(np.full(16, 0.3), 3)
        channel = dice.dirichlet(np.ones(2), 3)
        joint = prior[:, None] * channel  # world, word
        word = joint.sum(axis=0)
        excess = sum(word[x] * entropy(joint[:, x] / word[x] @ laws) for x in (0, 1)) - prior @ entropy(laws, axis=1)
        left = entropy(prior) - (entropy(word) - prior @ entropy(channel, axis=1))
        assert 0 <= excess <= left + 1e-13


def test_letters_that_are_not_there_are_named():
    for before in (-1, 2):
        with pytest.raises(ValueError, match=f"before = {before} in texts of 2 letters; give 0 to 1"):
            letter([0.5, 0.5], np.full((2, 2, 2), 0.25), before)
    with pytest.raises(ValueError, match=r"texts\[1\] sums to 0\.9"):
        letter([0.5, 0.5], [[0.5, 0.5], [0.5, 0.4]], 0)
    with pytest.raises(ValueError, match="letters = 0"):
        repeated([[0.5, 0.5]], 0)


# Pressure -------------------------------------------------------------------------------------------------------------


def small(n: int = 3) -> LanguageFamily:
    return language_family((0.15, 0.5, 0.9)[:n], generator=stream(0, "small"), letters=3)


def test_a_posterior_is_bayes_rule_over_whole_prefixes():
    one, text = small(), torch.tensor([[3, 0, 2, 2, 1]])
    found = texts.posterior(one, text)
    likely = np.ones(3)
    for r in range(5):
        assert found[0, r].numpy() == pytest.approx(likely / likely.sum(), abs=1e-12)
        if r < 4:
            a, b = text[0, r : r + 2].tolist()
            likely = likely * (one.first[:, b] if a == 3 else one.transitions[:, a, b]).numpy()


def test_pressure_along_texts_is_that_of_all_texts_together():
    """`te-text`: all texts of four letters, by their probabilities, against `letter`; the mean over drawn texts is
    near, and the sum is the information."""
    one = small()
    laws = np.zeros((3, 3, 3, 3, 3))
    for text in itertools.product(range(3), repeat=4):
        chain = one.first[:, text[0]].clone()
        for a, b in itertools.pairwise(text):
            chain *= one.transitions[:, a, b]
        laws[(slice(None), *text)] = chain.numpy()
    exact = [letter([1 / 3] * 3, laws, r).js_excess([0] * 3) for r in range(4)]
    assert sum(exact) == pytest.approx(information([1 / 3] * 3, laws.reshape(3, -1), [0] * 3))
    languages = torch.arange(3).repeat_interleave(4000)
    found = texts.along(one, one.texts(languages, 4, stream(0, "drawn")))
    assert found.numpy() == pytest.approx(exact, rel=0.03)
    assert texts.without_prefix(one, 4, last=False)[2].item() == pytest.approx(exact[0])
    pair = texts.without_prefix(one, 4, last=True)
    assert pair[1].item() == pytest.approx(exact[1])  # after one letter the last letter is the prefix
    assert pair[0].item() == pytest.approx(exact[0])


def test_rows_of_pressure_are_below_the_entropy_of_the_language_and_zero_for_one_language(rows):
    table = rows[texts.Pressure]
    sums = table.groupby(["arm", "replicate"])["pressure"].sum().unstack("arm")
    assert (sums["prefix"] < math.log(5)).all()
    assert (sums["one language"] == 0).all()
    first = table[table["letter"] == 0].pivot(index="replicate", columns="arm", values="pressure")
    assert np.ptp(first[["prefix", "length", "last letter"]], axis=1).max() < 1e-12
    assert first["length"].nunique() == len(first)


def test_what_is_paid_is_the_sum_over_thirty_letters():
    rows = pd.DataFrame(
        [{"arm": "prefix", "replicate": r, "letter": k, "pressure": 0.01 * (r + 1)} for r in (0, 1) for k in range(40)]
    )
    assert texts.paid(rows).tolist() == pytest.approx([0.3, 0.6])
