"""The overlap through many blocks of torch networks: SP-10.c."""

from derived.lab.claims import statistic, within
from derived.lab.measure import farthest_from, mean

from ..experiments.overlap import DeepOverlap

CLAIMS = (
    statistic(
        "SP-10.c",
        r"Torch networks of 64 blocks have the overlap $\rho$ of the recurrence, with Derf and with LayerNorm.",
        DeepOverlap,
        mean("p / q - p_theory / q_theory", "b == b.max()", by=["norm"], decides=farthest_from(0.0)),
        r"mean $\rho$ at block 64 less that of the recurrence, the norm farthest off, jointly over norms",
        within(0, 0.02),
        unit="overlap",
        judged_at=("cpu",),
        control=mean(
            "p / q - 0.2", "b == b.max()", by=["norm"], decides=farthest_from(0.0)
        ),  # the overlap of the input
    ),
)
