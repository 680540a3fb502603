"""Sliders over chunk size and taps: a Plotly figure that needs neither kernel nor network.

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


def _traces(part: pd.DataFrame) -> tuple[list, list]:
    """0 where nothing is read, 2 where it is, 3 for a leak; and the lag of each token."""
    table = part.pivot(index="reader", columns="read", values="kind")
    return table.to_numpy().tolist(), part.groupby("reader")["lag"].first().tolist()


def explorer(rows: pd.DataFrame) -> go.Figure:
    """Sliders C, taps ahead, crossing; rows: chunk, ahead, crossing, reader, read, kind (0, 2 or 3), lag."""
    labels = {"chunk C = ": "chunk", "taps ahead = ": "ahead", "taps cross the edge (0 no, 1 yes) = ": "crossing"}
    axes = {label: sorted(rows[name].unique().tolist()) for label, name in labels.items()}
    groups = dict(iter(rows.groupby([*labels.values()])))
    start = (axes["chunk C = "][len(axes["chunk C = "]) // 2], axes["taps ahead = "][-1], 1)
    n = int(rows["reader"].max()) + 1
    table, lag = _traces(groups[start])
    figure = make_subplots(rows=2, cols=1, vertical_spacing=0.16, row_heights=[0.72, 0.28])
    figure.add_trace(go.Heatmap(z=table, colorscale=COLOURS, zmin=0, zmax=3, showscale=False, xgap=1, ygap=1), 1, 1)
    figure.add_trace(go.Bar(x=list(range(n)), y=lag, marker={"color": MUTED}), 2, 1)
    counts = {key: int((part["kind"] == 3).sum()) for key, part in groups.items()}
    figure.update_layout(
        height=640,
        margin={"l": 60, "r": 16, "t": 40, "b": 40},
        showlegend=False,
        title={"text": _words(groups[start], counts[start]), "font": {"size": 14}},
        meta={
            "alt": f"A table of {n} × {n} squares, who depends on whom through the memory, and below it the lag of "
            f"each token, for {len(groups)} settings of chunk size, taps ahead and crossing. Leaks, in red, appear "
            f"only where taps cross the edge and two look ahead: at most {max(counts.values())} of them."
        },
    )
    figure.update_xaxes(title_text="depends on token", row=1, col=1)
    figure.update_yaxes(title_text="token n", autorange="reversed", row=1, col=1)
    figure.update_xaxes(title_text="token n", row=2, col=1)
    figure.update_yaxes(title_text="lag", range=[0, int(rows["lag"].max()) + 1], row=2, col=1)
    frames = {}
    for key, part in groups.items():
        table, lag = _traces(part)
        data = [{"type": "heatmap", "z": table}, {"type": "bar", "y": lag}]
        frames[key] = {"data": data, "traces": [0, 1], "layout": {"title": {"text": _words(part, counts[key])}}}
    return sliders(figure, frames, axes, start)


def _words(part: pd.DataFrame, leaks: int) -> str:
    lag = part.groupby("reader")["lag"].first()
    leaked = f"{leaks} leak{'s' if leaks != 1 else ''}" if leaks else "no leak"
    return f"{leaked}; mean lag {lag.mean():.1f} tokens, largest {lag.max()}"
