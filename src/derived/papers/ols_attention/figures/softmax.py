"""The softmax layer: its output and its rescaled read-out as beta grows."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, INK, MUTED, SEQUENTIAL, THEORY, beside, panel_label, points

from .words import fitted_slope, runs_shown, shown


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
