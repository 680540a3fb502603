"""Codes under a price: what a split gains, what it costs, and the partition that minimises L* + beta H.

symbol       name         meaning                                                               axes
G(A, B)      split_gain   E_c JS_lambda of the mixtures of A and B, in nats                     number
h(lambda)    split_cost   entropy of the split, lambda = pi(A) / pi(A u B), in nats             number
J_beta       value        L*(p) + beta H(p(W))                                                  nats
Phi_beta(S)  -            what a cell adds to J_beta: its loss + beta times its entropy         (2^n,)
beta_min     -            first price at which some merge of two cells of the quotient pays     nats per nat

J_beta is a sum over cells, so the best partition of a set of worlds is a best cell of its highest world together with
the best partition of the rest: 3^n steps in place of the B(n) partitions.
"""

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import entr, rel_entr, xlogy

from derived.lab.checks import check_at_least

from .ecology import FiniteEcology
from .partitions import Labels, cells, from_masks, merges, normal_form

MOST_WORLDS = 16  # 2^16 tables of contexts and tokens; the recursion takes 3^15 / 2 sums
BLOCK = 10  # worlds of one block of the recursion: its 3^10 sums stay in cache


def _members(ecology: FiniteEcology, worlds) -> np.ndarray:
    worlds = np.unique(worlds)
    if not worlds.size or worlds.min() < 0 or worlds.max() >= ecology.num_worlds:
        raise ValueError(f"worlds {worlds.tolist()}; give some of 0 to {ecology.num_worlds - 1}")
    return worlds


def split_gain(ecology: FiniteEcology, A: Labels, B: Labels) -> float:
    """G(A, B) = E_c JS_lambda(P_A, P_B): by how much telling A from B lowers the loss, per unit of pi(A u B); nats.

    A and B are disjoint sets of worlds. Where contexts know the world the weight lambda is that given the context.
    [paper, Theorem 55]

    >>> coins = FiniteEcology([0.5, 0.5], [1.0], [[[0.9, 0.1]], [[0.1, 0.9]]])
    >>> round(split_gain(coins, [0], [1]), 4)
    0.3681
    """
    A, B = _members(ecology, A), _members(ecology, B)
    if np.intersect1d(A, B).size:
        raise ValueError(f"worlds {A.tolist()} and {B.tolist()} overlap; give disjoint sets")
    parts = [ecology.weighted[each].sum(axis=0) for each in (A, B)]
    whole = parts[0] + parts[1]
    mass = whole.sum(axis=-1, keepdims=True)
    mixture = np.divide(whole, mass, out=np.zeros_like(whole), where=mass > 0)
    gain = sum(rel_entr(part, part.sum(axis=-1, keepdims=True) * mixture).sum() for part in parts)
    return float(gain / ecology.prior[np.union1d(A, B)].sum())


def split_cost(ecology: FiniteEcology, A: Labels, B: Labels) -> float:
    """h(lambda), lambda = pi(A) / pi(A u B): by how much telling A from B raises the code's entropy, per unit of mass.

    >>> coins = FiniteEcology([0.5, 0.5], [1.0], [[[0.9, 0.1]], [[0.1, 0.9]]])
    >>> round(split_cost(coins, [0], [1]), 4)
    0.6931
    """
    A, B = (ecology.prior[_members(ecology, each)].sum() for each in (A, B))
    return float(entr(A / (A + B)) + entr(B / (A + B)))


def local_threshold(ecology: FiniteEcology, labels: Labels | None = None) -> float:
    """min over pairs of cells of G / h: the price up to which no merge of two cells pays; infinite with one cell.

    Without ``labels`` the cells are the training-equivalence classes, and this is beta_min. [paper, Corollary 58]

    >>> coins = FiniteEcology([0.5, 0.5], [1.0], [[[0.9, 0.1]], [[0.1, 0.9]]])
    >>> round(local_threshold(coins), 4), local_threshold(coins, [0, 0])
    (0.531, inf)
    """
    labels = ecology.quotient() if labels is None else labels
    ecology.cells_of(labels)  # ValueError for a partition of another set
    return min((split_gain(ecology, A, B) / split_cost(ecology, A, B) for A, B in merges(labels)), default=math.inf)


