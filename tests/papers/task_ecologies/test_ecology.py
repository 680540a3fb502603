"""The loss of a code: bound and excess, free codes, contexts that know the world, and other ecologies."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon
from scipy.special import rel_entr
from scipy.stats import entropy, multinomial
from sympy.utilities.iterables import multiset_partitions

from derived.lab.rng import stream
from derived.papers.task_ecologies import FiniteEcology, bell_number, is_refinement, mix, set_partitions, split_gain
from derived.papers.task_ecologies.data.ecologies import random_ecology, simplex, two_covers
from derived.papers.task_ecologies.model.ecology import rounding_bound
from derived.papers.task_ecologies.model.partitions import normal_form


def ecology(seed: int = 0, n: int = 4, **facts) -> FiniteEcology:
    return random_ecology(n, 3, 4, stream(seed, "test loss"), **facts)


def slow_loss(e: FiniteEcology, labels) -> float:
    """E -log P(Y | cell, C), by going through every world, context and token."""
    n, C, V = e.laws.shape
    total = 0.0
    for w, c, v in itertools.product(range(n), range(C), range(V)):
        inside = [u for u in range(n) if labels[u] == labels[w]]
        weight = [e.prior[u] * (e.contexts[c] if e.contexts.ndim == 1 else e.contexts[u, c]) for u in inside]
        joint = sum(a * e.laws[u, c, v] for a, u in zip(weight, inside, strict=True))
        own = e.joint[w, c] * e.laws[w, c, v]
        if own > 0:
            total -= own * math.log(joint / sum(weight))
    return total


def test_a_cells_mixture_is_its_best_decoder():
    """`te-decomposition`: any other decoder pays the mean of KL(mixture || decoder) more, exactly."""
    e = ecology(sparse=0.2)
    for labels in ([0, 0, 0, 0], [0, 1, 0, 1], [0, 1, 2, 3]):
        best, other = e.decoder(labels), simplex(e.decoder(labels).shape, stream(1, "decoder"))
        masses = e.cells_of(labels) @ e.joint
        more = (masses * rel_entr(best, other).sum(axis=-1)).sum()
        assert more > 1e-2
        assert abs(e.loss(labels, other) - e.loss(labels, best) - more) <= 1e-13


@pytest.mark.parametrize("informed", [False, True])
@pytest.mark.parametrize("n", [1, 2, 4])
def test_loss_is_floor_and_excess(n, informed):
    """`te-decomposition`, `te-informed`: four routes, one of them over all triples one by one."""
    e = ecology(3, n, informed=informed, sparse=0.2)
    for labels in set_partitions(n):
        loss = e.bayes_loss(labels)
        assert abs(loss - slow_loss(e, labels)) <= 1e-13
        assert abs(loss - e.loss(labels, e.decoder(labels))) <= 1e-13
        assert abs(loss - e.entropy_floor() - e.js_excess(labels)) <= 1e-13
    assert e.js_excess(np.arange(n)) <= 1e-15


def test_the_excess_of_a_pair_is_what_libraries_say():
    """Equal weights, one context: SciPy's distance squared; unequal ones: the entropy of the mixture less the mean."""
    P, Q = simplex((2, 5), stream(0, "pair"))
    e = FiniteEcology([0.5, 0.5], [1.0], [[P], [Q]])
    assert abs(e.js_excess([0, 0]) - jensenshannon(P, Q) ** 2) <= 1e-15
    e = FiniteEcology([0.3, 0.7], [1.0], [[P], [Q]])
    expected = entropy(0.3 * P + 0.7 * Q) - 0.3 * entropy(P) - 0.7 * entropy(Q)
    assert abs(e.js_excess([0, 0]) - expected) <= 1e-14
    assert abs(e.complexity([0, 1]) - entropy([0.3, 0.7])) <= 1e-15


