"""What the claims measure: pure functions from the rows of an experiment to an estimate."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from scipy import stats as laws

from derived.lab.stats import LEVEL, Estimate, mean, worst

from . import asymptotics

Measure = Callable[[pd.DataFrame], Estimate]
REPLICATE = ("part", "init", "replicate")  # whichever of them the rows have name one initialisation
# Read off the vector graphics of the author's notebook to about 0.5 %: J^{32,0} of timm's ViT-Base, one initialisation.
AUTHOR = {("erf", 0.5): 3.078, ("erf", 1.1): 11.21, ("erf", 1.9): 51.30, ("layernorm", 1.0): 6.003}
AUTHOR |= {("erf", 0.1): 1.079, ("erf", 0.3): 1.755, ("erf", 0.7): 4.902, ("erf", 0.9): 7.506}
AUTHOR |= {("erf", 1.3): 16.55, ("erf", 1.5): 24.10, ("erf", 1.7): 35.42}


def gap(rows: pd.DataFrame) -> Estimate:
    return worst(rows["gap"], rows["bound"])


def table_of(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """Initialisations by blocks."""
    keys = [name for name in REPLICATE if name in rows.columns]
    return rows.pivot(index=keys, columns="b", values=column)


def fold(measured: np.ndarray, theory: np.ndarray, level: float) -> Estimate:
    """The geometric-mean fold error, over blocks, of the mean over initialisations (inits, blocks), with its interval.

    With m_b = ln(mean / theory) and its standard error e_b the triangle inequality bounds the error of mean_b |m_b| by
    mean_b |m_b - true m_b|; Student's t times mean_b e_b covers that however the blocks of a network are correlated,
    and where the sign of m_b is in doubt, at the kink of |.|. A fold error is at least 1.
    """
    inits = len(measured)
    centre = measured.mean(axis=0)
    errors = measured.std(axis=0, ddof=1) / np.sqrt(inits) / centre
    value = float(np.abs(np.log(centre / theory)).mean())
    reach = float(laws.t.ppf((1 + level) / 2, inits - 1) * errors.mean())
    return Estimate(np.exp(value), inits, np.exp(max(value - reach, 0.0)), np.exp(value + reach))


def gmfe_of(column: str, by: Sequence[str] = ("norm", "heads"), edge: str = "last") -> Measure:
    """The fold error of a measured column, in the case where its interval reaches highest; joint level over cases.

    ``edge`` is the block at which theory and measurement agree by definition, left out: "last" or "first".
    """

    def measure(rows: pd.DataFrame) -> Estimate:
        cases, keep = [rows for _, rows in rows.groupby(list(by))], slice(0, -1) if edge == "last" else slice(1, None)
        level = 1 - (1 - LEVEL) / len(cases)
        tables = [(table_of(case, column), table_of(case, f"{column}_theory")) for case in cases]
        found = [fold(m.to_numpy()[:, keep], t.to_numpy()[0, keep], level) for m, t in tables]
        return max(found, key=lambda one: one.high)

    return measure


def end_ratio(numerator: str, denominator: str, by: Sequence[str] = ()) -> Measure:
    """measured / theory at block 0, mean over initialisations, in the case whose interval reaches lowest."""

    def measure(rows: pd.DataFrame) -> Estimate:
        first = rows[rows["b"] == 0]
        cases = [case for _, case in first.groupby(list(by))] if by else [first]
        level = 1 - (1 - LEVEL) / len(cases)
        found = [mean(case[numerator] / case[denominator], level) for case in cases]
        return min(found, key=lambda one: one.low)

    return measure


def improvement(rows: pd.DataFrame) -> Estimate:
    """|ln error| at block 0 without K over the same with K, errors of the mean, geometric mean over the cases.

    Both errors move with the measured mean, e = ln(J / J_theory): the ratio is |D + e| / |e|, D = ln(J_theory /
    J_without_K) known. For e >= -D it falls with |e|, so an end of e's interval bounds it, joint over the cases; at
    e = -D the theory without K is exact and the ratio 0.
    """
    cases = [case for _, case in rows[rows["b"] == 0].groupby(["norm", "heads"])]
    level, ratios, lowest = 1 - (1 - LEVEL) / len(cases), [], []
    for case in cases:
        one = mean(case["J"] / case["J_theory"], level)
        known = np.log(case["J_theory"].iloc[0] / case["J_without_K"].iloc[0])
        value, *ends = (abs(known + e) / abs(e) for e in np.maximum(np.log([one.value, one.low, one.high]), -known))
        ratios.append(value)
        lowest.append(min(ends))
    value, low = (float(np.prod(each) ** (1 / len(cases))) for each in (ratios, lowest))
    return Estimate(value, len(cases[0]), low, float("inf"))


def course(rows: pd.DataFrame, norm: str, attn_mult: float = 1.0, tokens: int = 0, alpha: float = 1.0) -> pd.DataFrame:
    """One curve of ``Regimes``, by depth."""
    chosen = (rows["norm"] == norm) & (rows["attn_mult"] == attn_mult) & (rows["tokens"] == tokens)
    return rows[chosen & (rows["alpha"] == alpha)].sort_values("b")


def exponents(curve: pd.DataFrame) -> np.ndarray:
    return asymptotics.local_exponent(curve["log_J"].to_numpy(), curve["b"].to_numpy())


def slopes(curve: pd.DataFrame) -> np.ndarray:
    return asymptotics.stretched_slope(curve["log_J"].to_numpy(), curve["b"].to_numpy())


def last_exponent(attn_mult: float = 1.0, tokens: int = 0) -> Measure:
    def measure(rows: pd.DataFrame) -> Estimate:
        curve = course(rows, "layernorm", attn_mult, tokens)
        return Estimate(float(exponents(curve)[-1]), len(curve))

    return measure


def rises(rows: pd.DataFrame) -> Estimate:
    """The largest rise of the local exponent between neighbouring depths beyond b = 128, past its peak near 90.

    Or how far it has fallen below zeta, if that is larger.
    """
    curve = course(rows, "layernorm")
    local = exponents(curve[curve["b"] >= 128])
    below = float(asymptotics.zeta(*asymptotics.vit_variances())) - local.min()
    return Estimate(max(float(np.diff(local).max()), below), len(local) - 1)


def collapse(rows: pd.DataFrame) -> Estimate:
    """The last local exponent of 1 - rho behind LayerNorm."""
    curve = course(rows, "layernorm").tail(2)
    log_missing = curve["log_difference"] - np.log(curve["q"])
    return Estimate(float(np.diff(log_missing).item() / np.diff(np.log(curve["b"])).item()), 1)


def stretched(norm: str, attn_mult: float = 1.0) -> Measure:
    """The last slope of log J in sqrt(b), times sqrt(lambda): for the alpha at which it is farthest from 1."""

    def measure(rows: pd.DataFrame) -> Estimate:
        a, s = asymptotics.vit_variances(attn_mult)
        found = []
        for alpha in rows.loc[rows["norm"] == norm, "alpha"].unique():
            C = asymptotics.stretch_constant(norm, alpha)
            last = slopes(course(rows, norm, attn_mult, alpha=alpha))[-1]
            found.append(float(last * np.sqrt(asymptotics.lambda_stretched(a, s, C))))
        return Estimate(max(found, key=lambda ratio: abs(ratio - 1)), len(found))

    return measure


def overlap_gap(rows: pd.DataFrame) -> Estimate:
    """rho - c_* at the deepest block behind Derf, alpha = 1."""
    target = float(asymptotics.overlap_fixed_point(*asymptotics.vit_variances()))
    return Estimate(float(course(rows, "erf")["rho"].iloc[-1]) - target, 1)


def last_overlap(rows: pd.DataFrame) -> Estimate:
    return Estimate(float(course(rows, "layernorm")["rho"].iloc[-1]), 1)


def exponent_lost(rows: pd.DataFrame) -> Estimate:
    """The last local exponent with attention, less the one without."""
    with_it, without = (exponents(course(rows, "layernorm", mult))[-1] for mult in (1.0, 0.0))
    return Estimate(float(with_it - without), 2)


def lambda_gained(rows: pd.DataFrame) -> Estimate:
    """lambda with attention over lambda without, from the last slopes."""
    with_it, without = (slopes(course(rows, "erf", mult))[-1] for mult in (1.0, 0.0))
    return Estimate(float((without / with_it) ** 2), 2)


def window_bounds(rows: pd.DataFrame) -> Estimate:
    """The worst of log_J / high and low / log_J, with room for the rounding of b logarithms."""
    room = 1 + 4 * np.finfo(float).eps * rows["b"]
    ratio = np.concatenate([rows["log_J"] / (rows["high"] * room), rows["low"] / (rows["log_J"] * room)])
    return Estimate(float(ratio.max()), len(ratio))


def window_rate(rows: pd.DataFrame) -> Estimate:
    """log J over its exponential law while alpha^2 q <= 0.005, where it is smallest."""
    inside = rows[rows["alpha"] ** 2 * rows["q"] <= 0.005]
    return Estimate(float((inside["log_J"] / inside["high"]).min()), len(inside))


def crossover(rows: pd.DataFrame) -> Estimate:
    """Block where alpha^2 p reaches 1 over the formula for b_*, at the smallest alpha."""
    smallest = rows[rows["alpha"] == rows["alpha"].min()]
    return Estimate(float((smallest["crossover"] / smallest["predicted"]).iloc[0]), rows["alpha"].nunique())


def overlap_of_networks(rows: pd.DataFrame) -> Estimate:
    """Mean of rho at the last block of torch networks, less the recurrence's, for the norm where it is farthest off."""
    cases = [case for _, case in rows[rows["b"] == rows["b"].max()].groupby("norm")]
    level = 1 - (1 - LEVEL) / len(cases)
    found = [mean(case["p"] / case["q"] - case["p_theory"] / case["q_theory"], level) for case in cases]
    return max(found, key=lambda one: max(abs(one.low), abs(one.high)))


