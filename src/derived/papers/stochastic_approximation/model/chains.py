"""Finite Markov chains, the mirror image of the past chain: closed classes, absorption, what cannot move.

symbol   name      meaning                                                                  axes
P        P         transition matrix, rows sum to one                                       (S, S)
C_k      classes   closed classes: sets that the chain cannot leave, each irreducible       tuples of states
f        f         harmonic: P f = f                                                        (S,)
q_k      absorb    probability of ending in class k, by starting state                      (S, classes)
pi_k     laws      invariant law of class k                                                 (classes, S)
"""

import numpy as np
from jaxtyping import Float
from scipy.sparse.csgraph import connected_components

from derived.lab.checks import check_within

ROUNDING = 1e-12  # how far a row may sum from one: rows of some hundred rounded numbers


def check_chain(name: str, P: np.ndarray) -> None:
    """ValueError unless P is a square matrix of probabilities whose rows sum to one."""
    if P.ndim != 2 or P.shape[0] != P.shape[1] or not P.size:
        raise ValueError(f"{name} has shape {P.shape}; give a square matrix of transition probabilities")
    check_within(name, P, 0.0, 1.0)
    sums = P.sum(axis=1)
    worst = int(np.argmax(np.abs(sums - 1)))
    if abs(sums[worst] - 1) > ROUNDING * len(P):
        raise ValueError(
            f"row {worst} of {name} sums to {sums[worst]:.15g}: mass is lost, and such a chain has no class that it "
            "cannot leave; give rows that sum to one"
        )


def closed_classes(P: Float[np.ndarray, "S S"]) -> list[tuple[int, ...]]:
    """The closed communicating classes, by their least state: strong components that no arrow leaves.

    Every finite chain has one at least. ValueError for a matrix whose rows do not sum to one.

    >>> closed_classes(np.array([[0.5, 0.25, 0.25], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    [(1,), (2,)]
    """
    check_chain("P", P)
    count, label = connected_components(P > 0, directed=True, connection="strong")
    classes = [np.flatnonzero(label == k) for k in range(count)]
    closed = [one for one in classes if not P[np.ix_(one, np.setdiff1d(np.arange(len(P)), one))].any()]
    return sorted(tuple(one.tolist()) for one in closed)


def absorption_probabilities(P: Float[np.ndarray, "S S"]) -> Float[np.ndarray, "S classes"]:
    """q_k(i): the probability that the chain from i ends in closed class k; a basis of the harmonic functions.

    On transient states q = (I - Q)^{-1} R, Q the block among them and R the mass that enters each class. ValueError for
    an irreducible chain: its one class is everything, and nothing is absorbed. [prior: Kemeny and Snell]

    >>> absorption_probabilities(np.array([[0.5, 0.125, 0.375], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))[0]
    array([0.25, 0.75])
    """
    classes = closed_classes(P)
    if len(classes[0]) == len(P):
        raise ValueError(
            "P is irreducible: its only closed class is the whole space, and nothing is absorbed; give a chain with "
            "a closed class smaller than the space"
        )
    q = np.zeros((len(P), len(classes)))
    for k, states in enumerate(classes):
        q[list(states), k] = 1.0
    transient = np.flatnonzero(q.sum(axis=1) == 0)
    if len(transient):
        inner = np.eye(len(transient)) - P[np.ix_(transient, transient)]
        q[transient] = np.linalg.solve(inner, P[transient] @ q)  # q is still zero on the transient states
    return q


def invariant_laws(P: Float[np.ndarray, "S S"]) -> Float[np.ndarray, "classes S"]:
    """The invariant law of each closed class, zero elsewhere; their mixtures are all invariant laws.

    >>> invariant_laws(np.array([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0], [0.5, 0.0, 0.5]]))
    array([[0.33333333, 0.66666667, 0.        ]])
    """
    classes = closed_classes(P)
    laws = np.zeros((len(classes), len(P)))
    for k, states in enumerate(map(list, classes)):
        block = P[np.ix_(states, states)]
        equations = np.vstack([block.T - np.eye(len(states)), np.ones(len(states))])
        laws[k, states] = np.linalg.lstsq(equations, np.append(np.zeros(len(states)), 1.0), rcond=None)[0]
    return laws


def harmonic_dimension(P: Float[np.ndarray, "S S"]) -> int:
    """dim ker(I - P), the rank by singular values at torch's and numpy's usual cut.

    >>> harmonic_dimension(np.eye(3))
    3
    """
    check_chain("P", P)
    return len(P) - int(np.linalg.matrix_rank(np.eye(len(P)) - P))


def kl_rate(A: Float[np.ndarray, "S S"], B: Float[np.ndarray, "S S"]) -> float:
    """sum_i pi_i sum_j A_ij ln(A_ij / B_ij), pi invariant for A: nats a step by which A's data speak against B.

    ValueError for chains of different size, or where A is not irreducible. inf where A makes a step that B cannot.

    >>> round(kl_rate(np.array([[0.9, 0.1], [0.1, 0.9]]), np.full((2, 2), 0.5)), 6)
    0.368064
    """
    if A.shape != B.shape:
        raise ValueError(f"A {A.shape} and B {B.shape}; give chains on the same states")
    check_chain("B", B)
    laws = invariant_laws(A)
    if len(laws) > 1 or not laws[0].all():
        raise ValueError(f"A has {len(laws)} closed classes and is not irreducible; give a chain on one of them")
    with np.errstate(divide="ignore"):
        ratio = np.log(np.where(A > 0, A, 1.0)) - np.log(np.where(A > 0, B, 1.0))
    return float(laws[0] @ np.where(A > 0, A * ratio, 0.0).sum(axis=1))
