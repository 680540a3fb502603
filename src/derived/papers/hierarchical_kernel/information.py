"""Information through the levels, averages that become Gaussian, and memory: the rows of four figures."""

from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

from derived.lab.claims import on_page, unseen
from derived.lab.experiment import Experiment, rows
from derived.lab.plot import BLUE, GREEN, INK, MUTED, ORANGE, RED, THEORY, beside, panel_label, shades
from derived.lab.rng import stream

from .instances import normal
from .model.information import (
    LatentMixture,
    information_budget,
    line,
    mardia_kurtosis,
    mardia_rounding,
    mean_negentropy,
)
from .model.theory import block_variance, fgn_covariance, fgn_variance

EPS = torch.finfo(torch.float64).eps


def random_mixture(p: int, draw: torch.Generator, size: float) -> LatentMixture:
    """A latent-sign mixture in p dimensions with a random covariance; ``size`` scales the centres."""
    root = normal((p, p), draw)
    weight = 0.2 + 0.6 * float(torch.rand((), generator=draw))
    return LatentMixture(size * normal((p,), draw), root @ root.mT / p + 0.3 * torch.eye(p, dtype=root.dtype), weight)


@dataclass(frozen=True, kw_only=True)
class Budgets(Experiment):
    """HKT-7: the three terms for mixtures of two Gaussians through a pyramid of block means and a head of one row.

    Rows: size, instance, total, gaussian, resolution (sum), width, correction, gap, bound. Each is a calculation
    of its own, and ``gap`` what the identity leaves over. size 0 is jointly Gaussian.
    """

    instances: int = 16
    T: int = 8
    levels: int = 3
    sizes: tuple[float, ...] = (0.0, 1.0, 3.0)

    tiny: ClassVar = {"instances": 2}
    deterministic: ClassVar = {"total": 1e-7, "resolution": 1e-7}

    def conditions(self) -> list[dict]:
        return [{"size": size} for size in self.sizes]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        draw, budgets = stream(seed, "budgets"), []
        for instance in range(self.instances):  # entropies are integrals of one law each
            law = random_mixture(self.T + 1, draw, condition["size"])
            B = normal((1, self.T // 2 ** (self.levels - 1)), draw)
            budget = information_budget(law, self.T, self.levels, B)
            parts = {"total": budget.total, "gaussian": budget.gaussian, "resolution": sum(budget.resolution)}
            parts |= {"width": budget.head_width, "correction": budget.correction, "gap": abs(budget.gap)}
            budgets.append({"instance": instance, **parts, "bound": self._rounding(law)})
        return pd.DataFrame(budgets)

    def _rounding(self, law: LatentMixture) -> float:
        """Three entropies for each of L + 2 informations, three determinants for I_G.

        An entropy is a sum of n positive terms, at most ln 2 + 1.42 nats, and averaged over n points or fewer; its
        determinant and its separation are right to p^3 eps times the condition of the covariance (Cholesky).
        """
        n, p = len(line(law.separation)), len(law.m)
        condition = float(torch.linalg.eigvalsh(law.covariance)[-1] / torch.linalg.eigvalsh(law.Sigma)[0])
        return (3 * (self.levels + 2) + 3) * (2 * n * 2.2 + 2 * p**3 * condition) * EPS


@dataclass(frozen=True, kw_only=True)
class Averages(Experiment):
    """HKT-7: means of 2^l i.i.d. terms. Rows: law, level, value, predicted.

    "digits": excess kurtosis of the mean of uniform digits, from powers of convolution, against kappa / 2^l; "uniform"
    and "exponential": negentropy, against kappa^2 / (48 4^l) and gamma^2 / (12 2^l).
    """

    levels: int = 7

    deterministic: ClassVar = {"value": 1e-6}

    def conditions(self) -> list[dict]:
        return [{"law": law} for law in ("digits", "uniform", "exponential")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        levels, law = np.arange(self.levels), condition["law"]
        if law == "digits":
            values = self._kurtosis()
            predicted = values[0] / 2.0**levels
        else:
            values = [mean_negentropy(law, 2 ** int(level)) for level in levels]
            predicted = (1.2**2 / 48) / 4.0**levels if law == "uniform" else (2**2 / 12) / 2.0**levels
        return pd.DataFrame({"level": levels, "value": values, "predicted": predicted})

    def _kurtosis(self) -> list[float]:
        """Excess kurtosis of sums of 2^l uniform digits; a mean has the same."""
        kurtoses, law = [], np.full(10, 0.1)
        for _ in range(self.levels):
            x = np.arange(len(law)) - (len(law) - 1) / 2
            kurtoses.append(float(law @ x**4 / (law @ x**2) ** 2 - 3))
            law = np.convolve(law, law)
        return kurtoses


@dataclass(frozen=True, kw_only=True)
class SmallSamples(Experiment):
    """HKT-7: Mardia's statistic for non-normal data as the sample comes near the width.

    Rows: law, p, n, instance, b, z, bound (on the rounding of b).
    """

    widths: tuple[int, ...] = (5, 20)
    multiples: tuple[int, ...] = (1, 2, 5, 20, 50)  # n = p + 1 for the first, else this times p
    instances: int = 40

    tiny: ClassVar = {"instances": 3}

    def conditions(self) -> list[dict]:
        return [{"law": law, "p": p} for law in ("normal", "laplace", "uniform") for p in self.widths]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        p, draw, tables = condition["p"], stream(seed, "blindness", condition["law"], condition["p"]), []
        for multiple in self.multiples:
            n = p + 1 if multiple == 1 else multiple * p
            X = self._sample((self.instances, n, p), condition["law"], draw).to(device, dtype)
            columns = {**mardia_kurtosis(X)._asdict(), "bound": mardia_rounding(X)}
            tables.append(rows({"n": n, "instance": range(self.instances)}, columns))
        return pd.concat(tables, ignore_index=True)

    def _sample(self, shape: tuple[int, ...], law: str, draw: torch.Generator) -> torch.Tensor:
        if law == "normal":
            return normal(shape, draw)
        u = torch.rand(shape, generator=draw, dtype=torch.float64) - 0.5
        return u if law == "uniform" else -u.sign() * torch.log1p(-2 * u.abs())


def telling_samples(rows: pd.DataFrame) -> float:
    """The least n/p, at the largest width, from which on the bars b +- one deviation of any two laws are apart."""
    widest = rows[rows["p"] == rows["p"].max()]
    table = widest.groupby(["n", "law"])["b"].agg(["mean", "std"]).sort_values("mean").reset_index()
    separate = {}
    for n, part in table.groupby("n"):
        low, high = part["mean"] - part["std"], part["mean"] + part["std"]
        separate[n] = bool((low.iloc[1:].values > high.iloc[:-1]).all())
    enough = [n for n in sorted(separate) if all(separate[m] for m in separate if m >= n)]
    return float(enough[0] / widest["p"].iloc[0]) if enough else float("inf")


@dataclass(frozen=True, kw_only=True)
class Memory(Experiment):
    """HKT-8: the variance of means of 2^l terms, from the exact covariance. Rows: process, H, level, variance, closed.

    Fractional Gaussian noise, closed form 2^{-2 l (1 - H)}; "ar1" with coefficient H, whose closed form is the limit
    law (1 + H) / (1 - H) / 2^l.
    """

    hursts: tuple[float, ...] = (0.3, 0.5, 0.7, 0.9)
    coefficient: float = 0.5
    levels: int = 11

    deterministic: ClassVar = {"variance": 1e-7}

    def conditions(self) -> list[dict]:
        return [*({"process": "fgn", "H": H} for H in self.hursts), {"process": "ar1", "H": self.coefficient}]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        H, T, levels = condition["H"], 2 ** (self.levels - 1), range(self.levels)
        if condition["process"] == "fgn":
            covariance = fgn_covariance(T, H)
            closed = [fgn_variance(level, H) for level in levels]
        else:
            lag = torch.arange(T, dtype=torch.float64)
            covariance = H ** (lag.unsqueeze(-1) - lag).abs()
            closed = [(1 + H) / (1 - H) / 2**level for level in levels]
        variance = [float(block_variance(covariance, level)) for level in levels]
        return pd.DataFrame({"level": levels, "variance": variance, "closed": closed})


# Claims: The ledger of information through the levels, and of what dropping a level changes.

CORRECTION = (
    on_page("HKT-7.a"),
    on_page("HKT-7.c", where="a tempting reading"),
    on_page("HKT-7.i", amends="HKT-7.c"),
    unseen(
        "HKT-7.h",
        "The approximation error has three components, one of them a non-Gaussian correction, as printed.",
        "only the abstract was visible; HKT-7.a is an exact identity of this form for our construction",
        plain="The error of the approximation has three parts, each with a meaning, and one of them corrects for data"
        " that are not Gaussian.",
        source="paper",
        where="abstract (Theorem 4.3)",
        paper_value="not visible",
    ),
)

DECAY = (
    on_page("HKT-8.c"),
    unseen(
        "HKT-8.f",
        "The approximation bound decays geometrically in the number of levels, as printed.",
        "only the abstract was visible; HKT-8.c is a bound of this form for our construction",
        source="paper",
        where="abstract (Prop. 4.4)",
        paper_value="not visible",
    ),
)


# Figures: Information through the levels, averages that become Gaussian, and memory.


def information(rows: pd.DataFrame) -> Figure:
    """I(X; Y) of each instance as a stack of its parts; rows of Budgets."""
    sizes = [size for size in sorted(rows["size"].unique()) if size > 0] or [0.0]
    figure, axes = plt.subplots(1, len(sizes), figsize=(7.2, 3.2), squeeze=False)
    parts = {
        "gaussian": ("second moments, $I_G$", MUTED),
        "width": ("head width", GREEN),
        "resolution": ("resolution", BLUE),
    }
    for ax, size in zip(axes[0], sizes, strict=True):
        part = rows[rows["size"] == size].sort_values("total").reset_index(drop=True)
        ax.bar(part.index, part["correction"], color=RED, label="correction")
        base = np.maximum(part["correction"], 0.0)
        for column, (name, color) in parts.items():
            ax.bar(part.index, part[column], bottom=base, color=color, label=name)
            base = base + part[column]
        ax.plot(part.index, part["total"], "_", color=INK, markersize=9, label="$I(X;Y)$")
        ax.axhline(0, color=INK, linewidth=0.6)
        ax.set(xticks=[], xlabel=f"random mixtures, centres × {size:g}, sorted")
        where = "near" if size == sizes[0] else "far"
        over = max(0.0, -part["correction"].min())
        panel_label(ax, f"{where} centres: second moments\nat most {over:.2f} nats too high")
    axes[0][0].set_ylabel("nats")
    axes[0][0].legend(fontsize=7)
    low, high = rows["correction"].min(), rows["correction"].max()
    figure.set_label(
        f"Stacked bars of information budgets. The correction runs from {low:.2f} to {high:.2f} nats; where "
        "it is negative it stands below zero, and the other parts together exceed the total by it."
    )
    return figure


def averages(rows: pd.DataFrame) -> Figure:
    """Kurtosis and negentropy against level, logarithmic; rows of Averages."""
    figure, ax = plt.subplots(figsize=(6.2, 3.3))
    cases = {"digits": ("$|$kurtosis$|$, digits", BLUE), "exponential": ("negentropy, exponential", ORANGE)}
    cases["uniform"] = ("negentropy, uniform", GREEN)
    words = []
    for law, (name, color) in cases.items():
        part = rows[rows["law"] == law].sort_values("level")
        ax.plot(part["level"], part["predicted"].abs(), **THEORY)
        ax.plot(part["level"], part["value"].abs(), "o", color=color)
        last = part["value"].abs().to_numpy()
        beside(ax, part["level"].max(), last[-1], name, color)
        words.append(f"{name.replace('$', '')} {last[-1] / last[-2]:.3f}")
    ax.set(yscale="log", xlabel="level $l$", ylabel="$|$kurtosis$|$, negentropy (nats)")
    ax.set(xlim=(-0.3, 1.45 * rows["level"].max()), xticks=sorted(rows["level"].unique()))
    panel_label(ax, "Averages become Gaussian")
    figure.set_label(f"Falling straight lines on a logarithmic axis. Last ratios: {', '.join(words)}.")
    return figure


def blindness(rows: pd.DataFrame) -> Figure:
    """Mardia's b over p (p + 2) against n / p; rows of Blindness."""
    figure, ax = plt.subplots(figsize=(6.2, 3.0))
    p = rows["p"].max()
    chosen, words = rows[rows["p"] == p], []
    for law, color in (("laplace", RED), ("normal", INK), ("uniform", BLUE)):
        part = chosen[chosen["law"] == law].groupby("n")["b"]
        mean, spread = part.mean() / (p * (p + 2)), part.std() / (p * (p + 2))
        ax.errorbar(mean.index / p, mean, spread, fmt="o-", color=color)
        beside(ax, mean.index[-1] / p, mean.iloc[-1], law, color)
        words.append(f"{law} {mean.iloc[0]:.3f} to {mean.iloc[-1]:.3f}")
    ax.set(xscale="log", xlabel="samples over dimensions $n/p$", ylabel="Mardia's statistic\nover its normal limit")
    panel_label(ax, "With few samples all distributions look alike")
    ax.set_xlim(right=3 * chosen["n"].max() / p)
    figure.set_label(
        f"Mardia's statistic against sample size over width, p = {p}. All start at one point and part as the sample "
        f"grows: {', '.join(words)}."
    )
    return figure


def memory(rows: pd.DataFrame) -> Figure:
    """Variance of the mean of 2^l terms; rows of Memory."""
    figure, ax = plt.subplots(figsize=(6.2, 3.2))
    hursts, words = sorted(rows.loc[rows["process"] == "fgn", "H"].unique()), []
    for H, color in zip(hursts, shades(len(hursts)), strict=True):
        part = rows[(rows["process"] == "fgn") & (rows["H"] == H)].sort_values("level")
        ax.plot(part["level"], part["closed"], **THEORY)
        ax.plot(part["level"], part["variance"], "o", color=color)
        beside(ax, part["level"].max(), part["variance"].iloc[-1], f"$H={H:g}$", color)
        words.append(f"{part['variance'].iloc[-1] / part['variance'].iloc[-2]:.3f} at H = {H:g}")
    ar = rows[rows["process"] == "ar1"].sort_values("level")
    ax.plot(ar["level"], ar["variance"], "s", color=RED, markerfacecolor="none")
    beside(ax, ar["level"].max(), ar["variance"].iloc[-1], "AR(1)", RED)
    ax.set(yscale="log", xlabel="level $l$", ylabel=r"variance of $x^{(l)}$", xlim=(-0.3, 1.2 * rows["level"].max()))
    figure.set_label(f"Variance by level, markers on straight lines. Factors per level: {', '.join(words)}.")
    return figure
