"""The figures of the chapter: each takes the rows of an experiment and returns a figure with its alt text as label.

mark                   meaning
line in INK            theory; dashed: a limit or a rival
filled, open marker    recorded, live; bars are 99.9 % intervals over replicates
sequential colours     a swept parameter
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from derived.lab import stats
from derived.lab.plot import COLOURS, INK, MUTED, SEQUENTIAL, apart, beside, largest, panel_label, shades

THEORY = {"color": INK, "linewidth": 1.0, "zorder": 2}
DASHED = {"color": MUTED, "linewidth": 1.0, "linestyle": "--", "zorder": 1}
BLUE, RED, GREEN, PINK, ORANGE, SKY = COLOURS


def _points(ax: Axes, rows: pd.DataFrame, x: str, y: str, color, marker: str = "o", size: float = 4) -> pd.DataFrame:
    """Means over replicates with their 99.9 % intervals: recorded filled, live open. Returns the means."""
    kept = []
    for recorded, part in rows.groupby("recorded"):
        groups = [(at, stats.mean(group[y])) for at, group in part.groupby(x)]
        at = np.array([each for each, _ in groups])
        value = np.array([one.value for _, one in groups])
        reach = np.array([one.high - one.value for _, one in groups])
        style = {"color": color, "markerfacecolor": color if recorded else "none", "markersize": size}
        ax.errorbar(at, value, reach, fmt=marker, elinewidth=0.9, **style)
        kept.append(pd.DataFrame({x: at, y: value}))
    return pd.concat(kept, ignore_index=True)


def sphere(rows: pd.DataFrame) -> Figure:
    """Tokens of R^3 seen from the front at three depths; rows: panel, layer, token, x, y, z."""
    panels, layers = list(dict.fromkeys(rows["panel"])), sorted(rows["layer"].unique())
    figure, axes = plt.subplots(len(layers), len(panels), figsize=(7.4, 1.95 * len(layers)), squeeze=False)
    words, angle = [], np.linspace(0, 2 * np.pi, 100)
    for line, layer in zip(axes, layers, strict=True):
        for ax, panel in zip(line, panels, strict=True):
            part = rows[(rows["panel"] == panel) & (rows["layer"] == layer)]
            front = part["y"] < 0
            ax.plot(np.cos(angle), np.sin(angle), color=MUTED, linewidth=0.8)
            for side, alpha in ((~front, 0.25), (front, 0.9)):
                ax.scatter(part.loc[side, "x"], part.loc[side, "z"], s=10, color=BLUE, alpha=alpha, linewidths=0)
            ax.set(aspect="equal", xticks=[], yticks=[], xlim=(-1.1, 1.1), ylim=(-1.1, 1.1))
            sns.despine(ax=ax, left=True, bottom=True)
            mean = part[["x", "y", "z"]].mean().to_numpy()
            words.append(f"{panel} at layer {layer} {mean @ mean:.2f}")
        line[0].set_ylabel(f"layer {layer}")
    for ax, panel in zip(axes[0], panels, strict=True):
        panel_label(ax, panel)
    figure.set_label(f"Tokens on a sphere. Mean overlap: {'; '.join(words)}. They gather where the weights decide.")
    return figure


def phase_diagram(rows: pd.DataFrame, longest: float = 8.0) -> Figure:
    """Distance to the ODE over step and depth, with the lines of the scalings; rows of ``Interpolation``.

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
    figure.colorbar(dots, ax=ax, label=r"mean distance of $\ln(1-m)$ to the ODE")
    low, high = error["L"].min() / 1.6, error["L"].max() * 1.6
    right = error["eta"].max() * 3.5
    eta = np.geomspace(error["eta"].min() / 1.5, right, 200)
    for power, scale, text, place in (
        (1, 1, r"$\eta L=1$", 0.8),
        (2, H, r"$\eta^2L/H=1$", 0.5),
        (3, 1, r"$\eta^3L=1$", 0.1),
    ):
        L = scale / eta**power
        ax.plot(eta, L, **DASHED)
        at = np.argmin(np.abs(np.log(L) - (np.log(low) + place * np.log(high / low))))
        beside(ax, eta[at], L[at], text, INK, (5, 4))
    ax.set(
        xscale="log", yscale="log", xlabel=r"step $\eta$", ylabel="layers $L$", ylim=(low, high), xlim=(eta[0], right)
    )
    corner = error.sort_values("distance").iloc[[0, -1]]
    words = "; ".join(
        f"{d:.3f} at step {e:g} and {L:g} layers" for e, L, d in corner[["eta", "L", "distance"]].to_numpy()
    )
    figure.set_label(f"Distance to the ODE over step and number of layers, {H} heads. Least and largest: {words}.")
    return figure


