"""Explorers that the browser computes: their JavaScript against the closed forms in Python, over the whole grid."""

import itertools
import json

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
import torch
from scipy import special

from bookbuilder.chapter_pages.explorer import function
from derived.lab.experiment import run_experiment
from derived.papers.geometric_tax import explorer
from derived.papers.geometric_tax.labels import LabelPaths
from derived.papers.hierarchical_kernel.explorer import score_explorer
from derived.papers.hierarchical_kernel.model.attention import causal_mask, mix
from derived.papers.hierarchical_kernel.model.readable import readable_columns, readable_tables
from derived.papers.homogenized import explorer as spheres
from derived.papers.homogenized.explorer import sphere_rows
from derived.papers.ols_attention.softmax import DialCurves, dial_explorer
from derived.papers.signal_propagation.explorer import recurrences
from derived.papers.signal_propagation.regimes import recurrence_grid
from derived.papers.task_ecologies import explorer as ecologies
from derived.papers.task_ecologies.data.triangles import triangles

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def compute(browser):
    """The frames of a figure at positions of its sliders, as the browser computes them."""
    page = browser.new_page()

    def frames(figure: go.Figure, positions: list[tuple]) -> list[dict]:
        meta = json.loads(figure.to_json())["layout"]["meta"]
        call = f"([positions, given]) => positions.map((at) => ({function(meta['compute'])})(at, given))"
        return page.evaluate(call, [[list(map(float, each)) for each in positions], meta["given"]])

    yield frames
    page.close()


def close(found, wanted, error: float = 1e-9) -> None:
    """Equal up to ``error`` of the largest of the numbers, with gaps in the same places."""
    found, wanted = (np.array(each, dtype=float) for each in (found, wanted))
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=0, atol=error * max(1.0, np.nanmax(np.abs(wanted), initial=0)))


def opens_as_computed(compute, figure: go.Figure) -> None:
    """What Python drew for the first view is what the browser computes there."""
    start = tuple(float(slider.steps[slider.active].label) for slider in figure.layout.sliders)
    (frame,) = compute(figure, [start])
    shown = json.loads(figure.to_json())["data"]
    for place, trace in zip(frame.get("traces", range(len(frame["data"]))), frame["data"], strict=True):
        for name in {"x", "y", "z"} & set(trace):
            drawn = go.Figure(shown[place]).data[0][name]
            numbers = not isinstance(drawn[0], str)
            close(trace[name], drawn, 1e-3) if numbers else None
        if "text" in trace:
            assert list(trace["text"]) == list(shown[place]["text"])


def test_tokens_on_a_sphere(compute):
    tokens = sphere_rows(0, n=5, L=20, every=10)
    figure, rows = spheres.sphere_explorer(tokens), spheres.viewed(tokens)
    opens_as_computed(compute, figure)
    positions = list(itertools.product((0, 10, 20), (-90, 0, 45, 180)))
    groups = {key: part for key, part in rows.groupby(["panel", "layer"])}
    for (layer, degrees), frame in zip(positions, compute(figure, positions), strict=True):
        angle = np.radians(degrees)
        for panel, place in zip(dict.fromkeys(rows["panel"]), (1, 4, 7), strict=True):
            part, dots = groups[panel, layer], frame["data"][place]
            close(dots["x"], part["right"] * np.cos(angle) + part["front"] * np.sin(angle), 2e-3)
            close(dots["y"], part["up"], 2e-3)
            front = part["front"] * np.cos(angle) - part["right"] * np.sin(angle)
            close(dots["marker"]["opacity"], 0.6 + 0.4 * front, 2e-3)
            assert abs(float(frame["data"][place + 1]["text"][0].split()[1]) - spheres.overlap(part)) < 0.02


