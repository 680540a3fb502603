"""The explorer: its rows against the recursion and the thresholds, and the figure that it makes."""

import numpy as np
import pandas as pd
import pytest

from derived.papers.task_ecologies import explorer, local_threshold, optimal_partition, partition_path
from derived.papers.task_ecologies.data.triangles import triangle, triangles


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return pd.DataFrame(triangles())


def test_the_best_code_of_each_setting_is_the_recursion_s(rows):
    for (along, height, beta), part in list(rows.groupby(["along", "height", "beta"]))[::7]:
        best = optimal_partition(triangle(along, height), beta)
        assert "".join(map(str, best.labels)) in part.loc[part["best"], "code"].tolist()


def test_the_quotient_is_a_local_minimum_up_to_its_threshold(rows):
    for (along, height), part in rows.groupby(["along", "height"]):
        ecology = triangle(along, height)
        fine = part[part["code"] == "".join(map(str, ecology.quotient()))].set_index("beta")["local"]
        assert (fine == (fine.index <= local_threshold(ecology))).all()


def test_equidistant_worlds_are_metastable_between_the_two_thresholds():
    ecology = triangle(0.5, 1 / 3)
    merged, first = partition_path(ecology)[-1].beta, local_threshold(ecology)
    assert merged == pytest.approx((np.log(3) + 0.5 * np.log(0.5) + 0.5 * np.log(0.25)) / np.log(3))
    assert merged < 0.055 < first  # where the explorer opens


def test_it_opens_where_a_code_is_metastable():
    figure = explorer.explorer()
    assert [slider.steps[slider.active].label for slider in figure.layout.sliders] == ["0.5", "0.333", "0.055"]
    assert all(len(slider.steps) >= 50 for slider in figure.layout.sliders)
    assert "metastable: 1|2|3" in str(figure.data)
    assert "five lines" in figure.layout.meta["alt"]
    assert len(figure.to_json()) < 60_000
