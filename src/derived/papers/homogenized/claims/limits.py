"""Claims on limits with a drift: flows, their correctors, and many heads.

Evidence, criterion and expected verdicts were written before the run, except where a claim says otherwise.
"""

import numpy as np
import pandas as pd

from derived.lab.claims import Claim
from derived.lab.stats import Estimate, mean, slope

from ..experiments.limits import Flows, Interpolation, SelfAttention
from .forms import CI, INF, WITHIN, retold, row
from .measures import Measure, gap, power


def order(update: str, corrector: str, column: str = "grid") -> Measure:
    """The observed order: the slope of ln error in ln eta, per random start."""

    def measure(rows: pd.DataFrame) -> Estimate:
        return power(rows[(rows["update"] == update) & (rows["corrector"] == corrector)], column, "eta")

    return measure


def noise_slope(rows: pd.DataFrame, groups: int = 24) -> Estimate:
    """The slope of ln Var m over the weights in ln H; a replicate is the variance in a group of draws."""
    sweep = rows[rows["kind"] == "heads"]
    wide = sweep.pivot(index="replicate", columns="H", values="m")
    size = len(wide) // groups
    parts = wide.to_numpy()[: groups * size].reshape(groups, size, -1)
    return slope(np.log(wide.columns.to_numpy(dtype=float)), np.log(parts.var(axis=1, ddof=1)))


def far_from_ode(rows: pd.DataFrame) -> Estimate:
    """Mean of m less the flow of self-attention, with the largest number of heads."""
    chosen = rows[(rows["kind"] == "heads") & (rows["H"] == rows.loc[rows["kind"] == "heads", "H"].max())]
    return mean(chosen["m"] - chosen["m_ode"])


ORDER_ONE, ORDER_TWO = (0.85, 1.15), (1.8, 2.2)
SLOPE = "slope of ln error in ln η over 48 starts:"


def observed(id: str, statement: str, setting: tuple[str, ...], accept: tuple[float, float], **facts) -> Claim:
    """An observed order of deterministic layers against a flow."""
    middle = (accept[0] + accept[1]) / 2
    reach = accept[1] - middle
    criterion = f"{SLOPE} {WITHIN} ${middle:g}\\pm{reach:g}$"
    return row(id, statement, criterion, Flows, order(*setting), accept, **{"expected": CI} | facts)


CLAIMS = (
    observed(
        "HT-14.a",
        r"The ballistic limit $\dot X=b(X)$ is reached at the rate $\eta\max(\eta,\alpha)$: order two for deterministic "
        "heads.",
        ("ambient", "none"),
        ORDER_TWO,
        **retold("`cor:ode1`", "2") | {"expected": {"ci": "fails"}},
    ),
    observed(
        "HT-14.b",
        r"The ballistic limit is reached at the rate $\max(\eta,\alpha)$: order one.",
        ("ambient", "none"),
        ORDER_ONE,
        amends="HT-14.a",
    ),
    row(
        "HT-14.c",
        r"For $V=A=I$ it is self-attention on the sphere, $\dot\gamma=\frac{2e^{\beta\gamma}(1-\gamma)((n-1)\gamma+1)}"
        r"{e^\beta+(n-1)e^{\beta\gamma}}$ from equiangular tokens.",
        "gap of the flow to the scalar equation at most $10^{-8}$",
        SelfAttention,
        gap,
        (-INF, 1.0),
        kind="identity",
        source="prior",
        where="A mathematical perspective on transformers",
        expected=CI,
    ),
    observed(
        "HT-15.a",
        r"The modified equation with drift $b-\frac\eta2\nabla_bb$ has order two at grid times.",
        ("ambient", "retold"),
        ORDER_TWO,
        **retold("`cor:ode2`, `eq:SDE_ito_clean`", "2") | {"expected": {"ci": "fails"}},
    ),
    observed(
        "HT-15.b",
        r"With $-\eta\langle x,b_*\rangle b$ added it has order two.",
        ("ambient", "full"),
        ORDER_TWO,
        amends="HT-15.a",
    ),
    observed(
        "HT-15.c",
        r"The retold drift has order two if the velocity is projected before the step.",
        ("projected", "retold"),
        ORDER_TWO,
        amends="HT-15.a",
    ),
    observed(
        "HT-15.d",
        r"The rate of the modified equation holds at all times, between grid points too.",
        ("projected", "retold", "between"),
        ORDER_TWO,
        **retold("`cor:ode2`", "2") | {"expected": {"ci": "fails"}},
    ),
    observed(
        "HT-15.e",
        r"Between grid points the modified equation has order one.",
        ("projected", "retold", "between"),
        ORDER_ONE,
        amends="HT-15.d",
    ),
    row(
        "HT-16.b",
        r"At fixed $\eta L$, with $V=I+$noise, the variance over the weights falls like $\alpha\propto1/H$.",
        rf"slope of ln variance in $\ln H$: {WITHIN} $-1\pm0.15$",
        Interpolation,
        noise_slope,
        (-1.15, -0.85),
        **retold("`cor:ode1`, `cor:SDE`"),
    ),
    row(
        "HT-16.c",
        r"With many heads the ODE is left.",
        rf"mean overlap less the flow of self-attention at the largest $H$, $\eta=0.05$: {WITHIN} $\pm0.02$",
        Interpolation,
        far_from_ode,
        (-0.02, 0.02),
        **retold("`cor:ode1`"),
    ),
)
