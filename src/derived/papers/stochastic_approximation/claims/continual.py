"""SA-11 and SA-13: continual learning as tracking. Criteria and expected verdicts were written before the run, unless a claim says otherwise."""

from derived.lab import measure
from derived.lab.claims import computed, on_page, statistic, unseen, within
from derived.lab.measure import farthest_from

from ..experiments.continual import Average, BestStep, Tracking

CLAIMS = (
    statistic(
        "SA-11.a",
        r"On data $\pm1$ of correlation $(1-\varepsilon)^j$ an iterate of constant step $a$ has variance $\frac{a(1+(1-a)\rho)}{(2-a)(1-(1-a)\rho)}$, $\rho=1-\varepsilon$.",
        Tracking,
        measure.mean("ratio", by=["epsilon", "a"], decides=farthest_from(1)),
        r"variance over the formula, the farthest of six $(\varepsilon,a)$",
        within(1, 0.06),
        unit="ratio",
        control=measure.mean("square / (a / (2 - a))", by=["epsilon", "a"], decides=farthest_from(1)),
        horizon="$6{,}000$ steps",
    ),
    on_page(
        "SA-11.b",
        plain="A constant step is plastic or rigid by one ratio: that of the rate of change to the step.",
    ),
    statistic(
        "SA-11.c",
        r"On data $\pm1$ of correlation $\rho^j=(1-\varepsilon)^j$, at $a_n=1/n$ the variance is $\frac1{n^2}\big[n\frac{1+\rho}{1-\rho}-\frac{2\rho(1-\rho^n)}{(1-\rho)^2}\big]$: near $1$ for $n\ll1/\varepsilon$, near $\frac2{\varepsilon n}$ for $n\gg1/\varepsilon$.",
        Average,
        measure.mean("ratio", by=["n"], decides=farthest_from(1)),
        "square over the formula, the farthest of seven $n$",
        within(1, 0.15),
        unit="ratio",
        control=measure.mean("n * x**2", by=["n"], decides=farthest_from(1)),
        horizon="$n=4{,}096$",
    ),
    computed(
        "SA-11.e",
        r"Where observations have noise $\sigma$, the step of least error is near $\sqrt{2\varepsilon}/\sigma-\varepsilon$ for small $\varepsilon$.",
        BestStep,
        measure.farthest("ratio", 1.0),
        r"best step of the exact error over that, the farthest of twelve $(\varepsilon,\sigma)$, $\varepsilon\le10^{-3}$",
        within(1, 0.05),
        unit="ratio",
        control=measure.farthest("searched / (closed + epsilon)", 1.0),  # without the second term
        horizon=r"$\epsilon$ from $10^{-5}$ to $10^{-3}$",
    ),
)

PROGRAMME = unseen(
    "SA-13",
    r"Stochastic approximation in non-Markovian environments is an analytic frame for attention in transformers and for continual learning.",
    "A programme, not a statement that could be checked; its testable parts are SA-8 to SA-11, which are ours.",
    source="paper",
    where="abstract",
    plain="The theory frames what attention and continual learning do.",
)
