"""Heredity, variation and selection: what one generation does to a mean, and where many lead.

symbol   name      meaning                                                      axes
x        shares    frequencies of the m types, sum to one                       (*batch, m)
f        fitness   expected offspring, up to a factor; > 0                      (*batch, m)
z        trait     a number of each type                                        (*batch, m)
delta    change    mean of z over a parent's offspring less its own z           (*batch, m)
Q        kernel    Q[i, j] = chance that an offspring of type i is of type j    (m, m)
L        rates     Q = 1 + epsilon L: rows sum to zero, off-diagonal >= 0       (m, m)
K        draws     parents drawn, with replacement                              scalar
"""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike

from derived.lab.checks import check_at_least, check_count, check_fraction, check_positive


class PriceTerms(NamedTuple):
    """What selection and what transmission add to a mean."""

    selection: np.ndarray
    transmission: np.ndarray


def _shares(shares: ArrayLike | None, like: np.ndarray) -> np.ndarray:
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
    mean = (x * fitness).sum(axis=-1)
    centre = (x * trait).sum(axis=-1, keepdims=True)
    selection = (x * fitness * (trait - centre)).sum(axis=-1) / mean
    return PriceTerms(np.asarray(selection), np.asarray((x * fitness * change).sum(axis=-1) / mean))


def selection_moments(
    fitness: ArrayLike, trait: ArrayLike, draws: int, shares: ArrayLike | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of (mean trait of K drawn parents) - (mean trait): parents come with p_i = x_i f_i / mean f.

    E = Cov_x(f, z) / mean f, Var = (1/K) sum_i p_i (z_i - sum_j p_j z_j)^2, both exact.
    """
    check_count("draws", draws)
    fitness, trait = np.asarray(fitness, dtype=float), np.asarray(trait, dtype=float)
    x = _shares(shares, fitness)
    p = x * fitness / (x * fitness).sum(axis=-1, keepdims=True)
    centre = (p * trait).sum(axis=-1, keepdims=True)
    variance = (p * (trait - centre) ** 2).sum(axis=-1) / draws
    return price_terms(fitness, trait, shares=shares).selection, variance


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


def replicator_mutator(
    shares: ArrayLike, fitness: ArrayLike, kernel: ArrayLike | None = None, generations: int = 1
) -> np.ndarray:
    """x <- Q^T (f x) / mean f, so many times, for shares (*batch, m); without a kernel like begets like.

    >>> replicator_mutator([0.5, 0.5], [1.0, 3.0])
    array([0.25, 0.75])
    """
    check_count("generations", generations, least=0)
    fitness = np.asarray(fitness, dtype=float)
    check_positive("fitness", fitness)
    x = _shares(shares, fitness)
    types = fitness.shape[-1]
    Q = np.eye(types) if kernel is None else _kernel(kernel, types)
    for _ in range(generations):
        x = (fitness * x) @ Q
        x = x / x.sum(axis=-1, keepdims=True)
    return x


def quasispecies(fitness: ArrayLike, kernel: ArrayLike) -> np.ndarray:
    """The shares that selection and mutation lead to: the Perron vector of Q^T diag(f).

    ValueError where the matrix is not primitive: then the end depends on the beginning.

    >>> quasispecies([2.0, 1.0], [[0.9, 0.1], [0.1, 0.9]]).round(3)
    array([0.822, 0.178])
    """
    fitness = np.asarray(fitness, dtype=float)
    check_positive("fitness", fitness)
    M = _kernel(kernel, fitness.size).T * fitness
    # A non-negative (m, m) matrix is primitive iff its power (m - 1)^2 + 1 has no zero (Wielandt, 1950).
    reach = np.linalg.matrix_power((M > 0).astype(object), 1).astype(bool)
    power, exponent = np.eye(fitness.size, dtype=bool), (fitness.size - 1) ** 2 + 1
    while exponent:
        if exponent & 1:
            power = power.astype(int) @ reach > 0
        reach, exponent = reach.astype(int) @ reach > 0, exponent >> 1
    if not power.all():
        raise ValueError("not every type is reached from every type; give a kernel by which mutation connects them all")
    values, vectors = np.linalg.eig(M)
    found = np.abs(vectors[:, values.real.argmax()].real)
    return found / found.sum()


def first_order_quasispecies(fitness: ArrayLike, rates: ArrayLike, epsilon: float) -> np.ndarray:
    """The quasispecies of Q = 1 + epsilon L for small epsilon: x(p) = epsilon f* L(p*, p) / (f* - f(p)) beside the one
    fittest type p*, which has the rest. ValueError where two types are the fittest."""
    check_fraction("epsilon", epsilon)
    fitness, rates = np.asarray(fitness, dtype=float), np.asarray(rates, dtype=float)
    best = int(fitness.argmax())
    others = np.arange(fitness.size) != best
    if not (fitness[others] < fitness[best]).all():
        fittest = int((fitness == fitness[best]).sum())
        raise ValueError(f"{fittest} types have the largest fitness; give fitness with one that is above all others")
    found = np.zeros_like(fitness)
    found[others] = epsilon * fitness[best] * rates[best, others] / (fitness[best] - fitness[others])
    found[best] = 1 - found.sum()
    return found


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
