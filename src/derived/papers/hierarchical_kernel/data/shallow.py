"""Shallow predictors: the first levels of a ListOps tree without what is below.

symbol    name      meaning                                                        axes
p_o       chances       P(value = v | operator o), pooled over the lists of a sample   (4, 10)
m         depth     levels of lists that are evaluated                             integer
          chances   the arguments of each list as independent random digits        (lists, slots, 10)
          present   which slots hold an argument                                   (lists, slots)

Depth 0 sees the root's operator alone. Depth m evaluates the root's list and those less than m levels below it; a list
m levels below counts as an independent draw from its operator's distribution. The guess is the likeliest value, which is exact.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from derived.lab.checks import check_count

from .listops import OPERATORS, Tree, apply, parse

DIGITS = np.arange(10)


def operator_chances(trees: Sequence[Tree]) -> np.ndarray:
    """P(value | operator), (4, 10), counted over all lists of the trees.

    Raises ValueError if an operator never occurs, since nothing is then known about it.
    """
    counts = np.zeros((4, 10), dtype=np.int64)
    for tree in trees:
        _count(tree, counts)
    if not counts.sum(axis=1).all():
        missing = ", ".join(name for name, row in zip(OPERATORS, counts, strict=True) if not row.sum(axis=0))
        raise ValueError(f"no list with {missing} among {len(trees)} trees; give more trees")
    return counts / counts.sum(axis=1, keepdims=True)


def _count(tree: Tree, counts: np.ndarray) -> int:
    """The value of a tree; its lists are counted on the way."""
    if isinstance(tree, int):
        return tree
    value = apply(tree[0], [_count(argument, counts) for argument in tree[1]])
    counts[OPERATORS.index(tree[0]), value] += 1
    return value


# --- distributions of the operators on independent digits ---------------------------------------------------------------


def combine(operator: str, chances: np.ndarray, present: np.ndarray | None = None) -> np.ndarray:
    """The exact distribution of an operator's value on independent digits: (lists, slots, 10) to (lists, 10).

    ``present`` (lists, slots) marks the slots that hold an argument, at least one a list; all if it is not given.
    """
    present = np.ones(chances.shape[:2], dtype=bool) if present is None else present
    if operator == "MAX":
        below = np.prod(np.where(present[..., None], np.cumsum(chances, axis=-1), 1.0), axis=1)
        return np.diff(below, prepend=0.0, axis=-1)
    if operator == "MIN":
        return combine("MAX", chances[..., ::-1], present)[..., ::-1]
    if operator == "SM":
        return _sum_modulo_ten(chances, present)
    return _median(chances, present)


def _sum_modulo_ten(chances: np.ndarray, present: np.ndarray) -> np.ndarray:
    total = np.zeros((len(chances), 10))
    total[:, 0] = 1.0
    shift = (DIGITS[:, None] - DIGITS) % 10
    for slot in range(chances.shape[1]):
        added = np.einsum("lij,lj->li", chances[:, slot, shift], total)
        total = np.where(present[:, slot, None], added, total)
    return total


def _median(chances: np.ndarray, present: np.ndarray) -> np.ndarray:
    """The distribution of floor((a + b) / 2) for the two middle values a <= b, which are one and the same for an odd number.

    P(a, b) for a < b comes from G(a, b) = P(half the values <= a, the others >= b) by differences in a and in b; what
    is left of P(lower middle = a) is a = b.
    """
    num = present.sum(axis=1)
    at_most, at_least = np.cumsum(chances, axis=-1), np.cumsum(chances[..., ::-1], axis=-1)[..., ::-1]
    counts = _counts(at_most, 1 - at_most, present)  # P(j values <= v), (lists, slots + 1, 10)
    enough = np.arange(counts.shape[1]) >= ((num + 1) // 2)[:, None]
    lower = np.diff(np.sum(counts * enough[..., None], axis=1), prepend=0.0, axis=-1)  # P(lower middle = a)
    halves = _counts(at_most[..., :, None], at_least[..., None, :], present)  # (lists, slots + 1, a, b)
    G = np.zeros((len(chances), 11, 11))  # a from -1, b to 10
    G[:, 1:, :10] = halves[np.arange(len(chances)), num // 2] * (DIGITS[:, None] < DIGITS)
    joint = G[:, 1:, :10] - G[:, :10, :10] - G[:, 1:, 1:] + G[:, :10, 1:]
    joint = joint * (DIGITS[:, None] < DIGITS) * (num % 2 == 0)[:, None, None]
    middle = lower - joint.sum(axis=-1)
    np.add.at(middle, (slice(None), (DIGITS[:, None] + DIGITS) // 2), joint)
    return middle


def _counts(first: np.ndarray, second: np.ndarray, present: np.ndarray) -> np.ndarray:
    """P(j slots end in "first" and all others in "second"), j from 0: (lists, slots + 1, ...)."""
    lists, slots = present.shape
    tail = np.broadcast_shapes(first.shape[2:], second.shape[2:])
    ways = np.zeros((lists, slots + 1, *tail))
    ways[:, 0] = 1.0
    for slot in range(slots):
        p, q = first[:, slot, None], second[:, slot, None]
        stepped = q * ways
        stepped[:, 1:] += p * ways[:, :-1]
        ways = np.where(present[:, slot].reshape(-1, *[1] * (ways.ndim - 1)), stepped, ways)
    return ways


# --- the predictors -------------------------------------------------------------------------------------------------


class ShallowPredictor:
    """The likeliest value of a tree for one who evaluates ``depth`` levels of lists and knows how often an operator gives a value.

    argmax_v P(value = v | what is seen), where a list below counts as an independent draw from ``chances``, P(value |
    operator), (4, 10). Takes expressions as rows of codes, returns (num,). ValueError for depth < 0 and chances whose
    rows are no probabilities. [ours]

    >>> from derived.papers.hierarchical_kernel.data.listops import from_text
    >>> seen = [from_text("[SM 2 9 3 ]"), from_text("[MAX 2 [MIN 4 7 ] ]")]
    >>> ShallowPredictor(1, np.full((4, 10), 0.1))(seen).tolist()
    [4, 2]
    """

    def __init__(self, depth: int, chances: np.ndarray) -> None:
        check_count("depth", depth, 0)
        if chances.shape != (4, 10) or not np.allclose(chances.sum(axis=1), 1) or (chances < 0).any():
            raise ValueError(f"chances {chances.shape}; give P(value | operator), four rows of ten with sum 1")
        self.depth, self.chances = depth, chances

    def probabilities(self, trees: Sequence[Tree]) -> np.ndarray:
        """The distribution of each tree's value given what is seen of it, (num, 10); one generation of lists at a time."""
        generations = [list(trees)]
        for _ in range(self.depth):
            lists = (node for node in generations[-1] if not isinstance(node, int))
            generations.append([argument for node in lists for argument in node[1]])
        below = None
        for nodes in reversed(generations):
            below = self._generation(nodes, below)
        return below

    def _generation(self, nodes: list[Tree], below: np.ndarray | None) -> np.ndarray:
        """The distributions of a generation from those of the next one, or from the operators alone if there is none."""
        of_nodes = np.zeros((len(nodes), 10))
        kinds = np.array([-1 if isinstance(node, int) else OPERATORS.index(node[0]) for node in nodes], dtype=int)
        digits = np.flatnonzero(kinds < 0)
        of_nodes[digits, [nodes[i] for i in digits]] = 1.0
        lists = np.flatnonzero(kinds >= 0)
        if below is None or not len(lists):
            of_nodes[lists] = self.chances[kinds[lists]]
            return of_nodes
        num = np.array([len(nodes[i][1]) for i in lists])
        present = np.arange(num.max()) < num[:, None]
        chances = np.zeros((*present.shape, 10))
        chances[present] = below
        for o, operator in enumerate(OPERATORS):
            here = kinds[lists] == o
            of_nodes[lists[here]] = combine(operator, chances[here], present[here])
        return of_nodes

    def __call__(self, expressions: Iterable) -> np.ndarray:
        """The guesses for expressions given as rows of codes, (num,)."""
        return np.argmax(self.probabilities([parse(codes) for codes in expressions]), axis=1)
