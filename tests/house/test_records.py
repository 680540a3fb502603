"""No record could go stale unseen: its own ci rows with other numbers in them are noticed."""

import importlib

import numpy as np
import pandas as pd
import pytest

from derived.lab.experiment import Experiment
from derived.lab.record import Record, load, results_root
from derived.lab.study import Study, staleness

# Of these every float is what a clock says (seconds; the units of their claims are ratios of times).
CLOCKS = {("cactus", "SamplerTime"), ("hierarchical_kernel", "Overhead")}
RECORDED = sorted(path.parts[-4:-1] for path in results_root().glob("*/*/*/record.json"))


def recorded(slug: str, name: str, tier: str) -> tuple[tuple, type[Experiment], Record]:
    module = importlib.import_module(f"derived.papers.{slug}.claims")
    experiment = {each.__name__: each for each in module.EXPERIMENTS}[name]
    return module.CLAIMS, experiment, load(experiment, tier)


@pytest.mark.parametrize("place", RECORDED, ids="/".join)
def test_other_numbers_at_tier_ci_make_a_record_stale(place):
    claims, experiment, record = recorded(*place)

    def reasons(live: pd.DataFrame) -> list[str] | None:
        return staleness(claims, Study(experiment, "ci", record.seed, "cpu", live, {}), record)

    then = record.ci_rows
    floats = then.select_dtypes("float").columns
    assert reasons(then) == []
    for factor in (1000, np.nan):
        noticed = bool(reasons(then.assign(**{name: then[name] * factor for name in floats})))
        assert noticed == (len(floats) > 0 and place[:2] not in CLOCKS), factor
    integers = then.select_dtypes("integer").columns
    assert reasons(then.assign(**{name: then[name] + 1 for name in integers})), "a clock's integers are compared, too"
