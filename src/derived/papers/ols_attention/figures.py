"""The figures of the chapter: each takes the rows of an experiment and returns a figure with its alt text as label.

mark                   meaning
thin line in INK       theory
filled, open marker    recorded, live; bars are 99.9 % intervals over replicates
sequential colours     a swept parameter
"""

from collections.abc import Sequence

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, ScalarFormatter

from derived.lab import stats
from derived.lab.plot import COLOURS, DIVERGING, INK, MUTED, SEQUENTIAL

from .theory import batch_error as exact_batch_error
from .theory import spectral_filter

THEORY = {"color": INK, "linewidth": 0.9}
BLUE, RED, GREEN, PINK = COLOURS[:4]


def _label(ax: Axes, text: str) -> None:
    """What a panel shows, above its upper left corner."""
    ax.annotate(text, (0, 1), (0, 6), xycoords="axes fraction", textcoords="offset points", color=INK)


def _beside(
    ax: Axes, x: float, y: float, text: str, color: str = INK, shift: tuple[float, float] = (6, 0), **at
) -> None:
    """A direct label beside a point of the data."""
    ax.annotate(text, (x, y), shift, textcoords="offset points", color=color, **({"va": "center"} | at))


def _plain_log(axis: matplotlib.axis.Axis, ticks: Sequence[float]) -> None:
    """A logarithmic axis with plain numbers at these ticks."""
    axis.set_ticks(ticks)
    axis.set_major_formatter(ScalarFormatter())
    axis.set_minor_formatter(NullFormatter())


def _measured(ax: Axes, rows: pd.DataFrame, x: str, y: str, color: str, marker: str = "o") -> pd.DataFrame:
    """The mean of ``y`` over replicates at each ``x`` with its interval: recorded filled, live open."""
    points = []
    for recorded, part in rows.groupby("recorded"):
        for at, group in part.groupby(x):
            one = stats.mean(group[y])
            points.append({x: at, "value": one.value, "low": one.low, "high": one.high, "recorded": recorded})
        table = pd.DataFrame([point for point in points if point["recorded"] == recorded])
        reach = [table["value"] - table["low"], table["high"] - table["value"]]
        face = color if recorded else "none"
        style = {"color": color, "markerfacecolor": face, "markersize": 5 if recorded else 6.5, "elinewidth": 1}
        ax.errorbar(table[x], table["value"], reach, fmt=marker, zorder=3, **style)
    return pd.DataFrame(points)


def _runs(rows: pd.DataFrame) -> str:
    """Which runs a figure shows, in words."""
    return "live and recorded runs" if rows["recorded"].any() else "the live run"


def attention_is_projection(rows: pd.DataFrame) -> Figure:
    """Attention matrix, hat matrix and their difference; rows: i, j, attention, hat."""
    matrices = {name: rows.pivot(index="i", columns="j", values=name) for name in ("attention", "hat")}
    gap = matrices["attention"] - matrices["hat"]
    figure, axes = plt.subplots(1, 3, figsize=(7.2, 2.9))
    reach = float(rows["hat"].abs().max())
    panels = ((r"attention $A$", matrices["attention"], 1.0), (r"hat matrix $H$", matrices["hat"], 1.0))
    worst = float(gap.abs().to_numpy().max())
    power = int(np.floor(np.log10(worst))) if worst > 0 else -16
    panels += ((rf"$(A-H)\,/\,10^{{{power}}}$", gap, 10.0**power),)
    for ax, (text, matrix, unit) in zip(axes, panels, strict=True):
        top = reach if unit == 1 else max(worst / unit, 1.0)
        bar = {"orientation": "horizontal", "shrink": 0.8, "pad": 0.03}
        sns.heatmap(
            matrix / unit,
            ax=ax,
            cmap=DIVERGING,
            vmin=-top,
            vmax=top,
            square=True,
            cbar_kws=bar,
            rasterized=False,
            xticklabels=False,
            yticklabels=False,
        )
        ax.set(xlabel="", ylabel="")
        _label(ax, text)
    axes[0].set_ylabel("token $i$")
    for ax in axes:
        ax.set_xlabel("token $j$")
    diagonal = matrices["attention"].to_numpy().diagonal()
    figure.set_label(
        f"Three heat maps over {len(diagonal)} tokens: the attention matrix and the hat matrix look the same; their "
        f"largest difference is {worst:.1e}. The diagonal holds the leverages, from {diagonal.min():.2f} to "
        f"{diagonal.max():.2f}, with sum {diagonal.sum():.3f}."
    )
    return figure