def two_tokens(rows: pd.DataFrame) -> Figure:
    """Moments of the overlap of two tokens over tau; rows of ``TwoTokens``."""
    rows = largest(rows)
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.2), sharey=True)
    off = []
    for ax, (logit, part) in zip(axes, rows.groupby("logit_std"), strict=True):
        for column, text in (("first", r"$\mathbb{E}R$"), ("second", r"$\mathbb{E}R^2$")):
            theory = part.groupby("tau")[f"{column}_theory"].first()
            ax.plot(theory.index, theory, **THEORY)
            beside(ax, theory.index[-1], theory.iloc[-1], text)
            heads = sorted(part["H"].unique())
            for k, (H, color) in enumerate(zip(heads, shades(len(heads)), strict=True)):
                shifted = part[part["H"] == H]
                shifted = shifted.assign(at=shifted["tau"] + 0.06 * (k - len(heads) / 2))
                means = _points(ax, shifted, "at", column, color)
                off.append(np.abs(means[column].to_numpy() - theory.to_numpy()).max())
                ax.plot(
                    [], [], "o", color=color, label=f"$H={H}$"
                ) if column == "first" and not ax.get_ylabel() else None
        panel_label(ax, rf"$\tau_\ell={logit:g}$")
        ax.set(xlabel=r"clock $\tau$", xlim=(0, part["tau"].max() * 1.2))
    axes[0].legend(fontsize=8)
    figure.set_label(
        "First and second moment of the overlap of two tokens against the clock for several numbers of heads, on the "
        f"lines of the Fokker-Planck equation. Largest distance {max(off):.3f}."
    )
    return figure


def logistic(rows: pd.DataFrame) -> Figure:
    """Mean overlap of hot tokens against the logistic curve; rows of ``Hot``."""
    rows = largest(rows)
    figure, ax = plt.subplots(figsize=(6.0, 3.3))
    curve = rows.groupby("tau")["u"].first()
    ax.plot(curve.index, curve, **THEORY)
    widths, words = sorted(rows["d"].unique()), []
    for d, color in zip(widths, shades(len(widths)), strict=True):
        means = _points(ax, rows[rows["d"] == d], "tau", "m", color)
        ax.plot(means["tau"], means["m"], color=color, linewidth=0.8, label=f"$d={d}$")
        words.append(f"{np.abs(means['m'].to_numpy() - curve.to_numpy()).max():.3f} at d = {d}")
    ax.legend(fontsize=8)
    ax.set(xlabel=r"clock $\tau$", ylabel="mean overlap $m$", ylim=(0, 1.02))
    figure.set_label(f"Mean overlap against the clock and the logistic curve. Largest distance {', '.join(words)}.")
    return figure


def simplex(rows: pd.DataFrame) -> Figure:
    """Cold equiangular tokens against the ODE, and the spread over pairs; rows of ``Cold``."""
    rows = largest(rows)
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.2))
    widths = sorted(rows["d"].unique())
    for d, color in zip(widths, shades(len(widths)), strict=True):
        part = rows[rows["d"] == d]
        theory = part.groupby("tau")["gamma_theory"].first()
        axes[0].plot(theory.index, theory, **THEORY | {"color": color})
        _points(axes[0], part, "tau", "gamma", color)
        axes[0].plot([], [], color=color, label=f"$d={d}$")
    at = sorted(rows["tau"].unique())[-1] / 4
    early = rows[np.isclose(rows["tau"], max(2.0, at) if 2.0 not in rows["tau"].round(6).to_numpy() else 2.0)]
    means = _points(axes[1], early, "d", "spread", INK)
    d = np.array(widths, dtype=float)
    first = float(means["spread"].iloc[0])
    axes[1].plot(d, first * np.sqrt(d[0] / d), **DASHED)
    beside(axes[1], d[0], first, "$d^{-1/2}$", MUTED, (14, -2))
    axes[0].legend(fontsize=8)
    axes[0].set(xlabel=r"clock $\tau$", ylabel=r"overlap $\gamma$", ylim=(0, 1.02))
    axes[1].set(xscale="log", yscale="log", xlabel="width $d$", ylabel=r"spread at $\tau=2$")
    figure.set_label(
        f"Left: overlap of cold equiangular tokens and the ODE for widths {', '.join(map(str, widths))}. Right: spread "
        f"of the overlaps at clock 2: {', '.join(f'{s:.3f}' for s in means['spread'])}."
    )
    return figure