class Costs(NamedTuple):
    """What each set of worlds adds as a cell, by bit mask: to L* and to H(p(W)); the empty set adds nothing."""

    losses: np.ndarray  # (2^n,)
    entropies: np.ndarray  # (2^n,)


def cell_costs(ecology: FiniteEcology) -> Costs:
    """The loss and the entropy of every set of worlds as a cell: a set is a smaller one and its highest world.

    Loss: sum_c [A_S(c) ln A_S(c) - sum_y T_S(c,y) ln T_S(c,y)], A_S and T_S sums over the set. ValueError for more than
    16 worlds.
    """
    n = ecology.num_worlds
    if n > MOST_WORLDS:
        raise ValueError(f"{n} worlds have {2**n:,} sets; give at most {MOST_WORLDS}")
    table, mass = np.zeros((1, *ecology.laws.shape[1:])), np.zeros(1)
    for w in range(n):
        table = np.concatenate([table, table + ecology.weighted[w]])
        mass = np.concatenate([mass, mass + ecology.prior[w]])
    whole = table.sum(axis=-1)
    return Costs(xlogy(whole, whole).sum(axis=-1) - xlogy(table, table).sum(axis=(-2, -1)), entr(mass))


@cache
def _pairs(k: int) -> tuple[np.ndarray, np.ndarray]:
    """All 3^k pairs of disjoint sets of k worlds, cell and rest; the place of a pair has one ternary digit a world, the
    lowest world's first: 0 in neither, 1 in the rest, 2 in the cell."""
    cell, rest = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    for bit in (1 << w for w in reversed(range(k))):
        cell, rest = np.concatenate([cell, cell, cell | bit]), np.concatenate([rest, rest | bit, rest])
    return cell, rest


def minimum_convolution(f: np.ndarray, g: np.ndarray) -> np.ndarray:
    """h(T) = min over B in T of f(B) + g(T - B) for all sets T of k worlds, (2^k,) each: 3^k sums.

    With or without the highest world: h has two halves, f0*g0 and min(f0*g1, f1*g0); down to blocks of 3^10 sums.

    >>> minimum_convolution(np.array([0.0, 1.0]), np.array([2.0, 5.0]))
    array([2., 3.])
    """
    k = f.size.bit_length() - 1
    if k > BLOCK:
        (f0, f1), (g0, g1) = f.reshape(2, -1), g.reshape(2, -1)
        with_highest = np.minimum(minimum_convolution(f0, g1), minimum_convolution(f1, g0))
        return np.concatenate([minimum_convolution(f0, g0), with_highest])
    cell, rest = _pairs(k)
    h = (f[cell] + g[rest]).reshape(-1, 1)
    for _ in range(k):  # the lowest world that is left: one digit fewer in the rows, one bit more in the columns
        neither, in_rest, in_cell = h.reshape(3, -1, h.shape[1])
        h = np.concatenate([neither, np.minimum(in_rest, in_cell)], axis=1)
    return h[0]


@dataclass(frozen=True, eq=False)
class Optimum:
    """A partition that minimises J_beta, with its two coordinates; ``beta`` is the least price at which it does, where
    the path was asked for."""

    labels: np.ndarray
    value: float
    loss: float
    complexity: float
    beta: float


