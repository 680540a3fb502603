"""SK-3, SK-5, SK-20: iterations and seconds. Criteria and expected verdicts were written before the run, unless a claim says otherwise."""

from derived.lab import measure
from derived.lab.claims import bound, computed, reported, statistic, within

from ..experiments.rates import AttentionTime, Contraction, RandomScores

MOVED = "omega == 'plain' and ratio == ratio"  # where both distances stand above their rounding

CONVERGENCE = (
    bound(
        "SK-3.a",
        r"Each iteration brings $e^f$ to at most $\kappa^2=\tanh^2(\Delta/4)$ times its distance from the limit in Hilbert's metric.",
        Contraction,
        measure.worst("ratio", "kappa2", MOVED),
        "sk-hilbert",
        source="prior",
        where="Franklin and Lorenz 1989",
    ),
    computed(
        "SK-3.b",
        r"Near the limit an iteration shrinks the error by $\sigma_2^2$, the square of the second singular value of $D_a^{-1/2}PD_b^{-1/2}$.",
        Contraction,
        measure.farthest("rate / predicted", 1.0, "omega == 'plain' and iteration == 0"),
        r"rate of a push of $10^{-4}$ over $\sigma_2^2$, the farthest from one",
        within(1, 0.01),
        unit="ratio",
        source="prior",
        where="Knight 2008",
    ),
    computed(
        "SK-3.c",
        r"With the relaxation $\omega^\star=2/(1+\sqrt{1-\sigma_2^2})$ the $T$-th root of the error after $T$ iterations tends to $\omega^\star-1$.",
        Contraction,
        measure.farthest("rate - predicted", 0.0, "omega == 'best' and iteration == 0"),
        r"geometric mean of the last iterations above rounding less $\omega^\star-1$, the farthest from zero (at $\omega^\star$ the error carries a factor $T$)",
        within(0, 0.12),
        unit="difference of rates",
        source="prior",
        where="Thibault et al. 2021",
    ),
    statistic(
        "SK-5",
        r"For i.i.d. Gaussian scores of deviation $s\le0.7$ the local rate is $\sigma_2^2\approx4(e^{s^2}-1)/n$, so that longer texts converge faster.",
        RandomScores,
        measure.mean("ratio", "s <= 0.7", by=["n", "s"], decides=measure.farthest_from(1)),
        r"mean of $\sigma_2^2n/4(e^{s^2}-1)$ for every $n$ and $s$, judged jointly",
        within(1, 0.15),
        unit="ratio",
    ),
)

CLOCK = reported(
    "SK-20",
    r"Sinkhorn attention with three half-steps takes this many times as long as fused softmax attention at the largest $n$. (Unfused; no bound was set.)",
    AttentionTime,
    measure.mean("sinkhorn_3 / softmax", "n == n.max()"),
    "times as long",
    judged_at=("gpu",),
)
