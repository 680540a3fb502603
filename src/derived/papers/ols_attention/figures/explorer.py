"""The explorer: the inverse temperature beta as a slider."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from derived.lab.explorer import sliders


def dial_explorer(rows: pd.DataFrame) -> go.Figure:
    """The beta dial as a Plotly figure with one slider; its ``layout.meta`` holds the alt text; ``DialCurves``."""
    rows = rows[~rows["recorded"]].round({"x": 4, "y": 4})
    data, line = rows[rows["curve"] == "data"], rows[rows["curve"] == "least squares"]
    betas = np.sort(rows["beta"].dropna().unique())

    def traces(beta: float) -> list[go.Scatter]:
        parts = {name: rows[(rows["curve"] == name) & (rows["beta"] == beta)] for name in ("softmax", "read-out")}
        shown = zip(parts.values(), ("softmax output", "rescaled read-out"), (3, 5), strict=True)
        return [go.Scatter(x=part["x"], y=part["y"], name=name, line={"width": width}) for part, name, width in shown]

    fixed = [
        go.Scatter(x=line["x"], y=line["y"], name="least squares", line={"dash": "dot"}),
        go.Scatter(x=data["x"], y=data["y"], name="data", mode="markers", marker={"size": 7}),
    ]
    start = betas[np.argmin(np.abs(np.log(betas) - np.log(0.3)))]
    frames = {(beta,): {"data": traces(beta)[::-1], "traces": [0, 1]} for beta in betas}
    figure = sliders(go.Figure([*traces(start)[::-1], *fixed]), frames, {"β = ": betas}, start=(start,))
    figure.update_layout(
        height=440,
        xaxis_title="query x",
        yaxis={"title": "prediction y", "range": [float(data["y"].min()) - 0.6, float(data["y"].max()) + 0.6]},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"},
        meta={
            "alt": f"A slider moves beta from {betas[0]:g} to {betas[-1]:g}. The rescaled read-out starts as the "
            f"least-squares line through {len(data)} points. The softmax output starts flat at their mean, bends "
            f"through the points and ends as a step between the two extreme ones."
        },
    )
    return figure
