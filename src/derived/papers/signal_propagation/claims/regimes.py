"""The recurrences carried far: the laws of J and of the overlap, what attention changes, and the order of the limits.

name       meaning
EXPONENTS  SP-6 to SP-10.b: the laws of J and of the overlap
ATTENTION  SP-11 and SP-12: what attention changes, and at which number of tokens
"""

import numpy as np
import pandas as pd

from derived.lab import measure
from derived.lab.claims import at_least, at_most, between, computed, within
from derived.lab.effect import Published
from derived.lab.measure import Measure, chosen
from derived.lab.stats import Estimate

from ..experiments.regimes import INFINITE, Crossing, Regimes, with_laws


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


def in_the_limit(values: np.ndarray, depths: np.ndarray, powers: tuple[float, ...]) -> float:
    """The constant c of c + sum_k A_k b^{-power_k} through the last depths, a factor of about two apart."""
    at = -1 - 6 * np.arange(len(powers) + 1)
    return float(np.linalg.solve(depths[at, None] ** -np.array([0.0, *powers]), values[at])[0])


def limit_of_exponent(rows: pd.DataFrame, column: str, powers: tuple[float, ...], mult: float = 1.0) -> float:
    """The local exponent of a column after LayerNorm at infinite depth; powers in units of (1 - zeta)/2, with attention."""
    one, unit = curve(rows, "layernorm", mult), (1 - curve(rows, "layernorm")["zeta"].iloc[0]) / 2
    logs, b = one[column].to_numpy(), one["b"].to_numpy(dtype=float)
    return in_the_limit(np.diff(logs) / np.diff(np.log(b)), np.sqrt(b[1:] * b[:-1]), tuple(unit * np.array(powers)))


def last_exponent(attn_mult: float = 1.0, tokens: int = INFINITE) -> Measure:
    """The local exponent of J at the deepest block after LayerNorm."""

    def measure(rows: pd.DataFrame) -> Estimate:
        one = curve(rows, "layernorm", attn_mult, tokens)
        return Estimate(float(exponents(one)[-1]), 1)

    return measure


def rise_or_shortfall(rows: pd.DataFrame, tokens: int = INFINITE) -> Estimate:
    """The largest rise of the local exponent between neighbouring depths beyond b = 128, past its peak near 90.

    Or how far it has fallen below zeta, if that is larger.
    """
    beyond = curve(rows, "layernorm", tokens=tokens).query("b >= 128")
    local = exponents(beyond)
    below = beyond["zeta"].iloc[0] - local.min()
    return Estimate(float(max(np.diff(local).max(), below)), len(local) - 1)


def exponent_of_growth(rows: pd.DataFrame, attn_mult: float = 1.0) -> Estimate:
    """The exponent of J after LayerNorm, less the corrections of the page, b^{-(1-zeta)} and the power after it."""
    return Estimate(limit_of_exponent(rows, "log_J", (2, 3), attn_mult), 1)


def exponent_of_collapse(rows: pd.DataFrame, attn_mult: float = 1.0) -> Estimate:
    """The exponent of 1 - rho after LayerNorm, less the corrections b^{-(1-zeta)/2} and b^{-(1-zeta)}."""
    missing = rows.assign(log_missing=rows["log_difference"] - np.log(rows["q"]))
    return Estimate(limit_of_exponent(missing, "log_missing", (1, 2), attn_mult), 1)


def slope_over_law(norm: str, attn_mult: float = 1.0) -> Measure:
    """The last slope of ln J in sqrt(b), times sqrt(lambda): for the alpha at which it is farthest from 1."""

    def measure(rows: pd.DataFrame) -> Estimate:
        ratios = []
        for alpha in rows.loc[rows["norm"] == norm, "alpha"].unique():
            law = float(np.sqrt(curve(rows, norm, alpha=alpha)["lam"].iloc[0]))
            ratios.append(last_slope(curve(rows, norm, attn_mult, alpha=alpha)) * law)
        return Estimate(max(ratios, key=lambda ratio: abs(ratio - 1)), len(ratios))

    return measure


