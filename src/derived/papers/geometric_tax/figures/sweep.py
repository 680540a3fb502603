"""The codebook from coarse to fine: rows in, a figure with its alt text as label out.

mark             meaning
points, lines    means over trained networks with 99.9 % intervals; filled where recorded, open where live
dashed           as much as under the squared error of the value on 64 codes, whatever K
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import (
    BLUE,
    DASHED,
    INK,
    MUTED,
    ORANGE,
    RED,
    apart,
    beside,
    largest,
    mean_and_reach,
    panel_label,
    plain_log,
)


def sweep(rows: pd.DataFrame, longer: pd.DataFrame) -> Figure:
    """The distortion against the number of codes, over that of the value, for each kind of data, and what the codes and
    the networks miss; rows of ``Sweep`` and, in black, those of ``Longer`` without noise."""
    table, later = (each[each["stage"] == "fit"] for each in (largest(rows), largest(longer)))
    later = later[(later["noise"] == 0) & (later["step"] == later["step"].max())]
    recorded, many = bool(table["recorded"].iloc[0]), table["num"].max()
    figure, axes = plt.subplots(2, 1, figsize=(5.5, 5.0), sharex=True)
    words, ends, most = [], [], 1.0
    for (noise, num), part in [*table.groupby(["noise", "num"]), ((0.0, many), later)]:
        case = (f"noise {100 * noise:g} %" if noise else "no noise") + (f", {num} paths" if num != many else "")
        color = BLUE if noise else (RED if num == many else ORANGE)
        if part is later:
            case, color = f"{case}, {later['step'].iloc[0] // table['step'].iloc[0]} times the steps", INK
        hard, scalar = part[part["arm"] == "ce"], part[part["arm"] == "scalar"]["distortion"].mean()
        K, mean, reach = zip(*((K, *mean_and_reach(one["distortion"])) for K, one in hard.groupby("K")), strict=True)
        times, half = np.array(mean) / scalar, np.array(reach) / scalar
        face = color if recorded else "none"
        axes[0].errorbar(K, times, half, fmt="o-", color=color, markerfacecolor=face, linewidth=1.2, capsize=2)
        ends.append((times[-1], case, color))
        most = max(most, times.max()) if num == many and not noise else most
        said = ", ".join(f"{k} {value:.2g}" for k, value in zip(K, mean, strict=True))
        words.append(f"{case}: {said}, the value {scalar:.2g}")
    axes[0].plot([K[0], K[-1]], [1, 1], **DASHED)
    beside(axes[0], K[0], 1, "the value itself", MUTED, (8, -7), fontsize=9)
    places = apart([end for end, *_ in ends], 0.11 * axes[0].get_ylim()[1])
    for (_, case, color), place in zip(ends, places, strict=True):
        beside(axes[0], K[-1], place, case, color, (8, 0), annotation_clip=False)
    axes[0].set(ylabel="distortion under hard labels,\nover the value's", ylim=(0, None))
    panel_label(axes[0], f"Without noise, hard labels distort up to {most:.1f} times as much")
    plenty = table[(table["noise"] == 0) & (table["num"] == many) & (table["arm"] == "ce")]
    missed = plenty.groupby("K")[["reconstruction", "rmse"]].mean()
    for name, label, shade in (("reconstruction", "codes", INK), ("rmse", "networks", RED)):
        axes[1].plot(missed.index, missed[name], "o-", color=shade, markerfacecolor=shade if recorded else "none")
        beside(axes[1], missed.index[-1], missed[name].iloc[-1], label, shade, (8, 0), annotation_clip=False)
    axes[1].set(yscale="log", ylabel="missed, share of the range")
    better, at = missed["reconstruction"].iloc[0] / missed["reconstruction"].iloc[-1], missed["rmse"].idxmin()
    panel_label(axes[1], f"Codes miss {better:.0f} times less, networks least with {at}")
    axes[1].set(xlabel="codes $K$", xscale="log", xlim=(K[0] / 1.2, 8 * K[-1]))
    plain_log(axes[1].xaxis, sorted(missed.index))
    figure.set_label(f"Distortion under hard labels against the number of codes. {'; '.join(words)}.")
    return figure
