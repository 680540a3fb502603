"""Explorers: Plotly figures with sliders that need no kernel and no network.

axes     the sliders in order: the words in front of the value, as in "β = " or "layer " -> values
frames   position (one value per slider) -> what is drawn there: data, and where they change layout and traces
compute  the same as a function of JavaScript, for what has a closed form: the browser draws what it returns
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
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
    values = _values(axes)
    positions = set(itertools.product(*values))
    if faulty := sorted(positions ^ set(frames)):
        raise ValueError(f"{len(frames)} frames for {len(positions)} positions, as of {faulty[0]}; give each its own")
    figure.frames = [go.Frame(name="|".join(map(label, key)), **frame) for key, frame in frames.items()]
    return _with_sliders(figure, axes, start)


def computed(
    figure: go.Figure, script: Path, axes: Mapping[str, Sequence[float]], start: Sequence[float], **given: Any
) -> go.Figure:
    """The figure, which shows ``start``, with sliders whose positions the browser computes; returned as well.

    ``script`` defines `compute(at, given)`: from the sliders' values to a frame as in ``sliders``. It gets the numbers
    that the sliders show, so ValueError for a value that three digits do not write, and as in ``sliders``. ``given``
    is what it needs to know besides. Python's closed form stays the truth: a test compares the two.
    """
    if inexact := [value for each in _values(axes) for value in each if float(label(value)) != value]:
        raise ValueError(f"the browser would compute at {label(inexact[0])} what stands at {inexact[0]!r}; round it")
    meta = {**(figure.layout.meta or {}), "compute": script.read_text("utf-8"), "given": given}
    return _with_sliders(figure.update_layout(meta=meta), axes, start)


def stops(values: Iterable[float], digits: int = 3) -> list[float]:
    """Values as a slider writes them, each once, in order.

    >>> stops((0.12345, 0.1231, 2.0), digits=2)
    [0.12, 2.0]
    """
    return sorted({float(f"{value:.{digits}g}") for value in values})


def _values(axes: Mapping[str, Sequence[float]]) -> list[list[float]]:
    """The values of each slider; ValueError for two that are written alike."""
    values = [list(each) for each in axes.values()]
    for words, each in axes.items():
        labels = [label(value) for value in each]
        if len(set(labels)) < len(labels):
            raise ValueError(f"values of {words!r} are written alike, {', '.join(labels)}; take some out")
    return values


def _with_sliders(figure: go.Figure, axes: Mapping[str, Sequence[float]], start: Sequence[float]) -> go.Figure:
    alone = len(axes) == 1 and bool(figure.frames)
    return figure.update_layout(
        sliders=[
            {
                "active": list(each).index(first),
                "currentvalue": {"prefix": words},
                "steps": [_step(label(value), alone) for value in each],
            }
            for (words, each), first in zip(axes.items(), start, strict=True)
        ]
    )


def _step(name: str, alone: bool) -> dict[str, Any]:
    """A step that shows its frame, or, one of several sliders' or of a computed figure's, does nothing by itself."""
    act = {"method": "animate", "args": [[name], INSTANT]} if alone else {"method": "skip", "args": []}
    return {"label": name, **act}