def exponent_lost(rows: pd.DataFrame, attn_mult: float = 1.0) -> Estimate:
    """The exponent in the limit with attention, less the one without."""
    attended, without = (exponent_of_growth(rows, mult).value for mult in (attn_mult, 0.0))
    return Estimate(attended - without, 2)


def measured_lambda(rows: pd.DataFrame, attn_mult: float = 1.0) -> Estimate:
    """lambda of Derf at alpha = 1 from the last slope."""
    return Estimate(last_slope(curve(rows, "erf", attn_mult)) ** -2, 1)


def lambda_ratio(rows: pd.DataFrame, attn_mult: float = 1.0) -> Estimate:
    """lambda with attention over lambda without, from the last slopes."""
    return Estimate(measured_lambda(rows, attn_mult).value / measured_lambda(rows, 0.0).value, 2)


def lambda_gained(rows: pd.DataFrame, attn_mult: float = 1.0) -> Estimate:
    """The ratio of the two lambda over that of the law."""
    law, alone = (curve(rows, "erf", mult)["lam"].iloc[0] for mult in (1.0, 0.0))
    return Estimate(lambda_ratio(rows, attn_mult).value * alone / law, 2)


def overlap_at_infinity(curve: pd.DataFrame) -> float:
    """rho at infinity: c + A b^-mu + B b^-1/2 through three depths; mu is the relaxation exponent of the page."""
    return in_the_limit(curve["rho"].to_numpy(), curve["b"].to_numpy(dtype=float), (curve["mu"].iloc[0], 0.5))


def limit_of_overlap(rows: pd.DataFrame, norm: str = "erf") -> Estimate:
    """rho at infinity less c_*, for the alpha at which it is farther off."""
    curves = [curve(rows, norm, alpha=alpha) for alpha in rows.loc[rows["norm"] == norm, "alpha"].unique()]
    missed = [overlap_at_infinity(one) - one["c_star"].iloc[0] for one in curves]
    return Estimate(float(max(missed, key=abs)), len(missed))


def overtaken(alpha: float) -> Measure:
    """The depth from which on J of Derf stays above that of pre-LayerNorm, less one."""

    def measure(rows: pd.DataFrame) -> Estimate:
        attended = rows[rows["attention"] == 1]
        derf, plain = (
            attended.query(f"norm == {norm!r} and alpha == {value}").set_index("b")["log_J"]
            for norm, value in (("erf", alpha), ("layernorm", 1.0))
        )
        below = derf.index[derf <= plain]
        return Estimate(float(below.max()) if len(below) else 0.0, len(derf))

    return measure


def raised_by_attention(column: str) -> Measure:
    """J with attention over J without, at ViT-Base's number of tokens and 32 blocks, the lowest norm and alpha."""

    def measure(rows: pd.DataFrame) -> Estimate:
        some = chosen(rows, "b == 32 and (norm == 'layernorm' or alpha in (0.5, 1.0))")
        wide = some.pivot(index=["norm", "alpha"], columns="attention", values=column)
        return Estimate(float(np.exp(wide[1] - wide[0]).min()), len(wide))

    return measure


BOTH = {"experiment": Regimes}
AT_THE_END = f"attn_mult == 1 and tokens == {INFINITE} and alpha == 1 and b == b.max()"
DEEP = {"horizon": "$b=10^5$"}

