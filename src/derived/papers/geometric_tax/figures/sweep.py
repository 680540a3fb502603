"""The codebook from coarse to fine: rows in, a figure with its alt text as label out.

mark             meaning
points, lines    means over trained networks with 99.9 % intervals; filled where recorded, open where live; in black
                 after four times the steps
dashed           the squared error of the value on the same tokens
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, DASHED, INK, MUTED, RED, beside, largest, mean_and_reach, panel_label, plain_log


def sweep(rows: pd.DataFrame, longer: pd.DataFrame) -> Figure:
    """The distortion against the number of codes, a panel for each kind of data, and what the codes and the networks
    miss; rows of ``Sweep``, and of ``Longer`` where there is no noise and many paths."""
    table, later = largest(rows), largest(longer)
    later = later.query("stage == 'fit' and arm == 'ce' and noise == 0 and step == step.max()")
    table = table[table["stage"] == "fit"]
    recorded, many = bool(table["recorded"].iloc[0]), table["num"].max()
    cases = list(table.groupby(["noise", "num"]))[::-1]
    figure, axes = plt.subplots(1, len(cases) + 1, figsize=(8.4, 3.0))
    words, top = [], 0.0
    for place, (ax, ((noise, num), part)) in enumerate(zip(axes, cases, strict=False)):
        case = (f"noise {100 * noise:g} %" if noise else "no noise") + (f", {num} paths" if num != many else "")
        hard, scalar = part[part["arm"] == "ce"], part[part["arm"] == "scalar"]["distortion"].mean()
        K, mean, reach = zip(*((K, *mean_and_reach(one["distortion"])) for K, one in hard.groupby("K")), strict=True)
        face = RED if recorded else "none"
        ax.errorbar(K, mean, reach, fmt="o-", color=RED, markerfacecolor=face, linewidth=1.2, capsize=2)
        ax.axhline(scalar, **DASHED)
        if not noise and num == many:
            at, level, wide = zip(
                *((k, *mean_and_reach(one["distortion"])) for k, one in later.groupby("K")), strict=True
            )
            face = INK if bool(later["recorded"].iloc[0]) else "none"
            ax.errorbar(
                at, level, wide, fmt="s--", color=INK, markerfacecolor=face, linewidth=1, capsize=2, markersize=4
            )
            top = max(top, *(one + half for one, half in zip(level, wide, strict=True)))
            said = ", ".join(f"{k} {value:.2g}" for k, value in zip(at, level, strict=True))
            words.append(f"after more steps: {said}")
        if place == 0:
            beside(ax, K[-1], mean[-1], "hard labels", RED, (4, 24), ha="right", fontsize=9)
            beside(ax, K[-1], scalar, "the value", MUTED, (4, -9), ha="right", fontsize=9)
        top = max(top, *(at + half for at, half in zip(mean, reach, strict=True)))
        panel_label(ax, case)
        said = ", ".join(f"{k} {value:.2g}" for k, value in zip(K, mean, strict=True))
        words.append(f"{case}: {said}, the value {scalar:.2g}")
    for ax in axes[:-1]:
        ax.set(ylim=(0, 1.05 * top), ylabel="distortion $D$" if ax is axes[0] else "")
        ax.tick_params(labelleft=ax is axes[0])
    plenty = table[(table["noise"] == 0) & (table["num"] == many) & (table["arm"] == "ce")]
    missed = plenty.groupby("K")[["reconstruction", "rmse"]].mean()
    for name, label, shade in (("reconstruction", "codes", INK), ("rmse", "next value", BLUE)):
        axes[-1].plot(missed.index, missed[name], "o-", color=shade)
        beside(axes[-1], missed.index[-1], missed[name].iloc[-1], label, shade, (-8, 2), ha="right", fontsize=9)
    axes[-1].set(yscale="log", ylabel="error, share of the range")
    panel_label(axes[-1], "missed, no noise")
    for ax in axes:
        ax.set(xlabel="codes $K$", xscale="log")
        plain_log(ax.xaxis, sorted(missed.index))
        ax.tick_params(axis="x", labelsize=8)
    figure.set_label(f"Distortion under hard labels against the number of codes. {'; '.join(words)}.")
    return figure
