"""ListOps: three evaluators, two generators of one law, parsing of bad strings, the shallow predictors (HKT-9)."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from derived.lab.rng import stream
from derived.papers.hierarchical_kernel import listops
from derived.papers.hierarchical_kernel.listops import OPERATORS, ListOps, evaluate, evaluate_tokens, parse, to_text
from derived.papers.hierarchical_kernel.shallow import combine, operator_law, shallow_predictor

examples = settings(derandomize=True, max_examples=40, deadline=None, database=None)
SHORT = ListOps(min_length=4, max_length=60, max_depth=5, max_args=5, distinct=False)

trees = st.recursive(
    st.integers(0, 9),
    lambda inner: st.tuples(st.sampled_from(OPERATORS), st.lists(inner, min_size=1, max_size=5).map(tuple)),
    max_leaves=25,
)


def counted(values, num: int) -> np.ndarray:
    return np.bincount(np.asarray(values, dtype=int), minlength=num)


def same_law(first: np.ndarray, second: np.ndarray) -> float:
    """The p-value of a chi-square test on two tables of counts, rare cells put together."""
    rare = (first + second) < 20
    tables = [np.append(each[~rare], each[rare].sum(axis=0)) for each in (first, second)]
    keep = (tables[0] + tables[1]) > 0
    return float(stats.chi2_contingency(np.stack(tables)[:, keep]).pvalue)


# --- evaluators -------------------------------------------------------------------------------------------------------


@examples
@given(trees)
def test_evaluators_agree_on_any_tree(tree):
    """Recursion on the tree, one stack on the symbols, and numpy's own median and sum; text and codes go both ways."""
    codes = listops.tokens(tree)
    assert len(codes) == listops.length(tree)
    assert parse(codes) == tree
    assert parse([*codes, 0, 0]) == tree
    assert listops.from_text(to_text(codes)) == codes

    def peer(node):
        if isinstance(node, int):
            return node
        values = [peer(each) for each in node[1]]
        functions = {"MIN": np.min, "MAX": np.max, "MED": lambda v: int(np.median(v)), "SM": lambda v: np.sum(v) % 10}
        return int(functions[node[0]](values))

    assert evaluate(tree) == evaluate_tokens(codes) == evaluate_tokens([*codes, 0]) == peer(tree)


def test_operators_by_hand():
    for text, value in (
        ("[MAX 2 9 ]", 9),
        ("[MIN 4 [SM 7 8 ] 6 ]", 4),
        ("[MED 1 2 9 9 ]", 5),  # (2 + 9) / 2, floored
        ("[MED 3 8 5 ]", 5),
        ("[SM 9 9 9 ]", 7),
        ("( ( ( [MAX 2 ) 9 ) ] )", 9),  # the curried form of the original files
        ("7", 7),
    ):
        assert evaluate_tokens(listops.from_text(text)) == value
    assert to_text([12, 3, 10, 15, 0, 0]) == "[MAX 2 9 ]"
    assert listops.VOCABULARY == 16


def test_forest_evaluates_what_it_draws():
    """The third evaluator, bottom-up over generations in NumPy, on 3000 long expressions: no mismatch."""
    drawn = ListOps().sample(3000, stream(0, "forest"))
    assert drawn.tokens.shape == (3000, 511)
    for row, length, label in zip(drawn.tokens.numpy(), drawn.lengths.tolist(), drawn.labels.tolist(), strict=True):
        assert 100 < length < 512
        assert np.count_nonzero(row) == length == np.flatnonzero(row)[-1] + 1
        assert evaluate_tokens(row) == label == evaluate(parse(row))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no symbol"),
        ("[MAX 2 9", "1 list.*never closed"),
        ("[MAX 2 [MIN 3", "2 list.*never closed"),
        ("[MAX 2 9 ] ]", "the expression ends at symbol 3 of 5"),
        ("] 2", "symbol 0 closes a list that was never opened"),
        ("[MAX ]", r"closes \[MAX without arguments"),
        ("2 3", "the expression ends at symbol 0 of 2"),
        ("[AVG 2 3 ]", r"symbol '\[AVG' is unknown"),
        ("[MAX 2 10 ]", "symbol '10' is unknown"),
        ("[MAX 2 PAD ]", "symbol 'PAD' is unknown"),
    ],
)
def test_malformed_expressions_are_named(text, message):
    with pytest.raises(ValueError, match=message):
        listops.from_text(text)


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ([12, 3, 0, 4, 15], "symbol 2 has code 0"),
        ([12, 3, 16, 15], "symbol 2 has code 16"),
        ([3, 15], "never opened|ends at symbol 0"),
        ([12, 3], "never closed|1 open list"),
        ([12, 15], "without arguments|no argument"),
        ([3, 4], r"ends at symbol 0|0 open list\(s\) and 2 value"),
        ([], "no symbol|0 value"),
    ],
)
def test_malformed_codes_are_named_by_both(codes, message):
    for function in (parse, evaluate_tokens):
        with pytest.raises(ValueError, match=message):
            function(codes)


