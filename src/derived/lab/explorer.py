"""Explorers: Plotly figures whose sliders move through precomputed frames, without kernel or network.

axes     the sliders in order: the words in front of the value, as in "β = " or "layer " -> values
frames   position (one value per slider) -> what is drawn there: data, and where they change layout and traces
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

INSTANT = {"mode": "immediate", "frame": {"duration": 0, "redraw": True}, "transition": {"duration": 0}}


def label(value: float) -> str:
    """A value as a slider shows it: whole numbers in full, others with three digits.

    >>> label(65536), label(0.31623)
    ('65536', '0.316')
    """
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.3g}"


def sliders(
    figure: go.Figure,
    frames: Mapping[tuple, Mapping[str, Any]],
    axes: Mapping[str, Sequence[float]],
    start: Sequence[float],
) -> go.Figure:
    """The figure, which shows ``start``, with a slider per axis and a frame at every position; returned as well.

    ``frames[position]`` has the keys of ``plotly.graph_objects.Frame``: data, layout, traces. One slider says itself
    which frame to show; of several, the site's script joins the values by "|" to the name of a frame. ValueError for a
    position without a frame or a frame without a position, a start off the grid, or two values written alike.

    >>> frames = {(n,): {"data": [go.Scatter(y=[0, n])]} for n in (1, 2, 4)}
    >>> figure = sliders(go.Figure(frames[2,]["data"]), frames, {"n = ": (1, 2, 4)}, start=(2,))
    >>> [frame.name for frame in figure.frames], figure.layout.sliders[0].active
    (['1', '2', '4'], 1)
    """
    values = [list(each) for each in axes.values()]
    for words, each in axes.items():
        labels = [label(value) for value in each]
        if len(set(labels)) < len(labels):
            raise ValueError(f"values of {words!r} are written alike, {', '.join(labels)}; take some out")
    positions = set(itertools.product(*values))
    if faulty := sorted(positions ^ set(frames)):
        raise ValueError(f"{len(frames)} frames for {len(positions)} positions, as of {faulty[0]}; give each its own")
    if tuple(start) not in positions:
        raise ValueError(f"start = {tuple(start)} is no position; give one value for each of {list(axes)}")
    figure.frames = [go.Frame(name="|".join(map(label, key)), **frame) for key, frame in frames.items()]
    figure.update_layout(
        sliders=[
            {
                "active": each.index(first),
                "currentvalue": {"prefix": words},
                "steps": [_step(label(value), alone=len(values) == 1) for value in each],
            }
            for words, each, first in zip(axes, values, start, strict=True)
        ]
    )
    return figure


def _step(name: str, alone: bool) -> dict[str, Any]:
    """A step that shows its frame, or, one of several sliders', does nothing by itself."""
    act = {"method": "animate", "args": [[name], INSTANT]} if alone else {"method": "skip", "args": []}
    return {"label": name, **act}
