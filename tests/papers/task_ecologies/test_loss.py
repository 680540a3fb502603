"""The loss of a code: floor and excess, free codes, contexts that know the world, Hellinger distances."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon
from scipy.special import rel_entr
from scipy.stats import entropy
from sympy.utilities.iterables import multiset_partitions

from derived.lab.rng import stream
from derived.papers.task_ecologies import FiniteEcology, bell_number, is_refinement, loss, set_partitions
from derived.papers.task_ecologies.data.ecologies import random_ecology, revealing, simplex, two_covers
from derived.papers.task_ecologies.loss import Informed, agree, naive_excess
from derived.papers.task_ecologies.model.codes import cell_excesses
from derived.papers.task_ecologies.model.ecology import _eps, rounding_bound
from derived.papers.task_ecologies.model.partitions import cells, from_masks, incidence, masks, normal_form

EXPERIMENTS = (Informed,)
EPS = 2.0**-52


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
    """`te-compensation`: any other decoder pays the mean of KL(mixture || decoder) more, exactly."""
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
    """Laws that differ by 1e-7: the excess is 1e-14, of which a difference of entropies has no digit left."""
    e = FiniteEcology([0.5, 0.5], [1.0], [[[0.5 + 1e-7, 0.5 - 1e-7]], [[0.5 - 1e-7, 0.5 + 1e-7]]])
    assert abs(e.js_excess([0, 0]) / 2e-14 - 1) <= 1e-2


def test_relabelling_changes_nothing():
    e, labels = ecology(4, informed=True), np.array([0, 1, 1, 0])
    worlds, contexts, tokens = [2, 0, 3, 1], [1, 2, 0], [3, 1, 0, 2]
    moved = FiniteEcology(e.prior[worlds], e.contexts[worlds][:, contexts], e.laws[worlds][:, contexts][..., tokens])
    assert abs(moved.bayes_loss(labels[worlds]) - e.bayes_loss(labels)) <= 1e-14
    assert abs(moved.js_excess(5 - labels[worlds]) - e.js_excess(labels)) <= 1e-14


def test_a_context_that_stands_twice_counts_once_with_both_weights():
    e = ecology(5)
    twice = FiniteEcology(e.prior, [*e.contexts[:2], 0.4 * e.contexts[2], 0.6 * e.contexts[2]], e.laws[:, [0, 1, 2, 2]])
    for labels in set_partitions(4):
        assert abs(twice.bayes_loss(labels) - e.bayes_loss(labels)) <= 1e-14
    assert np.abs(twice.hellinger() - e.hellinger()).max() <= 1e-15


def test_free_codes_are_the_refinements_of_the_quotient():
    """`te-quotient`, `te-count`: classes of sizes 3, 2, 2 leave 5 * 2 * 2 = 20 codes free; one of seven worlds in a
    context of weight zero counts for nothing."""
    classes = np.array([0, 0, 0, 1, 1, 2, 2])
    e = random_ecology(7, 2, 3, stream(0, "classes"), classes=classes)
    unseen = np.concatenate([e.laws, simplex((7, 1, 3), stream(1, "unseen"))], axis=1)
    e = FiniteEcology(e.prior, [*e.contexts, 0.0], unseen)
    assert np.array_equal(e.quotient(), classes)
    partitions = set_partitions(7)
    free = incidence(partitions) @ cell_excesses(e) < 1e-12
    assert free.sum() == 20
    assert [is_refinement(each, classes) for each in partitions] == free.tolist()
    assert not np.array_equal(FiniteEcology(e.prior, [0.3, 0.3, 0.4], unseen).quotient(), classes)
    near = FiniteEcology([0.5, 0.5], [1.0], [[[0.5, 0.5]], [[0.5 + 1e-9, 0.5 - 1e-9]]])
    assert near.quotient().tolist() == [0, 1]  # however little apart


def test_sums_over_cells():
    """The excess of a partition is a sum over its cells, of `cell_excesses`; also where contexts know the world."""
    for informed in (False, True):
        e = ecology(6, informed=informed)
        partitions = set_partitions(4)
        expected = [e.js_excess(labels) for labels in partitions]
        assert np.abs(incidence(partitions) @ cell_excesses(e) - expected).max() <= 1e-15


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


def test_partitions_and_masks():
    for labels in set_partitions(5):
        assert np.array_equal(from_masks(masks(labels), 5), labels)
        assert sum(len(cell) for cell in cells(labels)) == 5
    assert incidence(set_partitions(4)).sum() == sum(labels.max() + 1 for labels in set_partitions(4))


def test_contexts_that_know_the_world():
    """`te-informed`: the constant code of two coins pays (1 - t) JS; the outer two of three worlds may not be merged,
    each may be with the middle one, and no coarsest free code is the only one."""
    whole = revealing(0.0).js_excess([0, 0])
    for t in (0.0, 0.3, 1.0):
        assert abs(revealing(t).js_excess([0, 0]) - (1 - t) * whole) <= 1e-15
    covers = two_covers()
    assert max(covers.js_excess([0, 0, 1]), covers.js_excess([0, 1, 1])) <= 1e-15
    assert min(covers.js_excess([0, 0, 0]), covers.js_excess([0, 1, 0])) > 0.05
    assert agree(covers, np.array([0, 0, 1]))
    assert not agree(covers, np.array([0, 1, 0]))
    with pytest.raises(ValueError, match="have no quotient"):
        covers.quotient()


def test_the_formula_that_is_refuted_is_the_one_with_prior_weights():
    """Mixtures with the weights pi(w) / pi_S, contexts by their marginal law."""
    e, labels = ecology(8, informed=True), np.array([0, 0, 1, 1])
    marginal, expected = e.prior @ e.contexts, 0.0
    for cell in cells(labels):
        mixture = np.average(e.laws[cell], axis=0, weights=e.prior[cell])
        expected += (e.prior[cell][:, None] * marginal * rel_entr(e.laws[cell], mixture).sum(axis=-1)).sum()
    assert abs(naive_excess(e, labels) - expected) <= 1e-14
    assert abs(naive_excess(e, labels) - e.js_excess(labels)) > 1e-3


def test_independence_is_a_special_case():
    e = ecology(7)
    told = FiniteEcology(e.prior, np.tile(e.contexts, (4, 1)), e.laws)
    for labels in set_partitions(4):
        assert abs(told.js_excess(labels) - e.js_excess(labels)) <= 1e-15


def test_hellinger_and_its_kernel():
    """`te-hellinger`: H^2 <= -2 ln(1 - H^2) <= KL; KL is 4 H^2 for near laws; the kernel and its rank."""
    P, Q = simplex((2, 300, 4), stream(0, "laws"))
    for p, q in zip(P, Q, strict=True):
        e = FiniteEcology([0.5, 0.5], [1.0], [[p], [q]])
        H2 = e.hellinger()[0, 1]
        assert abs(H2 - (1 - np.sqrt(p * q).sum())) <= 1e-14
        assert H2 <= -2 * math.log(1 - H2) + EPS <= rel_entr(p, q).sum() + 2 * EPS
    near = 0.999 * P + 0.001 * Q
    ratio = rel_entr(P, near).sum(axis=-1) / (2 * ((np.sqrt(P) - np.sqrt(near)) ** 2).sum(axis=-1))
    assert np.abs(np.median(ratio) - 1) <= 1e-2
    e = random_ecology(5, 3, 4, stream(1, "kernel"), classes=(0, 0, 1, 2, 2))
    K = e.kernel()
    values = np.linalg.eigvalsh(K)
    assert values.min() >= -1e-15
    assert (values > 1e-12).sum() == 2
    distances = np.diag(K)[:, None] + np.diag(K) - 2 * K
    assert np.abs(distances - e.hellinger()).max() <= 1e-14


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
    with pytest.raises(ValueError, match="contexts know the world"):
        ecology(informed=True).kernel()
    with pytest.raises(ValueError, match="partitions of 2 and of 3 worlds"):
        is_refinement([0, 1], [0, 1, 2])
    with pytest.raises(ValueError, match="n = 13: 27,644,437 partitions"):
        set_partitions(13)
    for sets, words in (([3, 2], "share a world"), ([1], "no partition of 2"), ([1, 6], "no partition of 2")):
        with pytest.raises(ValueError, match=words):
            from_masks(sets, 2)
    with pytest.raises(ValueError, match="classes of 3 worlds; give one for each of 4"):
        ecology(classes=(0, 0, 1))


def test_rows_say_so_where_the_formula_is_wrong(rows, monkeypatch):
    """With prior weights the routes part and codes are misjudged; replicates are other draws."""
    assert (rows[Informed]["gap"] <= rows[Informed]["bound"]).all()
    assert not rows[Informed]["mismatch"].any()
    floors = rows[Informed].query("kind == 'random'").groupby("replicate")["floor"].first()
    assert floors.nunique() == len(floors) == 3
    right = FiniteEcology.js_excess
    monkeypatch.setattr(loss, "naive_excess", lambda e, labels: right(e, labels))
    blind = lambda e: FiniteEcology(e.prior, e.joint.sum(axis=0), e.laws)  # noqa: E731
    monkeypatch.setattr(FiniteEcology, "js_excess", lambda e, labels: right(blind(e), labels))
    table = Informed.at("tiny").run({"kind": "random"}, seed=0, device="cpu", dtype=None)
    assert (table["gap"] > table["bound"]).any()
    assert Informed().run({"kind": "covers"}, seed=0, device="cpu", dtype=None)["mismatch"].any()


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


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_the_rounding_of_one_number_is_that_of_its_type(dtype):
    assert _eps(torch.zeros(1, dtype=dtype)) == torch.finfo(dtype).eps / 2