def freezing(rows: pd.DataFrame) -> Figure:
    """Time to overlap 1/2 over temperature and number of tokens; rows of ``Freezing``."""
    rows = largest(rows)
    figure, ax = plt.subplots(figsize=(6.0, 3.5))
    tokens, words, ends = sorted(rows["n"].unique()), [], []
    for n, color in zip(tokens, shades(len(tokens)), strict=True):
        part = rows[rows["n"] == n].groupby("logit_std")["ode"].first()
        ax.plot(part.index, part, marker="o", markersize=3, color=color)
        edge = np.sqrt(2 * np.log(n))
        ax.plot(edge, np.interp(edge, part.index, part), marker="|", markersize=16, color=color)
        ends.append(part.iloc[-1])
        words.append(f"n = {n}: {part.iloc[0]:.2f} hot, {part.iloc[-1]:.1f} at logit deviation {part.index[-1]:g}")
        run = rows[(rows["n"] == n)].dropna(subset=["chain"])
        for logit, cell in run.groupby("logit_std"):
            _points(ax, cell.assign(at=logit), "at", "chain", RED, "s", 5)
    ax.set(
        yscale="log",
        xlabel=r"logit deviation $\tau_\ell$",
        ylabel=r"$\tau$ to overlap $\frac{1}{2}$",
        xlim=(-0.5, 18.5),
    )
    for n, end, place, color in zip(tokens, ends, np.exp(apart(np.log(ends), 0.16)), shades(len(tokens)), strict=True):
        ax.annotate(f"$n={n}$", (rows["logit_std"].max(), end), (16.4, place), color=color, va="center", fontsize=9)
    figure.set_label(f"Clock time to overlap one half against temperature: {'; '.join(words)}.")
    return figure


def levels(rows: pd.DataFrame) -> Figure:
    """Participation ratio of attention over temperature; rows: n, logit_std, f, leading."""
    figure, ax = plt.subplots(figsize=(6.0, 3.3))
    tokens, words = sorted(rows["n"].unique()), []
    for n, color in zip(tokens, shades(len(tokens)), strict=True):
        part = rows[rows["n"] == n]
        scale = np.sqrt(2 * np.log(n))
        ax.plot(part["logit_std"] / scale, part["f"], color=color, label=f"$n={n}$")
        ax.plot(part["logit_std"] / scale, part["leading"], color=color, linewidth=0.9, linestyle="--")
        words.append(f"{np.interp(scale, part['logit_std'], part['f']):.2f} for n = {n}")
    x = np.linspace(1, 3, 50)
    ax.plot(x, 1 - 1 / x, **THEORY)
    beside(ax, 3, 1 - 1 / 3, r"$1-\vartheta$", INK, (3, 0))
    ax.legend(fontsize=8)
    ax.set(xlabel=r"$\sqrt{v}/\sqrt{2\ln n}$", ylabel=r"$f=\mathbb{E}\sum_k\pi_k^2$", ylim=(0, 1), xlim=(0, 3.4))
    figure.set_label(f"Participation ratio against temperature in units of the critical one. At 1: {', '.join(words)}.")
    return figure


