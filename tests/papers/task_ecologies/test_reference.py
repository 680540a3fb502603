"""Codes of small ecologies, by the reference program and by the package."""

import numpy as np
import pytest

from derived.papers import task_ecologies as package
from derived.papers.task_ecologies import reference


@pytest.fixture
def ecology(law):
    prior, D, laws = law(4), law(2), [[law(3) for _ in range(2)] for _ in range(4)]
    return prior, D, laws, package.FiniteEcology(prior, D, laws)


def test_floor_and_excess(ecology):
    """`te-decomposition`: the best loss of every code is the bound plus its Jensen-Shannon excess."""
    prior, D, laws, theirs = ecology
    for code in reference.codes(4):
        excess = reference.excess(prior, D, laws, code)
        assert excess == pytest.approx(float(theirs.js_excess(code)), abs=1e-12)
        assert theirs.bayes_loss(code) - theirs.entropy_floor() == pytest.approx(excess)
        assert reference.complexity(prior, code) == pytest.approx(theirs.complexity(code))


def test_free_codes_refine_the_classes(law):
    """`te-quotient`: with two pairs of twin worlds 2 * 2 codes have no excess, and no other."""
    prior, D, twins = law(4), [0.5, 0.5, 0.0], [[law(3) for _ in range(2)] for _ in range(2)]
    laws = [[*twins[w // 2], law(3)] for w in range(4)]  # twins differ where training never goes
    free = [c for c in reference.codes(4) if reference.excess(prior, D, laws, c) < 1e-12]
    assert len(free) == package.bell_number(2) ** 2
    assert all(package.is_refinement(code, [0, 0, 1, 1]) for code in free)
    assert min(free, key=lambda code: reference.complexity(prior, code)) == [0, 0, 1, 1]  # (b)


def test_split_or_merge(ecology):
    """`te-split`: what a split saves is the cell's share of gain less price."""
    prior, D, laws, theirs = ecology
    gain, price = reference.split_gain(prior, D, laws, [0, 2], [1])
    assert gain == pytest.approx(float(package.split_gain(theirs, [0, 2], [1])))
    share = prior[0] + prior[1] + prior[2]
    for beta in (0.01, 0.5):
        merged, split = ([0, 0, 0, 1], [0, 1, 0, 2])
        saved = reference.excess(prior, D, laws, merged) - reference.excess(prior, D, laws, split)
        saved += beta * (reference.complexity(prior, merged) - reference.complexity(prior, split))
        assert saved == pytest.approx(share * (gain - beta * price))


@pytest.mark.parametrize("beta", [0.0, 0.05, 0.2, 1.0])
def test_the_best_code(ecology, beta):
    prior, D, laws, theirs = ecology
    best = reference.best_code(prior, D, laws, beta)
    found = package.optimal_partition(theirs, beta)
    mine = reference.excess(prior, D, laws, best) + beta * reference.complexity(prior, best)
    assert mine + theirs.entropy_floor() == pytest.approx(float(found.value), abs=1e-12)


@pytest.mark.parametrize("R", [1, 2, 5])
def test_texts(law, R):
    """`te-text`: the distribution of R letters, and the best code of texts by both programs."""
    prior, laws = law(3), [[law(2)] for _ in range(3)]
    tossed = reference.repeat(laws, R)
    theirs = package.repeated([each for (each,) in laws], R).reshape(3, 1, -1)
    assert np.array(tossed) == pytest.approx(theirs)
    whole = package.FiniteEcology(prior, [1.0], theirs)
    for beta in (0.001, 0.01, 1 / R + 0.01):
        best = reference.best_code(prior, [1.0], tossed, beta, R)
        assert whole.objective(best, R * beta) == pytest.approx(package.optimal_partition(whole, R * beta).value)
    assert best == [0, 0, 0]
