"""Many ListOps trees at once: shapes, values and symbols, one generation of nodes after another in NumPy.

symbol      name       meaning                                                                  axes
            arities    arguments of each node of a generation, 0 for a digit                  (nodes,)
            trees      the tree that a node belongs to, ascending                             (nodes,)
            sizes      symbols of the subtree, brackets included                              (nodes,)
            values     digits, 0 .. 9                                                         (nodes,)
code        DIGIT ...  0 padding, 1 .. 10 the digits 0 .. 9, 11 .. 14 [MIN [MAX [MED [SM, 15 ]

Nodes of a generation stand in the order of their trees and, within one, from left to right, so the arguments of a
generation's operators are the next generation in order.
"""

from typing import NamedTuple

import numpy as np

DIGIT, OPEN, CLOSE = 1, 11, 15  # codes of the digit 0, of [MIN, of ]
MOST = 20_000  # trees tried at once
STALL = 200  # batches in a row without a new expression before the range of lengths is called too narrow


class Grammar(NamedTuple):
    """The numbers of the generator; see ``listops``."""

    max_depth: int
    max_args: int
    branch: float
    min_length: int
    max_length: int


def sample_forest(
    grammar: Grammar, num: int, distinct: bool, draws: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes (num, max_length - 1), lengths and values (num,) of accepted trees in the order of drawing."""
    parts, seen, kept, stalled, rate = [], set(), 0, 0, 0.05
    while kept < num:
        tried = int(min(max(1.2 * (num - kept) / rate, 256), MOST))
        codes, lengths, values = draw_batch(grammar, tried, draws)
        rate = max(len(lengths) / tried, rate / 2)  # the accepted share, as far as it is known
        if distinct:
            fresh = [i for i, row in enumerate(codes) if (key := row.tobytes()) not in seen and not seen.add(key)]
            codes, lengths, values = codes[fresh], lengths[fresh], values[fresh]
        stalled = 0 if len(lengths) else stalled + 1
        if stalled == STALL:
            raise ValueError(f"only {kept} of {num} expressions found under {grammar}; widen the range of lengths")
        parts.append((codes, lengths, values))
        kept += len(lengths)
    return tuple(np.concatenate(each)[:num] for each in zip(*parts, strict=True))


def draw_batch(grammar: Grammar, tried: int, draws: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes, lengths and values of the accepted ones of ``tried`` trees."""
    arities, trees, lengths = draw_shapes(grammar, tried, draws)
    operators = [draws.integers(0, 4, len(arity), dtype=np.int8) for arity in arities]
    values = [draws.integers(0, 10, len(arity), dtype=np.int8) for arity in arities]
    evaluate_forest(arities, operators, values, grammar.max_args)
    codes = write_symbols(arities, trees, operators, values, (len(lengths), grammar.max_length - 1))
    return codes, lengths, values[0]


def draw_shapes(
    grammar: Grammar, tried: int, draws: np.random.Generator
) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
    """Arities and trees of each generation, and lengths, of the accepted trees, numbered 0, 1, ... in order.

    An operator with n arguments turns one symbol into n + 2, so the length so far only grows: a tree that reaches
    max_length is given up at once, which does not change the distribution.
    """
    tree, alive, lengths = np.arange(tried), np.ones(tried, dtype=bool), np.ones(tried, dtype=np.int64)
    arities, trees = [], []
    for depth in range(1, grammar.max_depth + 1):
        arity = np.zeros(len(tree), dtype=np.int64)
        if depth < grammar.max_depth:
            operator = np.flatnonzero(draws.random(len(tree)) < grammar.branch)
            arity[operator] = draws.integers(2, grammar.max_args + 1, len(operator))
            lengths += np.bincount(tree[operator], weights=arity[operator] + 1, minlength=tried).astype(np.int64)
            alive = lengths < grammar.max_length
            arity[~alive[tree]] = 0
        arities.append(arity)
        trees.append(tree)
        tree = np.repeat(tree, arity)
    accepted = alive & (lengths > grammar.min_length)
    number, masks = np.cumsum(accepted) - 1, [accepted[tree] for tree in trees]
    trees = [number[tree[mask]] for tree, mask in zip(trees, masks, strict=True)]
    return [arity[mask] for arity, mask in zip(arities, masks, strict=True)], trees, lengths[accepted]


def evaluate_forest(
    arities: list[np.ndarray], operators: list[np.ndarray], values: list[np.ndarray], max_args: int
) -> None:
    """Overwrite ``values`` at the operators, from the deepest generation up."""
    for depth in range(len(arities) - 2, -1, -1):
        nodes = np.flatnonzero(arities[depth])
        if not len(nodes):
            continue
        num = arities[depth][nodes]
        table = np.full((len(nodes), max_args), 10, dtype=np.int8)  # 10 sorts after every digit
        slot = np.arange(len(values[depth + 1])) - np.repeat(np.cumsum(num) - num, num)
        table[np.repeat(np.arange(len(nodes)), num), slot] = values[depth + 1]
        ordered, row = np.sort(table, axis=1), np.arange(len(nodes))
        middle = (ordered[row, (num - 1) // 2] + ordered[row, num // 2]) // 2
        total = np.add.reduceat(values[depth + 1], np.cumsum(num) - num) % 10
        choices = [ordered[:, 0], ordered[row, num - 1], middle, total]
        values[depth][nodes] = np.choose(operators[depth][nodes], choices)


def write_symbols(
    arities: list[np.ndarray],
    trees: list[np.ndarray],
    operators: list[np.ndarray],
    values: list[np.ndarray],
    shape: tuple[int, int],
) -> np.ndarray:
    """Codes (trees, symbols): a node comes after its parent's opener and its elder siblings' subtrees."""
    sizes = subtree_sizes(arities)
    codes = np.zeros(shape, dtype=np.int8)
    place = np.zeros(len(arities[0]), dtype=np.int64)
    for depth, arity in enumerate(arities):
        lists = arity > 0
        codes[trees[depth], place] = np.where(lists, OPEN + operators[depth], DIGIT + values[depth])
        codes[trees[depth][lists], (place + sizes[depth] - 1)[lists]] = CLOSE
        if not lists.any():
            break
        num, below = arity[lists], sizes[depth + 1]
        before = np.cumsum(below) - below  # symbols of all earlier nodes of the generation
        first = np.cumsum(num) - num  # each list's first argument
        place = before + np.repeat(place[lists] + 1 - before[first], num)
    return codes


def subtree_sizes(arities: list[np.ndarray]) -> list[np.ndarray]:
    """Symbols of the subtree of each node: 1 for a digit, 2 more than its arguments' for an operator."""
    sizes = [np.ones(len(arity), dtype=np.int64) for arity in arities]
    for depth in range(len(arities) - 2, -1, -1):
        nodes = np.flatnonzero(arities[depth])
        if len(nodes):
            num = arities[depth][nodes]
            sizes[depth][nodes] = 2 + np.add.reduceat(sizes[depth + 1], np.cumsum(num) - num)
    return sizes
