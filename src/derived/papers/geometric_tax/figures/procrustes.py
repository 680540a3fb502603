"""What noise does to the distortion of pooled codes: rows in, a figure with its alt text as label out.

mark                   meaning
filled, open marker    recorded, live; bars are 99.9 % intervals over replicates
thin line              the pooled law at the measured jump J and spread V
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, GREEN, RED, THEORY, beside, largest, plain_log, points

CODES = {"random": ("no order", RED), "smooth": ("neighbours alike", GREEN), "linear": ("a line", BLUE)}


def pooled(rows: pd.DataFrame) -> Figure:
    """D against the share of positions that noise strikes, for three kinds of codes; rows of ``Pooled``."""
    figure, ax = plt.subplots(figsize=(5.2, 3.4))
    ends = {}
    for code, (name, color) in CODES.items():
        part = rows[rows["code"] == code]
        points(ax, part, "r", "D", color)
        law = largest(part).groupby("r")[["D", "law"]].mean()
        ax.plot(law.index, law["law"], **THEORY)
        beside(ax, law.index[-1], law["D"].iloc[-1], name, color, shift=(9, 0))
        ends[name] = law["D"].iloc[-1]
    rates = sorted(rows["r"].unique())
    ax.set(xscale="log", yscale="log", xlabel="share $r$ of positions struck", ylabel="distortion $D$")
    plain_log(ax.xaxis, (0.01, 0.02, 0.05, 0.1))
    ax.set_xlim(rates[0] / 1.15, rates[-1] * 2.6)
    said = ", ".join(f"{name} {value:.3f}" for name, value in ends.items())
    figure.set_label(
        f"Distortion of mean codes of Lorenz paths against the share of positions struck by noise, on logarithmic axes "
        f"with slope one half. At a share of {rates[-1]:g}: {said}."
    )
    return figure
