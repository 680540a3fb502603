"""The exercises of the chapter: what is right, where it is tried, and what often goes wrong.

symbol   name       meaning                                                    axes
pi       pi, prior  weight of each world                                       (n,)
b        b          weights that a reader believes in                          (n,)
P        P          next-token laws in the one context                         (n, V)
D        contexts   law of the context                                         (C,)
P_w(c)   laws       next-token law of world w after context c                  (n, C, V)
A, B     A, B       disjoint sets of worlds                                    tuples of numbers
Phi      costs      what each set of worlds adds as a cell, by bit mask        (2^n,)
f, M     fitness, kernel   of the types, and the law of a type's copies        (m,), (m, m)
"""

import math

import numpy as np
import torch
from scipy.special import entr, rel_entr

from derived.lab.exercises import Wrong, ask, checker, close, holds, ranges

from .data.ecologies import equidistant, random_ecology, simplex
from .model import codes, mutations, selection
from .model.ecology import FiniteEcology
from .model.partitions import incidence, set_partitions

SAME = 1e-6  # what float32 may lose of numbers of size one

# By hand --------------------------------------------------------------------------------------------------------------


def _coins(x: float) -> FiniteEcology:
    return FiniteEcology([0.5, 0.5], [1.0], [[[x, 1 - x]], [[1 - x, x]]])


def _entropy(x: float) -> float:
    return float(entr(x) + entr(1 - x))


by_hand = (
    close(
        lambda x: _coins(x).js_excess([0, 0]),
        ranges(x=(0.02, 0.4)),
        digits=3,
        mistakes={
            "that is the floor, what both kinds of reader pay": _entropy,
            "nats are asked for, not bits": lambda x: 1 - _entropy(x) / math.log(2),
        },
    ),
    close(
        lambda x: codes.local_threshold(_coins(x)),
        ranges(x=(0.02, 0.4)),
        digits=3,
        mistakes={
            "a price is per nat of the code's entropy": lambda x: math.log(2) - _entropy(x),
            "the code has its own entropy, not that of a toss": lambda x: (math.log(2) - _entropy(x)) / _entropy(x),
        },
    ),
)

# A reader with the wrong prior ----------------------------------------------------------------------------------------


def _believed(generator: torch.Generator) -> dict:
    pi, b = simplex((2, 3), generator)
    return {"P": simplex((3, 4), generator), "pi": pi, "b": b}


def _lost(P: np.ndarray, pi: np.ndarray, b: np.ndarray) -> float:
    """By the definition of a loss, less the floor."""
    ecology = FiniteEcology(pi, [1.0], P[:, None])
    return ecology.loss([0] * len(P), (b @ P)[None, None]) - ecology.entropy_floor()


wrong_prior = close(
    _lost,
    _believed,
    mistakes={
        "the floor needs to know the world, which this reader does not": lambda P, pi, b: rel_entr(pi @ P, b @ P).sum(),
        "that is what a reader with the right prior pays": lambda P, pi, b: pi @ rel_entr(P, pi @ P).sum(axis=1),
    },
)

# The price of a merge, exactly ----------------------------------------------------------------------------------------


def _merge(generator: torch.Generator) -> dict:
    n, m, t = torch.rand(3, generator=generator, dtype=torch.float64).tolist()
    n = 3 + int(5 * n)
    return {"n": n, "m": 2 + int((n - 1) * m), "t": round(0.15 + 0.75 * t, 2)}


def _price(n: int, m: int, t: float) -> float:
    """Excess of the merged code over what it saves in entropy, of the ecology itself."""
    merged, ecology = np.maximum(np.arange(n) - m + 1, 0), equidistant(n, t)
    return ecology.js_excess(merged) / (math.log(n) - ecology.complexity(merged))


def _divergence(n: float, m: int, t: float) -> float:
    a = (1 - t) / n
    return m * entr(a + t / m) - entr(a + t) - (m - 1) * entr(a)


price_of_merge = close(
    _price,
    _merge,
    mistakes={
        "the laws need not be nearly alike": lambda n, m, t: (m - 1) * t**2 * n / (2 * m * math.log(m)),
        "the cell is a part of the code, and what it saves is a part, too": lambda n, m, t: (
            _divergence(n, m, t) / math.log(n)
        ),
    },
)

# What a distinction is worth ------------------------------------------------------------------------------------------


def _split(generator: torch.Generator) -> dict:
    ecology = random_ecology(5, 2, 3, generator)
    order = torch.randperm(5, generator=generator).tolist()
    size = 1 + int(torch.randint(2, (), generator=generator))
    ecology = {"prior": ecology.prior, "contexts": ecology.contexts, "laws": ecology.laws}
    return ecology | {"A": tuple(order[:size]), "B": tuple(order[size : size + 2])}