def slow_overlap(rows: pd.DataFrame, curves: pd.DataFrame) -> Figure:
    """Where artanh of the overlap ends; rows of ``SlowPaths``; curves: kappa, y, density."""
    rows = largest(rows)
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.1), sharey=True, sharex=True)
    words = []
    for ax, (factors, name) in zip(axes, ((2, r"$A=WW'^\top$"), (0, "orthogonal $A$")), strict=True):
        part = rows[rows["factors"] == factors]
        sns.histplot(x=part["y"].clip(-18, 18), stat="density", bins=30, ax=ax, color=SKY, edgecolor="none")
        for kappa, style in ((1, THEORY), (0, DASHED | {"color": RED, "linewidth": 1.3})):
            line = curves[curves["kappa"] == kappa]
            ax.plot(line["y"], line["density"], **style, label=rf"$\kappa={kappa}$")
        panel_label(ax, name)
        ax.set(xlabel=r"artanh of the overlap", xlim=(-18, 18), ylabel="density")
        words.append(f"{name.replace('$', '')}: {100 * part['returned'].mean():.0f} % returned to 0")
    axes[0].legend(fontsize=8)
    figure.set_label(
        f"Histograms of artanh of the slow overlap at the end. {'; '.join(words)}".replace("^\\top", "T")
        + f"; predicted {100 * part['recurrent'].iloc[0]:.0f} % for kappa 1, at most "
        f"{100 * part['transient'].iloc[0]:.0f} % for kappa 0."
    )
    return figure


def final_rate(rows: pd.DataFrame) -> Figure:
    """ln(1 - m) near collapse; rows of ``FinalRate``."""
    rows = largest(rows)
    figure, ax = plt.subplots(figsize=(6.0, 3.3))
    cases, words = list(rows.groupby(["d", "n", "logit_std"])), []
    for k, ((d, n, logit), part) in enumerate(cases):
        start = part.loc[part["layer"] == 0, "log_missing"].mean()
        means = _points(ax, part.assign(shifted=part["log_missing"] - start), "tau", "shifted", COLOURS[k % 6])
        ax.plot([], [], "o", color=COLOURS[k % 6], label=rf"$d={d}$, $n={n}$, $\tau_\ell={logit:g}$")
        words.append(f"{np.polyfit(means['tau'], means['shifted'], 1)[0]:.3f} for d = {d}, n = {n}, {logit:g}")
    tau = np.array([0, rows["tau"].max()])
    for d in sorted(rows["d"].unique()):
        ax.plot(tau, -(1 - 1 / d) * tau, **THEORY)
        beside(ax, tau[1], -(1 - 1 / d) * tau[1], f"$-(1-1/{d})$")
    ax.legend(fontsize=8)
    ax.set(xlabel=r"clock $\tau$", ylabel=r"$\ln(1-m)$, less its start", xlim=(-0.3, tau[1] * 1.22))
    figure.set_label(f"Logarithm of one minus the mean overlap against the clock. Slopes {'; '.join(words)}.")
    return figure


def clock(rows: pd.DataFrame) -> Figure:
    """The same curve for one head and a thousand, against eta * layer and against the clock; rows of ``Clock``."""
    rows = largest(rows)
    rows = rows.assign(drift=rows["eta"] * rows["layer"])
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.4), sharey=True)
    cases, off = list(rows.groupby(["H", "L"])), 0.0
    for k, ((H, L), part) in enumerate(cases):
        color, marker = shades(len(cases))[k], "osD^vP"[k % 6]
        moved = part[part["layer"] > 0]
        means = _points(axes[0], moved, "drift", "m", color, marker)
        axes[0].plot(means["drift"], means["m"], color=color, linewidth=0.7)
        _points(axes[1], part, "tau", "m", color, marker)
        axes[1].plot([], [], marker, color=color, label=rf"$H={H}$, $L={L}$, $\eta={part['eta'].iloc[0]:.2f}$")
        gap = part.groupby("layer")["m"].mean() - part.groupby("layer")["m_theory"].first()
        off = max(off, float(gap.abs().max()))
    theory = rows.groupby("tau")["m_theory"].first().sort_index()
    axes[1].plot(theory.index, theory, **THEORY)
    axes[1].legend(fontsize=7, loc="lower right")
    axes[0].set(xscale="log", xlabel=r"$\eta\ell$", ylabel="mean overlap $m$")
    axes[1].set(xlabel=r"clock $\tau=\eta^2\ell/H$")
    figure.set_label(
        f"Mean overlap for {len(cases)} combinations of heads and layers, from {rows['H'].min()} to {rows['H'].max()} "
        f"heads. Against step times layer the curves lie apart; against the clock they meet, at most {off:.3f} from "
        "the ODE."
    )
    return figure


