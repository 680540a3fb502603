"""The claims of the topic: evidence and criterion, written before the run."""

from derived.lab import measure
from derived.lab.claims import identity

from ..experiments.first import First

CLAIMS = (
    identity(
        "NEW-1",
        "The square of $1$ is $1$.",
        First,
        measure.worst(),
        plain="One squared is one.",
        source="paper",
    ),
)
