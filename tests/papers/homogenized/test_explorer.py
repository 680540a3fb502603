"""The figures with sliders: tokens on a sphere and the collapse, alt texts, frames and sizes."""

import numpy as np
import pandas as pd

from derived.papers.homogenized import explorer
from derived.papers.homogenized.explorer import GRID, collapse_rows, sphere_rows


def test_demos_give_tokens_on_the_sphere_and_overlaps():
    tokens = sphere_rows(0, n=5, L=10)
    assert np.allclose(tokens["x"] ** 2 + tokens["y"] ** 2 + tokens["z"] ** 2, 1)
    first = tokens[tokens["layer"] == 0]
    same = first.groupby("panel")[["x", "z"]].sum()
    assert np.allclose(same.iloc[0], same.iloc[1])
    assert not np.allclose(same.iloc[0], same.iloc[2])


def tokens() -> pd.DataFrame:
    return sphere_rows(0, n=6, L=10, every=5)


def test_the_sphere_says_where_the_tokens_gather():
    figure = explorer.sphere_panels(tokens(), (0, 5, 10))
    assert "Mean overlap" in figure.get_label()
    assert len(figure.axes) == 9


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


def test_the_explorer_has_a_frame_for_every_setting_and_ten_stops_a_slider():
    assert all(len(values) >= 10 for values in GRID.values())
    grid = {"d": (8, 16), "logit_std": (0.0, 1.0), "eta": (0.2, 0.4)}
    rows = collapse_rows(0, n=3, L=8, paths=3, points=13, grid=grid)
    figure = explorer.collapse_explorer(rows)
    expected = pd.MultiIndex.from_product(grid.values()).to_frame(index=False).to_numpy()
    assert {frame.name for frame in figure.frames} == {"|".join(f"{value:g}" for value in each) for each in expected}
    assert all(len(frame.data) == 4 for frame in figure.frames)
    assert len(figure.to_json()) * 1000 / len(figure.frames) < 1_500_000  # at the size of the chapter


def test_the_ode_of_the_explorer_starts_at_zero_and_grows():
    rows = collapse_rows(0, n=4, L=8, paths=1, points=4, grid={"d": (64,), "logit_std": (1.0,), "eta": (0.5,)})
    ode = rows[rows["path"] == -1].sort_values("layer")["gamma"].to_numpy()
    assert ode[0] == 0
    assert (np.diff(ode) > 0).all()


def test_sampled_paths_of_the_explorer_lie_on_their_own_ode():
    grid = {"d": (10_000,), "logit_std": (0.0,), "eta": (0.1, 0.2)}
    rows = collapse_rows(0, n=4, H=2, L=40, paths=3, points=3, grid=grid)
    last = rows[rows["layer"] == 40].pivot(index="eta", columns="path", values="gamma")
    assert (last.drop(columns=-1).sub(last[-1], axis=0).abs() < 0.02).all(axis=None)
    assert last[-1].iloc[1] - last[-1].iloc[0] > 0.05
