"""CAC-3 to CAC-5 and CAC-10: the target of one drafted token, and what its budget is worth.

Criteria and expected verdicts were written before the run.
"""

import numpy as np
import pandas as pd

from derived.lab import measure
from derived.lab.claims import at_most, bound, computed, identity, refuted, within
from derived.lab.stats import Estimate

from ..experiments.budget import Budget, ClosedForms, SecondOrder, TypicalProgram

EPSILON = 2.0**-52  # the unit in the last place of one
KEPT = r"largest $D_{\rm KL}(h^{(n)}\|q)$ over $\delta\ge10^{-3}$, with $\varepsilon=2^{-52}$"
WITHIN = at_most(1 + 16 * EPSILON / 1e-3, r"1+16\,\varepsilon/10^{-3}")
OF_BUDGET = "of the budget"


def cost_slope(rows: pd.DataFrame) -> Estimate:
    """Slope of ln |cost - delta| in ln delta, for the q_n at which it is farthest from 3/2."""
    slopes = [
        np.polyfit(np.log(part["delta"]), np.log(part["cost_gap"].abs()), 1)[0] for _, part in rows.groupby("q_n")
    ]
    return measure.farthest("slope", 1.5)(pd.DataFrame({"slope": slopes}))


def sharpness(rows: pd.DataFrame) -> Estimate:
    """How far the largest KL of each delta is from ln(1 + 2 delta), over its rounding; NaN if one KL is NaN."""
    largest = rows.groupby("delta")[["excess", "bound"]].agg(lambda each: each.max(skipna=False))
    return measure.worst("abs(excess)")(largest)


TARGET = (
    identity(
        "CAC-3",
        r"Raising $h_n$ to the root $\gamma^*$ and shrinking the rest in proportion solves the constrained problem, for KL, $\chi^2$, Hellinger and Jensen–Shannon.",
        ClosedForms,
        measure.worst(),
        r"largest gap of $h_n$ to an optimiser over the simplex, over $2\cdot10^{-5}$",
        plain="Raising the drafted token and shrinking all others in proportion is the best target within a divergence budget.",
        source="digest",
        where="Theorem 2",
    ),
    computed(
        "CAC-4.a",
        r"The KL that the second-order rule spends misses its budget $\delta$ by $O(\delta^{3/2})$.",
        SecondOrder,
        cost_slope,
        r"slope of $\ln\lvert\mathrm{kl}(\gamma_n\|q_n)-\delta\rvert$ in $\ln\delta$, for every $q_n$",
        within(1.5, 0.03),
        unit="exponent",
    ),
    bound(
        "CAC-4.b",
        r"If $\gamma_n\le\frac12$, the target of the second-order rule keeps its budget: $D_{\rm KL}(h^{(n)}\|q)\le\delta$.",
        Budget,
        measure.largest("ratio", "gamma <= 0.5"),
        "cac-kept",
        KEPT,
        WITHIN,
        unit=OF_BUDGET,
        source="digest",
        where="Corollary 6",
    ),
    bound(
        "CAC-4.c",
        r"If $\gamma_n\le1-q_n$, or if $q_n\le q_0=0.2847$, the target of the second-order rule keeps its budget: $D_{\rm KL}(h^{(n)}\|q)\le\delta$.",
        Budget,
        measure.largest("ratio", "gamma <= 1 - q_n or q_n <= 0.28466"),
        "cac-kept",
        KEPT,
        WITHIN,
        unit=OF_BUDGET,
    ),
    refuted(
        "CAC-5.a",
        r"The target of each proposal stays within its budget: $D_{\rm KL}(h^{(n)}\|q)\le\delta$ for every $q_n$.",
        Budget,
        measure.largest("ratio"),
        r"one $(q_n,\delta)$ with $D_{\rm KL}(h^{(n)}\|q)$ over $\delta$",
        at_most(1 + 1e-6, r"1+10^{-6}"),
        unit=OF_BUDGET,
        plain="The target of each drafted token stays within its stated budget.",
        source="digest",
        where="several notes and re-implementations",
        paper_value=r"KL $\le\delta$",
    ),
    bound(
        "CAC-5.b",
        r"The target of the second-order rule spends $D_{\rm KL}(h^{(n)}\|q)\le\ln(1+2\delta)<2\delta$ for every $q_n$.",
        Budget,
        measure.worst("excess"),
        "cac-budget",
        r"largest excess of KL over $\ln(1+2\delta)$, over 16 units in the last place of one",
        amends="CAC-5.a",
    ),
    identity(
        "CAC-5.c",
        r"The bound $D_{\rm KL}(h^{(n)}\|q)\le\ln(1+2\delta)$ is reached for every $\delta$, at $q_n=1/(1+2\delta)$.",
        Budget,
        sharpness,
        r"gap of the largest KL of each $\delta$ to $\ln(1+2\delta)$, over 16 units in the last place of one",
    ),
)

CROSS_ENTROPY = (
    identity(
        "CAC-10.a",
        r"Cross-entropy in place of KL makes the constrained problem a linear program: a point mass on the draft iff $q_n\ge e^{-\delta}$, else a mixture of two tokens.",
        TypicalProgram,
        measure.largest("gap"),
        r"largest gap of $h_n$ to a linear programming solver",
        at_most(1e-9),
        unit="probability",
    ),
    refuted(
        "CAC-10.b",
        r"Typical acceptance is the cross-entropy variant of the constrained problem, for kept and rejected drafts alike.",
        TypicalProgram,
        measure.largest("program", "not kept"),
        "one rejected draft whose probability under the optimum is",
        at_most(1e-9),
        unit="probability",
        source="digest",
        where="Proposition 4",
    ),
    identity(
        "CAC-10.c",
        r"For the drafts that it keeps, typical acceptance is the cross-entropy variant of the constrained problem: the optimum is then the point mass on the draft.",
        TypicalProgram,
        measure.worst("abs(1 - program)", "1e-9", "kept"),
        r"largest $1-h_n$ of the linear program over $10^{-9}$",
        amends="CAC-10.b",
        source="digest",
        where="Proposition 4",
    ),
)