def test_the_beta_dial(compute):
    rows = run_experiment(DialCurves().at("ci"), seed=0, device="cpu").assign(tier="ci", recorded=False)
    figure = dial_explorer(rows)
    opens_as_computed(compute, figure)
    curves = rows[rows["curve"].isin(["read-out", "softmax"])]
    betas = sorted(curves["beta"].unique())
    assert len(betas) == 25
    for beta, frame in zip(betas, compute(figure, [(beta,) for beta in betas]), strict=True):
        for trace, curve in zip(frame["data"], ("read-out", "softmax"), strict=True):
            part = curves[(curves["beta"] == beta) & (curves["curve"] == curve)]
            close(trace["x"], part["x"])
            close(trace["y"], part["y"])


def test_the_recurrences_of_signals(compute):
    rows = recurrence_grid()
    figure = recurrences(rows)
    names = ["alpha", "attn", "mlp", "tokens", "depth"]
    groups = dict(iter(rows.groupby(names)))
    assert len(groups) == 324
    for (at, part), frame in zip(groups.items(), compute(figure, list(groups)), strict=True):
        wanted = [curve for name in ("q", "rho", "log_J") for _, curve in part.groupby("norm", sort=False)[name]]
        b = part["b"].unique()
        for trace, curve in zip(frame["data"], wanted, strict=True):
            assert trace["x"] == list(range(at[-1] + 1))
            close(np.array(trace["y"])[b], curve)
        assert frame["layout"]["yaxis"]["range"][1] > part["q"].max()


def test_three_worlds_and_a_price(compute):
    rows = pd.DataFrame(triangles())
    figure = ecologies.explorer()
    opens_as_computed(compute, figure)
    groups = dict(iter(rows.groupby(["along", "height", "beta"])))
    assert len(groups) == 385
    for (at, part), frame in zip(groups.items(), compute(figure, list(groups)), strict=True):
        for trace, wanted in zip(frame["data"], ecologies.drawn(part, at[2]), strict=True):
            for name in {"x", "y"} & set(trace):
                close(trace[name], wanted[name])
            if "text" in trace:
                assert trace["text"] == wanted["text"]
            for style in {"marker", "line"} & set(trace):
                assert trace[style].items() <= wanted[style].items()


def test_scores_of_a_string_mixed_over_levels(compute):
    symbols = ["[MAX", "2", "9", "[MIN", "4", "7", "3", "]", "0", "[SM", "3", "[MED", "1", "5", "8", "]", "6", "]", "]"]
    figure = score_explorer(pd.DataFrame(readable_columns(symbols, levels=4, coarse=0.75)), symbols)
    opens_as_computed(compute, figure)
    positions = list(itertools.product((0.0, 0.52, 2.0), (0.0, 1.0), (0.0, 1.2), (0, 4, len(symbols) - 1)))
    tables = readable_tables(symbols, 4)
    for at, frame in zip(positions, compute(figure, positions), strict=True):
        weights = torch.tensor([1.0, *at[:-1]], dtype=torch.float64)
        scores = causal_mask(mix(tables, weights / weights.sum())).numpy()
        close(frame["data"][0]["z"], np.where(np.isfinite(scores), scores, np.nan))
        attention = special.softmax(scores, axis=-1)[at[-1]]
        own, rest = (np.array(bars["y"]) for bars in frame["data"][1:3])
        close(own + rest, attention)
        assert own @ rest == 0
        assert frame["data"][4]["text"][0].startswith(f"{own.sum():.2f} of the attention")
        assert attention.max() < frame["layout"]["yaxis2"]["range"][1]


def test_blurred_labels_and_the_length_of_their_path(compute):
    rows = run_experiment(LabelPaths(), seed=0, device="cpu")
    figure = explorer.explorer(rows)
    opens_as_computed(compute, figure)
    settings = dict(iter(rows.groupby(["sigma", "K"])))
    assert len(settings) == 12
    for (at, part), frame in zip(settings.items(), compute(figure, list(settings)), strict=True):
        for trace, wanted in zip(frame["data"], explorer.drawn(part, at), strict=True):
            for name, error in (("x", 1e-9), ("y", 1e-9), ("z", 1e-4)):
                if name in wanted:
                    close(trace[name], wanted[name], error)
            assert trace.get("text") == wanted.get("text")
        assert part["path"].max() < frame["layout"]["yaxis2"]["range"][1]
