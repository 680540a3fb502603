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

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from derived.lab.claims import at_least, between, computed, on_page, within
from derived.lab.effect import Published
from derived.lab.experiment import Experiment, rows
from derived.lab.measure import Measure, chosen, smallest
from derived.lab.plot import BLUE, DASHED, GREEN, INK, RED, apart, beside, largest, panel_label, plain_log, shades
from derived.lab.stats import Estimate

from .marks import NAMES
from .model import asymptotics
from .model.kernels import ErfKernel, kernel_of
from .model.meanfield import propagate

INFINITE = 0  # the row's name of n = infinity: JSON and parquet keep an integer column


@dataclass(frozen=True, kw_only=True)
class Regimes(Experiment):
    """SP-6, 8, 10, 12: the recurrences carried far, ViT-Base variances with W_V and W_O multiplied by attn_mult.

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
    """SP-20: J^{b,0} of Derf beside pre-LayerNorm at ViT-Base's variances and number of tokens.

    Rows: norm, alpha, b, log_J.
    """

    depth: int = 400
    tokens: int = 197
    alphas: tuple[float, ...] = (*np.geomspace(0.1, 2, 27).round(3).tolist(), 0.5, 1.0)
    q0: float = 1.0
    p0: float = 0.2

    tiny: ClassVar = {"depth": 60, "alphas": (0.5, 1.0, 2.0)}
    deterministic: ClassVar = {"log_J": 1e-8}

    def conditions(self) -> list[dict]:
        return [{"norm": norm} for norm in ("layernorm", "erf")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        norm = condition["norm"]
        alpha = np.array([1.0] if norm == "layernorm" else sorted({*self.alphas}))
        a, s = asymptotics.vit_variances()
        sizes = {"a": a, "s": s, "n": self.tokens, "depth": self.depth}
        course = propagate(self.q0, self.p0, kernel=kernel_of(norm, alpha), **sizes)
        at = np.unique(np.concatenate([np.arange(1, min(129, self.depth)), np.geomspace(1, self.depth, 60).round()]))
        at = at.astype(int)
        return rows(
            {"alpha": alpha, "b": at},
            {"log_J": np.broadcast_to(course.log_J_forward, (len(alpha), self.depth + 1))[:, at]},
        )


@dataclass(frozen=True, kw_only=True)
class Window(Experiment):
    """SP-14.b: Derf with small alpha, many tokens, ViT-Base variances; ``log_J`` between its two bounds.

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
        slope = s / 2 * 4 * alpha**2 / np.pi
        end = np.log1p(slope) + np.log1p(a * 4 * alpha**2 / np.pi)  # logarithmic growth per block of p where p = q
        predicted = float(-np.log(alpha**2 * self.p0) / end)
        depth = int(1.6 * predicted)
        kernel = ErfKernel(alpha)
        trajectory = propagate(self.q0, self.p0, kernel=kernel, a=a, s=s, n=np.inf, depth=depth)
        at = np.unique(np.geomspace(1, depth, self.points).round().astype(int))
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


# Claims: SP-1, 6, 8, 10, 12, 14 and 20.


def curve(rows: pd.DataFrame, norm: str, attn_mult: float = 1.0, tokens: int = INFINITE, alpha: float = 1.0):
    """One curve of ``Regimes`` by depth, with the constants of its law."""
    where = f"norm == {norm!r} and attn_mult == {attn_mult} and tokens == {tokens} and alpha == {alpha}"
    return with_laws(chosen(rows, where)).sort_values("b")


def exponents(curve: pd.DataFrame) -> np.ndarray:
    """d ln J / d ln b between consecutive depths."""
    return np.diff(curve["log_J"]) / np.diff(np.log(curve["b"]))


def last_slope(curve: pd.DataFrame) -> float:
    """d ln J / d sqrt(b) between the last two depths; tends to lambda^{-1/2}."""
    return float((np.diff(curve["log_J"]) / np.diff(np.sqrt(curve["b"])))[-1])


def in_the_limit(values: np.ndarray, depths: np.ndarray, powers: tuple[float, ...]) -> float:
    """The constant c of c + sum_k A_k b^{-power_k} through the last depths, a factor of about two apart."""
    at = -1 - 6 * np.arange(len(powers) + 1)
    return float(np.linalg.solve(depths[at, None] ** -np.array([0.0, *powers]), values[at])[0])


