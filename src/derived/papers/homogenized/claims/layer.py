"""Claims on one layer: one token, the moments of a head, drift and bracket of the overlaps.

Evidence, criterion and expected verdicts were written before the run, except where a claim says otherwise. Statements
of version 1 of the paper reached us through a third-party formalisation; their source is ``digest``.
"""

import numpy as np
import pandas as pd

from derived.lab.claims import at_most, computed, statistic, within
from derived.lab.measure import Measure, chosen, farthest, farthest_from, highest, mean
from derived.lab.stats import Estimate

from ..experiments.layer import HeadMoments, OneLayer, OneToken


def extrapolated(rows: pd.DataFrame) -> pd.Series:
    """Rates of one layer over the diffusion's, extrapolated to h = 0 from the two smallest steps, by d and degree."""
    ratios = []
    for _, case in rows.sort_values("h").groupby(["d", "degree"]):
        (near, far), (h, double) = case["rate"].iloc[:2], case["h"].iloc[:2]
        ratios.append((near + (near - far) * h / (double - h)) / case["exact"].iloc[0])
    return pd.Series(ratios)


def halving(rows: pd.DataFrame) -> pd.Series:
    """The factors by which the error falls when h is halved, at every width, step and degree."""
    cases = [case.to_numpy() for _, case in rows.sort_values("h").groupby(["d", "degree"])["error"]]
    return pd.Series(np.concatenate([error[1:] / error[:-1] for error in cases]))


def relative_gap(value: str, theory: str, tokens: str, **cases) -> Measure:
    """The mean of (value - theory) over the largest |theory| of the pairs of these tokens; ``cases`` as in ``mean``."""
    gap = mean("gap", **cases)

    def measure(rows: pd.DataFrame) -> Estimate:
        some = chosen(rows, f"tokens == '{tokens}'")
        scale = some.groupby("pair")[theory].mean().abs().max()
        return gap(some.assign(gap=(some[value] - some[theory]) / scale))

    return measure


def off_by_quantity(where: str) -> Measure:
    """The mean of value - target, in the tokens and quantity where it is farthest from 0."""
    return mean("value - target", where, by=["tokens", "quantity"], decides=farthest_from(0))


EACH_PAIR = {"by": ["pair"], "decides": farthest_from(0)}
ALL_PAIRS = {"unit": ["replicate"]}  # the pairs of a simplex have one drift, and a replicate is the mean over them

CLAIMS = (
    computed(
        "HT-1.a",
        r"A single token forgets its start $x_0$: $\mathbb E\langle x,x_0\rangle$ decays at the rate $\frac{d-1}{2d}$, and "
        r"$\mathbb E\langle x,x_0\rangle^2$ tends to $\frac1d$ at the rate $1$.",
        OneToken,
        farthest(extrapolated, 1.0),
        "rates of one layer, extrapolated to $h=0$, over the formula, farthest off",
        within(1, 0.0005),
        unit="ratio to the formula",
    ),
    computed(
        "HT-1.b",
        r"The decay of one token over a fixed $\tau$ has an error of first order in $h=\eta^2/H$.",
        OneToken,
        farthest(halving, 2.0),
        "factor by which halving $h$ divides the error, at the width, step and degree where it is farthest off",
        within(2, 0.1),
        unit="factor",
    ),
    statistic(
        "HT-2.a",
        r"Gaussian heads have no mean field: $b_*=0$.",
        HeadMoments,
        off_by_quantity("quantity == 'mean'"),
        "mean of an entry of the field, worst tokens",
        within(0, 0.02),
        plain="At Gaussian initialisation the average pull of a head is zero: all motion of the tokens is noise.",
        unit="entry of the field",
        source="digest",
        where="version 1, Gaussian case",
    ),
    statistic(
        "HT-2.b",
        r"Gaussian heads have the covariance $\mathbb E[B(x)B(y)^\top]=\frac1ds(x,y)\,I$.",
        HeadMoments,
        off_by_quantity("quantity in ('diagonal', 'off-diagonal')"),
        r"$d$ times diagonal and off-diagonal entries, less $s$ and $0$, worst tokens",
        within(0, 0.04),
        unit="entry times $d$",
        source="digest",
        where="version 1, `lem:lemma_app`",
    ),
    statistic(
        "HT-2.c",
        r"The noise of Gaussian heads has $\mathbb E\lVert G\rVert^2=\frac{d-1}d$ where all tokens coincide.",
        HeadMoments,
        off_by_quantity("quantity == 'proxy' and tokens == 'coinciding'"),
        r"$\mathbb E\lVert G\rVert^2$ less $\frac{d-1}d$ at coinciding tokens",
        within(0, 0.02),
        unit="squared length",
        source="digest",
        where="version 1, Gaussian case",
    ),
    statistic(
        "HT-2.d",
        r"Where tokens do not coincide, $\mathbb E\lVert G\rVert^2$ is smaller than $\frac{d-1}d$, so $\varsigma^2=\frac{d-1}d$.",
        HeadMoments,
        mean("value - target", "quantity == 'proxy' and tokens != 'coinciding'", by=["tokens"], decides=highest),
        r"$\mathbb E\lVert G\rVert^2$ less $\frac{d-1}d$ at random tokens, where it reaches highest",
        at_most(-0.05),
        unit="squared length",
        source="digest",
        where="version 1, Gaussian case",
    ),
    statistic(
        "HT-3.a",
        r"The drift of an overlap is $\frac{d-2+R^2}ds_{ij}-\frac{d-1}{2d}R(s_{ii}+s_{jj})$.",
        OneLayer,
        relative_gap("drift", "drift_theory", "random", **EACH_PAIR),
        "difference over the largest drift, worst pair",
        within(0, 0.02),
        unit="of the largest drift",
        source="digest",
        where="version 1, `lem:Ito_formula`",
    ),
    statistic(
        "HT-3.b",
        r"The bracket of an overlap is $\frac1d(1-R^2)(s_{ii}+s_{jj}-2Rs_{ij})$.",
        OneLayer,
        relative_gap("bracket", "bracket_theory", "random", **EACH_PAIR),
        "difference over the largest bracket, worst pair",
        within(0, 0.03),
        unit="of the largest bracket",
    ),
    statistic(
        "HT-4.a",
        r"On the simplex the drift is exactly $b(\gamma)=(1-\gamma)(\gamma(1-f)+g)$.",
        OneLayer,
        relative_gap("drift", "retold", "simplex", **ALL_PAIRS),
        r"relative difference at $d=4$",
        within(0, 0.03),
        unit="of the drift",
        source="digest",
        where="version 1, `lem:drift_on_simplex_selfcontained`; refuted before us by the formalisation",
        paper_value="exactly $b$",
    ),
    statistic(
        "HT-4.b",
        r"The drift on the simplex is $b+\frac1d(\gamma P-(2-\gamma^2)S)$.",
        OneLayer,
        relative_gap("drift", "drift_theory", "simplex", **ALL_PAIRS),
        r"relative difference at $d=4$",
        within(0, 0.03),
        unit="of the drift",
        amends="HT-4.a",
    ),
)
