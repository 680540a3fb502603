"""How fast a learner finds its limit: rows in, a figure with its alt text as label out.

mark              meaning
three colours     three components
line in INK       exact mean square, by its recurrence; the normal law
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, COLOURS, RED, THEORY, beside, largest, panel_label, plain_log, points


def rate_curves(errors: pd.DataFrame, scaled: pd.DataFrame) -> Figure:
    """Errors by component, and errors over their predicted deviation; rows of ``Exponents`` and ``Central``."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.4))
    last = errors[errors["learner"] == "last"]
    words = []
    for (component, lam), part in last.groupby(["component", "lam"]):
        points(left, part, "n", "rmse", COLOURS[component])
        theory = part.drop_duplicates("n").sort_values("n")
        left.plot(theory["n"], theory["exact"], **THEORY)
        end = theory.iloc[-1]
        beside(left, end["n"], end["exact"], rf"$\lambda={lam:g}$", COLOURS[component], (9, 0))
        slope = np.polyfit(np.log(theory["n"]), np.log(theory["exact"]), 1)[0]
        words.append(f"lambda {lam:g}: slope {slope:.2f}, in the limit {part['target'].iloc[0]:.2f}")
    left.set(xscale="log", yscale="log", xlabel="$n$", ylabel="root mean square error")
    plain_log(left.xaxis, (500, 1000, 2000, 5000, 10000))
    plain_log(left.yaxis, (0.005, 0.01, 0.02, 0.05, 0.1, 0.2))
    left.set_xlim(420, 26000)
    panel_label(left, "one gain, three rates")
    best = largest(scaled)
    grid = np.linspace(-4, 4, 201)
    for component, part in best.groupby("component"):
        label = f"component {component + 1}"
        style = {"bins": np.linspace(-4, 4, 41), "density": True, "histtype": "step", "label": label}
        right.hist(part["z"], color=(BLUE, RED)[component], **style)
    right.plot(grid, np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi), **THEORY)
    right.set(xlabel="standardised error", ylabel="density")
    right.legend(fontsize=8)
    panel_label(right, "chain of infinite order")
    spread = best.groupby("component")["z"].std()
    figure.set_label(
        f"Left: error against time, on the exact curves; {'; '.join(words)}. Right: standardised errors of two "
        f"components against the normal density; their standard deviations are {spread[0]:.2f} and {spread[1]:.2f}."
    )
    return figure