def limit_of_exponent(rows: pd.DataFrame, column: str, powers: tuple[float, ...], mult: float = 1.0) -> float:
    """The local exponent of a column after LayerNorm at infinite depth; powers in units of (1 - zeta)/2, with attention."""
    one, unit = curve(rows, "layernorm", mult), (1 - curve(rows, "layernorm")["zeta"].iloc[0]) / 2
    logs, b = one[column].to_numpy(), one["b"].to_numpy(dtype=float)
    return in_the_limit(np.diff(logs) / np.diff(np.log(b)), np.sqrt(b[1:] * b[:-1]), tuple(unit * np.array(powers)))


def last_exponent(attn_mult: float = 1.0, tokens: int = INFINITE) -> Measure:
    """The local exponent of J at the deepest block after LayerNorm."""

    def measure(rows: pd.DataFrame) -> Estimate:
        one = curve(rows, "layernorm", attn_mult, tokens)
        return Estimate(float(exponents(one)[-1]), 1)

    return measure


def exponent_of_growth(rows: pd.DataFrame, attn_mult: float = 1.0) -> Estimate:
    """The exponent of J after LayerNorm, less the corrections of the page, b^{-(1-zeta)} and the power after it."""
    return Estimate(limit_of_exponent(rows, "log_J", (2, 3), attn_mult), 1)


def slope_over_law(norm: str, attn_mult: float = 1.0) -> Measure:
    """The last slope of ln J in sqrt(b), times sqrt(lambda): for the alpha at which it is farthest from 1."""

    def measure(rows: pd.DataFrame) -> Estimate:
        ratios = []
        for alpha in rows.loc[rows["norm"] == norm, "alpha"].unique():
            scale = float(np.sqrt(curve(rows, norm, alpha=alpha)["lam"].iloc[0]))
            ratios.append(last_slope(curve(rows, norm, attn_mult, alpha=alpha)) * scale)
        return Estimate(max(ratios, key=lambda ratio: abs(ratio - 1)), len(ratios))

    return measure


def measured_lambda(rows: pd.DataFrame, attn_mult: float = 1.0) -> Estimate:
    """lambda of Derf at alpha = 1 from the last slope."""
    return Estimate(last_slope(curve(rows, "erf", attn_mult)) ** -2, 1)


def overlap_at_infinity(curve: pd.DataFrame) -> float:
    """rho at infinity: c + A b^-mu + B b^-1/2 through three depths; mu is the relaxation exponent of the page."""
    return in_the_limit(curve["rho"].to_numpy(), curve["b"].to_numpy(dtype=float), (curve["mu"].iloc[0], 0.5))


def limit_of_overlap(rows: pd.DataFrame, norm: str = "erf") -> Estimate:
    """rho at infinity less c_*, for the alpha at which it is farther off."""
    curves = [curve(rows, norm, alpha=alpha) for alpha in rows.loc[rows["norm"] == norm, "alpha"].unique()]
    missed = [overlap_at_infinity(one) - one["c_star"].iloc[0] for one in curves]
    return Estimate(float(max(missed, key=abs)), len(missed))


def overtaken(alpha: float) -> Measure:
    """The first depth at which J of Derf is larger than that of pre-LayerNorm, less one."""

    def measure(rows: pd.DataFrame) -> Estimate:
        derf, plain = (
            rows.query(f"norm == {norm!r} and alpha == {value}").set_index("b")["log_J"].sort_index()
            for norm, value in (("erf", alpha), ("layernorm", 1.0))
        )
        larger = derf.index[derf > plain]
        return Estimate(float(larger.min() - 1 if len(larger) else derf.index.max()), len(derf))

    return measure


BOTH = {"experiment": Regimes}
DEEP = {"horizon": "$b=10^5$"}

