"""One position: rows in, a figure with its alt text as label out.

mark                   meaning
blue, orange, green    verifier q, draft p, emitted law
line in INK            theory; dashed: a bound or a limit
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, DASHED, GREEN, INK, MUTED, RED, THEORY, beside, largest, panel_label

from .marks import RULES


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
    panel_label(ax, "Emitted: between draft and verifier, far from the mixture")
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
    short = reached[RULES["mentored"][0]] - reached[RULES["cactus"][0]]
    panel_label(ax, f"Cactus keeps {100 * short:.1f} points less than the best rule at equal distance")
    ax.set(xlabel="mean KL from the verifier (nats)", ylabel="share of drafts kept $A$", xlim=(0, 0.3))
    ax.set_ylim(rows.loc[rows["rule"] == "cactus", "acceptance"].min() - 0.02, 1.01)
    words = ", ".join(f"{name} {value:.3f}" for name, value in reached.items())
    figure.set_label(
        f"Acceptance against KL for six rules. At a mean KL of {budgets[4]:.2f}: {words}. The clip law is on top; "
        "typical and top-k acceptance lie to the right, and fall."
    )
    return figure


def flat_family(rows: pd.DataFrame) -> Figure:
    """Emitted KL in units of the budget against V; rows: V, delta, kl, ratio, predicted."""
    rows = rows.sort_values("V")
    figure, ax = plt.subplots(figsize=(5.8, 3.2))
    ax.plot(rows["V"], rows["predicted"], **THEORY)
    ax.plot(rows["V"], rows["ratio"], "o", color=GREEN, markerfacecolor="none")
    ax.axhline(1, **DASHED)
    beside(ax, rows["V"].iloc[-1], 1, "the budget", MUTED, (0, 8), ha="right")
    panel_label(ax, "KL over budget grows with the vocabulary")
    last = rows.iloc[-1]
    digits, exponent = f"{last['delta']:.1e}".split("e")
    label = rf"$\delta={digits}\cdot10^{{{int(exponent)}}}$, KL {last['kl']:.2f}"
    beside(ax, last["V"], last["ratio"], label, GREEN, (-26, 4), ha="right")
    ax.set(
        xscale="log", yscale="log", xlabel="vocabulary $V$", ylabel=r"$D_{\mathrm{KL}}(h_{\mathrm{alg}}\|q)\,/\,\delta$"
    )
    figure.set_label(
        f"Emitted KL over the budget against the vocabulary, both axes logarithmic, on the line 2(V-1) ln 2: from "
        f"{rows['ratio'].iloc[0]:.1f} at V = {rows['V'].iloc[0]} to {last['ratio']:.0f} at V = {last['V']:.0f}."
    )
    return figure
