"""Claims on one layer: one token, the moments of a head, drift and bracket of the overlaps.

Evidence, criterion and expected verdicts were written before the run, except where a claim says otherwise.
"""

from collections.abc import Sequence

import pandas as pd

from derived.lab.stats import LEVEL, Estimate, mean

from ..experiments.layer import HeadMoments, OneLayer, OneToken
from .forms import CI, FAILS, INF, WITHIN, retold, row
from .measures import Measure, cases_of, joint


def rate_gap(rows: pd.DataFrame) -> Estimate:
    """Rates of one layer, extrapolated to h = 0 from the two smallest steps, over the diffusion's: farthest from 1."""
    ratios = []
    for _, case in rows.sort_values("h").groupby(["d", "degree"]):
        (near, far), (h, double) = case["rate"].iloc[:2], case["h"].iloc[:2]
        ratios.append((near + (near - far) * h / (double - h)) / case["exact"].iloc[0])
    return Estimate(float(max(ratios, key=lambda ratio: abs(ratio - 1))), len(ratios))


def halving(rows: pd.DataFrame) -> Estimate:
    """The factor by which the error falls when h is halved, farthest from 2."""
    factors = []
    for _, case in rows.sort_values("h").groupby(["d", "degree"]):
        error = case["error"].to_numpy()
        factors += list(error[1:] / error[:-1])
    return Estimate(float(max(factors, key=lambda factor: abs(factor - 2))), len(factors))


def head_moment(quantities: Sequence[str], tokens: Sequence[str] = ()) -> Measure:
    """value - target over the given quantities and tokens, farthest from 0."""

    def measure(rows: pd.DataFrame) -> Estimate:
        chosen = rows[rows["quantity"].isin(quantities)]
        chosen = chosen[chosen["tokens"].isin(tokens)] if tokens else chosen
        chosen = chosen.assign(off=chosen["value"] - chosen["target"])
        return joint(cases_of(chosen, "off", ("tokens", "quantity")))

    return measure


def proxy_below(rows: pd.DataFrame) -> Estimate:
    """E|G|^2 less (d-1)/d at random tokens, where it reaches highest."""
    chosen = rows[(rows["quantity"] == "proxy") & (rows["tokens"] != "coinciding")]
    cases = cases_of(chosen.assign(off=chosen["value"] - chosen["target"]), "off", ("tokens",))
    level = 1 - (1 - LEVEL) / len(cases)
    return max((mean(case, level) for case in cases), key=lambda one: one.high)


def layer_gap(column: str, theory: str, tokens: str) -> Measure:
    """(column - theory) over the largest |theory| of the tokens, in the pair where it is farthest from 0.

    The pairs of a simplex are one case: they have one drift, and a replicate is the mean over them.
    """

    def measure(rows: pd.DataFrame) -> Estimate:
        chosen = rows[rows["tokens"] == tokens]
        scale = chosen.groupby("pair")[theory].mean().abs().max()
        chosen = chosen.assign(off=(chosen[column] - chosen[theory]) / scale)
        if tokens == "simplex":
            return mean(chosen.groupby("replicate")["off"].mean())
        return joint(cases_of(chosen, "off", ("pair",)))

    return measure


CLAIMS = (
    row(
        "HT-1.a",
        r"One token decays at the rates $\frac{d-1}{2d}$ (overlap) and $1$ (its square).",
        r"rates of one layer, extrapolated to $h=0$, over the formula within $1\pm0.0005$",
        OneToken,
        rate_gap,
        (0.9995, 1.0005),
        expected=CI,
    ),
    row(
        "HT-1.b",
        r"Its error at fixed $\tau$ is of first order in $h=\eta^2/H$.",
        r"halving $h$ divides the error by $2\pm0.1$, at every width, step and degree",
        OneToken,
        halving,
        (1.9, 2.1),
        expected=CI,
    ),
    row(
        "HT-2.a",
        r"Gaussian heads have no mean field: $b_*=0$.",
        rf"{WITHIN} $\pm0.02$",
        HeadMoments,
        head_moment(["mean"]),
        (-0.02, 0.02),
        **retold("Gaussian case"),
    ),
    row(
        "HT-2.b",
        r"$\mathbb E[B(x)B(y)^\top]=\frac1ds(x,y)\,I$.",
        rf"$d$ times diagonal and off-diagonal entries, less $s$ and $0$: {WITHIN} $\pm0.04$",
        HeadMoments,
        head_moment(["diagonal", "off-diagonal"]),
        (-0.04, 0.04),
        **retold("`lem:lemma_app`"),
    ),
    row(
        "HT-2.c",
        r"$\mathbb E\lVert G\rVert^2=\frac{d-1}d$ where all tokens coincide.",
        rf"{WITHIN} $\pm0.02$ of it",
        HeadMoments,
        head_moment(["proxy"], ["coinciding"]),
        (-0.02, 0.02),
        **retold("Gaussian case"),
    ),
    row(
        "HT-2.d",
        r"Elsewhere $\mathbb E\lVert G\rVert^2$ is smaller, so $\varsigma^2=\frac{d-1}d$.",
        r"at random tokens the 99.9 % interval of the difference lies below $-0.05$",
        HeadMoments,
        proxy_below,
        (-INF, -0.05),
        **retold("Gaussian case"),
    ),
    row(
        "HT-3.a",
        r"The drift of an overlap is $\frac{d-2+R^2}ds_{ij}-\frac{d-1}{2d}R(s_{ii}+s_{jj})$.",
        rf"difference over the largest drift, worst pair: {WITHIN} $\pm0.02$",
        OneLayer,
        layer_gap("drift", "drift_theory", "random"),
        (-0.02, 0.02),
        **retold("`lem:Ito_formula`"),
    ),
    row(
        "HT-3.b",
        r"Its bracket is $\frac1d(1-R^2)(s_{ii}+s_{jj}-2Rs_{ij})$.",
        rf"difference over the largest bracket, worst pair: {WITHIN} $\pm0.03$",
        OneLayer,
        layer_gap("bracket", "bracket_theory", "random"),
        (-0.03, 0.03),
    ),
    row(
        "HT-4.a",
        r"On the simplex the drift is exactly $b(\gamma)=(1-\gamma)(\gamma(1-f)+g)$.",
        rf"at $d=4$, relative difference: {WITHIN} $\pm0.03$",
        OneLayer,
        layer_gap("drift", "retold", "simplex"),
        (-0.03, 0.03),
        expected=FAILS,
        **retold("`lem:drift_on_simplex_selfcontained`", "exactly $b$"),
    ),
    row(
        "HT-4.b",
        r"The drift on the simplex is $b+\frac1d(\gamma P-(2-\gamma^2)S)$.",
        rf"at $d=4$, relative difference: {WITHIN} $\pm0.03$",
        OneLayer,
        layer_gap("drift", "drift_theory", "simplex"),
        (-0.03, 0.03),
        amends="HT-4.a",
    ),
)
