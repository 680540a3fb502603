"""The recurrences carried far: the laws of J and of the overlap, what attention changes, and the order of the limits.

name       meaning
EXPONENTS  SP-6 to SP-10.b: the laws of J and of the overlap
ATTENTION  SP-11 and SP-12: what attention changes, and at which number of tokens
"""

import numpy as np
import pandas as pd

from derived.lab import measure
from derived.lab.claims import at_most, between, computed, within
from derived.lab.measure import Measure, chosen
from derived.lab.stats import Estimate

from ..experiments.regimes import INFINITE, Regimes, with_laws


def curve(rows: pd.DataFrame, norm: str, attn_mult: float = 1.0, tokens: int = INFINITE, alpha: float = 1.0):
    """One curve of ``Regimes`` by depth, with the constants of its law."""
    where = f"norm == {norm!r} and attn_mult == {attn_mult} and tokens == {tokens} and alpha == {alpha}"
    return with_laws(chosen(rows, where)).sort_values("b")


def exponents(curve: pd.DataFrame) -> np.ndarray:
    """d ln J / d ln b between consecutive depths."""
    return np.diff(curve["log_J"]) / np.diff(np.log(curve["b"]))


def last_slope(curve: pd.DataFrame) -> float:
    """d ln J / d sqrt(b) between the last two depths; tends to lambda^{-1/2}."""
    return float((np.diff(curve["log_J"]) / np.diff(np.sqrt(curve["b"])))[-1])


def last_exponent(attn_mult: float = 1.0, tokens: int = INFINITE) -> Measure:
    """The local exponent of J at the deepest block after LayerNorm."""

    def measure(rows: pd.DataFrame) -> Estimate:
        one = curve(rows, "layernorm", attn_mult, tokens)
        return Estimate(float(exponents(one)[-1]), 1)

    return measure


def rise_or_shortfall(rows: pd.DataFrame) -> Estimate:
    """The largest rise of the local exponent between neighbouring depths beyond b = 128, past its peak near 90.

    Or how far it has fallen below zeta, if that is larger.
    """
    beyond = curve(rows, "layernorm").query("b >= 128")
    local = exponents(beyond)
    below = beyond["zeta"].iloc[0] - local.min()
    return Estimate(float(max(np.diff(local).max(), below)), len(local) - 1)


def exponent_of_collapse(rows: pd.DataFrame) -> Estimate:
    """The last local exponent of 1 - rho after LayerNorm."""
    last = curve(rows, "layernorm").tail(2)
    log_missing = last["log_difference"] - np.log(last["q"])
    return Estimate(float(np.diff(log_missing).item() / np.diff(np.log(last["b"])).item()), 1)


def slope_over_law(norm: str) -> Measure:
    """The last slope of ln J in sqrt(b), times sqrt(lambda): for the alpha at which it is farthest from 1."""

    def measure(rows: pd.DataFrame) -> Estimate:
        ratios = []
        for alpha in rows.loc[rows["norm"] == norm, "alpha"].unique():
            one = curve(rows, norm, alpha=alpha)
            ratios.append(last_slope(one) * float(np.sqrt(one["lam"].iloc[0])))
        return Estimate(max(ratios, key=lambda ratio: abs(ratio - 1)), len(ratios))

    return measure


def exponent_lost(rows: pd.DataFrame) -> Estimate:
    """The last local exponent with attention, less the one without."""
    attended, without = (exponents(curve(rows, "layernorm", mult))[-1] for mult in (1.0, 0.0))
    return Estimate(float(attended - without), 2)


def lambda_gained(rows: pd.DataFrame) -> Estimate:
    """lambda with attention over lambda without, from the last slopes."""
    attended, without = (last_slope(curve(rows, "erf", mult)) for mult in (1.0, 0.0))
    return Estimate((without / attended) ** 2, 2)


BOTH = {"experiment": Regimes}
AT_THE_END = f"attn_mult == 1 and tokens == {INFINITE} and alpha == 1 and b == b.max()"
LAMBDAS = 4.018 / 3.268  # with attention over without, at alpha = 1

