"""The codebook from coarse to fine: rows in, a figure with its alt text as label out.

mark             meaning
points, lines    means over trained networks with 99.9 % intervals; filled where recorded, open where live
dashed           the squared error of the value on the same tokens
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, COLOURS, DASHED, INK, apart, beside, largest, mean_and_reach, panel_label, plain_log


def sweep(rows: pd.DataFrame) -> Figure:
    """The distortion against the number of codes, and what the codes and the networks miss; rows of ``Sweep``."""
    table = largest(rows)
    table = table[table["stage"] == "fit"]
    recorded, many = bool(table["recorded"].iloc[0]), table["num"].max()
    codebooks = sorted(table[table["arm"] == "ce"]["K"].unique())
    figure, axes = plt.subplots(1, 2, figsize=(7.8, 3.7))
    words, ends = [], {}
    for color, ((noise, num), part) in zip(COLOURS, table.groupby(["noise", "num"]), strict=False):
        case = (f"noise {100 * noise:g} %" if noise else "no noise") + (f", {num} paths" if num != many else "")
        hard, scalar = part[part["arm"] == "ce"], part[part["arm"] == "scalar"]
        spots = [(K, *mean_and_reach(one["distortion"])) for K, one in hard.groupby("K")]
        K, mean, reach = zip(*spots, strict=True)
        face = color if recorded else "none"
        axes[0].errorbar(K, mean, reach, fmt="o-", color=color, markerfacecolor=face, linewidth=1.0, capsize=2)
        axes[0].plot([K[0], K[-1]], 2 * [scalar["distortion"].mean()], **(DASHED | {"color": color}))
        ends[case] = mean[-1], color
        said = ", ".join(f"{k} {value:.2g}" for k, value in zip(K, mean, strict=True))
        words.append(f"{case}: {said}, the value {scalar['distortion'].mean():.2g}")
        if noise == 0 and num == many:
            missed = hard.groupby("K")[["reconstruction", "rmse"]].mean()
            axes[1].plot(missed.index, missed["reconstruction"], "s-", color=INK)
            axes[1].plot(missed.index, missed["rmse"], "o-", color=BLUE)
            for name, label, shade in (("reconstruction", "of the codes", INK), ("rmse", "of the next value", BLUE)):
                beside(axes[1], missed.index[-1], missed[name].iloc[-1], label, shade, fontsize=8)
    places = apart([end for end, _ in ends.values()], 0.05 * axes[0].get_ylim()[1])
    for (case, (_, color)), place in zip(ends.items(), places, strict=True):
        beside(axes[0], codebooks[-1], place, case, color, fontsize=8)
    for ax in axes:
        ax.set(xlabel="codes $K$", xscale="log", xlim=(codebooks[0] / 1.3, codebooks[-1] * 6))
        plain_log(ax.xaxis, codebooks)
        ax.tick_params(axis="x", labelsize=8)
    axes[0].set(ylabel="distortion $D$ under hard labels", ylim=(0, None))
    axes[1].set(ylabel="error, share of the range", yscale="log")
    panel_label(axes[1], "no noise, many paths")
    figure.set_label(f"Distortion under hard labels against the number of codes. {'; '.join(words)}.")
    return figure
