"""The figures of the chapter: each takes rows and returns a figure with its alt text as label.

mark                   meaning
line in INK            theory; dashed: a reference
filled, open marker    recorded, live; bars are 99.9 % intervals over replicates
sequential colours     a swept parameter, or a level
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from derived.lab.plot import COLOURS, INK, MUTED, SEQUENTIAL, beside, largest, mean_and_reach, panel_label, shades

BLUE, RED, GREEN, PINK, ORANGE, SKY = COLOURS
DASHED = {"color": MUTED, "linewidth": 1.0, "linestyle": "--", "zorder": 1}
NAMES = {"plain": "plain", "wide": "wide", "conv-qk": "conv-QK", "hkt": "HKT", "hkt-average": "HKT, averages"}
KIND_COLOURS = {"plain": INK, "wide": MUTED, "conv-qk": ORANGE, "hkt": BLUE, "hkt-average": SKY, "hkt-block": RED}
IMPLS = {"plain": "one level", "reference": "materialised", "tables": "coarse tables", "fused": "fused"}


def _table(rows: pd.DataFrame, value: str, index: str = "i", columns: str = "j") -> np.ndarray:
    return rows.pivot(index=index, columns=columns, values=value).to_numpy()


def _brackets(ax: Axes, symbols: Sequence[str], below: float) -> None:
    """The nesting of a ListOps string under the horizontal axis, one line per list."""
    starts, depth = [], 0
    for place, symbol in enumerate(symbols):
        if symbol.startswith("["):
            starts.append((place, depth))
            depth += 1
        elif symbol == "]":
            start, level = starts.pop()
            depth -= 1
            y = below + 0.9 * level
            ax.plot([start, start, place, place], [y - 0.3, y, y, y - 0.3], color=RED, linewidth=1.2, clip_on=False)


def score_pyramid(rows: pd.DataFrame, symbols: Sequence[str]) -> Figure:
    """Score tables of a string, and their mixture under the mask; rows: level (-1: mixture), i, j, score."""
    levels = sorted(level for level in rows["level"].unique() if level >= 0)
    figure, axes = plt.subplots(1, len(levels) + 1, figsize=(7.4, 2.7))
    bottom, top = rows["score"].min(), rows["score"].max()
    for ax, level in zip(axes, [*levels, -1], strict=True):
        table = _table(rows[rows["level"] == level], "score")
        if level < 0:
            table = np.where(np.tri(len(table), dtype=bool), table, np.nan)
        ax.imshow(table, cmap=SEQUENTIAL, vmin=bottom, vmax=top)
        panel_label(ax, f"level {level}: {table.shape[0]}²" if level >= 0 else "mixture, masked")
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
    last = axes[-1]
    last.set_yticks(range(len(symbols)), [symbol.strip("[") for symbol in symbols], fontsize=5)
    last.tick_params(length=0)
    _brackets(last, symbols, len(symbols) + 0.6)
    sizes = ", ".join(str(int(rows[rows["level"] == level]["i"].max()) + 1) for level in levels)
    figure.set_label(
        f"Score tables of {' '.join(symbols)} as coloured squares with {sizes} rows, and their mixture with the upper "
        f"triangle masked. Scores lie between {rows['score'].min():.1f} and {rows['score'].max():.1f}; in the mixture "
        "blocks of equal colour come from the coarse tables."
    )
    return figure


def cost_bars(counts: pd.DataFrame, seconds: pd.DataFrame) -> Figure:
    """Entries and multiply-adds by number of levels; seconds by implementation. Rows of MultiplyAdds and Overhead."""
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.2), width_ratios=[1.15, 1])
    chosen = counts[(counts["T"] == 1024) & (counts["d"] == 64)].set_index("levels")
    columns = {"entries": "score entries", "layer": "whole layer", "layer_fused": "whole layer, fused"}
    for shift, (column, name), color in zip((-0.26, 0, 0.26), columns.items(), (BLUE, GREEN, ORANGE), strict=True):
        axes[0].bar(chosen.index + shift, chosen[column], 0.24, color=color, label=name)
    axes[0].axhline(4 / 3, **DASHED)
    axes[0].set(xlabel="levels $L$", ylabel="ratio to standard attention", xticks=chosen.index)
    axes[0].legend(fontsize=8, loc="upper left")
    panel_label(axes[0], "counted, $T=1024$, $d=64$")
    seconds = largest(seconds)
    T = int(seconds["T"].max())
    wide = seconds[seconds["T"] == T].pivot(index="round", columns="impl", values="seconds")
    words = []
    for place, (impl, name) in enumerate(IMPLS.items()):
        ratio = wide[impl] / wide["sdpa"]
        axes[1].plot(ratio, np.full(len(ratio), place), "o", color=BLUE, alpha=0.4, markersize=4)
        axes[1].plot(ratio.median(), place, "|", color=INK, markersize=16)
        words.append(f"{name} {ratio.median():.2f}")
    axes[1].axvline(1, **DASHED)
    axes[1].set(
        yticks=range(len(IMPLS)), yticklabels=IMPLS.values(), xlabel="seconds over torch's attention", xscale="log"
    )
    axes[1].set_ylim(-0.6, len(IMPLS) - 0.4)
    panel_label(axes[1], f"timed, $T={T}$")
    three = chosen.loc[3]
    figure.set_label(
        f"Left, bars of cost by number of levels: at three levels {three['entries']:.4f} of the entries, "
        f"{three['layer']:.3f} of a layer's multiply-adds, {three['layer_fused']:.2f} if run fused. Right, seconds at "
        f"length {T} over torch's attention, medians: {', '.join(words)}."
    )
    return figure


def jacobians(rows: pd.DataFrame) -> Figure:
    """|dY_i/dx_t| for several poolings; rows: pooling, i, t, size. Sizes below 100 eps are left empty: rounding."""
    names = list(dict.fromkeys(rows["pooling"]))
    figure, axes = plt.subplots(1, len(names), figsize=(7.2, 2.6))
    words = []
    for ax, name in zip(axes, names, strict=True):
        table = _table(rows[rows["pooling"] == name], "size", "i", "t")
        seen = table > 100 * np.finfo(float).eps
        ax.imshow(np.log10(np.where(seen, table, np.nan)), cmap=SEQUENTIAL, vmin=-4, vmax=0.5)
        ax.plot([-0.5, len(table) - 0.5], [-0.5, len(table) - 0.5], color=RED, linewidth=1)
        panel_label(
            ax, {"convolution": "left-padded", "block": "blocks", "delayed": "completed blocks"}.get(name, name)
        )
        ax.set(xticks=[], yticks=[], xlabel="token $t$")
        words.append(f"{name} {np.triu(table, 1).max():.2g}")
    axes[0].set_ylabel("output $i$")
    figure.set_label(
        f"Jacobian of the layer, outputs by tokens, for {len(names)} ways to pool. Largest entry above the diagonal: "
        f"{', '.join(words)}. Empty squares are zeros up to rounding."
    )
    return figure


def leak(rows: pd.DataFrame) -> Figure:
    """Loss on fresh i.i.d. symbols less ln V by kind; rows of Leak."""
    kinds = {"plain": "plain", "hkt": "HKT", "hkt-block": "HKT with block means"}
    figure, ax = plt.subplots(figsize=(6.4, 2.2))
    words = []
    for place, kind in enumerate(kinds):
        for recorded, part in rows[rows["kind"] == kind].groupby("recorded"):
            color, face = KIND_COLOURS[kind], KIND_COLOURS[kind] if recorded else "none"
            value, reach = mean_and_reach(part["loss"] - part["chance"])
            height = place + (0.12 if recorded else -0.12)
            ax.errorbar(value, height, xerr=reach, fmt="o", color=color, markerfacecolor=face)
        best = largest(rows[rows["kind"] == kind])
        words.append(
            f"{kinds[kind]} {(best['loss'] - best['chance']).mean():+.3f}, accuracy {best['accuracy'].mean():.2f}"
        )
    ax.axvline(0, **DASHED)
    ax.set(yticks=range(len(kinds)), yticklabels=kinds.values(), xlabel=r"test loss less $\ln V$ [nats]")
    ax.set_ylim(-0.6, len(kinds) - 0.4)
    figure.set_label(f"Loss on symbols that nobody can predict, less that of chance: {'; '.join(words)}.")
    return figure


def eigenvalues(rows: pd.DataFrame) -> Figure:
    """Eigenvalues of sym(M) of random heads; rows: head, d_k, rank, value."""
    figure, ax = plt.subplots(figsize=(6.6, 2.9))
    widths, words = sorted(rows["d_k"].unique()), []
    for place, (d_k, color) in enumerate(zip(widths, shades(len(widths)), strict=True)):
        part = rows[rows["d_k"] == d_k]
        spread = place + 0.7 * (part["rank"] / max(1, part["rank"].max()) - 0.5)
        ax.plot(spread, part["value"], ".", color=color, markersize=3)
        counts = [(sign * part["value"] > 1e-9).groupby(part["head"]).sum() for sign in (1, -1)]
        positive, negative = (f"{int(count.min())} to {int(count.max())}" for count in counts)
        words.append(f"{positive} positive and {negative} negative at width {d_k}")
    ax.axhline(0, **DASHED)
    ax.set(xticks=range(len(widths)), xticklabels=[f"$d_k={each}$" for each in widths])
    ax.set_ylabel(r"eigenvalues of $\operatorname{sym}(M)$")
    figure.set_label(f"Eigenvalues of random heads, in two clouds around zero: {'; '.join(words)}.")
    return figure


def split_energy(rows: pd.DataFrame) -> Figure:
    """Squared norm by level and part, mean over instances; rows: level, symmetric, antisymmetric (squared norms)."""
    figure, ax = plt.subplots(figsize=(6.0, 2.6))
    means = rows.groupby("level")[["symmetric", "antisymmetric"]].mean()
    ax.barh(means.index, means["symmetric"], color=BLUE, height=0.6)
    ax.barh(means.index, means["antisymmetric"], left=means["symmetric"], color=ORANGE, height=0.6)
    top = means.iloc[0]
    beside(ax, 0, -0.55, "symmetric", BLUE, (2, 0))
    beside(ax, top["symmetric"], -0.55, "antisymmetric", ORANGE, (2, 0))
    ax.set(yticks=means.index, yticklabels=[f"level {level}" for level in means.index], ylim=(len(means) - 0.5, -0.8))
    ax.set_xlabel(r"mean of $\Vert\alpha_lU_lS^{(l)}U_l^\top\Vert_F^2$, its two parts")
    words = "; ".join(f"level {k} {r['symmetric']:.2f} and {r['antisymmetric']:.2f}" for k, r in means.iterrows())
    figure.set_label(f"Stacked bars of squared norm by level, symmetric and antisymmetric part: {words}.")
    return figure


def information(rows: pd.DataFrame) -> Figure:
    """I(X; Y) of each instance as a stack of its parts; rows of Budgets."""
    sizes = [size for size in sorted(rows["size"].unique()) if size > 0] or [0.0]
    figure, axes = plt.subplots(1, len(sizes), figsize=(7.2, 3.0), squeeze=False)
    parts = {"gaussian": ("$I_G(BZ;Y)$", MUTED), "width": ("head width", GREEN), "resolution": ("resolution", BLUE)}
    for ax, size in zip(axes[0], sizes, strict=True):
        part = rows[rows["size"] == size].sort_values("total").reset_index(drop=True)
        ax.bar(part.index, part["correction"], color=RED, label="correction")
        base = np.maximum(part["correction"], 0.0)
        for column, (name, color) in parts.items():
            ax.bar(part.index, part[column], bottom=base, color=color, label=name)
            base = base + part[column]
        ax.plot(part.index, part["total"], "_", color=INK, markersize=9, label="$I(X;Y)$")
        ax.axhline(0, color=INK, linewidth=0.6)
        ax.set(xticks=[], xlabel="instance")
        panel_label(ax, f"distance of the centres × {size:g}")
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
        ax.plot(part["level"], part["predicted"].abs(), color=INK, linewidth=1.0)
        ax.plot(part["level"], part["value"].abs(), "o", color=color)
        last = part["value"].abs().to_numpy()
        beside(ax, part["level"].max(), last[-1], name, color)
        words.append(f"{name.replace('$', '')} {last[-1] / last[-2]:.3f}")
    ax.set(yscale="log", xlabel="level $l$", ylabel="per coordinate", xlim=(-0.3, 1.45 * rows["level"].max()))
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
    ax.set(xscale="log", xlabel="$n/p$", ylabel=r"$b_{2,p}\,/\,p(p+2)$")
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
        ax.plot(part["level"], part["closed"], color=INK, linewidth=1.0)
        ax.plot(part["level"], part["variance"], "o", color=color)
        beside(ax, part["level"].max(), part["variance"].iloc[-1], f"$H={H:g}$", color)
        words.append(f"{2 ** (-2 * (1 - H)):.3f} at H = {H:g}")
    ar = rows[rows["process"] == "ar1"].sort_values("level")
    ax.plot(ar["level"], ar["variance"], "s", color=RED, markerfacecolor="none")
    beside(ax, ar["level"].max(), ar["variance"].iloc[-1], "AR(1)", RED)
    ax.set(yscale="log", xlabel="level $l$", ylabel=r"variance of $x^{(l)}$", xlim=(-0.3, 1.2 * rows["level"].max()))
    figure.set_label(f"Variance by level, markers on straight lines. Factors per level: {', '.join(words)}.")
    return figure


def _accuracies(rows: pd.DataFrame) -> pd.DataFrame:
    """Replicates by kinds."""
    first = rows[(rows["block"] == 0) & (rows["level"] == 0)]
    return first.pivot(index=["part", "replicate"], columns="kind", values="accuracy")


def comparison(rows: pd.DataFrame, rules: pd.DataFrame, length: str) -> Figure:
    """Accuracy of each kind with shallow rules, and HKT's paired gain; rows of a Comparison and of Rules."""
    best, rules = largest(rows), largest(rules)
    wide = _accuracies(best)
    kinds = [kind for kind in NAMES if kind in wide.columns]
    recorded = bool(best["recorded"].iloc[0])
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.1), sharey=True, width_ratios=[1.25, 1])
    heights, words, gains = np.arange(len(kinds))[::-1], [], []
    for height, kind in zip(heights, kinds, strict=True):
        color, face = KIND_COLOURS[kind], KIND_COLOURS[kind] if recorded else "none"
        axes[0].plot(wide[kind], np.full(len(wide), height - 0.22), "|", color=color, alpha=0.6, markersize=6)
        value, reach = mean_and_reach(wide[kind])
        axes[0].errorbar(value, height, xerr=reach, fmt="o", color=color, markerfacecolor=face)
        words.append(f"{NAMES[kind]} {100 * value:.1f} %")
        if kind != "hkt":
            difference = 100 * (wide["hkt"] - wide[kind])
            value, reach = mean_and_reach(difference)
            axes[1].plot(difference, np.full(len(wide), height - 0.22), "|", color=color, alpha=0.6, markersize=6)
            axes[1].errorbar(value, height, xerr=reach, fmt="o", color=color, markerfacecolor=face)
            gains.append(f"{value:+.1f} ± {reach:.1f} over {NAMES[kind]}")
    lines = rules[rules["range"] == length].set_index("rule")
    for name, row in (lines["right"] / lines["trees"]).items():
        if name in ("majority", "root", "depth 1"):
            axes[0].axvline(row, **DASHED)
            axes[0].annotate(
                name, (row, len(kinds) - 0.25), fontsize=8, color=MUTED, ha="center", annotation_clip=False
            )
    axes[0].set(yticks=heights, yticklabels=[NAMES[kind] for kind in kinds], xlabel="test accuracy")
    axes[0].set_ylim(-0.6, len(kinds) - 0.3)
    axes[1].axvline(0, **DASHED)
    axes[1].set_xlabel("HKT less the other, points")
    figure.set_label(
        f"Test accuracy over {len(wide)} replicates: {', '.join(words)}. Paired gains of HKT in points with 99.9 % "
        f"intervals: {', '.join(gains)}."
    )
    return figure


