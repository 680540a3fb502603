"""The recurrences carried far: two laws, the order of limits, and the constants of the laws."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from derived.lab.plot import (
    BLUE,
    DASHED,
    DIVERGING,
    GREEN,
    INK,
    MUTED,
    RED,
    SEQUENTIAL,
    apart,
    beside,
    largest,
    panel_label,
    plain_log,
    shades,
)

from .marks import NAMES


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
    panel_label(axes[0], "pre-LayerNorm")
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
    panel_label(axes[1], r"saturating, $\alpha=1$")
    figure.set_label(
        "Left, both axes logarithmic: nearly straight lines, last local exponents with and without attention "
        f"{' and '.join(ends)}. Right, squared logarithm against block: nearly straight lines, last slopes over "
        f"those of the asymptotes {', '.join(slopes)}."
    )
    return figure


def order_of_limits(rows: pd.DataFrame) -> Figure:
    """Local exponent of J against depth for several numbers of tokens; rows of ``with_laws``."""
    rows = largest(rows)
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.4), sharey=True)
    words = []
    for ax, mult in zip(axes, (1.0, 2.0), strict=True):
        part = rows[(rows["norm"] == "layernorm") & (rows["attn_mult"] == mult)]
        tokens, ends = sorted(part["tokens"].unique(), key=lambda n: n or np.inf), []
        colours = shades(len(tokens))
        for n, color in zip(tokens, colours, strict=True):
            curve = part[part["tokens"] == n].sort_values("b")
            b = curve["b"].to_numpy()
            local = np.diff(curve["log_J"]) / np.diff(np.log(b))
            ax.plot(np.sqrt(b[1:] * b[:-1]), local, color=color)
            ends.append(float(local[-1]))
        at = np.sqrt(b[-1] * b[-2])
        for n, color, end, place in zip(tokens, colours, ends, apart(ends, 0.075), strict=True):
            ax.plot([1.1 * at, 2.2 * at], [end, place], color=color, linewidth=0.7, clip_on=False)
            beside(ax, 2.2 * at, place, f"$n={n}$" if n else r"$n=\infty$", color, (2, 0), fontsize=9)
            words.append(f"{end:.2f}")
        exponent = float(part["zeta"].iloc[0])
        ax.plot([4, at], [exponent, exponent], **DASHED)
        beside(ax, 2e3, exponent, rf"$\zeta={exponent:.2f}$", MUTED, (0, -9), fontsize=9)
        ticks = 10.0 ** np.arange(1, np.ceil(np.log10(at)) + 1)
        ax.set(xscale="log", xlabel="block $b$", xlim=(4, 16 * at), ylim=(0, 1.18))
        ax.set_xticks(ticks[ticks < 1.5 * at])
        panel_label(ax, "ViT-Base weights" if mult == 1 else rf"$W_V,W_O\times{mult:g}$")
    axes[0].set_ylabel(r"$d\ln J^{b,0}/d\ln b$")
    figure.set_label(
        "Local exponent against depth for 4, 16, 64, 256 and infinitely many tokens. At the last depth, standard "
        f"weights, then doubled attention: {', '.join(words)}. With finitely many tokens the curves turn up towards 1."
    )
    return figure


def constants(rows: pd.DataFrame) -> Figure:
    """Heat maps of zeta and of 1/lambda; rows: sigma_OV, sigma_21, zeta, rate."""
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.2))
    for ax, column, text in zip(axes, ("zeta", "rate"), (r"$\zeta$", r"$1/\lambda$"), strict=True):
        grid = rows.pivot(index="sigma_21", columns="sigma_OV", values=column).sort_index(ascending=False)
        sns.heatmap(
            grid, ax=ax, cmap=SEQUENTIAL, xticklabels=8, yticklabels=8, cbar_kws={"label": text}, rasterized=True
        )
        ax.set(xlabel=r"$\sigma_{OV}$", ylabel=r"$\sigma_{21}$")
        ax.tick_params(axis="both", labelrotation=0)
    low, high = rows["rate"].min(), rows["rate"].max()
    figure.set_label(
        f"Two heat maps over the attention and the MLP standard deviation. Zeta runs from {rows['zeta'].min():.3f} to "
        f"{rows['zeta'].max():.3f} and falls with attention. The rate 1/lambda runs from {low:.3g} to {high:.3g}; "
        "it grows with the MLP and falls with attention."
    )
    return figure