def spectral_filters(rows: pd.DataFrame) -> Figure:
    """Factor on the fitted value along each eigenvector; rows: eigenvalue, weights, factor (measured), ridge."""
    figure, ax = plt.subplots(figsize=(6.2, 3.5))
    ridge = float(rows["ridge"].iloc[0])
    low, high = rows["eigenvalue"].min(), rows["eigenvalue"].max()
    x = np.geomspace(low / 2, high * 2, 200)
    names = {"ols": (r"$\lambda=0$: least squares", BLUE, "o"), "repaired": ("repaired: ridge once", GREEN, "s")}
    names["regularised"] = (r"$L_\lambda$ everywhere: ridge twice", RED, "^")
    for weights, (text, color, marker) in names.items():
        part = rows[rows["weights"] == weights].sort_values("eigenvalue")
        ax.plot(x, spectral_filter(x, ridge, weights), **THEORY)
        ax.plot(part["eigenvalue"], part["factor"], marker, color=color, markerfacecolor="none", label=text)
    ax.axvline(ridge, color=MUTED, linestyle=":", linewidth=0.9)
    _beside(ax, ridge, 0.02, r"$\lambda_i=\lambda$", MUTED)
    ax.legend(loc="lower right", fontsize=9)
    ax.set(
        xscale="log", xlabel=r"eigenvalue $\lambda_i$ of $\Sigma$", ylabel="factor on the fitted value", ylim=(0, 1.08)
    )
    exact = spectral_filter(rows["eigenvalue"], ridge, "ridge")
    worst = max(
        np.abs(part["factor"] - exact[part.index]).max()
        for _, part in rows[rows["weights"] == "repaired"].groupby("weights")
    )
    at = {
        name: float(
            np.interp(
                ridge, *rows[rows["weights"] == name].sort_values("eigenvalue")[["eigenvalue", "factor"]].T.to_numpy()
            )
        )
        for name in names
    }
    figure.set_label(
        f"Factor against eigenvalue. Least squares multiplies by 1 everywhere; the repaired layer follows the ridge curve "
        f"to {worst:.0e}; the layer with the regularised whitening in all places lies below it: near the penalty "
        f"{ridge:g} the factors are {at['repaired']:.2f} and {at['regularised']:.2f}."
    )
    return figure


def courses(rows: pd.DataFrame) -> Figure:
    """The scalar weight over the epochs, read-out frozen and recomputed, Adam; rows of ``Courses``."""
    figure, axes = plt.subplots(1, 2, figsize=(7.0, 3.0), sharey=True)
    ends = {}
    words = {"frozen": "$P$ frozen at $s\\hat\\beta$", "recomputed": "$P$ recomputed from $L$"}
    for ax, (read_out, text) in zip(axes, words.items(), strict=True):
        part = rows[(rows["read_out"] == read_out) & (rows["optimizer"] == "adam") & ~rows["recorded"]]
        root = float(part["inverse_root"].iloc[0])
        for level in (root, -root):
            ax.axhline(level, **THEORY)
        for (l0, course), color in zip(part.groupby("l0"), COLOURS, strict=False):
            ax.plot(course["epoch"], course["l"], color=color)
            ends[read_out, l0] = float(course.sort_values("epoch")["l"].iloc[-1])
            ax.plot(0, l0, "o", color=color, clip_on=False)
        ax.set(xlabel="epoch", xlim=(0, part["epoch"].max()))
        _label(ax, text)
    end = float(axes[1].get_xlim()[1])
    _beside(axes[1], end, root, "$1/s$")
    _beside(axes[1], end, -root, "$-1/s$")
    axes[0].set_ylabel("weight $L$")
    positive = [value for (_, l0), value in ends.items() if l0 > 0]
    negative = {read_out: value for (read_out, l0), value in ends.items() if l0 < 0}
    figure.set_label(
        f"Weight against epoch in two panels. From every positive start it ends between {min(positive):.4f} and "
        f"{max(positive):.4f}, where 1/s is {root:.4f}. From the negative start it ends at {negative['frozen']:.3f} with the "
        f"read-out frozen and at {negative['recomputed']:.4f} with the read-out recomputed."
    )
    return figure


