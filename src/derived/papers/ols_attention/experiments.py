"""The experiments of the chapter: least squares as a forward pass, its reach, and (from ``memory``) its memories.

Each is a frozen table of sizes whose defaults are the largest run, and one batched function per condition.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from derived.lab.experiment import Experiment
from derived.lab.rng import stream

from . import memory, reachability, theory
from .data import paper_problem, random_regression, random_rotation, random_tasks
from .mechanism import OLSTransformer, in_context_ols, ridge_weights, softmax_read_out, softmax_regression, whitening
from .mechanism import tied_weights as tied
from .training import context_moment, regress_linear_attention, train_linear_attention, train_matrix, train_scalar


def norm(matrices: Tensor) -> Tensor:
    """Frobenius norms over the last two axes."""
    return torch.linalg.matrix_norm(matrices)


def table(**columns: Tensor | Any) -> pd.DataFrame:
    """Columns of equal length as rows."""
    return pd.DataFrame({k: v.cpu().numpy().ravel() if isinstance(v, Tensor) else v for k, v in columns.items()})


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

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {}}

    def conditions(self) -> list[dict[str, Any]]:
        return [
            {"n": n, "p": p, "m": m, "precision": bits} for bits in ("float64", "float32") for n, p, m in self.sizes
        ]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        n, p, m = (condition[name] for name in "npm")
        draw = stream(seed, "identities", n, p, m)
        problem = {"kappa": self.kappa, "batch": (self.instances,), "generator": draw}
        X, Y, _ = random_regression(n, p, m, **problem)
        Xq, _, _ = random_regression(max(p, 3), p, m, **problem)
        X, Y, Xq = (t.to(device, getattr(torch, condition["precision"])) for t in (X, Y, Xq))
        layer, H = OLSTransformer.from_data(X, Y), torch.linalg.qr(X).Q
        H, B = H @ H.mT, theory.ols_coefficients(X, Y, method="qr")
        A, Z, size = layer.attention_matrix(X), X @ whitening(X), norm(Y)
        once_fit = _ridge_fit(X, Y, self.ridge)
        twice_fit = _ridge_fit(X, once_fit, self.ridge)
        L_any = torch.randn(self.instances, p, 3, generator=draw, dtype=torch.float64).to(X)
        H_any = X @ (L_any @ L_any.mT) @ X.mT / n
        any_layer = OLSTransformer(tied(X, Y, L_any))
        twice = OLSTransformer(tied(X, Y, whitening(X, self.ridge)))
        repaired = OLSTransformer(ridge_weights(X, Y, self.ridge))
        bound, cross = 2 * theory.rounding_bound(X), 2 * theory.rounding_bound(X, Xq)
        return table(
            instance=range(self.instances),
            gap_fit=norm(layer(X) - X @ B) / size,
            gap_hat=norm(A - H) / p**0.5,
            gap_projector=norm(A @ A - A) / p**0.5,
            gap_trace=(A.diagonal(dim1=-2, dim2=-1).sum(dim=-1) - p).abs() / p,
            gap_inert=norm(A @ Z - Z) / norm(Z),
            gap_master=norm(any_layer(X) - H_any @ (H_any @ Y)),
            gap_twice=norm(twice(X) - twice_fit) / size,
            gap_repaired=norm(repaired(X) - once_fit) / size,
            ridge_missed=norm(twice(X) - once_fit) / norm(once_fit),
            gap_self=norm(layer(Xq) - theory.held_out_self_attention(Xq, X, Y)) / size,
            gap_cross=norm(layer(Xq, context=X) - Xq @ B) / size,
            gap_labels=norm(in_context_ols(Xq, X, Y) - Xq @ B) / size,
            gap_cube=norm(layer(3 * X) - 27 * layer(X)) / (27 * size),
            doubled_missed=norm(layer(2 * X) - X @ B) / norm(X @ B),
            gap_control=norm(layer(X).roll(1, dims=0) - X @ B) / size,
            bound=bound,
            bound_master=_master_bound(X, L_any, Y),
            bound_self=2 * theory.rounding_bound(X, Xq, self_attention=True),
            bound_cross=cross,
        )


@dataclass(frozen=True, kw_only=True)
class Degenerate(Experiment):
    """OLS-4: rank-deficient and over-parameterised X, against LAPACK's minimum-norm solution (gelsd)."""

    sizes: tuple[tuple[int, int, int], ...] = ((30, 6, 3), (30, 6, 1), (8, 20, 8), (8, 20, 5), (5, 5, 5))
    instances: int = 64

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {}}

    def conditions(self) -> list[dict[str, Any]]:
        return [{"n": n, "p": p, "rank": rank} for n, p, rank in self.sizes]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        n, p, rank = (condition[name] for name in ("n", "p", "rank"))
        draw = stream(seed, "degenerate", n, p, rank)
        X, Y, _ = random_regression(
            n, p, 2, rank=rank, kappa=10.0, batch=(self.instances,), generator=draw, dtype=dtype
        )
        B = torch.linalg.lstsq(X, Y, rcond=max(n, p) * torch.finfo(dtype).eps, driver="gelsd").solution
        X, Y, B = (t.to(device) for t in (X, Y, B))
        layer = OLSTransformer.from_data(X, Y)
        every_axis = torch.eye(p, dtype=dtype, device=device).expand(self.instances, p, p)
        return table(
            instance=range(self.instances),
            gap_fit=norm(layer(X) - X @ B) / norm(Y),
            gap_coefficients=norm(layer.W_V @ layer.W_p - B) / norm(Y),
            gap_interpolation=norm(layer(X) - Y) / norm(Y) if rank == n else np.nan,
            bound=2 * theory.rounding_bound(X),
            bound_coefficients=2 * theory.rounding_bound(X, every_axis),
        )


