"""The recurrences carried far: power law, stretched exponential, and the order of the limits.

column            meaning
attn_mult         factor on W_V and W_O; 0 switches attention off
tokens            n; 0 stands for infinitely many
log_J             ln J^{b,0}
log_difference    ln(q - p)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from derived.lab.experiment import Experiment

from ..model import asymptotics
from ..model.kernels import ErfKernel, LayerNormKernel, kernel_of
from ..model.meanfield import propagate

INFINITE = 0  # the row's name of n = infinity: JSON and parquet keep an integer column


def tokens_of(n: int) -> float:
    """The number of tokens as the recurrences take it."""
    return np.inf if n == INFINITE else n


@dataclass(frozen=True, kw_only=True)
class Regimes(Experiment):
    """SP-6 to SP-12: the recurrences carried far, ViT-Base variances with W_V and W_O multiplied by attn_mult.

    Rows: norm, alpha, attn_mult (0: no attention), tokens (0: infinitely many), b, q, rho, log_J, log_difference.
    """

    depth: int = 100_000
    depth_tanh: int = 100_000
    points: int = 81
    q0: float = 1.0
    p0: float = 0.2
    attn_mults: tuple[float, ...] = (0.0, 1.0, 2.0)
    tokens: tuple[int, ...] = (4, 16, 64, 256, INFINITE)
    alphas: tuple[float, ...] = (0.5, 1.0)

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {"depth": 30_000, "depth_tanh": 3000}, "cpu": {}}
    deterministic: ClassVar[Mapping[str, float]] = {"q": 1e-8, "rho": 1e-6, "log_J": 1e-6}

    def conditions(self) -> list[dict[str, Any]]:
        return [{"norm": norm} for norm in ("layernorm", "erf", "tanh")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        norm = condition["norm"]
        depth = self.depth_tanh if norm == "tanh" else self.depth
        tokens = self.tokens if norm == "layernorm" else (INFINITE,)
        alphas = (1.0,) if norm in ("layernorm", "tanh") else self.alphas
        mults = self.attn_mults if norm != "tanh" else self.attn_mults[:2]
        grid = pd.MultiIndex.from_product([alphas, mults, tokens], names=["alpha", "attn_mult", "tokens"]).to_frame()
        a, s = asymptotics.vit_variances(grid["attn_mult"].to_numpy())
        n = np.array([tokens_of(each) for each in grid["tokens"]])
        kernel = kernel_of(norm, grid["alpha"].to_numpy())
        trajectory = propagate(self.q0, self.p0, kernel=kernel, a=a, s=s, n=n, depth=depth)
        at = np.unique(np.geomspace(4, depth, self.points).round().astype(int))
        columns = {"q": trajectory.q, "rho": trajectory.rho, "log_J": trajectory.log_J_forward}
        columns["log_difference"] = np.log(trajectory.q - trajectory.p)
        rows = grid.loc[grid.index.repeat(len(at))].reset_index(drop=True)
        return rows.assign(b=np.tile(at, len(grid)), **{k: v[:, at].ravel() for k, v in columns.items()})


def with_laws(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``Regimes`` with the constants of their laws for many tokens: ``zeta``, ``c_star`` and ``lam``.

    ``lam`` is NaN after LayerNorm, where no stretched exponential is.
    """
    a, s = asymptotics.vit_variances(rows["attn_mult"].to_numpy())
    lam = np.full(len(rows), np.nan)
    for norm in ("erf", "tanh"):
        of_norm = (rows["norm"] == norm).to_numpy()
        C = asymptotics.stretch_constant(norm, rows.loc[of_norm, "alpha"].to_numpy())
        lam[of_norm] = asymptotics.lambda_stretched(a[of_norm], s, C)
    return rows.assign(zeta=asymptotics.zeta(a, s), c_star=asymptotics.overlap_fixed_point(a, s), lam=lam)


# The explorer's sliders: alpha, sigma_O sigma_V, sigma_2 sigma_1, n; and the depths.
AXES = {"alpha": (0.3, 0.6, 1.0, 1.5), "attn": (0.0, 0.31, 1.23), "mlp": (0.3, 0.61, 1.2), "tokens": (4, 16, 197)}
DEPTHS = (12, 36, 128)


def recurrence_grid(q0: float = 1.0, p0: float = 0.2) -> pd.DataFrame:
    """The recurrences over all slider positions; rows: the names of ``AXES``, depth, norm, b, q, rho, log_J."""
    grid = pd.MultiIndex.from_product(AXES.values(), names=AXES).to_frame(index=False)
    sizes = {"a": grid["attn"].to_numpy() ** 2, "s": grid["mlp"].to_numpy() ** 2, "n": grid["tokens"].to_numpy()}
    tables = []
    for depth in DEPTHS:
        blocks = np.unique(np.linspace(0, depth, 15).round().astype(int))
        for norm, kernel in (("layernorm", LayerNormKernel()), ("erf", ErfKernel(grid["alpha"].to_numpy()))):
            trajectory = propagate(q0, p0, kernel=kernel, depth=depth, **sizes)
            columns = {"q": trajectory.q, "rho": trajectory.rho, "log_J": trajectory.log_J_backward}
            rows = grid.loc[grid.index.repeat(len(blocks))].assign(depth=depth, norm=norm, b=np.tile(blocks, len(grid)))
            tables.append(rows.assign(**{name: value[:, blocks].ravel() for name, value in columns.items()}))
    return pd.concat(tables, ignore_index=True)
