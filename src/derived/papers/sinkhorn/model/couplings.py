"""Couplings whose answer is known, and distances between couplings.

symbol   name   meaning                                                              axes
x, y     x, y   positions of the tokens of two texts                                 (..., n[, d]), (..., m[, d])
a, b     a, b   their weights                                                        (..., n), (..., m)
P, Q     P, Q   couplings, or any two distributions on pairs (i, j)                  (..., n, m)
W_1      -      least mean Euclidean distance in (x, y) at which mass must move      scalar
"""

import numpy as np
import torch
from jaxtyping import Float
from scipy import optimize, sparse
from torch import Tensor


def comonotone(
    x: Float[Tensor, "*batch n"],
    y: Float[Tensor, "*batch m"],
    a: Float[Tensor, "*batch n"],
    b: Float[Tensor, "*batch m"],
) -> Float[Tensor, "*batch n m"]:
    """The coupling on the line that keeps the order: quantile to quantile, the optimal plan of every convex cost.

    Tokens i and j share the overlap of their intervals [A_i - a_i, A_i] and [B_j - b_j, B_j] of cumulative weight.
    Equal positions keep the order in which they stand.

    >>> x, y, half = torch.tensor([0.9, 0.1]), torch.tensor([0.2, 0.3]), torch.tensor([0.5, 0.5])
    >>> comonotone(x, y, half, torch.tensor([0.25, 0.75]))
    tensor([[0.0000, 0.5000],
            [0.2500, 0.2500]])
    """
    above, over = _cumulated(x, a).unsqueeze(-1), _cumulated(y, b).unsqueeze(-2)
    below, under = above - a.unsqueeze(-1), over - b.unsqueeze(-2)
    return (torch.minimum(above, over) - torch.maximum(below, under)).clamp(min=0.0)


def _cumulated(x: Tensor, weights: Tensor) -> Tensor:
    """The weight of all positions up to and including one's own, (..., n)."""
    order = x.argsort(dim=-1, stable=True)
    return torch.zeros_like(weights).scatter(-1, order, weights.gather(-1, order).cumsum(dim=-1))