def trained_levels(rows: pd.DataFrame) -> Figure:
    """alpha and excess kurtosis by level in trained HKT; rows of a Comparison."""
    best = largest(rows)
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.0))
    blocks, words = sorted(best["block"].unique()), []
    kinds = [kind for kind in ("hkt", "hkt-average") if kind in set(best["kind"])]
    for kind, marker in zip(kinds, ("o", "s"), strict=False):
        for block, shift in zip(blocks, np.linspace(-0.12, 0.12, len(blocks)), strict=True):
            part = best[(best["kind"] == kind) & (best["block"] == block)].groupby("level")
            face = KIND_COLOURS[kind] if block == blocks[0] else "none"
            for ax, column in zip(axes, ("alpha", "kurtosis"), strict=True):
                value, reach = zip(*(mean_and_reach(group[column]) for _, group in part), strict=True)
                x = np.arange(len(value)) + shift + (0.06 if kind == "hkt-average" else 0)
                name = f"{NAMES[kind]}, block {block}" if column == "alpha" else None
                ax.errorbar(x, value, reach, fmt=marker, color=KIND_COLOURS[kind], markerfacecolor=face, label=name)
            values = ", ".join(f"{group['alpha'].mean():.2f}" for _, group in part)
            words.append(f"{NAMES[kind]} block {block}: {values}")
    levels = sorted(best["level"].unique())
    axes[0].axhline(1 / len(levels), **DASHED)
    axes[1].axhline(0, **DASHED)
    axes[0].set(xlabel="level", ylabel=r"weight $\alpha_l$", xticks=levels)
    axes[1].set(xlabel="level", ylabel="excess kurtosis of features", xticks=levels)
    axes[0].legend(fontsize=7)
    figure.set_label(
        f"Weights of the levels after training and kurtosis of their features. Weights: {'; '.join(words)}."
    )
    return figure


def mutations(rows: pd.DataFrame) -> Figure:
    """Relative change of the output by mutation; rows: change, effect."""
    figure, ax = plt.subplots(figsize=(6.4, 0.36 * len(rows) + 0.9))
    sns.barplot(rows, x="effect", y="change", color=BLUE, ax=ax)
    ax.set(xlabel="change of the output, relative", ylabel="")
    words = "; ".join(f"{row['change']} {row['effect']:.2g}" for _, row in rows.iterrows())
    figure.set_label(f"Bars of the effect of each mutation: {words}.")
    return figure
