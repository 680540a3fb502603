"""The figures of the chapter: each takes the rows of an experiment and returns a figure with its alt text as label.

mark                   meaning
thin line in INK       theory
filled, open marker    recorded, live; bars are 99.9 % intervals over replicates
sequential colours     a swept parameter
"""

from collections.abc import Sequence
from typing import Any

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
from derived.lab.plot import COLOURS, DIVERGING, INK, MUTED, SEQUENTIAL, beside, largest, panel_label

from .theory import batch_error as exact_batch_error
from .theory import spectral_filter

THEORY = {"color": INK, "linewidth": 0.9}
BLUE, RED, GREEN, PINK = COLOURS[:4]
SMALLEST = 1e-17  # what a logarithmic axis shows in place of zero


def _plain_log(axis: matplotlib.axis.Axis, ticks: Sequence[float]) -> None:
    """A logarithmic axis with plain numbers at these ticks."""
    axis.set_ticks(ticks)
    axis.set_major_formatter(ScalarFormatter())
    axis.set_minor_formatter(NullFormatter())


def _measured(ax: Axes, rows: pd.DataFrame, x: str, y: str, color: str, marker: str = "o") -> pd.DataFrame:
    """The mean of ``y`` over replicates at each ``x`` with its interval: recorded filled, live open."""
    points = []
    for (recorded, at), group in rows.groupby(["recorded", x]):
        one = stats.mean(group[y])
        points.append({x: at, "value": one.value, "low": one.low, "high": one.high, "recorded": recorded})
    points = pd.DataFrame(points)
    for recorded, part in points.groupby("recorded"):
        reach = [part["value"] - part["low"], part["high"] - part["value"]]
        style = {"markerfacecolor": color if recorded else "none", "markersize": 5 if recorded else 6.5}
        ax.errorbar(part[x], part["value"], reach, fmt=marker, color=color, elinewidth=1, zorder=3, **style)
    return points


def _shown(points: pd.DataFrame) -> pd.DataFrame:
    """The recorded points, or the live ones if nothing is recorded."""
    return points[points["recorded"] == points["recorded"].max()]


def _slope(x: pd.Index, y: pd.Series) -> float:
    return float(np.polyfit(x.to_numpy(float), y.to_numpy(float), 1)[0])


def _runs(rows: pd.DataFrame) -> str:
    """Which runs a figure shows, in words."""
    return "live and recorded runs" if rows["recorded"].any() else "the live run"


# Regression ----------------------------------------------------------------------------------------------------------


def attention_is_projection(rows: pd.DataFrame) -> Figure:
    """Attention matrix, hat matrix and their difference; rows: i, j, attention, hat."""
    A, H = (rows.pivot(index="i", columns="j", values=name) for name in ("attention", "hat"))
    worst, reach = float((A - H).abs().to_numpy().max()), float(H.abs().to_numpy().max())
    power = int(np.floor(np.log10(worst))) if worst > 0 else -16
    gap = ((A - H) / 10.0**power, max(worst / 10.0**power, 1.0), rf"$(A-H)\,/\,10^{{{power}}}$")
    figure, axes = plt.subplots(1, 3, figsize=(6.6, 2.8))
    panels = ((A, reach, "attention $A$"), (H, reach, "hat matrix $H$"), gap)
    for ax, (matrix, top, text) in zip(axes, panels, strict=True):
        bar = {"orientation": "horizontal", "shrink": 0.8, "pad": 0.03}
        ticks = {"xticklabels": False, "yticklabels": False}
        sns.heatmap(matrix, ax=ax, cmap=DIVERGING, vmin=-top, vmax=top, square=True, cbar_kws=bar, **ticks)
        ax.set(xlabel="token $j$", ylabel="token $i$" if ax is axes[0] else "")
        panel_label(ax, text)
    leverage = A.to_numpy().diagonal()
    figure.set_label(
        f"Three heat maps over {len(A)} tokens. Attention matrix and hat matrix look the same; their largest "
        f"difference is {worst:.1e}. On the diagonal stand the leverages, from {leverage.min():.2f} to "
        f"{leverage.max():.2f}, with sum {leverage.sum():.3f}."
    )
    return figure


