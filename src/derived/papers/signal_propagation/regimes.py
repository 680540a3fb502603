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

from derived.lab import measure
from derived.lab.claims import at_least, at_most, between, computed, within
from derived.lab.effect import Published
from derived.lab.experiment import Experiment, rows
from derived.lab.measure import Measure, chosen
from derived.lab.plot import (
    BLUE,
    DASHED,
    DIVERGING,
    GREEN,
    INK,
    RED,
    apart,
    beside,
    largest,
    panel_label,
    plain_log,
    shades,
)
from derived.lab.stats import Estimate

from .marks import NAMES
from .model import asymptotics
from .model.kernels import kernel_of
from .model.meanfield import propagate

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


# Claims: The recurrences carried far: the laws of J and of the overlap, what attention changes, and the order of the
# limits.
#
# name       meaning
# EXPONENTS  SP-6 to SP-10.b: the laws of J and of the overlap
# ATTENTION  SP-11 and SP-12: what attention changes, and at which number of tokens


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


def rise_or_shortfall(rows: pd.DataFrame, tokens: int = INFINITE) -> Estimate:
    """The largest rise of the local exponent between neighbouring depths beyond b = 128, past its peak near 90.

    Or how far it has fallen below zeta, if that is larger.
    """
    beyond = curve(rows, "layernorm", tokens=tokens).query("b >= 128")
    local = exponents(beyond)
    below = beyond["zeta"].iloc[0] - local.min()
    return Estimate(float(max(np.diff(local).max(), below)), len(local) - 1)


def exponent_of_growth(rows: pd.DataFrame, attn_mult: float = 1.0) -> Estimate:
    """The exponent of J after LayerNorm, less the corrections of the page, b^{-(1-zeta)} and the power after it."""
    return Estimate(limit_of_exponent(rows, "log_J", (2, 3), attn_mult), 1)


def exponent_of_collapse(rows: pd.DataFrame, attn_mult: float = 1.0) -> Estimate:
    """The exponent of 1 - rho after LayerNorm, less the corrections b^{-(1-zeta)/2} and b^{-(1-zeta)}."""
    missing = rows.assign(log_missing=rows["log_difference"] - np.log(rows["q"]))
    return Estimate(limit_of_exponent(missing, "log_missing", (1, 2), attn_mult), 1)


def slope_over_law(norm: str, attn_mult: float = 1.0) -> Measure:
    """The last slope of ln J in sqrt(b), times sqrt(lambda): for the alpha at which it is farthest from 1."""

    def measure(rows: pd.DataFrame) -> Estimate:
        ratios = []
        for alpha in rows.loc[rows["norm"] == norm, "alpha"].unique():
            law = float(np.sqrt(curve(rows, norm, alpha=alpha)["lam"].iloc[0]))
            ratios.append(last_slope(curve(rows, norm, attn_mult, alpha=alpha)) * law)
        return Estimate(max(ratios, key=lambda ratio: abs(ratio - 1)), len(ratios))

    return measure


def exponent_lost(rows: pd.DataFrame, attn_mult: float = 1.0) -> Estimate:
    """The exponent in the limit with attention, less the one without."""
    attended, without = (exponent_of_growth(rows, mult).value for mult in (attn_mult, 0.0))
    return Estimate(attended - without, 2)


def measured_lambda(rows: pd.DataFrame, attn_mult: float = 1.0) -> Estimate:
    """lambda of Derf at alpha = 1 from the last slope."""
    return Estimate(last_slope(curve(rows, "erf", attn_mult)) ** -2, 1)


def lambda_ratio(rows: pd.DataFrame, attn_mult: float = 1.0) -> Estimate:
    """lambda with attention over lambda without, from the last slopes."""
    return Estimate(measured_lambda(rows, attn_mult).value / measured_lambda(rows, 0.0).value, 2)


def lambda_gained(rows: pd.DataFrame, attn_mult: float = 1.0) -> Estimate:
    """The ratio of the two lambda over that of the law."""
    law, alone = (curve(rows, "erf", mult)["lam"].iloc[0] for mult in (1.0, 0.0))
    return Estimate(lambda_ratio(rows, attn_mult).value * alone / law, 2)