@dataclass(frozen=True, kw_only=True)
class BatchError(Experiment):
    """OLS-7: squared error of the frozen layer on a fresh batch from the training law, over its exact mean (R9)."""

    sizes: tuple[tuple[int, int], ...] = ((1, 32), (2, 32), (4, 16), (4, 64), (8, 32))
    draws: int = 65536

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {}}

    def conditions(self) -> list[dict[str, Any]]:
        return [{"p": p, "num_tokens": n} for p, n in self.sizes]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        p, n = condition["p"], condition["num_tokens"]
        draw = stream(seed, "batch error", p, n)
        X = torch.randn(self.draws, n, p, generator=draw, dtype=dtype).to(device)
        b = torch.randn(self.draws, p, 1, generator=draw, dtype=dtype).to(device)
        error = X @ (theory.second_moment(X) @ b) - X @ b  # population weights: Sigma = I, B = b
        relative = error.square().sum(dim=(-2, -1)) / n / b.square().sum(dim=(-2, -1))
        return table(draw=range(self.draws), error=relative, predicted=theory.batch_error(p, n))


@dataclass(frozen=True, kw_only=True)
class Shift(Experiment):
    """OLS-8: distance from the least-squares prediction, relative, when the inference inputs shift.

    ``scale``: fresh tokens times c · ``same tokens``: the training tokens times c · ``rotation``: the covariance turned
    by an angle in units of pi/2 · ``condition``: its condition number times a factor.
    """

    amounts: tuple[float, ...] = (0.25, 0.3536, 0.5, 0.7071, 1.0, 1.4142, 2.0, 2.8284, 4.0)
    angles: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 1.0)
    n: int = 2000
    p: int = 4
    kappa: float = 10.0
    replicates: int = 32

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {}}

    def conditions(self) -> list[dict[str, Any]]:
        kinds = {"scale": self.amounts, "same tokens": self.amounts, "rotation": self.angles, "condition": self.amounts}
        return [{"shift": kind, "amount": amount} for kind, amounts in kinds.items() for amount in amounts]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        draw = stream(seed, "shift")  # the same draws for every condition: the curves are paired
        shape, kind, amount = (self.replicates, self.n, self.p), condition["shift"], condition["amount"]
        frame = random_rotation(self.p, batch=(self.replicates,), generator=draw, dtype=dtype)
        exponent = torch.linspace(0, 0.5, self.p, dtype=dtype)
        base, fresh = torch.randn(2, *shape, generator=draw, dtype=dtype)
        B = torch.randn(self.replicates, self.p, 1, generator=draw, dtype=dtype)
        noise = 0.3 * torch.randn(self.replicates, self.n, 1, generator=draw, dtype=dtype)
        X = base * self.kappa**exponent @ frame.mT
        kappa = self.kappa * amount if kind == "condition" else self.kappa
        turned = frame @ _turn(self.p, amount if kind == "rotation" else 0.0, dtype)
        factor = amount if kind in ("scale", "same tokens") else 1.0
        Xq = factor * (X if kind == "same tokens" else fresh * kappa**exponent @ turned.mT)
        X, Xq, Y = X.to(device), Xq.to(device), (X @ B + noise).to(device)
        target = Xq @ theory.ols_coefficients(X, Y, method="qr")
        layer = OLSTransformer.from_data(X, Y)
        predictions = {"self": layer(Xq), "cross": layer(Xq, context=X), "labels": in_context_ols(Xq, X, Y)}
        tables = [
            table(
                method=method,
                replicate=range(self.replicates),
                error=norm(predicted - target) / norm(target),
                bound=2 * theory.rounding_bound(X, Xq, self_attention=method == "self") * norm(Y) / norm(target),
            )
            for method, predicted in predictions.items()
        ]
        return pd.concat(tables, ignore_index=True)


