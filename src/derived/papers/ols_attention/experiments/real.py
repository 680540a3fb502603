"""A real shift: a layer made from some years of the S&P 500 reads the quarters after them (OLS-8).

error   distance from the prediction of the frozen least-squares coefficients, relative
growth  second moment of the quarter's tokens over that of the years that the layer was made from
"""

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import torch
from torch.linalg import matrix_norm as norm

from derived.lab.experiment import Experiment, rows

from ..data.market import absolute_returns
from ..model import theory
from ..model.mechanism import OLSTransformer


@dataclass(frozen=True, kw_only=True)
class Quarters(Experiment):
    """OLS-8: absolute returns of five days predict the next one; the layer is made from the first thousand days.

    ``self``: the quarter attends to itself · ``cross``: it attends to the thousand days · ``refit``: the least-squares
    fit of the quarter itself, for scale.
    """

    needs: ClassVar = ("arch",)

    lags: int = 5
    training: int = 1000
    quarter: int = 63

    tiers: ClassVar = {"ci": {}, "cpu": {}}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        days, changes = absolute_returns()
        series = torch.tensor(changes, dtype=dtype)
        tokens = series.unfold(0, self.lags, 1)[:-1]
        responses = series[self.lags :].unsqueeze(-1)
        X, Y = tokens[: self.training], responses[: self.training]
        layer, B = OLSTransformer.from_data(X, Y), theory.ols_coefficients(X, Y, method="qr")
        last = range(self.training, len(tokens) - self.quarter + 1, self.quarter)
        tables = []
        for first in last:
            fresh, right = tokens[first : first + self.quarter], responses[first : first + self.quarter]
            target = fresh @ B
            refit = fresh @ theory.ols_coefficients(fresh, right, method="qr")
            predictions = {"self": layer(fresh), "cross": layer(fresh, context=X), "refit": refit}
            error = torch.stack([norm(each - target) / norm(target) for each in predictions.values()])
            growth = fresh.square().mean() / X.square().mean()
            until = days[first + self.quarter + self.lags - 1]
            found = rows({"method": [*predictions]}, {"error": error, "growth": float(growth)})
            tables.append(found.assign(quarter=len(tables), until=f"{until:%Y-%m}"))
        return pd.concat(tables, ignore_index=True)
