"""SA-1, SA-2, SA-3 and SA-12: which limit is found. Criteria and expected verdicts were written before the run, unless a claim says otherwise."""

import pandas as pd

from derived.lab import measure, stats
from derived.lab.claims import at_least, at_most, identity, refuted, statistic, within
from derived.lab.measure import farthest_from, highest
from derived.lab.stats import LEVEL, Estimate

from ..experiments.components import Absorbed, Blocks, EarlyData, FiniteChains, LogOdds, Mixtures, RemotePast

DIGEST = {"source": "digest"}
END = "n == n.max() and feed == '{}'"


def frequencies(rows: pd.DataFrame) -> Estimate:
    """Share of a class less its absorption probability, for the class whose interval reaches farthest from 0.

    ValueError for a replica without a class, or a class without its probability.
    """
    cases = [case for _, case in measure.by_draw(rows["predicted"], rows, ["component"])]
    level, found = 1 - (1 - LEVEL) / len(cases), []
    for case in cases:
        one, predicted = stats.proportion(len(case), len(rows), level), case.iloc[0]
        ends = (one.value - predicted, one.n, one.low - predicted, one.high - predicted, one.error)
        found.append(Estimate(*ends))
    return farthest_from(0)(found)


def limits_apart(rows: pd.DataFrame) -> Estimate:
    """Distance of the last iterates of the two signs of xi; ValueError where one sign, or an iterate, is missing."""
    last = measure.chosen(rows, "n == n.max()")
    means = measure.by_draw(last["x"], last, ["xi"]).mean()
    if len(means) < 2:
        raise ValueError(f"xi has {len(means)} value; a distance of limits needs both signs")
    return Estimate(float(means.max() - means.min()), len(last))


COMPONENTS = (
    identity(
        "SA-1.a",
        r"What cannot move along a finite chain is as large as the number of its closed classes: $\dim\ker(I-P)$ counts them.",
        FiniteChains,
        measure.largest("abs(null - classes)"),
        r"largest $\lvert\dim\ker(I-P)-\text{classes}\rvert$ over random chains",
        at_most(0),
        unit="classes",
        **DIGEST,
        where="digest: Doeblin decomposition of the chain of pasts; that theorem is proved on the page, this row is its finite mirror image",
        plain="The components of the data are the sets of pasts that can never be left (checked where there are finitely many).",
    ),
    identity(
        "SA-1.b",
        r"The probabilities of ending in each closed class of a finite chain are what $P^n$ tends to, and they do not move: $Pq=q$.",
        FiniteChains,
        measure.most_of(measure.worst(), measure.worst("moved")),
        r"largest gap to $P^{512}$, or of $Pq$ to $q$, over its rounding bound",
    ),
    statistic(
        "SA-1.c",
        r"Running means on a chain with three closed classes settle in each of them with its absorption probability.",
        Absorbed,
        frequencies,
        "share of replicas less the probability, of three classes judged jointly",
        within(0, 0.05),
        unit="share",
    ),
    statistic(
        "SA-2.a",
        r"On one stream, with steps of order $1/n$ and one stable root in each component, iterates converge to the root of the component that was drawn.",
        Mixtures,
        measure.mean("abs(x - root)", END.format("one"), by=["component"], decides=highest),
        r"mean $\lvert x_n-x^*_k\rvert$ at the last step, the farther component",
        at_most(0.05),
        unit="distance; the roots are 3.5 apart",
        **DIGEST,
        where="digest: non-ergodicity shows in the limit ODE; that it is the average over the component drawn is our reading",
        plain="A single stream takes the iterate to the equilibrium of its own component: the limit is random.",
    ),
    statistic(
        "SA-2.b",
        r"On many streams, a fresh component at each step, iterates converge to the root of the mixture's mean field.",
        Mixtures,
        measure.mean("abs(x - annealed)", END.format("many")),
        r"mean distance to $\sum w_kb_k/\sum w_kA_k$ at the last step",
        at_most(0.05),
        unit="distance; the roots are 3.5 apart",
    ),
    refuted(
        "SA-2.c",
        r"Averaged over the component that is drawn, the limit of one stream is the limit of many: $\mathbb E\,x^*_k=(\sum w_kA_k)^{-1}\sum w_kb_k$.",
        Mixtures,
        measure.mean("x - annealed", END.format("one")),
        r"a difference of the two, for $A=(2,\frac12)$, $b=(1,2)$, $w=(.3,.7)$,",
        at_most(0.05),
        unit="distance",
    ),
    refuted(
        "SA-2.d",
        r"A stream shuffled in time goes to the limit of many streams: its own order was what made its limit its own.",
        Mixtures,
        measure.smallest("abs(x - annealed)", END.format("shuffled")),
        "one shuffled stream whose distance to that limit is",
        at_most(0.05),
        unit="distance",
    ),
    statistic(
        "SA-2.e",
        r"Streams that exchange their samples at each time, at random, all go to the limit of many streams.",
        Mixtures,
        measure.mean("abs(x - annealed)", END.format("exchanged")),
        "mean distance to the root of the mixture at the weights that were drawn",
        at_most(0.05),
        unit="distance; the roots are 3.5 apart",
    ),
)

REMOTE = (
    statistic(
        "SA-3.a",
        r"The limit can be told from the remote past: data before a gap name the root to which the data after it lead.",
        EarlyData,
        measure.share("agrees", "feed == 'one'"),
        "share of streams whose late iterate is nearer to the root that early data name (ergodic control: one half)",
        at_least(0.99),
        unit="share",
        **DIGEST,
        where="digest: randomness from the tail at minus infinity",
        plain="Which limit is found was settled in the remote past.",
    ),
    identity(
        "SA-3.b",
        r"For $Y_n=(-1)^n\xi$ the remote past tells $\xi$, and the running mean goes to $0$ whatever $\xi$: $\lvert x_n\rvert\le1/n$.",
        RemotePast,
        measure.most_of(measure.worst(), measure.worst("abs(told - xi)")),
        r"largest $\lvert x_n\rvert$, or error of $\xi$ as told by the past, over $1/n$ and rounding",
    ),
    refuted(
        "SA-3.c",
        r"Whatever the remote past determines, the limit remembers.",
        RemotePast,
        limits_apart,
        r"two remote pasts, $\xi=\pm1$, whose limits are at a distance",
        at_least(0.5),
        unit="distance",
    ),
    statistic(
        "SA-3.d",
        r"The log-odds of the true chain among two of equal marginals grow by the rate $\sum_i\pi_i\sum_jA_{ij}\ln(A_{ij}/B_{ij})$ per token.",
        LogOdds,
        measure.mean("ratio", by=["component"], decides=farthest_from(1)),
        "log-odds per token over the rate, the farther of two chains",
        within(1, 0.03),
        unit="ratio",
    ),
)

INCLUSION = identity(
    "SA-12",
    r"On blocks of 0s and 1s that double in length, running means sweep $[\frac13,\frac23]$ for ever: at the ends of blocks they are within $1/(3n)$ of its ends.",
    Blocks,
    measure.worst(),
    r"largest gap to $\frac13$ or $\frac23$ over $1/(3n)$ and rounding",
)