def _turn(p: int, amount: float, dtype: torch.dtype) -> Tensor:
    """A rotation by ``amount`` quarter turns in the plane of the first and the last axis."""
    turn, angle = torch.eye(p, dtype=dtype), torch.tensor(amount * np.pi / 2, dtype=dtype)
    turn[0, 0] = turn[-1, -1] = angle.cos()
    turn[0, -1], turn[-1, 0] = -angle.sin(), angle.sin()
    return turn


@dataclass(frozen=True, kw_only=True)
class Reachability(Experiment):
    """OLS-9, OLS-10: the paper's toy, y = 2x + noise with n = 500, trained for 1000 epochs from several L_0.

    Rows: replicate, l0, the end point and the values 1/s, s, beta that theory gives. A seed of a row is its replicate.
    """

    starts: tuple[float, ...] = (0.1, 0.5, 1.5, -0.5)
    n: int = 500
    epochs: int = 1000
    adam_lr: float = 1e-2
    gd_lr: float = 5e-3
    replicates: int = 100

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {}}

    def conditions(self) -> list[dict[str, Any]]:
        read_outs = ("frozen", "recomputed", "trained")
        return [{"read_out": read, "optimizer": name} for name in ("adam", "gd") for read in read_outs]

    def train(self, condition, seed: int, dtype: torch.dtype):
        """The course of every replicate from every start; axes (epochs + 1, replicates, starts)."""
        problem = paper_problem(self.n, batch=(self.replicates, 1), generator=stream(seed, "toy"), dtype=dtype)
        x, y = problem.X.squeeze(-1), problem.Y.squeeze(-1)
        l0 = torch.tensor(self.starts, dtype=dtype)
        course = train_scalar(
            x,
            y,
            l0,
            torch.ones_like(l0) if condition["read_out"] == "trained" else None,
            read_out=condition["read_out"],
            optimizer=condition["optimizer"],
            lr=self.adam_lr if condition["optimizer"] == "adam" else self.gd_lr,
            epochs=self.epochs,
        )
        square = x.square().mean(dim=-1)
        return course, square.sqrt(), (x * y).mean(dim=-1) / square

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        course, s, beta = self.train(condition, seed, dtype)
        shape = (self.replicates, len(self.starts))
        replicate = torch.arange(self.replicates).unsqueeze(-1).expand(shape)
        return table(
            replicate=replicate,
            l0=torch.tensor(self.starts, dtype=dtype).expand(shape),
            l=course.l[-1],
            P=course.P[-1],
            loss=course.loss[-1],
            inverse_root=(1 / s).expand(shape),
            s=s.expand(shape),
            beta=beta.expand(shape),
        )


@dataclass(frozen=True, kw_only=True)
class Courses(Reachability):
    """The figure of reachability: l and P over the epochs of the first replicate."""

    replicates: int = 1
    every: int = 5

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        course, s, beta = self.train(condition, seed, dtype)
        epoch = torch.arange(0, self.epochs + 1, self.every)
        l, P = course.l[epoch, 0], course.P[epoch, 0]
        l0 = torch.tensor(self.starts, dtype=dtype).expand(l.shape)
        epochs = epoch.unsqueeze(-1).expand(l.shape)
        return table(epoch=epochs, l0=l0, l=l, P=P, inverse_root=float(1 / s), s=float(s), beta=float(beta))