EXPONENTS = (
    computed(
        "SP-6.a",
        r"In a pre-LayerNorm network with many tokens $J^{b,0}\sim b^{\zeta}$ with $\zeta=\frac{s/2}{s/2+a}$.",
        measure=exponent_of_growth,
        quantity="local exponent at the deepest blocks, less the corrections $b^{-(1-\\zeta)}$ and $b^{-3(1-\\zeta)/2}$",
        accept=within(2 / 3, 0.002, r"\frac23"),
        unit="exponent",
        plain="With LayerNorm and many tokens, gradients at initialisation grow like a power of the depth; "
        r"with the usual initialisation of vision transformers the power is $\frac23$.",
        source="repo",
        where="code; a power law in the abstract",
        paper_value=Published(round(2 / 3, 4), "exponent"),
        **BOTH,
        control=lambda rows: exponent_of_growth(rows, 0.0),
        **DEEP,
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
        control=lambda rows: rise_or_shortfall(rows, tokens=16),
        **DEEP,
    ),
    computed(
        "SP-7",
        r"In a pre-LayerNorm network with many tokens $1-\rho\sim b^{\zeta-1}$.",
        measure=exponent_of_collapse,
        quantity="local exponent at the deepest blocks, less the corrections $b^{-(1-\\zeta)/2}$ and $b^{-(1-\\zeta)}$",
        accept=within(-1 / 3, 0.002, r"-\frac13"),
        unit="exponent",
        **BOTH,
        control=lambda rows: exponent_of_collapse(rows, 0.0),
        **DEEP,
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
        paper_value=Published(4.018, r"λ at $\alpha=1$", ours=measured_lambda),
        **BOTH,
        control=slope_over_law("erf", 0.0),
        **DEEP,
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
        control=slope_over_law("tanh", 0.0),
        **DEEP,
    ),
    computed(
        "SP-10.a",
        r"In a Derf network with many tokens $\rho\to c_*<1$ for every $\alpha$: there is no rank collapse.",
        measure=limit_of_overlap,
        quantity=r"limit of $\rho$, extrapolated from the last depths by $b^{-\mu}$ and $b^{-1/2}$, less $c_*$, at the "
        r"worse of $\alpha=0.5$ and $1$",
        accept=within(0, 0.001),
        unit="overlap",
        proof="sp-converges",
        source="repo",
        where="code; the page proves the limit",
        paper_value=Published(
            0.6598, "overlap in the limit", ours=lambda rows: Estimate(overlap_at_infinity(curve(rows, "erf")), 1)
        ),
        control=lambda rows: limit_of_overlap(rows, "layernorm"),
        **DEEP,
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
        control=measure.largest("rho", f"norm == 'erf' and {AT_THE_END}"),
        **DEEP,
    ),
)

ATTENTION = (
    computed(
        "SP-11.a",
        r"In a pre-LayerNorm network with many tokens attention lowers the exponent of $J^{b,0}$, from $1$ to $\zeta$.",
        measure=exponent_lost,
        quantity="difference of the exponents, less the corrections of SP-6.a",
        accept=within(-1 / 3, 0.002, r"-\frac13"),
        unit="difference of exponents",
        source="repo",
        where="code",
        paper_value=Published(round(-1 / 3, 4), "difference of exponents"),
        **BOTH,
        control=lambda rows: exponent_lost(rows, 0.0),
        **DEEP,
    ),
    computed(
        "SP-11.b",
        r"In a Derf network with many tokens, where $\ln J^{b,0}\sim\sqrt{b/\lambda}$, attention raises $\lambda$ as the "
        "law says.",
        measure=lambda_gained,
        quantity=r"ratio of the two $\lambda$ from the last slopes, over that of the law",
        accept=within(1, 0.02),
        unit="ratio to the law",
        source="repo",
        where="code",
        paper_value=Published(round(4.02 / 3.27, 3), "ratio of the two λ", ours=lambda_ratio),
        control=lambda rows: lambda_gained(rows, 0.0),
        **DEEP,
        **BOTH,
    ),
    computed(
        "SP-11.c",
        "At ViT-Base's variances, 197 tokens and 32 blocks, attention raises the amplification of a gradient that an "
        "averaging head sends to all tokens.",
        Crossing,
        raised_by_attention("log_pooled"),
        r"amplification with attention over without, the lowest of LayerNorm and Derf at $\alpha=0.5$ and $1$",
        at_least(1.2),
        unit="ratio",
        control=raised_by_attention("log_J"),
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
        control=last_exponent(2.0),
        **DEEP,
    ),
    computed(
        "SP-20",
        r"At ViT-Base's variances and 197 tokens, from $q^0=1$ and $p^0=0.2$, Derf with $\alpha=\frac12$, its default, has a smaller $J^{B,0}$ than "
        "pre-LayerNorm at every depth up to 36 blocks, the deepest that the author trains.",
        Crossing,
        overtaken(0.5),
        "the last depth at which it is not larger",
        at_least(36),
        unit="blocks",
        plain=r"At its default $\alpha$, up to the 36 blocks that the author trains, Derf amplifies gradients less than LayerNorm.",
        control=overtaken(1.0),
    ),
)
