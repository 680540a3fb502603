"""The recurrences carried far: power law, stretched exponential, the order of the limits, and where Derf overtakes.

column            meaning
attn_mult         factor on W_V and W_O; 0 switches attention off
tokens            n; 0 stands for infinitely many
log_J             ln J^{b,0}
log_difference    ln(q - p)
"""

from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np
import pandas as pd

from derived.lab.experiment import Experiment, rows

from ..model import asymptotics
from ..model.kernels import kernel_of
from ..model.meanfield import propagate

INFINITE = 0  # the row's name of n = infinity: JSON and parquet keep an integer column


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

    tiers: ClassVar = {"ci": {"depth": 30_000, "depth_tanh": 3000}, "cpu": {}}
    tiny: ClassVar = {"depth": 400, "depth_tanh": 400, "points": 40}
    deterministic: ClassVar = {"q": 1e-8, "rho": 1e-6, "log_J": 1e-6}

    def conditions(self) -> list[dict]:
        return [{"norm": norm} for norm in ("layernorm", "erf", "tanh")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        norm = condition["norm"]
        depth = self.depth_tanh if norm == "tanh" else self.depth
        tokens = self.tokens if norm == "layernorm" else (INFINITE,)
        alphas = (1.0,) if norm in ("layernorm", "tanh") else self.alphas
        mults = self.attn_mults if norm != "tanh" else self.attn_mults[:2]
        alpha, mult, number = (np.array(each) for each in zip(*product(alphas, mults, tokens), strict=True))
        a, s = asymptotics.vit_variances(mult)
        n = np.where(number == INFINITE, np.inf, number)
        kernel = kernel_of(norm, alpha)
        trajectory = propagate(self.q0, self.p0, kernel=kernel, a=a, s=s, n=n, depth=depth)
        at = np.unique(np.geomspace(4, depth, self.points).round().astype(int))
        columns = {"q": trajectory.q, "rho": trajectory.rho, "log_J": trajectory.log_J_forward}
        columns["log_difference"] = np.log(trajectory.q - trajectory.p)
        index = {("alpha", "attn_mult", "tokens"): (alpha, mult, number), "b": at}
        return rows(index, {name: values[:, at] for name, values in columns.items()})


@dataclass(frozen=True, kw_only=True)
class Crossing(Experiment):
    """SP-20 and SP-11.c: J^{b,0} of Derf beside pre-LayerNorm at ViT-Base's variances and number of tokens.

    Rows: norm, alpha, attention (0: a = 0), b, log_J, and log_pooled, of a gradient that all tokens share.
    """

    depth: int = 400
    tokens: int = 197
    alphas: tuple[float, ...] = (*np.geomspace(0.1, 2, 27).round(3).tolist(), 0.5, 1.0)
    q0: float = 1.0
    p0: float = 0.2

    tiny: ClassVar = {"depth": 60, "alphas": (0.5, 1.0, 2.0)}
    deterministic: ClassVar = {"log_J": 1e-8, "log_pooled": 1e-8}

    def conditions(self) -> list[dict]:
        return [{"norm": norm} for norm in ("layernorm", "erf")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        norm = condition["norm"]
        alphas = (1.0,) if norm == "layernorm" else sorted({*self.alphas})
        alpha, attention = (np.array(each) for each in zip(*product(alphas, (0, 1)), strict=True))
        a, s = asymptotics.vit_variances()
        sizes = {"a": a * attention, "s": s, "n": self.tokens, "depth": self.depth}
        course = propagate(self.q0, self.p0, kernel=kernel_of(norm, alpha), **sizes)
        at = np.unique(np.concatenate([np.arange(1, min(129, self.depth)), np.geomspace(1, self.depth, 60).round()]))
        at = at.astype(int)
        columns = {"log_J": course.log_J_forward, "log_pooled": np.log(course.J_forward + course.K_forward)}
        index = {("alpha", "attention"): (alpha, attention), "b": at}
        return rows(index, {name: values[:, at] for name, values in columns.items()})


def with_laws(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``Regimes`` with the constants of their laws for many tokens: ``zeta``, ``c_star``, ``mu`` and ``lam``.

    ``lam`` is NaN after LayerNorm, where no stretched exponential is.
    """
    a, s = asymptotics.vit_variances(table["attn_mult"].to_numpy())
    lam = np.full(len(table), np.nan)
    for norm in ("erf", "tanh"):
        of_norm = (table["norm"] == norm).to_numpy()
        C = asymptotics.stretch_constant(norm, table.loc[of_norm, "alpha"].to_numpy())
        lam[of_norm] = asymptotics.lambda_stretched(a[of_norm], s, C)
    overlap = {"c_star": asymptotics.overlap_fixed_point(a, s), "mu": asymptotics.relaxation_exponent(a, s)}
    return table.assign(zeta=asymptotics.zeta(a, s), lam=lam, **overlap)


# The explorer's sliders: alpha, sigma_O sigma_V, sigma_2 sigma_1, n; and the depths.
AXES = {"alpha": (0.3, 0.6, 1.0, 1.5), "attn": (0.0, 0.31, 1.23), "mlp": (0.3, 0.61, 1.2), "tokens": (4, 16, 197)}
DEPTHS = (12, 36, 128)


def recurrence_grid(q0: float = 1.0, p0: float = 0.2) -> pd.DataFrame:
    """The recurrences over all slider positions; rows: the names of ``AXES``, depth, norm, b, q, rho, log_J."""
    curves = dict(zip(AXES, (np.array(each) for each in zip(*product(*AXES.values()), strict=True)), strict=True))
    sizes = {"a": curves["attn"] ** 2, "s": curves["mlp"] ** 2, "n": curves["tokens"]}
    tables = []
    for depth in DEPTHS:
        b = np.unique(np.linspace(0, depth, 15).round().astype(int))
        for norm in ("layernorm", "erf"):
            trajectory = propagate(q0, p0, kernel=kernel_of(norm, curves["alpha"]), depth=depth, **sizes)
            columns = {"q": trajectory.q, "rho": trajectory.rho, "log_J": trajectory.log_J_backward}
            index = {tuple(curves): tuple(curves.values()), "depth": depth, "norm": norm, "b": b}
            tables.append(rows(index, {name: values[:, b] for name, values in columns.items()}))
    return pd.concat(tables, ignore_index=True)
