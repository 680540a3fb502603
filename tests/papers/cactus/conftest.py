"""What the tests of several topics share: tables of all combinations, and the check of one figure."""

import matplotlib
import matplotlib.pyplot as plt
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


@pytest.fixture
def tells():
    """Axes are named, there is no title, and the alt text has these words and no formula."""

    def check(figure, *words: str) -> None:
        alt = figure.get_label()
        for word in words:
            assert word in alt
        assert "$" not in alt
        assert "nan" not in alt.split()
        drawn = [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]
        assert all(ax.get_xlabel() for ax in drawn)
        assert not any(ax.get_title() for ax in figure.axes)

    yield check
    plt.close("all")
