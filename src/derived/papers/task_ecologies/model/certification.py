"""How many samples certify that the empirical winner of a finite class of codes has no excess.

symbol       name       meaning                                                                    axes
p            -          codes of the class, each with the cell mixture as its decoder              (M,)
Delta(p)     excesses   their excess                                                               (M,)
rho          prior      weights of the codes, fixed before the data                                (M,)
C_tau        ceiling    log(1 / tau): no loss of one sample is larger                              number
gamma        -          least positive excess
"""

import numpy as np
from numpy.typing import ArrayLike

from derived.lab.checks import check_at_least, check_fraction, check_positive

from .ecology import FREE, FiniteEcology
from .partitions import normal_form


def sample_size(
    excesses: ArrayLike, ceiling: float, alpha: float, *, prior: ArrayLike | None = None, optimisation: float = 0.0
) -> float:
    """The number of samples from which the winner has no excess with probability 1 - alpha. [paper, Theorem 36]

    2 C^2 / (gamma - eps)^2 max{log 1/rho(p0) + log 2/alpha, max_p (log 1/rho(p) + log 2/alpha) (gamma / Delta(p))^2},
    p0 the likeliest code without excess and p over those with one. ValueError where gamma <= eps or no code is free.

    >>> round(sample_size([0.0, 0.1, 0.2], ceiling=2.0, alpha=0.05))
    3830
    """
    excesses = np.asarray(excesses, dtype=float)
    rho = np.full(excesses.size, 1 / excesses.size) if prior is None else np.asarray(prior, dtype=float)
    check_positive("prior", rho)
    check_positive("ceiling", ceiling)
    check_fraction("alpha", alpha)
    check_at_least("optimisation", optimisation, 0)
    free = excesses <= FREE
    if free.all() or not free.any():
        raise ValueError("give a class with both: codes without excess and codes with one")
    gamma = excesses[~free].min()
    if gamma <= optimisation:
        raise ValueError(f"optimisation = {optimisation:.6g}; give less than the least positive excess, {gamma:.6g}")
    need = np.log(1 / rho) + np.log(2 / alpha)
    worst = max(need[free].min(), (need[~free] * (gamma / excesses[~free]) ** 2).max())
    return float(2 * ceiling**2 / (gamma - optimisation) ** 2 * worst)


def sample_losses(ecology: FiniteEcology, codes: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """The loss of each code on each triple (world, context, token) and the law of the triples: (M, nCV) and (nCV,).

    -log q(v | p(w), c) with q the cell mixture; triples of weight zero have loss zero.
    """
    weights = (ecology.joint[..., None] * ecology.laws).ravel()
    losses = []
    for labels in np.asarray(codes):
        chosen = ecology.decoder(labels)[normal_form(labels)].ravel()
        losses.append(np.where(weights > 0, -np.log(np.where(weights > 0, chosen, 1.0)), 0.0))
    return np.stack(losses), weights
