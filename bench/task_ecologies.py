"""Race of task ecologies: ``python bench/task_ecologies.py [--quick] [--keep]``.

The partition of least J_beta of 16 worlds, the costs of all sets of worlds given: ``best_partition``, which is NumPy,
against the same recursion over subsets in a loop that numba compiles.
"""

from functools import cache

import numpy as np
from race import Race, command, require

from derived.lab.rng import stream
from derived.papers.task_ecologies.data.ecologies import simplex
from derived.papers.task_ecologies.model.codes import best_partition, cell_costs
from derived.papers.task_ecologies.model.ecology import FiniteEcology

PRICE = 0.06  # the best partition has a few cells


def build(worlds: int) -> np.ndarray:
    """The cost of every set of worlds, (2^n,): languages of four families, three contexts, 27 letters."""
    generator = stream(0, "bench families")
    families = simplex((4, 3, 27), generator)[np.arange(worlds) % 4]
    laws = 0.6 * families + 0.4 * simplex((worlds, 3, 27), generator)
    costs = cell_costs(FiniteEcology(simplex((worlds,), generator), np.full(3, 1 / 3), laws))
    return costs.losses + PRICE * costs.entropies


def ours(costs: np.ndarray) -> list[int]:
    """best_partition, minimum convolutions"""
    return best_partition(costs)


@cache
def compiled():
    """The loop over the subsets of every set of worlds, and back along the best cells."""
    from numba import njit

    @njit
    def cell_of(costs, best, union, top):
        rest, least, chosen = union ^ top, np.inf, 0
        inside = rest
        while True:
            value = costs[inside | top] + best[rest ^ inside]
            if value < least:
                least, chosen = value, inside | top
            if inside == 0:
                return least, chosen
            inside = (inside - 1) & rest

    @njit
    def recursion(costs, n):
        best, top = np.zeros(1 << (n - 1)), 1
        for union in range(1, 1 << (n - 1)):
            top = union if union == 2 * top else top
            best[union] = cell_of(costs, best, union, top)[0]
        cells, rest, top = [], (1 << n) - 1, 1 << (n - 1)
        while rest:
            while not rest & top:
                top >>= 1
            cells.append(cell_of(costs, best, rest, top)[1])
            rest ^= cells[-1]
        return cells

    return recursion


def peer(costs: np.ndarray) -> list[int]:
    """numba, a loop over submasks"""
    return compiled()(costs, costs.size.bit_length() - 1)


def check(costs: np.ndarray, mine: list[int], theirs: list[int]) -> None:
    """Both are partitions and cost the same: each sum of a few terms is exact to far below the bound."""
    for cells in (mine, theirs):
        require(sum(cells) == np.bitwise_or.reduce(cells) == costs.size - 1, f"{cells} is no partition")
    values = [float(costs[list(cells)].sum()) for cells in (mine, theirs)]
    require(abs(values[0] - values[1]) <= 1e-10, f"the partitions cost {values[0]} and {values[1]}")


NOTE = (
    "Our own recursion, compiled. To load numba alone takes longer than all calls of the chapter together, and with "
    "LLVM it would be the book's largest package after torch."
)
SIZES, TOY = {"worlds": 16}, {"worlds": 8}
RACE = Race("best partition of 16 worlds", build, ours, peer, check, SIZES, TOY, needs="numba", note=NOTE)

if __name__ == "__main__":
    command("task_ecologies", RACE)