def against_author(rows: pd.DataFrame) -> Estimate:
    """Our mean J^{32,0} over the author's reading, where they differ most."""
    found = []
    for case, part in rows[rows["b"] == 0].groupby(["norm", "alpha"]):
        if case in AUTHOR:
            found.append(mean(part["J"] / AUTHOR[case]))
    return max(found, key=lambda one: abs(np.log(one.value)))


def images_fold_error(rows: pd.DataFrame) -> Estimate:
    """Fold error over images and the last two thirds of the blocks, per initialisation, in the worst case."""
    late = rows[rows["b"] > rows["b"].min() + (rows["b"].max() - rows["b"].min()) / 3]
    late = late[late["b"] < rows["b"].max()]
    late = late.assign(error=np.log(late["J"] / late["J_theory"]).abs())
    cases = [case.groupby("init")["error"].mean() for _, case in late.groupby(["norm", "alpha"])]
    found = [mean(np.exp(case), 1 - (1 - LEVEL) / len(cases)) for case in cases]
    return max(found, key=lambda one: one.high)


def trainability(rows: pd.DataFrame) -> Estimate:
    """Spearman's correlation of predicted amplification and final loss without warm-up; a diverged run ranks last."""
    chosen = rows[(rows["norm"] == "erf") & (rows["warmup"] == 0)]
    final = chosen["test_loss"].replace(np.inf, np.nan).fillna(np.finfo(float).max)
    groups = chosen.assign(final=final).groupby("replicate")
    return mean([float(laws.spearmanr(part["log_pooled"], part["final"]).statistic) for _, part in groups])


def warmup_gain(rows: pd.DataFrame) -> Estimate:
    """Accuracy with warm-up less accuracy without, at the largest predicted amplification."""
    chosen = rows[(rows["norm"] == "erf") & (rows["depth"] == rows["depth"].max())]
    chosen = chosen[chosen["alpha"] == chosen["alpha"].max()]
    wide = chosen.pivot(index="replicate", columns="warmup", values="test_accuracy")
    return mean(wide[wide.columns.max()] - wide[wide.columns.min()])
