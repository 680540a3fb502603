"""The window of small alpha: rows and measures of SP-14."""

import numpy as np
import pandas as pd
import pytest

from derived.papers.signal_propagation import window
from derived.papers.signal_propagation.window import Window

CLAIMS = {claim.id: claim for claim in window.CLAIMS}
EXPERIMENTS = (Window,)


def test_window_rows_stay_between_bounds_that_meet_at_small_alpha(rows):
    table = rows[Window]
    assert (table["low"] < table["high"]).all()
    start = table[table["b"] == 1]
    np.testing.assert_allclose(start["low"], start["high"], rtol=3 * 0.05**2 * start["q"].max())  # 1 - 2 alpha^2 q


def test_window_rate_is_the_smallest_inside_the_window():
    rows = pd.DataFrame({"alpha": 0.1, "q": [0.1, 0.4, 0.6], "log_J": [0.99, 0.97, 0.5], "high": 1.0})
    assert CLAIMS["SP-14.b"].measure(rows).value == pytest.approx(0.97)


def test_crossover_is_read_at_the_smallest_alpha():
    rows = pd.DataFrame({"alpha": [0.1, 0.05, 0.05], "crossover": [30, 22, 22], "predicted": [10.0, 20.0, 20.0]})
    assert window.crossover(rows).value == pytest.approx(1.1)
