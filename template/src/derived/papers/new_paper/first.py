"""The topic: experiments with frozen sizes, then their claims, then figures of their rows.

gap    what was measured less what the theory says
bound  what rounding allows
"""

from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from derived.lab import measure
from derived.lab.claims import at_most, computed
from derived.lab.experiment import Experiment
from derived.lab.plot import COLOURS

from .model.theory import square


@dataclass(frozen=True, kw_only=True)
class First(Experiment):
    """Which table or figure of the paper; what a row holds."""

    deterministic: ClassVar = {"gap": 1e-12}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        return pd.DataFrame({"gap": [square(1.0) - 1.0], "bound": [1.0]})


# Claims: evidence and criterion, written before the run.

CLAIMS = (
    computed(
        "NEW-1",
        "The square of $1$ is $1$.",
        First,
        measure.worst(),
        "largest gap over its bound",
        at_most(1.0),
        unit="of its bound",
        plain="One squared is one.",
        source="paper",
    ),
)


# Figures: rows in, a matplotlib figure out, its alt text computed from the data.


def gaps(rows: pd.DataFrame) -> Figure:
    """Gaps against their bounds."""
    figure, ax = plt.subplots(figsize=(4, 3))
    ax.plot(rows["bound"], rows["gap"], "o", color=COLOURS[0])
    ax.set(xlabel="bound", ylabel="gap")
    figure.set_label(f"{len(rows)} gaps, the largest {rows['gap'].max():.1e}")
    return figure
