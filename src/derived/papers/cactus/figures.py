"""The figures of the chapter: each takes rows and returns a figure with its alt text as label.

mark                   meaning
blue, orange, green    verifier q, draft p, emitted law
line in INK            theory; dashed: a bound or a limit
filled, open marker    recorded, live; bars are 99.9 % intervals over prompts
sequential colours     a swept parameter
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure

from derived.lab import stats
from derived.lab.plot import COLOURS, DIVERGING, INK, MUTED, SEQUENTIAL, beside, largest, panel_label, shades

THEORY = {"color": INK, "linewidth": 1.0, "zorder": 2}
DASHED = {"color": MUTED, "linewidth": 1.0, "linestyle": "--", "zorder": 1}
BLUE, RED, GREEN, PINK, ORANGE, SKY = COLOURS
RULES = {
    "cactus": ("Cactus", GREEN, "o"),
    "mentored": ("clip law", INK, "D"),
    "lenience": ("lenience", SKY, "v"),
    "interp": ("interpolation", PINK, "s"),
    "tas": ("typical", RED, "^"),
    "topk": ("top-k", ORANGE, "P"),
}


def overlap(rows: pd.DataFrame) -> Figure:
    """Bars of p and q with their overlap, and one raised target; rows: token, p, q, h (the target), drafted."""
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 2.9), sharey=True)
    x = rows["token"].to_numpy()
    axes[0].bar(x, rows["q"], 0.8, facecolor="none", edgecolor=BLUE, linewidth=1.6, label="verifier $q$")
    axes[0].bar(x, rows["p"], 0.5, facecolor="none", edgecolor=RED, linewidth=1.6, label="draft $p$")
    shared = np.minimum(rows["p"], rows["q"])
    axes[0].bar(x, shared, 0.5, color=MUTED, alpha=0.45, label="kept")
    axes[0].legend(fontsize=8, loc="upper right")
    drafted = int(rows.loc[rows["drafted"], "token"].iloc[0])
    axes[1].bar(x, rows["q"], 0.8, facecolor="none", edgecolor=BLUE, linewidth=1.6, label="verifier $q$")
    axes[1].bar(x, rows["h"], 0.5, color=np.where(rows["drafted"], GREEN, SKY), alpha=0.8)
    raised = float(rows.loc[rows["drafted"], "h"].iloc[0])
    beside(axes[1], drafted, raised, rf"$\gamma={raised:.2f}$", GREEN, (-8, 8))
    for ax, text in zip(axes, ("exact", rf"the target after drafting token {drafted}"), strict=True):
        ax.set(xlabel="token", xticks=x)
        panel_label(ax, text)
    axes[0].set(ylabel="probability", ylim=(0, 1.15 * max(rows[["p", "q", "h"]].max())))
    figure.set_label(
        f"Left: bars of draft and verifier over {len(x)} tokens; their overlap, the acceptance, is {shared.sum():.2f}. "
        f"Right: the target after drafting token {drafted}, its bar raised to {raised:.2f}, the others shrunk alike."
    )
    return figure


def raised_probability(rows: pd.DataFrame) -> Figure:
    """gamma against q_n for several budgets; rows: delta, q_n, second_order, exact."""
    figure, ax = plt.subplots(figsize=(6.0, 3.6))
    deltas, words = sorted(rows["delta"].unique()), []
    for delta, color in zip(deltas, shades(len(deltas)), strict=True):
        part = rows[rows["delta"] == delta].sort_values("q_n")
        ax.plot(part["q_n"], part["second_order"], color=color)
        ax.plot(part["q_n"], part["exact"], color=color, linestyle=":", linewidth=1.2)
        ax.plot([], [], color=color, label=rf"$\delta={delta:g}$")
        words.append(f"{(part['second_order'] - part['exact']).abs().max():.3f} at {delta:g}")
    ax.plot([0, 1], [0, 1], **DASHED)
    ax.legend(fontsize=8, loc="lower right")
    ax.set(xlabel="verifier's probability $q_n$ of the drafted token", ylabel=r"raised to $\gamma_n$", xlim=(0, 1))
    ax.set_ylim(0, 1.03)
    figure.set_label(
        "Raised probability against the verifier's, solid the second-order rule, dotted the exact root for KL. Largest "
        f"distance of the two: {', '.join(words)}."
    )
    return figure


def budget_map(rows: pd.DataFrame) -> Figure:
    """KL over its budget on a grid; rows of ``Budget``."""
    rows = largest(rows)
    q = np.sort(rows["q_n"].value_counts()[lambda count: count > 1].index.to_numpy())
    grid = rows[rows["q_n"].isin(q)].pivot(index="delta", columns="q_n", values="ratio")
    figure, ax = plt.subplots(figsize=(6.4, 3.8))
    norm = TwoSlopeNorm(1.0, 0.0, 2.0)
    mesh = ax.pcolormesh(grid.columns, grid.index, grid, cmap=DIVERGING, norm=norm, shading="nearest", rasterized=True)
    figure.colorbar(mesh, ax=ax, label=r"$D_{\mathrm{KL}}(h^{(n)}\|q)\,/\,\delta$")
    low = np.linspace(1e-3, 0.499, 400)
    edge = (1 - 2 * low) ** 2 / (2 * low * (1 - low))  # gamma = 1 - q
    ax.plot(low, edge, **THEORY)
    ax.axvline(0.28467, **DASHED)
    ax.plot(1 / (1 + 2 * grid.index), grid.index, color=INK, linestyle=":", linewidth=1.2)
    ax.set(yscale="log", ylim=(grid.index.min(), grid.index.max()), xlim=(0, 1))
    beside(ax, 0.49, 0.002, r"$\gamma=1-q_n$", INK, (5, 0))
    beside(ax, 0.28467, 0.0016, "$q_0$", INK, (-16, 0))
    beside(ax, 1 / (1 + 2 * 0.5), 0.5, "worst", INK, (8, 0))
    ax.set(xlabel="$q_n$", ylabel=r"budget $\delta$ (nats)")
    broken = float((grid > 1 + 1e-6).to_numpy().mean())
    figure.set_label(
        f"Heat map of KL over its budget: up to {grid.to_numpy().max():.2f}. On {100 * broken:.0f} % of the map the "
        "budget is broken, to the right of the line where gamma is 1 - q, and right of q0 = 0.285 for every budget."
    )
    return figure


def which_law(rows: pd.DataFrame) -> Figure:
    """The emitted law between draft and verifier, with the mixture; rows: token, p, q, emitted, mixture, kl_emitted,
    kl_mixture, delta."""
    figure, ax = plt.subplots(figsize=(6.6, 3.2))
    x, first = rows["token"].to_numpy(), rows.iloc[0]
    low, high = rows[["p", "q"]].min(axis=1), rows[["p", "q"]].max(axis=1)
    ax.vlines(x, low, high, color=MUTED, linewidth=7, alpha=0.35)
    ax.plot(x, rows["q"], "_", color=BLUE, markersize=16, markeredgewidth=2.2, label="verifier $q$")
    ax.plot(x, rows["p"], "_", color=RED, markersize=16, markeredgewidth=2.2, label="draft $p$")
    ax.plot(x, rows["emitted"], "o", color=GREEN, label=rf"emitted, KL {first['kl_emitted']:.3f}")
    ax.plot(x + 0.22, rows["mixture"], "x", color=INK, label=rf"mixture of targets, KL {first['kl_mixture']:.3f}")
    ax.legend(fontsize=8, title=rf"budget {first['delta']:g}", title_fontsize=8)
    ax.set(xlabel="token", ylabel="probability", xticks=x)
    figure.set_label(
        f"Draft, verifier and emitted law over {len(x)} tokens. Every emitted probability lies between the other two. "
        f"KL from the verifier: emitted {first['kl_emitted']:.3f}, mixture of the targets {first['kl_mixture']:.3f}, "
        f"budget {first['delta']:g}."
    )
    return figure


def price(rows: pd.DataFrame) -> Figure:
    """Acceptance gained against total variation spent, pair by pair; rows of ``RandomPairs``."""
    rows = largest(rows)
    rows = rows[(rows["V"] == rows["V"].max()) & ~((rows["rule"] == "cactus") & (rows["knob"] != 0.01))]
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.5), sharey=True, sharex=True)
    words = []
    for ax, kind in zip(axes, ("noised", "independent"), strict=True):
        for rule, (name, color, marker) in RULES.items():
            part = rows[(rows["rule"] == rule) & (rows["kind"] == kind)].head(150)
            gain = part["acceptance"] - part["exact_acceptance"]
            ax.plot(part["tv"], gain, marker, color=color, markersize=3, alpha=0.6, label=name)
            words.append(f"{name} {gain.mean():.2f} for {part['tv'].mean():.2f}")
        ax.plot([0, 1], [0, 1], **THEORY)
        ax.set(xlabel=r"spent: TV of the emitted law from $q$", xlim=(0, 1))
        panel_label(ax, "draft near the verifier" if kind == "noised" else "unrelated draft")
    axes[0].set(ylabel="gained: acceptance over exact", ylim=(-0.75, 1))
    axes[1].legend(fontsize=8, loc="lower left", markerscale=1.6)
    figure.set_label(
        "Acceptance gained against total variation spent. Cactus, clip law, lenience and interpolation lie on the "
        f"diagonal, typical and top-k acceptance below. Means: near drafts, then unrelated: {'; '.join(words)}."
    )
    return figure


def frontier(rows: pd.DataFrame) -> Figure:
    """Mean acceptance against mean KL while a knob moves; rows: rule, knob, acceptance, kl."""
    figure, ax = plt.subplots(figsize=(6.2, 3.7))
    budgets = np.linspace(0.01, 0.15, 15)
    reached = {}
    for rule, (name, color, marker) in RULES.items():
        part = rows[rows["rule"] == rule].sort_values("kl")
        line = "-" if rule in ("cactus", "mentored") else "--"
        ax.plot(part["kl"], part["acceptance"], line, color=color, marker=marker, markersize=3, label=name)
        if rule in ("cactus", "mentored", "interp", "lenience"):
            reached[name] = float(np.interp(budgets[4], part["kl"], part["acceptance"]))
    ax.legend(fontsize=8, loc="lower center")
    ax.set(xlabel="mean KL of the emitted law from $q$ (nats)", ylabel="mean acceptance rate $A$", xlim=(0, 0.3))
    ax.set_ylim(rows.loc[rows["rule"] == "cactus", "acceptance"].min() - 0.02, 1.01)
    words = ", ".join(f"{name} {value:.3f}" for name, value in reached.items())
    figure.set_label(
        f"Acceptance against KL for six rules. At a mean KL of {budgets[4]:.2f}: {words}. The clip law is on top; "
        "typical and top-k acceptance lie to the right, and fall."
    )
    return figure


def flat_family(rows: pd.DataFrame) -> Figure:
    """Emitted KL in units of the budget against V; rows of ``FlatFamily``."""
    rows = largest(rows).sort_values("V")
    figure, ax = plt.subplots(figsize=(5.8, 3.2))
    ax.plot(rows["V"], rows["predicted"], **THEORY)
    ax.plot(rows["V"], rows["ratio"], "o", color=GREEN, markerfacecolor="none")
    ax.axhline(1, **DASHED)
    last = rows.iloc[-1]
    beside(ax, last["V"], last["ratio"], rf"$\delta={last['delta']:.1e}$, KL {last['kl']:.2f}", GREEN, (-130, 0))
    ax.set(
        xscale="log", yscale="log", xlabel="vocabulary $V$", ylabel=r"$D_{\mathrm{KL}}(h_{\mathrm{alg}}\|q)\,/\,\delta$"
    )
    figure.set_label(
        f"Emitted KL over the budget against the vocabulary, both axes logarithmic, on the line 2(V-1) ln 2: from "
        f"{rows['ratio'].iloc[0]:.1f} at V = {rows['V'].iloc[0]} to {last['ratio']:.0f} at V = {last['V']:.0f}."
    )
    return figure


def speed(rows: pd.DataFrame) -> Figure:
    """Tokens per verifier pass and speed over plain decoding against m; rows: alpha, m, tokens, speedup."""
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.1))
    alphas, words = sorted(rows["alpha"].unique()), []
    for alpha, color in zip(alphas, shades(len(alphas)), strict=True):
        part = rows[rows["alpha"] == alpha].sort_values("m")
        for ax, column in zip(axes, ("tokens", "speedup"), strict=True):
            ax.plot(part["m"], part[column], color=color)
        best = part.loc[part["speedup"].idxmax()]
        axes[1].plot(best["m"], best["speedup"], "o", color=color, markersize=4)
        beside(axes[0], part["m"].iloc[-1], part["tokens"].iloc[-1], rf"$\alpha={alpha:g}$", color, (3, 0))
        words.append(f"{best['speedup']:.2f} at m = {best['m']:.0f} for {alpha:g}")
    axes[0].set(xlabel="drafts per block $m$", ylabel=r"tokens per verifier pass", xlim=(0, 1.3 * rows["m"].max()))
    axes[1].set(xlabel="drafts per block $m$", ylabel="speed over plain decoding")
    figure.set_label(
        "Tokens per verifier pass, and modelled speed, against drafts per block for several acceptance rates. Largest "
        f"speeds: {', '.join(words)}."
    )
    return figure


def trained_pair(rows: pd.DataFrame) -> Figure:
    """Share of texts without fault against drafts kept per block; rows of ``TrainedPair``."""
    rows = largest(rows)
    rows = rows[rows["draft"] == "trained"]
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.7), sharey=True)
    words, recorded = [], bool(rows["recorded"].iloc[0])
    for ax, shape in zip(axes, ("truncated", "plain"), strict=True):
        for rule, (name, color, marker) in RULES.items():
            part = rows[(rows["rule"] == rule) & (rows["shape"] == shape)]
            points = [(knob, _kept(group), *_share(group["valid"])) for knob, group in part.groupby("knob")]
            _, al, value, reach = (np.array(each) for each in zip(*sorted(points, key=lambda p: p[1]), strict=True))
            facts = {"color": color, "marker": marker, "markersize": 4.5, "elinewidth": 0.8, "label": name}
            facts |= {"markerfacecolor": color if recorded else "none", "linestyle": "-" if rule == "cactus" else ""}
            ax.errorbar(al, value, reach, **facts)
            words.append(f"{shape} {name} " + ", ".join(f"{v:.2f} at {a:.1f}" for v, a in zip(value, al, strict=True)))
        ax.set(xlabel="drafts kept per block")
        panel_label(ax, "temperature 0.6, top-p 0.95" if shape == "truncated" else "temperature 1")
    axes[0].set(ylabel="texts without fault", ylim=(-0.03, 1.03))
    axes[1].legend(fontsize=8, loc="upper right", ncols=2)
    figure.set_label(
        "Share of texts without fault against drafts kept per block, truncated laws and temperature 1. Share at "
        f"drafts kept: {'; '.join(words)}."
    )
    return figure


def _kept(rows: pd.DataFrame) -> float:
    """Drafts kept per block, total over total."""
    return rows["kept"].sum() / rows["blocks"].sum()


def _share(valid: pd.Series) -> tuple[float, float]:
    """A share and the half width of its 99.9 % interval."""
    one = stats.proportion(int(valid.sum()), len(valid))
    return one.value, (one.high - one.low) / 2


def where_faults_begin(rows: pd.DataFrame) -> Figure:
    """Texts still without fault against tokens written, temperature 1; rows of ``TrainedPair``."""
    rows = largest(rows)
    rows = rows[(rows["draft"] == "trained") & (rows["shape"] == "plain") & (rows["rule"] == "cactus")]
    figure, ax = plt.subplots(figsize=(6.0, 3.3))
    deltas, words = sorted(rows["knob"].unique()), []
    at = np.arange(int(rows["fault"].max()) + 1)
    for delta, color in zip(deltas, shades(len(deltas)), strict=True):
        fault = np.sort(rows.loc[rows["knob"] == delta, "fault"].to_numpy())
        alive = 1 - np.searchsorted(fault, at, side="left") / len(fault)
        ax.plot(at, alive, color=color)
        beside(ax, at[-1], alive[-1], rf"$\delta={delta:g}$", color, (4, 0))
        words.append(f"{alive[-1]:.2f} at {delta:g}")
    ax.set(xlabel="tokens written", ylabel="texts still without fault", ylim=(0, 1.03), xlim=(0, 1.25 * at[-1]))
    figure.set_label(
        f"Share of texts still without fault against tokens written, by budget. At the end {', '.join(words)}."
    )
    return figure


def heat_of_rules(rows: pd.DataFrame) -> Figure:
    """Validity of each rule at nearly the acceptance of Cactus, with the drafts kept per block, as a table of colours;
    rows of ``TrainedPair``."""
    rows = largest(rows)
    chosen = rows[rows["draft"] == "trained"]
    valid, kept = {}, {}
    for shape in ("truncated", "plain"):
        part = chosen[chosen["shape"] == shape]
        for delta in sorted(set(part["matched"]) - {0.0}):
            own = (part["rule"] == "cactus") & (part["knob"] == delta)
            cells = part[own | (part["matched"] == delta)].groupby("rule")[["valid", "kept", "blocks"]].mean()
            cells = cells.assign(al=cells["kept"] / cells["blocks"]).loc[list(RULES)]
            cells, name = cells.rename(index={rule: RULES[rule][0] for rule in RULES}), f"{shape}, δ = {delta:g}"
            valid[name], kept[name] = cells["valid"], cells["al"]
    valid, kept = pd.DataFrame(valid).T, pd.DataFrame(kept).T
    notes = valid.map("{:.2f}".format) + "\n(" + kept.map("{:.2f}".format) + ")"
    figure, ax = plt.subplots(figsize=(7.6, 0.9 + 0.6 * len(valid)))
    bar = {"label": "without fault"}
    sns.heatmap(valid, ax=ax, cmap=SEQUENTIAL, annot=notes, fmt="", vmin=0, vmax=1, cbar_kws=bar, annot_kws={"size": 9})
    ax.set(xlabel="rule, its knob set for nearly the acceptance of Cactus", ylabel="")
    ax.tick_params(axis="both", labelrotation=0)
    words = "; ".join(
        f"{name}: " + ", ".join(f"{rule} {row[rule]:.2f} ({kept.loc[name, rule]:.2f} kept)" for rule in row.index)
        for name, row in valid.iterrows()
    )
    figure.set_label(f"Share of texts without fault for each rule, and drafts kept per block. {words}.")
    return figure


def explorer(rows: pd.DataFrame):
    """Plotly figure with sliders delta, temperature and noise; rows: the three names, token, p, q, emitted, and per
    setting acceptance, exact, tv, kl, draft_kl. Two panels, one above the other."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    names = ["delta", "temperature", "noise"]
    groups = dict(iter(rows.groupby(names)))
    values = [sorted(rows[name].unique()) for name in names]
    start = tuple(each[len(each) // 2] for each in values)
    laws = (("q", "verifier q", BLUE), ("p", "draft p", RED), ("emitted", "emitted", GREEN))
    bars = ("acceptance", "exact", "tv", "kl", "draft_kl")
    words = ["acceptance", "exact acc.", "TV spent", "KL emitted", "KL draft"]
    figure = make_subplots(rows=2, cols=1, vertical_spacing=0.2, row_heights=[0.55, 0.45])
    first = groups[start]
    for column, name, color in laws:
        figure.add_trace(
            go.Bar(x=first["token"].tolist(), y=first[column].round(4).tolist(), name=name, marker={"color": color}),
            1,
            1,
        )
    numbers = [round(float(first[name].iloc[0]), 4) for name in bars]
    figure.add_trace(
        go.Bar(x=numbers, y=words, orientation="h", showlegend=False, text=numbers, marker={"color": MUTED}), 2, 1
    )
    frames = []
    for key, part in groups.items():
        data = [{"type": "bar", "y": part[column].round(4).tolist()} for column, _, _ in laws]
        numbers = [round(float(part[name].iloc[0]), 4) for name in bars]
        data.append({"type": "bar", "x": numbers, "text": numbers})
        frames.append(go.Frame(name="|".join(f"{value:g}" for value in key), data=data, traces=[0, 1, 2, 3]))
    figure.frames = frames
    labels = {"delta": "δ", "temperature": "temperature", "noise": "draft noise"}
    figure.update_layout(
        height=560,
        margin={"l": 90, "r": 16, "t": 40, "b": 40},
        legend={"orientation": "h", "y": 1.1, "x": 0},
        barmode="group",
        sliders=[
            {
                "active": len(each) // 2,
                "currentvalue": {"prefix": f"{labels[name]} = "},
                "steps": [{"label": f"{value:g}", "method": "skip", "args": []} for value in each],
            }
            for name, each in zip(names, values, strict=True)
        ],
        meta={
            "alt": f"Bars of verifier, draft and emitted law over {rows['token'].nunique()} tokens, and below them the "
            f"acceptance rate, its exact value, TV and KL, at {' × '.join(str(len(each)) for each in values)} values "
            "of the budget δ, the temperature and the draft's noise. A larger δ moves the emitted law from verifier "
            "to draft; acceptance gained equals TV spent at every setting."
        },
    )
    figure.update_yaxes(title_text="probability", range=[0, 1], row=1, col=1)
    figure.update_xaxes(title_text="token", row=1, col=1)
    figure.update_xaxes(range=[0, 1.4], row=2, col=1)
    figure.update_yaxes(autorange="reversed", row=2, col=1)
    return figure
