"""The explorer: weights of the levels and a query, against the mixed scores of a ListOps string, by explorer.js."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from derived.lab.explorer import computed, stops
from derived.lab.plot import BLUE, MUTED, RED

from .marks import as_matrix


def bracket_lines(symbols: Sequence[str]) -> tuple[list, list]:
    """One polygon per list, from its opener to its closer, deeper lists lower; None lifts the pen."""
    x, y, open_lists = [], [], []
    for place, symbol in enumerate(symbols):
        if symbol.startswith("["):
            open_lists.append(place)
        elif symbol == "]":
            start, depth = open_lists.pop(), len(open_lists)
            height = -float(depth) - 1
            x += [start, start, place, place, None]
            y += [height + 0.7, height, height, height + 0.7, None]
    return x, y


WEIGHTS = stops(np.arange(0, 2.01, 0.04))


def score_explorer(rows: pd.DataFrame, symbols: Sequence[str]) -> go.Figure:
    """Plotly figure with a slider for the weight of each coarse level, where level 0 weighs 1, and one for the query.

    Rows of ``readable_columns``, the levels evenly mixed: level (-1: their mixture), i, j, score, attention.
    """
    tables = {level: as_matrix(part, "score") for level, part in rows.groupby("level")}
    coarse, last = range(1, len(tables) - 1), len(symbols) - 1
    start = (*[1.0 for _ in coarse], last - 8)
    figure = make_subplots(rows=3, cols=1, row_heights=[0.66, 0.12, 0.22], shared_xaxes=True, vertical_spacing=0.02)
    masked = np.where(np.tri(len(symbols), dtype=bool), tables.pop(-1).round(3), None).tolist()
    attention = as_matrix(rows[rows["level"] == -1], "attention")[start[-1]]
    heat, bars, frame = _traces(masked, attention, start[-1])
    least, most = (float(end([end(table) for table in tables.values()])) for end in (np.min, np.max))
    scale = {"colorscale": "Viridis", "zmin": least, "zmax": most}
    heat.update(hovertemplate="query %{y}, key %{x}: %{z:.2f}<extra></extra>", showscale=False, **scale)
    bars.update(hovertemplate="key %{x}: %{y:.3f}<extra></extra>", marker={"color": BLUE})
    frame.update(line={"color": RED, "width": 2}, hoverinfo="skip")
    x, y = bracket_lines(symbols)
    brackets = go.Scatter(x=x, y=y, mode="lines", line={"color": MUTED, "width": 1.5}, hoverinfo="skip")
    for trace, row in ((heat, 1), (bars, 3), (frame, 1), (brackets, 2)):
        figure.add_trace(trace, row=row, col=1)
    alt = (
        f"Mixed scores of {' '.join(symbols)} as a heat map with the future left empty, its brackets, and the "
        f"attention of one query, with sliders for the weights of {len(coarse)} coarse levels against that of level 0. "
        "With weight 0 single symbols of one kind match; with more weight blocks appear that follow the brackets."
    )
    figure.update_layout(height=620, showlegend=False, margin={"l": 40, "r": 10, "t": 10, "b": 40}, meta={"alt": alt})
    _label_axes(figure, [symbol.strip("[") for symbol in symbols], max(0.25, 1.05 * attention.max()))
    axes = {f"weight of level {level} = ": WEIGHTS for level in coarse} | {"query: token ": list(range(last + 1))}
    levels = [table.tolist() for _, table in sorted(tables.items())]
    return computed(figure, Path(__file__).with_suffix(".js"), axes, start, tables=levels)


def _traces(masked: list, attention: np.ndarray, query: int) -> list:
    """The scores as a heat map, the attention of a query as bars, and a frame around that query."""
    places, last = list(range(len(masked))), len(masked) - 0.5
    around = [query - 0.5, query - 0.5, query + 0.5, query + 0.5, query - 0.5]
    return [
        go.Heatmap(x=places, y=places, z=masked),
        go.Bar(x=places, y=attention.round(4).tolist(), xaxis="x3", yaxis="y3"),
        go.Scatter(x=[-0.5, last, last, -0.5, -0.5], y=around, mode="lines"),
    ]


def _label_axes(figure: go.Figure, labels: Sequence[str], most: float) -> None:
    """Symbols along the axes; attention up to ``most``."""
    places, small = list(range(len(labels))), {"tickfont": {"size": 10}}
    figure.update_xaxes(tickvals=places, ticktext=labels, tickangle=-90, **small, row=3, col=1)
    figure.update_yaxes(autorange="reversed", tickvals=places[::3], ticktext=labels[::3], **small, row=1, col=1)
    figure.update_yaxes(visible=False, row=2, col=1)
    figure.update_yaxes(title_text="attention", range=[0, most], row=3, col=1)
