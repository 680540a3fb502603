"""The figure with sliders: tokens on a sphere, its alt text, frames and size."""

import numpy as np
import pandas as pd

from derived.papers.homogenized import explorer
from derived.papers.homogenized.explorer import sphere_rows


def test_demos_give_tokens_on_the_sphere_and_overlaps():
    tokens = sphere_rows(0, n=5, L=10)
    assert np.allclose(tokens["x"] ** 2 + tokens["y"] ** 2 + tokens["z"] ** 2, 1)
    first = tokens[tokens["layer"] == 0]
    same = first.groupby("panel")[["x", "z"]].sum()
    assert np.allclose(same.iloc[0], same.iloc[1])
    assert not np.allclose(same.iloc[0], same.iloc[2])


def tokens() -> pd.DataFrame:
    return sphere_rows(0, n=6, L=10, every=5)


def test_a_view_turns_the_sphere_so_that_its_ends_lie_in_front_and_keeps_angles():
    rows = explorer.viewed(tokens())
    assert np.allclose((rows[["right", "up", "front"]] ** 2).sum(axis=1), 1)
    assert np.allclose(explorer.overlap(rows), (rows[["right", "up", "front"]].mean() ** 2).sum())
    last = rows[rows["layer"] == 10].groupby("panel")[["right", "up", "front"]].mean()
    ends = last.div(np.sqrt((last**2).sum(axis=1)), axis=0).sum()
    assert np.allclose(ends[["right", "up"]], 0)
    assert ends["front"] > 0
    colours = rows.groupby(["panel", "token"])["colour"].nunique()
    assert (colours == 1).all(), "a token keeps its colour"


def test_the_sphere_can_be_played_by_layer_and_turned():
    figure = explorer.sphere_explorer(tokens())
    layers, turns = figure.layout.sliders
    assert [step.label for step in layers.steps] == ["0", "5", "10"]
    assert len(turns.steps) == 25
    assert figure.layout.meta["play"] < 1000
    assert len(figure.layout.meta["alt"]) > 60


def test_the_full_sphere_stays_small():
    assert len(explorer.sphere_explorer(sphere_rows(0)).to_json()) < 600_000
