"""The explorer: the inverse temperature beta as a slider, computed in the browser by explorer.js."""

from pathlib import Path

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from derived.lab.explorer import computed, label, stops

BETAS = stops(10 ** (np.arange(-60, 61) / 20))


def dial_explorer(rows: pd.DataFrame) -> go.Figure:
    """The beta dial as a Plotly figure with one slider; its ``layout.meta`` holds the alt text; ``DialCurves``."""
    rows = rows[~rows["recorded"]]
    data, line = rows[rows["curve"] == "data"], rows[rows["curve"] == "least squares"]
    betas = rows["beta"].dropna().unique()
    start = betas[np.argmin(np.abs(np.log(betas) - np.log(0.3)))]
    first = rows[rows["beta"] == start]
    shown = {"read-out": ("rescaled read-out", 5), "softmax": ("softmax output", 3)}
    curves = [
        go.Scatter(**_places(first[first["curve"] == curve]), name=name, line={"width": width})
        for curve, (name, width) in shown.items()
    ]
    fixed = [
        go.Scatter(**_places(line), name="least squares", line={"dash": "dot"}),
        go.Scatter(**_places(data), name="data", mode="markers", marker={"size": 7}),
    ]
    figure = go.Figure([*curves, *fixed])
    figure.update_layout(
        height=440,
        xaxis_title="query x",
        yaxis={"title": "prediction y", "range": [float(data["y"].min()) - 0.6, float(data["y"].max()) + 0.6]},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"},
        meta={
            "alt": f"A slider moves beta from {BETAS[0]:g} to {BETAS[-1]:g}. The rescaled read-out starts as the "
            f"least-squares line through {len(data)} points. The softmax output starts flat at their mean, bends "
            f"through the points and ends as a step between the two extreme ones."
        },
    )
    given = {"X": data["x"].tolist(), "Y": data["y"].tolist(), "places": line["x"].tolist()}
    script = Path(__file__).with_suffix(".js")
    return computed(figure, script, {"β = ": BETAS}, start=(float(label(start)),), **given)


def _places(rows: pd.DataFrame) -> dict[str, list[float]]:
    return {name: rows[name].round(4).tolist() for name in "xy"}