def spectral_filters(rows: pd.DataFrame) -> Figure:
    """Factor on the fitted value along each eigenvector; rows: eigenvalue, weights, factor (measured), ridge."""
    figure, ax = plt.subplots(figsize=(5.6, 3.4))
    ridge, worst = float(rows["ridge"].iloc[0]), {}
    x = np.geomspace(rows["eigenvalue"].min() / 2, rows["eigenvalue"].max() * 2, 200)
    for weights, text, color, marker in (
        ("ols", "least squares", BLUE, "o"),
        ("repaired", "repaired: ridge once", GREEN, "s"),
        ("regularised", r"$L_\lambda$ everywhere: ridge twice", RED, "^"),
    ):
        part = rows[rows["weights"] == weights]
        ax.plot(x, spectral_filter(x, ridge, weights), **THEORY)
        ax.plot(part["eigenvalue"], part["factor"], marker, color=color, markerfacecolor="none", label=text)
        worst[weights] = np.abs(part["factor"] - spectral_filter(part["eigenvalue"], ridge, weights)).max()
    ax.axvline(ridge, color=MUTED, linestyle=":", linewidth=0.9)
    beside(ax, ridge, 0.92, r"$\lambda_i=\lambda$", MUTED)
    ax.legend(loc="lower right", fontsize=9)
    ax.set(
        xscale="log", xlabel=r"eigenvalue $\lambda_i$ of $\Sigma$", ylabel="factor on the fitted value", ylim=(0, 1.08)
    )
    figure.set_label(
        f"Factor against eigenvalue. Least squares multiplies by 1 everywhere. The repaired layer is within "
        f"{worst['repaired']:.0e} of the ridge factor, the layer with the regularised map in all places within "
        f"{worst['regularised']:.0e} of its square: 0.5 against 0.25 where the eigenvalue equals the penalty {ridge:g}."
    )
    return figure


def courses(rows: pd.DataFrame) -> Figure:
    """The scalar weight over the epochs, read-out frozen and recomputed, Adam; rows of ``Courses``."""
    figure, axes = plt.subplots(1, 2, figsize=(6.4, 2.9), sharey=True)
    rows = rows[(rows["optimizer"] == "adam") & ~rows["recorded"]]
    root, last, ends = float(rows["inverse_root"].iloc[0]), int(rows["epoch"].max()), {}
    for ax, read_out, text in zip(axes, ("frozen", "recomputed"), (r"at $s\hat\beta$", "from $L$"), strict=True):
        for level in (root, -root):
            ax.axhline(level, **THEORY)
        for (l0, course), color in zip(rows[rows["read_out"] == read_out].groupby("l0"), COLOURS, strict=False):
            ax.plot(course["epoch"], course["l"], color=color)
            ax.plot(0, l0, "o", color=color, clip_on=False)
            ends[read_out, l0] = float(course.sort_values("epoch")["l"].iloc[-1])
        ax.set(xlabel="epoch", xlim=(0, last))
        panel_label(ax, f"$P$ {read_out} {text}")
    beside(axes[1], last, root, "$1/s$")
    beside(axes[1], last, -root, "$-1/s$")
    axes[0].set_ylabel("weight $L$")
    positive = [end for (_, l0), end in ends.items() if l0 > 0]
    negative = ", ".join(f"{end:.3f} with the read-out {kind}" for (kind, l0), end in ends.items() if l0 < 0)
    figure.set_label(
        f"Weight against epoch in two panels. From positive starts it ends between {min(positive):.3f} and "
        f"{max(positive):.3f}, where 1/s is {root:.3f}; from negative ones at {negative}."
    )
    return figure


