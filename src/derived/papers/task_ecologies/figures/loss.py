"""The loss of a code: rows in, a figure with its alt text as label out.

mark            meaning
line in INK     the theorem
blue, orange    excess of the code; what the formula with prior weights would say
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, DASHED, RED, THEORY, beside, panel_label


def informed(rows: pd.DataFrame) -> Figure:
    """Excess of the constant code as contexts reveal the world, and the two formulas on random ecologies; rows of
    ``Informed``."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.3))
    told = rows[rows["kind"] == "revealing"].sort_values("t")
    left.plot(told["t"], told["predicted"], **THEORY)
    left.plot(told["t"], told["excess"], "o", color=BLUE)
    left.plot(told["t"], told["naive"], "s", color=RED)
    beside(left, told["t"].iloc[2], told["naive"].iloc[2], "prior weights", RED, (0, -11), ha="center", fontsize=9)
    beside(left, told["t"].iloc[1], told["excess"].iloc[1], "excess", BLUE, (-4, -13), ha="right", fontsize=9)
    left.set(xlabel="$t$, how often the context gives the world away", ylabel="excess of the constant code (nats)")
    left.set_ylim(0, 1.12 * max(told["naive"].max(), told["excess"].max()))
    panel_label(left, "the more the context reveals,\nthe less a code costs")
    random = rows[rows["kind"] == "random"]
    top = max(random["excess"].max(), random["naive"].max())
    right.plot([0, top], [0, top], **DASHED)
    right.plot(random["excess"], random["naive"], "o", color=RED, markersize=3, alpha=0.5)
    right.set(xlabel="excess (nats)", ylabel="by prior weights (nats)")
    over = (random["naive"] - random["excess"])[random["cells"] < random["cells"].max()]
    panel_label(right, f"prior weights overstate it\nfor {100 * (over > 1e-9).mean():.0f} % of codes")
    figure.set_label(
        f"Left: the excess of the constant code falls from {told['excess'].iloc[0]:.3f} to "
        f"{told['excess'].iloc[-1]:.3f} "
        f"nats as contexts give the world away, while the formula with prior weights stays at "
        f"{told['naive'].iloc[0]:.3f}. Right: on random ecologies that formula is off by {over.mean():.3f} nats on "
        f"average, at most {over.abs().max():.3f}."
    )
    return figure
