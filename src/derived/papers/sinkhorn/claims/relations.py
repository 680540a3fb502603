"""SK-6, SK-10 to SK-12: what each normaliser can and cannot express. Written before the run."""

from derived.lab import measure
from derived.lab.claims import on_page, statistic, within

from ..experiments.relations import Causal

ROWS = tuple(on_page(id) for id in ("SK-6.a", "SK-10.b", "SK-10.c", "SK-11.a", "SK-12.a", "SK-12.b"))


def exponent(value: str) -> measure.Measure:
    """The power of a mass in the iterations, over the last decade of them, and the length that is farthest from -1."""
    where, facts = "iteration >= iteration.max() / 10", {"unit": ["instance"], "by": ["n"]}
    return measure.power(value, "iteration", where, **facts, decides=measure.farthest_from(-1))


DRIFT = statistic(
    "SK-11.b",
    r"On a causally masked kernel Sinkhorn's iteration drifts to the identity: the mass off the diagonal falls like $1/T$ in the iterations $T$.",
    Causal,
    exponent("off_diagonal"),
    r"exponent over the last decade of iterations, mean over kernels for every $n$, judged jointly",
    within(-1, 0.05),
    unit="exponent",
    horizon="$T=30\\,000$, $n=8$",
    null=exponent("off_diagonal / off_diagonal"),  # a mass that stays
)