def end_points(rows: pd.DataFrame) -> Figure:
    """Courses in the plane of both trained numbers: hyperbolas that meet the curve of zero loss; ``Courses``."""
    part = rows[(rows["read_out"] == "trained") & (rows["optimizer"] == "gd") & ~rows["recorded"]]
    s, beta = float(part["s"].iloc[0]), float(part["beta"].iloc[0])
    figure, ax = plt.subplots(figsize=(5.6, 4.0))
    reach = 1.15 * max(1.6, float(part["l"].abs().max()))
    for side in (-1, 1):
        l = side * np.linspace(0.35, reach, 200)
        ax.plot(l, beta / (s**2 * l**3), **THEORY | {"linewidth": 1.6})
    ends = []
    for (l0, course), color in zip(part.groupby("l0"), COLOURS, strict=False):
        course = course.sort_values("epoch")
        c = l0**2 - 3 * float(course["P"].iloc[0]) ** 2
        l = np.linspace(-reach, reach, 801)
        square = (l**2 - c) / 3
        branch = np.where(square >= 0, np.sqrt(np.maximum(square, 0)), np.nan)
        ax.plot(l, branch, color=color, linewidth=0.8, linestyle=":")
        ax.plot(course["l"], course["P"], color=color, linewidth=2.2)
        ax.plot(l0, course["P"].iloc[0], "o", color=color, markerfacecolor="none")
        ax.plot(course["l"].iloc[-1], course["P"].iloc[-1], "o", color=color)
        ends.append((l0, float(course["l"].iloc[-1])))
    ax.axvline(1 / s, color=MUTED, linewidth=0.9, linestyle="--")
    ax.set(xlabel="weight $L$", ylabel="read-out $P$", xlim=(-reach, reach), ylim=(0, 2.6))
    _beside(ax, 1 / s, 0.12, "$1/s$", MUTED)
    _beside(ax, 0.93, beta / (s**2 * 0.93**3), r"zero loss: $L^3P=\hat\beta/s^2$", INK, (10, 0))
    said = ", ".join(f"from {l0:g} to {l:.3f}" for l0, l in ends)
    figure.set_label(
        f"The plane of weight and read-out. Each course follows its own hyperbola: {said}. Those that reach the curve of "
        f"zero loss do so at different weights, none at 1/s = {1 / s:.3f}."
    )
    return figure