def antimonotone(x: Tensor, y: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """The coupling on the line that reverses the order; arguments as of ``comonotone``.

    >>> half = torch.tensor([0.5, 0.5])
    >>> antimonotone(torch.tensor([0.0, 1.0]), torch.tensor([0.0, 1.0]), half, half)
    tensor([[0.0000, 0.5000],
            [0.5000, 0.0000]])
    """
    return comonotone(x, -y, a, b)


def crossed(x: Tensor, y: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """The half-way mixture of ``comonotone`` and ``antimonotone``: an X, which is no optimal plan of any one cost.

    >>> half = torch.tensor([0.5, 0.5])
    >>> crossed(torch.tensor([0.0, 1.0]), torch.tensor([0.0, 1.0]), half, half)
    tensor([[0.2500, 0.2500],
            [0.2500, 0.2500]])
    """
    return (comonotone(x, y, a, b) + antimonotone(x, y, a, b)) / 2


def total_variation(P: Float[Tensor, "*batch n m"], Q: Float[Tensor, "*batch n m"]) -> Float[Tensor, "*batch"]:
    """TV(P, Q) = 1/2 sum |P - Q|.

    >>> total_variation(torch.eye(2) / 2, torch.full((2, 2), 0.25))
    tensor(0.5000)
    """
    return (P - Q).abs().sum(dim=(-2, -1)) / 2


def rows_w1(
    P: Float[Tensor, "*batch n m"], Q: Float[Tensor, "*batch n m"], y: Float[Tensor, "*batch m"]
) -> Float[Tensor, "*batch"]:
    """sum_i W_1(row i of P, row i of Q) on the line: how far mass must move if each token keeps its own.

    Rows of equal sums a_i; each term is the integral of |F_i - G_i|. It is at least the W_1 between P and Q, which may
    also move along x.

    >>> rows_w1(torch.eye(2) / 2, torch.full((2, 2), 0.25), torch.tensor([0.0, 1.0]))
    tensor(0.5000)
    """
    order = y.argsort(dim=-1)
    step = y.gather(-1, order).diff(dim=-1)
    gap = (P - Q).gather(-1, order.unsqueeze(-2).expand(P.shape)).cumsum(dim=-1)[..., :-1]
    return (gap.abs() * step.unsqueeze(-2)).sum(dim=(-2, -1))


def coupling_w1(P: Float[Tensor, "n m"], Q: Float[Tensor, "n m"], x: Tensor, y: Tensor) -> float:
    """W_1 between two couplings of the same texts, by a linear program; for up to about 10^5 pairs of atoms.

    ``x`` (n,) or (n, d), ``y`` (m,) or (m, e). ValueError where the two do not have the same mass.

    >>> half = torch.eye(2, dtype=torch.float64) / 2
    >>> round(coupling_w1(half, half.flip(0), torch.tensor([0.0, 1.0]), torch.tensor([0.0, 1.0])), 12)
    1.0
    """
    x, y = (each.double().reshape(len(each), -1) for each in (x, y))
    places = torch.cat([x.unsqueeze(1).expand(-1, len(y), -1), y.unsqueeze(0).expand(len(x), -1, -1)], dim=-1)
    masses, points = [], []
    for plan in (P.double(), Q.double()):
        there = plan > 1e-12 * plan.sum()  # what this drops can move W_1 by 1e-12 times the number of pairs
        masses.append(plan[there].numpy())
        points.append(places[there])
    source, target = masses
    if abs(source.sum() - target.sum()) > 1e-6:
        raise ValueError(f"masses {source.sum():.6g} and {target.sum():.6g}; give two tables of the same mass")
    target = target * (source.sum() / target.sum())
    cost = torch.cdist(*points, compute_mode="donot_use_mm_for_euclid_dist").numpy()
    return _least(cost.ravel(), A_eq=_marginals(*cost.shape), b_eq=np.r_[source, target[:-1]], bounds=(0, None))


def distance_to_couplings(A: Float[Tensor, "n m"], a: Float[Tensor, "n"], b: Float[Tensor, "m"]) -> float:
    """min over couplings P of a and b of TV(A, P), by a linear program: P <= A + excess, TV the sum of the excess.

    >>> sink = torch.tensor([[0.5, 0.0], [0.5, 0.0]], dtype=torch.float64)
    >>> half = torch.tensor([0.5, 0.5], dtype=torch.float64)
    >>> round(distance_to_couplings(sink, half, half), 12)
    0.5
    """
    n, m = A.shape
    eye = sparse.eye_array(n * m)
    return _least(
        np.r_[np.zeros(n * m), np.ones(n * m)],
        A_ub=sparse.hstack([eye, -eye]),
        b_ub=A.double().numpy().ravel(),
        A_eq=sparse.hstack([_marginals(n, m), sparse.csr_array((n + m - 1, n * m))]),
        b_eq=np.r_[a.double().numpy(), b[:-1].double().numpy()],
        bounds=(0, None),
    )


def largest_mass(allowed: Float[Tensor, "n m"], weight: Float[Tensor, "n m"], a: Tensor, b: Tensor) -> float:
    """The largest sum of weight * P over couplings P of a and b that live where ``allowed`` is not 0.

    >>> causal, half = torch.ones(2, 2).tril(), torch.tensor([0.5, 0.5], dtype=torch.float64)
    >>> largest_mass(causal, 1 - torch.eye(2), half, half)  # off the diagonal: none
    0.0
    """
    upper = np.where(allowed.numpy().ravel() != 0, np.inf, 0.0)
    least = _least(
        -weight.double().numpy().ravel(),
        A_eq=_marginals(*allowed.shape),
        b_eq=np.r_[a.double().numpy(), b[:-1].double().numpy()],
        bounds=np.c_[np.zeros_like(upper), upper],
    )
    return abs(least)


def _least(cost: np.ndarray, **constraints) -> float:
    """The least value of a linear program; ValueError where nothing fulfils the constraints."""
    found = optimize.linprog(cost, **constraints)
    if found.status:
        raise ValueError(f"no coupling lives there: {found.message}")
    return float(found.fun)


def _marginals(n: int, m: int) -> sparse.csr_array:
    """The map from a plan, row by row, to its row sums and all column sums but the last, (n + m - 1, n m).

    The last one follows; with it, rounding alone could make a program infeasible.
    """
    rows = sparse.kron(sparse.eye_array(n), np.ones((1, m)))
    columns = sparse.kron(np.ones((1, n)), sparse.eye_array(m))
    return sparse.csr_array(sparse.vstack([rows, columns]))[:-1]
