"""Daily returns of the S&P 500, from the package ``arch`` (``make real``)."""

import numpy as np
import pandas as pd
from jaxtyping import Float

from derived.lab.real.pinned import path


def absolute_returns() -> tuple[pd.DatetimeIndex, Float[np.ndarray, "T"]]:
    """Days, and the absolute change of the logarithm of the closing price since the day before, in percent."""
    (file,) = (path("arch") / "arch/data/sp500").glob("*.csv.gz")
    prices = pd.read_csv(file, index_col=0, parse_dates=True)["Adj Close"]
    changes = 100 * np.log(prices).diff().abs().dropna()
    return changes.index, changes.to_numpy()
