"""Random finite chains with a known number of classes."""

import numpy as np
import torch

from derived.lab.checks import check_count


def random_absorbing_chain(classes: int, transient: int, *, generator: torch.Generator) -> np.ndarray:
    """P (S, S), S = 3 classes + transient: closed classes of three states; transient states leave with probability 1/2.

    ValueError for no class.

    >>> P = random_absorbing_chain(2, 1, generator=torch.Generator().manual_seed(0))
    >>> P.shape, round(float(P[-1, :6].sum()), 12)
    ((7, 7), 0.5)
    """
    check_count("classes", classes)
    check_count("transient", transient, 0)
    size = 3 * classes + transient
    positive = 0.1 + torch.rand(size, size, generator=generator, dtype=torch.float64).numpy()
    P = np.zeros((size, size))
    for k in range(classes):
        block = slice(3 * k, 3 * k + 3)
        P[block, block] = positive[block, block]
    P[: -transient or None] /= P[: -transient or None].sum(axis=1, keepdims=True)
    for part in (slice(0, 3 * classes), slice(3 * classes, size)) if transient else ():
        rows = slice(3 * classes, size)
        P[rows, part] = 0.5 * positive[rows, part] / positive[rows, part].sum(axis=1, keepdims=True)
    return P
