"""Least-squares problems that come with their exact answers, and the layer token by token."""

from dataclasses import dataclass

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

from derived.lab.rng import stream
from derived.papers.ols_attention.data.problems import random_rotation
from derived.papers.ols_attention.model.mechanism import (
    Weights,
)
from derived.papers.ols_attention.model.theory import (
    rounding_bound,
)


@dataclass(frozen=True)
class Problem:
    """X = U diag(s) V^T of rank r and Y = U C + residual, so that fit, coefficients and hat matrix are known."""

    X: Tensor  # (n, p)
    Y: Tensor  # (n, m)
    U: Tensor  # (n, r)
    s: Tensor  # (r,)
    V: Tensor  # (p, r)
    C: Tensor  # (r, m)
    seed: int

    @property
    def fit(self) -> Tensor:
        return self.U @ self.C

    @property
    def coefficients(self) -> Tensor:
        return self.V @ (self.C / self.s[:, None])

    def ridge_fit(self, ridge: float, times: int = 1) -> Tensor:
        f = self.s**2 / (self.s**2 + len(self.X) * ridge)
        return self.U @ (f[:, None] ** times * self.C)

    def tolerance(self, Xq: Tensor | None = None, *, self_attention: bool = False) -> float:
        """Two computations, or one of them and the rounding of X itself: twice the bound."""
        return float(2 * rounding_bound(self.X, Xq, self_attention=self_attention) * self.Y.norm())

    def normal(self, *shape: int, name: str = "extra") -> Tensor:
        return torch.randn(*shape, generator=stream(self.seed, name), dtype=torch.float64)


def make_problem(n: int, p: int, m: int, rank: int, kappa: float, seed: int) -> Problem:
    g = stream(seed, "problem", n, p, m, rank)
    frame = random_rotation(n, generator=g)
    U, V = frame[:, :rank], random_rotation(p, generator=g)[:, :rank]
    s = torch.from_numpy(np.geomspace(kappa, 1.0, rank)) * n**0.5
    C = torch.randn(rank, m, generator=g, dtype=torch.float64)
    residual = frame[:, rank:] @ torch.randn(n - rank, m, generator=g, dtype=torch.float64)
    return Problem((U * s) @ V.T, U @ C + residual, U, s, V, C, seed)


@st.composite
def problems(draw, *, full_rank: bool = False, max_kappa: float = 1e4) -> Problem:
    n, p, m = draw(st.integers(1, 12)), draw(st.integers(1, 8)), draw(st.integers(1, 3))
    if full_rank:
        n, p = max(n, p), min(n, p)
    rank = p if full_rank else draw(st.integers(1, min(n, p)))
    kappa = 10 ** draw(st.floats(0, np.log10(max_kappa)))
    return make_problem(n, p, m, rank, kappa if rank > 1 else 1.0, draw(st.integers(0, 2**31)))


def token_loop(x: Tensor, context: Tensor, weights: Weights) -> Tensor:
    """The layer spelt out token by token: slow and obvious."""
    W_Q, W_K, W_V, W_FFN, W_p = weights
    rows = []
    for query in x:
        attended = torch.zeros(W_V.shape[1], dtype=x.dtype)
        for token in context:
            score = (W_Q.T @ query) @ (W_K.T @ token)
            attended = attended + score * (W_V.T @ token) / len(context)
        rows.append(W_p.T @ (W_FFN.T @ attended))
    return torch.stack(rows)