@dataclass(frozen=True, kw_only=True)
class TrainedEndPoint(Experiment):
    """OLS-10: l and P both trained by small gradient steps, against the end point that l^2 - 3 P^2 predicts."""

    starts: tuple[tuple[float, float], ...] = ((0.5, 0.5), (0.5, 1.0), (1.5, 1.0), (-0.5, -1.0), (1.2, -0.3))
    n: int = 500
    lr: float = 5e-4
    epochs: int = 8000
    replicates: int = 100

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {}}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        problem = paper_problem(self.n, batch=(self.replicates, 1), generator=stream(seed, "toy"), dtype=dtype)
        x, y = problem.X.squeeze(-1), problem.Y.squeeze(-1)
        l0, P0 = torch.tensor(self.starts, dtype=dtype).unbind(dim=-1)
        course = train_scalar(x, y, l0, P0, read_out="trained", optimizer="gd", lr=self.lr, epochs=self.epochs)
        square = x.square().mean(dim=-1)
        s, beta = square.sqrt(), (x * y).mean(dim=-1) / square
        predicted, _ = reachability.predicted_end_point(l0, P0, s, beta)
        shape = (self.replicates, len(self.starts))
        replicate = torch.arange(self.replicates).unsqueeze(-1).expand(shape)
        start = {"replicate": replicate, "l0": l0.expand(shape), "P0": P0.expand(shape)}
        return table(**start, l=course.l[-1], predicted=predicted.ravel(), inverse_root=(1 / s).expand(shape))


@dataclass(frozen=True, kw_only=True)
class Structure(Experiment):
    """OLS-10: does training the whole matrix L find the whitening map? Only if rank B = p."""

    sizes: tuple[tuple[int, int], ...] = ((1, 1), (2, 1), (3, 1), (3, 2), (2, 2), (3, 3))
    n: int = 100
    epochs: int = 6000
    lr: float = 1e-2
    replicates: int = 64

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {}}

    def conditions(self) -> list[dict[str, Any]]:
        return [{"p": p, "m": m} for p, m in self.sizes]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        p, m = condition["p"], condition["m"]
        draw = stream(seed, "structure", p, m)
        X, _, B = random_regression(self.n, p, m, kappa=2.0, batch=(self.replicates,), generator=draw, dtype=dtype)
        L0 = 0.5 * random_rotation(p, batch=(self.replicates,), generator=draw, dtype=dtype)
        Y = X @ B  # no noise: the least-squares loss is zero
        trained = train_matrix(X, Y, L0, lr=self.lr, epochs=self.epochs)
        relative = trained.loss[-1] / (Y.square().sum(dim=(-2, -1)) / self.n)
        gap = trained.structure_gap[-1]
        return table(replicate=range(self.replicates), rank=min(p, m), relative_loss=relative, structure_gap=gap)