# --- the law ----------------------------------------------------------------------------------------------------------


def test_small_trees_have_their_exact_probabilities():
    """max_depth 2, max_args 2, no filter but length > 3: every expression [o a b ] has probability 1 / 400."""
    law = ListOps(max_depth=2, max_args=2, min_length=3, max_length=5, distinct=False)
    drawn = law.sample(40_000, stream(0, "exact"))
    codes = drawn.tokens.numpy()
    assert np.all(codes[:, 3] == 15)
    cells = ((codes[:, 0] - 11) * 10 + codes[:, 1] - 1) * 10 + codes[:, 2] - 1
    assert stats.chisquare(counted(cells, 400)).pvalue > 1e-4


@pytest.mark.parametrize("branch", [0.25, 0.6])
def test_length_has_its_exact_law(branch):
    """Lengths against the law computed by convolution over the generations, conditioned on the range."""
    law = ListOps(max_depth=4, max_args=4, branch=branch, min_length=2, max_length=40, distinct=False)
    one = np.zeros(200)
    one[1] = 1.0
    chances = one
    for _ in range(law.max_depth - 1):
        lists, power = np.zeros(200), chances
        for _ in range(2, law.max_args + 1):
            power = np.convolve(power, chances)[:200]
            lists[2:] += power[:198] / (law.max_args - 1)
        chances = (1 - branch) * one + branch * lists
    inside = np.where((np.arange(200) > 2) & (np.arange(200) < 40), chances, 0)
    expected = inside / inside.sum(axis=0)
    for drawn, num in (
        (law.sample(30_000, stream(0, "lengths")).lengths.numpy(), 30_000),
        (recursive(law, 4000)[0], 4000),
    ):
        counts, cells = counted(drawn, 200), expected * num > 10
        pooled = np.append(counts[cells], counts[~cells].sum(axis=0))
        chance = np.append(expected[cells], expected[~cells].sum(axis=0)) * num
        assert stats.chisquare(pooled[chance > 0], chance[chance > 0]).pvalue > 1e-4


def recursive(law: ListOps, num: int) -> tuple[list[int], list[int], np.ndarray]:
    """Lengths, values and codes of the plain generator."""
    draw = stream(0, "recursive")
    found = [law.sample_tree(draw) for _ in range(num)]
    codes = np.concatenate([listops.tokens(tree) for tree in found])
    return [listops.length(tree) for tree in found], [evaluate(tree) for tree in found], codes


def test_both_generators_have_one_law():
    """Chi-square on symbols (operators, digits, closers), lengths and values; a law with max_args 4 is told apart."""
    lengths, values, codes = recursive(SHORT, 4000)
    drawn = SHORT.sample(8000, stream(0, "fast"))
    symbols = counted(drawn.tokens.numpy().ravel(), 16)
    operators = slice(11, 15)
    assert same_law(counted(codes, 16)[operators], symbols[operators]) > 1e-4
    assert same_law(counted(codes, 16)[1:11], symbols[1:11]) > 1e-4
    assert same_law(counted(lengths, 60), counted(drawn.lengths, 60)) > 1e-4
    assert same_law(counted(values, 10), counted(drawn.labels, 10)) > 1e-4
    roots = counted(drawn.tokens[:, 0].numpy() - 11, 4)
    assert stats.chisquare(roots).pvalue > 1e-4
    other = ListOps(min_length=4, max_length=60, max_depth=5, max_args=4, distinct=False)
    assert same_law(counted(other.sample(8000, stream(0, "other")).lengths, 60), counted(lengths, 60)) < 1e-6


