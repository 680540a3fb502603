"""The explorer: levels, weight of the coarse ones and a query, against the mixed scores of a ListOps string."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from derived.lab.plot import COLOURS


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


def score_explorer(rows: pd.DataFrame, symbols: Sequence[str]):
    """Plotly figure with three sliders; rows of mixtures: levels, weight (of coarse ones), i, j, score, attention."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    queries = [place for place in range(len(symbols)) if place % 3 == 2]
    settings = [sorted(rows["levels"].unique()), sorted(rows["weight"].unique()), queries]
    figure = make_subplots(rows=3, cols=1, row_heights=[0.66, 0.12, 0.22], shared_xaxes=True, vertical_spacing=0.02)
    places, bottom, top = list(range(len(symbols))), float(rows["score"].min()), float(rows["score"].max())
    past = np.tri(len(symbols), dtype=bool)
    tables = {}
    for key, part in rows.groupby(["levels", "weight"]):
        score, weights = (part.pivot(index="i", columns="j", values=each).to_numpy() for each in ("score", "attention"))
        masked = np.where(past, score.round(1), None).tolist()
        tables[key] = masked, weights.round(3)

    outline, grey = ({"color": color, "width": width} for color, width in ((COLOURS[1], 2), ("#777777", 1.5)))
    edge = [-0.5, len(symbols) - 0.5, len(symbols) - 0.5, -0.5, -0.5]

    def traces(levels: int, weight: float, query: int) -> list:
        masked, weights = tables[levels, weight]
        around = [query - 0.5, query - 0.5, query + 0.5, query + 0.5, query - 0.5]
        return [
            go.Heatmap(x=places, y=places, z=masked),
            go.Bar(x=places, y=weights[query].tolist(), xaxis="x3", yaxis="y3"),
            go.Scatter(x=edge, y=around, mode="lines"),
        ]

    start = (settings[0][-1], settings[1][len(settings[1]) // 2], queries[len(queries) // 2])
    heat, bars, frame = traces(*start)
    scale = {"colorscale": "Viridis", "zmin": bottom, "zmax": top, "showscale": False}
    heat.update(hovertemplate="query %{y}, key %{x}: %{z}<extra></extra>", **scale)
    bars.update(hovertemplate="key %{x}: %{y}<extra></extra>", marker={"color": COLOURS[0]})
    frame.update(line=outline, hoverinfo="skip")
    x, y = bracket_lines(symbols)
    brackets = go.Scatter(x=x, y=y, mode="lines", line=grey, hoverinfo="skip")
    for trace, row in ((heat, 1), (bars, 3), (frame, 1), (brackets, 2)):
        figure.add_trace(trace, row=row, col=1)
    figure.frames = [
        go.Frame(name=f"{levels:g}|{weight:g}|{query:g}", data=traces(levels, weight, query), traces=[0, 1, 2])
        for levels in settings[0]
        for weight in settings[1]
        for query in queries
    ]
    names = ("levels L = ", "weight of the coarse levels = ", "query: token ")
    figure.update_layout(
        height=620,
        showlegend=False,
        margin={"l": 40, "r": 10, "t": 10, "b": 40},
        sliders=[
            {
                "active": list(each).index(first),
                "currentvalue": {"prefix": name},
                "steps": [{"label": f"{value:g}", "method": "skip", "args": []} for value in each],
            }
            for name, each, first in zip(names, settings, start, strict=True)
        ],
        meta={
            "alt": f"Mixed scores of {' '.join(symbols)} as a heat map with the future left empty, its brackets, and "
            f"the attention of one query, at {len(settings[0])} numbers of levels, {len(settings[1])} weights of the "
            "coarse levels and several queries. With weight 0 single symbols of one kind match; with more weight "
            "blocks appear that follow the brackets."
        },
    )
    labels = [symbol.strip("[") for symbol in symbols]
    small = {"tickfont": {"size": 10}}
    figure.update_xaxes(tickvals=places, ticktext=labels, tickangle=-90, **small, row=3, col=1)
    figure.update_yaxes(autorange="reversed", tickvals=places[::3], ticktext=labels[::3], **small, row=1, col=1)
    figure.update_yaxes(visible=False, row=2, col=1)
    figure.update_yaxes(title_text="attention", range=[0, float(rows["attention"].quantile(0.995))], row=3, col=1)
    return figure
