"""Claims on the collapse: hot, cold, how long it takes and how it ends.

Evidence, criterion and expected verdicts were written before the run, except where a claim says otherwise.
"""

import numpy as np
import pandas as pd

from derived.lab.claims import RECORDED, at_least, computed, statistic, within
from derived.lab.measure import by_draw, farthest_from, mean, slope, smallest

from ..experiments.collapse import Cold, FinalRate, Freezing, Hot


def delays(rows: pd.DataFrame, of: str) -> pd.Series:
    """The growth of the time of the ODE from one "logit_std" or "n" to the next larger, at each of the other."""
    table = by_draw(rows["ode"], rows, ["n", "logit_std"]).first().unstack(of).to_numpy()
    return pd.Series(np.diff(table, axis=1).ravel())


def colder(rows: pd.DataFrame) -> pd.Series:
    """From one temperature to the next colder."""
    return delays(rows, "logit_std")


def longer(rows: pd.DataFrame) -> pd.Series:
    """From one length of a context to the next."""
    return delays(rows, "n")


CLAIMS = (
    statistic(
        "HT-7",
        r"The mean overlap of hot attention at $d=256$ is logistic, $\dot u=u(1-u)$.",
        Hot,
        mean("m - u", "layer > 0 and d == 256", by=["tau"], decides=farthest_from(0)),
        r"$n=8$, $d=256$, mean overlap less the logistic at the time where it is farthest off",
        within(0, 0.03),
        plain="In wide networks hot attention makes the mean overlap of a prompt grow along the logistic curve.",
        unit="mean overlap",
        source="digest",
        where="version 1, `thm:clustering_small_beta`",
        control=mean(
            "(1 + 7 * 0.1) / 8 - u", "layer > 0 and d == 256", by=["tau"], decides=farthest_from(0)
        ),  # they stay
    ),
    statistic(
        "HT-8.a",
        r"At logit deviation 8 and $d=4096$ an equiangular prompt follows the ODE of the simplex.",
        Cold,
        mean("gamma - gamma_theory", "layer > 0 and d == 4096", by=["tau"], decides=farthest_from(0)),
        r"logit deviation 8, $d=4096$, overlap less the ODE at the time where it is farthest off",
        within(0, 0.03),
        plain="In wide networks, when all pairs of tokens start at one angle, their overlap follows one scalar equation, cold ones too.",
        unit="overlap",
        source="digest",
        where="version 1, `thm:clustering_random_init`, which has any temperature; tested at one",
        judged_at=RECORDED,
        control=mean(
            "-gamma_theory", "layer > 0 and d == 4096", by=["tau"], decides=farthest_from(0)
        ),  # orthogonal for ever
        scale={"gpu": "ours"},
    ),
    statistic(
        "HT-9.a",
        r"Cold attention delays the collapse by what the ODE says.",
        Freezing,
        mean("chain / ode_d", "chain.notna()", by=["n", "logit_std"], decides=farthest_from(1)),
        r"time to overlap $\frac12$, chain over ODE at $d=10^6$, worst case",
        within(1, 0.05),
        unit="ratio of times",
        control=mean(
            "hot / chain", "chain.notna()", by=["n", "logit_std"], decides=farthest_from(1)
        ),  # hot, to be delayed
        scale={"gpu": "ours"},
    ),
    computed(
        "HT-9.c",
        "Lower temperature slows the collapse down.",
        Freezing,
        smallest(colder),
        "smallest growth of the time of the ODE from a logit deviation to the next",
        at_least(1e-6),
        plain="Lower temperature slows the collapse down.",
        unit=r"$\tau$",
        source="paper",
        where="abstract; judged in the ODE of the simplex, which is our reading. Its third brake, the dimension, has no row",
        control=smallest(
            lambda rows: colder(rows.assign(ode=rows["hot"]))
        ),  # a collapse that temperature does not touch
        horizon="2,048 tokens, logit deviation 16",
    ),
    computed(
        "HT-9.e",
        "Longer contexts slow the collapse down.",
        Freezing,
        smallest(longer),
        "smallest growth of the time of the ODE from an $n$ to the next",
        at_least(1e-6),
        unit=r"$\tau$",
        source="paper",
        where="abstract; judged in the ODE of the simplex, which is our reading, from orthogonal tokens at infinite width: from tokens that start with an overlap the delay is bounded, and at a fixed temperature the delay beyond "
        r"$\ln(n+1)$ ends in long contexts, as the page shows",
        control=smallest(
            lambda rows: longer(rows.assign(ode=by_draw(rows["ode"], rows, ["logit_std"]).transform("min")))
        ),
        horizon="2,048 tokens, logit deviation 16",
    ),
    statistic(
        "HT-10",
        r"Once collapsed to $1-m=10^{-3}$, a prompt goes on to collapse at the rate $1-\frac1d$, whatever $\beta$ and $n$.",
        FinalRate,
        slope("log_missing + (1 - 1 / d) * tau", "tau", by=["d", "n", "logit_std"], decides=farthest_from(0)),
        r"slope of $\ln(1-m)$ plus $1-\frac1d$, worst case",
        within(0, 0.05),
        unit=r"per unit of $\tau$",
        control=slope("(1 - 1 / d) * tau", "tau", by=["d", "n", "logit_std"], decides=farthest_from(0)),  # nothing ends
        horizon=r"$1-m$ from $10^{-3}$ on, over $\tau=8$",
    ),
)
