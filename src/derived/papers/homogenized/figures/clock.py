"""Figures of the clock: two tokens, one curve for all steps and heads, and a torch stack."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import COLOURS, THEORY, apart, beside, largest, panel_label, points, shades


def two_tokens(rows: pd.DataFrame) -> Figure:
    """Moments of the overlap of two tokens over tau; rows of ``TwoTokens``."""
    rows = largest(rows)
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.2), sharey=True)
    off, last = [], {}
    heads = sorted(rows["H"].unique())
    titles = (f"hot, {heads[0]} to {heads[-1]} heads: on the line", "cold: on the line, too")
    for ax, title, (_, part) in zip(axes, titles, rows.groupby("logit_std"), strict=True):
        for column, text in (("first", "mean $R$"), ("second", "mean $R^2$")):
            theory = part.groupby("tau")[f"{column}_theory"].first()
            ax.plot(theory.index, theory, **THEORY)
            last[text] = theory.iloc[-1]
            for k, (H, color) in enumerate(zip(heads, shades(len(heads)), strict=True)):
                shifted = part[part["H"] == H]
                shifted = shifted.assign(at=shifted["tau"] + 0.06 * (k - len(heads) / 2))
                means = points(ax, shifted, "at", column, color)
                off.append(np.abs(means["value"].to_numpy() - theory.to_numpy()).max())
                if column == "first":
                    ax.plot([], [], "o", color=color, label=f"$H={H}$")
        for text, place in zip(last, apart(list(last.values()), 0.09), strict=True):
            beside(ax, part["tau"].max(), place, text, shift=(14, 0))
        panel_label(ax, title)
        ax.set(xlabel=r"clock $\tau$", xlim=(0, part["tau"].max() * 1.25))
    axes[0].legend(fontsize=8)
    figure.set_label(
        "First and second moment of the overlap of two tokens against the clock for several numbers of heads, on the "
        f"lines of the Fokker-Planck equation. Largest distance {max(off):.3f}."
    )
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
        means = points(axes[0], moved, "drift", "m", color, marker)
        axes[0].plot(means["drift"], means["value"], color=color, linewidth=0.7)
        points(axes[1], part, "tau", "m", color, marker)
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


def stack(rows: pd.DataFrame) -> Figure:
    """A post-LayerNorm stack against the ODE; rows of ``Stack``."""
    rows = largest(rows)
    figure, ax = plt.subplots(figsize=(6.0, 3.3))
    words = []
    theory = rows.groupby("tau")["m_theory"].first().sort_index()
    ax.plot(theory.index, theory, **THEORY)
    cases = list(rows.groupby(["scale", "H"]))
    for k, ((scale, H), part) in enumerate(cases):
        shifted = part.assign(at=part["tau"] + 0.1 * (k % 2 - 0.5))
        means = points(ax, shifted, "at", "m", COLOURS[k % 6], "osD^vP"[k % 6])
        ax.plot([], [], "osD^vP"[k % 6], color=COLOURS[k % 6], label=f"scale {scale:g}, $H={H}$")
        words.append(f"scale {scale:g}, {H} heads: {means['value'].iloc[-1]:.2f}")
    ax.legend(fontsize=8)
    ax.set(xlabel=r"clock $\tau$ = scale$^2\times$ layer", ylabel="mean overlap $m$", ylim=(0, 1.02))
    figure.set_label(f"Mean overlap of a post-LayerNorm stack against the clock; at the end {'; '.join(words)}.")
    return figure
