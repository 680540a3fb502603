"""What the trained topics share: R small models side by side, the rate that validation chooses, measures by model.

symbol   name       meaning                                                                             axes
R        networks   independently initialised models, each with separate texts; a replicate is one    leading axis

All arms read the same texts at every rate, from the same initial weights, with as many parameters as the largest arm.
``valid`` chooses the rate of an arm, ``test`` is judged, and two arms are compared model by model.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import pandas as pd
import torch
from matplotlib.axes import Axes
from torch import Tensor, nn

from derived.lab import stats, training
from derived.lab.experiment import Experiment
from derived.lab.measure import Measure, chosen, lowest
from derived.lab.nets import Draws
from derived.lab.plot import mean_and_reach
from derived.lab.stats import LEVEL

from .model.network import Memory, Size, SmallLM

RATES = (3e-3, 1e-2, 3e-2, 1e-1)
FINE = (6.3e-3, 1e-2, 1.6e-2)  # a factor of 1.6 apart, around the best of these
PLATEAU = 0.01  # what the last tenth of the steps may take off a loss, or add to a recall
CI = {"networks": 2, "rates": (1e-2,), "steps": 3, "batch": 2, "length": 32, "width": 8, "inner": 12, "heads": 1}
CI |= {"window": 4, "chunk": 4, "judged": 2}
CPU = {"networks": 8, "batch": 4, "length": 64, "width": 32, "inner": 96, "heads": 2, "window": 8, "chunk": 8}
CPU |= {"judged": 64}
SHORT = CPU | {"length": 40, "window": 4, "chunk": 4, "vocabulary": 6, "final": 8}


@dataclass(frozen=True, kw_only=True)
class Trained(Experiment):
    """What the runs share; a condition is an arm at a rate."""

    networks: int = 16
    rates: tuple[float, ...] = RATES
    steps: int = 2000
    batch: int = 32
    length: int = 512
    width: int = 128
    inner: int = 384
    heads: int = 4
    window: int = 32
    chunk: int = 16
    judged: int = 256  # texts to validate, and as many to test

    dtype: ClassVar = torch.float32

    def size(self, vocabulary: int, depth: int, memories: Mapping[int, Memory], **facts) -> Size:
        sizes = {"width": self.width, "inner": self.inner, "heads": self.heads, "window": self.window}
        return Size(vocabulary, depth=depth, memories=memories, **{**sizes, **facts})

    def own(self, texts: Tensor) -> Tensor:
        """Texts for all networks, one after another (R B, ...), as each network's own: (R, B, ...)."""
        return texts.unflatten(0, (self.networks, -1))


def build(size: Size, networks: int, seed: int, device, dtype) -> SmallLM:
    """Fresh models; arms of one seed share every weight that they both have."""
    return SmallLM(size, Draws(num_networks=networks, seed=seed, layer="layer", dtype=dtype, device=device))


def as_many_parameters(size: Size, as_in: Size) -> Size:
    """The size with the inner width that brings its parameters nearest to those of another."""
    one, two = (SmallLM(each, Draws()).parameters_each for each in (size, as_in))
    return replace(size, inner=size.inner + round((two - one) / (3 * size.width * size.depth)))


def fit(model: nn.Module, loss: Callable[[int], Tensor], *, steps: int, rate: float) -> Tensor:
    """AdamW with warm-up for a tenth of the steps, then a cosine to zero: the loss before each step, (R, steps).

    Nothing is clipped, since a norm over all models would let them interact.
    """
    optimiser = training.adamw(model, betas=(0.9, 0.98), weight_decay=0.01)

    def at(step: int) -> float:
        return rate * min(1.0, 10 * (step + 1) / steps) * 0.5 * (1 + math.cos(math.pi * step / steps))

    return training.train(loss, optimiser, steps=steps, rate=at)


