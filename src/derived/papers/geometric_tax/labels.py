"""The length of the curve that cross-entropy draws (GT-4), for the figure of the staircase and the explorer.

symbol   name     meaning                                                       axes
K        K        labels                                                        scalar
sigma    sigma    width of a blurred label, as a share of the range             scalar
l        length   Fisher-Rao length of m -> p(.|m)                              scalar
"""

from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.claims import on_page
from derived.lab.experiment import Experiment, rows
from derived.lab.plot import DASHED, beside, largest, panel_label, shades

from .model.labels import bin_law, fisher_rao_length, path_length


@dataclass(frozen=True, kw_only=True)
class FisherRao(Experiment):
    """GT-4: l(K, sigma) by quadrature. Rows: K, sigma, length, steps_cap = pi (K - 1)."""

    codes: tuple[int, ...] = (2, 3, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
    sigmas: tuple[float, ...] = (0.0005, 0.002, 0.005, 0.02, 0.05, 0.2)

    tiny: ClassVar = {"codes": (2, 5, 40), "sigmas": (0.002, 0.02, 0.2)}
    deterministic: ClassVar = {"length": 1e-6}

    def conditions(self) -> list[dict]:
        return [{"sigma": sigma} for sigma in self.sigmas]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        lengths = [fisher_rao_length(K, condition["sigma"]) for K in self.codes]
        return pd.DataFrame({"K": self.codes, "length": lengths, "steps_cap": [np.pi * (K - 1) for K in self.codes]})


@dataclass(frozen=True, kw_only=True)
class LabelPaths(Experiment):
    """The explorer: the distribution of the bin at places m, and how long its path is up to there. Rows: sigma, K, m,
    bin, p, path."""

    codes: tuple[int, ...] = (2, 16, 64)
    sigmas: tuple[float, ...] = (0.002, 0.005, 0.02, 0.1)
    places: int = 181

    tiny: ClassVar = {"codes": (4, 16), "sigmas": (0.005, 0.1)}
    deterministic: ClassVar = {"p": 1e-9, "path": 1e-9}

    def conditions(self) -> list[dict]:
        return [{"sigma": sigma, "K": K} for sigma in self.sigmas for K in self.codes]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        sigma, K, m = condition["sigma"], condition["K"], np.linspace(0, 1, self.places)
        columns = {"p": bin_law(m, K, sigma), "path": path_length(m, K, sigma)[:, None]}
        return rows({"m": m.tolist(), "bin": range(K)}, columns)


# Claims: decided by check cells on the page.

CLAIMS = (
    on_page("GT-4.a", control="A theorem on one family: every K and sigma is a trial, and both ends are reached."),
)

EXPERIMENTS = (FisherRao, LabelPaths)


# Figures: How long the path of ideal predictions is: rows in, a figure with its alt text as label out.
#
# mark           meaning
# line, marker   Fisher-Rao length at one width of the label, computed by quadrature
# dashed line    the bound pi (K - 1)


def staircase(rows: pd.DataFrame) -> Figure:
    """Length against the number of bins, one line per width; rows of ``FisherRao``."""
    table = largest(rows).sort_values("K")
    figure, ax = plt.subplots(figsize=(5.2, 3.5))
    widths = sorted(table["sigma"].unique())
    for sigma, color in zip(widths, shades(len(widths)), strict=True):
        part = table[table["sigma"] == sigma]
        ax.plot(part["K"], part["length"], "o-", color=color, markersize=3)
        beside(ax, part["K"].iloc[-1], part["length"].iloc[-1], f"$\\sigma$ = {sigma:g}", color, fontsize=9)
    bound = table.drop_duplicates("K")
    ax.plot(bound["K"], bound["steps_cap"], **DASHED)
    first = bound.iloc[len(bound) // 2]
    beside(ax, first["K"], first["steps_cap"], r"$\pi(K-1)$", shift=(-12, 8), ha="right")
    ax.set(xscale="log", yscale="log", xlabel="bins $K$", ylabel=r"length $\Lambda$")
    ax.set_xlim(bound["K"].min() / 1.2, bound["K"].max() * 5)
    panel_label(ax, "Finer bins lengthen the path,\nuntil the label's width $\\sigma$ caps it")
    ends = table.groupby("sigma")["length"].last()
    said = ", ".join(f"{length:.4g} at sigma {sigma:g}" for sigma, length in ends.items())
    figure.set_label(
        f"Fisher-Rao length of the path of predictions against the number of bins, on logarithmic axes: each line "
        f"follows pi times K less one, and levels off. With {table['K'].max()} bins: {said}."
    )
    return figure