def test_a_tiny_excess_keeps_its_digits():
    """Distributions that differ by 1e-7: the excess is 1e-14, of which a difference of entropies has no digit left."""
    e = FiniteEcology([0.5, 0.5], [1.0], [[[0.5 + 1e-7, 0.5 - 1e-7]], [[0.5 - 1e-7, 0.5 + 1e-7]]])
    assert abs(e.js_excess([0, 0]) / 2e-14 - 1) <= 1e-2


def test_free_codes_are_the_refinements_of_the_quotient():
    """`te-quotient`: classes of sizes 3, 2, 2 leave 5 * 2 * 2 = 20 codes free; one of seven worlds in a
    context of weight zero counts for nothing."""
    classes = np.array([0, 0, 0, 1, 1, 2, 2])
    e = random_ecology(7, 2, 3, stream(0, "classes"), classes=classes)
    unseen = np.concatenate([e.laws, simplex((7, 1, 3), stream(1, "unseen"))], axis=1)
    e = FiniteEcology(e.prior, [*e.contexts, 0.0], unseen)
    assert np.array_equal(e.quotient(), classes)
    partitions = set_partitions(7)
    free = np.array([e.js_excess(labels) for labels in partitions]) < 1e-12
    assert free.sum() == 20
    assert np.array_equal(min(partitions[free], key=e.complexity), classes)  # (b): the simplest of them
    assert [is_refinement(each, classes) for each in partitions] == free.tolist()
    assert not np.array_equal(FiniteEcology(e.prior, [0.3, 0.3, 0.4], unseen).quotient(), classes)
    near = FiniteEcology([0.5, 0.5], [1.0], [[[0.5, 0.5]], [[0.5 + 1e-9, 0.5 - 1e-9]]])
    assert near.quotient().tolist() == [0, 1]  # however little apart


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_partitions_are_those_of_sympy(n):
    found = {tuple(labels) for labels in set_partitions(n)}
    expected = set()
    for partition in multiset_partitions(list(range(n))):
        labels = np.zeros(n, dtype=int)
        for cell, members in enumerate(partition):
            labels[members] = cell
        expected.add(tuple(normal_form(labels)))
    assert found == expected
    assert len(found) == len(set_partitions(n)) == bell_number(n)


def test_contexts_that_know_the_world():
    """`te-informed`: two coins whose context gives the world away with probability t pay (1 - t) JS; the outer two of
    three worlds may not be merged, each may be with the middle one, and no coarsest free code is the only one."""
    tossed = np.repeat(np.array([[0.9, 0.1], [0.2, 0.8]])[:, None], 3, axis=1)
    whole = jensenshannon(*tossed[:, 0]) ** 2
    for t in (0.0, 0.3, 1.0):
        told = FiniteEcology([0.5, 0.5], [[1 - t, t, 0.0], [1 - t, 0.0, t]], tossed)
        assert abs(told.js_excess([0, 0]) - (1 - t) * whole) <= 1e-15
    covers = two_covers()
    assert max(covers.js_excess([0, 0, 1]), covers.js_excess([0, 1, 1])) <= 1e-15
    assert min(covers.js_excess([0, 0, 0]), covers.js_excess([0, 1, 0])) > 0.05
    with pytest.raises(ValueError, match="have no quotient"):
        covers.quotient()


