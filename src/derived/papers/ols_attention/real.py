"""Real shifts: a layer made from some years of the S&P 500 reads the quarters after them, and one made from the
speeches of one era reads those of the next (OLS-8).

error   distance from the prediction of the frozen least-squares coefficients, relative
growth  second moment of the quarter's tokens over that of the years that the layer was made from
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.linalg import matrix_norm as norm

from derived.lab import measure
from derived.lab.claims import RECORDED, at_least, computed, statistic
from derived.lab.experiment import Experiment, rows
from derived.lab.real import models
from derived.lab.rng import stream
from derived.lab.stats import Estimate

from .data.market import absolute_returns
from .data.sentences import speeches, vectors
from .model import theory
from .model.mechanism import OLSTransformer


@dataclass(frozen=True, kw_only=True)
class Quarters(Experiment):
    """OLS-8: absolute returns of five days predict the next one; the layer is made from the first thousand days.

    ``self``: the quarter attends to itself · ``cross``: it attends to the thousand days · ``refit``: the least-squares
    fit of the quarter itself, for scale. In the order "days" the days are dealt to their places by chance; in the order
    "windows" each keeps the five before it, so that bursts stay and years are mixed; in the order "responses" the days
    stay and what they are to predict is dealt by chance.
    """

    needs: ClassVar = ("arch",)

    lags: int = 5
    training: int = 1000
    quarter: int = 63

    tiers: ClassVar = {"ci": {}, "cpu": {}}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        days, changes = absolute_returns()
        series = torch.tensor(changes, dtype=dtype)
        dealt = torch.randperm(len(series), generator=stream(seed, "dealt to quarters"))
        tables = {
            "in order": self._quarters(*self._windows(series)),
            "days": self._quarters(*self._windows(series[dealt])),
        }
        tokens, responses = self._windows(series)
        kept = dealt[dealt < len(tokens)]
        tables["windows"] = self._quarters(tokens[kept], responses[kept])
        any_day = torch.randperm(len(responses), generator=stream(seed, "dealt responses"))
        tables["responses"] = self._quarters(tokens, responses[any_day])
        ends = range(self.training + self.quarter + self.lags - 1, len(days), self.quarter)
        until = tables["in order"]["quarter"].map(lambda quarter: f"{days[ends[quarter]]:%Y-%m}")
        found = [table.assign(order=order, until=until) for order, table in tables.items()]
        return pd.concat(found, ignore_index=True)

    def _windows(self, series: Tensor) -> tuple[Tensor, Tensor]:
        return series.unfold(0, self.lags, 1)[:-1], series[self.lags :].unsqueeze(-1)

    def _quarters(self, tokens: Tensor, responses: Tensor) -> pd.DataFrame:
        X, Y = tokens[: self.training], responses[: self.training]
        layer, B = OLSTransformer.from_data(X, Y), theory.ols_coefficients(X, Y, method="full rank")
        tables = []
        for first in range(self.training, len(tokens) - self.quarter + 1, self.quarter):
            fresh, right = tokens[first : first + self.quarter], responses[first : first + self.quarter]
            target = fresh @ B
            refit = fresh @ theory.ols_coefficients(fresh, right, method="full rank")
            predictions = {"self": layer(fresh), "cross": layer(fresh, context=X), "refit": refit}
            error = torch.stack([norm(each - target) / norm(target) for each in predictions.values()])
            growth = fresh.square().mean() / X.square().mean()
            found = rows({"method": [*predictions]}, {"error": error, "growth": float(growth)})
            tables.append(found.assign(quarter=len(tables)))
        return pd.concat(tables, ignore_index=True)


@dataclass(frozen=True, kw_only=True)
class Eras(Experiment):
    """OLS-8: the vector of a sentence predicts that of the next, and a speech attends to itself. The layer that reads
    it is made from the speeches of the era before (frozen) or of its own era (refitted), by other speakers in both.

    Tokens are the vectors of a trained model of sentences on the first p principal axes of all. In the order
    "shuffled" the same speeches are dealt to the eras by chance. Rows: order, place, name, year, era, frozen and
    refitted (the errors of the two layers on the speech).
    """

    model: str = "minilm"
    folder: str = ""  # texts of one's own in place of the speeches, by time
    eras: int = 16
    per_era: int = 14
    sentences: int = 64
    p: int = 16

    needs: ClassVar = ("minilm", "stdlib")
    tiers: ClassVar = {"ci": {"eras": 2, "per_era": 8, "sentences": 32}, "cpu": {}}
    tiny: ClassVar = {"per_era": 3, "sentences": 8, "p": 4}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        reader, found = models.load(self.model), speeches(self.eras * self.per_era, self.folder)
        read = [vectors(reader, text, self.sentences + 1).to(dtype) for *_, text in found]
        axes = torch.linalg.svd(torch.cat(read), full_matrices=False).Vh[: self.p]
        tokens = [each @ axes.mT for each in read]
        in_order = np.repeat(np.arange(self.eras), self.per_era)
        dealt = in_order[torch.randperm(len(found), generator=stream(seed, "dealt to eras")).numpy()]
        names, years, _ = zip(*found, strict=True)
        tables = []
        for order, era in (("in order", in_order), ("shuffled", dealt)):
            later = np.flatnonzero(era > 0)
            error = np.array([errors(tokens, era, np.array(names), place) for place in later])
            index = {
                ("place", "name", "year", "era"): (later, *(np.array(each)[later] for each in (names, years, era)))
            }
            table = rows(index, {"frozen": error[:, 0], "refitted": error[:, 1]})
            tables.append(table.assign(order=order))
        return pd.concat(tables, ignore_index=True)


def errors(tokens: list[Tensor], era: np.ndarray, names: np.ndarray, place: int) -> tuple[float, float]:
    """The errors on one speech of two layers made from other speakers': from the era before, and from its own."""
    others = names != names[place]
    return tuple(
        _error(tokens[place], [tokens[other] for other in np.flatnonzero(others & (era == which))])
        for which in (era[place] - 1, era[place])
    )