def test_distinct_expressions_and_reproducible_draws():
    law = ListOps(max_depth=2, max_args=2, min_length=3, max_length=5)
    drawn = law.sample(400, stream(0, "all"))
    assert len({row.tobytes() for row in drawn.tokens.numpy()}) == 400  # all there are
    with pytest.raises(ValueError, match="only 400 of 401 expressions"):
        law.sample(401, stream(0, "all"))
    a, b, c = (ListOps().sample(20, stream(seed, "seed")) for seed in (0, 0, 1))
    assert torch.equal(a.tokens, b.tokens)
    assert not torch.equal(a.tokens, c.tokens)
    assert SHORT.sample(1, stream(0, "one")).tokens.shape == (1, 59)
    assert SHORT.sample_tree(stream(0, "t")) == SHORT.sample_tree(stream(0, "t"))


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"max_depth": 1}, "max_depth = 1"),
        ({"max_args": 1}, "max_args = 1"),
        ({"branch": 1.5}, "branch = 1.5"),
        ({"min_length": 511}, "no tree"),
        ({"min_length": 600}, "no tree"),
        ({"max_depth": 2, "max_args": 3, "min_length": 5}, "lengths up to 5"),
    ],
)
def test_impossible_laws_are_refused(facts, message):
    with pytest.raises(ValueError, match=message):
        ListOps(**facts)
    with pytest.raises(ValueError, match="num = 0"):
        ListOps().sample(0, stream(0, "none"))


# --- shallow predictors -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("num", [1, 2, 3, 4])
def test_laws_of_operators_by_enumeration(operator, num):
    """All 10^num outcomes of independent digits against the closed forms; absent slots are skipped."""
    draws = np.random.default_rng(int(torch.randint(2**31, (), generator=stream(0, operator, num))))
    laws = draws.dirichlet(np.full(10, 0.3), (2, num))
    expected = np.zeros((2, 10))
    for digits in itertools.product(range(10), repeat=num):
        chance = np.prod(laws[:, np.arange(num), digits], axis=1)
        expected[:, listops.apply(operator, list(digits))] += chance
    np.testing.assert_allclose(combine(operator, laws), expected, atol=1e-14)
    padded = np.insert(laws, [0, num], 0.3, axis=1)
    present = np.ones((2, num + 2), dtype=bool)
    present[:, [0, -1]] = False
    np.testing.assert_allclose(combine(operator, padded, present), expected, atol=1e-14)


def test_law_of_a_long_median_by_simulation():
    draws = np.random.default_rng(int(torch.randint(2**31, (), generator=stream(0, "median"))))
    for num in (9, 10):
        laws = draws.dirichlet(np.full(10, 0.5), (1, num))
        digits = np.stack([draws.choice(10, 200_000, p=law) for law in laws[0]])
        measured = counted(np.floor(np.median(digits, axis=0)), 10) / 200_000
        exact = combine("MED", laws)[0]
        assert exact.sum(axis=0) == pytest.approx(1, abs=1e-13)
        assert np.all(np.abs(measured - exact) < 4.5 * np.sqrt(exact * (1 - exact) / 200_000) + 1e-5)


def test_root_rule_by_hand():
    """`hkt-root`: MIN of n uniform digits is 0 with probability 1 - 0.9^n, MAX is 9 likewise, SM is uniform."""
    for n in (2, 5, 10):
        laws = np.full((1, n, 10), 0.1)
        assert combine("MIN", laws)[0, 0] == pytest.approx(1 - 0.9**n, rel=1e-13)
        assert combine("MAX", laws)[0, 9] == pytest.approx(1 - 0.9**n, rel=1e-13)
        np.testing.assert_allclose(combine("SM", laws)[0], 0.1, rtol=1e-13)
    assert combine("MIN", np.full((1, 2, 10), 0.1))[0, 0] == pytest.approx(0.19)


