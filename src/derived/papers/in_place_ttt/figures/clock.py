"""Time and memory of one layer: rows in, a figure with its alt text as label out.

mark                  meaning
bars, thin lines      medians, and from quartile to quartile
line in INK           the roofline: operations at the pace of a large product, or bytes at the pace of a long copy
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, GREEN, INK, MUTED, RED, THEORY, beside, largest, panel_label

FORMS = {
    "static": ("no memory", MUTED),
    "lean": ("memory, lean", BLUE),
    "scan": ("memory,\nprefix sum", RED),
    "attention": ("attention", GREEN),
}


def layer_time(rows: pd.DataFrame) -> Figure:
    """Time per token beside its roofline, and memory, of each form on its longest text, one text at a time; rows of
    ``LayerTime``."""
    rows = largest(rows)
    rows = rows[rows["batch"] == 1]
    figure, axes = plt.subplots(1, 2, figsize=(5.5, 3.3), sharey=True)
    pace, flow, longest = rows["pace"].max(), rows["flow"].max(), rows["n"].max()
    names, words, times, room = [], [], {}, {}
    for place, form in enumerate(form for form in FORMS if form in set(rows["form"])):
        name, color = FORMS[form]
        at = rows.loc[rows["form"] == form, "n"].max()
        part = rows[(rows["form"] == form) & (rows["n"] == at)]
        low, middle, high = 1e6 * part["seconds"].quantile([0.25, 0.5, 0.75]).to_numpy() / at
        roof = 1e6 * max(part["flops"].iloc[0] / pace, part["bytes"].iloc[0] / flow) / at
        times[form], room[form] = middle, part["peak"].iloc[0] / 1e6
        axes[0].barh(place, middle, 0.55, color=color, edgecolor=color, alpha=0.8)
        axes[0].plot([low, high], [place, place], color=INK, linewidth=1)
        axes[0].plot([roof, roof], [place - 0.36, place + 0.36], **THEORY | {"linewidth": 1.8})
        axes[1].barh(place, room[form], 0.55, color=color, edgecolor=color, alpha=0.8)
        for ax, end, said in ((axes[0], max(high, roof), f"{middle:.3g}"), (axes[1], room[form], f"{room[form]:.0f}")):
            beside(ax, end, place, said, shift=(5, 0))
        names.append(name if at == longest else f"{name}\n({at:,} tokens)")
        words.append(
            f"{' '.join(name.split())} {middle:.3g} microseconds per token, {middle / roof:.2g} times its roofline, "
            f"and {room[form]:.3g} MB at {at}"
        )
        if place == 0:
            beside(axes[0], roof, -0.36, "| what its operations need", shift=(-2, 5), va="bottom")
    axes[0].set_yticks(range(len(names)), names)
    axes[0].set(ylim=(len(names) - 0.4, -1.0), xlabel="µs per token", xlim=(0, 1.45 * max(times.values())))
    axes[1].set(xlabel="alive at once (MB)", xlim=(0, 1.35 * max(room.values())))
    axes[0].tick_params(axis="y", length=0)
    more = room["lean"] / room["static"]
    panel_label(axes[0], f"The memory: {times['lean'] / times['static']:.2g} times the time …")
    panel_label(axes[1], "… and as much room" if abs(more - 1) < 0.05 else f"… and {more:.2g} times the room")
    figure.set_label(f"Time and memory of one layer on its longest text: {'; '.join(words)}.")
    return figure
