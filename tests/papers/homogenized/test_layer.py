"""One layer: its experiments and"""

import numpy as np
import pandas as pd
import pytest

from derived.papers.homogenized.claims.layer import halving
from derived.papers.homogenized.experiments.layer import HeadMoments, OneLayer, OneToken

EXPERIMENTS = (OneToken, HeadMoments, OneLayer)


COLUMNS = {
    OneToken: {"d", "h", "degree", "rate", "exact", "error"},
    HeadMoments: {"tokens", "replicate", "quantity", "value", "target"},
    OneLayer: {"tokens", "replicate", "pair", "drift", "drift_theory", "bracket", "retold"},
}


def test_rows_have_the_promised_columns_and_no_failure(rows, complete):
    complete(rows, COLUMNS)


def test_halving_finds_first_and_rejects_second_order():
    h = np.array([0.04, 0.02, 0.01])
    table = pd.DataFrame({"h": h, "d": 3, "degree": 1})
    assert halving(table.assign(error=-0.3 * h)).tolist() == pytest.approx([2, 2])
    assert halving(table.assign(error=h**2)).tolist() == pytest.approx([4, 4])