CLAIMS = (
    on_page("SP-1", source="repo", where="code", paper_value="equality"),
    computed(
        "SP-6.a",
        r"In a pre-LayerNorm network with many tokens $J^{b,0}\sim b^{\zeta}$ with $\zeta=\frac{s/2}{s/2+a}$.",
        measure=exponent_of_growth,
        quantity="local exponent at the deepest blocks, less the corrections $b^{-(1-\\zeta)}$ and $b^{-3(1-\\zeta)/2}$",
        accept=within(2 / 3, 0.002, r"\frac23"),
        unit="exponent",
        plain="With LayerNorm and many tokens, gradients at initialisation grow like a power of the depth; "
        r"with the usual initialisation of vision transformers the power is $\frac23$.",
        source="repo",
        where="code; a power law in the abstract",
        paper_value=Published(round(2 / 3, 4), "exponent"),
        **BOTH,
        control=lambda rows: exponent_of_growth(rows, 0.0),
        **DEEP,
    ),
    computed(
        "SP-8",
        r"In a Derf network with many tokens $\ln J^{b,0}\sim\sqrt{b/\lambda}$ with "
        r"$\lambda=(s/2+a\,p_*)/(C_\phi s)^2$.",
        measure=slope_over_law("erf"),
        quantity=r"last slope in $\sqrt b$ times $\sqrt\lambda$, the worse of $\alpha=0.5$ and $1$",
        accept=within(1, 0.01),
        unit="ratio to the law",
        plain="With erf in place of LayerNorm, gradients at initialisation grow like the exponential of the square root "
        "of the depth: faster than any power, slower than an exponential.",
        source="repo",
        where="code; a stretched exponential in the abstract",
        paper_value=Published(4.018, r"λ at $\alpha=1$", ours=measured_lambda),
        **BOTH,
        control=slope_over_law("erf", 0.0),
        **DEEP,
    ),
    computed(
        "SP-10.a",
        r"In a Derf network with many tokens $\rho\to c_*<1$ for every $\alpha$: there is no rank collapse.",
        measure=limit_of_overlap,
        quantity=r"limit of $\rho$, extrapolated from the last depths by $b^{-\mu}$ and $b^{-1/2}$, less $c_*$, at the "
        r"worse of $\alpha=0.5$ and $1$",
        accept=within(0, 0.001),
        unit="overlap",
        proof="sp-overlap",
        source="repo",
        where="code; the page proves the limit",
        paper_value=Published(
            0.6598, "overlap in the limit", ours=lambda rows: Estimate(overlap_at_infinity(curve(rows, "erf")), 1)
        ),
        comparison=("LayerNorm", lambda rows: limit_of_overlap(rows, "layernorm")),
        control="without a normaliser the recurrence has no limit of the overlap",
        **DEEP,
        **BOTH,
    ),
    computed(
        "SP-12.b",
        r"In a pre-LayerNorm network with a fixed number $n$ of tokens the exponent of $J^{b,0}$ is $1$: "
        r"$J^{b,0}\asymp b^{\zeta}+b/n$.",
        measure=last_exponent(2.0, 4),
        quantity=r"local exponent at the deepest block, at $n=4$ and $\zeta=\frac19$",
        accept=within(1, 0.03),
        unit="exponent",
        **BOTH,
        comparison=("infinitely many tokens", last_exponent(2.0)),
        control="without attention the number of tokens does not enter the recurrence",
        **DEEP,
    ),
    computed(
        "SP-14.b",
        r"While $\alpha^2q\ll1$ the growth in a Derf network is exponential: "
        r"$J^{b,0}\approx(1+\frac s2\frac{4\alpha^2}\pi)^b$.",
        Window,
        smallest("log_J / high", "alpha ** 2 * q <= 0.005"),
        r"smallest ratio of $\ln J^{b,0}$ to its law wherever $\alpha^2q\le0.005$",
        between(0.98, 1.0 + 1e-9, "[0.98, 1+10^{-9}]"),
        comparison=("beyond the window", smallest("log_J / high", "alpha ** 2 * q > 0.1")),
        control="the law has no free constant, and a network without growth has the ratio zero",
        unit="ratio to the law",
        source="repo",
        where="blog",
    ),
    computed(
        "SP-20",
        r"At ViT-Base's variances and 197 tokens, from $q^0=1$ and $p^0=0.2$, Derf with $\alpha=\frac12$, its default, has a smaller $J^{B,0}$ than "
        "pre-LayerNorm at every depth up to 36 blocks, the deepest that the author trains.",
        Crossing,
        overtaken(0.5),
        "the first depth at which it is larger, less one",
        at_least(36),
        unit="blocks",
        plain=r"At its default $\alpha$, up to the 36 blocks that the author trains, Derf amplifies gradients less than LayerNorm.",
        comparison=("Derf at $\\alpha=1$", overtaken(1.0)),
        control="a network without a normaliser grows by another law, so no network does nothing",
    ),
)