def ends_of(losses: Tensor) -> dict[str, Tensor]:
    """The mean training loss (R,) of the last tenth of the steps (late) and of the tenth before it (before)."""
    tenth = max(1, losses.shape[-1] // 10)
    return {"late": losses[:, -tenth:].mean(dim=-1), "before": losses[:, -2 * tenth : -tenth].mean(dim=-1)}


# Measures -------------------------------------------------------------------------------------------------------------


def best_rate(rows: pd.DataFrame, arm: str, better: str = "max") -> float:
    """The rate of an arm's best mean ``valid``, the largest if several have it; none at which a model diverged.
    ValueError where no rate is left."""
    scores = chosen(rows, arm).groupby("rate")["valid"].agg(lambda each: each.mean(skipna=False)).dropna()[::-1]
    if scores.empty:
        raise ValueError(f"at every rate a model diverged where {arm}")
    return scores.idxmax() if better == "max" else scores.idxmin()


def at_best_rate(rows: pd.DataFrame, arm: str, better: str = "max") -> pd.DataFrame:
    """The rows of an arm at its best rate, one a model: the last, where a model has several."""
    best = chosen(rows, f"({arm}) and rate == {best_rate(rows, arm, better)}")
    return best.groupby("replicate").last(skipna=False)  # the last number of each column, and not the last before NaN


def at_chosen_rate(rows: pd.DataFrame, arms: Sequence[str], better: str) -> pd.DataFrame:
    """The rows of each arm at its ``best_rate``."""
    parts = [part for _, part in rows.groupby(list(arms), sort=False)]
    return pd.concat([part[part["rate"] == best_rate(part, "", better)] for part in parts], ignore_index=True)


def mean_of(arms: Sequence[str], column: str, decides) -> Measure:
    """The mean of a column over the models of each arm, and the arm that decides; recall chooses the rate."""

    def measure(rows: pd.DataFrame):
        level = 1 - (1 - LEVEL) / len(arms)
        return decides([stats.mean(at_best_rate(rows, arm)[column], level) for arm in arms])

    return measure


def least_difference(pairs: Sequence[tuple[str, str]], column: str = "test", better: str = "min") -> Measure:
    """The mean of the first arm less that of the second, model by model, in the pair where it is least."""

    def measure(rows: pd.DataFrame):
        level, found = 1 - (1 - LEVEL) / len(pairs), []
        for one, other in pairs:
            first, second = (at_best_rate(rows, arm, better)[column] for arm in (one, other))
            found.append(stats.mean(first - second, level))
        return lowest(found)

    return measure


def lost_when_off(on: str, without: str, column: str, better: str) -> Measure:
    """What a trained memory loses when it is switched off as it is read, less half of what it gains over the arm
    without one, model by model, in units of the column: above 0, more than half of the gain is read from the text."""

    def measure(rows: pd.DataFrame):
        with_it, none = (at_best_rate(rows, arm, better) for arm in (on, without))
        sign = 1 if better == "max" else -1
        return stats.mean(sign * (with_it[column] - with_it["off"] - (with_it[column] - none[column]) / 2))

    return measure


def if_flat(measure: Measure, *arms: str) -> Measure:
    """The measure; ValueError unless each of its arms is flat in training: the last tenth of the steps may take PLATEAU
    at most off its mean training loss."""

    def judged(rows: pd.DataFrame):
        for arm in arms:
            last = at_best_rate(rows, arm, "min")
            fall = (last["before"] - last["late"]).mean(skipna=False)
            if not fall <= PLATEAU:
                raise ValueError(f"{arm} is not at a plateau: the last tenth of the steps took {fall:.3f} off its loss")
        return measure(rows)

    return judged


def single_models(ax: Axes, x: float, values: pd.Series, color: str, recorded: bool) -> float:
    """Single models beside each other, and their mean with its interval; returns the mean."""
    mean, reach = mean_and_reach(values)
    ax.plot([x] * len(values), values, ".", color=color, alpha=0.4, markersize=4, zorder=2)
    face = color if recorded else "none"
    ax.errorbar(x, mean, reach, fmt="o", color=color, markerfacecolor=face, capsize=3, zorder=3)
    return mean


# What the claims of the trained topics share
PAIRED = "difference model by model, each arm at the rate that validation chose, {}"
FLAT = ", each arm flat in training (the last tenth of the steps lowers its loss by at most 0.01)"
