"""Sliders over the width of a label and the number of bins, computed in the browser by explorer.js.

mark         meaning
map          distribution of the next token, a column for each value m: squares where labels are sharp, a band where not
blue line    length of the path of these distributions from 0 to m; dashed, an equally long path walked evenly
"""

from pathlib import Path

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from derived.lab.explorer import computed, stops
from derived.lab.plot import BLUE, MUTED

START = (0.005, 16)
AXES = {"width σ = ": stops([*np.geomspace(0.002, 0.1, 60), START[0]], digits=2), "bins K = ": list(range(2, 65))}
PROBABILITY = [[0, "rgba(42,143,220,0)"], [1, "rgba(42,143,220,1)"]]


def explorer(rows: pd.DataFrame) -> go.Figure:
    """Sliders sigma and K; rows of ``LabelPaths``. Two panels, one above the other."""
    sigma, K = START
    part = rows[(rows["sigma"] == sigma) & (rows["K"] == K)]
    law, even, length, said = drawn(part, START)
    titles = ("what comes next, by the value m", "length of the path: a staircase or a line")
    layout = {"shared_xaxes": True, "vertical_spacing": 0.08, "row_heights": [0.58, 0.42]}
    figure = make_subplots(rows=2, cols=1, **layout, subplot_titles=titles).update_annotations(font_size=13)
    hover = "value %{x:.2f}: token at %{y:.2f} with probability %{z:.2f}<extra></extra>"
    scale = {"colorscale": PROBABILITY, "zmin": 0, "zmax": 1, "showscale": False}
    figure.add_trace(go.Heatmap(**law, **scale, hovertemplate=hover), 1, 1)
    figure.add_trace(go.Scatter(**even, mode="lines", line={"color": MUTED, "width": 1.5, "dash": "dash"}), 2, 1)
    figure.add_trace(go.Scatter(**length, mode="lines", line={"color": BLUE, "width": 2.5}), 2, 1)
    figure.add_trace(go.Scatter(**said, mode="text", textposition="bottom right", hoverinfo="skip"), 2, 1)
    alt = (
        "The distribution of the next token for each value m as a column of a map, and the length of the path of these "
        "distributions from 0 to m, with sliders for the width sigma and the number of bins K. Sharp labels make a "
        f"staircase, blurred ones a band and a straight line. With {K} bins and sigma {sigma:g} the path is "
        f"{length['y'][-1]:.0f} long."
    )
    margin = {"l": 60, "r": 16, "t": 40, "b": 40}
    figure.update_layout(height=660, showlegend=False, margin=margin, meta={"alt": alt})
    figure.update_yaxes(title_text="next value, by token", range=[0, 1], row=1, col=1)
    figure.update_xaxes(title_text="value m", range=[0, 1], row=2, col=1)
    figure.update_yaxes(title_text="length so far", range=[0, said["y"][0]], row=2, col=1)
    return computed(figure, Path(__file__).with_suffix(".js"), AXES, START)


def drawn(part: pd.DataFrame, position: tuple[float, int]) -> list[dict]:
    """What a setting changes: the map, the even path, its own, and how long it is with its two bounds."""
    sigma, K = position
    law = part.pivot(index="bin", columns="m", values="p")
    path = part[part["bin"] == 0].sort_values("m")
    whole = path["path"].iloc[-1]
    most = np.pi * (K - 1)
    words = f"length {whole:.0f}<br>at most {K - 1}π = {most:.0f}, and 1/σ = {1 / sigma:.0f}"
    return [
        {"x": law.columns.tolist(), "y": ((law.index + 0.5) / K).tolist(), "z": law.round(4).to_numpy().tolist()},
        {"x": [0, 1], "y": [0, whole]},
        {"x": path["m"].tolist(), "y": path["path"].tolist()},
        {"x": [0.02], "y": [1.1 * most], "text": [words]},
    ]
