"""The excess, the optimum and the generation with one line changed: each still returns numbers, and loses a property.

name                      change                                            what is lost
equal weights in a cell   the decoder is the plain mean of a cell's laws    the loss is not the least one
contexts averaged first   divergences of the laws averaged over contexts    told-apart worlds count as one
cells not weighed         a plain sum over cells                            loss = floor + excess
no prior in the entropy   the price is beta ln k, k the number of cells     J_beta is not minimised
one step at a time        merge the best pair while that pays               stuck where the quotient is metastable
kernel transposed         Q in place of Q^T                                 shares do not sum to one
mutation first            f (Q^T x) in place of Q^T (f x)                   another limit than the quasispecies
no mean fitness           Q^T (f x), not divided                            shares do not sum to one
"""

from collections.abc import Callable
from types import MappingProxyType

import numpy as np
from scipy.special import rel_entr

from .codes import optimal_partition
from .ecology import FiniteEcology
from .partitions import Labels, cells, normal_form, set_partitions
from .selection import replicator_mutator


def equal_weights(ecology: FiniteEcology, labels: Labels) -> float:
    """The loss with the plain mean of a cell's laws as its decoder, less the floor."""
    decoder = np.stack([ecology.laws[cell].mean(axis=0) for cell in cells(labels)])
    return ecology.loss(labels, decoder) - ecology.entropy_floor()


def averaged_first(ecology: FiniteEcology, labels: Labels) -> float:
    """The excess of an ecology with one context, in which each world has its mean law."""
    laws = np.einsum("c,wcv->wv", ecology.contexts, ecology.laws)
    return FiniteEcology(ecology.prior, [1.0], laws[:, None]).js_excess(labels)


def not_weighed(ecology: FiniteEcology, labels: Labels) -> float:
    """The divergences of the cells, summed without the weights of the cells."""
    mixture, found = ecology.decoder(labels), 0.0
    for place, cell in enumerate(cells(labels)):
        inside = ecology.prior[cell] / ecology.prior[cell].sum()
        kl = rel_entr(ecology.laws[cell], mixture[place]).sum(axis=-1)
        found += float(inside @ kl @ ecology.contexts)
    return found


def cells_counted(ecology: FiniteEcology, beta: float) -> np.ndarray:
    """The partition of least L* + beta ln k."""
    found = set_partitions(ecology.num_worlds)
    return min(found, key=lambda labels: ecology.bayes_loss(labels) + beta * np.log(labels.max() + 1))


def one_step_at_a_time(ecology: FiniteEcology, beta: float) -> np.ndarray:
    """From the quotient, merge the pair of cells that lowers J_beta most, as long as one does.

    >>> trio = FiniteEcology([1 / 3] * 3, [1.0], [[[0.4, 0.3, 0.3]], [[0.3, 0.4, 0.3]], [[0.3, 0.3, 0.4]]])
    >>> one_step_at_a_time(trio, 0.01), optimal_partition(trio, 0.01).labels
    (array([0, 1, 2]), array([0, 0, 0]))
    """
    labels = ecology.quotient()
    while labels.max() > 0:
        pairs = [(i, j) for j in range(labels.max() + 1) for i in range(j)]
        merged = [normal_form(np.where(labels == j, i, labels)) for i, j in pairs]
        best = min(merged, key=lambda each: ecology.objective(each, beta))
        if ecology.objective(best, beta) >= ecology.objective(labels, beta):
            break
        labels = best
    return labels


def _optimum(ecology: FiniteEcology, beta: float) -> np.ndarray:
    return optimal_partition(ecology, beta).labels


def _normalised(shares: np.ndarray) -> np.ndarray:
    return shares / shares.sum()


# name -> what is said to be the excess of a code
EXCESSES: MappingProxyType[str, Callable[[FiniteEcology, Labels], float]] = MappingProxyType(
    {
        "none": FiniteEcology.js_excess,
        "equal weights in a cell": equal_weights,
        "contexts averaged first": averaged_first,
        "cells not weighed": not_weighed,
    }
)
# name -> the partition that is said to be best at a price
OPTIMA: MappingProxyType[str, Callable[[FiniteEcology, float], np.ndarray]] = MappingProxyType(
    {"none": _optimum, "no prior in the entropy": cells_counted, "one step at a time": one_step_at_a_time}
)
# name -> the next shares, from shares x, fitness f and kernel Q
GENERATIONS: MappingProxyType[str, Callable[..., np.ndarray]] = MappingProxyType(
    {
        "none": replicator_mutator,
        "kernel transposed": lambda x, f, Q: Q @ (f * x) / (f * x).sum(),
        "mutation first": lambda x, f, Q: _normalised(f * (Q.T @ x)),
        "no mean fitness": lambda x, f, Q: Q.T @ (f * x),
    }
)
