"""How fine a codebook: the distortion of hard labels against the number of codes, few and many paths, and noise.

Two mechanisms foretell different curves. A staircase of sharp labels rises with the number of codes until a bin is no
wider than what the network cannot know: a maximum, be the paths few or many. One free vector for each code is estimated
from ever fewer points: a minimum, which moves to more codes as there are more paths.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab import stats
from derived.lab.claims import RECORDED, at_least, reported, statistic
from derived.lab.effect import Published
from derived.lab.measure import Measure, by_draw, chosen, lowest
from derived.lab.plot import (
    BLUE,
    DASHED,
    INK,
    MUTED,
    ORANGE,
    RED,
    apart,
    beside,
    largest,
    mean_and_reach,
    panel_label,
    plain_log,
)
from derived.lab.stats import LEVEL, Estimate

from .fits import CI, SHORT, Fits
from .measures import judged, ratio


@dataclass(frozen=True, kw_only=True)
class Sweep(Fits):
    """GT-8, after the paper's learned codebooks: Lorenz, k-means codes, hard labels; ``arm`` "scalar" has the squared
    error of the value, on 64 codes whatever K.

    Rows: arm, K, noise (standard deviation of what is added to every value, a share of the range), num (paths that
    each network is trained on), and those of ``Fits``.
    """

    codebooks: tuple[int, ...] = (32, 64, 128, 256, 512, 1024)
    noises: tuple[float, ...] = (0.0, 0.01, 0.03)
    few: int = 2000

    tiers: ClassVar = {
        "ci": {**CI, "codebooks": (4, 8), "noises": (0.0, 0.1), "few": 6},
        "cpu": {**SHORT, "codebooks": (8, 64, 128, 512), "noises": (0.0, 0.03), "few": 125},
        "gpu": {},
    }
    tiny: ClassVar = {"codebooks": (4, 6, 8)}
    looks: ClassVar[tuple[float, ...]] = ()  # shares of the steps at which networks are judged, the end apart

    def conditions(self) -> list[dict]:
        cases = [(noise, self.paths) for noise in self.noises] + [(0.0, self.few)]
        arms = [("ce", K) for K in self.codebooks] + [("scalar", self.codes)]
        return [{"noise": noise, "num": num, "arm": arm, "K": K} for noise, num in cases for arm, K in arms]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        K, noise, num = (condition[name] for name in ("K", "noise", "num"))
        size = replace(self, codes=K, paths=num)
        looks = [int(share * self.steps) for share in self.looks]
        facts = {"learned": True, "looks": looks, "seed": seed, "device": device, "dtype": dtype}
        return size.fitted(arm=condition["arm"], noise=noise, on=condition.get("on", "values"), **facts)


@dataclass(frozen=True, kw_only=True)
class Longer(Sweep):
    """GT-8.a, d to f: many paths, as in ``Sweep``, for four times the steps, so that the finest codebook may learn as
    well, in networks that share no draw with those; the inner codebooks and the value also with the largest noise,
    ``on`` all "values" or on the "labels" alone. Rows as there and on, with two looks before the end."""

    tiers: ClassVar = {
        "ci": Sweep.tiers["ci"],
        "cpu": {**Sweep.tiers["cpu"], "networks": 24, "steps": 2000, "rates": (0.0063, 0.01, 0.016, 0.025, 0.04)},
    }
    looks: ClassVar[tuple[float, ...]] = (0.1, 0.9)

    def conditions(self) -> list[dict]:
        scalar = ("scalar", self.codes)
        inner = [("ce", K) for K in self.codebooks[1:-1]]
        cases = [
            (0.0, "values", arm) for arm in (("ce", self.codebooks[0]), *inner, ("ce", self.codebooks[-1]), scalar)
        ]
        cases += [(max(self.noises), on, arm) for on in ("values", "labels") for arm in (*inner, scalar)]
        return [{"noise": noise, "num": self.paths, "on": on, "arm": arm, "K": K} for noise, on, (arm, K) in cases]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        return super().run(condition, seed=seed + 1, device=device, dtype=dtype)


# Claims: GT-8: codebooks from coarse to fine; criteria and expected verdicts were written before the run.
#
# A pilot with another seed and two networks for each codebook had been seen; its rows were thrown away. The inner
# codebook at which D is largest is chosen by the networks of the search, and judged on others. That the codebooks
# compared must have learned was asked later, when a reading of the rows had found that the finest had not
# (changes.yml).


def logs(rows: pd.DataFrame, where: str) -> pd.Series:
    """ln D of the judged networks of one arm, by replicate."""
    return np.log(judged(rows, where))


def numbers(rows: pd.DataFrame, many: bool) -> str:
    """The noise-free rows with the most paths, or with the fewest."""
    return f"noise == 0 and num == {rows['num'].max() if many else rows['num'].min()}"


def highest_inner(rows: pd.DataFrame, where: str) -> int:
    """The inner codebook whose searched networks have the largest D at the rate that was chosen."""
    hard = chosen(rows, f"arm == 'ce' and {where}")
    rate = hard[hard["stage"] == "fit"].groupby("K")["rate"].first()
    tried = hard[(hard["stage"] == "search") & (hard["rate"] == hard["K"].map(rate))]
    return by_draw(tried["distortion"], tried, ["K"]).mean().sort_index().iloc[1:-1].idxmax()


def learned(rows: pd.DataFrame, where: str, K: int) -> None:
    """ValueError unless the networks of a codebook find the next value to within twice the error of those that find it
    best with as many codes or fewer, and, where they are judged before their end, are at a plateau: the rule of GT-7c.

    Bins that are narrower can say all that wider ones say; the wider ones cannot say more than their width lets them."""
    hard = {
        each: f"arm == 'ce' and {where} and K == {each}"
        for each in chosen(rows, f"arm == 'ce' and {where}")["K"].unique()
    }
    missed = {each: judged(rows, one, "rmse").mean() for each, one in hard.items()}
    best = min((each for each in missed if each <= K), key=missed.get)
    if not missed[K] <= 2 * missed[best]:
        other = f"those of {best} codes by {missed[best]:.2g}"
        raise ValueError(
            f"networks of {K} codes have not learned: they miss the next value by {missed[K]:.2g}, {other}"
        )
    flat(rows, hard[K], f"{K} codes")


def flat(rows: pd.DataFrame, where: str, name: str) -> None:
    """ValueError unless the last tenth of the steps takes at most 0.02 off what the networks' own loss falls by from the
    first look on; rows without looks are let pass."""
    if rows["step"].nunique() > 1:
        first, before, end = (judged(rows, where, "valid", look).mean() for look in range(3))
        if not before - end <= 0.02 * (first - end):
            loss = ", ".join(f"{each:.3g}" for each in (first, before, end))
            raise ValueError(f"networks of {name} have not come to a plateau: their loss goes {loss}")


def inner_over_ends(many: bool) -> Measure:
    """D at that codebook over D at an end of the range, the smaller of the two ends' ratios, where all three have
    learned."""

    def measure(rows: pd.DataFrame) -> Estimate:
        where = numbers(rows, many)
        inner, ends = highest_inner(rows, where), (rows["K"].min(), rows["K"].max())
        for K in (inner, *ends):
            learned(rows, where, K)
        at = {K: logs(rows, f"arm == 'ce' and {where} and K == {K}") for K in (inner, *ends)}
        return ratio(lowest([stats.mean(at[inner] - at[end], 1 - (1 - LEVEL) / 2) for end in ends]))

    return measure


def one_codebook(many: bool) -> Measure:
    """The measure where both ends of the range are networks of the highest inner codebook, too, each paired with the
    next one or the next but one: nothing depends on K."""

    def null(rows: pd.DataFrame) -> Estimate:
        inner, ends = highest_inner(rows, numbers(rows, many)), [rows["K"].min(), rows["K"].max()]
        fitted = rows["stage"].eq("fit") & rows["arm"].eq("ce")
        one, networks = rows[fitted & (rows["K"] == inner)], rows.loc[fitted, "replicate"].nunique()
        shifted = [one.assign(K=K, replicate=(one["replicate"] + by) % networks) for by, K in enumerate(ends, start=1)]
        return inner_over_ends(many)(pd.concat([rows[~(fitted & rows["K"].isin(ends))], *shifted]))

    return null


def tax(rows: pd.DataFrame, where: str, K: int) -> pd.Series:
    """ln D of K codes under hard labels less that of the squared error on its 64, by replicate, where both have learned
    and are flat."""
    value = f"arm == 'scalar' and {where}"
    learned(rows, where, K)
    flat(rows, value, "the value")
    return logs(rows, f"arm == 'ce' and K == {K} and {where}") - logs(rows, value)


def largest_tax(rows: pd.DataFrame) -> Estimate:
    """The tax without noise, at the inner codebook that other networks found highest."""
    quiet = numbers(rows, True)
    return ratio(stats.mean(tax(rows, quiet, highest_inner(rows, quiet))))


def tax_halved(loud: str) -> Measure:
    """ln of the tax without noise less twice that where it is ``loud``, at the codebook that is highest without, where
    all of these networks have learned and are flat."""

    def measure(rows: pd.DataFrame) -> Estimate:
        quiet = numbers(rows, True)
        K = highest_inner(rows, quiet)
        return stats.mean(tax(rows, quiet, K) - 2 * tax(rows, loud, K))

    return measure


TRAINED = {"judged_at": RECORDED}
TIMES = {"unit": "times", **TRAINED}
LESS = "$\\ln$ of the tax without noise less twice $\\ln$ of the tax with it, where these networks have learned and are flat"
HALVED = {"unit": "nats", "control": lambda rows: tax_halved(numbers(rows, True))(rows), **TRAINED}

CLAIMS = (
    statistic(
        "GT-8.a",
        "Without noise, $D$ under hard labels is not monotone in the number of codes: an inner codebook has a larger $D$ than the coarsest and than the finest.",
        Longer,
        inner_over_ends(True),
        "$D$ at the inner codebook over $D$ at an end, the smaller of two, where all three have learned and are flat",
        at_least(1),
        plain="Finer codebooks reconstruct better and yet make the states more sensitive to noise, up to a point.",
        source="paper",
        where="abstract, Learned quantisation; Lorenz, small networks",
        paper_value="not monotone",
        **TIMES,
        comparison=("networks of one codebook", one_codebook(True)),
        control="one codebook at all places has the ratio one, the end of the range, which no number of networks decides",
    ),
    statistic(
        "GT-8.b",
        "With a sixteenth of the training paths the inner extremum of $D$ is again a maximum, where one free vector for each code foretells a minimum.",
        Sweep,
        inner_over_ends(False),
        "$D$ at the inner codebook over $D$ at an end, the smaller of two, where all three have learned",
        at_least(1),
        where="what separates the staircase from the regressogram",
        **TIMES,
        control=one_codebook(False),
    ),
    statistic(
        "GT-8.d",
        "Noise of 3 % of the range on all values, inputs and labels alike, takes more than half of the tax over the squared error on 64 codes away, in logarithms, at the codebook where it is highest without noise.",
        Longer,
        tax_halved("noise > 0 and on == 'values'"),
        LESS,
        at_least(0),
        **HALVED,
    ),
    statistic(
        "GT-8.e",
        "Noise of 3 % of the range on the labels alone takes more than half of that tax away.",
        Longer,
        tax_halved("noise > 0 and on == 'labels'"),
        LESS,
        at_least(0),
        where="such a label is blurred, on average over draws, and the inputs are as sharp as before",
        **HALVED,
    ),
    reported(
        "GT-8.f",
        "On Lorenz paths without noise the published distortion $D$ under hard labels is this multiple of that under the squared error of the next value on 64 codes, at the inner codebook where it is largest.",
        Longer,
        largest_tax,
        "times",
        where="the largest tax that we saw, beside the abstract's up to 8.5 times; the codebook is chosen by other networks, and the squared error reads 64 codes whatever it is; small networks on generated paths",
        paper_value=Published(8.5, "times"),
        judged_at=RECORDED,
    ),
)


# Figures: The codebook from coarse to fine: rows in, a figure with its alt text as label out.
#
# mark             meaning
# points, lines    means over trained networks with 99.9 % intervals; filled where recorded, open where live
# dashed           as much as under the squared error of the value on 64 codes, whatever K


def sweep(rows: pd.DataFrame, longer: pd.DataFrame) -> Figure:
    """The distortion against the number of codes, over that of the value, for each kind of data, and what the codes and
    the networks miss; rows of ``Sweep`` and, in black, those of ``Longer`` without noise."""
    table, later = (each[each["stage"] == "fit"] for each in (largest(rows), largest(longer)))
    later = later[(later["noise"] == 0) & (later["step"] == later["step"].max())]
    recorded, many = bool(table["recorded"].iloc[0]), table["num"].max()
    figure, axes = plt.subplots(2, 1, figsize=(5.5, 5.0), sharex=True)
    words, ends, most = [], [], 1.0
    for (noise, num), part in [*table.groupby(["noise", "num"]), ((0.0, many), later)]:
        case = (f"noise {100 * noise:g} %" if noise else "no noise") + (f", {num} paths" if num != many else "")
        color = BLUE if noise else (RED if num == many else ORANGE)
        if part is later:
            case, color = f"{case}, {later['step'].iloc[0] // table['step'].iloc[0]} times the steps", INK
        hard, scalar = part[part["arm"] == "ce"], part[part["arm"] == "scalar"]["distortion"].mean()
        K, mean, reach = zip(*((K, *mean_and_reach(one["distortion"])) for K, one in hard.groupby("K")), strict=True)
        times, half = np.array(mean) / scalar, np.array(reach) / scalar
        face = color if recorded else "none"
        axes[0].errorbar(K, times, half, fmt="o-", color=color, markerfacecolor=face, linewidth=1.2, capsize=2)
        ends.append((times[-1], case, color))
        most = max(most, times.max()) if num == many and not noise else most
        said = ", ".join(f"{k} {value:.2g}" for k, value in zip(K, mean, strict=True))
        words.append(f"{case}: {said}, the value {scalar:.2g}")
    axes[0].plot([K[0], K[-1]], [1, 1], **DASHED)
    beside(axes[0], K[0], 1, "the value itself", MUTED, (8, -7), fontsize=9)
    places = apart([end for end, *_ in ends], 0.11 * axes[0].get_ylim()[1])
    for (_, case, color), place in zip(ends, places, strict=True):
        beside(axes[0], K[-1], place, case, color, (8, 0), annotation_clip=False)
    axes[0].set(ylabel="distortion under hard labels,\nover the value's", ylim=(0, None))
    panel_label(axes[0], f"Without noise, hard labels distort up to {most:.1f} times as much")
    plenty = table[(table["noise"] == 0) & (table["num"] == many) & (table["arm"] == "ce")]
    missed = plenty.groupby("K")[["reconstruction", "rmse"]].mean()
    for name, label, shade in (("reconstruction", "codes", INK), ("rmse", "networks", RED)):
        axes[1].plot(missed.index, missed[name], "o-", color=shade, markerfacecolor=shade if recorded else "none")
        beside(axes[1], missed.index[-1], missed[name].iloc[-1], label, shade, (8, 0), annotation_clip=False)
    axes[1].set(yscale="log", ylabel="missed, share of the range")
    better, at = missed["reconstruction"].iloc[0] / missed["reconstruction"].iloc[-1], missed["rmse"].idxmin()
    panel_label(axes[1], f"Codes miss {better:.0f} times less, networks least with {at}")
    axes[1].set(xlabel="codes $K$", xscale="log", xlim=(K[0] / 1.2, 8 * K[-1]))
    plain_log(axes[1].xaxis, sorted(missed.index))
    figure.set_label(f"Distortion under hard labels against the number of codes. {'; '.join(words)}.")
    return figure