def overlap_at_infinity(curve: pd.DataFrame) -> float:
    """rho at infinity: c + A b^-mu + B b^-1/2 through three depths; mu is the relaxation exponent of the page."""
    return in_the_limit(curve["rho"].to_numpy(), curve["b"].to_numpy(dtype=float), (curve["mu"].iloc[0], 0.5))


def limit_of_overlap(rows: pd.DataFrame, norm: str = "erf") -> Estimate:
    """rho at infinity less c_*, for the alpha at which it is farther off."""
    curves = [curve(rows, norm, alpha=alpha) for alpha in rows.loc[rows["norm"] == norm, "alpha"].unique()]
    missed = [overlap_at_infinity(one) - one["c_star"].iloc[0] for one in curves]
    return Estimate(float(max(missed, key=abs)), len(missed))


def overtaken(alpha: float) -> Measure:
    """The depth from which on J of Derf stays above that of pre-LayerNorm, less one."""

    def measure(rows: pd.DataFrame) -> Estimate:
        attended = rows[rows["attention"] == 1]
        derf, plain = (
            attended.query(f"norm == {norm!r} and alpha == {value}").set_index("b")["log_J"]
            for norm, value in (("erf", alpha), ("layernorm", 1.0))
        )
        below = derf.index[derf <= plain]
        return Estimate(float(below.max()) if len(below) else 0.0, len(derf))

    return measure


def raised_by_attention(column: str) -> Measure:
    """J with attention over J without, at ViT-Base's number of tokens and 32 blocks, the lowest norm and alpha."""

    def measure(rows: pd.DataFrame) -> Estimate:
        some = chosen(rows, "b == 32 and (norm == 'layernorm' or alpha in (0.5, 1.0))")
        wide = some.pivot(index=["norm", "alpha"], columns="attention", values=column)
        return Estimate(float(np.exp(wide[1] - wide[0]).min()), len(wide))

    return measure


BOTH = {"experiment": Regimes}
AT_THE_END = f"attn_mult == 1 and tokens == {INFINITE} and alpha == 1 and b == b.max()"
DEEP = {"horizon": "$b=10^5$"}

EXPONENTS = (
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
        "SP-6.b",
        r"In a pre-LayerNorm network with many tokens the local exponent of $J^{b,0}$ falls to $\zeta$ from above, "
        "slowly.",
        measure=rise_or_shortfall,
        quantity="largest rise of the local exponent between neighbouring depths beyond $b=128$, past the peak near "
        r"$b=90$, and largest shortfall below $\zeta$",
        accept=at_most(0.0),
        unit="exponent",
        **BOTH,
        comparison=("16 tokens", lambda rows: rise_or_shortfall(rows, tokens=16)),
        control="a network without attention has no power law to fall to",
        **DEEP,
    ),
    computed(
        "SP-7",
        r"In a pre-LayerNorm network with many tokens $1-\rho\sim b^{\zeta-1}$.",
        measure=exponent_of_collapse,
        quantity="local exponent at the deepest blocks, less the corrections $b^{-(1-\\zeta)/2}$ and $b^{-(1-\\zeta)}$",
        accept=within(-1 / 3, 0.002, r"-\frac13"),
        unit="exponent",
        **BOTH,
        control=lambda rows: exponent_of_collapse(rows, 0.0),
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
        "SP-9",
        r"In a DyT network with many tokens $\ln J^{b,0}\sim\sqrt{b/\lambda}$ with "
        r"$\lambda=(s/2+a\,p_*)/(C_{\tanh}s)^2$ and $C_{\tanh}=4\alpha/(3\sqrt{2\pi})$.",
        measure=slope_over_law("tanh"),
        quantity=r"last slope in $\sqrt b$ times $\sqrt\lambda$ at $\alpha=1$",
        accept=within(1, 0.03),
        unit="ratio to the law",
        **BOTH,
        control=slope_over_law("tanh", 0.0),
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
        proof="sp-converges",
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
        "SP-10.b",
        r"In a pre-LayerNorm network with many tokens $\rho\to1$.",
        proof="sp-ln",
        measure=measure.largest("rho", f"norm == 'layernorm' and {AT_THE_END}"),
        quantity=r"$\rho$ at the deepest block",
        accept=between(0.95, 1.0),
        unit="overlap",
        source="repo",
        where="code; the page proves the limit, the row reads one depth",
        **BOTH,
        comparison=("Derf", measure.largest("rho", f"norm == 'erf' and {AT_THE_END}")),
        control="without a normaliser the recurrence has no limit of the overlap",
        **DEEP,
    ),
)

