"""The explorer: levels, weight of the coarse ones and a query, against the mixed scores of a ListOps string."""

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from derived.lab.explorer import sliders
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


def score_explorer(rows: pd.DataFrame, symbols: Sequence[str]) -> go.Figure:
    """Plotly figure with three sliders; rows of mixtures: levels, weight (of coarse ones), i, j, score, attention."""
    queries = [place for place in range(len(symbols)) if place % 3 == 2]
    levels, weights = sorted(rows["levels"].unique()), sorted(rows["weight"].unique())
    tables = {key: _tables(part) for key, part in rows.groupby(["levels", "weight"])}
    frames = {
        (*key, query): {"data": _traces(*tables[key], query), "traces": [0, 1, 2]}
        for key, query in itertools.product(itertools.product(levels, weights), queries)
    }
    start = (levels[-1], weights[len(weights) // 2], queries[len(queries) // 2])
    figure = make_subplots(rows=3, cols=1, row_heights=[0.66, 0.12, 0.22], shared_xaxes=True, vertical_spacing=0.02)
    heat, bars, frame = _traces(*tables[start[:2]], start[2])
    scale = {"colorscale": "Viridis", "zmin": float(rows["score"].min()), "zmax": float(rows["score"].max())}
    heat.update(hovertemplate="query %{y}, key %{x}: %{z}<extra></extra>", showscale=False, **scale)
    bars.update(hovertemplate="key %{x}: %{y}<extra></extra>", marker={"color": BLUE})
    frame.update(line={"color": RED, "width": 2}, hoverinfo="skip")
    x, y = bracket_lines(symbols)
    brackets = go.Scatter(x=x, y=y, mode="lines", line={"color": MUTED, "width": 1.5}, hoverinfo="skip")
    for trace, row in ((heat, 1), (bars, 3), (frame, 1), (brackets, 2)):
        figure.add_trace(trace, row=row, col=1)
    axes = {"levels L = ": levels, "weight of the coarse levels = ": weights, "query: token ": queries}
    sliders(figure, frames, axes, start)
    alt = (
        f"Mixed scores of {' '.join(symbols)} as a heat map with the future left empty, its brackets, and "
        f"the attention of one query, at {len(levels)} numbers of levels, {len(weights)} weights of the "
        "coarse levels and several queries. With weight 0 single symbols of one kind match; with more weight "
        "blocks appear that follow the brackets."
    )
    figure.update_layout(height=620, showlegend=False, margin={"l": 40, "r": 10, "t": 10, "b": 40}, meta={"alt": alt})
    _label_axes(figure, [symbol.strip("[") for symbol in symbols], float(rows["attention"].quantile(0.995)))
    return figure


def _tables(rows: pd.DataFrame) -> tuple[list, np.ndarray]:
    """Scores with the future left empty, and attention, of one mixture."""
    score, attention = as_matrix(rows, "score"), as_matrix(rows, "attention")
    return np.where(np.tri(len(score), dtype=bool), score.round(1), None).tolist(), attention.round(3)


def _traces(masked: list, attention: np.ndarray, query: int) -> list:
    """The scores as a heat map, the attention of one query as bars, and a frame around that query."""
    places, last = list(range(len(masked))), len(masked) - 0.5
    around = [query - 0.5, query - 0.5, query + 0.5, query + 0.5, query - 0.5]
    return [
        go.Heatmap(x=places, y=places, z=masked),
        go.Bar(x=places, y=attention[query].tolist(), xaxis="x3", yaxis="y3"),
        go.Scatter(x=[-0.5, last, last, -0.5, -0.5], y=around, mode="lines"),
    ]


def _label_axes(figure: go.Figure, labels: Sequence[str], most: float) -> None:
    """Symbols along the axes; attention up to ``most``."""
    places, small = list(range(len(labels))), {"tickfont": {"size": 10}}
    figure.update_xaxes(tickvals=places, ticktext=labels, tickangle=-90, **small, row=3, col=1)
    figure.update_yaxes(autorange="reversed", tickvals=places[::3], ticktext=labels[::3], **small, row=1, col=1)
    figure.update_yaxes(visible=False, row=2, col=1)
    figure.update_yaxes(title_text="attention", range=[0, most], row=3, col=1)