def structure(rows: pd.DataFrame) -> Figure:
    """Relative loss against distance from the whitening map, by rank; rows of ``Structure``."""
    figure, ax = plt.subplots(figsize=(6.2, 3.5))
    shown = rows.assign(
        full=rows["rank"] == rows["p"], size=[f"$p={p},\\ m={m}$" for p, m in zip(rows["p"], rows["m"], strict=True)]
    )
    floor = 1e-17
    for full, color, marker in ((True, BLUE, "o"), (False, RED, "^")):
        part = shown[shown["full"] == full]
        for recorded, some in part.groupby("recorded"):
            face = color if recorded else "none"
            x, y = some["relative_loss"].clip(lower=floor), some["structure_gap"].clip(lower=floor)
            ax.plot(x, y, marker, color=color, markerfacecolor=face, linestyle="none", markersize=5)
    ax.set(
        xscale="log",
        yscale="log",
        xlabel=r"loss, relative to $\|Y\|^2/n$",
        ylabel=r"$\|L^{\top}\Sigma L-I\|_F/\sqrt{p}$",
    )
    halves = {full: shown[shown["full"] == full]["structure_gap"].median() for full in (True, False)}
    _beside(
        ax,
        shown["relative_loss"].clip(lower=floor).median(),
        halves[False],
        r"rank $\hat B<p$: fitted, not found",
        RED,
        (0, 22),
        ha="center",
    )
    ax.annotate(r"rank $\hat B=p$: fitted and found", (0.97, 0.1), xycoords="axes fraction", color=BLUE, ha="right")
    figure.set_label(
        f"Structure gap against relative loss, {len(rows)} runs. With rank B = p the median gap is {halves[True]:.1e}; with "
        f"rank B < p it is {halves[False]:.2f}, although the median relative loss there is "
        f"{shown[~shown['full']]['relative_loss'].median():.0e}."
    )
    return figure


def shift(rows: pd.DataFrame) -> Figure:
    """Distance from the least-squares prediction when the inputs are scaled or turned; rows of ``Shift``."""
    figure, axes = plt.subplots(1, 2, figsize=(7.0, 3.2), sharey=True)
    floor, said = 1e-17, {}
    kinds = (("scale", "scale $c$ of the inputs"), ("rotation", "rotation, quarter turns"))
    for ax, (kind, words) in zip(axes, kinds, strict=True):
        part = rows[rows["shift"] == kind].assign(error=lambda some: some["error"].clip(lower=floor))
        for method, color, marker in (("self", RED, "^"), ("cross", BLUE, "o"), ("labels", GREEN, "s")):
            said[kind, method] = _measured(ax, part[part["method"] == method], "amount", "error", color, marker)
        ax.set(xlabel=words, yscale="log", ylim=(3e-17, 60))
    c = np.geomspace(0.25, 4, 400)
    axes[0].plot(c, np.abs(c**2 - 1), **THEORY)
    axes[0].set_xscale("log")
    _plain_log(axes[0].xaxis, (0.25, 0.5, 1, 2, 4))
    axes[0].set_ylabel("relative error")
    _beside(axes[0], 2.0, 3.0, r"$|c^2-1|$", INK, (-10, 10), ha="right")
    axes[1].annotate("self-attention", (0.97, 0.83), xycoords="axes fraction", color=RED, ha="right")
    axes[1].annotate(
        "attention to the\ntraining tokens,\nlabels as values",
        (0.97, 0.2),
        xycoords="axes fraction",
        color=BLUE,
        ha="right",
    )
    table = said["scale", "self"].set_index("amount")["value"]
    turned = said["rotation", "self"].set_index("amount")["value"]
    safe = max(part["value"].max() for (_, method), part in said.items() if method != "self")
    figure.set_label(
        f"Relative error on a logarithmic axis. Self-attention with frozen weights errs by {table.iloc[-1]:.1f} at scale "
        f"{table.index[-1]:g}, {table.loc[1.0]:.2f} without a shift and {turned.iloc[-1]:.2f} after "
        f"{turned.index[-1]:g} quarter turns; attention to the training tokens and labels as values stay below {safe:.0e}."
    )
    return figure


