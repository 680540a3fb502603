"""SK-15 and SK-16: attention as a flow of particles. Criteria and expected verdicts were written before the run, unless a claim says otherwise."""

import pandas as pd

from derived.lab import measure
from derived.lab.claims import computed, on_page, within
from derived.lab.stats import Estimate

from ..experiments.flows import HeatLimit, Particles

NARROW = "width < 0.06"


def descent(normaliser: str) -> measure.Measure:
    """What the energy falls by in a step over what it must along its own gradient, 2/n sum |dx_i|^2 / dt for particles
    that move by dx in the time dt; of all steps the farthest from one."""

    def ratio(rows: pd.DataFrame) -> Estimate:
        some = measure.chosen(rows, f"normaliser == '{normaliser}'").sort_values("step")
        moved = some.groupby(["instance", "particle"])[["x", "y", "time"]].diff()
        speed = (moved["x"] ** 2 + moved["y"] ** 2) / moved["time"]
        later = some["step"] > 0
        rise, mean = (measure.by_draw(each[later], some[later], ["instance", "step"]) for each in (some["rise"], speed))
        return measure.farthest("ratio", 1.0)(pd.DataFrame({"ratio": -rise.first() / (2 * mean.mean())}))

    return ratio


GRADIENT = (
    on_page("SK-15.a", source="prior", where="Sander et al. 2022"),
    on_page("SK-15.b", where="the control of SK-15.a"),
    computed(
        "SK-15.c",
        r"Particles that move with the Sinkhorn drift, $\dot x=AX-X$, lower the energy ${\rm OT}_1(\mu,\mu)$ at the rate of its gradient, $\frac2n\sum_i\lvert\dot x_i\rvert^2$.",
        Particles,
        descent("sinkhorn"),
        r"fall of the energy in a step of time $0.1$ over $\frac2n\sum_i\lvert\Delta x_i\rvert^2/0.1$, the step farthest from $1$",
        within(1, 0.01),  # the square of the step
        unit="ratio",
        control=descent("softmax"),
    ),
)

HEAT = (
    computed(
        "SK-16.a",
        r"With the scores $-\lVert x-y\rVert^2/2\varepsilon$ and $\varepsilon\to0$, the softmax drift is $\varepsilon\nabla\ln\rho$.",
        HeatLimit,
        measure.farthest("slope", 1.0, f"normaliser == 'softmax' and {NARROW}"),
        r"drift$/\varepsilon$ on $\nabla\ln\rho$, slope at $\sqrt\varepsilon=0.05$",
        within(1, 0.02),
        unit="slope",
        control=measure.farthest("slope", 1.0, f"normaliser == 'sinkhorn' and {NARROW}"),
        source="prior",
        where="Sander et al. 2022; exact form ours",
    ),
    computed(
        "SK-16.b",
        r"With the same scores, if the potential converges with its gradient, the Sinkhorn drift is half of that, $\frac\varepsilon2\nabla\ln\rho$, so that its flow with the sign reversed is the heat equation.",
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
