"""What the tests of several topics share: tables of all combinations, and the check of one figure."""

import matplotlib
import pandas as pd
import pytest

matplotlib.use("agg")


@pytest.fixture(scope="session")
def grid():
    """All combinations of the given values, as live rows."""

    def table(**axes) -> pd.DataFrame:
        rows = pd.MultiIndex.from_product(axes.values(), names=axes).to_frame(index=False)
        return rows.assign(tier="ci", recorded=False)

    return table
