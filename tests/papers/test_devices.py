"""Experiments with a tier gpu on a device that is not the CPU: a tensor left behind raises, and rows are the CPU's.

One condition of each, tiny, runs on the CPU and on ``pretend``, which computes as the CPU does. So rows may differ by
the rounding of operations that torch puts together differently.
"""

import importlib
from pathlib import Path

import numpy as np
import pandas as pd
import pretend
import pytest
import torch

import derived.papers
from derived.lab.real.pinned import missing, not_here
from derived.lab.record import disagreements

SLUGS = sorted(path.name for path in Path(derived.papers.__path__[0]).iterdir() if (path / "__init__.py").is_file())
EXPERIMENTS = {
    (slug, experiment.__name__): experiment
    for slug in SLUGS
    for experiment in importlib.import_module(f"derived.papers.{slug}.claims").EXPERIMENTS
    if "gpu" in experiment.tiers
}

#: Columns of seconds, and of bytes that are counted where the pretended device holds none.
MEASURED = {
    ("cactus", "PairTime"): {"seconds"},
    ("cactus", "SamplerTime"): {"exact", "cactus", "tas", "rows"},
    ("hierarchical_kernel", "Overhead"): {"seconds"},
    ("sinkhorn", "AttentionTime"): {"softmax", "sinkhorn_3", "sinkhorn_21"},
    ("sinkhorn", "Arms"): {"seconds"},
}


def apart(there: pd.DataFrame, here: pd.DataFrame, deterministic, measured) -> list[str]:
    """What a record is compared by, and then every other float by 1e-4 of the largest of its column."""
    there, here = (rows.drop(columns=[*measured & {*rows}]) for rows in (there, here))
    found = disagreements(there, here, deterministic)
    for name in () if found else there.select_dtypes("float").columns.difference([*deterministic]):
        a, b = there[name].to_numpy(), here[name].to_numpy()
        largest = np.abs(b[np.isfinite(b)]).max(initial=0.0)
        far = ~np.isclose(a, b, rtol=0, atol=1e-4 * largest + 1e-9, equal_nan=True)
        if far.any():
            found.append(f"{name}: {far.sum()} of {len(a)} rows differ, by {np.nanmax(np.abs(a - b)):.2g}")
    return found


@pytest.mark.parametrize("case", EXPERIMENTS, ids=".".join)
def test_on_another_device_an_experiment_gives_the_same_rows(case):
    """In the first condition that makes a tensor there."""
    experiment = EXPERIMENTS[case].at("tiny")
    if missing(experiment.needs):
        pytest.skip(not_here(experiment.needs))
    options = {"seed": 0, "dtype": experiment.dtype}
    for condition in experiment.conditions():
        with pretend.device() as (device, made):
            there = experiment.run(condition, device=device, **options)
        assert {*experiment.deterministic} <= {*there.columns}, "a deterministic column that no row has"
        if made.count:
            break
    assert made.count, "no tensor was made on the device"
    here = experiment.run(condition, device=torch.device("cpu"), **options)
    found = apart(there, here, experiment.deterministic, MEASURED.get(case, set()))
    assert not found, "; ".join(found)


def test_the_table_names_experiments_that_there_are():
    assert {*MEASURED} <= {*EXPERIMENTS}
