"""Ecologies at random and by design.

name          meaning
classes       class of each world: worlds of one class have equal distributions in every context
informed      contexts know the world: each world has its distribution of contexts, and some are impossible in it
sparse        share of tokens that a distribution excludes
"""

import numpy as np
import torch

from derived.lab.checks import check_count, check_fraction

from ..model.ecology import FiniteEcology
from ..model.partitions import Labels, normal_form


def simplex(shape: tuple[int, ...], generator: torch.Generator, sparse: float = 0.0) -> np.ndarray:
    """Points of the simplex, uniform on it; with ``sparse`` a coordinate but the largest is zero with that chance."""
    weights = -torch.rand(shape, generator=generator, dtype=torch.float64).clamp(min=1e-12).log()
    if sparse:
        dropped = torch.rand(shape, generator=generator) < sparse
        weights = weights * ~(dropped & (weights < weights.amax(dim=-1, keepdim=True)))
    return (weights / weights.sum(dim=-1, keepdim=True)).numpy()


def random_ecology(
    n: int,
    C: int,
    V: int,
    generator: torch.Generator,
    *,
    classes: Labels | None = None,
    informed: bool = False,
    sparse: float = 0.0,
    uniform: bool = False,
) -> FiniteEcology:
    """Distributions, prior and contexts uniform on their simplices; ``uniform`` gives worlds equal weights.

    >>> from derived.lab.rng import stream
    >>> random_ecology(4, 2, 3, stream(0, "example"), classes=[0, 0, 1, 2]).quotient()
    array([0, 0, 1, 2])
    """
    for name, count in {"n": n, "C": C, "V": V}.items():
        check_count(name, count)
    classes = np.arange(n) if classes is None else normal_form(classes)
    if classes.size != n:
        raise ValueError(f"classes of {classes.size} worlds; give one for each of {n}")
    laws = simplex((int(classes.max()) + 1, C, V), generator, sparse)[classes]
    prior = np.full(n, 1 / n) if uniform else simplex((n,), generator)
    contexts = simplex((n, C) if informed else (C,), generator, 0.3 if informed else 0.0)
    return FiniteEcology(prior, contexts, laws)


def equidistant(n: int, epsilon: float) -> FiniteEcology:
    """n equally likely worlds, one context, P_w = (1 - epsilon) uniform + epsilon on the world's own token.

    All pairs are equally far apart.
    """
    check_count("n", n, 2)
    check_fraction("epsilon", epsilon)
    laws = (1 - epsilon) / n + epsilon * np.eye(n)
    return FiniteEcology(np.full(n, 1 / n), np.ones(1), laws[:, None])


def two_covers() -> FiniteEcology:
    """Three worlds, of which the outer two never meet in a context: each may share a code with the middle one, not all.

    Context 0 is met by worlds 0 and 1, context 1 by worlds 1 and 2, context 2 by worlds 0 and 2, whose distributions
    differ there alone.
    """
    contexts = [[0.5, 0.0, 0.5], [0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]
    laws = np.full((3, 3, 2), 0.5)
    laws[0, 2], laws[2, 2] = (0.9, 0.1), (0.1, 0.9)
    return FiniteEcology(np.full(3, 1 / 3), np.array(contexts), laws)
