"""Sizes of experiments, and tables of rows: every cell of a grid once, with the numbers that belong to it."""

import itertools
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from derived.lab.experiment import Experiment, resolve_device, rows
from derived.lab.names import TIERS
from derived.lab.rng import stream
from derived.lab.study import study


@dataclass(frozen=True, kw_only=True)
class Toy(Experiment):
    n: int = 1000
    trials: int = 50
    points: int = 9

    tiers: ClassVar = {"ci": {"n": 100, "trials": 5}, "gpu": {}}
    tiny: ClassVar = {"trials": 2}


def test_a_tiny_size_changes_tier_ci_and_is_no_tier():
    assert Toy.at("tiny") == Toy(n=100, trials=2)
    assert Experiment.at("tiny") == Experiment.at("ci")
    assert "tiny" not in {*TIERS, *Toy.tiers}
    with pytest.raises(ValueError, match="tier 'tiny' is unknown: use ci, cpu, gpu"):
        study(Toy, tier="tiny", seed=0, device="cpu")


def test_an_experiment_is_run_at_the_tiers_that_it_names():
    assert Toy.at("gpu") == Toy()
    with pytest.raises(ValueError, match="Toy is not offered at tier 'cpu'; it has ci, gpu"):
        Toy.at("cpu")
    with pytest.raises(ValueError, match="Experiment is not offered at tier 'gpu'; it has ci"):
        Experiment.at("gpu")


def test_a_device_that_is_not_there_is_an_error_and_no_fallback(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="torch finds no CUDA device here: use auto or cpu"):
        resolve_device("cuda")
    assert resolve_device("auto") == resolve_device("cpu") == torch.device("cpu")
    with pytest.raises(ValueError, match="unknown"):
        resolve_device("gpu")


SIZES = st.integers(1, 4)


@given(sizes=st.lists(SIZES, min_size=1, max_size=3), hidden=st.lists(st.booleans(), min_size=3, max_size=3))
def test_each_cell_of_the_grid_has_its_own_numbers(sizes, hidden):
    """Against a loop over the cells; a hidden axis of the column is of length one, so its numbers are repeated."""
    names = "abc"[: len(sizes)]
    index = {name: np.arange(size) * 10 for name, size in zip(names, sizes, strict=True)}
    shape = [1 if hide else size for size, hide in zip(sizes, hidden, strict=False)]
    values = torch.randn(shape, generator=stream(0, "cells"), dtype=torch.float64, requires_grad=True)
    table = rows(index, {"x": values})
    assert list(table.columns) == [*names, "x"]
    cells = list(itertools.product(*(range(size) for size in sizes)))
    for (_, row), cell in zip(table.iterrows(), cells, strict=True):
        assert [row[name] for name in names] == [10 * place for place in cell]
        own = tuple(0 if size == 1 else place for place, size in zip(cell, shape, strict=True))
        assert row["x"] == values[own].item()


def test_names_may_share_an_axis_and_a_single_label_makes_none():
    i, j = torch.triu_indices(3, 3, 1).unbind(dim=0)
    index = {"panel": "A", "replicate": range(2), ("i", "j"): (i, j), "k": 7}
    table = rows(index, {"gap": torch.arange(6).view(2, 3), "bound": 0.5, "ode": [1.0, 2.0, 3.0]})
    expected = pd.DataFrame(
        {
            **{"panel": "A", "replicate": [0, 0, 0, 1, 1, 1], "i": [0, 0, 1] * 2, "j": [1, 2, 2] * 2, "k": 7},
            **{"gap": [0, 1, 2, 3, 4, 5], "bound": 0.5, "ode": [1.0, 2.0, 3.0] * 2},
        }
    )
    pd.testing.assert_frame_equal(table, expected)


def test_a_table_without_axes_is_one_row_and_an_empty_axis_none():
    assert rows({"n": 3}, {"x": torch.tensor(1.5)}).to_dict("records") == [{"n": 3, "x": 1.5}]
    assert rows({"n": range(0)}, {"x": 1.0}).empty


def test_types_are_kept():
    table = rows(
        {"kind": ["a", "b"]}, {"n": torch.tensor([1, 2]), "ok": torch.tensor([True, False]), "x": np.float32(1)}
    )
    assert [str(table[name].dtype) for name in ("n", "ok", "x")] == ["int64", "bool", "float32"]
    assert table["kind"].tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("index", "columns", "message"),
    [
        ({"r": range(2), "b": range(3)}, {"x": np.zeros(2)}, r"column x has shape \(2,\); .* broadcasts to \(2, 3\)"),
        ({"r": range(2)}, {"x": np.zeros((2, 2))}, r"column x has shape \(2, 2\)"),
        ({"r": np.zeros((2, 2))}, {}, r"labels of shape r \(2, 2\); give \(length,\)"),
        ({("i", "j"): ([1, 2], [3])}, {}, r"labels of shape i \(2,\), j \(1,\)"),
        ({("i", "j"): ([1, 2],)}, {}, "zip"),
        ({"r": range(2)}, {"r": np.zeros(2)}, "both have r; give each name once"),
    ],
)
def test_what_does_not_fit_is_refused(index, columns, message):
    with pytest.raises(ValueError, match=message):
        rows(index, columns)