ATTENTION = (
    computed(
        "SP-11.a",
        r"In a pre-LayerNorm network with many tokens attention lowers the exponent of $J^{b,0}$, from $1$ to $\zeta$.",
        measure=exponent_lost,
        quantity="difference of the exponents, less the corrections of SP-6.a",
        accept=within(-1 / 3, 0.002, r"-\frac13"),
        unit="difference of exponents",
        source="repo",
        where="code",
        paper_value=Published(round(-1 / 3, 4), "difference of exponents"),
        **BOTH,
        control=lambda rows: exponent_lost(rows, 0.0),
        **DEEP,
    ),
    computed(
        "SP-11.b",
        r"In a Derf network with many tokens, where $\ln J^{b,0}\sim\sqrt{b/\lambda}$, attention raises $\lambda$ as the "
        "law says.",
        measure=lambda_gained,
        quantity=r"ratio of the two $\lambda$ from the last slopes, over that of the law",
        accept=within(1, 0.02),
        unit="ratio to the law",
        source="repo",
        where="code",
        paper_value=Published(round(4.02 / 3.27, 3), "ratio of the two λ", ours=lambda_ratio),
        control=lambda rows: lambda_gained(rows, 0.0),
        **DEEP,
        **BOTH,
    ),
    computed(
        "SP-11.c",
        "At ViT-Base's variances, 197 tokens and 32 blocks, attention raises the amplification of a gradient that an "
        "averaging head sends to all tokens.",
        Crossing,
        raised_by_attention("log_pooled"),
        r"amplification with attention over without, the lowest of LayerNorm and Derf at $\alpha=0.5$ and $1$",
        at_least(1.2),
        unit="ratio",
        comparison=("a gradient at one token", raised_by_attention("log_J")),
        control="the amplification without attention is the denominator, so that an idle arm has the ratio one",
    ),
    computed(
        "SP-12.b",
        r"In a pre-LayerNorm network with a fixed number $n$ of tokens the exponent of $J^{b,0}$ is $1$: "
        r"$J^{b,0}\asymp b^{\zeta}+b/n$.",
        measure=last_exponent(2.0, 4),
        quantity=r"local exponent at the deepest block, at $n=4$ and $\zeta=\frac19$",
        accept=within(1, 0.03),
        unit="exponent",
        amends="SP-12.a",
        **BOTH,
        comparison=("infinitely many tokens", last_exponent(2.0)),
        control="without attention the number of tokens does not enter the recurrence",
        **DEEP,
    ),
    computed(
        "SP-20",
        r"At ViT-Base's variances and 197 tokens, from $q^0=1$ and $p^0=0.2$, Derf with $\alpha=\frac12$, its default, has a smaller $J^{B,0}$ than "
        "pre-LayerNorm at every depth up to 36 blocks, the deepest that the author trains.",
        Crossing,
        overtaken(0.5),
        "the last depth at which it is not larger",
        at_least(36),
        unit="blocks",
        plain=r"At its default $\alpha$, up to the 36 blocks that the author trains, Derf amplifies gradients less than LayerNorm.",
        comparison=("Derf at $\\alpha=1$", overtaken(1.0)),
        control="a network without a normaliser grows by another law, so that no arm does nothing",
    ),
)


# Figures: The recurrences carried far: two laws, the order of limits, and the constants of the laws.


