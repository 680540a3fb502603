"""Heredity, variation and selection: what one generation does to a mean, and where many lead.

symbol   name      meaning                                                      axes
x        shares    frequencies of the m types, sum to one                       (*batch, m)
f        fitness   expected offspring, up to a factor; > 0                      (*batch, m)
z        trait     a number of each type                                        (*batch, m)
delta    change    mean of z over a parent's offspring less its own z           (*batch, m)
Q        kernel    Q[i, j] = chance that an offspring of type i is of type j    (m, m)
K        draws     parents drawn, with replacement                              scalar
"""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike

from derived.lab.checks import check_at_least, check_count, check_positive


class PriceTerms(NamedTuple):
    """What selection and what transmission add to a mean."""

    selection: np.ndarray
    transmission: np.ndarray


def _shares(shares: ArrayLike | None, like: np.ndarray) -> np.ndarray:
    check_count("number of types", like.shape[-1] if like.ndim else 0)
    if shares is None:
        return np.full_like(like, 1 / like.shape[-1], dtype=float)
    found = np.asarray(shares, dtype=float)
    check_at_least("shares", found, 0)
    if found.shape[-1:] != like.shape[-1:]:
        raise ValueError(f"shares {found.shape} and fitness {like.shape}; give one share for each type")
    total = found.sum(axis=-1)
    if not np.allclose(total, 1, rtol=0, atol=1e-9):
        raise ValueError(f"shares sum to {np.ravel(total)[0]:.6g}; give shares that sum to 1")
    return found


def price_terms(
    fitness: ArrayLike, trait: ArrayLike, change: ArrayLike = 0.0, shares: ArrayLike | None = None
) -> PriceTerms:
    """Price's equation: mean z' - mean z = Cov_x(f, z) / mean f + E_x[f delta] / mean f.

    Equal shares where none are given. ValueError for fitness <= 0 or shares that do not sum to one.

    >>> price_terms([1.0, 3.0], [0.0, 1.0])  # the better half makes three quarters of the next generation
    PriceTerms(selection=array(0.25), transmission=array(0.))
    """
    fitness, trait = np.asarray(fitness, dtype=float), np.asarray(trait, dtype=float)
    check_positive("fitness", fitness)
    x = _shares(shares, fitness)
    mean, centre = (x * fitness).sum(axis=-1), (x * trait).sum(axis=-1, keepdims=True)
    selection = (x * fitness * (trait - centre)).sum(axis=-1) / mean
    return PriceTerms(np.asarray(selection), np.asarray((x * fitness * change).sum(axis=-1) / mean))


def wright_fisher(
    fitness: ArrayLike, draws: int, generator: torch.Generator, shares: ArrayLike | None = None
) -> np.ndarray:
    """The parents (*batch, K) of one generation: K types drawn with replacement, type i with x_i f_i / mean f.

    >>> wright_fisher([1.0, 1e-12], 3, torch.Generator().manual_seed(0))
    array([0, 0, 0])
    """
    check_count("draws", draws)
    fitness = np.asarray(fitness, dtype=float)
    check_positive("fitness", fitness)
    p = torch.as_tensor(_shares(shares, fitness) * fitness)
    found = torch.multinomial(p.reshape(-1, p.shape[-1]), draws, replacement=True, generator=generator)
    return found.view(*p.shape[:-1], draws).numpy()


def _kernel(kernel: ArrayLike, types: int) -> np.ndarray:
    kernel = np.asarray(kernel, dtype=float)
    if kernel.shape != (types, types):
        raise ValueError(f"kernel {kernel.shape} for {types} types; give ({types}, {types})")
    check_at_least("kernel", kernel, 0)
    sums = kernel.sum(axis=1)
    if not np.allclose(sums, 1, rtol=0, atol=1e-9):
        row = int(np.abs(sums - 1).argmax())
        raise ValueError(f"row {row} of the kernel sums to {sums[row]:.6g}; each row must sum to 1")
    return kernel


def quasispecies(fitness: ArrayLike, kernel: ArrayLike) -> np.ndarray:
    """The shares that selection and mutation lead to: the Perron vector of Q^T diag(f).

    ValueError where the matrix is not primitive: then the end depends on the beginning.

    >>> quasispecies([2.0, 1.0], [[0.9, 0.1], [0.1, 0.9]]).round(3)
    array([0.822, 0.178])
    """
    fitness = np.asarray(fitness, dtype=float)
    check_positive("fitness", fitness)
    M = _kernel(kernel, fitness.size).T * fitness
    reach = M > 0  # primitive if and only if a power from (m - 1)^2 + 1 on has no zero (Wielandt, 1950)
    for _ in range(((fitness.size - 1) ** 2 + 1).bit_length()):
        reach = reach.astype(int) @ reach > 0
    if not reach.all():
        raise ValueError("not every type is reached from every type; give a kernel by which mutation connects them all")
    values, vectors = np.linalg.eig(M)
    found = np.abs(vectors[:, values.real.argmax()].real)
    return found / found.sum()


class Recipes(NamedTuple):
    """Types that are recipes: a mixing share alpha and a background, with frequencies and evaluation excess."""

    alpha: np.ndarray
    background: np.ndarray
    shares: np.ndarray
    excess: np.ndarray


def recipe_counterexample() -> Recipes:
    """Four recipes whose excess falls with alpha within each background, and whose fitness e^-excess falls with alpha.

    >>> recipes = recipe_counterexample()
    >>> float(price_terms(np.exp(-recipes.excess), recipes.alpha, shares=recipes.shares).selection.round(3))
    -0.175
    """
    alpha, background = np.array([0.0, 0.4, 0.6, 1.0]), np.array([0, 0, 1, 1])
    return Recipes(alpha, background, np.array([0.45, 0.05, 0.05, 0.45]), 1.0 + background - 0.2 * alpha)
