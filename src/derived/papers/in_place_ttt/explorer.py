"""Sliders over chunk size and taps ahead: a Plotly figure that needs neither kernel nor network.

mark         meaning
blue         the answer at the row's token depends on the column's token
red          it does, and that token comes later: a leak
grey bars    lag, the last tokens that a token cannot read yet
"""

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from derived.lab.explorer import sliders
from derived.lab.plot import BLUE, MUTED, RED

COLOURS = [[0.0, "rgba(127,127,127,0.12)"], [0.5, "rgba(127,127,127,0.12)"], [0.5, BLUE], [0.75, BLUE]]
COLOURS += [[0.75, RED], [1.0, RED]]


def _traces(part: pd.DataFrame) -> list:
    """Two tables, taps inside and crossing, of 0 where nothing is read, 2 where it is, 3 for a leak; and the lag."""
    tables = [
        part[part["crossing"] == crossing].pivot(index="reader", columns="read", values="kind").to_numpy().tolist()
        for crossing in (0, 1)
    ]
    return [*tables, part.groupby("reader")["lag"].first().tolist()]


def explorer(rows: pd.DataFrame) -> go.Figure:
    """Sliders C and taps ahead; side by side, taps that stay inside a chunk and taps that cross its edge.

    Rows: chunk, ahead, crossing, reader, read, kind (0, 2 or 3), lag.
    """
    labels = {"chunk C = ": "chunk", "taps ahead = ": "ahead"}
    axes = {label: sorted(rows[name].unique().tolist()) for label, name in labels.items()}
    groups = dict(iter(rows.groupby([*labels.values()])))
    start = tuple(values[min(at, len(values) - 1)] for values, at in zip(axes.values(), (5, 2), strict=True))
    n = int(rows["reader"].max()) + 1
    figure = make_subplots(
        rows=2,
        cols=2,
        specs=[[{}, {}], [{"colspan": 2}, None]],
        subplot_titles=("taps inside the chunk", "taps cross its edge"),
        vertical_spacing=0.16,
        horizontal_spacing=0.08,
        row_heights=[0.7, 0.3],
    )
    inside, crossing, lag = _traces(groups[start])
    for column, table in enumerate((inside, crossing), start=1):
        heat = go.Heatmap(z=table, colorscale=COLOURS, zmin=0, zmax=3, showscale=False, xgap=1, ygap=1)
        figure.add_trace(heat, 1, column)
        figure.update_xaxes(title_text="depends on token", row=1, col=column)
        figure.update_yaxes(autorange="reversed", row=1, col=column)
    figure.add_trace(go.Bar(x=list(range(n)), y=lag, marker={"color": MUTED}), 2, 1)
    counts = {key: _leaks(part) for key, part in groups.items()}
    figure.update_layout(
        height=620,
        margin={"l": 60, "r": 16, "t": 96, "b": 40},
        showlegend=False,
        title={"text": _words(groups[start], counts[start]), "font": {"size": 14}},
        meta={
            "alt": f"Two tables of {n} × {n} squares, who depends on whom through the memory, with taps that stay "
            "inside a chunk and with taps that cross its edge, and below them the lag of each token, for "
            f"{len(groups)} settings of chunk size and taps ahead. Leaks, in red, appear only where taps cross an edge "
            f"and two or more look ahead: at most {max(counts.values())} of them."
        },
    )
    figure.update_yaxes(title_text="token n", row=1, col=1)
    figure.update_xaxes(title_text="token n", row=2, col=1)
    figure.update_yaxes(title_text="lag", range=[0, int(rows["lag"].max()) + 1], row=2, col=1)
    frames = {}
    for key, part in groups.items():
        inside, crossing, lag = _traces(part)
        data = [{"type": "heatmap", "z": inside}, {"type": "heatmap", "z": crossing}, {"type": "bar", "y": lag}]
        frames[key] = {"data": data, "traces": [0, 1, 2], "layout": {"title": {"text": _words(part, counts[key])}}}
    return sliders(figure, frames, axes, start)


def _leaks(part: pd.DataFrame) -> int:
    return int((part["kind"] == 3).sum())


def _words(part: pd.DataFrame, leaks: int) -> str:
    lag = part.groupby("reader")["lag"].first()
    inside = _leaks(part[part["crossing"] == 0])
    leaked = f"{leaks - inside} leak{'s' if leaks - inside != 1 else ''}" if leaks > inside else "no leak"
    held = "none" if not inside else str(inside)
    return f"crossing: {leaked}, inside: {held}<br>mean lag {lag.mean():.1f} tokens, largest {lag.max()}"