def best_partition(costs: np.ndarray) -> list[int]:
    """The partition of n worlds into cells of least total cost, as bit masks; ``costs`` (2^n,) has one of each set.

    J(T u {k}) = min over B in T of costs(B u {k}) + J(T - B) for worlds T below k: one minimum convolution for each
    world, and for the last world one row of it. Ties go to the larger cell of the highest world.

    >>> best_partition(np.array([0.0, 1.0, 1.0, 1.5]))
    [3]
    """
    n = costs.size.bit_length() - 1
    best = np.zeros(1)  # J over the subsets of the worlds below k
    for k in range(n - 1):
        best = np.concatenate([best, minimum_convolution(costs[2**k : 2 ** (k + 1)], best)])
    chosen, rest = [], 2**n - 1
    while rest:
        top = 1 << (rest.bit_length() - 1)
        subsets = _subsets(rest ^ top)
        totals = costs[subsets | top] + best[(rest ^ top) ^ subsets]
        chosen.append(int(subsets[::-1][totals[::-1].argmin()]) | top)
        rest ^= chosen[-1]
    return chosen


def _subsets(mask: int) -> np.ndarray:
    """All subsets of a set of worlds, ascending."""
    found = np.zeros(1, dtype=np.int64)
    for bit in range(mask.bit_length()):
        if mask >> bit & 1:
            found = np.concatenate([found, found | 1 << bit])
    return found


def _optimum(ecology: FiniteEcology, costs: Costs, beta: float) -> Optimum:
    sets = best_partition(costs.losses + beta * costs.entropies)
    loss, complexity = (float(each[sets].sum()) for each in costs)
    return Optimum(from_masks(sets, ecology.num_worlds), loss + beta * complexity, loss, complexity, beta)


def optimal_partition(ecology: FiniteEcology, beta: float) -> Optimum:
    """The partition that minimises J_beta = L* + beta H over all of them, by the subset recursion. [ours]

    ValueError for beta < 0 and more than 16 worlds.

    >>> coins = FiniteEcology([0.5, 0.5], [1.0], [[[0.9, 0.1]], [[0.1, 0.9]]])
    >>> optimal_partition(coins, 0.5).labels, optimal_partition(coins, 0.6).labels
    (array([0, 1]), array([0, 0]))
    """
    check_at_least("beta", beta, 0)
    return _optimum(ecology, cell_costs(ecology), beta)


def partition_path(ecology: FiniteEcology) -> list[Optimum]:
    """The optimal partitions for all prices, from the quotient to one cell, each with the price at which it begins.

    J_beta of a partition is a line in beta, so the path is the lower convex hull of the points (H(p(W)), L*(p)): of two
    known points of it, the price that makes them equal either finds a third below their chord or shows that they are
    neighbours. At most one recursion for each point and each edge. [ours]

    >>> coins = FiniteEcology([1 / 3] * 3, [1.0], [[[0.9, 0.1]], [[0.8, 0.2]], [[0.1, 0.9]]])
    >>> [(each.labels.tolist(), round(each.beta, 3)) for each in partition_path(coins)]
    [([0, 1, 2], 0.0), ([0, 0, 1], 0.014), ([0, 0, 0], 0.444)]
    """
    costs = cell_costs(ecology)
    first = _coordinates(costs, ecology.quotient())
    last = _coordinates(costs, np.zeros(ecology.num_worlds, dtype=int))
    path = [first]
    if last.complexity < first.complexity:
        path += _between(ecology, costs, first, last)
    return path


def _coordinates(costs: Costs, labels: np.ndarray) -> Optimum:
    sets = [int((1 << cell).sum()) for cell in cells(labels)]
    loss, complexity = (float(each[sets].sum()) for each in costs)
    return Optimum(normal_form(labels), loss, loss, complexity, 0.0)


def _between(ecology: FiniteEcology, costs: Costs, fine: Optimum, coarse: Optimum) -> list[Optimum]:
    """The points of the path after ``fine``, up to ``coarse``."""
    beta = (coarse.loss - fine.loss) / (fine.complexity - coarse.complexity)
    found = _optimum(ecology, costs, beta)
    ends = fine.loss + beta * fine.complexity
    if found.value >= ends - 1e-14 * max(1.0, abs(ends)) or not coarse.complexity < found.complexity < fine.complexity:
        return [replace(coarse, beta=beta, value=ends)]
    return _between(ecology, costs, fine, found) + _between(ecology, costs, found, coarse)
