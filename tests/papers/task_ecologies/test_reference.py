"""Codes of small ecologies, by the reference program and by the package."""

import pytest

from derived.papers import task_ecologies as package
from derived.papers.task_ecologies import reference


@pytest.fixture
def ecology(law):
    prior, D, laws = law(4), law(2), [[law(3) for _ in range(2)] for _ in range(4)]
    return prior, D, laws, package.FiniteEcology(prior, D, laws)


def test_floor_and_excess(ecology):
    """the best loss of every code is the floor plus its Jensen-Shannon excess."""
    prior, D, laws, theirs = ecology
    assert reference.floor(prior, D, laws) == pytest.approx(float(theirs.entropy_floor()))
    for code in reference.codes(4):
        excess = reference.excess(prior, D, laws, code)
        assert excess == pytest.approx(float(theirs.js_excess(code)), abs=1e-12)
        assert reference.best_loss(prior, D, laws, code) == pytest.approx(reference.floor(prior, D, laws) + excess)
        assert reference.best_loss(prior, D, laws, code) == pytest.approx(float(theirs.bayes_loss(code)))


def test_every_partition_once():
    for n in range(1, 6):
        assert len(reference.codes(n)) == package.bell_number(n) == len({tuple(code) for code in reference.codes(n)})


def test_free_codes_refine_the_classes(law):
    """with two pairs of twin worlds 2 * 2 codes have no excess, and no other."""
    prior, D, twins = law(4), [0.5, 0.5, 0.0], [[law(3) for _ in range(2)] for _ in range(2)]
    laws = [[*twins[w // 2], law(3)] for w in range(4)]  # twins differ where training never goes
    free = reference.free_codes(prior, D, laws)
    assert len(free) == package.bell_number(2) ** 2
    assert [c for c in reference.codes(4) if reference.excess(prior, D, laws, c) < 1e-12] == free


def test_split_or_merge(ecology):
    """what a split saves is the cell's share of gain less price."""
    prior, D, laws, theirs = ecology
    gain, price = reference.split_gain(prior, D, laws, [0, 2], [1])
    assert gain == pytest.approx(float(package.split_gain(theirs, [0, 2], [1])))
    share = prior[0] + prior[1] + prior[2]
    for beta in (0.01, 0.5):
        saved = reference.cost(prior, D, laws, [0, 0, 0, 1], beta) - reference.cost(prior, D, laws, [0, 1, 0, 2], beta)
        assert saved == pytest.approx(share * (gain - beta * price))


@pytest.mark.parametrize("beta", [0.0, 0.05, 0.2, 1.0])
def test_the_best_code(ecology, beta):
    prior, D, laws, theirs = ecology
    best = reference.best_code(prior, D, laws, beta)
    found = package.optimal_partition(theirs, beta)
    mine = reference.floor(prior, D, laws) + reference.cost(prior, D, laws, best, beta)
    assert mine == pytest.approx(float(found.value), abs=1e-12)
