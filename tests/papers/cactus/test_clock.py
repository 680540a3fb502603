"""Topic clock: the rows of the sampler's own time."""

import pytest

from derived.papers.cactus.experiments.clock import SamplerTime

EXPERIMENTS = (SamplerTime,)
SMALL = {SamplerTime: {"sizes": (20,), "repeats": 3}}
COLUMNS = {SamplerTime: {"B", "V", "repeat", "exact", "cactus", "tas", "rows"}}


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda one: one.__name__)
def test_rows_have_the_promised_columns_and_no_failure(rows, experiment):
    table = rows[experiment]
    assert "failure" not in table.columns
    assert COLUMNS[experiment] <= set(table.columns)
    assert set(experiment.deterministic) <= set(table.columns)
    assert not table.select_dtypes("number").isna().any(axis=None)
