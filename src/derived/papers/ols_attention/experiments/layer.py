"""The layer at the data it was made from: every identity of the page, and data of deficient rank (OLS-1 to 6, 11).

Each experiment is a frozen table of sizes whose defaults are the largest run, and one batched function per condition.

gap    relative Frobenius distance of two computations of one thing, from different algorithms
bound  the derived bound on the rounding of both
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.linalg import matrix_norm as norm

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..data.problems import random_regression
from ..model import theory
from ..model.mechanism import OLSTransformer, in_context_ols, ridge_weights, whitening
from ..model.mechanism import tied_weights as tied


def _ridge_fit(X: Tensor, Y: Tensor, ridge: float) -> Tensor:
    """H_lambda Y as least squares on augmented data, [X; sqrt(n lambda) I] B ~ [Y; 0], by QR and not by an SVD."""
    n, p = X.shape[-2:]
    weight = (n * ridge) ** 0.5 * torch.eye(p, dtype=X.dtype, device=X.device).expand(*X.shape[:-2], p, p)
    zeros = Y.new_zeros(*Y.shape[:-2], p, Y.shape[-1])
    return X @ theory.ols_coefficients(torch.cat([X, weight], -2), torch.cat([Y, zeros], -2), method="qr")


def _master_bound(X: Tensor, L: Tensor, Y: Tensor) -> Tensor:
    """Rounding of f_W(X) against H_L^2 Y for any L: products of inner dimension k err by k eps times their norms.

    The inner dimensions of the layer add up to at most 4p + 2n + 2d, those of the other side to no more.
    """
    (n, p), d = X.shape[-2:], L.shape[-1]
    return 2 * (4 * p + 2 * n + 2 * d) * torch.finfo(X.dtype).eps * (norm(X) * norm(L)) ** 4 * norm(Y) / n**2


@dataclass(frozen=True, kw_only=True)
class Identities(Experiment):
    """OLS-1, 2, 3, 5, 6, 11: relative gaps of every identity of the layer on random problems, against their bounds.

    Rows: instance; ``gap_*`` (Frobenius, relative) and the rounding bound of the same name. Both sides of a gap come
    from different algorithms: the layer from an SVD, its target from QR.
    """

    sizes: tuple[tuple[int, int, int], ...] = ((1, 1, 1), (7, 1, 3), (40, 5, 2), (500, 8, 1))
    kappa: float = 100.0
    ridge: float = 0.5
    instances: int = 64

    def conditions(self) -> list[dict]:
        return [
            {"n": n, "p": p, "m": m, "precision": bits} for bits in ("float64", "float32") for n, p, m in self.sizes
        ]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        n, p, m = (condition[name] for name in "npm")
        generator = stream(seed, "identities", n, p, m)
        problem = {"kappa": self.kappa, "batch": (self.instances,), "generator": generator}
        X, Y, _ = random_regression(n, p, m, **problem)
        Xq, _, _ = random_regression(max(p, 3), p, m, **problem)
        X, Y, Xq = (t.to(device, getattr(torch, condition["precision"])) for t in (X, Y, Xq))
        layer, H = OLSTransformer.from_data(X, Y), torch.linalg.qr(X).Q
        H, B = H @ H.mT, theory.ols_coefficients(X, Y, method="qr")
        A, Z, size = layer.attention_matrix(X), X @ whitening(X), norm(Y)
        once_fit = _ridge_fit(X, Y, self.ridge)
        twice_fit = _ridge_fit(X, once_fit, self.ridge)
        L_any = torch.randn(self.instances, p, 3, generator=generator, dtype=torch.float64).to(X)
        H_any = X @ (L_any @ L_any.mT) @ X.mT / n
        any_layer = OLSTransformer(tied(X, Y, L_any))
        twice = OLSTransformer(tied(X, Y, whitening(X, self.ridge)))
        repaired = OLSTransformer(ridge_weights(X, Y, self.ridge))
        bound, cross = 2 * theory.rounding_bound(X), 2 * theory.rounding_bound(X, Xq)
        return rows(
            {"instance": range(self.instances)},
            {
                "gap_fit": norm(layer(X) - X @ B) / size,
                "gap_hat": norm(A - H) / p**0.5,
                "gap_projector": norm(A @ A - A) / p**0.5,
                "gap_trace": (A.diagonal(dim1=-2, dim2=-1).sum(dim=-1) - p).abs() / p,
                "gap_inert": norm(A @ Z - Z) / norm(Z),
                "gap_master": norm(any_layer(X) - H_any @ (H_any @ Y)),
                "gap_twice": norm(twice(X) - twice_fit) / size,
                "gap_repaired": norm(repaired(X) - once_fit) / size,
                "ridge_missed": norm(twice(X) - once_fit) / norm(once_fit),
                "gap_self": norm(layer(Xq) - theory.held_out_self_attention(Xq, X, Y)) / size,
                "gap_cross": norm(layer(Xq, context=X) - Xq @ B) / size,
                "gap_labels": norm(in_context_ols(Xq, X, Y) - Xq @ B) / size,
                "gap_cube": norm(layer(3 * X) - 27 * layer(X)) / (27 * size),
                "doubled_missed": norm(layer(2 * X) - X @ B) / norm(X @ B),
                "gap_control": norm(layer(X).roll(1, dims=0) - X @ B) / size,
                "bound": bound,
                "bound_master": _master_bound(X, L_any, Y),
                "bound_self": 2 * theory.rounding_bound(X, Xq, self_attention=True),
                "bound_cross": cross,
            },
        )


@dataclass(frozen=True, kw_only=True)
class Degenerate(Experiment):
    """OLS-4: rank-deficient and over-parameterised X, against LAPACK's minimum-norm solution (gelsd)."""

    sizes: tuple[tuple[int, int, int], ...] = ((30, 6, 3), (30, 6, 1), (8, 20, 8), (8, 20, 5), (5, 5, 5))
    instances: int = 64

    def conditions(self) -> list[dict]:
        return [{"n": n, "p": p, "rank": rank} for n, p, rank in self.sizes]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        n, p, rank = (condition[name] for name in ("n", "p", "rank"))
        generator = stream(seed, "degenerate", n, p, rank)
        X, Y, _ = random_regression(
            n, p, 2, rank=rank, kappa=10.0, batch=(self.instances,), generator=generator, dtype=dtype
        )
        B = torch.linalg.lstsq(X, Y, rcond=max(n, p) * torch.finfo(dtype).eps, driver="gelsd").solution
        X, Y, B = (t.to(device) for t in (X, Y, B))
        layer = OLSTransformer.from_data(X, Y)
        every_axis = torch.eye(p, dtype=dtype, device=device).expand(self.instances, p, p)
        return rows(
            {"instance": range(self.instances)},
            {
                "gap_fit": norm(layer(X) - X @ B) / norm(Y),
                "gap_coefficients": norm(layer.W_V @ layer.W_p - B) / norm(Y),
                "gap_interpolation": norm(layer(X) - Y) / norm(Y) if rank == n else np.nan,
                "bound": 2 * theory.rounding_bound(X),
                "bound_coefficients": 2 * theory.rounding_bound(X, every_axis),
            },
        )