def batch_error(rows: pd.DataFrame) -> Figure:
    """Squared error on fresh batches against the batch size, with the exact mean; rows of ``BatchError``."""
    figure, ax = plt.subplots(figsize=(6.2, 3.5))
    sizes = rows["num_tokens"].unique()
    n = np.unique(np.geomspace(min(sizes) / 1.5, max(sizes) * 1.5, 60).astype(int))
    cases = sorted(rows["p"].unique())
    colors = matplotlib.colormaps[SEQUENTIAL](np.linspace(0, 0.85, len(cases)))
    worst = 0.0
    for p, color in zip(cases, colors, strict=True):
        part = rows[rows["p"] == p]
        ax.plot(n, [exact_batch_error(p, int(size)) for size in n], **THEORY)
        points = _measured(ax, part, "num_tokens", "error", matplotlib.colors.to_hex(color))
        _beside(ax, n[-1], exact_batch_error(p, int(n[-1])), f"$p={p}$")
        exact = np.array([exact_batch_error(p, int(size)) for size in points["num_tokens"]])
        worst = max(worst, float(np.abs(points["value"] / exact - 1).max()))
    ax.set(xscale="log", yscale="log", xlabel=r"tokens $\tilde n$ in the new batch", ylabel="relative squared error")
    _plain_log(ax.xaxis, sorted(sizes))
    figure.set_label(
        f"Relative squared error against the number of tokens on logarithmic axes, one falling line per dimension p = "
        f"{', '.join(map(str, cases))}. The measured means lie on the exact curves, the farthest {worst:.1%} off."
    )
    return figure


def dial(rows: pd.DataFrame) -> Figure:
    """The softmax output and the rescaled read-out along x as beta grows; rows of ``DialCurves``."""
    rows = rows[~rows["recorded"]]
    data, line = rows[rows["curve"] == "data"], rows[rows["curve"] == "least squares"]
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.2), sharey=True)
    norm, gaps = LogNorm(rows["beta"].min(), rows["beta"].max()), {}
    for ax, (curve, words) in zip(
        axes,
        (("read-out", r"read-out $\bar y+(\mathrm{out}-\bar y)/\beta$"), ("softmax", "softmax output")),
        strict=True,
    ):
        part = rows[rows["curve"] == curve]
        betas = np.sort(part["beta"].unique())
        chosen = betas[betas <= 1.5][::4] if curve == "read-out" else betas[betas > 0.05][::2]
        for beta in chosen:
            one = part[part["beta"] == beta]
            ax.plot(one["x"], one["y"], color=matplotlib.colormaps[SEQUENTIAL](norm(beta)), linewidth=1.2)
            gaps[curve, float(beta)] = float(np.abs(one["y"].to_numpy() - line["y"].to_numpy()).max())
        ax.plot(line["x"], line["y"], **THEORY)
        ax.plot(data["x"], data["y"], "o", color=MUTED, markersize=3.5, zorder=3)
        ax.set(xlabel="query $x$", ylim=(data["y"].min() - 0.5, data["y"].max() + 0.5))
        _label(ax, words)
    axes[0].set_ylabel("prediction $y$")
    scale = matplotlib.cm.ScalarMappable(norm, SEQUENTIAL)
    figure.colorbar(scale, ax=axes, label=r"$\beta$", pad=0.02, aspect=30)
    first = min(beta for curve, beta in gaps if curve == "read-out")
    last = max(beta for curve, beta in gaps if curve == "softmax")
    figure.set_label(
        f"Predictions along x. At beta = {first:g} the rescaled read-out is within {gaps['read-out', first]:.1e} of the "
        f"least-squares line; as beta grows the softmax output bends towards the data and at beta = {last:g} it is a "
        f"two-level step between the extreme points."
    )
    return figure


def dial_error(rows: pd.DataFrame) -> Figure:
    """Distance of the softmax read-out from affine least squares against beta; rows of ``Dial``."""
    figure, ax = plt.subplots(figsize=(5.6, 3.2))
    points = _measured(ax, rows, "beta", "error", BLUE)
    points = points[points["recorded"] == points["recorded"].max()]
    first = points.iloc[0]
    ax.plot(points["beta"], first["value"] * points["beta"] / first["beta"], **THEORY)
    wide = rows[~rows["recorded"]].pivot(index="replicate", columns="beta", values="error")
    slope = stats.slope(np.log(wide.columns.to_numpy(float)), np.log(wide.to_numpy()))
    last = points.iloc[-1]
    _beside(ax, last["beta"], last["value"], "slope 1", INK, (-12, 8), ha="right")
    ax.set(xscale="log", yscale="log", xlabel=r"inverse temperature $\beta$", ylabel="distance from least squares")
    figure.set_label(
        f"Relative distance from least squares with intercept against beta on logarithmic axes: a straight line of slope "
        f"{slope.value:.3f} from {first['value']:.1e} to {last['value']:.1e}, {_runs(rows)}."
    )
    return figure