EXPONENTS = (
    computed(
        "SP-6.a",
        r"In a pre-LayerNorm network with many tokens $J^{b,0}\sim b^{\zeta}$ with $\zeta=\frac{s/2}{s/2+a}$.",
        measure=last_exponent(),
        quantity="local exponent at the deepest block",
        accept=within(2 / 3, 0.012, r"\frac23"),
        unit="exponent",
        plain="With LayerNorm and many tokens, gradients at initialisation grow like a power of the depth; "
        r"with the usual initialisation of vision transformers the power is $\frac23$.",
        source="repo",
        where="code; a power law in the abstract",
        paper_value=r"$\zeta=\frac23$",
        **BOTH,
    ),
    computed(
        "SP-6.b",
        r"In a pre-LayerNorm network with many tokens the local exponent of $J^{b,0}$ falls to $\zeta$ from above, "
        "slowly.",
        measure=rise_or_shortfall,
        quantity="largest rise of the local exponent between neighbouring depths beyond $b=128$, past the peak near "
        r"$b=90$, and largest shortfall below $\zeta$",
        accept=at_most(0.0),
        unit="exponent",
        **BOTH,
    ),
    computed(
        "SP-7",
        r"In a pre-LayerNorm network with many tokens $1-\rho\sim b^{\zeta-1}$.",
        measure=exponent_of_collapse,
        quantity="local exponent at the deepest block",
        accept=within(-1 / 3, 0.04, r"-\frac13"),
        unit="exponent",
        **BOTH,
    ),
    computed(
        "SP-8",
        r"In a Derf network with many tokens $\ln J^{b,0}\sim\sqrt{b/\lambda}$ with "
        r"$\lambda=(s/2+a\,p_*)/(C_\phi s)^2$.",
        measure=slope_over_law("erf"),
        quantity=r"last slope in $\sqrt b$ times $\sqrt\lambda$, the worse of $\alpha=0.5$ and $1$",
        accept=within(1, 0.01),
        unit="ratio to the law",
        plain="With erf in place of LayerNorm, gradients at initialisation grow like the exponential of the square root "
        "of the depth: faster than any power, slower than an exponential.",
        source="repo",
        where="code; a stretched exponential in the abstract",
        paper_value=r"$\lambda=4.018$ at $\alpha=1$",
        **BOTH,
    ),
    computed(
        "SP-9",
        r"In a DyT network with many tokens $\ln J^{b,0}\sim\sqrt{b/\lambda}$ with "
        r"$\lambda=(s/2+a\,p_*)/(C_{\tanh}s)^2$ and $C_{\tanh}=4\alpha/(3\sqrt{2\pi})$.",
        measure=slope_over_law("tanh"),
        quantity=r"last slope in $\sqrt b$ times $\sqrt\lambda$ at $\alpha=1$",
        accept=within(1, 0.03),
        unit="ratio to the law",
        **BOTH,
    ),
    computed(
        "SP-10.a",
        r"In a Derf network with many tokens $\rho\to c_*<1$: there is no rank collapse.",
        measure=measure.largest(
            lambda rows: rows["rho"] - with_laws(rows)["c_star"], f"norm == 'erf' and {AT_THE_END}"
        ),
        quantity=r"$\rho-c_*$ at the deepest block",
        accept=within(0, 0.02),
        unit="overlap",
        proof="sp-converges",
        source="repo",
        where="code; the page proves the limit, the row reads one depth",
        paper_value="$c_*=0.6598$ from its equation",
        **BOTH,
    ),
    computed(
        "SP-10.b",
        r"In a pre-LayerNorm network with many tokens $\rho\to1$.",
        proof="sp-ln",
        measure=measure.largest("rho", f"norm == 'layernorm' and {AT_THE_END}"),
        quantity=r"$\rho$ at the deepest block",
        accept=between(0.95, 1.0),
        unit="overlap",
        source="repo",
        where="code; the page proves the limit, the row reads one depth",
        **BOTH,
    ),
)

ATTENTION = (
    computed(
        "SP-11.a",
        r"In a pre-LayerNorm network with many tokens attention lowers the exponent of $J^{b,0}$, from $1$ to $\zeta$.",
        measure=exponent_lost,
        quantity="difference of the local exponents at the deepest block",
        accept=within(-1 / 3, 0.02, r"-\frac13"),
        unit="difference of exponents",
        plain=r"Attention lowers the power with which gradients grow in a network with LayerNorm, from $1$ to $\frac23$.",
        source="repo",
        where="code",
        paper_value=r"$1\to\frac23$",
        **BOTH,
    ),
    computed(
        "SP-11.b",
        r"In a Derf network with many tokens, where $\ln J^{b,0}\sim\sqrt{b/\lambda}$, attention raises $\lambda$.",
        measure=lambda_gained,
        quantity=r"ratio of the two $\lambda$ from the last slopes",
        accept=between(LAMBDAS * 0.98, LAMBDAS * 1.02, r"\frac{4.018}{3.268}\cdot[0.98, 1.02]"),
        unit="ratio",
        source="repo",
        where="code",
        paper_value=r"$3.27\to4.02$",
        **BOTH,
    ),
    computed(
        "SP-12.b",
        r"In a pre-LayerNorm network with a fixed number $n$ of tokens the exponent of $J^{b,0}$ is $1$: "
        r"$J^{b,0}\asymp b^{\zeta}+b/n$.",
        measure=last_exponent(2.0, 4),
        quantity=r"local exponent at the deepest block, at $n=4$ and $\zeta=\frac19$",
        accept=within(1, 0.03),
        unit="exponent",
        amends="SP-12.a",
        **BOTH,
    ),
)