# Figures: The recurrences carried far: two laws, the order of limits, and the constants of the laws.


def growth(rows: pd.DataFrame) -> Figure:
    """J against depth, both logarithmic, of LayerNorm and of Derf at two alphas, crossings marked; rows of ``Crossing``."""
    rows = largest(rows)
    figure, ax = plt.subplots(figsize=(5.8, 2.6))
    plain = rows[rows["norm"] == "layernorm"].set_index("b")["log_J"].sort_index()
    curves = {"LayerNorm": (plain, INK)}
    for alpha, color, note in ((1.0, RED, ""), (0.5, BLUE, "\n(default)")):
        derf = rows[(rows["norm"] == "erf") & (rows["alpha"] == alpha)]
        curves[f"erf, slope {alpha:g}{note}"] = (derf.set_index("b")["log_J"].sort_index(), color)
    words = []
    for name, (curve, color) in curves.items():
        ax.plot(curve.index, np.exp(curve), color=color, linewidth=2.6 if color == INK else 1.8)
        beside(ax, curve.index[-1], np.exp(curve.iloc[-1]), name, color, annotation_clip=False)
        above = curve.index[curve > plain]
        crossed = f", above LayerNorm from depth {above.min()} on" if len(above) else ""
        words.append(f"{name} ends at {np.exp(curve.iloc[-1]):.3g}{crossed}")
        if len(above):
            ax.plot(above.min(), np.exp(curve[above.min()]), "o", color=color, markersize=7)
            shift, side = ((-4, 10), "right") if color == RED else ((6, -12), "left")
            beside(ax, above.min(), np.exp(curve[above.min()]), f"crosses at {above.min()}", color, shift, ha=side)
    depth = rows["b"].max()
    ax.set(xscale="log", yscale="log", xlim=(1, depth), xlabel="depth in blocks", ylabel="squared gradient\ngrows by")
    plain_log(ax.xaxis, [tick for tick in (1, 4, 12, 36, 100, 400) if tick <= depth])
    panel_label(ax, "With erf gradients grow less in shallow networks, more in deep ones")
    shown = "; ".join(words).replace("\n", " ")
    figure.set_label(f"Growth of squared gradients against depth, both logarithmic. {shown}.")
    return figure


def two_laws(rows: pd.DataFrame) -> Figure:
    """log-log for LayerNorm, (log J)^2 against b for Derf and DyT, with asymptotes; rows of ``with_laws``."""
    rows = largest(rows)
    chosen = rows[(rows["tokens"] == 0) & (rows["alpha"] == 1.0) & (rows["attn_mult"].isin([0.0, 1.0]))]
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.3))
    left = chosen[chosen["norm"] == "layernorm"]
    ends = []
    for mult, color in ((1.0, INK), (0.0, GREEN)):
        curve = left[left["attn_mult"] == mult].sort_values("b")
        b, log_J = curve["b"].to_numpy(), curve["log_J"].to_numpy()
        exponent = curve["zeta"].iloc[0]
        axes[0].plot(b, np.exp(log_J), color=color)
        axes[0].plot(b, np.exp(log_J[-1]) * (b / b[-1]) ** exponent, **DASHED)
        local = (np.diff(log_J) / np.diff(np.log(b)))[-1]
        ends.append(f"{local:.3f} against {exponent:.3f}")
        beside(axes[0], b[-1], np.exp(log_J[-1]), "with\nattention" if mult else "without", color, fontsize=9)
    axes[0].set(xscale="log", yscale="log", xlabel="block $b$", ylabel="growth $J$ over $b$ blocks")
    axes[0].set(xlim=(3, 40 * b[-1]), xticks=10.0 ** np.arange(1, np.log10(b[-1]) + 0.5))
    panel_label(axes[0], "LayerNorm: straight, a power")
    slopes = []
    for norm, mult, color in (("erf", 1.0, BLUE), ("erf", 0.0, GREEN), ("tanh", 1.0, RED)):
        of_norm = (chosen["norm"] == norm) & (chosen["attn_mult"] == mult)
        curve = chosen[of_norm & (chosen["b"] <= 3000)].sort_values("b")
        lam = curve["lam"].iloc[0]
        b, log_J = curve["b"].to_numpy(), curve["log_J"].to_numpy()
        axes[1].plot(b, log_J**2, color=color)
        axes[1].plot(b, (log_J[-1] + (np.sqrt(b) - np.sqrt(b[-1])) / np.sqrt(lam)) ** 2, **DASHED)
        slopes.append(f"{(np.diff(log_J) / np.diff(np.sqrt(b)))[-1] * np.sqrt(lam):.3f}")
        beside(axes[1], b[-1], log_J[-1] ** 2, NAMES[norm] + ("" if mult else ", no attention"), color)
    axes[1].set(xlabel="block $b$", ylabel=r"$(\ln J)^2$", xlim=(0, 4600))
    panel_label(axes[1], "Derf, DyT: straight, exp of a root")
    figure.set_label(
        "Left, both axes logarithmic: nearly straight lines, last local exponents with and without attention "
        f"{' and '.join(ends)}. Right, squared logarithm against block: nearly straight lines, last slopes over "
        f"those of the asymptotes {', '.join(slopes)}."
    )
    return figure