def growth(rows: pd.DataFrame) -> Figure:
    """J against depth, both logarithmic, of LayerNorm and of Derf at four alphas; rows of ``Crossing``."""
    rows = largest(rows).query("attention == 1")
    figure, ax = plt.subplots(figsize=(5.4, 3.7))
    derf, layernorm = (rows[rows["norm"] == name] for name in ("erf", "layernorm"))
    alphas = [alpha for alpha in (0.2, 0.5, 1.0, 2.0) if alpha in set(derf["alpha"])]
    curves = [(layernorm, INK, "LayerNorm: a power")]
    for alpha, color in zip(alphas, shades(len(alphas)), strict=True):
        curves.append((derf[derf["alpha"] == alpha], color, rf"Derf, $\alpha={alpha:g}$"))
    last = [part.loc[part["b"].idxmax()] for part, *_ in curves]
    places = np.exp(apart([end["log_J"] for end in last], 1.3))
    for (part, color, words), end, place in zip(curves, last, places, strict=True):
        part = part.sort_values("b")
        ax.plot(part["b"], np.exp(part["log_J"]), color=color, linewidth=2.6 if color == INK else 1.6)
        beside(ax, end["b"], place, words, color, annotation_clip=False)
    depth = rows["b"].max()
    ax.set(
        xscale="log", yscale="log", xlim=(1, depth), xlabel="depth (block)", ylabel="growth of squared gradients $J$"
    )
    plain_log(ax.xaxis, [tick for tick in (1, 4, 12, 36, 100, 400) if tick <= depth])
    figure.set_label(
        f"Growth of squared gradients against depth, both axes logarithmic. LayerNorm, nearly a straight line, ends at "
        f"{np.exp(last[0]['log_J']):.0f}; Derf bends upwards, to "
        + ", ".join(
            f"{np.exp(end['log_J']):.3g} at alpha {alpha:g}" for alpha, end in zip(alphas, last[1:], strict=True)
        )
    )
    return figure


def overtaking(rows: pd.DataFrame) -> Figure:
    """ln J of Derf less that of LayerNorm over depth and alpha, and where it is zero; rows of ``Crossing``."""
    rows = largest(rows).query("attention == 1")
    figure, ax = plt.subplots(figsize=(6.4, 3.8))
    found = {}
    for column in ("log_J", "log_pooled"):
        derf = rows[rows["norm"] == "erf"].pivot_table(index="alpha", columns="b", values=column)
        found[column] = derf - rows[rows["norm"] == "layernorm"].set_index("b")[column]
    gap = found["log_J"]
    shown = ax.pcolormesh(gap.columns, gap.index, gap, cmap=DIVERGING, vmin=-2, vmax=2, shading="nearest")
    shown.set_rasterized(True)
    for column, style in (("log_J", "-"), ("log_pooled", "--")):
        ax.contour(gap.columns, gap.index, found[column], levels=[0.0], colors=INK, linestyles=style)
    ax.set(xscale="log", yscale="log", xlabel="depth $B$", ylabel=r"$\alpha$ of Derf", xlim=(4, gap.columns.max()))
    ax.set_xticks([4, 12, 36, 128, 400], ["4", "12", "36", "128", "400"])
    ax.set_yticks([0.1, 0.2, 0.5, 1, 2], ["0.1", "0.2", "0.5", "1", "2"])
    ax.minorticks_off()
    for name, level in (("more", 0.85), ("less", 0.08)):
        at = {"xycoords": "axes fraction", "color": "white", "ha": "right", "va": "center"}
        ax.annotate(f"Derf grows {name}", (0.97, level), **at)
    pooled = found["log_pooled"].loc[:, 4:].iloc[:, 0]
    beside(ax, 4, np.interp(0.0, pooled, pooled.index), "averaging head", INK, (6, 9))
    figure.colorbar(shown, ax=ax, label=r"$\ln$ of $J$, Derf over LayerNorm", extend="both")
    half = gap.loc[0.5]
    figure.set_label(
        "Colour over depth and alpha, both logarithmic, with the line where Derf and LayerNorm grow alike. "
        f"At alpha 0.5 Derf is below LayerNorm up to depth {half.index[half <= 0].max()}; at depth {half.index.max()} "
        f"the logarithms differ by {half.iloc[-1]:.2f}."
    )
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
    axes[0].set(xscale="log", yscale="log", xlabel="block $b$", ylabel="$J^{b,0}$")
    axes[0].set(xlim=(3, 40 * b[-1]), xticks=10.0 ** np.arange(1, np.log10(b[-1]) + 0.5))
    panel_label(axes[0], "pre-LayerNorm: straight, a power")
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
    axes[1].set(xlabel="block $b$", ylabel=r"$(\ln J^{b,0})^2$", xlim=(0, 4600))
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
    figure, axes = plt.subplots(2, 1, figsize=(5.5, 5.0), sharex=True)
    words, tokens = [], sorted(rows["tokens"].unique(), key=lambda n: n or np.inf)
    colours = [*shades(len(tokens))[:-1], RED]  # the last is that of infinitely many
    for ax, mult, told in zip(axes, (2.0, 1.0), ("Attention weights doubled", "ViT-Base weights"), strict=True):
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
            name = f"{n:g} tokens" if n else rf"$\infty$ tokens: $\zeta={exponent:.2f}$"
            ax.plot([1.1 * at[-1], 1.9 * at[-1]], [end, place], color=color, linewidth=0.7, clip_on=False)
            beside(ax, 1.9 * at[-1], place, name, color, (2, 0))
        least, most = min(ends[:-1]), max(ends[:-1])
        came = "end at 1" if least > 0.99 else f"are still at {least:.2f} to {most:.2f}"
        panel_label(ax, f"{told}: {tokens[0]:g} to {tokens[-2]:g} tokens {came}")
        words.append(f"{told}, {', '.join(f'{end:.2f}' for end in ends)}")
        ticks = 10.0 ** np.arange(1, np.ceil(np.log10(at[-1])) + 1)
        ax.set(xscale="log", xlim=(at[0], 400 * at[-1]), ylim=(0, 1.35), ylabel="local exponent of $J$")
        ax.set_xticks(ticks[ticks < 1.5 * at[-1]])
        ax.xaxis.set_minor_locator(NullLocator())
    axes[1].set_xlabel("block $b$")
    figure.set_label(
        f"Local exponent against depth for {', '.join(str(n or 'infinitely many') for n in tokens)} tokens. At the "
        f"last depth: {'; '.join(words)}. With finitely many tokens the curves turn up towards 1."
    )
    return figure