def _labels(A: tuple, B: tuple) -> tuple[np.ndarray, np.ndarray]:
    """The code with A and B in one cell and the code with two, all other worlds alone."""
    whole = np.arange(5) + 2
    whole[[*A, *B]] = 0
    parts = whole.copy()
    parts[[*B]] = 1
    return whole, parts


def _balanced(worth, prior, contexts, laws, A, B):
    """`te-split`: at this price both codes have the same value J, by their losses and entropies."""
    found = float(ask(worth, prior=prior, contexts=contexts, laws=laws, A=A, B=B))
    ecology = FiniteEcology(prior, contexts, laws)
    whole, parts = (ecology.objective(labels, found) for labels in _labels(A, B))
    if abs(whole - parts) > SAME:
        better = "merging" if whole < parts else "splitting"
        return f"your price is {found:.4g}, and there {better} lowers J by {abs(whole - parts):.2g}"
    return None


def _either_first(worth, prior, contexts, laws, A, B):
    """`te-split`: A from B is B from A."""
    given = {"prior": prior, "contexts": contexts, "laws": laws}
    one, other = (float(ask(worth, **given, A=first, B=second)) for first, second in ((A, B), (B, A)))
    return f"A and B give {one:.4g}, B and A give {other:.4g}" if abs(one - other) > SAME else None


def _free_of_charge(worth, prior, contexts, laws, A, B):
    """`te-quotient`: worlds of one class are worth no price."""
    same = np.repeat(laws[:1], 5, axis=0)
    found = float(ask(worth, prior=prior, contexts=contexts, laws=same, A=A, B=B))
    return f"for worlds with the same laws it is {found:.2g}" if abs(found) > SAME else None


def _by(excess, entropy=lambda ecology, whole, parts: ecology.complexity(parts) - ecology.complexity(whole)):
    """What a distinction is worth by an excess and an entropy of the two codes."""

    def worth(prior, contexts, laws, A, B):
        ecology, (whole, parts) = FiniteEcology(prior, contexts, laws), _labels(A, B)
        return (excess(ecology, whole) - excess(ecology, parts)) / entropy(ecology, whole, parts)

    return worth


worth = holds(
    (_balanced, _either_first, _free_of_charge),
    _split,
    mistakes={
        "equal weights in a cell": _by(mutations.EXCESSES["equal weights in a cell"]),
        "contexts averaged first": _by(mutations.EXCESSES["contexts averaged first"]),
    },
)

# The recursion over subsets -------------------------------------------------------------------------------------------


def _table(generator: torch.Generator) -> dict:
    """Costs of the sets of up to six worlds; they grow at a rate that is drawn, so the best has few cells or many."""
    n = 3 + int(torch.randint(4, (), generator=generator))
    sizes = np.array([S.bit_count() for S in range(2**n)])
    draws = torch.rand(2**n, generator=generator, dtype=torch.float64).numpy()
    rate = 2 * torch.rand((), generator=generator).item()
    return {"costs": np.round((sizes > 0) * (draws + rate * (sizes - 1)), 2)}


def _totals(costs: np.ndarray) -> np.ndarray:
    """The cost of every partition, by listing them."""
    return incidence(set_partitions(len(costs).bit_length() - 1)) @ costs


def _no_partition_is_cheaper(least_cost, costs):
    """`te-additive`: J* is the least value over all partitions."""
    found, least = float(ask(least_cost, costs=costs)), _totals(costs).min()
    return f"yours is {found:.4g}, and there is a cheaper partition" if found > least + SAME else None


def _reached(least_cost, costs):
    """`te-additive`: and some partition has it."""
    found, least = float(ask(least_cost, costs=costs)), _totals(costs).min()
    return f"yours is {found:.4g}, and no partition is as cheap" if found < least - SAME else None


def _one_world(least_cost, costs):
    """`te-additive`: with one world there is one partition."""
    found = float(ask(least_cost, costs=costs[:2]))
    return f"for a single world of cost {costs[1]:.4g} it is {found:.4g}" if abs(found - costs[1]) > SAME else None


def _by_single_merges(costs):
    """From all worlds alone, the merge of two cells that saves most, as long as one saves."""
    cells = [1 << w for w in range(len(costs).bit_length() - 1)]
    while len(cells) > 1:
        saved, i, j = max(
            (costs[cells[i]] + costs[cells[j]] - costs[cells[i] | cells[j]], i, j)
            for j in range(len(cells))
            for i in range(j)
        )
        if saved <= 0:
            break
        cells = [each for k, each in enumerate(cells) if k not in (i, j)] + [cells[i] | cells[j]]
    return sum(costs[cell] for cell in cells)


