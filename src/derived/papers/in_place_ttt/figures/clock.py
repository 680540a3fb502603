"""Time and memory of one layer: rows in, a figure with its alt text as label out.

mark                  meaning
filled, open marker   recorded, live: medians, bars from quartile to quartile
thin line in INK      the roofline: operations at the pace of a large product, or bytes at the pace of a long copy
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, GREEN, MUTED, RED, THEORY, beside, largest, panel_label, plain_log

FORMS = {
    "static": ("static", MUTED),
    "lean": ("lean", BLUE),
    "scan": ("prefix sum", RED),
    "attention": ("attention", GREEN),
}
TICKS = [step * 10.0**power for power in range(-3, 9) for step in (1, 2, 5)]


def layer_time(rows: pd.DataFrame) -> Figure:
    """Time per token above its roofline, and memory, against the length of the text, one text at a time; rows of
    ``LayerTime``."""
    rows = largest(rows)
    rows = rows[rows["batch"] == 1]
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.2))
    recorded, words = bool(rows["recorded"].iloc[0]), []
    pace, flow = rows["pace"].max(), rows["flow"].max()
    for form, (name, color) in FORMS.items():
        if form not in set(rows["form"]):
            continue
        part = rows[rows["form"] == form].groupby("n")
        at, face = np.array(list(part.groups)), color if recorded else "none"
        middle, low, high = (1e6 * part["seconds"].quantile(share).to_numpy() / at for share in (0.5, 0.25, 0.75))
        style = {"color": color, "markerfacecolor": face, "markersize": 5, "label": name}
        axes[0].errorbar(at, middle, (middle - low, high - middle), fmt="o", **style)
        roof = np.maximum(part["flops"].first() / pace, part["bytes"].first() / flow).to_numpy()
        axes[0].plot(at, 1e6 * roof / at, **THEORY)
        if form != "scan":  # whose line is that of the lean form but for a few bytes
            beside(axes[0], at[-1], 1e6 * roof[-1] / at[-1], name, color, (4, -3), fontsize=8)
        megabytes = part["peak"].first().to_numpy() / 1e6
        axes[1].plot(at, megabytes, "-o", color=color, markerfacecolor=face, label=name)
        words.append(
            f"{name} {middle[-1]:.3g} microseconds per token, {middle[-1] * at[-1] / (1e6 * roof[-1]):.2g} "
            f"times its roofline, and {megabytes[-1]:.3g} MB at {at[-1]}"
        )
    axes[0].set(xscale="log", yscale="log", xlabel="tokens", ylabel="microseconds per token")
    axes[1].set(xscale="log", yscale="log", xlabel="tokens", ylabel="tensors alive at once (MB)")
    for ax in axes:
        plain_log(ax.xaxis, sorted(rows["n"].unique()))
        low, high = ax.get_ylim()
        plain_log(ax.yaxis, [tick for tick in TICKS if low <= tick <= high])
    axes[1].legend(fontsize=8)
    panel_label(axes[0], "time")
    panel_label(axes[1], "memory beside input and weights")
    figure.set_label(f"Time and memory of one layer against the length of the text: {'; '.join(words)}.")
    return figure