def _error(speech: Tensor, others: list[Tensor]) -> float:
    X, Y = (torch.cat(part) for part in zip(*((each[:-1], each[1:]) for each in others), strict=True))
    fresh = speech[:-1]
    target = fresh @ theory.ols_coefficients(X, Y, method="full rank")
    return float(norm(OLSTransformer.from_data(X, Y)(fresh) - target) / norm(target))


# Claims: The ledger of real data and weights: a layer made from one stretch of time reads the next (OLS-8).


def told_by_moment(order: str) -> measure.Measure:
    """The rank correlation over quarters of the layer's error with |c^2 - 1|, c^2 the growth of the second moment."""

    def correlation(rows: pd.DataFrame) -> Estimate:
        some = measure.chosen(rows, f"method == 'self' and order == '{order}'")
        change = measure.values(some, "abs(growth - 1)")
        return Estimate(float(measure.values(some, "error").corr(change, method="spearman")), len(some))

    return correlation


def times_as_far_off(order: str) -> measure.Measure:
    """The frozen layer's error over the refitted one's: geometric mean over eras."""
    logs = measure.mean("log(frozen / refitted)", f"order == '{order}'", unit=["era"])

    def ratio(rows: pd.DataFrame) -> Estimate:
        found = logs(rows)
        value, low, high = (float(np.exp(each)) for each in (found.value, found.low, found.high))
        return replace(found, value=value, low=low, high=high, error=None)

    return ratio


CLAIMS = (
    computed(
        "OLS-8.b",
        "A layer made from a thousand days of the S&P 500 to forecast absolute returns reads one later quarter at a time: the "
        "more the second moment has changed, $|c^2-1|$, the farther off it is.",
        Quarters,
        told_by_moment("in order"),
        "rank correlation over quarters of the error of the layer that attends to the quarter with $|c^2-1|$",
        at_least(0.9),
        control=told_by_moment("windows"),  # bursts and years mixed: a quarter is a small batch
        where="OLS-6.a on data: a layer made from responses dealt by chance passes, too; one path, whose quarters are not independent",
        unit="rank correlation",
        made_of="real data",
    ),
    statistic(
        "OLS-8.c",
        "A layer made from vectors of sentences, by a trained MiniLM, in fourteen State of the Union speeches in a row reads a "
        "speech of the fourteen after them: its relative error is at least a tenth larger than that of a layer made from "
        "those fourteen, each against its own least-squares coefficients.",
        Eras,
        times_as_far_off("in order"),
        "error of frozen over that of refitted weights, geometric mean, by era of fourteen speeches, each of which has one "
        "frozen layer",
        at_least(1.1),
        control=times_as_far_off("shuffled"),  # speeches dealt to the eras by chance
        where="OLS-6.a on trained vectors, 16 principal axes; a pilot on six novels fixed the sizes but for the eras; neither "
        "layer sees another speech of the same president, and there are no more speeches",
        unit="ratio of errors",
        judged_at=RECORDED,
        made_of="real weights",
    ),
)
