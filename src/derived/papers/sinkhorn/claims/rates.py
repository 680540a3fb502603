"""SK-3, SK-5, SK-20: iterations and seconds. Criteria and expected verdicts were written before the run, unless a claim says otherwise."""

from derived.lab import measure
from derived.lab.claims import RECORDED, on_page, reported, statistic, within

from ..experiments.rates import AttentionTime, RandomScores

LINEAR = "ratio * (exp(s ** 2) - 1) / s ** 2"  # to 4 s^2 / n, the rate if exp(S) were 1 + S

CONVERGENCE = (
    on_page("SK-3.a", source="prior", where="Franklin and Lorenz 1989"),
    on_page("SK-3.b", source="prior", where="Knight 2008"),
    statistic(
        "SK-5",
        r"For i.i.d. Gaussian scores of deviation $s\le0.7$ the local rate is $\sigma_2^2\approx4(e^{s^2}-1)/n$.",
        RandomScores,
        measure.mean("ratio", "s <= 0.7 and n == 256", by=["s"], decides=measure.farthest_from(1)),
        r"mean of $\sigma_2^2n/4(e^{s^2}-1)$ at $n=256$ for every $s$, judged jointly",
        within(1, 0.05),
        unit="ratio",
        judged_at=RECORDED,
        where="at $n=64$ the rate is up to a tenth less",
        horizon="$n=256$",
        control=measure.mean(LINEAR, "s <= 0.7 and n == 256", by=["s"], decides=measure.farthest_from(1)),
    ),
)

CLOCK = reported(
    "SK-20",
    r"Sinkhorn attention with three half-steps takes this many times as long as fused softmax attention at the largest $n$. (Unfused; no bound was set.)",
    AttentionTime,
    measure.mean("sinkhorn_3 / softmax", "n == n.max()"),
    "times as long",
    judged_at=("gpu",),
    scale={"gpu": "ours"},
)
