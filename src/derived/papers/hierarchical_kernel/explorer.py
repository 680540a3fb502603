"""The explorer: how much of a query's attention stays in its own list, as coarse levels gain weight, by explorer.js.

mark            meaning
blue squares    mixed scores, queries down and keys across; white, the future
orange          the lists of the string, and the attention that stays in the query's own
frame, grey     the query, and the attention that leaves its list
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from derived.lab.explorer import computed, stops
from derived.lab.plot import INK, MUTED, RED

from .marks import as_matrix, brackets

WEIGHTS = stops(np.arange(0, 2.01, 0.04))
SCORES = [[0, "rgba(42,143,220,0.03)"], [1, "rgba(42,143,220,1)"]]


def score_explorer(rows: pd.DataFrame, symbols: Sequence[str]) -> go.Figure:
    """Plotly figure with a slider for the weight of each coarse level, where level 0 weighs 1, and one for the query.

    Rows of ``readable_columns``, the levels evenly mixed: level (-1: their mixture), i, j, score, attention. It opens
    at the last symbol of the deepest list before its closer.
    """
    tables = {level: as_matrix(part, "score") for level, part in rows.groupby("level")}
    coarse, last = range(1, len(tables) - 1), len(symbols) - 1
    lists = brackets(symbols)
    opens = [max(first for first, end in lists if first <= place <= end) for place in range(len(symbols))]
    deepest = max(lists, key=lambda one: sum(first <= one[0] <= end for first, end in lists))
    start = (*[1.0 for _ in coarse], deepest[1] - 1)
    masked = np.where(np.tri(len(symbols), dtype=bool), tables.pop(-1).round(3), None).tolist()
    attention = as_matrix(rows[rows["level"] == -1], "attention")[start[-1]]
    figure = make_subplots(rows=2, cols=1, row_heights=[0.78, 0.22], shared_xaxes=True, vertical_spacing=0.02)
    heat, own, rest, frame, said = _traces(masked, attention, start[-1], opens)
    least, most = (float(end([end(table) for table in tables.values()])) for end in (np.min, np.max))
    shown = "query %{y}, key %{x}: %{z:.2f}<extra></extra>"
    heat.update(hovertemplate=shown, showscale=False, colorscale=SCORES, zmin=least, zmax=most)
    for bars, color in ((own, RED), (rest, MUTED)):
        bars.update(hovertemplate="key %{x}: %{y:.3f}<extra></extra>", marker={"color": color})
    frame.update(line={"color": INK, "width": 2.5}, hoverinfo="skip")
    corners = [(low - 0.5, high + 0.5) for low, high in lists]
    x = [place for low, high in corners for place in (low, low, high, low, None)]
    y = [place for low, high in corners for place in (low, high, high, low, None)]
    lines = go.Scatter(x=x, y=y, mode="lines", line={"color": RED, "width": 2}, hoverinfo="skip")
    for trace, row in ((heat, 1), (own, 2), (rest, 2), (frame, 1), (said, 1), (lines, 1)):
        figure.add_trace(trace, row=row, col=1)
    alt = (
        f"Mixed scores of {' '.join(symbols)} as a triangle of squares with a triangle around each list, and the "
        f"attention of one query, with sliders for the weights of {len(coarse)} coarse levels against that of level 0. "
        f"With even weights token {start[-1]} gives {attention[opens[start[-1]] :].sum():.2f} of its attention to its "
        "own list. With weight 0 single symbols of one kind match; with more weight blocks follow the brackets."
    )
    layout = {"height": 720, "barmode": "overlay", "showlegend": False, "margin": {"l": 40, "r": 10, "t": 10, "b": 40}}
    figure.update_layout(**layout, meta={"alt": alt})
    _label_axes(figure, [symbol.strip("[") for symbol in symbols], max(0.25, 1.05 * attention.max()))
    axes = {f"weight of level {level} = ": WEIGHTS for level in coarse} | {"query: token ": list(range(last + 1))}
    levels = [table.tolist() for _, table in sorted(tables.items())]
    return computed(figure, Path(__file__).with_suffix(".js"), axes, start, tables=levels, opens=opens)


def _traces(masked: list, attention: np.ndarray, query: int, opens: Sequence[int]) -> list:
    """The scores as a heat map, the attention of a query in its own list and elsewhere, a frame, and a sentence."""
    places = list(range(len(masked)))
    inside = np.arange(len(masked)) >= opens[query]  # what follows the query has no attention
    bars = [np.where(part, attention, 0).round(4).tolist() for part in (inside, ~inside)]
    right, low, high = query + 0.5, query - 0.5, query + 0.5
    words = f"{attention[inside].sum():.2f} of the attention stays<br>in the query's own list"
    return [
        go.Heatmap(x=places, y=places, z=masked),
        *[go.Bar(x=places, y=each, xaxis="x2", yaxis="y2") for each in bars],
        go.Scatter(x=[-0.5, right, right, -0.5, -0.5], y=[low, low, high, high, low], mode="lines"),
        go.Scatter(x=[places[-1]], y=[0], mode="text", text=[words], textposition="bottom left"),
    ]


def _label_axes(figure: go.Figure, labels: Sequence[str], most: float) -> None:
    """Every symbol along both axes; attention up to ``most``."""
    ticks = {
        "tickvals": list(range(len(labels))),
        "ticktext": labels,
        "tickfont": {"size": 10},
        "showgrid": False,
        "zeroline": False,
    }
    figure.update_xaxes(**ticks, tickangle=-90, row=2, col=1)
    figure.update_xaxes(showgrid=False, zeroline=False, ticks="", row=1, col=1)
    figure.update_yaxes(**ticks, range=[len(labels) - 0.4, -0.6], row=1, col=1)
    figure.update_yaxes(title_text="attention", range=[0, most], row=2, col=1)
