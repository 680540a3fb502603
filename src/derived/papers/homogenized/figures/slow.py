"""Figure of the slow overlap at low temperature."""

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from derived.lab.plot import DASHED, RED, SKY, THEORY, largest, panel_label

TITLES = {2: "two Gaussian factors: stays near zero", 0: "orthogonal: splits in two"}  # by their number


def slow_overlap(rows: pd.DataFrame, curves: pd.DataFrame) -> Figure:
    """Where artanh of the overlap ends; rows of ``SlowPaths``; curves: kappa, y, density."""
    rows = largest(rows)
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.1), sharey=True, sharex=True)
    words, reach = [], 1.05 * float(rows["y"].abs().max())
    for ax, (factors, name) in zip(axes, TITLES.items(), strict=True):
        part = rows[rows["factors"] == factors]
        sns.histplot(x=part["y"], stat="density", bins=30, ax=ax, color=SKY, edgecolor="none")
        for kappa, style in ((1, THEORY), (0, DASHED | {"color": RED, "linewidth": 1.3})):
            line = curves[curves["kappa"] == kappa]
            ax.plot(line["y"], line["density"], **style, label=rf"$\kappa={kappa}$")
        panel_label(ax, name)
        ax.set(xlabel=r"artanh of the overlap", xlim=(-reach, reach), ylabel="density")
        words.append(f"{name}, {100 * part['returned'].mean():.0f} % returned to 0")
    axes[0].legend(fontsize=8)
    figure.set_label(
        f"Histograms of artanh of the slow overlap at the end. {'; '.join(words)}; "
        f"predicted {100 * part['recurrent'].iloc[0]:.0f} % for kappa 1, at most "
        f"{100 * part['transient'].iloc[0]:.0f} % for kappa 0."
    )
    return figure
