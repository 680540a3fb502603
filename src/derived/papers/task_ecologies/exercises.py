"""The exercises of the chapter: what is right, where it is tried, and what often goes wrong.

symbol   name       meaning                                                    axes
pi       prior      weight of each world                                       (n,)
D        contexts   distribution of the context                                (C,)
P_w(c)   laws       distribution of the next token in world w after context c  (n, C, V)
A, B     A, B       disjoint sets of worlds                                    tuples of numbers
R        R          letters of a text                                          number
"""

import math

import numpy as np
import torch
from scipy.special import entr, rel_entr

from derived.lab.exercises import ask, checker, close, holds, ranges

from .data.ecologies import random_ecology, simplex
from .model import codes, selection
from .model.ecology import FiniteEcology, letter, repeated

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
            "that is the lower bound, what both kinds of reader pay": _entropy,
            "nats are asked for, not bits": lambda x: 1 - _entropy(x) / math.log(2),
        },
    ),
    close(
        lambda x: codes.local_threshold(_coins(x)),
        ranges(x=(0.02, 0.4)),
        digits=3,
        mistakes={
            "a price is per nat of the code's entropy": lambda x: math.log(2) - _entropy(x),
            "below that price it is not yet worth it": lambda x: _entropy(x) / math.log(2),
        },
    ),
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


def _averaged_first(prior, contexts, laws, A, B):
    mean = np.einsum("c,wcv->wv", contexts, laws)[:, None]
    ecology = FiniteEcology(prior, [1.0], mean)
    return codes.split_gain(ecology, A, B) / codes.split_cost(ecology, A, B)


def _one_cell_more(prior, contexts, laws, A, B):
    return codes.split_gain(FiniteEcology(prior, contexts, laws), A, B) / math.log(2)


worth = holds(
    (_balanced,),
    _split,
    mistakes={"contexts averaged first": _averaged_first, "one cell more costs ln 2": _one_cell_more},
)

# What a text has spent ------------------------------------------------------------------------------------------------


def _coins_tossed(generator: torch.Generator) -> dict:
    R = 2 + int(torch.randint(5, (), generator=generator))
    return {"prior": simplex((3,), generator), "laws": simplex((3, 2), generator), "R": R}


def _information(prior: np.ndarray, laws: np.ndarray, R: int) -> float:
    """I(Y_1:R; W), by the distributions of whole texts."""
    texts = repeated(laws, R).reshape(len(prior), -1)
    return float(prior @ rel_entr(texts, prior @ texts).sum(axis=1))


def _sums_to_the_information(spent, prior, laws, R):
    """`te-text`: over a text the constant code loses I(Y_1:R; W)."""
    found, whole = ask(spent, (R,), prior=prior, laws=laws, R=R).sum(), _information(prior, laws, R)
    return f"over {R} tosses yours sums to {found:.4g}, not {whole:.4g}" if abs(found - whole) > SAME else None


def _begins_like_shorter_texts(spent, prior, laws, R):
    """`te-text`: the first letters of a text are a text."""
    found, short = (ask(spent, (k,), prior=prior, laws=laws, R=k) for k in (R, R - 1))
    off = np.abs(found[:-1] - short).max()
    return f"an early toss differs by {off:.2g} between {R - 1} and {R} tosses" if off > SAME else None


def _right(prior, laws, R):
    texts = repeated(laws, R)
    return np.array([letter(prior, texts, r).js_excess([0] * len(prior)) for r in range(R)])


spent = holds(
    (_sums_to_the_information, _begins_like_shorter_texts),
    _coins_tossed,
    mistakes={
        "a reader who forgets": lambda prior, laws, R: np.full(R, _right(prior, laws, 1)[0]),
        "an even share for each toss": lambda prior, laws, R: np.full(R, _information(prior, laws, R) / R),
    },
)

# Simpson among recipes ------------------------------------------------------------------------------------------------


def _allowed(recipes, drop):
    """`te-recipe`: four recipes of a population, with excesses that there can be."""
    alpha, share, excess = ask(recipes, (4, 3), drop=drop).T
    if not abs(share.sum() - 1) < SAME or share.min() <= 0:
        return f"the shares sum to {share.sum():.4g} and the least is {share.min():.2g}; all four must be present"
    if alpha.min() < 0 or alpha.max() > 1:
        return f"alpha runs from {alpha.min():.2g} to {alpha.max():.2g}, beyond [0, 1]"
    return f"the least excess is {excess.min():.2g}, below 0" if excess.min() < 0 else None


def _helps_in_each(recipes, drop):
    """`te-recipe`: in each background the excess falls as alpha grows."""
    alpha, _, excess = ask(recipes, (4, 3), drop=drop).T
    for name, (low, high) in {"first": (0, 1), "second": (2, 3)}.items():
        if not alpha[low] < alpha[high]:
            return f"in the {name} background alpha does not grow from one row to the next"
        if not excess[high] < excess[low]:
            return f"in the {name} background the excess goes from {excess[low]:.3g} to {excess[high]:.3g}"
    return None


def _spreads_less(recipes, drop):
    """`te-recipe`: and yet the mean of alpha falls by more than was asked."""
    alpha, share, excess = ask(recipes, (4, 3), drop=drop).T
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

EXERCISES = {"te-ex-hand": by_hand, "te-ex-worth": worth, "te-ex-text": spent, "te-ex-simpson": simpson}
check = checker(EXERCISES)