def end_points(rows: pd.DataFrame) -> Figure:
    """Courses in the plane of both trained numbers: hyperbolas that meet the curve of zero loss; ``Courses``."""
    rows = rows[(rows["read_out"] == "trained") & (rows["optimizer"] == "gd") & ~rows["recorded"]]
    s, beta = float(rows["s"].iloc[0]), float(rows["beta"].iloc[0])
    figure, ax = plt.subplots(figsize=(5.4, 3.8))
    reach = 1.15 * max(1.6, float(rows["l"].abs().max()))
    curve, l = np.linspace(0.35, reach, 200), np.linspace(-reach, reach, 801)
    ax.plot(curve, beta / (s**2 * curve**3), **THEORY | {"linewidth": 1.6})
    ends = []
    for (l0, course), color in zip(rows.groupby("l0"), COLOURS, strict=False):
        course = course.sort_values("epoch")
        P0 = float(course["P"].iloc[0])
        square = (l**2 - l0**2) / 3 + P0**2
        branch = np.where(square >= 0, np.sqrt(np.maximum(square, 0)), np.nan)
        ax.plot(l, branch, color=color, linewidth=0.8, linestyle=":")
        ax.plot(course["l"], course["P"], color=color, linewidth=2.2)
        ax.plot(l0, P0, "o", color=color, markerfacecolor="none")
        ax.plot(course["l"].iloc[-1], course["P"].iloc[-1], "o", color=color)
        ends.append(f"from {l0:g} to {course['l'].iloc[-1]:.3f}")
    ax.axvline(1 / s, color=MUTED, linewidth=0.9, linestyle="--")
    ax.set(xlabel="weight $L$", ylabel="read-out $P$", xlim=(-reach, reach), ylim=(0, 2.6))
    beside(ax, 1 / s, 0.12, "$1/s$", MUTED)
    top = 2.3
    beside(ax, (beta / (s**2 * top)) ** (1 / 3), top, r"zero loss: $L^3P=\hat\beta/s^2$", shift=(-8, 0), ha="right")
    figure.set_label(
        f"The plane of weight and read-out. Each course follows its own hyperbola, {', '.join(ends)}. Those "
        f"that reach the curve of zero loss do so at different weights; 1/s is {1 / s:.3f}."
    )
    return figure


def structure(rows: pd.DataFrame) -> Figure:
    """Relative loss against distance from the whitening map, by rank; rows of ``Structure``."""
    figure, ax = plt.subplots(figsize=(5.6, 3.4))
    said = []
    for full, color, marker, words in ((True, BLUE, "o", "rank B = p"), (False, RED, "^", "rank B < p")):
        part = rows[(rows["rank"] == rows["p"]) == full]
        for recorded, some in part.groupby("recorded"):
            x, y = some["relative_loss"].clip(lower=SMALLEST), some["structure_gap"].clip(lower=SMALLEST)
            ax.plot(x, y, marker, color=color, markerfacecolor=color if recorded else "none", linestyle="none")
        gap, loss = part["structure_gap"].median(), part["relative_loss"].median()
        said.append(f"with {words} the median gap is {gap:.1e} at a median relative loss of {loss:.0e}")
    ax.set(xscale="log", yscale="log", xlabel=r"loss, relative to $\|Y\|^2/n$")
    ax.set_ylabel(r"gap $\|L^{\top}\Sigma L-I\|_F/\sqrt{p}$")
    ax.set_ylim(SMALLEST / 5, 300)
    at = {"xycoords": "axes fraction", "ha": "right"}
    ax.annotate(r"rank $\hat B<p$: fitted, not found", (0.97, 0.93), color=RED, **at)
    ax.annotate(r"rank $\hat B=p$: fitted and found", (0.97, 0.1), color=BLUE, **at)
    figure.set_label(f"Structure gap against relative loss, {len(rows)} runs: {'; '.join(said)}.")
    return figure


def shift(rows: pd.DataFrame) -> Figure:
    """Distance from the least-squares prediction when the inputs are scaled or turned; rows of ``Shift``."""
    figure, axes = plt.subplots(1, 2, figsize=(6.4, 3.1), sharey=True)
    kinds, found = (("scale", "scale $c$ of the inputs"), ("rotation", "rotation, quarter turns")), {}
    for ax, (kind, words) in zip(axes, kinds, strict=True):
        part = rows[rows["shift"] == kind].assign(error=lambda some: some["error"].clip(lower=SMALLEST))
        for method, color, marker in (("self", RED, "^"), ("cross", BLUE, "o"), ("labels", GREEN, "s")):
            found[kind, method] = _measured(ax, part[part["method"] == method], "amount", "error", color, marker)
        ax.set(xlabel=words, yscale="log", ylim=(SMALLEST, 300))
    c = np.geomspace(rows["amount"].replace(0, np.nan).min(), rows["amount"].max(), 400)
    axes[0].plot(c, np.abs(c**2 - 1), **THEORY)
    axes[0].set_xscale("log")
    _plain_log(axes[0].xaxis, (0.25, 0.5, 1, 2, 4))
    axes[0].set_ylabel("relative error")
    at = {"xycoords": "axes fraction", "ha": "right"}
    axes[0].annotate(r"self-attention: $|c^2-1|$", (0.97, 0.64), color=RED, **at)
    axes[1].annotate("self-attention", (0.97, 0.64), color=RED, **at)
    axes[1].annotate("attention to the\ntraining tokens,\nlabels as values", (0.97, 0.24), color=BLUE, **at)
    scale, turned = (_shown(found[kind, "self"]).set_index("amount")["value"] for kind in ("scale", "rotation"))
    safe = max(points["value"].max() for (_, method), points in found.items() if method != "self")
    figure.set_label(
        f"Relative error on a logarithmic axis. Self-attention with frozen weights errs by "
        f"{scale.iloc[-1]:.1f} at scale {scale.index[-1]:g} and by {turned.iloc[-1]:.2f} after "
        f"{turned.index[-1]:g} quarter turns; attention to the training tokens and labels as values stay "
        f"below {safe:.0e}."
    )
    return figure