def test_predictors_sharpen_with_depth_and_end_exact():
    """Depth 0 is a table of four guesses; more depth is better; the whole depth is evaluation."""
    law = ListOps(min_length=20, max_length=200)
    known = [parse(row) for row in law.sample(2000, stream(0, "train")).tokens.numpy()]
    test = law.sample(1500, stream(0, "test"))
    p, codes, labels = operator_law(known), test.tokens.numpy(), test.labels.numpy()
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    assert p.argmax(axis=1)[:3].tolist()[:2] == [0, 9]
    shares = [float(np.mean(shallow_predictor(depth, p)(codes) == labels)) for depth in (0, 1, 2, 9)]
    assert shares[0] + 0.2 < shares[1] < shares[2] < shares[3] == 1
    table = p.argmax(axis=1)[codes[:, 0] - 11]
    np.testing.assert_array_equal(shallow_predictor(0, p)(codes), table)
    found = shallow_predictor(1, p).probabilities([parse(row) for row in codes])
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
    # calibrated: the mean of the largest probability is the share of right guesses, but for dependence of subtrees
    assert abs(found.max(axis=1).mean() - shares[1]) < 0.05


def test_depth_one_by_simulation():
    """One tree: deeper lists replaced by draws from their operators' laws, many times over."""
    tree = ("MED", (3, ("MIN", (1, 2)), 8, ("SM", (4, ("MAX", (1, 1))))))
    draws = np.random.default_rng(int(torch.randint(2**31, (), generator=stream(0, "one tree"))))
    p = draws.dirichlet(np.ones(10), 4)
    num = 100_000
    guesses = np.stack([np.full(num, 3), draws.choice(10, num, p=p[0]), np.full(num, 8), draws.choice(10, num, p=p[3])])
    measured = counted(np.floor(np.median(guesses, axis=0)), 10) / num
    exact = shallow_predictor(1, p).probabilities([tree, 7])
    assert np.all(np.abs(measured - exact[0]) < 4.5 / (2 * math.sqrt(num)))
    np.testing.assert_array_equal(exact[1], np.eye(10)[7])
    whole = shallow_predictor(3, p).probabilities([tree])
    assert whole[0, evaluate(tree)] == 1


def test_operator_law_counts_lists():
    trees = [("MIN", (3, ("MAX", (1, 2)))), ("SM", (5, ("MED", (4, 4)), 1)), ("MAX", (9,)), 5]
    p = operator_law(trees)
    assert p[0, 2] == 1
    assert p[1, 2] == p[1, 9] == 0.5
    assert p[2, 4] == p[3, 0] == 1
    with pytest.raises(ValueError, match="no list with MED"):
        operator_law([tree for tree in trees if tree != trees[1]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: combine("AVG", np.full((1, 2, 10), 0.1)), "operator 'AVG'"),
        (lambda: combine("MIN", np.full((1, 2, 10), 0.1), np.zeros((1, 2), dtype=bool)), "no argument"),
        (lambda: shallow_predictor(-1, np.full((4, 10), 0.1)), "depth = -1"),
        (lambda: shallow_predictor(1, np.full((4, 10), 0.2)), "sum 1"),
        (lambda: listops.apply("AVG", [1]), "operator 'AVG'"),
        (lambda: listops.apply("MIN", []), "no argument"),
        (lambda: operator_law([1, 2]), "no list with MIN, MAX, MED, SM"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_few_and_many_arguments():
    """Empty slots never win where lists are shorter than max_args, and long sums do not overflow."""
    law = ListOps(max_depth=2, max_args=10, min_length=3, max_length=6, distinct=False)
    drawn = law.sample(4000, stream(0, "few"))
    assert set(drawn.lengths.tolist()) == {4, 5}
    assert all(evaluate_tokens(row) == label for row, label in zip(drawn.tokens.numpy(), drawn.labels, strict=True))
    law = ListOps(max_depth=2, max_args=60, min_length=40, max_length=63, distinct=False)
    drawn = law.sample(400, stream(0, "many"))
    assert all(evaluate_tokens(row) == label for row, label in zip(drawn.tokens.numpy(), drawn.labels, strict=True))
