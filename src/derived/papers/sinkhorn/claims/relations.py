"""SK-6, SK-10 to SK-12: what each normaliser can and cannot express. Written before the run."""

from derived.lab import measure
from derived.lab.claims import on_page, statistic, within

from ..experiments.relations import Causal

ROWS = tuple(on_page(id) for id in ("SK-6.a", "SK-10.b", "SK-10.c", "SK-11.a", "SK-12.a", "SK-12.b"))

DRIFT = statistic(
    "SK-11.b",
    r"On a causally masked kernel Sinkhorn's iteration drifts to the identity: the mass off the diagonal falls like $1/T$ in the iterations $T$.",
    Causal,
    measure.power(
        *("off_diagonal", "iteration", "iteration >= iteration.max() / 10"),
        **{"unit": ["instance"], "by": ["n"], "decides": measure.farthest_from(-1)},
    ),
    r"exponent over the last decade of iterations, mean over kernels for every $n$, judged jointly",
    within(-1, 0.05),
    unit="exponent",
)
