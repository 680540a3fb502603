"""SK-15 and SK-16: attention as a flow of particles. Criteria and expected verdicts were written before the run, unless a claim says otherwise."""

from derived.lab import measure
from derived.lab.claims import at_most, computed, on_page, within

from ..experiments.flows import HeatLimit, Particles

NARROW = "width < 0.06"

GRADIENT = (
    on_page("SK-15.a", source="prior", where="Sander et al. 2022"),
    on_page("SK-15.b", where="the control of SK-15.a"),
    computed(
        "SK-15.c",
        r"Particles that move with the Sinkhorn drift, $\dot x=AX-X$, never raise the energy ${\rm OT}_1(\mu,\mu)$.",
        Particles,
        measure.largest("rise", "normaliser == 'sinkhorn' and step > 0"),
        "largest rise of the energy in a step",
        at_most(0),
        unit="energy",
        null=measure.largest("-rise", "normaliser == 'sinkhorn' and step > 0"),  # the same way backwards
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
        null=measure.farthest("slope", 1.0, f"normaliser == 'sinkhorn' and {NARROW}"),
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
        null=measure.farthest("slope", 0.5, f"normaliser == 'softmax' and {NARROW}"),
        source="prior",
        where="Sander et al. 2022; exact form ours",
    ),
)