def constants(rows: pd.DataFrame) -> Figure:
    """Zeta and 1/lambda against the attention's strength, a line a strength of the MLP; rows: sigma_OV, sigma_21,
    zeta, rate."""
    figure, axes = plt.subplots(1, 2, figsize=(5.5, 3.3), sharex=True)
    chosen = [each for each in (0.5, 1.0, 2.0, 4.0) if each in set(rows["sigma_21"])]
    names = {"zeta": r"LayerNorm: exponent $\zeta$", "rate": r"Derf: rate $1/\lambda$"}
    for ax, (column, name) in zip(axes, names.items(), strict=True):
        ends = []
        for strength, color in zip(chosen, shades(len(chosen)), strict=True):
            line = rows[rows["sigma_21"] == strength].sort_values("sigma_OV")
            ax.plot(line["sigma_OV"], line[column], color=color)
            told = rf"$\sigma_{{21}}={strength:g}$" if strength == chosen[-1] else f"{strength:g}"
            ends.append((line["sigma_OV"].iloc[-1], line[column].iloc[-1], told, color))
        places = [end for _, end, *_ in ends]
        for (x, _, told, color), place in zip(ends, apart(places, 0.06) if column == "zeta" else places, strict=True):
            beside(ax, x, place, told, color, (3, 0), annotation_clip=False)
        ax.set(xlabel=r"attention, $\sigma_{OV}$", ylabel=name)
    axes[1].set_yscale("log")
    words = r"Attention slows growth down, the MLP ($\sigma_{21}$) speeds it up"
    figure.suptitle(words, x=0.02, ha="left", fontsize=10, color=INK)
    low, high = rows["rate"].min(), rows["rate"].max()
    figure.set_label(
        f"Two panels of lines over the attention's standard deviation. Zeta runs from {rows['zeta'].min():.3f} to "
        f"{rows['zeta'].max():.3f} and falls with attention. The rate 1/lambda runs from {low:.3g} to {high:.3g}; "
        "it grows with the MLP and falls with attention."
    )
    return figure
