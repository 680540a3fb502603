"""How many samples certify: rows in, a figure with its alt text as label out.

mark            meaning
points          share of data sets whose winner has an excess, with 99.9 % intervals
dashed          the share that is allowed
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from derived.lab import stats
from derived.lab.plot import BLUE, DASHED, INK, RED, beside


def certification(rows: pd.DataFrame) -> Figure:
    """Failures against the number of samples, and the theorem's number; rows of ``Certification``."""
    figure, ax = plt.subplots(figsize=(6.0, 3.5))
    found = {}
    for n, part in rows.groupby("n"):
        found[n] = one = stats.proportion(int(part["failed"].sum()), len(part))
        asked = bool(part["asked"].iloc[0])
        reach = [[one.value - one.low], [one.high - one.value]]
        ax.errorbar(n, one.value, reach, fmt="o", color=RED if asked else BLUE, markersize=5, elinewidth=0.9)
    ax.axhline(0.05, **DASHED)
    needed = rows["needed"].iloc[0]
    beside(ax, needed, 0.05, "asked by the theorem", RED, (0, 14), ha="right", fontsize=9)
    beside(ax, min(found), 0.05, "allowed", INK, (0, -8), fontsize=9)
    ax.set(xscale="log", xlabel="triples $N$", ylabel="share of failures", ylim=(-0.02, None))
    words = [f"{one.value:.3f} at {n:,}" for n, one in found.items()]
    figure.set_label(
        f"Share of data sets whose best code has an excess: {', '.join(words)} samples. The theorem asks for "
        f"{needed:,.0f}."
    )
    return figure
