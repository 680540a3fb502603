"""Set partitions as label vectors, and sets of worlds as bit masks.

symbol      name     meaning                                                                     axes
p           labels   cell of each world, numbered in the order of their first member             (n,)
B(n)        -        Bell number, how many partitions n worlds have: 1, 1, 2, 5, 15, 52, ...
S           mask     a set of worlds as the sum of 2^w over its members
"""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from derived.lab.checks import check_count

Labels = Sequence[int] | np.ndarray
MOST_LISTED = 12  # B(12) is 4.2 million partitions


def normal_form(labels: Labels) -> np.ndarray:
    """The same partition with cells numbered from 0 in the order of their first member: a restricted growth string.

    >>> normal_form([7, 7, 1, 7])
    array([0, 0, 1, 0])
    """
    labels = np.asarray(labels)
    if labels.ndim != 1 or not labels.size or not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(f"labels {labels!r}; give one whole number for each world")
    cells: dict[int, int] = {}
    return np.array([cells.setdefault(each, len(cells)) for each in labels.tolist()])


def bell_number(n: int) -> int:
    """B(n), the number of partitions of n worlds, by Bell's triangle.

    >>> [bell_number(n) for n in range(11)]
    [1, 1, 2, 5, 15, 52, 203, 877, 4140, 21147, 115975]
    """
    check_count("n", n, 0)
    row = [1]
    for _ in range(n):
        following = [row[-1]]
        for each in row:
            following.append(following[-1] + each)
        row = following
    return row[0]


def set_partitions(n: int) -> np.ndarray:
    """All partitions of n worlds as restricted growth strings, (B(n), n), in lexicographic order.

    A string has a_0 = 0 and a_i <= 1 + max(a_0, ..., a_(i-1)); n is at most 12. [prior: Hutchinson 1963]

    >>> set_partitions(3).tolist()
    [[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1], [0, 1, 2]]
    """
    check_count("n", n)
    if n > MOST_LISTED:
        raise ValueError(f"n = {n}: {bell_number(n):,} partitions are too many to list; give n <= {MOST_LISTED}")
    strings = np.zeros((1, 1), dtype=np.int64)
    for _ in range(n - 1):
        choices = strings.max(axis=1) + 2  # the cells there are, and one more
        start = np.repeat(choices.cumsum() - choices, choices)
        added = np.arange(choices.sum()) - start
        strings = np.column_stack([np.repeat(strings, choices, axis=0), added])
    return strings


def is_refinement(fine: Labels, coarse: Labels) -> bool:
    """Whether every cell of ``fine`` lies inside one cell of ``coarse``; ValueError for partitions of different sets.

    >>> is_refinement([0, 1, 2, 2], [0, 0, 1, 1]), is_refinement([0, 0, 1, 1], [0, 1, 2, 2])
    (True, False)
    """
    fine, coarse = normal_form(fine), normal_form(coarse)
    if fine.size != coarse.size:
        raise ValueError(f"partitions of {fine.size} and of {coarse.size} worlds; give two of the same set")
    return bool(len({*zip(fine.tolist(), coarse.tolist(), strict=True)}) == fine.max() + 1)


def cells(labels: Labels) -> list[np.ndarray]:
    """The members of each cell.

    >>> [cell.tolist() for cell in cells([0, 1, 0])]
    [[0, 2], [1]]
    """
    labels = normal_form(labels)
    return [np.flatnonzero(labels == cell) for cell in range(labels.max() + 1)]


def from_masks(sets: Sequence[int], n: int) -> np.ndarray:
    """The labels of the partition of n worlds into these disjoint sets.

    >>> from_masks([2, 5], 3)
    array([0, 1, 0])
    """
    return normal_form(np.array([next(cell for cell, mask in enumerate(sets) if mask >> w & 1) for w in range(n)]))


def merges(labels: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """All pairs of cells."""
    return combinations(cells(labels), 2)


def splits(labels: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """All ways to cut one cell in two."""
    for cell in cells(labels):
        for cut in range(1, 2 ** (cell.size - 1)):
            inside = (cut >> np.arange(cell.size) & 1).astype(bool)
            yield cell[~inside], cell[inside]


def separated(labels: np.ndarray, B: np.ndarray) -> np.ndarray:
    """The partition with the worlds B in a separate cell."""
    labels = labels.copy()
    labels[B] = labels.max() + 1
    return normal_form(labels)