def order_of_limits(rows: pd.DataFrame) -> Figure:
    """Local exponent of J against depth for several numbers of tokens; rows of ``with_laws``."""
    rows = largest(rows).query("norm == 'layernorm'")
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.3), sharey=True)
    words, tokens = [], sorted(rows["tokens"].unique(), key=lambda n: n or np.inf)
    colours = [*shades(len(tokens))[:-1], RED]  # the last is that of infinitely many
    for ax, mult, weights in zip(axes, (1.0, 2.0), ("ViT-Base weights", "Attention weights doubled"), strict=True):
        part, ends = rows[rows["attn_mult"] == mult].sort_values("b"), []
        for n, color in zip(tokens, colours, strict=True):
            b, log_J = part.loc[part["tokens"] == n, ["b", "log_J"]].to_numpy().T
            local, at = np.diff(log_J) / np.diff(np.log(b)), np.sqrt(b[1:] * b[:-1])
            ax.plot(at, local, color=color, linewidth=1.4 if n else 2.4)
            ends.append(float(local[-1]))
        exponent = float(part["zeta"].iloc[0])
        for level in (exponent, 1):
            ax.plot(at[[0, -1]], [level, level], **DASHED)
        for n, color, end, place in zip(tokens, colours, ends, apart(ends, 0.13), strict=True):
            name = f"$n={n:g}$" if n else rf"$n=\infty$: $\zeta={exponent:.2f}$"
            ax.plot([1.1 * at[-1], 1.9 * at[-1]], [end, place], color=color, linewidth=0.7, clip_on=False)
            beside(ax, 1.9 * at[-1], place, name, color, (2, 0))
        least, most = min(ends[:-1]), max(ends[:-1])
        came = "end at 1" if least > 0.99 else f"are still at {least:.2f} to {most:.2f}"
        panel_label(ax, f"{weights}:\n{tokens[0]:g} to {tokens[-2]:g} tokens {came}")
        words.append(f"{weights}, {', '.join(f'{end:.2f}' for end in ends)}")
        ticks = 10.0 ** np.arange(1, np.ceil(np.log10(at[-1])) + 1)
        ax.set(xscale="log", xlim=(at[0], 400 * at[-1]), ylim=(0, 1.35), xlabel="block $b$")
        ax.set_xticks(ticks[ticks < 1.5 * at[-1]])
        ax.xaxis.set_minor_locator(NullLocator())
    axes[0].set_ylabel("local exponent of $J$")
    figure.set_label(
        f"Local exponent against depth for {', '.join(str(n or 'infinitely many') for n in tokens)} tokens. At the "
        f"last depth: {'; '.join(words)}. With finitely many tokens the curves turn up towards 1."
    )
    return figure
