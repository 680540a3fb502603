"""The softmax layer: from least squares at beta = 0 to look-up as beta grows, and its explorer (OLS-13).

beta  inverse temperature of softmax, a slider that explorer.js turns in the browser
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import torch
from torch.linalg import matrix_norm as norm

from derived.lab import measure
from derived.lab.claims import statistic, within
from derived.lab.experiment import Experiment, rows
from derived.lab.explorer import computed, label, stops
from derived.lab.rng import stream

from .data.problems import random_regression
from .model import theory
from .model.mechanism import softmax_read_out, softmax_regression


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


EXPERIMENTS = (Dial, DialCurves)

# Claims ---------------------------------------------------------------------------------------------------------------

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

# Explorer -------------------------------------------------------------------------------------------------------------

BETAS = stops(10 ** (np.arange(-60, 61) / 20))


def dial_explorer(rows: pd.DataFrame) -> go.Figure:
    """The beta dial as a Plotly figure with one slider; its ``layout.meta`` holds the alt text; ``DialCurves``."""
    rows = rows[~rows["recorded"]]
    data, line = rows[rows["curve"] == "data"], rows[rows["curve"] == "least squares"]
    betas = rows["beta"].dropna().unique()
    start = betas[np.argmin(np.abs(np.log(betas) - np.log(0.3)))]
    first = rows[rows["beta"] == start]
    shown = {"read-out": ("rescaled read-out", 5), "softmax": ("softmax output", 3)}
    curves = [
        go.Scatter(**_places(first[first["curve"] == curve]), name=name, line={"width": width})
        for curve, (name, width) in shown.items()
    ]
    fixed = [
        go.Scatter(**_places(line), name="least squares", line={"dash": "dot"}),
        go.Scatter(**_places(data), name="data", mode="markers", marker={"size": 7}),
    ]
    figure = go.Figure([*curves, *fixed])
    figure.update_layout(
        height=440,
        xaxis_title="query x",
        yaxis={"title": "prediction y", "range": [float(data["y"].min()) - 0.6, float(data["y"].max()) + 0.6]},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"},
        meta={
            "alt": f"A slider moves beta from {BETAS[0]:g} to {BETAS[-1]:g}. The rescaled read-out starts as the "
            f"least-squares line through {len(data)} points. The softmax output starts flat at their mean, bends "
            f"through the points and ends as a step between the two extreme ones."
        },
    )
    given = {"X": data["x"].tolist(), "Y": data["y"].tolist(), "places": line["x"].tolist()}
    script = Path(__file__).with_name("explorer.js")
    return computed(figure, script, {"β = ": BETAS}, start=(float(label(start)),), **given)


def _places(rows: pd.DataFrame) -> dict[str, list[float]]:
    return {name: rows[name].round(4).tolist() for name in "xy"}
