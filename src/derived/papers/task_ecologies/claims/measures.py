"""What measures of several topics share: a comparison that does not pass over a missing number."""

from collections.abc import Callable

import pandas as pd


def told(comparison: str, *columns: str) -> Callable[[pd.DataFrame], pd.Series]:
    """1 where a comparison of these columns is true and 0 where it is not; NaN where a number is missing, for which
    pandas would say that it is not."""

    def value(rows: pd.DataFrame) -> pd.Series:
        found = rows.eval(comparison, engine="python").astype(float)
        return found.where(rows[list(columns)].notna().all(axis="columns"))

    return value
