"""SK-6, SK-8.h, SK-10 to SK-12: what each normaliser can and cannot express. Written before the run."""

from derived.lab import measure
from derived.lab.claims import RECORDED, at_least, on_page, statistic, within

from ..experiments.relations import Causal, FixedScores

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
    control=exponent("off_diagonal / off_diagonal"),  # a mass that stays
)


def nearest(target: str) -> measure.Measure:
    """The distance from a relation at the longest texts that the best temperature and normaliser leave."""
    facts = {"unit": ["draw"], "by": ["normaliser", "beta"], "decides": measure.lowest}
    return measure.mean("ratio", f"target == '{target}'", **facts)


FIXED = statistic(
    "SK-8.h",
    r"Scores that read a pair of tokens and nothing of their texts, the logarithm of two Gaussian kernels, one of each order, stay farther from the even mixture of the orders kept and reversed, by rows, than half of what the product coupling does, by either normaliser and at every temperature that we tried.",
    FixedScores,
    nearest("crossed"),
    "mean over draws of texts of the distance by rows from the target at $n=64$, over that of the product coupling, normaliser and temperature that come nearest, jointly",
    at_least(0.5),
    unit="of the product coupling's distance",
    judged_at=RECORDED,
    control=nearest("comonotone"),
    where="the arm of SK-8.b and SK-8.e that learns nothing; a pilot of another seed, its rows thrown away, had shown about two thirds",
)
