"""Codes of small ecologies, by the pencil and by the package."""

import itertools
import math
import random

import pytest
from pencil import task_ecologies as pencil

from derived.papers import task_ecologies as package


@pytest.fixture
def ecology(law):
    prior, D, laws = law(4), law(2), [[law(3) for _ in range(2)] for _ in range(4)]
    return prior, D, laws, package.FiniteEcology(prior, D, laws)


def test_floor_and_excess(ecology):
    """`TE-1`: the best loss of every code is the floor plus its Jensen-Shannon excess."""
    prior, D, laws, theirs = ecology
    assert pencil.floor(prior, D, laws) == pytest.approx(float(theirs.entropy_floor()))
    for code in pencil.codes(4):
        excess = pencil.excess(prior, D, laws, code)
        assert excess == pytest.approx(float(theirs.js_excess(code)), abs=1e-12)
        assert pencil.best_loss(prior, D, laws, code) == pytest.approx(pencil.floor(prior, D, laws) + excess)
        assert pencil.best_loss(prior, D, laws, code) == pytest.approx(float(theirs.bayes_loss(code)))


def test_every_partition_once():
    for n in range(1, 6):
        assert len(pencil.codes(n)) == package.bell_number(n) == len({tuple(code) for code in pencil.codes(n)})


def test_free_codes_refine_the_classes(law):
    """`TE-2`: with two pairs of twin worlds 2 * 2 codes have no excess, and no other."""
    prior, D, twins = law(4), [0.5, 0.5, 0.0], [[law(3) for _ in range(2)] for _ in range(2)]
    laws = [[*twins[w // 2], law(3)] for w in range(4)]  # twins differ where training never goes
    free = pencil.free_codes(prior, D, laws)
    assert len(free) == package.bell_number(2) ** 2
    assert [c for c in pencil.codes(4) if pencil.excess(prior, D, laws, c) < 1e-12] == free


def test_split_or_merge(ecology):
    """`TE-4.a`: what a split saves is the cell's share of gain less price."""
    prior, D, laws, theirs = ecology
    gain, price = pencil.split_gain(prior, D, laws, [0, 2], [1])
    assert gain == pytest.approx(float(package.split_gain(theirs, [0, 2], [1])))
    share = prior[0] + prior[1] + prior[2]
    for beta in (0.01, 0.5):
        saved = pencil.cost(prior, D, laws, [0, 0, 0, 1], beta) - pencil.cost(prior, D, laws, [0, 1, 0, 2], beta)
        assert saved == pytest.approx(share * (gain - beta * price))


@pytest.mark.parametrize("beta", [0.0, 0.05, 0.2, 1.0])
def test_the_best_code(ecology, beta):
    prior, D, laws, theirs = ecology
    best = pencil.best_code(prior, D, laws, beta)
    found = package.optimal_partition(theirs, beta)
    mine = pencil.floor(prior, D, laws) + pencil.cost(prior, D, laws, best, beta)
    assert mine == pytest.approx(float(found.value), abs=1e-12)


def test_a_merged_pair_costs_elsewhere(ecology, law):
    """`TE-8.a`: on another ecology a code pays at least the pair's weight times the divergence of its two laws."""
    prior, _, laws, _ = ecology
    elsewhere = [0.2, 0.8]
    pair = prior[0] + prior[1]
    least = pair * sum(d * pencil.js(prior[:2], [laws[w][c] for w in (0, 1)]) for c, d in enumerate(elsewhere))
    for code in pencil.codes(4):
        if code[0] == code[1]:
            assert pencil.excess(prior, elsewhere, laws, code) >= least - 1e-12
    assert math.isclose(pencil.excess(prior, elsewhere, laws, [0, 0, 1, 2]), least)


def test_selection_can_favour_the_other_recipes():
    """`TE-11.a` fails: in each background the excess falls as alpha rises, and selection lowers the mean of alpha."""
    alpha, shares, excess = (0.0, 0.1, 0.9, 1.0), (0.25, 0.25, 0.25, 0.25), (0.2, 0.1, 3.2, 3.1)
    copies = [p * math.exp(-e) for p, e in zip(shares, excess, strict=True)]
    before, after = (pencil.mixture(weights, [[a] for a in alpha])[0] for weights in (shares, copies))
    theirs = package.price_terms([math.exp(-e) for e in excess], alpha, shares=shares).selection
    assert after - before == pytest.approx(float(theirs), rel=1e-12)
    assert after < before - 0.3


def drawn_law(draw, tokens=4):
    law = [draw.random() + 0.05 for _ in range(tokens)]
    return [each / sum(law) for each in law]


@pytest.mark.parametrize("worlds", [5, 50])
def test_a_share_of_one_merges_what_was_apart(worlds):
    """`TE-7.a` fails: mixed in at a share of one, a context in which all laws agree parts no two worlds; at every
    smaller share all that were apart stay so."""
    draw, common = random.Random(0), [0.25] * 4
    laws = [[drawn_law(draw), common] for _ in range(worlds)]
    pairs = list(itertools.combinations(range(worlds), 2))
    apart = [not pencil.equivalent(laws, [1.0, 0.0], *pair) for pair in pairs]
    for share in (0.3, 0.9, 1.0):
        mixed = [1.0 - share, share]
        assert [not pencil.equivalent(laws, mixed, *pair) for pair in pairs] == [share < 1 and each for each in apart]
    assert all(apart)


@pytest.mark.parametrize("worlds", [5, 50])
def test_a_code_without_excess_may_tell_equivalent_worlds_apart(worlds):
    """`TE-8.c` fails: the code that tells every world from every other loses nothing, and some worlds are equivalent;
    one that merges two that differ does lose."""
    draw = random.Random(0)
    kinds = [[drawn_law(draw) for _ in range(3)] for _ in range(worlds // 2 + 1)]
    laws, D = [kinds[w // 2] for w in range(worlds)], [0.2, 0.3, 0.5]
    prior = [1 / worlds] * worlds
    assert abs(pencil.excess(prior, D, laws, list(range(worlds)))) < 1e-12
    assert pencil.equivalent(laws, D, 0, 1)
    assert pencil.excess(prior, D, laws, [0, 1, 1, *range(2, worlds - 1)]) > 1e-2 / worlds


def test_past_the_level_of_a_distance_merging_may_still_pay():
    """`TE-7.c` fails: at a level and a price at which the sentence is right of one pair, another pair has passed the
    level and its merged code is still cheaper. Once past the share of its own gain it is not."""
    draw, found = random.Random(0), 0
    prior, beta = [0.5, 0.5], 0.06
    for _ in range(200):
        one, other = ([[[0.25] * 4, drawn_law(draw)] for _ in range(2)] for _ in range(2))
        (gain, price), (gain_of_other, _) = (
            pencil.split_gain(prior, [0.0, 1.0], laws, [0], [1]) for laws in (one, other)
        )
        distance, distance_of_other = (
            sum((a**0.5 - b**0.5) ** 2 for a, b in zip(laws[0][1], laws[1][1], strict=True)) / 2
            for laws in (one, other)
        )
        level = distance * beta * price / gain  # passed by the first pair where its split begins to pay
        passed, pays = level / distance_of_other, beta * price / gain_of_other
        if not passed + 0.005 < pays < 0.95:
            continue
        found += 1
        for share, merge in (((passed + pays) / 2, True), (pays + 0.02, False)):
            mixed = [1 - share, share]
            merged, split = (pencil.cost(prior, mixed, other, code, beta) for code in ([0, 0], [0, 1]))
            assert (merged < split) == merge
    assert found > 10