def polynomial_capacity(rows: pd.DataFrame) -> Figure:
    """Patterns at 1 % bit error against spins, one line per degree; rows of ``PolynomialCapacity``."""
    figure, ax = plt.subplots(figsize=(6.2, 3.8))
    slopes = {}
    for degree, color in zip(sorted(rows["degree"].unique()), COLOURS, strict=False):
        part = rows[rows["degree"] == degree]
        theory = part.groupby("N")["theory"].first()
        ax.plot(theory.index, theory, **THEORY)
        _measured(ax, part, "N", "K", color)
        top = part[part["recorded"] == part["recorded"].max()]
        means = np.log(top.groupby("N")["K"].mean())
        slopes[degree] = float(np.polyfit(np.log(means.index.to_numpy(float)), means, 1)[0])
        _beside(ax, theory.index[-1], theory.iloc[-1], f"$u^{degree}$: slope {slopes[degree]:.2f}", color, (9, 0))
    ax.set(xscale="log", yscale="log", xlabel="spins $N$", ylabel="patterns $K$ at 1 % error")
    sizes = [2**k for k in range(3, 11) if rows["N"].min() / 1.3 <= 2**k <= rows["N"].max() * 1.3]
    _plain_log(ax.xaxis, sizes)
    ax.set_xlim(right=rows["N"].max() * 2.6)
    said = ", ".join(f"{slope:.2f} for degree {degree}" for degree, slope in slopes.items())
    figure.set_label(
        f"Number of patterns against number of spins on logarithmic axes, {_runs(rows)}: straight lines of slope {said}; "
        f"the measured points lie on the curves of signal to noise."
    )
    return figure


def exponential_capacity(rows: pd.DataFrame) -> Figure:
    """log2 of the capacity for F = e^u in both notions against spins; rows of ``ExponentialCapacity``."""
    figure, ax = plt.subplots(figsize=(6.2, 3.8))
    names = {"typical": ("a typical pattern stays", BLUE), "all": ("all patterns stay", RED)}
    rates = {}
    for notion, (words, color) in names.items():
        part = rows[rows["notion"] == notion].assign(bits=lambda some: np.log2(some["K"]))
        theory = np.log2(part.groupby("N")["theory"].first())
        ax.plot(theory.index, theory, **THEORY)
        _measured(ax, part, "N", "bits", color)
        top = part[part["recorded"] == part["recorded"].max()]
        means = top.groupby("N")["bits"].mean()
        rates[notion] = float(np.polyfit(means.index.to_numpy(float), means, 1)[0])
        _beside(ax, theory.index[-1], theory.iloc[-1], f"{words}:\nslope {rates[notion]:.2f}", color, (9, 0))
    ax.set(xlabel="spins $N$", ylabel=r"$\log_2 K$")
    ax.set_xlim(right=rows["N"].max() + 0.55 * (rows["N"].max() - rows["N"].min()))
    ax.xaxis.get_major_locator().set_params(integer=True)
    figure.set_label(
        f"Logarithm to base 2 of the number of patterns against spins, {_runs(rows)}. A typical pattern stays put up to a "
        f"line of slope {rates['typical']:.2f} bits per spin, all patterns at once only up to one of slope "
        f"{rates['all']:.2f}."
    )
    return figure


