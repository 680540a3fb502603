"""The figures of the chapter: each takes the rows of an experiment and returns a figure with its alt text as label.

mark                   meaning
line in INK            theory; dashed: an asymptote
filled, open marker    recorded, live; bars are 99.9 % intervals over initialisations
sequential colours     a swept parameter
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from derived.lab.plot import (
    COLOURS,
    INK,
    MUTED,
    SEQUENTIAL,
    apart,
    beside,
    largest,
    mean_and_reach,
    panel_label,
    shades,
)

from . import asymptotics

THEORY = {"color": INK, "linewidth": 1.0, "zorder": 2}
DASHED = {"color": MUTED, "linewidth": 1.0, "linestyle": "--", "zorder": 1}
BLUE, RED, GREEN, PINK = COLOURS[:4]
NAMES = {"layernorm": "pre-LayerNorm", "erf": "Derf", "tanh": "DyT"}
NORM_COLOURS = {"layernorm": INK, "erf": BLUE, "tanh": RED}


def _points(ax: Axes, rows: pd.DataFrame, column: str, color, every: int = 1, marker: str = "o") -> None:
    """Means over initialisations by block with their intervals: recorded filled, live open."""
    for recorded, part in rows.groupby("recorded"):
        groups = [(b, *mean_and_reach(group[column])) for b, group in part.groupby("b") if b % every == 0]
        b, value, reach = (np.array(each) for each in zip(*groups, strict=True))
        face = color if recorded else "none"
        ax.errorbar(
            b,
            value,
            reach,
            fmt=marker,
            color=color,
            markerfacecolor=face,
            markersize=4 if recorded else 6.5,
            elinewidth=0.9,
        )


def _plain_log(ax: Axes, top: float) -> None:
    """Plain numbers on a logarithmic axis of amplifications, and whole blocks below it."""
    steps = (1, 2, 5) if top < 100 else (1,)
    ticks = [step * 10**power for power in range(6) for step in steps]
    ax.set_yticks([tick for tick in ticks if tick <= 1.3 * top])
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def _like(shown: pd.DataFrame, part: pd.DataFrame) -> pd.DataFrame:
    """The rows, live and recorded, of the normaliser and the number of heads of ``part``."""
    return shown[(shown["norm"] == part["norm"].iloc[0]) & (shown["heads"] == part["heads"].iloc[0])]


def token_clouds(rows: pd.DataFrame) -> Figure:
    """One channel of two tokens; rows: norm, b, u, v (channels of one network) and q, p of the recurrence."""
    norms, depths = list(rows["norm"].unique()), sorted(rows["b"].unique())
    figure, axes = plt.subplots(len(norms), len(depths), figsize=(7.0, 2.2 * len(norms)), squeeze=False)
    overlaps = {}
    for line, norm in zip(axes, norms, strict=True):
        for ax, b in zip(line, depths, strict=True):
            part = rows[(rows["norm"] == norm) & (rows["b"] == b)]
            q, p = float(part["q"].iloc[0]), float(part["p"].iloc[0])
            scale = q**0.5
            ax.scatter(part["u"] / scale, part["v"] / scale, s=3, color=NORM_COLOURS[norm], alpha=0.35, linewidths=0)
            for reach in (1, 2):
                size = [2 * reach * (max(1 + sign * p / q, 0.0)) ** 0.5 for sign in (1, -1)]
                ax.add_patch(Ellipse((0, 0), *size, angle=45, fill=False, edgecolor=RED, linewidth=1.1))
            ax.set(xlim=(-3.3, 3.3), ylim=(-3.3, 3.3), aspect="equal", xticks=[], yticks=[])
            panel_label(ax, rf"$b={b}$, $\rho={p / q:.2f}$")
            overlaps[norm, b] = p / q
        line[0].set_ylabel(f"{NAMES[norm]}\ntoken 2 / $\\sqrt{{q}}$")
    for ax in axes[-1]:
        ax.set_xlabel(r"token 1 / $\sqrt{q}$")
    words = "; ".join(f"{NAMES[norm]} " + ", ".join(f"{overlaps[norm, b]:.2f}" for b in depths) for norm in norms)
    blocks = ", ".join(str(b) for b in depths)
    figure.set_label(
        f"Clouds of the channels of two tokens with ellipses of the theory at blocks {blocks}. Overlaps: {words}. The "
        "cloud behind LayerNorm shrinks towards a line, that of Derf does not."
    )
    return figure


def stream_moments(rows: pd.DataFrame) -> Figure:
    """q and rho by block, networks against the recurrences; rows of ``VisionTransformer``."""
    rows = largest(rows)
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.2))
    rows = rows.assign(rho=rows["p"] / rows["q"], rho_theory=rows["p_theory"] / rows["q_theory"])
    ends, labels = [], []
    for name, color, part in _cases(rows):
        first = part.groupby("b").first()
        for ax, column in zip(axes, ("q", "rho"), strict=True):
            ax.plot(first.index, first[f"{column}_theory"], **THEORY | {"color": color})
            _points(ax, part, column, color, every=max(1, len(first) // 8))
        last = part[part["b"] == part["b"].max()]
        ends.append(f"{name}: {last['rho'].mean():.3f} measured, {last['rho_theory'].iloc[0]:.3f} predicted")
        labels.append((name, color, first["rho_theory"].iloc[-1]))
    for (name, color, _), place in zip(labels, apart([end for *_, end in labels], 0.03), strict=True):
        beside(axes[1], rows["b"].max(), place, name, color, fontsize=9)
    axes[0].set(xlabel="block $b$", ylabel="second moment $q$")
    axes[1].set(xlabel="block $b$", ylabel=r"overlap $\rho=p/q$")
    axes[1].set_xlim(right=1.3 * rows["b"].max())
    figure.set_label(
        f"Second moment and overlap against block, markers on the theory's lines. At the end {'; '.join(ends)}."
    )
    return figure


def _cases(rows: pd.DataFrame):
    """(name, colour, rows) of pre-LayerNorm and of each alpha."""
    alphas = sorted(rows.loc[rows["norm"] == "erf", "alpha"].unique())
    yield "LN", INK, rows[rows["norm"] == "layernorm"]
    for alpha, color in zip(alphas, shades(len(alphas)), strict=True):
        yield f"α = {alpha:g}", color, rows[(rows["norm"] == "erf") & (rows["alpha"] == alpha)]


def vision_gradients(rows: pd.DataFrame) -> Figure:
    """J^{B,b} of networks of ViT-Base shape; rows of ``VisionTransformer``."""
    rows = largest(rows)
    figure, ax = plt.subplots(figsize=(6.4, 3.6))
    ends = []
    for name, color, part in _cases(rows):
        first = part.groupby("b").first()
        ax.plot(first.index, first["J_theory"], **THEORY | {"color": color})
        _points(ax, part, "J", color, every=max(1, len(first) // 8))
        start = part[part["b"] == 0]
        ends.append(f"{name} {start['J'].mean():.3g} ({start['J_theory'].iloc[0]:.3g})")
        beside(ax, 0, first["J_theory"].iloc[0], name, color, (-7, 0), ha="right", fontsize=9)
    ax.set(yscale="log", xlabel="block $b$", ylabel=r"APJN $J^{B,b}$")
    _plain_log(ax, rows["J"].max())
    ax.set_xlim(left=-0.16 * rows["b"].max())
    ax.set_xticks(np.unique(np.linspace(0, rows["b"].max(), 5).round()))
    figure.set_label(
        "Gradient norm against block on a logarithmic axis; it grows from right, the output, to left, the input. "
        f"At the input, measured and in brackets predicted: {', '.join(ends)}."
    )
    return figure


def companion(rows: pd.DataFrame) -> Figure:
    """J^{B,b} of narrow networks with few tokens, with and without K; rows of ``Networks``."""
    shown, rows = rows, largest(rows)
    norms = [norm for norm in NAMES if norm in set(rows["norm"])]
    figure, axes = plt.subplots(1, len(norms), figsize=(7.4, 3.0), sharey=True)
    found = []
    for ax, norm in zip(axes, norms, strict=True):
        part = rows[(rows["norm"] == norm) & (rows["heads"] == rows["heads"].max())]
        first = part.groupby("b").first()
        ax.plot(first.index, first["J_theory"], **THEORY)
        ax.plot(first.index, first["J_without_K"], color=RED, linewidth=1.0, linestyle="--")
        ax.plot(first.index, first["J_without_attention"], color=MUTED, linewidth=1.0, linestyle=":")
        _points(ax, _like(shown, part), "J", BLUE)
        panel_label(ax, NAMES[norm])
        ax.set(yscale="log", xlabel="block $b$")
        _plain_log(ax, part["J"].max())
        start = part[part["b"] == 0]
        values = [start[name].mean() for name in ("J", "J_theory", "J_without_K", "J_without_attention")]
        found.append(f"{NAMES[norm]} " + ", ".join(f"{value:.2f}" for value in values))
    axes[0].set_ylabel(r"$J^{B,b}$")
    axes[0].plot([], [], **THEORY, label="with $K$")
    axes[0].plot([], [], color=RED, linestyle="--", label="without $K$")
    axes[0].plot([], [], color=MUTED, linestyle=":", label="no attention")
    axes[0].legend(fontsize=8, loc="lower left")
    figure.set_label(
        "Gradient norm against block in three panels. At the input, measured, with K, without K, without attention: "
        f"{'; '.join(found)}."
    )
    return figure


def two_heads(rows: pd.DataFrame) -> Figure:
    """Amplification of independent and of pooled output gradients; rows of ``Networks``."""
    shown, rows = rows, largest(rows)
    figure, ax = plt.subplots(figsize=(6.0, 3.3))
    found = []
    for norm in ("layernorm", "erf"):
        part = rows[(rows["norm"] == norm) & (rows["heads"] == rows["heads"].max())]
        first = part.groupby("b").first()
        for column, marker in (("pooled", "s"), ("J", "o")):
            ax.plot(first.index, first[f"{column}_theory"], **THEORY | {"color": NORM_COLOURS[norm]})
            _points(ax, _like(shown, part), column, NORM_COLOURS[norm], marker=marker)
        start = part[part["b"] == 0]
        found.append(f"{NAMES[norm]} {start['J'].mean():.2f} and {start['pooled'].mean():.1f}")
    for marker, text in (("s", "one gradient for all tokens"), ("o", "independent gradients")):
        ax.plot([], [], marker, color=MUTED, label=text)
    for norm in ("layernorm", "erf"):
        ax.plot([], [], color=NORM_COLOURS[norm], label=NAMES[norm])
    ax.legend(fontsize=8)
    ax.set(yscale="log", xlabel="block $b$", ylabel="amplification")
    _plain_log(ax, rows["pooled"].max())
    figure.set_label(
        f"Amplification against block for two kinds of output gradient. At the input, independent and "
        f"pooled: {'; '.join(found)}. "
        "The lines of the recurrence from (1, 0) and from (1, 1) pass through the markers."
    )
    return figure


def two_laws(rows: pd.DataFrame) -> Figure:
    """log-log for LayerNorm, (log J)^2 against b for Derf and DyT, with asymptotes; rows of ``Regimes``."""
    rows = largest(rows)
    chosen = rows[(rows["tokens"] == 0) & (rows["alpha"] == 1.0) & (rows["attn_mult"].isin([0.0, 1.0]))]
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.3))
    left = chosen[chosen["norm"] == "layernorm"]
    ends = []
    for mult, color in ((1.0, INK), (0.0, GREEN)):
        curve = left[left["attn_mult"] == mult].sort_values("b")
        b, log_J = curve["b"].to_numpy(), curve["log_J"].to_numpy()
        exponent = float(asymptotics.zeta(*asymptotics.vit_variances(mult)))
        axes[0].plot(b, np.exp(log_J), color=color)
        axes[0].plot(b, np.exp(log_J[-1]) * (b / b[-1]) ** exponent, **DASHED)
        local = asymptotics.local_exponent(log_J, b)[-1]
        ends.append(f"{local:.3f} against {exponent:.3f}")
        beside(axes[0], b[-1], np.exp(log_J[-1]), "with\nattention" if mult else "without", color, fontsize=9)
    axes[0].set(xscale="log", yscale="log", xlabel="block $b$", ylabel="$J^{b,0}$")
    axes[0].set(xlim=(3, 40 * b[-1]), xticks=10.0 ** np.arange(1, np.log10(b[-1]) + 0.5))
    panel_label(axes[0], "pre-LayerNorm")
    slopes = []
    for norm, mult, color in (("erf", 1.0, BLUE), ("erf", 0.0, GREEN), ("tanh", 1.0, RED)):
        curve = chosen[(chosen["norm"] == norm) & (chosen["attn_mult"] == mult) & (chosen["b"] <= 3000)].sort_values(
            "b"
        )
        lam = asymptotics.lambda_stretched(*asymptotics.vit_variances(mult), asymptotics.stretch_constant(norm, 1.0))
        b, log_J = curve["b"].to_numpy(), curve["log_J"].to_numpy()
        axes[1].plot(b, log_J**2, color=color)
        axes[1].plot(b, (log_J[-1] + (np.sqrt(b) - np.sqrt(b[-1])) / np.sqrt(lam)) ** 2, **DASHED)
        slopes.append(f"{asymptotics.stretched_slope(log_J, b)[-1] * np.sqrt(lam):.3f}")
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
    """Local exponent of J against depth for several numbers of tokens; rows of ``Regimes``."""
    rows = largest(rows)
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.4), sharey=True)
    found = []
    for ax, mult in zip(axes, (1.0, 2.0), strict=True):
        part = rows[(rows["norm"] == "layernorm") & (rows["attn_mult"] == mult)]
        tokens, ends = sorted(part["tokens"].unique(), key=lambda n: n or np.inf), []
        colours = shades(len(tokens))
        for n, color in zip(tokens, colours, strict=True):
            curve = part[part["tokens"] == n].sort_values("b")
            b = curve["b"].to_numpy()
            local = asymptotics.local_exponent(curve["log_J"].to_numpy(), b)
            ax.plot(np.sqrt(b[1:] * b[:-1]), local, color=color)
            ends.append(float(local[-1]))
        at = np.sqrt(b[-1] * b[-2])
        for n, color, end, place in zip(tokens, colours, ends, apart(ends, 0.075), strict=True):
            ax.plot([1.1 * at, 2.2 * at], [end, place], color=color, linewidth=0.7, clip_on=False)
            beside(ax, 2.2 * at, place, f"$n={n}$" if n else r"$n=\infty$", color, (2, 0), fontsize=9)
            found.append(f"{end:.2f}")
        exponent = float(asymptotics.zeta(*asymptotics.vit_variances(mult)))
        ax.plot([4, at], [exponent, exponent], **DASHED)
        beside(ax, 2e3, exponent, rf"$\zeta={exponent:.2f}$", MUTED, (0, -9), fontsize=9)
        ticks = 10.0 ** np.arange(1, np.ceil(np.log10(at)) + 1)
        ax.set(xscale="log", xlabel="block $b$", xlim=(4, 16 * at), ylim=(0, 1.18))
        ax.set_xticks(ticks[ticks < 1.5 * at])
        panel_label(ax, "ViT-Base weights" if mult == 1 else rf"$W_V,W_O\times{mult:g}$")
    axes[0].set_ylabel(r"$d\ln J^{b,0}/d\ln b$")
    figure.set_label(
        "Local exponent against depth for 4, 16, 64, 256 and infinitely many tokens. At the last depth, standard "
        f"weights, then doubled attention: {', '.join(found)}. With finitely many tokens the curves turn up towards 1."
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
    figure.set_label(
        f"Logarithm of J over its exponential law against depth over b*: near 1 in the window, falling behind it. "
        f"The window ends at b/b* = {', '.join(words)}."
    )
    return figure


def training_tiles(rows: pd.DataFrame) -> Figure:
    """Test accuracy over depth and alpha without and with warm-up, predictions in the tiles; ``Trainability``."""
    rows = largest(rows)
    rows = rows[rows["norm"] == "erf"]
    warmups = sorted(rows["warmup"].unique())
    figure, axes = plt.subplots(1, len(warmups), figsize=(7.2, 3.2))
    words = []
    for ax, warmup in zip(axes, warmups, strict=True):
        part = rows[rows["warmup"] == warmup]
        tiles = part.pivot_table(index="alpha", columns="depth", values="test_accuracy").sort_index(ascending=False)
        amplification = part.pivot_table(index="alpha", columns="depth", values="log_pooled").loc[tiles.index]
        notes = np.exp(amplification).map(lambda value: f"×{value:.1f}")
        sns.heatmap(tiles, ax=ax, cmap=SEQUENTIAL, annot=notes, fmt="", cbar_kws={"label": "test accuracy"})
        ax.set(xlabel="depth $B$", ylabel=r"$\alpha$")
        panel_label(ax, f"warm-up {warmup} steps")
        words.append(f"{tiles.to_numpy().min():.2f} to {tiles.to_numpy().max():.2f} with {warmup} steps")
    figure.set_label(
        f"Test accuracy over depth and alpha, with predicted amplifications: {', '.join(words)} of warm-up."
    )
    return figure