def batch_error(rows: pd.DataFrame) -> Figure:
    """Squared error on fresh batches against the batch size, with the exact mean; rows of ``BatchError``."""
    figure, ax = plt.subplots(figsize=(5.6, 3.4))
    sizes, dimensions, worst = sorted(rows["num_tokens"].unique()), sorted(rows["p"].unique()), 0.0
    n = np.unique(np.geomspace(sizes[0] / 1.5, sizes[-1] * 1.5, 60).astype(int).clip(min=1))
    colors = matplotlib.colormaps[SEQUENTIAL](np.linspace(0, 0.85, len(dimensions)))
    for p, color in zip(dimensions, colors, strict=True):
        curve = [exact_batch_error(int(p), int(size)) for size in n]
        ax.plot(n, curve, **THEORY)
        beside(ax, n[-1], curve[-1], f"$p={p}$")
        points = _measured(ax, rows[rows["p"] == p], "num_tokens", "error", matplotlib.colors.to_hex(color))
        exact = np.array([exact_batch_error(int(p), int(size)) for size in points["num_tokens"]])
        worst = max(worst, float(np.abs(points["value"] / exact - 1).max()))
    ax.set(xscale="log", yscale="log", xlabel=r"tokens $\tilde n$ in the new batch", ylabel="relative squared error")
    _plain_log(ax.xaxis, sizes)
    figure.set_label(
        f"Relative squared error against the number of tokens on logarithmic axes, a falling line for each of p = "
        f"{', '.join(map(str, dimensions))}. The measured means lie on the exact curves, the farthest {worst:.1%} off."
    )
    return figure


# The dial ------------------------------------------------------------------------------------------------------------


def dial(rows: pd.DataFrame) -> Figure:
    """The rescaled read-out and the softmax output along x as beta grows; rows of ``DialCurves``."""
    rows = rows[~rows["recorded"]]
    data, line = rows[rows["curve"] == "data"], rows[rows["curve"] == "least squares"]
    betas = np.sort(rows["beta"].dropna().unique())
    norm = LogNorm(betas[0], betas[-1])
    figure, axes = plt.subplots(1, 2, figsize=(6.6, 3.1), sharey=True)
    panels = (("read-out", r"read-out $\bar y+(\mathrm{out}-\bar y)/\beta$"), ("softmax", "softmax output"))
    for ax, (curve, words), chosen in zip(
        axes, panels, (betas[betas <= 4][::2], betas[betas > 0.05][::2]), strict=True
    ):
        for beta in chosen:
            one = rows[(rows["curve"] == curve) & (rows["beta"] == beta)]
            ax.plot(one["x"], one["y"], color=matplotlib.colormaps[SEQUENTIAL](norm(beta)), linewidth=1.2)
        ax.plot(line["x"], line["y"], **THEORY)
        ax.plot(data["x"], data["y"], "o", color=MUTED, markersize=3.5, zorder=3)
        ax.set(xlabel="query $x$", ylim=(data["y"].min() - 0.5, data["y"].max() + 0.5))
        panel_label(ax, words)
    axes[0].set_ylabel("prediction $y$")
    figure.colorbar(matplotlib.cm.ScalarMappable(norm, SEQUENTIAL), ax=axes, label=r"$\beta$", pad=0.02, aspect=30)
    first = rows[(rows["curve"] == "read-out") & (rows["beta"] == betas[0])]["y"].to_numpy()
    last = rows[(rows["curve"] == "softmax") & (rows["beta"] == betas[-1])]["y"]
    figure.set_label(
        f"Predictions along x. At beta = {betas[0]:g} the rescaled read-out is within "
        f"{np.abs(first - line['y'].to_numpy()).max():.1e} of the least-squares line. As beta grows the softmax output "
        f"bends, and at beta = {betas[-1]:g} it steps from {last.iloc[0]:.2f} to {last.iloc[-1]:.2f}, the responses of "
        f"the two extreme points."
    )
    return figure