least_cost = holds(
    (_one_world, _no_partition_is_cheaper, _reached),
    _table,
    mistakes={
        "one step at a time": _by_single_merges,
        "three cells at most": lambda costs: min(
            _totals(costs)[set_partitions(len(costs).bit_length() - 1).max(axis=1) < 3]
        ),
    },
)

# Where selection and mutation lead ------------------------------------------------------------------------------------


def _types(generator: torch.Generator) -> dict:
    return {"fitness": np.round(0.4 + simplex((4,), generator), 2), "kernel": simplex((4, 4), generator)}


def _frequencies(settled, fitness, kernel):
    """`te-quasispecies`: the limit is a population."""
    found = ask(settled, (4,), fitness=fitness, kernel=kernel)
    if abs(found.sum() - 1) > 1e-6:
        return f"the shares sum to {found.sum():.6g}"
    return f"the least share is {found.min():.2g}" if found.min() < 0 else None


def _stays(settled, fitness, kernel):
    """`te-quasispecies`: one more generation changes nothing."""
    found = ask(settled, (4,), fitness=fitness, kernel=kernel)
    copies = np.einsum("i,i,ij->j", found, fitness, kernel)
    moved = np.abs(copies / copies.sum() - found).max()
    return f"one more generation moves a share by {moved:.2g}" if moved > 1e-6 else None


def _neutral(settled, kernel):
    """`te-quasispecies`: with equal fitness the limit is that of mutation alone."""
    found = ask(settled, (4,), fitness=np.full(4, 0.7), kernel=kernel)
    moved = np.abs(found @ kernel - found).max()
    return f"with equal fitness mutation moves a share by {moved:.2g}" if moved > 1e-6 else None


def _iterated(step, generations: int = 300):
    def settled(fitness, kernel):
        shares = np.full(len(fitness), 1 / len(fitness))
        for _ in range(generations):
            shares = step(shares, fitness, kernel)
        return shares

    return settled


settled = holds(
    (_frequencies, _stays, _neutral),
    _types,
    mistakes={
        "kernel transposed": _iterated(mutations.GENERATIONS["kernel transposed"]),
        "mutation first": _iterated(mutations.GENERATIONS["mutation first"]),
    },
)

# Simpson among recipes ------------------------------------------------------------------------------------------------


def _recipes(recipes, drop):
    alpha, share, excess = ask(recipes, (4, 3), drop=drop).T
    if not abs(share.sum() - 1) < SAME:
        raise Wrong(f"the shares sum to {share.sum():.4g}")
    return alpha, share, excess


def _allowed(recipes, drop):
    """`te-recipe`: four recipes of a population, with excesses that there can be."""
    alpha, share, excess = _recipes(recipes, drop)
    if share.min() <= 0:
        return f"the least share is {share.min():.2g}, and all four must be present"
    if alpha.min() < 0 or alpha.max() > 1:
        return f"alpha runs from {alpha.min():.2g} to {alpha.max():.2g}, beyond [0, 1]"
    return f"the least excess is {excess.min():.2g}, below 0" if excess.min() < 0 else None


def _helps_in_each(recipes, drop):
    """`te-recipe`: in each background the excess falls as alpha grows."""
    alpha, _, excess = _recipes(recipes, drop)
    for name, (low, high) in {"first": (0, 1), "second": (2, 3)}.items():
        if not alpha[low] < alpha[high]:
            return f"in the {name} background alpha does not grow from one row to the next"
        if not excess[high] < excess[low]:
            return f"in the {name} background the excess goes from {excess[low]:.3g} to {excess[high]:.3g}"
    return None


def _spreads_less(recipes, drop):
    """`te-recipe`: and yet the mean of alpha falls by more than was asked."""
    alpha, share, excess = _recipes(recipes, drop)
    copies = share * np.exp(-excess)
    fallen = share @ alpha - copies @ alpha / copies.sum()
    return f"the mean of alpha falls by {fallen:.3g}" if not fallen > drop else None


def _table_of(alpha, share, excess):
    return lambda drop: np.column_stack([alpha, share, excess])


_PRINTED = selection.recipe_counterexample()
simpson = holds(
    (_allowed, _helps_in_each, _spreads_less),
    ranges(drop=(0.2, 0.48)),
    mistakes={
        "the table of the page": _table_of(_PRINTED.alpha, _PRINTED.shares, _PRINTED.excess),
        "recipe and background independent": _table_of([0, 1, 0, 1], [0.25] * 4, [1.0, 0.9, 6.1, 6.0]),
    },
)

EXERCISES = {
    "te-ex-hand": by_hand,
    "te-ex-prior": wrong_prior,
    "te-ex-price": price_of_merge,
    "te-ex-worth": worth,
    "te-ex-recursion": least_cost,
    "te-ex-settled": settled,
    "te-ex-simpson": simpson,
}
check = checker(EXERCISES)
