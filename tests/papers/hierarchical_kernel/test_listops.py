"""ListOps: evaluation, the distribution of trees, parsing of bad strings, and rules counted in full."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from derived.lab.experiment import run_condition
from derived.lab.rng import stream
from derived.papers.hierarchical_kernel.data import listops
from derived.papers.hierarchical_kernel.data.forest import CLOSE, DIGIT, OPEN
from derived.papers.hierarchical_kernel.data.listops import OPERATORS, ListOps, evaluate_tokens, parse
from derived.papers.hierarchical_kernel.rules import Rules

examples = settings(derandomize=True, max_examples=40, deadline=None, database=None)
trees = st.recursive(
    st.integers(0, 9),
    lambda inner: st.tuples(st.sampled_from(OPERATORS), st.lists(inner, min_size=1, max_size=5).map(tuple)),
    max_leaves=25,
)


def counted(values, num: int) -> np.ndarray:
    return np.bincount(np.asarray(values, dtype=int), minlength=num)


@examples
@given(trees)
def test_evaluators_agree_on_any_tree(tree):
    """The package, and numpy's own median and sum by recursion; text and codes go both ways."""

    def written(node):
        if isinstance(node, int):
            return [DIGIT + node]
        return [OPEN + OPERATORS.index(node[0]), *(code for each in node[1] for code in written(each)), CLOSE]

    codes = written(tree)
    assert parse(codes) == tree
    assert parse([*codes, 0, 0]) == tree
    assert listops.from_text(" ".join(listops.SYMBOLS[code] for code in codes)) == codes

    def peer(node):
        if isinstance(node, int):
            return node
        values = [peer(each) for each in node[1]]
        functions = {"MIN": np.min, "MAX": np.max, "MED": lambda v: int(np.median(v)), "SM": lambda v: np.sum(v) % 10}
        return int(functions[node[0]](values))

    assert evaluate_tokens(codes) == evaluate_tokens([*codes, 0]) == peer(tree)


def test_forest_evaluates_what_it_draws():
    """Bottom-up over generations in NumPy, on 3000 long expressions: no mismatch."""
    drawn = ListOps().sample(3000, stream(0, "forest"))
    assert drawn.tokens.shape == (3000, 511)
    for row, length, label in zip(drawn.tokens.numpy(), drawn.lengths.tolist(), drawn.labels.tolist(), strict=True):
        assert 100 < length < 512
        assert np.count_nonzero(row) == length == np.flatnonzero(row)[-1] + 1
        assert evaluate_tokens(row) == label


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


@pytest.mark.parametrize(("codes", "place"), [([12, 3, 0, 4, 15], "code 0"), ([12, 3, 16, 15], "code 16")])
def test_unknown_codes_are_named(codes, place):
    with pytest.raises(ValueError, match=f"symbol 2 has {place}"):
        evaluate_tokens(codes)


def test_small_trees_have_their_exact_probabilities():
    """max_depth 2, max_args 2, no filter but length > 3: every expression [o a b ] has probability 1 / 400."""
    lists = ListOps(max_depth=2, max_args=2, min_length=3, max_length=5, distinct=False)
    drawn = lists.sample(40_000, stream(0, "exact"))
    codes = drawn.tokens.numpy()
    assert np.all(codes[:, 3] == 15)
    cells = ((codes[:, 0] - 11) * 10 + codes[:, 1] - 1) * 10 + codes[:, 2] - 1
    assert stats.chisquare(counted(cells, 400)).pvalue > 1e-4


@pytest.mark.parametrize("branch", [0.25, 0.6])
def test_length_has_its_exact_distribution(branch):
    """Lengths against the distribution computed by convolution over the generations, conditioned on the range."""
    drawn = ListOps(max_depth=4, max_args=4, branch=branch, min_length=2, max_length=40, distinct=False)
    one = np.zeros(200)
    one[1] = 1.0
    chances = one
    for _ in range(drawn.max_depth - 1):
        lists, power = np.zeros(200), chances
        for _ in range(2, drawn.max_args + 1):
            power = np.convolve(power, chances)[:200]
            lists[2:] += power[:198] / (drawn.max_args - 1)
        chances = (1 - branch) * one + branch * lists
    inside = np.where((np.arange(200) > 2) & (np.arange(200) < 40), chances, 0)
    expected = inside / inside.sum(axis=0)
    num = 30_000
    counts, cells = counted(drawn.sample(num, stream(0, "lengths")).lengths.numpy(), 200), expected * num > 10
    pooled = np.append(counts[cells], counts[~cells].sum(axis=0))
    chance = np.append(expected[cells], expected[~cells].sum(axis=0)) * num
    assert stats.chisquare(pooled[chance > 0], chance[chance > 0]).pvalue > 1e-4


def test_distinct_expressions_and_reproducible_draws():
    lists = ListOps(max_depth=2, max_args=2, min_length=3, max_length=5)
    drawn = lists.sample(400, stream(0, "all"))
    assert len({row.tobytes() for row in drawn.tokens.numpy()}) == 400  # all there are
    with pytest.raises(ValueError, match="only 400 of 401 expressions"):
        lists.sample(401, stream(0, "all"))
    a, b, c = (ListOps().sample(20, stream(seed, "seed")) for seed in (0, 0, 1))
    assert torch.equal(a.tokens, b.tokens)
    assert not torch.equal(a.tokens, c.tokens)


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
def test_impossible_ranges_are_refused(facts, message):
    with pytest.raises(ValueError, match=message):
        ListOps(**facts)
    with pytest.raises(ValueError, match="num = 0"):
        ListOps().sample(0, stream(0, "none"))


def test_whole_rules_are_counted_in_full():
    """All lists evaluated, a rule is always right; the root's is that of its best guess, recounted here."""
    small = Rules(chunks=2, trees=2000, few=30, depths=(1, 9))
    table = run_condition(small, {"range": "short"}, 3, "cpu").set_index("rule")
    assert table.loc["depth 9", "right"] == table.loc["depth 9", "trees"] == 30
    assert 10 < table.loc["depth 1", "right"] < 30
    lists, right = ListOps(min_length=8, max_length=25), 0
    train = lists.sample(2000, stream(3, "rules", "short", "law"))
    best = [int(train.labels[train.tokens[:, 0] == OPEN + o].bincount(minlength=10).argmax(dim=0)) for o in range(4)]
    for chunk in range(2):
        test = lists.sample(2000, stream(3, "rules", "short", "test", chunk))
        right += sum(
            best[int(code) - OPEN] == label for code, label in zip(test.tokens[:, 0], test.labels, strict=True)
        )
    assert table.loc["root", "right"] == right
    assert table.loc["majority", "right"] + 500 < right
