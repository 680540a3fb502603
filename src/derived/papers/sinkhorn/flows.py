"""Tokens as particles: the limit of narrow kernels.

symbol    name      meaning                                                              axes
rho       -         a density on the circle; score is (ln rho)'                          (points,)
"""

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from derived.lab import measure
from derived.lab.claims import computed, on_page, within
from derived.lab.experiment import Experiment, rows

from .model.flows import NORMALISERS, limit_drift


@dataclass(frozen=True, kw_only=True)
class HeatLimit(Experiment):
    """SK-16.b: the drift over the squared bandwidth against the score, on the circle, by quadrature.

    Rows: normaliser, width, x, drift (over width^2), score; slope: least squares of the first on the second.
    """

    widths: tuple[float, ...] = (0.4, 0.2, 0.1, 0.05)
    num: int = 512

    tiny: ClassVar = {"widths": (0.2, 0.05)}
    deterministic: ClassVar = {"slope": 1e-6}

    def conditions(self) -> list[dict]:
        return [{"normaliser": name, "width": width} for name in NORMALISERS for width in self.widths]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        width = condition["width"]
        found = limit_drift(width, condition["normaliser"], self.num)
        drift = found.drift / width**2
        slope = float((drift @ found.score) / (found.score @ found.score))
        every = slice(None, None, 8)  # enough for a curve
        return rows({"x": found.x[every]}, {"drift": drift[every], "score": found.score[every], "slope": slope})


NARROW = "width < 0.06"


CLAIMS = (
    on_page("SK-15.a", source="prior", where="Sander et al. 2022"),
    computed(
        "SK-16.b",
        r"With the scores $-\lVert x-y\rVert^2/2\varepsilon$ and $\varepsilon\to0$, if the potential converges with its gradient, the Sinkhorn drift is half of softmax's $\varepsilon\nabla\ln\rho$, so that its flow with the sign reversed is the heat equation.",
        HeatLimit,
        measure.farthest("slope", 0.5, f"normaliser == 'sinkhorn' and {NARROW}"),
        r"drift$/\varepsilon$ on $\nabla\ln\rho$, slope at $\sqrt\varepsilon=0.05$",
        within(0.5, 0.01),
        unit="slope",
        control=measure.farthest("slope", 0.5, f"normaliser == 'softmax' and {NARROW}"),
        source="prior",
        where="Sander et al. 2022; exact form ours",
    ),
)
EXPERIMENTS = (HeatLimit,)
