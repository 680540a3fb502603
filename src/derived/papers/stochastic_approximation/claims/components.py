"""SA-1, SA-2, SA-3 and SA-12: which limit is found. Criteria and expected verdicts were written before the run, unless a claim says otherwise."""

import pandas as pd

from derived.lab import measure, stats
from derived.lab.claims import at_least, at_most, on_page, statistic, within
from derived.lab.measure import farthest_from, highest, lowest
from derived.lab.stats import LEVEL, Estimate

from ..experiments.components import Absorbed, EarlyData, LogOdds, Mixtures

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


def wrong_way(rows: pd.DataFrame) -> Estimate:
    """The log-odds per token over the divergence of the other chain from the true one, the farther of two chains."""
    kl = rows.groupby("component")["kl"].first()
    some = rows.assign(ratio=rows["rate"] / (1 - rows["component"]).map(kl))
    return measure.mean("ratio", by=["component"], decides=farthest_from(1))(some)


COMPONENTS = (
    on_page(
        "SA-1.a",
        source="digest",
        where="digest: Doeblin decomposition of the chain of pasts; that theorem is proved on the page, this row is its finite mirror image",
        plain="The components of the data are the sets of pasts that can never be left (checked where there are finitely many).",
    ),
    statistic(
        "SA-1.c",
        r"Running means on a chain with three closed classes settle in each of them with its absorption probability.",
        Absorbed,
        frequencies,
        "share of replicas less the probability, of three classes judged jointly",
        within(0, 0.05),
        unit="share",
        control=lambda rows: frequencies(rows.assign(predicted=1 / rows["component"].nunique())),
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
        control=measure.mean("abs(x - root)", END.format("many"), by=["component"], decides=highest),
        horizon="$n=4{,}000$",
    ),
    statistic(
        "SA-2.b",
        r"On many streams, a fresh component at each step, iterates converge to the root of the mixture's mean field.",
        Mixtures,
        measure.mean("abs(x - annealed)", END.format("many")),
        r"mean distance to $\sum w_kb_k/\sum w_kA_k$ at the last step",
        at_most(0.05),
        unit="distance; the roots are 3.5 apart",
        control=measure.mean("abs(x - annealed)", END.format("one")),
        horizon="$n=4{,}000$",
    ),
    on_page("SA-2.d"),
    on_page(
        "SA-2.f",
        horizon="$n=2^{15}$",
    ),
    statistic(
        "SA-2.e",
        r"Streams that exchange their samples at each time, at random, all go to the limit of many streams.",
        Mixtures,
        measure.mean("abs(x - annealed)", END.format("exchanged")),
        "mean distance to the root of the mixture at the weights that were drawn",
        at_most(0.05),
        unit="distance; the roots are 3.5 apart",
        control=measure.mean("abs(x - annealed)", END.format("shuffled")),
        horizon="$n=4{,}000$",
    ),
)

REMOTE = (
    statistic(
        "SA-3.a",
        r"The limit can be told from the remote past: data before a gap of $200$, $2{,}000$ or $20{,}000$ steps name the root to which the data after it lead, in a world of two chains that have the same law of a single datum.",
        EarlyData,
        measure.share("agrees", "feed == 'one'", by=["gap"], decides=lowest),
        "share of streams whose late iterate is nearer to the root that early data name, the least of three gaps",
        at_least(0.99),
        unit="share",
        **DIGEST,
        where="digest: randomness from the tail at minus infinity",
        plain="Which limit is found was settled in the remote past.",
        control=measure.share("agrees", "feed == 'switching'", by=["gap"], decides=lowest),
        horizon="a gap of $20{,}000$ steps where the chain switches; where it is kept no gap is simulated, since none can matter",
    ),
    on_page("SA-3.b"),
    statistic(
        "SA-3.d",
        r"The log-odds of the true chain among two of equal marginals grow by the rate $\sum_i\pi_i\sum_jA_{ij}\ln(A_{ij}/B_{ij})$ per token.",
        LogOdds,
        measure.mean("ratio", by=["component"], decides=farthest_from(1)),
        "log-odds per token over the rate, the farther of two chains",
        within(1, 0.03),
        unit="ratio",
        control=wrong_way,
        horizon="$1{,}000$ tokens",
    ),
)

INCLUSION = on_page("SA-12", horizon="$n=2^{16}$")
