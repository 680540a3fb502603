"""Figures of heads with a mean, from the ODE to the SDE."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, DASHED, INK, SEQUENTIAL, SKY, THEORY, beside, largest, panel_label


def heads_to_ode(rows: pd.DataFrame) -> Figure:
    """Mean overlap over the draws of the weights, for growing numbers of heads; rows of ``Interpolation``."""
    rows = largest(rows)
    rows = rows[rows["kind"] == "heads"]
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.0))
    sns.violinplot(rows, x="H", y="m", ax=axes[0], color=SKY, inner=None, linewidth=0.6, cut=0)
    flow = rows["m_ode"].iloc[0]
    axes[0].axhline(flow, **THEORY)
    beside(axes[0], rows["H"].nunique() - 1, flow, "flow of self-attention", INK, (0, 8), ha="right")
    variance = rows.groupby("H")["m"].var()
    axes[1].plot(variance.index, variance, "o", color=BLUE)
    axes[1].plot(variance.index, variance.iloc[-1] * variance.index[-1] / variance.index, **DASHED)
    axes[0].set(xlabel="heads $H$", ylabel="mean overlap $m$")
    axes[1].set(xscale="log", yscale="log", xlabel="heads $H$", ylabel="variance of $m$")
    panel_label(axes[0], "More heads, less scatter")
    panel_label(axes[1], "the variance falls like $1/H$")
    words = ", ".join(f"{v:.2g} at {H}" for H, v in variance.items())
    figure.set_label(f"Left: distribution of the mean overlap by number of heads. Right: its variance: {words}.")
    return figure


def phase_diagram(rows: pd.DataFrame, longest: float = 8.0) -> Figure:
    """Distance to the ODE over step and depth, with the line where the noise counts; rows of ``Interpolation``.

    The distance is that of ln(1 - m), which does not fade when all is collapsed; times eta L beyond ``longest``, where
    nothing is left to measure, are left out.
    """
    rows = largest(rows)
    rows = rows[(rows["kind"] == "phase") & (rows["eta"] * rows["L"] <= longest)]
    distance = (np.log1p(-rows["m"]) - np.log1p(-rows["m_ode"])).abs()
    error = distance.groupby([rows["eta"], rows["L"]]).mean().reset_index(name="distance")
    H = int(rows["H"].iloc[0])
    figure, ax = plt.subplots(figsize=(6.2, 3.9))
    dots = ax.scatter(error["eta"], error["L"], c=error["distance"], cmap=SEQUENTIAL, s=80, zorder=3)
    figure.colorbar(dots, ax=ax, label=r"distance to the ODE, in $\ln(1-m)$")
    low, high = error["L"].min() / 1.6, error["L"].max() * 1.6
    right = error["eta"].max() * 3.5
    eta = np.geomspace(error["eta"].min() / 1.5, right, 200)
    ax.plot(eta, H / eta**2, **DASHED)
    middle = np.sqrt(low * high)
    beside(ax, np.sqrt(H / middle), middle, "noise counts:\n" + r"$\eta^2L/H=1$", INK, (5, 8))
    panel_label(ax, "Yellow: far from the flow, where the noise counts")
    ax.set(
        xscale="log", yscale="log", xlabel=r"step $\eta$", ylabel="layers $L$", ylim=(low, high), xlim=(eta[0], right)
    )
    corner = error.sort_values("distance").iloc[[0, -1]]
    words = "; ".join(
        f"{d:.3f} at step {e:g} and {L:g} layers" for e, L, d in corner[["eta", "L", "distance"]].to_numpy()
    )
    figure.set_label(f"Distance to the ODE over step and number of layers, {H} heads. Least and largest: {words}.")
    return figure