def read_out_noise(rows: pd.DataFrame) -> Figure:
    """Noise energy of each read-out against the number of patterns; rows: memory, num_patterns, noise, theory."""
    figure, ax = plt.subplots(figsize=(6.4, 3.9))
    names = {"hebb": ("Hebb (linear)", RED, "^"), "projection": ("projection (whitened)", BLUE, "o")}
    names |= {"cubic": ("cubic kernel", GREEN, "s"), "softmax": ("softmax", PINK, "D")}
    largest, floor = {}, 1e-9
    for memory, (words, color, marker) in names.items():
        part = rows[rows["memory"] == memory]
        if part.empty:
            continue
        theory = part.groupby("num_patterns")["theory"].first().dropna()
        ax.plot(theory.index, theory, **THEORY)
        points = _measured(
            ax, part.assign(noise=part["noise"].clip(lower=floor)), "num_patterns", "noise", color, marker
        )
        last = points.sort_values("num_patterns").iloc[-1]
        largest[words] = last["value"]
        _beside(ax, last["num_patterns"], last["value"], words, color, (9, 0))
    hebb = rows[rows["memory"] == "hebb"].groupby("num_patterns")["naive"].first()
    ax.plot(hebb.index, hebb, color=MUTED, linewidth=0.9, linestyle="--")
    _beside(ax, hebb.index[len(hebb) // 2], hebb.iloc[len(hebb) // 2], "without the\ncoherent part", MUTED, (6, -16))
    ax.set(xscale="log", yscale="log", xlabel="stored patterns $K$", ylabel="noise energy (signal: 1)")
    _plain_log(ax.xaxis, sorted(rows["num_patterns"].unique())[::2])
    ax.set_xlim(right=rows["num_patterns"].max() * 6)
    said = ", ".join(f"{words} {value:.2g}" for words, value in largest.items())
    figure.set_label(
        f"Noise energy against the number of stored patterns on logarithmic axes. At {rows['num_patterns'].max()} patterns: "
        f"{said}. The Hebb points follow the exact line and leave the dashed one, which forgets the coherent part."
    )
    return figure


def dial_explorer(rows: pd.DataFrame):
    """The beta dial: a Plotly figure with one slider over the precomputed curves; its ``layout.meta`` is the alt text."""
    import plotly.graph_objects as go

    rows = rows[~rows["recorded"]]
    data, line = rows[rows["curve"] == "data"], rows[rows["curve"] == "least squares"]
    curves = {name: rows[rows["curve"] == name] for name in ("softmax", "read-out")}
    betas = np.sort(curves["softmax"]["beta"].unique())

    def traces(beta: float) -> list[go.Scatter]:
        parts = {name: part[part["beta"] == beta] for name, part in curves.items()}
        return [
            go.Scatter(x=part["x"].round(4), y=part["y"].round(4), name=words, mode="lines", line={"width": 3})
            for (name, part), words in zip(parts.items(), ("softmax output", "rescaled read-out"), strict=True)
        ]

    fixed = [
        go.Scatter(
            x=line["x"].round(4), y=line["y"].round(4), name="least squares", mode="lines", line={"dash": "dot"}
        ),
        go.Scatter(x=data["x"].round(4), y=data["y"].round(4), name="data", mode="markers", marker={"size": 7}),
    ]
    start = int(np.argmin(np.abs(np.log(betas))))
    figure = go.Figure([*traces(betas[start]), *fixed])
    figure.frames = [go.Frame(name=f"{beta:.3g}", data=traces(beta), traces=[0, 1]) for beta in betas]
    still = {"mode": "immediate", "frame": {"duration": 0, "redraw": True}, "transition": {"duration": 0}}
    steps = [{"label": frame.name, "method": "animate", "args": [[frame.name], still]} for frame in figure.frames]
    figure.update_layout(
        height=440,
        sliders=[{"active": start, "currentvalue": {"prefix": "β = "}, "steps": steps}],
        xaxis_title="query x",
        yaxis={"title": "prediction y", "range": [float(data["y"].min()) - 0.6, float(data["y"].max()) + 0.6]},
        legend={"orientation": "h", "y": 1.12},
        meta={
            "alt": f"A slider moves beta from {betas[0]:g} to {betas[-1]:g}. The rescaled read-out starts as the "
            f"least-squares line through {len(data)} points; the softmax output starts flat at their mean, bends through "
            f"the points and ends as a step between the two extreme ones."
        },
    )
    return figure