@dataclass(frozen=True, kw_only=True)
class RandomTasks(Experiment):
    """OLS-11: the best fixed layer on random tasks by regression, against Gamma*, and its measured risk."""

    p: int = 5
    N: int = 20
    num_tasks: int = 16384
    replicates: int = 24

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {}}

    def conditions(self) -> list[dict[str, Any]]:
        return [{"spectrum": name} for name in ("identity", "geometric")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        Lambda = spectrum(condition["spectrum"], self.p, dtype)
        draw = stream(seed, "random tasks", condition["spectrum"])
        tasks = random_tasks(Lambda, self.N, batch=(self.replicates, self.num_tasks), generator=draw)
        best = theory.optimal_linear_attention(Lambda, self.N)
        fitted = regress_linear_attention(tasks)
        predicted = torch.einsum("...i,ij,...j->...", tasks.x_query, best.Gamma, context_moment(tasks))
        return table(
            replicate=range(self.replicates),
            alignment=(fitted * best.Gamma).sum(dim=(-2, -1)) / best.Gamma.square().sum(),
            risk=(predicted - tasks.y_query).square().mean(dim=-1),
            optimal_risk=float(best.risk),
        )


def spectrum(name: str, p: int, dtype: torch.dtype) -> Tensor:
    """The covariance of the random tasks: the identity, or eigenvalues from 0.25 to 4 in a geometric row."""
    return (
        torch.diag(torch.logspace(-2, 2, p, base=2.0, dtype=dtype))
        if name == "geometric"
        else torch.eye(p, dtype=dtype)
    )


@dataclass(frozen=True, kw_only=True)
class LearnedInContext(Experiment):
    """OLS-12: one linear-attention layer trained on fresh random tasks, its exact risk beside that of Gamma*."""

    p: int = 5
    N: int = 20
    steps: int = 20_000
    num_tasks: int = 64
    replicates: int = 80

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {"steps": 300, "replicates": 8}, "cpu": {}}

    def conditions(self) -> list[dict[str, Any]]:
        return [
            {"spectrum": name, "start": start} for name in ("identity", "geometric") for start in ("random", "aligned")
        ]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        Lambda = spectrum(condition["spectrum"], self.p, dtype)
        draw = stream(seed, "learned in context", condition["spectrum"])
        sizes = {"num_tasks": self.num_tasks, "steps": self.steps, "batch": (self.replicates,)}
        trained = train_linear_attention(Lambda, self.N, start=condition["start"], generator=draw, **sizes)
        best = theory.optimal_linear_attention(Lambda, self.N)
        risk = theory.linear_attention_risk(trained.Gamma, Lambda, self.N)
        return table(
            replicate=range(self.replicates),
            loss=trained.loss[-1],  # of the whole layer, over the fresh tasks of the last hundredth of the steps
            risk=risk,  # exact, of its Gamma alone
            rest=trained.rest,
            optimal_risk=float(best.risk),
        )


@dataclass(frozen=True, kw_only=True)
class Dial(Experiment):
    """OLS-13: distance of the softmax read-out from least squares with intercept, as beta goes to 0."""

    betas: tuple[float, ...] = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
    n: int = 60
    p: int = 3
    replicates: int = 32

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {}}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        draw = stream(seed, "dial")
        X, Y, _ = random_regression(self.n, self.p, batch=(self.replicates,), generator=draw, dtype=dtype)
        X, Y = (X + 1.0).to(device), (Y + 0.5 * (X**2).sum(dim=-1, keepdim=True)).to(device)  # skewed: E_1 is not 0
        target = theory.ols_with_intercept(X, X, Y)
        errors = [norm(softmax_read_out(X, X, Y, beta) - target) / norm(target) for beta in self.betas]
        tables = [
            table(replicate=range(self.replicates), beta=beta, error=error)
            for beta, error in zip(self.betas, errors, strict=True)
        ]
        return pd.concat(tables, ignore_index=True)


@dataclass(frozen=True, kw_only=True)
class DialCurves(Experiment):
    """The dial on one small data set: prediction at every x for beta from 1e-3 to 1e3, and affine least squares."""

    n: int = 24
    points: int = 121
    num_betas: int = 25

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {}}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        draw = stream(seed, "dial curves")
        X = torch.randn(self.n, 1, generator=draw, dtype=dtype).sort(dim=0).values
        Y = torch.sin(2 * X) + 0.6 * X + 0.15 * torch.randn(self.n, 1, generator=draw, dtype=dtype)
        grid = torch.linspace(-2.6, 2.6, self.points, dtype=dtype).unsqueeze(-1)
        tables = [table(curve="data", beta=np.nan, x=X, y=Y)]
        tables.append(table(curve="least squares", beta=np.nan, x=grid, y=theory.ols_with_intercept(grid, X, Y)))
        for beta in np.geomspace(1e-3, 1e3, self.num_betas):
            tables.append(table(curve="softmax", beta=beta, x=grid, y=softmax_regression(grid, X, Y, beta)))
            tables.append(table(curve="read-out", beta=beta, x=grid, y=softmax_read_out(grid, X, Y, beta)))
        return pd.concat(tables, ignore_index=True)


EXPERIMENTS = (
    *(Identities, Degenerate, BatchError, Shift, Reachability, Courses, TrainedEndPoint, Structure),
    *(RandomTasks, LearnedInContext, Dial, DialCurves),
    *memory.EXPERIMENTS,
)
