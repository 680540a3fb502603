"""Claims on the clock: the chain, its diffusion and its error, one curve for all steps and heads, and a torch stack.

Evidence, criterion and expected verdicts were written before the run, except where a claim says otherwise.
"""

import numpy as np
import pandas as pd

from derived.lab.stats import Estimate

from ..experiments.clock import Clock, Stack, TwoTokens, WeakError
from .forms import CPU, INF, RECORDED, WITHIN, retold, row
from .measures import Measure, cases_of, difference, joint, ratio


def error_ratio(large: tuple[float, int], small: tuple[float, int]) -> Measure:
    """|error| at (eta, H) = large over |error| at small."""

    def measure(rows: pd.DataFrame) -> Estimate:
        return ratio(*(rows[np.isclose(rows["eta"], eta) & (rows["H"] == H)]["error"] for eta, H in (large, small)))

    return measure


def stack_gap(rows: pd.DataFrame) -> Estimate:
    """m of the stack less the ODE, for the smallest residual scale, in the case farthest from 0."""
    chosen = rows[(rows["scale"] == rows["scale"].min()) & (rows["layer"] > 0)]
    return joint(cases_of(chosen.assign(off=chosen["m"] - chosen["m_theory"]), "off", ("H", "tau")))


CLAIMS = (
    row(
        "HT-5.a",
        r"The chain tends to the diffusion: $\mathbb ER$ of two tokens over $\tau$, for $H=1,2,6$, hot and cold.",
        rf"chain less Fokker–Planck equation, worst case: {WITHIN} $\pm0.035$",
        TwoTokens,
        difference("first", "first_theory", ("logit_std", "H", "tau")),
        (-0.035, 0.035),
        **retold("`thm:weak_error_clean`, `cor:weak_error_centered`"),
    ),
    row(
        "HT-5.b",
        r"The same for $\mathbb ER^2$.",
        rf"{WITHIN} $\pm0.035$",
        TwoTokens,
        difference("second", "second_theory", ("logit_std", "H", "tau")),
        (-0.035, 0.035),
        **retold("`thm:weak_error_clean`, `cor:weak_error_centered`"),
    ),
    row(
        "HT-6.a",
        r"The weak error decreases with the step.",
        r"two tokens at logit deviation 2, error at $\eta=0.8$ over that at $0.4$: 99.9 % interval above 2",
        WeakError,
        error_ratio((0.8, 1), (0.4, 1)),
        (2.0, INF),
        **retold("`thm:weak_error_clean`", r"$O(\eta)$"),
    ),
    row(
        "HT-6.b",
        r"At fixed $\tau$ and $\eta$ more heads make it smaller; as retold the bound grows with $H$.",
        r"the same at $\eta=0.8$: error with one head over that with four, 99.9 % interval above 2",
        WeakError,
        error_ratio((0.8, 1), (0.8, 4)),
        (2.0, INF),
    ),
    row(
        "HT-16.a",
        r"$\tau=\eta^2L/H$ is the only clock: one head or a thousand, few layers or many, one curve.",
        rf"mean overlap less the ODE, worst of all $(H,L,\tau)$: {WITHIN} $\pm0.02$",
        Clock,
        difference("m", "m_theory", ("H", "L", "tau"), "layer > 0"),
        (-0.02, 0.02),
        **retold("`cor:SDE`, `eq:Diffusive_gaussian_case`"),
    ),
    row(
        "HT-19",
        r"A post-LayerNorm attention stack with standard initialisation collapses on the clock "
        r"$\text{scale}^2\times\text{layers}$, whatever its number of heads: a test of the clock, since at "
        r"$\tau_\ell=1$ the temperature does not show.",
        rf"residual scale 0.2, mean overlap less the ODE, at all times: {WITHIN} $\pm0.06$",
        Stack,
        stack_gap,
        (-0.06, 0.06),
        expected=CPU,
        judged_at=RECORDED,
    ),
)
