"""Real streams: rows in, a figure with its alt text as label out.

mark               meaning
filled, open       a series as it is, and shuffled in time; bars: 99.9 % by resampling
points             two languages: rate of the log-odds that is seen, against the one that two chains predict
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, DASHED, INK, MUTED, ORANGE, THEORY, beside, largest, panel_label

REACH = 3.29  # standard errors of a 99.9 % interval


def streams(settling: pd.DataFrame, names: pd.DataFrame) -> Figure:
    """Exponents of real series, and log-odds of languages; rows of ``Settling`` and ``Names``."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.2), width_ratios=(1.2, 1))
    words = []
    for place, (name, part) in enumerate(largest(settling).groupby("series", sort=False)):
        spread = part.groupby("data")["exponent"].agg(["mean", "std"])
        for data, error, shift, color, face in (
            ("as it is", "resampled", 0.12, BLUE, BLUE),
            ("shuffled", "shuffled", -0.12, MUTED, "none"),
        ):
            reach = REACH * spread.at[error, "std"]
            mean = spread.at[data, "mean"]
            left.errorbar(mean, -place + shift, xerr=reach, fmt="o", color=color, mfc=face)
            if place == 0:
                beside(left, mean + reach, -place + shift, data, color, (4, 25 * shift), fontsize=8)
        words.append(f"{name} {spread.at['as it is', 'mean']:.2f}, shuffled {spread.at['shuffled', 'mean']:.2f}")
    left.axvline(-0.5, **THEORY)
    left.set_yticks([-place for place in range(len(words))], largest(settling)["series"].unique())
    left.set(xlabel="exponent of the error of means", ylim=(-len(words), 0.5))
    beside(left, -0.5, 0.35 - len(words), "independent data", INK, (4, 0), fontsize=8)
    panel_label(left, "Volatility settles slowly")
    given = largest(names).query("names == 'given'")
    pairs = given.groupby(["language", "other"])[["kl", "rate"]].mean()
    right.plot(pairs["kl"], pairs["rate"], "o", color=ORANGE, markersize=4)
    right.axline((0, 0), slope=1, **DASHED)
    near = pairs["rate"].idxmin()
    beside(right, *pairs.loc[near], " and ".join(code[:2] for code in near), ORANGE, (6, 0), fontsize=8)
    right.set(xlabel="predicted, nats per letter", ylabel="seen on held-out names")
    panel_label(right, "log-odds of a language")
    ratio = pairs["rate"] / pairs["kl"]
    figure.set_label(
        f"Exponents of the error of block means: {'; '.join(words)}. Independent data: -0.50. Log-odds per letter over "
        f"the predicted rate, {len(pairs)} pairs of languages: {ratio.min():.2f} to {ratio.max():.2f}."
    )
    return figure
