"""The softmax layer: from least squares at beta = 0 to look-up as beta grows (OLS-13).

beta  inverse temperature of softmax
"""

from dataclasses import dataclass

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from torch.linalg import matrix_norm as norm

from derived.lab import measure
from derived.lab.claims import statistic, within
from derived.lab.experiment import Experiment, rows
from derived.lab.plot import BLUE, INK, MUTED, SEQUENTIAL, THEORY, beside, panel_label, points
from derived.lab.rng import stream

from .data.problems import random_regression
from .model import theory
from .model.mechanism import softmax_read_out, softmax_regression
from .words import fitted_slope, runs_shown, shown


@dataclass(frozen=True, kw_only=True)
class Dial(Experiment):
    """OLS-13: distance of the softmax read-out from least squares with intercept, as beta goes to 0."""

    betas: tuple[float, ...] = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
    n: int = 60
    p: int = 3
    replicates: int = 32

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        generator = stream(seed, "dial")
        X, Y, _ = random_regression(self.n, self.p, batch=(self.replicates,), generator=generator, dtype=dtype)
        X, Y = (X + 1.0).to(device), (Y + 0.5 * (X**2).sum(dim=-1, keepdim=True)).to(device)  # skewed: E_1 is not 0
        target = theory.ols_with_intercept(X, X, Y)
        errors = [norm(softmax_read_out(X, X, Y, beta) - target) / norm(target) for beta in self.betas]
        without_intercept = X @ theory.ols_coefficients(X, Y, method="full rank")
        missed = norm(without_intercept - target) / norm(target)
        columns = {"error": torch.stack(errors), "without_intercept": missed.expand(len(self.betas), -1)}
        return rows({"beta": self.betas, "replicate": range(self.replicates)}, columns)


@dataclass(frozen=True, kw_only=True)
class DialCurves(Experiment):
    """The dial on one small data set: prediction at every x for beta from 1e-3 to 1e3, and affine least squares."""

    n: int = 24
    points: int = 121
    num_betas: int = 25

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        generator = stream(seed, "dial curves")
        X = torch.randn(self.n, 1, generator=generator, dtype=dtype).sort(dim=0).values
        Y = torch.sin(2 * X) + 0.6 * X + 0.15 * torch.randn(self.n, 1, generator=generator, dtype=dtype)
        grid = torch.linspace(-2.6, 2.6, self.points, dtype=dtype).unsqueeze(-1)
        fit, betas = theory.ols_with_intercept(grid, X, Y), np.geomspace(1e-3, 1e3, self.num_betas)
        tables = [rows({"curve": "data", "x": X[:, 0]}, {"beta": np.nan, "y": Y[:, 0]})]
        tables.append(rows({"curve": "least squares", "x": grid[:, 0]}, {"beta": np.nan, "y": fit[:, 0]}))
        for curve, predict in (("softmax", softmax_regression), ("read-out", softmax_read_out)):
            y = torch.stack([predict(grid, X, Y, beta)[:, 0] for beta in betas])
            tables.append(rows({"curve": curve, "beta": betas, "x": grid[:, 0]}, {"y": y}))
        return pd.concat(tables, ignore_index=True)


# Claims: The ledger of the softmax layer: what it does as beta goes to 0 (OLS-13).

CLAIMS = (
    statistic(
        "OLS-13",
        r"As $\beta\to0$ the read-out $\bar y+\frac1\beta(\text{softmax}-\bar y)$ tends to least squares with "
        r"intercept, with an error of order $\beta$.",
        Dial,
        measure.power("error", "beta"),
        r"slope of $\ln$ error against $\ln\beta$",
        within(1, 0.05),
        control=measure.power("without_intercept", "beta"),
        horizon=r"$\beta=10^{-4}$",
        unit="power of β",
    ),
)


# Figures: The softmax layer: its output and its rescaled read-out as beta grows.


def dial(rows: pd.DataFrame) -> Figure:
    """The rescaled read-out and the softmax output along x as beta grows; rows of ``DialCurves``."""
    rows = rows[~rows["recorded"]]
    data, line = rows[rows["curve"] == "data"], rows[rows["curve"] == "least squares"]
    betas = np.sort(rows["beta"].dropna().unique())
    norm = LogNorm(betas[0], betas[-1])
    figure, axes = plt.subplots(1, 2, figsize=(6.6, 3.1), sharey=True)
    panels = (
        ("read-out", r"rescaled: the line at small $\beta$"),
        ("softmax", r"softmax output: a step at large $\beta$"),
    )
    for ax, (curve, words), chosen in zip(
        axes, panels, (betas[betas <= 4][::2], betas[betas > 0.05][::2]), strict=True
    ):
        for beta in chosen:
            one = rows[(rows["curve"] == curve) & (rows["beta"] == beta)]
            ax.plot(one["x"], one["y"], color=matplotlib.colormaps[SEQUENTIAL](norm(beta)), linewidth=1.2)
        ax.plot(line["x"], line["y"], **THEORY)
        ax.plot(data["x"], data["y"], "o", color=MUTED, markersize=3.5, zorder=3)
        ax.set(xlabel="query $x$", ylim=(data["y"].min() - 0.5, data["y"].max() + 0.5))
        panel_label(ax, words)
    axes[0].set_ylabel("prediction $y$")
    figure.colorbar(matplotlib.cm.ScalarMappable(norm, SEQUENTIAL), ax=axes, label=r"$\beta$", pad=0.02, aspect=30)
    first = rows[(rows["curve"] == "read-out") & (rows["beta"] == betas[0])]["y"].to_numpy()
    last = rows[(rows["curve"] == "softmax") & (rows["beta"] == betas[-1])]["y"]
    figure.set_label(
        f"Predictions along x. At beta = {betas[0]:g} the rescaled read-out is within "
        f"{np.abs(first - line['y'].to_numpy()).max():.1e} of the least-squares line. As beta grows the softmax output "
        f"bends, and at beta = {betas[-1]:g} it steps from {last.iloc[0]:.2f} to {last.iloc[-1]:.2f}, the responses of "
        f"the two extreme points."
    )
    return figure


def dial_error(rows: pd.DataFrame) -> Figure:
    """Distance of the softmax read-out from affine least squares against beta; rows of ``Dial``."""
    figure, ax = plt.subplots(figsize=(5.4, 3.2))
    drawn = shown(points(ax, rows, "beta", "error", BLUE))
    low, high = drawn.iloc[0], drawn.iloc[-1]
    ax.plot(drawn["beta"], low["value"] * drawn["beta"] / low["beta"], **THEORY)
    beside(ax, high["beta"], high["value"], "slope 1", INK, (-12, 8), ha="right")
    ax.set(xscale="log", yscale="log", xlabel=r"inverse temperature $\beta$", ylabel="distance from least squares")
    slope = fitted_slope(np.log(drawn["beta"]), np.log(drawn["value"]))
    figure.set_label(
        f"Relative distance from least squares with intercept against beta on logarithmic axes, "
        f"{runs_shown(rows)}: a line of slope {slope:.3f} from {low['value']:.1e} to {high['value']:.1e}."
    )
    return figure