def heads_to_ode(rows: pd.DataFrame) -> Figure:
    """Mean overlap over the draws of the weights, for growing numbers of heads; rows of ``Interpolation``."""
    rows = largest(rows)
    rows = rows[rows["kind"] == "heads"]
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.0))
    sns.violinplot(rows, x="H", y="m", ax=axes[0], color=SKY, inner=None, linewidth=0.6, cut=0)
    axes[0].axhline(rows["m_ode"].iloc[0], **THEORY)
    variance = rows.groupby("H")["m"].var()
    axes[1].plot(variance.index, variance, "o", color=BLUE)
    axes[1].plot(variance.index, variance.iloc[-1] * variance.index[-1] / variance.index, **DASHED)
    axes[0].set(xlabel="heads $H$", ylabel="mean overlap $m$")
    axes[1].set(xscale="log", yscale="log", xlabel="heads $H$", ylabel="variance of $m$")
    words = ", ".join(f"{v:.2g} at {H}" for H, v in variance.items())
    figure.set_label(f"Left: distribution of the mean overlap by number of heads. Right: its variance: {words}.")
    return figure


def prompts(rows: pd.DataFrame) -> Figure:
    """Two prompts, one draw of weights; rows of ``Prompts``."""
    rows = largest(rows)
    figure, ax = plt.subplots(figsize=(6.0, 3.5))
    means = _points(ax, rows, "n", "distance", BLUE)
    ax.plot(means["n"], means["distance"].iloc[0] * means["n"].iloc[0] / means["n"], **THEORY)
    columns, common = [name for name in rows.columns if name.startswith("mean_")], {}
    for n, part in rows.groupby("n"):
        common[n] = float(part[columns].var().sum())
    ax.plot(list(common), list(common.values()), "s", color=RED, markersize=4)
    beside(ax, means["n"].iloc[-1], list(common.values())[-1], "two draws of weights", RED, (-120, -13))
    beside(ax, means["n"].iloc[-1], means["distance"].iloc[-1], "two prompts", BLUE, (-70, -8))
    ax.set(xscale="log", yscale="log", xlabel="tokens $n$", ylabel="squared distance, variance")
    slope = np.polyfit(np.log(means["n"]), np.log(means["distance"]), 1)[0]
    figure.set_label(
        f"Squared distance of the mean tokens of two prompts under the same weights against n, slope {slope:.2f}; the "
        f"variance over weights stays: {', '.join(f'{v:.2f}' for v in common.values())}."
    )
    return figure


def control(rows: pd.DataFrame) -> Figure:
    """Common against private noise; rows of ``PrivateNoise``."""
    rows = largest(rows)
    figure, ax = plt.subplots(figsize=(6.0, 3.2))
    words = []
    for noise, color in (("common", BLUE), ("private", RED)):
        for gamma, part in rows[rows["noise"] == noise].groupby("gamma0"):
            means = _points(ax, part, "tau", "gamma", color)
            ax.plot(means["tau"], means["gamma"], color=color, linewidth=0.8)
            words.append(f"{noise} from {gamma:g} to {means['gamma'].iloc[-1]:.2f}")
        ax.plot([], [], "o-", color=color, label=f"{noise} noise")
    ax.legend(fontsize=8)
    ax.set(xlabel=r"clock $\tau$", ylabel="mean overlap of pairs")
    figure.set_label(f"Mean overlap against the clock: {', '.join(words)}.")
    return figure


def stack(rows: pd.DataFrame) -> Figure:
    """A post-LayerNorm stack against the ODE; rows of ``Stack``."""
    rows = largest(rows)
    figure, ax = plt.subplots(figsize=(6.0, 3.3))
    words = []
    theory = rows.groupby("tau")["m_theory"].first().sort_index()
    ax.plot(theory.index, theory, **THEORY)
    cases = list(rows.groupby(["scale", "H"]))
    for k, ((scale, H), part) in enumerate(cases):
        means = _points(ax, part, "tau", "m", COLOURS[k % 6], "osD^vP"[k % 6])
        ax.plot([], [], "osD^vP"[k % 6], color=COLOURS[k % 6], label=f"scale {scale:g}, $H={H}$")
        words.append(f"scale {scale:g}, {H} heads: {means['m'].iloc[-1]:.2f}")
    ax.legend(fontsize=8)
    ax.set(xlabel=r"clock $\tau$ = scale$^2\times$ layer", ylabel="mean overlap $m$", ylim=(0, 1.02))
    figure.set_label(f"Mean overlap of a post-LayerNorm stack against the clock; at the end {'; '.join(words)}.")
    return figure
