"""Training: does gradient descent find the least-squares weights? (OLS-9, OLS-10)

l, P           the scalar weight and the read-out at the end
inverse_root   1/s, the weight that whitens
structure_gap  ||L^T Sigma L - I||_F / sqrt(p): the inverse is found iff it is 0
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd
import torch

from derived.lab.experiment import Experiment
from derived.lab.rng import stream

from ..data.problems import paper_problem, random_regression, random_rotation
from ..model import reachability
from ..model.training import train_matrix, train_scalar
from .tables import table


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