def test_what_an_ecology_refuses():
    laws = np.full((2, 1, 2), 0.5)
    bad = (
        (([0.5, 0.5], [1.0], laws * 1.1), r"laws\[0, 0\] sums to 1.1"),
        (([0.5, 0.6], [1.0], laws), "prior sums to 1.1"),
        (([1.0, 0.0], [1.0], laws), r"prior\[1\] = 0; .* leave a world of weight zero out"),
        (([0.5, 0.5], [0.5], laws), "contexts sums to 0.5"),
        (([0.5, 0.5], [[1.0], [0.9]], laws), r"contexts\[1\] sums to 0.9"),
        (([0.5, 0.5], [1.0], [[[1.5, -0.5]], [[0.5, 0.5]]]), r"laws\[0, 0, 0\] = 1.5"),
        (([1.0], [1.0], laws), r"laws of 2 worlds in 1 contexts, but prior \(1,\)"),
        (([0.5, 0.5], [1.0], laws[0]), r"give \(n,\), \(C,\) or \(n, C\), and \(n, C, V\)"),
        (([0.5, 0.5], [1.0], laws * math.nan), "laws"),
    )
    for arguments, words in bad:
        with pytest.raises(ValueError, match=words):
            FiniteEcology(*arguments)
    e = ecology()
    for call in (e.bayes_loss, e.js_excess, e.complexity):
        with pytest.raises(ValueError, match="a partition of 3 worlds; this ecology has 4"):
            call([0, 0, 1])
    with pytest.raises(ValueError, match=r"labels = .*; give a sequence of integers"):
        e.bayes_loss([0.5, 0.5, 1.0, 1.0])
    with pytest.raises(ValueError, match=r"a decoder \(1, 3, 4\) for 4 worlds; give \(2, 3, 4\)"):
        e.loss([0, 0, 1, 1], e.decoder([0, 0, 0, 0]))
    with pytest.raises(ValueError, match=r"alpha = 1\.5"):
        mix(e, e, 1.5)
    with pytest.raises(ValueError, match="other worlds or another vocabulary"):
        mix(e, ecology(9), 0.5)
    told = FiniteEcology(e.prior, np.tile(e.contexts, (4, 1)), e.laws)
    with pytest.raises(ValueError, match="know the world"):
        mix(told, e, 0.5)
    with pytest.raises(ValueError, match="partitions of 2 and of 3 worlds"):
        is_refinement([0, 1], [0, 1, 2])
    with pytest.raises(ValueError, match="n = 13: 27,644,437 partitions"):
        set_partitions(13)
    with pytest.raises(ValueError, match="classes of 3 worlds; give one for each of 4"):
        ecology(classes=(0, 0, 1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_softmax_in_its_own_precision_is_a_law_and_a_wrong_one_is_refused(dtype):
    laws = torch.randn(3, 5, 400, generator=stream(0, "laws of a model")).to(dtype).softmax(dim=-1)
    given = FiniteEcology(torch.full((3,), 1 / 3), torch.full((5,), 0.2), laws)
    assert np.abs(given.laws.sum(axis=-1) - 1).max() < 1e-12
    assert given.js_excess([0, 0, 0]) > 0
    with pytest.raises(ValueError, match="give probabilities that sum to 1"):
        FiniteEcology([1 / 3] * 3, [0.2] * 5, laws.double().numpy() * (1 + 1e-6))


def test_counts_make_the_ecology_of_their_shares():
    counts = np.array([[[3, 1, 0], [0, 0, 0]], [[1, 1, 2], [4, 0, 0]]])
    made = FiniteEcology.from_counts(counts)
    assert made.prior.tolist() == [4 / 12, 8 / 12]
    assert made.contexts.tolist() == [[1, 0], [0.5, 0.5]]
    assert made.laws[0, 1].tolist() == [1 / 3] * 3
    assert made.bayes_loss([0, 1]) == pytest.approx(
        -(3 * np.log(0.75) + np.log(0.25) + 2 * np.log(0.25) + 2 * np.log(0.5)) / 12
    )
    for wrong in (-counts, np.zeros((2, 2, 3))):
        with pytest.raises(ValueError, match="counts"):
            FiniteEcology.from_counts(wrong)


def test_what_rounding_allows_is_counted():
    """Two worlds, three contexts, two tokens: 12 terms, so u (12 + 2 + 4) (ln 12 + 1) a sum; a wrong digit is above."""
    some = random_ecology(2, 3, 2, stream(0, "rounding"))
    assert rounding_bound(some, 1) == pytest.approx(18 * (1 + math.log(12)) * 2.0**-53, rel=1e-12, abs=0)
    assert rounding_bound(some) == 4 * rounding_bound(some, 1)
    gap = abs(some.bayes_loss([0, 0]) - some.entropy_floor() - some.js_excess([0, 0]))
    assert gap <= rounding_bound(some) < 1e-13


@pytest.mark.parametrize("seed", range(5))
def test_a_merged_pair_pays_at_least_its_bound(seed):
    """`te-off`: for every code and every pair that it merges, by entropies; the cell of a pair pays just that."""
    e = ecology(seed, 5, sparse=0.2)
    for labels in set_partitions(5):
        excess = e.js_excess(labels)
        for u, w in (pair for pair in itertools.combinations(range(5), 2) if np.ptp(labels[[*pair]]) == 0):
            mass, bound = e.prior[[u, w]].sum(), 0.0
            for c, weight in enumerate(e.contexts):
                mixture = np.average(e.laws[[u, w], c], axis=0, weights=e.prior[[u, w]])
                mean = np.average([entropy(e.laws[i, c]) for i in (u, w)], weights=e.prior[[u, w]])
                bound += mass * weight * (entropy(mixture) - mean)
            assert bound <= excess + 1e-14
            assert abs(bound - mass * split_gain(e, [u], [w])) <= 1e-14
            if np.bincount(labels).max() == 2 and labels.max() == 3:
                assert abs(bound - excess) <= 1e-14


def test_readers_agree_in_training_and_nowhere_else():
    """`te-off`: readers that differ where training never goes have one loss there, and two elsewhere."""
    e = ecology(0, 5, classes=(0, 0, 1, 2, 2))
    first, second = (FiniteEcology(e.prior, law, e.laws) for law in ([0.4, 0.6, 0.0], [0.0, 0.0, 1.0]))
    code, one = e.quotient(), e.decoder(e.quotient())
    other = one.copy()
    other[:, 2] = simplex((3, 4), stream(1, "twins"))
    assert abs(first.loss(code, one) - first.loss(code, other)) <= 1e-14
    assert abs(first.loss(code, one) - first.bayes_loss(code)) <= 1e-14
    assert second.loss(code, other) - second.loss(code, one) > 1e-3


def test_mixing_is_linear_and_merges_nothing_below_one():
    e = ecology(2)
    other = FiniteEcology(e.prior, [1.0], simplex((4, 1, 4), stream(3, "other")))
    blind = FiniteEcology(e.prior, [1.0], np.full((4, 1, 4), 0.25))
    for alpha in (0.0, 0.25, 1.0):
        for value in (lambda e: split_gain(e, [0], [1]), lambda e: e.bayes_loss([0, 0, 1, 1])):
            assert abs(value(mix(e, other, alpha)) - (1 - alpha) * value(e) - alpha * value(other)) <= 1e-14
    assert mix(e, blind, 0.999).quotient().tolist() == [0, 1, 2, 3]
    assert mix(e, blind, 1.0).quotient().tolist() == [0] * 4


def test_the_least_empirical_loss_is_free_as_often_as_the_bound_says():
    """`te-certify`: the exact chance that a code with an excess wins, by listing all data sets, against Hoeffding's
    tails."""
    laws, N = np.array([[0.95, 0.05], [0.05, 0.95]]), 40
    e = FiniteEcology([0.5, 0.5], [1.0], laws[:, None])
    weights = (e.prior[:, None] * laws).ravel()
    losses = np.array([-np.log(e.decoder(labels)[list(labels), 0].ravel()) for labels in ((0, 0), (0, 1))])
    gamma, ceiling = e.js_excess([0, 0]), losses.max()
    for size in (5, 10, N):
        counts = np.array([(*c, size - sum(c)) for c in itertools.product(range(size + 1), repeat=3) if sum(c) <= size])
        chance = multinomial.pmf(counts, size, weights)
        merged, apart = counts @ losses.T[:, 0], counts @ losses.T[:, 1]
        failed = chance[merged <= apart].sum()
        assert failed <= 2 * 2 * math.exp(-size * gamma**2 / (2 * ceiling**2))
        assert (failed < 1e-3) == (size == N)
    asked = 2 * (ceiling / gamma) ** 2 * math.log(2 * 2 / 0.05)
    assert 2 * 2 * math.exp(-asked * gamma**2 / (2 * ceiling**2)) == pytest.approx(0.05)
