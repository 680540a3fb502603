"""Synthetic regression problems: the paper's own toy, the multivariate one, and tasks for in-context regression.

symbol    name          meaning                                            axes
X, Y      X, Y          tokens and responses                               (..., n, p), (..., n, m)
kappa     kappa         condition number of the population covariance      scalar
w         w             the coefficients of a random task                  (..., p)
N         N             context points of a task                           scalar
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from derived.lab.checks import check_at_least, check_count

from ..model.theory import check_covariance


class Regression(NamedTuple):
    """A regression problem Y = X B + noise."""

    X: Tensor  # (*batch, n, p)
    Y: Tensor  # (*batch, n, m)
    B: Tensor  # (*batch, p, m), the population coefficients


class Tasks(NamedTuple):
    """Tasks with their own coefficients: a labelled context and one query each."""

    X: Tensor  # (*batch, N, p)
    y: Tensor  # (*batch, N)
    x_query: Tensor  # (*batch, p)
    y_query: Tensor  # (*batch,), without noise


def paper_problem(
    n: int,
    *,
    batch: tuple[int, ...] = (),
    slope: float = 2.0,
    noise: float = 0.1,
    generator: torch.Generator,
    dtype: torch.dtype = torch.float64,
) -> Regression:
    """The paper's task y = 2 x + noise in one dimension, x ~ N(0, 1) [digest]; the noise level is ours."""
    check_count("n", n)
    check_at_least("noise", noise, 0.0)
    X = torch.randn(*batch, n, 1, generator=generator, dtype=dtype)
    Y = slope * X + noise * torch.randn(*batch, n, 1, generator=generator, dtype=dtype)
    return Regression(X, Y, torch.full((*batch, 1, 1), slope, dtype=dtype))


def random_rotation(
    p: int, *, batch: tuple[int, ...] = (), generator: torch.Generator, dtype: torch.dtype = torch.float64
) -> Float[Tensor, "*batch p p"]:
    """Orthogonal matrices from the Haar measure: the Q of a Gaussian matrix, signs fixed by R. [prior: Mezzadri]"""
    check_count("p", p)
    Q, R = torch.linalg.qr(torch.randn(*batch, p, p, generator=generator, dtype=dtype))
    return Q * R.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)


def random_regression(
    n: int,
    p: int,
    m: int = 1,
    *,
    rank: int | None = None,
    kappa: float = 1.0,
    noise: float = 0.3,
    batch: tuple[int, ...] = (),
    generator: torch.Generator,
    dtype: torch.dtype = torch.float64,
) -> Regression:
    """Rows of X from N(0, Q diag(geomspace(1, kappa, r)) Q^T) with Q a random frame of rank r <= p, B Gaussian. [ours]

    ``rank`` < p makes X rank-deficient. Shapes: X (*batch, n, p), Y (*batch, n, m), B (*batch, p, m).
    """
    for name, value in (("n", n), ("p", p), ("m", m)):
        check_count(name, value)
    rank = p if rank is None else rank
    check_count("rank", rank)
    if rank > p:
        raise ValueError(f"rank = {rank} exceeds p = {p}; give 1 <= rank <= p")
    check_at_least("kappa", kappa, 1.0)
    check_at_least("noise", noise, 0.0)
    frame = random_rotation(p, batch=batch, generator=generator, dtype=dtype)[..., :rank]
    scale = kappa ** (torch.arange(rank, dtype=dtype) / max(rank - 1, 1) / 2)
    X = (torch.randn(*batch, n, rank, generator=generator, dtype=dtype) * scale) @ frame.mT
    B = torch.randn(*batch, p, m, generator=generator, dtype=dtype)
    return Regression(X, X @ B + noise * torch.randn(*batch, n, m, generator=generator, dtype=dtype), B)


def random_tasks(
    Lambda: Float[Tensor, "p p"], N: int, *, batch: tuple[int, ...], noise: float = 0.0, generator: torch.Generator
) -> Tasks:
    """In-context tasks: x ~ N(0, Lambda), w ~ N(0, I), y = w^T x + noise, N context points and a query. [prior]"""
    check_covariance(Lambda)
    check_count("N", N)
    check_at_least("noise", noise, 0.0)
    root = torch.linalg.cholesky(Lambda)
    shapes = (*batch, N + 1, len(Lambda)), (*batch, len(Lambda), 1)
    points, w = (torch.randn(shape, generator=generator, dtype=Lambda.dtype).to(Lambda.device) for shape in shapes)
    points = points @ root.mT
    labels = (points @ w).squeeze(-1)
    y = labels[..., :N] + noise * torch.randn(*batch, N, generator=generator, dtype=Lambda.dtype).to(Lambda.device)
    return Tasks(points[..., :N, :], y, points[..., N, :], labels[..., N])


def spectrum(name: str, p: int, dtype: torch.dtype) -> Tensor:
    """The covariance of the random tasks: the identity, or eigenvalues from 0.25 to 4 in a geometric row."""
    return (
        torch.diag(torch.logspace(-2, 2, p, base=2.0, dtype=dtype))
        if name == "geometric"
        else torch.eye(p, dtype=dtype)
    )