def dial_error(rows: pd.DataFrame) -> Figure:
    """Distance of the softmax read-out from affine least squares against beta; rows of ``Dial``."""
    figure, ax = plt.subplots(figsize=(5.4, 3.2))
    points = _shown(_measured(ax, rows, "beta", "error", BLUE))
    low, high = points.iloc[0], points.iloc[-1]
    ax.plot(points["beta"], low["value"] * points["beta"] / low["beta"], **THEORY)
    beside(ax, high["beta"], high["value"], "slope 1", INK, (-12, 8), ha="right")
    ax.set(xscale="log", yscale="log", xlabel=r"inverse temperature $\beta$", ylabel="distance from least squares")
    slope = _slope(np.log(points["beta"]), np.log(points["value"]))
    figure.set_label(
        f"Relative distance from least squares with intercept against beta on logarithmic axes, "
        f"{_runs(rows)}: a line of slope {slope:.3f} from {low['value']:.1e} to {high['value']:.1e}."
    )
    return figure


def dial_explorer(rows: pd.DataFrame) -> Any:
    """The beta dial as a Plotly figure with one slider; its ``layout.meta`` holds the alt text; ``DialCurves``."""
    import plotly.graph_objects as go

    rows = rows[~rows["recorded"]].round({"x": 4, "y": 4})
    data, line = rows[rows["curve"] == "data"], rows[rows["curve"] == "least squares"]
    betas = np.sort(rows["beta"].dropna().unique())

    def traces(beta: float) -> list[go.Scatter]:
        parts = {name: rows[(rows["curve"] == name) & (rows["beta"] == beta)] for name in ("softmax", "read-out")}
        shown = zip(parts.values(), ("softmax output", "rescaled read-out"), (3, 5), strict=True)
        return [go.Scatter(x=part["x"], y=part["y"], name=name, line={"width": width}) for part, name, width in shown]

    fixed = [
        go.Scatter(x=line["x"], y=line["y"], name="least squares", line={"dash": "dot"}),
        go.Scatter(x=data["x"], y=data["y"], name="data", mode="markers", marker={"size": 7}),
    ]
    start = int(np.argmin(np.abs(np.log(betas) - np.log(0.3))))
    figure = go.Figure([*traces(betas[start])[::-1], *fixed])
    figure.frames = [go.Frame(name=f"{beta:.3g}", data=traces(beta)[::-1], traces=[0, 1]) for beta in betas]
    still = {"mode": "immediate", "frame": {"duration": 0, "redraw": True}, "transition": {"duration": 0}}
    steps = [{"label": frame.name, "method": "animate", "args": [[frame.name], still]} for frame in figure.frames]
    figure.update_layout(
        height=440,
        sliders=[{"active": start, "currentvalue": {"prefix": "β = "}, "steps": steps}],
        xaxis_title="query x",
        yaxis={"title": "prediction y", "range": [float(data["y"].min()) - 0.6, float(data["y"].max()) + 0.6]},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"},
        meta={
            "alt": f"A slider moves beta from {betas[0]:g} to {betas[-1]:g}. The rescaled read-out starts as the "
            f"least-squares line through {len(data)} points. The softmax output starts flat at their mean, bends "
            f"through the points and ends as a step between the two extreme ones."
        },
    )
    return figure


# Memories ------------------------------------------------------------------------------------------------------------


