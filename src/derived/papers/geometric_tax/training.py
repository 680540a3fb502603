"""Six arms on three systems, the blur of a label, and three encoders with causality asked: after the paper's controls.

Every arm reads the same tokens through the same encoder from the same first weights; only what is asked of it differs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import chi2
from torch import Tensor

from derived.lab import measure, stats
from derived.lab.claims import RECORDED, at_least, at_most, refuted, statistic, within
from derived.lab.effect import Published
from derived.lab.experiment import Experiment, rows
from derived.lab.measure import Decides, Measure, chosen, highest, lowest, worst
from derived.lab.nets import Draws
from derived.lab.plot import BLUE, COLOURS, INK, apart, beside, largest, mean_and_reach, panel_label, plain_log
from derived.lab.rng import stream
from derived.lab.stats import LEVEL, Estimate

from .fits import CI, CPU, DISTURBANCE, ENCODERS, SHARES, SHORT, Arm, Data, Fits, data, disturbed, fit, paths
from .measures import judged, ratio
from .model.encoders import Size
from .model.metrics import pooled_law, procrustes_distortion

SYSTEMS = ("lorenz", "oscillators", "waveforms")
AT_ONCE = 500  # sequences of each network that are read at once: all those of ``Order.law`` at tier gpu fit no card
ARMS = ("ce", "blurred", "shuffled", "codes", "scalar", "untrained")


@dataclass(frozen=True, kw_only=True)
class Swaps(Fits):
    """What ``Arms`` and ``Heads`` share: after the paper's swap of the head, arms on three systems, judged also during
    training. Rows: system, arm, and those of ``Fits``."""

    looks: tuple[float, ...] = (0.1, 0.3)  # shares of the steps

    arms: ClassVar[tuple[str, ...]] = ARMS
    shift: ClassVar[int] = 0  # of the seed

    def conditions(self) -> list[dict]:
        return [{"system": system, "arm": arm} for system in SYSTEMS for arm in self.arms]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        looks = sorted({int(share * self.steps) for share in self.looks})
        return self.fitted(**condition, looks=looks, seed=seed + self.shift, device=device, dtype=dtype)


@dataclass(frozen=True, kw_only=True)
class Arms(Swaps):
    """GT-7: the picture of all six arms. Rows as of ``Swaps``."""

    tiers: ClassVar = {"ci": CI, "cpu": CPU, "gpu": {}}


@dataclass(frozen=True, kw_only=True)
class Heads(Swaps):
    """GT-7.a, d, h, 7b.c: the two heads that they compare, blurred labels and the control, judged also before the last
    tenth of the steps, in networks that share no draw with ``Arms``. Rows as of ``Swaps``."""

    looks: tuple[float, ...] = (0.1, 0.9)

    arms: ClassVar = ("ce", "blurred", "shuffled", "scalar")
    shift: ClassVar = 1
    tiers: ClassVar = {
        "ci": CI,
        "cpu": {
            **CPU,
            "networks": 40,
            "steps": 1000,
            "rates": (6.3e-3, 1e-2, 1.6e-2, 2.5e-2, 4e-2, 6.3e-2),
            "search": 4,
        },
        "gpu": {},
    }


#: The rates that the search of ``Arms`` chose at tier ``cpu``, by system.
CHOSEN = {"lorenz": {"ce": 0.03, "scalar": 0.03}, "oscillators": {"ce": 0.03, "scalar": 0.03}}
CHOSEN |= {"waveforms": {"ce": 0.01, "scalar": 0.03}}


@dataclass(frozen=True, kw_only=True)
class Judges(Fits):
    """GT-7: the networks of ``Arms`` under hard labels and under squared error, at the rates that its search chose
    (``CHOSEN``), all judged together on one draw of paths and of their disturbance, and on another, many times.

    In ``Arms`` each pair has a draw of its own; here one sees what a common draw would have said. Rows: system, arm,
    draw, replicate, distortion.
    """

    draws: int = 24

    tiers: ClassVar = {"ci": {**CI, "draws": 3}, "cpu": CPU, "gpu": {}}

    def conditions(self) -> list[dict]:
        return [{"system": system, "arm": arm} for system in SYSTEMS for arm in ("ce", "scalar")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        system, arm = condition["system"], condition["arm"]
        each = {"system": system, "num": self.paths, "judged": self.judged, "length": self.length, "noise": 0.0}
        found = data(**each, networks=self.networks, seed=seed, role="fit")
        model = Arm(self, arm, found.values, "attention", False, seed=seed, role="fit", device=device, dtype=dtype)
        rates = torch.full((self.networks,), CHOSEN[system][arm], dtype=torch.float64)
        fit(model, found, steps=self.steps, batch=self.batch, rates=rates)
        seen = []
        for draw in range(self.draws):
            states = paths(system, self.judged, self.length, stream(seed, system, "judged", draw))
            clean = (states[..., 0] - found.low) / (found.high - found.low)
            with torch.no_grad():
                h = model.model(model.read(clean[None]))
            struck = disturbed(clean, stream(seed, system, "disturbance", draw))[:, None]
            seen.append(model.distortion(h, struck))
        return rows({"draw": range(self.draws), "replicate": range(self.networks)}, {"distortion": torch.stack(seen)})


@dataclass(frozen=True, kw_only=True)
class Order(Fits):
    """GT-7c, 7b.a, 7.f: Lorenz; what a blurred label changes, taken apart. Beside hard and blurred labels there are
    "smoothed" (as soft, no neighbours), "disordered" (blurred along a random order of the bins), "coarse" (hard labels
    as wide as the blur's standard deviation) and "coarser" (of about its entropy). GT-2: the pooled law on each of
    these networks.

    Rows: arm, and those of ``Fits``; at the end of each judged network also bias (share of J that is the mean square of
    a sequence's mean displacement), unbiased (the same where each displacement has a sign drawn at random: nothing is
    to be found), slope (of ln D in ln r over the shares of struck positions), law (D over the pooled law with this
    bias, geometric mean over the shares).
    """

    looks: tuple[float, ...] = (0.1, 0.3, 0.9)
    struck: int = 2000  # sequences on which the pooled law is tried
    strikes: int = 4  # single tokens struck in each of them

    tiers: ClassVar = {
        "ci": {**CI, "struck": 40},
        "cpu": {
            **CPU,
            "networks": 16,
            "steps": 1000,
            "rates": (0.01, 0.016, 0.025, 0.04, 0.063),
            "search": 4,
            "struck": 500,
        },
        "gpu": {},
    }

    def conditions(self) -> list[dict]:
        return [{"arm": arm} for arm in ("ce", "blurred", "smoothed", "coarse", "coarser", "disordered")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        looks = sorted({int(share * self.steps) for share in self.looks})
        return self.fitted(**condition, looks=looks, also=self.law, seed=seed, device=device, dtype=dtype)

    @torch.no_grad()
    def law(self, arm: Arm, found: Data) -> dict[str, Tensor]:
        """The pooled law of each network at the end: its terms from single tokens that are struck, D from shares."""
        R, n, L, q = len(arm.centres), self.struck, self.length, self.strikes
        states = [paths("lorenz", n, L, stream(arm.seed, "law", r)) for r in range(R)]
        x = (torch.stack(states)[..., 0] - found.low) / (found.high - found.low)  # (R, n, L)

        def pool(values: Tensor) -> Tensor:
            parts = arm.read(values).split(AT_ONCE, dim=1)
            return torch.cat([arm.model(part).mean(dim=2) for part in parts], dim=1).double().cpu()

        clean = pool(x)
        where = torch.rand(R, n, L, generator=stream(arm.seed, "law", "where")).argsort(dim=-1)[..., :q]
        shift = DISTURBANCE * torch.randn(R, n, q, generator=stream(arm.seed, "law", "shift"), dtype=x.dtype)
        ones = [pool(x.scatter_add(-1, where[..., [i]], shift[..., [i]])) - clean for i in range(q)]
        moved = L * torch.stack(ones)  # (q, R, n, p)
        J = moved.square().sum(dim=-1).mean(dim=(0, 2))
        both = moved.sum(dim=0).square().sum(dim=-1).mean(dim=1)  # q J + q (q - 1) bias
        V = clean.var(dim=1, correction=0).sum(dim=-1)
        noisy = zip(*(disturbed(each, stream(arm.seed, "law", "D", r)) for r, each in enumerate(x)), strict=True)
        D = torch.stack([procrustes_distortion(clean, pool(torch.stack(each))) for each in noisy])
        bias = (both / q - J) / (q - 1)
        sign = 1 - 2 * torch.randint(2, (q, R, n, 1), generator=stream(arm.seed, "law", "signs"))
        none = ((moved * sign).sum(dim=0).square().sum(dim=-1).mean(dim=1) / q - J) / (q - 1)
        over = torch.stack([d / pooled_law(r, L, J, V, bias) for d, r in zip(D, SHARES, strict=True)])
        r = torch.tensor(SHARES, dtype=D.dtype).log()
        slope = ((r - r.mean()).unsqueeze(-1) * D.log()).sum(dim=0) / (r - r.mean()).square().sum()
        return {"bias": bias / J, "unbiased": none / J, "slope": slope, "law": over.log().mean(dim=0).exp()}


@dataclass(frozen=True, kw_only=True)
class Blur(Fits):
    """GT-7b: Lorenz, labels blurred by more and more; blur 0 is the hard label.

    Rows: blurred (the width, a share of the range), and those of ``Fits``.
    """

    blurs: tuple[float, ...] = (0.0, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16)

    tiers: ClassVar = {
        "ci": {**CI, "blurs": (0.0, 0.1)},
        "cpu": {**SHORT, "blurs": (0.0, 0.005, 0.01, 0.04, 0.16)},
        "gpu": {},
    }

    def conditions(self) -> list[dict]:
        return [{"blurred": blur} for blur in self.blurs]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        blur = condition["blurred"]
        size = replace(self, blur=blur) if blur else self
        return size.fitted(arm="blurred" if blur else "ce", seed=seed, device=device, dtype=dtype)


@dataclass(frozen=True, kw_only=True)
class Encoders(Fits):
    """GT-9: Lorenz; three causal encoders, and the convolution whose short filters see the next token, under hard
    labels and under the squared error of the value, judged also before the last tenth of the steps.

    Rows: encoder, arm, and those of ``Fits``.
    """

    tiers: ClassVar = {
        "ci": CI,
        "cpu": {**SHORT, "networks": 24, "steps": 1000, "rates": (0.01, 0.016, 0.025, 0.04, 0.063, 0.1, 0.16)},
        "gpu": {},
    }
    looks: ClassVar[tuple[float, ...]] = (0.1, 0.9)

    def conditions(self) -> list[dict]:
        return [{"encoder": encoder, "arm": arm} for encoder in ENCODERS for arm in ("ce", "scalar")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        looks = sorted({int(share * self.steps) for share in self.looks})
        return self.fitted(**condition, looks=looks, seed=seed + 1, device=device, dtype=dtype)


@dataclass(frozen=True, kw_only=True)
class Causality(Experiment):
    """GT-9: how much the hidden state at a position moves when one later token is another, at random weights.

    Rows: encoder, instance, position (of the token that is changed); ahead (largest change of an earlier state),
    at (of the state at the position itself), bound (rounding: states are of order one).
    """

    instances: int = 20
    length: int = 24
    width: int = 16

    tiers: ClassVar = {"ci": {}, "cpu": {"instances": 100}, "gpu": {"instances": 400}}
    tiny: ClassVar = {"instances": 6}

    def conditions(self) -> list[dict]:
        return [{"encoder": encoder} for encoder in ENCODERS]

    @torch.no_grad()
    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        encoder, n, L = condition["encoder"], self.instances, self.length
        draws = Draws(num_networks=n, seed=seed, layer="causality", dtype=dtype, device=device)
        model = ENCODERS[encoder](Size(codes=10, outputs=1, length=L, width=self.width), draws)
        generator = stream(seed, "causality")
        tokens = torch.randint(10, (n, 1, L), generator=generator).to(device)
        position = torch.randint(1, L, (n,), generator=generator).to(device)
        other = tokens.clone()
        each = torch.arange(n, device=device)
        other[each, 0, position] = (tokens[each, 0, position] + 1) % 10
        moved = (model(tokens) - model(other)).abs().amax(dim=-1).squeeze(1)  # (n, L)
        before = torch.arange(L, device=device) < position.unsqueeze(-1)
        columns = {"position": position, "ahead": (moved * before).amax(dim=-1), "at": moved[each, position]}
        return rows({"instance": range(n)}, columns | {"bound": 64 * torch.finfo(dtype).eps})


# Claims: GT-7, GT-7b, GT-9: trained networks; criteria and expected verdicts were written before the run.
#
# A pilot with another seed and two networks for each arm had been seen; its rows were thrown away. An arm stands at
# the rate that its validation paths choose. Two arms are compared network by network: a pair has the same paths, first
# weights and batches, and its own draw of the paths that judge it. Ratios are geometric means over pairs.

CAUSAL = ("attention", "state", "convolution")


def over_cases(value: Callable[[pd.DataFrame, str], pd.Series], cases: Sequence[str], decides: Decides) -> Measure:
    """The mean over pairs of ``value(rows, case)`` in each case, all judged jointly, and the case that decides."""

    def measure(rows: pd.DataFrame) -> Estimate:
        level = 1 - (1 - LEVEL) / len(cases)
        return decides([stats.mean(value(rows, case), level) for case in cases])

    return measure


def times(one: str, other: str, cases: Sequence[str] = ("",), decides: Decides = lowest) -> Measure:
    """D of the first arm over that of the second, in the case that decides."""

    def logs(rows: pd.DataFrame, case: str) -> pd.Series:
        and_case = f" and {case}" if case else ""
        return np.log(judged(rows, one + and_case) / judged(rows, other + and_case))

    measure = over_cases(logs, cases, decides)
    return lambda rows: ratio(measure(rows))


def more_truth(rows: pd.DataFrame, case: str, arm: str = "scalar") -> pd.Series:
    """R^2 of the unobserved coordinates under the squared error, or in another arm, less that under hard labels."""
    one, hard = (judged(rows, f"arm == '{each}' and {case}", "hidden") for each in (arm, "ce"))
    return one - hard


def rise(rows: pd.DataFrame, other: str = "blurred") -> Estimate:
    """D at the end over D at the first look, under hard labels over the same under others, pair by pair, where both have
    learned."""
    for arm in ("ce", other):
        learned(rows, arm)

    def logs(arm: str) -> pd.Series:
        where = f"arm == '{arm}'"
        return np.log(judged(rows, where) / judged(rows, where, look=0))

    return ratio(stats.mean(logs("ce") - logs(other)))


def other_judges(rows: pd.DataFrame) -> Estimate:
    """The standard deviation between draws of the judged paths of ln D under hard labels over D under squared error,
    meaned over pairs, over the standard error that the pairs give it at one draw; the largest of the systems.

    The interval is that of a standard deviation of normal numbers; the error of the pairs, a mean over all draws, is
    taken as it is.
    """
    found = []
    for system in SYSTEMS:
        wide = np.log(chosen(rows, f"system == '{system}'").set_index(["draw", "replicate", "arm"])["distortion"])
        logs = (wide.xs("ce", level="arm") - wide.xs("scalar", level="arm")).unstack("replicate")
        draws, pairs = logs.shape
        if not np.isfinite(logs).all(axis=None):
            raise ValueError(f"{(~np.isfinite(logs)).sum(axis=None)} of {logs.size} ratios of {system} are not finite")
        moved = logs.mean(axis=1).std() / np.sqrt(logs.var(axis=1).mean() / pairs)
        tail = (1 - LEVEL) / len(SYSTEMS) / 2
        low, high = np.sqrt((draws - 1) / chi2.isf([tail, 1 - tail], draws - 1))
        found.append(Estimate(float(moved), draws, float(moved * low), float(moved * high)))
    return highest(found)


def farthest(rows: pd.DataFrame, arm: str, cases: int) -> Estimate:
    """ln of the largest factor between the mean D of two causal encoders, each pair judged at its share of ``cases``,
    where all three are flat."""
    for encoder in CAUSAL:
        flat(rows, f"encoder == '{encoder}' and arm == '{arm}'")
    logs = [np.log(judged(rows, f"encoder == '{encoder}' and arm == '{arm}'")) for encoder in CAUSAL]
    level = 1 - (1 - LEVEL) / cases
    pairs = [stats.mean(one - other, level) for one, other in combinations(logs, 2)]
    low = max(0.0, *(max(pair.low, -pair.high) for pair in pairs))
    return Estimate(max(abs(pair.value) for pair in pairs), pairs[0].n, low, max(max(-p.low, p.high) for p in pairs))


def encoders_differ(rows: pd.DataFrame) -> Estimate:
    """The largest over the smallest mean D of the causal encoders under the squared error."""
    return ratio(farthest(rows, "scalar", 3))


def more(one: Estimate, other: Estimate) -> Estimate:
    """One such factor over another, from intervals that hold jointly."""
    return ratio(Estimate(one.value - other.value, one.n, one.low - other.high, one.high - other.low))


def labels_differ_more(rows: pd.DataFrame) -> Estimate:
    """That factor under hard labels over the factor under the squared error."""
    return more(farthest(rows, "ce", 6), farthest(rows, "scalar", 6))


def halves_differ(rows: pd.DataFrame) -> Estimate:
    """That factor in every other network over the factor in the networks between, all under the squared error."""
    return more(*(farthest(chosen(rows, f"replicate % 2 == {half}"), "scalar", 6) for half in (0, 1)))


def flat(rows: pd.DataFrame, where: str) -> None:
    """ValueError unless networks end at a plateau: the last tenth of the steps takes at most 2 % of what their loss fell
    from the first look on."""
    loss = [judged(rows, where, "valid", look).mean() for look in (0, -2, -1)]
    if not loss[1] - loss[2] <= 0.02 * (loss[0] - loss[2]):
        raise ValueError(f"networks where {where} have not come to a plateau: their loss goes {loss}")


def learned(rows: pd.DataFrame, arm: str, case: str = "") -> None:
    """ValueError unless an arm is flat and finds the next value to within twice the error of hard labels, or twice what
    its own labels round off."""
    where = lambda each: f"arm == '{each}'" + (f" and {case}" if case else "")  # noqa: E731
    flat(rows, where(arm))
    missed, hard = (judged(rows, where(each), "rmse").mean() for each in (arm, "ce"))
    limit = 2 * max(hard, judged(rows, where(arm), "reconstruction").mean())
    if not missed <= limit:
        raise ValueError(f"{where(arm)} has not learned: it misses the next value by {missed}, more than {limit}")


def if_flat(measure: Measure, cases: Sequence[str], *arms: str) -> Measure:
    """The measure, where the arms, or hard labels and the squared error, are flat on each of the systems."""

    def judged_if(rows: pd.DataFrame) -> Estimate:
        for case in cases:
            for arm in arms or (HARD, SCALAR):
                flat(rows, f"{arm} and {case}")
        return measure(rows)

    return judged_if


def if_learned(measure: Measure, cases: Sequence[str], *arms: str) -> Measure:
    """The measure, where the arms have learned on each of the systems."""

    def judged_if(rows: pd.DataFrame) -> Estimate:
        for case in cases:
            for arm in arms:
                learned(rows, arm, case)
        return measure(rows)

    return judged_if


def once_learned(one: str, other: str) -> Measure:
    """D of the first arm over that of the second, where hard labels and both of them have learned."""

    def measure(rows: pd.DataFrame) -> Estimate:
        for arm in ("ce", one, other):
            learned(rows, arm)
        return times(f"arm == '{one}'", f"arm == '{other}'")(rows)

    return measure


def over_arms(column: str) -> Measure:
    """The mean of a column over all arms, network by network."""
    return lambda rows: stats.mean(chosen(rows, f"{column} == {column}").groupby("replicate")[column].mean())


def one_law(rows: pd.DataFrame) -> Estimate:
    """Measured over predicted D, where all arms are given the prediction for hard labels."""
    ends = chosen(rows, "law == law").set_index(["replicate", "arm"])
    hard = (ends["distortion"] / ends["law"]).xs("ce", level="arm")
    return stats.mean(ends["distortion"].div(hard, level="replicate").groupby("replicate").mean())


EACH = [f"system == '{system}'" for system in SYSTEMS]
FORESEEN = EACH[:2]  # those whose next value the networks find within a bin or two
HARD, BLURRED, SCALAR = "arm == 'ce'", "arm == 'blurred'", "arm == 'scalar'"
RENAMED = "arm == 'shuffled'"  # hard labels under other names: an arm that changes nothing (GT-3.a)
TRAINED = {"judged_at": RECORDED}
TIMES = {"unit": "times", **TRAINED}
PLATEAU = "flat in training (the last tenth of the steps takes at most 2 % of what their loss fell)"
FLAT, ALL_FLAT = f", both {PLATEAU}", f", all {PLATEAU}"
LEARNED, OF_THREE = ", where both have learned", ", the smallest of three systems"
SMALL = "small networks on generated paths stand in for the paper's"
SEARCHED = "four networks chose each rate, among six a factor of 1.6 apart"

CLAIMS = (
    statistic(
        "GT-7.a",
        "On each of three systems the published distortion $D$ is larger under hard labels with cross-entropy than under the squared error of the next value.",
        Heads,
        if_flat(times(HARD, SCALAR, EACH), EACH),
        "$D$ under hard labels over $D$ under squared error" + OF_THREE + FLAT,
        at_least(1),
        source="paper",
        where=f"abstract, which says up to 8.5 times and so less than this; {SMALL}; {SEARCHED}",
        **TIMES,
        comparison=("the same labels under other names", times(RENAMED, HARD, EACH)),
        control="labels that change nothing have the ratio one, the end of the range, which no number of networks decides",
    ),
    statistic(
        "GT-7.h",
        "On Lorenz paths the published distortion $D$ is larger under hard labels with cross-entropy than under the squared error of the next value.",
        Heads,
        if_flat(times(HARD, SCALAR, EACH[:1]), EACH[:1]),
        "$D$ under hard labels over $D$ under squared error" + FLAT,
        at_least(1),
        plain="Asked for a label in place of a number, the same network on the same tokens becomes more sensitive to noise.",
        source="paper",
        where=f"abstract: up to so many times, so that a smaller factor does not contradict it; GT-8.f has the largest that we saw; {SMALL}; {SEARCHED}",
        paper_value="up to 8.5 times",
        **TIMES,
        comparison=("the same labels under other names", times(RENAMED, HARD, EACH[:1])),
        control="labels that change nothing have the ratio one, the end of the range, which no number of networks decides",
    ),
    statistic(
        "GT-7.d",
        "On each of three systems a linear probe on held-out paths reads the unobserved coordinates better from states trained with the squared error of the next value than from those trained with hard labels.",
        Heads,
        if_flat(over_cases(more_truth, EACH, lowest), EACH),
        "$R^2$ under squared error less $R^2$ under hard labels" + OF_THREE + FLAT,
        at_least(0),
        unit="of the variance",
        where="a measure that knows the truth, which $D$ does not; the squared error is given the value before it was rounded, so part of the gain may be the finer target; "
        + SEARCHED,
        **TRAINED,
        comparison=(
            "the same labels under other names",
            over_cases(lambda rows, case: more_truth(rows, case, "shuffled"), EACH, lowest),
        ),
        control="labels that change nothing gain nothing, the end of the range, which no number of networks decides",
    ),
    statistic(
        "GT-7.f",
        "From a tenth of the steps to the end $D$ rises on Lorenz paths by a larger factor under hard labels than under blurred ones.",
        Order,
        rise,
        "rise of $D$ under hard labels over its rise under blurred ones" + LEARNED,
        at_least(1),
        where="what the staircase foretells as predictions sharpen; at a tenth of the steps the warm-up ends",
        **TIMES,
        comparison=("labels smoothed over all bins", lambda rows: rise(rows, "smoothed")),
        control="labels under other names are the idle arm, and GT-7.a judges them on the same system",
    ),
    statistic(
        "GT-7.g",
        "On each of three systems, if all pairs of networks are judged on one draw of paths and of their disturbance, another draw moves the ratio of GT-7.a by at most half of the standard error between pairs.",
        Judges,
        other_judges,
        "standard deviation between draws over standard error of the pairs, largest of three systems",
        at_most(0.5),
        unit="standard errors",
        where="at one half an interval that knew of other draws would be an eighth wider; since this fails, each pair of GT-7 to GT-9 is judged on a draw of its own",
        judged_at=RECORDED,
        control="The claim itself fails, on the design that this chapter first had.",
    ),
    statistic(
        "GT-7b.a",
        "On Lorenz paths hard labels have at least twice the distortion $D$ of blurred labels with the same tokens, softmax and cross-entropy.",
        Order,
        once_learned("ce", "blurred"),
        "$D$ under hard labels over $D$ under blurred ones" + LEARNED,
        at_least(2),
        plain="The same softmax on the same tokens distorts less than half as much when its labels are blurred over neighbouring bins.",
        where="against the paper's reading, which names tokenisation as the cause; a blurred label is softer and coarser as well, and GT-7c takes these apart",
        **TIMES,
        comparison=("hard over smoothed labels", once_learned("ce", "smoothed")),
        control="labels under other names are the idle arm, and GT-7.a judges them on the same system",
    ),
    statistic(
        "GT-7b.c",
        "On Lorenz paths and oscillators, whose next value small networks predict well, blurred labels bring $D$ to at most 1.4 times that of the squared error.",
        Heads,
        if_learned(times(BLURRED, SCALAR, FORESEEN, highest), FORESEEN, "blurred", "scalar"),
        "$D$ under blurred labels over $D$ under squared error, larger of two systems" + LEARNED,
        at_most(1.4),
        where=SEARCHED,
        **TIMES,
        control=times(RENAMED, SCALAR, FORESEEN, highest),
    ),
    refuted(
        "GT-7b.d",
        "On each of three systems, wave forms among them, blurred labels bring $D$ to at most 1.4 times that of the squared error.",
        Heads,
        if_flat(times(BLURRED, SCALAR, EACH, highest), EACH, BLURRED, SCALAR),
        "$D$ under blurred labels over $D$ under squared error, largest of three systems" + FLAT,
        at_most(1.4),
        where=SEARCHED,
        **TIMES,
    ),
    statistic(
        "GT-7c.a",
        "Softness without order buys little: on Lorenz paths hard labels that are smoothed over all bins alike, to the entropy of the blurred ones, have at least twice their distortion $D$.",
        Order,
        once_learned("smoothed", "blurred"),
        "$D$ under smoothed labels over $D$ under blurred ones" + LEARNED,
        at_least(2),
        where="what separates the softness of a label from its order",
        **TIMES,
        comparison=("hard over smoothed labels", once_learned("ce", "smoothed")),
        control="labels under other names are the idle arm, and GT-7.a judges them on the same system",
    ),
    statistic(
        "GT-7c.b",
        "Coarser bins take only a part of the tax: on Lorenz paths hard labels in sixteen bins, each as wide as one standard deviation of the blur, have at least 1.5 times the distortion $D$ of blurred ones on the same tokens.",
        Order,
        once_learned("coarse", "blurred"),
        "$D$ under hard labels of few bins over $D$ under blurred ones" + LEARNED,
        at_least(1.5),
        where="what separates the width of a label from its order",
        **TIMES,
        comparison=("hard over smoothed labels", once_learned("ce", "smoothed")),
        control="labels under other names are the idle arm, and GT-7.a judges them on the same system",
    ),
    statistic(
        "GT-7c.d",
        "On Lorenz paths hard labels in four bins, of about as much entropy as the blur, still have a larger distortion $D$ than blurred ones on the same tokens.",
        Order,
        once_learned("coarser", "blurred"),
        "$D$ under hard labels of four bins over $D$ under blurred ones" + LEARNED,
        at_least(1),
        where="by the staircase six bins have the length of the blur, so that four should have less",
        **TIMES,
        comparison=("hard over smoothed labels", once_learned("ce", "smoothed")),
        control="labels under other names are the idle arm, and GT-7.a judges them on the same system",
    ),
    statistic(
        "GT-2.d",
        "On average over six arms of trained encoders the distortion $D$ is that of the pooled law, with jump and bias measured by striking single tokens, and the spread on the same paths.",
        Order,
        over_arms("law"),
        "measured over predicted distortion, mean over six arms and four shares",
        within(1, 0.15),
        where="the criterion of GT-2.b; that displacements add is assumed, not proved, for a network; one of the six arms, of labels blurred along a random order, is hardly learned",
        unit="ratio",
        judged_at=RECORDED,
        control=one_law,
    ),
    statistic(
        "GT-2.e",
        "On average over six arms of trained encoders $D$ grows as the square root of the share of positions that noise strikes.",
        Order,
        over_arms("slope"),
        "slope of $\\ln D$ in $\\ln r$, mean over six arms",
        within(0.5, 0.1),
        where="a bias of a quarter of $J$ would bend the slope by 0.1 at the recorded length",
        unit="exponent",
        judged_at=RECORDED,
        control="Clouds that know nothing of one another have the slope zero, outside the range.",
    ),
    statistic(
        "GT-2.f",
        r"Under hard labels the struck tokens of a trained encoder displace its states in one direction by more than $J/51$ in mean square, on paths of the length on which it was trained.",
        Order,
        measure.mean("bias", "bias == bias and arm == 'ce'"),
        "mean square of the mean displacement over $J$",
        at_least(1 / 51, r"\frac1{51}"),
        where="$rL=51$ at the published length of 512 and the largest rate of 0.1: were it so there, the pooled law without a bias would predict too small a $D$; recorded on shorter paths",
        unit="of $J$",
        judged_at=RECORDED,
        control=measure.mean("unbiased", "bias == bias and arm == 'ce'"),
    ),
    statistic(
        "GT-9.a",
        "Under the squared error of the next value three causal encoders differ in $D$ by a factor of at most 1.3.",
        Encoders,
        encoders_differ,
        "largest $D$ of three encoders over the smallest" + ALL_FLAT,
        at_most(1.3),
        plain="With a continuous target it hardly matters which architecture one takes.",
        source="digest",
        where=f"abstract, of which the factor alone is known, not its systems nor its measure; {SMALL}",
        paper_value=Published(1.3, "times"),
        **TIMES,
        comparison=("hard labels", lambda rows: ratio(farthest(rows, "ce", 3))),
        control="an encoder over itself has the ratio one, and passes an upper limit",
    ),
    statistic(
        "GT-9.b",
        "Three causal encoders differ in $D$ by a larger factor under hard labels than under the squared error of the next value.",
        Encoders,
        labels_differ_more,
        "factor between the encoders under hard labels over that under squared error" + ALL_FLAT,
        at_least(1),
        source="paper",
        where=f"abstract; {SMALL}, Lorenz in place of mutation walks",
        paper_value="3,000 against 1.3 times",
        **TIMES,
        control=halves_differ,
    ),
    refuted(
        "GT-9.d",
        "The gated convolution with short filters as in the author's code is causal.",
        Causality,
        worst("ahead", where="encoder == 'leaking'"),
        "a later token that changes an earlier state, over rounding",
        at_most(1),
        source="repo",
        where="the short convolutions of the StripedHyena arm are padded on both sides",
        unit="of its rounding",
    ),
)


# Figures: Trained networks: rows in, a figure with its alt text as label out.
#
# mark                   meaning
# filled, open marker    recorded, live; bars are 99.9 % intervals over trained networks
# small points           single networks

ARM_NAMES = {
    "ce": "hard labels",
    "shuffled": "shuffled names",
    "blurred": "blurred labels",
    "codes": "random codes",
    "scalar": "the value",
    "untrained": "untrained",
}
CONTROLS = ("shuffled", "codes", "untrained")
SYSTEM_NAMES = {"lorenz": "Lorenz", "oscillators": "oscillators", "waveforms": "wave forms"}
ENCODER_NAMES = {
    "attention": "transformer",
    "state": "state space",
    "convolution": "convolution",
    "leaking": "with the leak",
}
COLOUR = dict(zip(ARM_NAMES, COLOURS, strict=True))
DISTORTION, TRUTH = "distortion $D$", "$R^2$, unobserved"


def finished(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """The judged networks at the end of their training."""
    last = rows[rows["stage"] == "fit"].sort_values("step")
    return last.groupby([*by, "replicate"], sort=False).last().reset_index()


def _networks(ax: Axes, x: float, values: pd.Series, color, recorded: bool) -> float:
    """Single networks beside each other, and their mean with its interval; returns the mean."""
    mean, reach = mean_and_reach(values)
    ax.plot(
        x + 0.16 * np.sin(np.arange(len(values)) * 2.4), values, ".", color=color, alpha=0.4, markersize=4, zorder=2
    )
    face = color if recorded else "none"
    ax.errorbar(x, mean, reach, fmt="o", color=color, markerfacecolor=face, capsize=3, zorder=3)
    return mean


def arms(rows: pd.DataFrame) -> Figure:
    """The published distortion of six arms on three systems; rows of ``Arms``."""
    figure, ax = plt.subplots(figsize=(5.4, 3.9))
    words = _by_arm(ax, rows, "distortion")
    _times(ax, rows)
    ax.set(xscale="log", xlabel="distortion $D$ (less is better)")
    plain_log(ax.xaxis, (0.03, 0.05, 0.1, 0.2, 0.5))
    figure.set_label(f"Distortion of six ways to train one encoder on three systems. {'; '.join(words)}.")
    return figure


def truth(rows: pd.DataFrame) -> Figure:
    """What a linear map reads of unobserved coordinates from the states of six arms; rows of ``Arms``."""
    figure, ax = plt.subplots(figsize=(5.4, 3.9))
    words = _by_arm(ax, rows, "hidden")
    ax.set_xlabel("$R^2$ of coordinates that no network saw (more is better)")
    figure.set_label(
        f"R squared of the unobserved coordinates, six ways to train on three systems. {'; '.join(words)}."
    )
    return figure


def _times(ax: Axes, rows: pd.DataFrame) -> None:
    """An arrow from the value to hard labels on the first system, with how many times as much that is."""
    means = finished(largest(rows), ["system", "arm"]).groupby(["system", "arm"])["distortion"].mean()["lorenz"]
    places = {label.get_text(): place for place, label in zip(ax.get_yticks(), ax.get_yticklabels(), strict=True)}
    low, high, place = means["scalar"], means["ce"], places[ARM_NAMES["ce"]] + 0.22
    ax.plot([low, low], [places[ARM_NAMES["scalar"]] + 0.22, place], ":", color=BLUE, linewidth=1)
    ax.annotate("", (0.93 * high, place), (low, place), arrowprops={"arrowstyle": "->", "color": BLUE})
    beside(ax, low, place, f"{high / low:.1f} times", BLUE, (5, -8), fontsize=9)


def _by_arm(ax: Axes, rows: pd.DataFrame, measure: str) -> list[str]:
    """A line for each arm with a dot for each system and small points for single networks, the first system's lowest
    distortion at the top, the controls below a thick line; returns the means in words."""
    table = finished(largest(rows), ["system", "arm"])
    order = table[table["system"] == "lorenz"].groupby("arm")["distortion"].mean().sort_values(ascending=False).index
    order = sorted(order, key=lambda arm: arm not in CONTROLS)  # the controls first, that is at the bottom
    face = {} if table["recorded"].iloc[0] else {"markerfacecolor": "none"}
    words = []
    for shift, color, (system, name) in zip((0.22, 0.0, -0.22), COLOURS, SYSTEM_NAMES.items(), strict=False):
        means = []
        for place, arm in enumerate(order):
            values = table[(table["system"] == system) & (table["arm"] == arm)][measure]
            mean, reach = mean_and_reach(values)
            ax.plot(values, [place + shift] * len(values), ".", color=color, alpha=0.3, markersize=5)
            ax.errorbar(
                mean, place + shift, xerr=reach, fmt="o", color=color, markersize=7, capsize=3, zorder=3, **face
            )
            means.append(f"{ARM_NAMES[arm]} {mean:.3f}")
        ax.plot([], [], "o", color=color, label=name)
        words.append(f"{name}: {', '.join(means)}")
    ax.set(yticks=range(len(order)), yticklabels=[ARM_NAMES[arm] for arm in order])
    ax.tick_params(axis="y", length=0)
    for place in range(1, len(order)):
        ax.axhline(
            place - 0.5, color=INK, **({"linewidth": 1} if place == len(CONTROLS) else {"linewidth": 0.3, "alpha": 0.4})
        )
    ax.annotate("controls", (1, len(CONTROLS) - 0.55), xycoords=("axes fraction", "data"), ha="right", va="top")
    ax.legend(loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=3)
    return words


def learning(rows: pd.DataFrame) -> Figure:
    """The distortion during training on Lorenz paths, against steps and against the error of prediction; ``Arms``."""
    table = largest(rows)
    table = table[(table["stage"] == "fit") & (table["system"] == "lorenz") & (table["arm"] != "untrained")]
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.3), sharey=True)
    curves = table.groupby(["arm", "step"])[["distortion", "rmse"]].mean()
    ends = {arm: curves.loc[arm]["distortion"].iloc[-1] for arm in ARM_NAMES if arm != "untrained"}
    places = dict(zip(ends, apart([*ends.values()], 0.06 * curves["distortion"].max()), strict=True))
    steps = table["step"].max()
    for arm, place in places.items():
        curve, color = curves.loc[arm], COLOUR[arm]
        axes[0].plot(curve.index, curve["distortion"], "o-", color=color, markersize=3)
        for _, one in table[table["arm"] == arm].groupby("replicate"):
            axes[0].plot(one["step"], one["distortion"], color=color, alpha=0.15, linewidth=0.7)
        axes[1].plot(curve["rmse"], curve["distortion"], "-", color=color)
        axes[1].plot(curve["rmse"].iloc[-1], curve["distortion"].iloc[-1], "o", color=color)
        beside(axes[0], steps, place, ARM_NAMES[arm], color, fontsize=8)
    axes[0].set(xlabel="training step", ylabel=DISTORTION, xlim=(0, 1.42 * steps), ylim=(0, None))
    axes[1].set(xlabel="error of the next value, share of the range", xscale="log")
    axes[1].invert_xaxis()
    panel_label(axes[1], "from a tenth of the training to its end (dot)")
    said = ", ".join(
        f"{ARM_NAMES[arm]} {curves.loc[arm]['distortion'].iloc[0]:.2g} to {end:.2g}" for arm, end in ends.items()
    )
    figure.set_label(f"Distortion on Lorenz paths from a tenth of the training to its end: {said}.")
    return figure


def blur(rows: pd.DataFrame) -> Figure:
    """The distortion and the truth found, against the width of the labels; rows of ``Blur``."""
    table = finished(largest(rows), ["blurred"])
    recorded, widths = bool(table["recorded"].iloc[0]), sorted(table["blurred"].unique())
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.1))
    for ax, column, label in zip(axes, ("distortion", "hidden"), (DISTORTION, TRUTH), strict=True):
        for x, width in enumerate(widths):
            _networks(ax, x, table[table["blurred"] == width][column], COLOURS[0 if width == 0 else 2], recorded)
        ax.set_xticks(range(len(widths)), ["hard", *(f"{100 * width:g} %" for width in widths[1:])])
        ax.set(xlabel="blur of a label, share of the range", ylabel=label)
    axes[0].set_ylim(0, None)
    means = table.groupby("blurred")["distortion"].mean()
    said = ", ".join(f"{'hard' if width == 0 else f'{100 * width:g} %'} {mean:.2g}" for width, mean in means.items())
    figure.set_label(f"Distortion against the blur of a label: {said}.")
    return figure


def encoders(rows: pd.DataFrame) -> Figure:
    """The distortion, and the error of prediction that shows the leak, for four encoders; rows of ``Encoders``."""
    table = finished(largest(rows), ["encoder", "arm"])
    recorded, words = bool(table["recorded"].iloc[0]), []
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.4))
    for ax, column in zip(axes, ("distortion", "rmse"), strict=True):
        for x, (encoder, name) in enumerate(ENCODER_NAMES.items()):
            for arm, shift in (("ce", -0.15), ("scalar", 0.15)):
                part = table[(table["encoder"] == encoder) & (table["arm"] == arm)]
                mean = _networks(ax, x + shift, part[column], COLOUR[arm], recorded)
                if column == "distortion":
                    words.append(f"{name}, {ARM_NAMES[arm]} {mean:.2g}")
        ax.set_xticks(range(len(ENCODER_NAMES)), ENCODER_NAMES.values(), rotation=25, ha="right", fontsize=8)
        ax.set_xlabel("encoder")
    axes[0].set(ylabel=DISTORTION, ylim=(0, None))
    each = table.groupby(["encoder", "arm"])["distortion"].mean().unstack().eval("ce / scalar")
    panel_label(axes[0], f"In each encoder hard labels distort\n{each.min():.1f} to {each.max():.1f} times as much")
    axes[1].set(ylabel="error of the next value", yscale="log")
    low, high = table["rmse"].min(), table["rmse"].max()
    plain_log(
        axes[1].yaxis, [tick for tick in (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5) if low / 2 < tick < 2 * high]
    )
    for arm in ("ce", "scalar"):
        axes[0].plot([], [], "o", color=COLOUR[arm], label=ARM_NAMES[arm])
    axes[0].legend(fontsize=8)
    figure.set_label(f"Distortion by encoder and by what it is asked for: {'; '.join(words)}.")
    return figure
