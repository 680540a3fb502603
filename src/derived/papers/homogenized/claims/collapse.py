"""Claims on the collapse: hot, cold, how long it takes and how it ends.

Evidence, criterion and expected verdicts were written before the run, except where a claim says otherwise.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from derived.lab.stats import LEVEL, Estimate, slope

from ..experiments.collapse import Cold, FinalRate, Freezing, Hot
from .forms import CPU, INF, RECORDED, WITHIN, retold, row
from .measures import Measure, cases_of, difference, joint, power


def pointwise(column: str, theory: str, by: Sequence[str], where: str) -> Measure:
    """As ``difference``, without the start, where both agree by definition."""
    return difference(column, theory, by, f"layer > 0 and {where}")


def spread_slope(rows: pd.DataFrame) -> Estimate:
    """The slope of ln spread against ln d up to d = 256 at tau = 2; replicates of each width paired by their number.

    Beyond, the attention that every layer draws anew adds a spread of its own, which falls with h and not with d.
    """
    return power(rows[np.isclose(rows["tau"], 2.0) & (rows["d"] <= 256)], "spread", "d")


def spread_slopes(rows: pd.DataFrame) -> Estimate:
    """The slope of ln spread against ln d over all widths, at the time where it is farthest from -1/2."""
    times = [case for _, case in rows[rows["layer"] > 0].groupby("tau")]
    found = [power(case, "spread", "d", 1 - (1 - LEVEL) / len(times)) for case in times]
    return max(found, key=lambda one: max(abs(one.low + 0.5), abs(one.high + 0.5)))


def time_ratio(rows: pd.DataFrame) -> Estimate:
    """Chain over ODE, the time to overlap 1/2, in the cell where it is farthest from 1."""
    run = rows.dropna(subset=["chain"])
    return joint(cases_of(run.assign(ratio=run["chain"] / run["ode_d"]), "ratio", ("n", "logit_std")), 1.0)


def standard_over_hot(rows: pd.DataFrame) -> Estimate:
    """The time at logit standard deviation 1 over ln(n+1), farthest from 1."""
    chosen = rows[rows["logit_std"] == 1.0].groupby("n")[["ode", "hot"]].first()
    ratio = (chosen["ode"] / chosen["hot"]).to_numpy()
    return Estimate(float(max(ratio, key=lambda r: abs(r - 1))), len(ratio))


def smallest_delay(rows: pd.DataFrame) -> Estimate:
    """The smallest growth of the time from one temperature to the next colder, or from one n to the next larger."""
    table = rows.groupby(["n", "logit_std"])["ode"].first().unstack("logit_std").to_numpy()
    steps = np.concatenate([np.diff(table, axis=0).ravel(), np.diff(table, axis=1).ravel()])
    return Estimate(float(steps.min()), len(steps))


def final_rate(rows: pd.DataFrame) -> Estimate:
    """The slope of ln(1 - m) in tau plus 1 - 1/d, per replicate, in the case farthest from 0."""
    found = []
    cases = list(rows.groupby(["d", "n", "logit_std"]))
    for (d, _, _), case in cases:
        wide = case.pivot(index="replicate", columns="tau", values="log_missing")
        fits = slope(wide.columns.to_numpy(), wide.to_numpy(), 1 - (1 - LEVEL) / len(cases))
        shift = 1 - 1 / d
        found.append(Estimate(fits.value + shift, fits.n, fits.low + shift, fits.high + shift, fits.error))
    return max(found, key=lambda one: max(abs(one.low), abs(one.high)))


CLAIMS = (
    row(
        "HT-7",
        r"Hot attention: the mean overlap is logistic, $\dot u=u(1-u)$.",
        rf"$n=8$, $d=256$, at all times: {WITHIN} $\pm0.03$",
        Hot,
        pointwise("m", "u", ("tau",), "d == 256"),
        (-0.03, 0.03),
        **retold("`thm:clustering_small_beta`"),
    ),
    row(
        "HT-8.a",
        r"An equiangular prompt follows the ODE of the simplex at any temperature.",
        rf"$n=16$, logit deviation 8, $d=4096$, at all times: {WITHIN} $\pm0.03$",
        Cold,
        pointwise("gamma", "gamma_theory", ("tau",), "d == 4096"),
        (-0.03, 0.03),
        expected=CPU,
        judged_at=RECORDED,
        **retold("`thm:clustering_random_init`"),
    ),
    row(
        "HT-8.b",
        r"From $d=64$ to $d=256$ the overlaps at $\tau=2$ spread around it like $d^{-1/2}$.",
        rf"slope of ln spread in $\ln d$: {WITHIN} $-0.5\pm0.1$",
        Cold,
        spread_slope,
        (-0.6, -0.4),
        judged_at=("ci", "cpu"),
        where="narrowed to one early time and small widths after rows existed",
        amends="HT-8.e",
    ),
    row(
        "HT-8.e",
        r"The overlaps spread around it like $\sqrt{T/d}$, at all times and widths.",
        rf"slope of ln spread in $\ln d$ over all widths, at the time where it is farthest off: {WITHIN} $-0.5\pm0.1$",
        Cold,
        spread_slopes,
        (-0.6, -0.4),
        judged_at=("ci", "cpu"),
        expected={"ci": "undecided", "cpu": "undecided"},
        **retold("`thm:clustering_random_init`; its criterion decided after rows existed", r"$\sqrt{T/d}$"),
    ),
    row(
        "HT-9.a",
        r"Cold attention delays the collapse by what the ODE says.",
        rf"time to overlap $\frac12$, chain over ODE, $d=10^6$: {WITHIN} $1\pm0.05$",
        Freezing,
        time_ratio,
        (0.95, 1.05),
    ),
    row(
        "HT-9.b",
        r"At standard initialisation, $\tau_\ell=1$, temperature is irrelevant: the time is $\ln(n+1)$.",
        r"ODE over $\ln(n+1)$ within $1\pm0.02$ for every $n$",
        Freezing,
        standard_over_hot,
        (0.98, 1.02),
    ),
    row(
        "HT-9.c",
        r"Lower temperature and longer contexts slow the collapse down.",
        r"the time of the ODE grows from each logit deviation and each $n$ to the next",
        Freezing,
        smallest_delay,
        (1e-6, INF),
        source="paper",
        where="abstract; judged in the ODE of the simplex, which is our reading",
    ),
    row(
        "HT-10",
        r"Every collapse ends at the rate $1-\frac1d$, whatever $\beta$ and $n$.",
        rf"slope of $\ln(1-m)$ plus $1-\frac1d$, worst case: {WITHIN} $\pm0.05$",
        FinalRate,
        final_rate,
        (-0.05, 0.05),
    ),
)
