"""The forms of the layer against its definition: rows in, a figure with its alt text as label out.

mark                  meaning
filled, open marker   recorded, live: the worst instance of a form
blue, red             within rounding; beyond it, a form that is another computation
dashed                what rounding allows
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, DASHED, RED, largest

FORMS = {
    "gradient": "autograd, step by step",
    "scan": "prefix sum",
    "attention": "lagged attention",
    "lean": "lean",
    "backward": "lean, its gradient",
    "ranks": "three machines",
    "stream": "stream, any cut",
    "documents": "packed documents",
    "chunks": "state, $C$ and $2C$",
    "old grid": "packed, grid not begun anew",
    "squared": "squared loss as prefix sum",
}


def forms(rows: pd.DataFrame, least: float = 1e-4) -> Figure:
    """The largest gap over its bound by form; rows of ``Forms``. What is below ``least`` is drawn there."""
    rows = largest(rows)
    worst = (rows["gap"] / rows["bound"]).groupby(rows["form"]).max()
    names = [form for form in FORMS if form in worst]
    figure, ax = plt.subplots(figsize=(6.6, 0.6 + 0.27 * len(names)))
    face = "none" if not rows["recorded"].iloc[0] else None
    for place, form in enumerate(names):
        color = BLUE if worst[form] <= 1 else RED
        ax.plot(max(worst[form], least), place, "o", color=color, markerfacecolor=face or color)
    ax.axvline(1, **DASHED)
    ax.set(xscale="log", xlabel="largest gap, in units of what rounding allows", ylim=(len(names) - 0.5, -0.5))
    ax.set_yticks(range(len(names)), [FORMS[form] for form in names])
    figure.set_label(
        "Largest gap to the definition over what rounding allows: "
        + ", ".join(f"{FORMS[form].replace('$', '')} {worst[form]:.1g}" for form in names)
        + "."
    )
    return figure
