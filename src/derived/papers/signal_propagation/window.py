"""The window of small alpha: plain exponential growth while alpha^2 q << 1.

column       meaning
low, high    bounds on ln J^{b,0} = log_J
crossover    the first block with alpha^2 p >= 1
predicted    b_*, what the formula says of it
"""

from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.claims import between, computed, on_page
from derived.lab.experiment import Experiment, rows
from derived.lab.measure import smallest
from derived.lab.plot import DASHED, largest, panel_label, shades
from derived.lab.stats import Estimate

from .model import asymptotics, kernels
from .model.meanfield import propagate


@dataclass(frozen=True, kw_only=True)
class Window(Experiment):
    """SP-14: Derf with small alpha, many tokens, ViT-Base variances; ``log_J`` between its two bounds.

    Rows: alpha, b, q, p, log_J, low, high; ``crossover``, where alpha^2 p reaches 1, and ``predicted``.
    """

    alphas: tuple[float, ...] = (0.02, 0.05, 0.1, 0.2)
    q0: float = 1.0
    p0: float = 0.2
    points: int = 40

    tiers: ClassVar = {"ci": {"alphas": (0.05, 0.1, 0.2)}, "cpu": {}}
    tiny: ClassVar = {"alphas": (0.05,)}
    deterministic: ClassVar = {"q": 1e-8, "p": 1e-8, "log_J": 1e-7}

    def conditions(self) -> list[dict]:
        return [{"alpha": alpha} for alpha in self.alphas]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        alpha = condition["alpha"]
        a, s = asymptotics.vit_variances()
        predicted = float(asymptotics.crossover_depth(alpha, self.p0, a, s))
        depth = int(1.6 * predicted)
        kernel = kernels.ErfKernel(alpha)
        trajectory = propagate(self.q0, self.p0, kernel=kernel, a=a, s=s, n=np.inf, depth=depth)
        at = np.unique(np.geomspace(1, depth, self.points).round().astype(int))
        slope = s / 2 * 4 * alpha**2 / np.pi
        return rows(
            {"b": at},
            {
                "q": trajectory.q[at],
                "p": trajectory.p[at],
                "log_J": trajectory.log_J_forward[at],
                "low": at * np.log1p(slope / np.sqrt(1 + 4 * alpha**2 * trajectory.q[at])),
                "high": at * np.log1p(slope),
                "crossover": int(np.argmax(alpha**2 * trajectory.p >= 1)),
                "predicted": predicted,
            },
        )


# Claims: The window of small alpha, where it ends (SP-14.b and d), and what check cells decide (SP-1, 5, 12.a, 14.a).


def crossover(rows: pd.DataFrame) -> Estimate:
    """Block where alpha^2 p reaches 1 over the formula for b_*, at the smallest alpha; n counts the values of alpha."""
    first = rows[rows["alpha"] == rows["alpha"].min()].iloc[0]
    return Estimate(float(first["crossover"] / first["predicted"]), rows["alpha"].nunique())


BOTH = {"experiment": Window}
END = r"$b_*=\ln\frac1{\alpha^2p^0}/\ln[(1+\frac s2\ell)(1+a\ell)]$, $\ell=4\alpha^2/\pi$"
REACHED = r"block where $\alpha^2p=1$ over $b_*$ at the smallest $\alpha$"

CLAIMS = (
    computed(
        "SP-14.b",
        r"While $\alpha^2q\ll1$ the growth in a Derf network is exponential: "
        r"$J^{b,0}\approx(1+\frac s2\frac{4\alpha^2}\pi)^b$.",
        measure=smallest("log_J / high", "alpha ** 2 * q <= 0.005"),
        quantity=r"smallest ratio of $\ln J^{b,0}$ to its law wherever $\alpha^2q\le0.005$",
        accept=between(0.98, 1.0 + 1e-9, "[0.98, 1+10^{-9}]"),
        comparison=("beyond the window", smallest("log_J / high", "alpha ** 2 * q > 0.1")),
        control="the law has no free constant, and a network without growth has the ratio zero",
        unit="ratio to the law",
        source="repo",
        where="blog",
        **BOTH,
    ),
    computed(
        "SP-14.d",
        r"At the smallest $\alpha$ the window of exponential growth in a Derf network ends after block "
        f"{END}, less than a quarter late.",
        measure=crossover,
        quantity=REACHED,
        accept=between(1.0, 1.25),
        comparison=("the largest $\\alpha$", lambda rows: crossover(rows[rows["alpha"] == rows["alpha"].max()])),
        control="the formula has no free constant, and no network without a window has an end of it",
        horizon=r"$\alpha=0.02$",
        unit="ratio to the formula",
        **BOTH,
    ),
    on_page("SP-1", source="repo", where="code", paper_value="equality"),
    on_page("SP-5"),
    on_page("SP-12.a", where="a tempting reading; the order of limits was not visible"),
    on_page("SP-14.a"),
)


# Figures: The window of small alpha.


def small_alpha(rows: pd.DataFrame) -> Figure:
    """ln J over its exponential law against b / b_*; rows of ``Window``."""
    rows = largest(rows)
    figure, ax = plt.subplots(figsize=(6.0, 3.2))
    alphas, words = sorted(rows["alpha"].unique()), []
    for alpha, color in zip(alphas, shades(len(alphas)), strict=True):
        part = rows[rows["alpha"] == alpha].sort_values("b")
        x = part["b"] / part["predicted"]
        ax.plot(x, part["log_J"] / part["high"], color=color, label=f"α = {alpha:g}")
        ratio = float((part["crossover"] / part["predicted"]).iloc[0])
        ax.axvline(ratio, color=color, linewidth=0.8, linestyle=":")
        words.append(f"{ratio:.2f} for {alpha:g}")
    ax.axhline(1, **DASHED)
    ax.legend(fontsize=8)
    ax.set(xlabel=r"$b/b_*$", ylabel=r"$\ln J^{b,0}$ over $b\,\ln(1+\frac{s}{2}\ell)$", xlim=(0, 1.6), ylim=(0, 1.05))
    panel_label(ax, r"Well below $b_*$ growth is exponential, the closer the smaller $\alpha$")
    figure.set_label(
        f"Logarithm of J over its exponential law against depth over b*: near 1 in the window, falling below it after. "
        f"The window ends at b/b* = {', '.join(words)}."
    )
    return figure