def polynomial_capacity(rows: pd.DataFrame) -> Figure:
    """Patterns at 1 % bit error against spins, one line per degree; rows of ``PolynomialCapacity``."""
    figure, ax = plt.subplots(figsize=(5.6, 3.6))
    slopes = {}
    for degree, color in zip(sorted(rows["degree"].unique()), COLOURS, strict=False):
        part = rows[rows["degree"] == degree]
        theory = part.groupby("N")["theory"].first()
        ax.plot(theory.index, theory, **THEORY)
        _measured(ax, part, "N", "K", color)
        means = largest(part).groupby("N")["K"].mean()
        slopes[degree] = _slope(np.log(means.index), np.log(means))
        beside(ax, theory.index[-1], theory.iloc[-1], f"$u^{degree}$: slope {slopes[degree]:.2f}", color, (9, 0))
    low, high = rows["N"].min(), rows["N"].max()
    ax.set(xscale="log", yscale="log", xlabel="spins $N$", ylabel="patterns $K$ at 1 % error")
    _plain_log(ax.xaxis, [2**k for k in range(3, 12) if low <= 2**k <= high])
    ax.set_xlim(low / 1.15, high * 2.6)
    said = ", ".join(f"{slope:.2f} for degree {degree}" for degree, slope in slopes.items())
    figure.set_label(
        f"Number of patterns against number of spins on logarithmic axes, {_runs(rows)}: lines of slope {said}. The "
        f"measured points lie on the curves of signal to noise."
    )
    return figure


def exponential_capacity(rows: pd.DataFrame) -> Figure:
    """log2 of the capacity for F = e^u in both notions against spins; rows of ``ExponentialCapacity``."""
    figure, ax = plt.subplots(figsize=(5.6, 3.6))
    rates = {}
    for notion, words, color in (("typical", "a typical pattern stays", BLUE), ("all", "all patterns stay", RED)):
        part = rows[rows["notion"] == notion].assign(bits=lambda some: np.log2(some["K"]))
        theory = np.log2(part.groupby("N")["theory"].first())
        ax.plot(theory.index, theory, **THEORY)
        _measured(ax, part, "N", "bits", color)
        means = largest(part).groupby("N")["bits"].mean()
        rates[notion] = _slope(means.index, means)
        beside(ax, theory.index[-1], theory.iloc[-1], f"{words}:\nslope {rates[notion]:.2f}", color, (9, 0))
    low, high = rows["N"].min(), rows["N"].max()
    ax.set(xlabel="spins $N$", ylabel=r"$\log_2 K$", xlim=(low - 0.6, high + 0.55 * (high - low)))
    ax.set_xticks(sorted(rows["N"].unique()))
    figure.set_label(
        f"Logarithm to base 2 of the number of patterns against spins, {_runs(rows)}. A typical pattern stays "
        f"up to a line of slope {rates['typical']:.2f} bits per spin, all patterns at once only up to one of "
        f"{rates['all']:.2f}."
    )
    return figure


def read_out_noise(rows: pd.DataFrame) -> Figure:
    """Noise energy of each read-out against the patterns; rows: memory, num_patterns, noise, theory, naive."""
    figure, ax = plt.subplots(figsize=(5.8, 3.7))
    said = []
    for memory, words, color, marker, height in (
        ("hebb", "Hebb (linear)", RED, "^", 7),
        ("projection", "projection (whitened)", BLUE, "o", -7),
        ("cubic", "cubic kernel", GREEN, "s", 0),
        ("softmax", "softmax", PINK, "D", 0),
    ):
        part = rows[rows["memory"] == memory]
        if part.empty:
            continue
        theory = part.groupby("num_patterns")["theory"].first().dropna()
        ax.plot(theory.index, theory, **THEORY)
        last = _shown(_measured(ax, part, "num_patterns", "noise", color, marker)).iloc[-1]
        beside(ax, last["num_patterns"], last["value"], words, color, (9, height))
        said.append(f"{words} {last['value']:.2g}")
    naive = rows[rows["memory"] == "hebb"].groupby("num_patterns")["naive"].first()
    ax.plot(naive.index, naive, color=MUTED, linewidth=0.9, linestyle="--")
    middle = naive.index[len(naive) // 2]
    beside(ax, middle, naive[middle], "Hebb without the\ncoherent part", MUTED, (6, -18))
    ax.set(xscale="log", yscale="log", xlabel="stored patterns $K$", ylabel="noise energy (signal: 1)")
    _plain_log(ax.xaxis, sorted(rows["num_patterns"].unique())[::2])
    ax.set_xlim(right=rows["num_patterns"].max() * 6)
    figure.set_label(
        f"Noise energy against the number of stored patterns on logarithmic axes. At the largest number: "
        f"{', '.join(said)}. The Hebb points follow the exact line and leave the dashed one, which forgets the "
        f"coherent part."
    )
    return figure
