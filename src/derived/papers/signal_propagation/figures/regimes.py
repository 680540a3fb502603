"""The recurrences carried far: two laws, the order of limits, and the constants of the laws."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

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
