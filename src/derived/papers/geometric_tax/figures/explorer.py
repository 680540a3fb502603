"""Sliders over the width of a label and the number of bins, computed in the browser by explorer.js.

mark                 meaning
bars, three colours  law of the bin of the next value, at three neighbouring values m
blue line            length of the path of laws from 0 to m; grey, the line of slope 1 / sigma
below                length of the whole path against K at this sigma, its two bounds, and where the sliders stand
"""

from pathlib import Path

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from derived.lab.explorer import computed, stops
from derived.lab.plot import BLUE, GREEN, MUTED, ORANGE, RED, largest

COLOURS = (BLUE, ORANGE, GREEN)
AXES = {"width σ = ": stops([*np.geomspace(0.002, 0.1, 60), 0.005], digits=2), "bins K = ": list(range(2, 65))}


def explorer(laws: pd.DataFrame, paths: pd.DataFrame) -> go.Figure:
    """Sliders sigma and K; rows of ``LawGrid`` and ``Path``. Three panels, one above the other."""
    laws, paths = largest(laws), largest(paths)
    start = sigma, K = (0.005, 16)
    law, path = (rows[(rows["sigma"] == sigma) & (rows["K"] == K)] for rows in (laws, paths.sort_values("m")))
    whole = laws[laws["sigma"] == sigma].drop_duplicates("K").sort_values("K")
    figure = make_subplots(rows=3, cols=1, vertical_spacing=0.11, row_heights=[0.3, 0.35, 0.35])
    places = sorted(laws["m"].unique())
    moving = drawn(law, path, whole, start)
    named = zip(moving[:3], places, COLOURS, strict=True)
    for bars, m, colour in named:
        figure.add_trace(go.Bar(**_only(bars), name=f"m = {m:g}", marker_color=colour, opacity=0.6), 1, 1)
    figure.add_trace(go.Scatter(**_only(moving[3]), line={"color": BLUE, "width": 2}, showlegend=False), 2, 1)
    dashed = {"color": MUTED, "width": 1.5, "dash": "dash"}
    figure.add_trace(go.Scatter(**_only(moving[4]), mode="lines", line=dashed, showlegend=False), 2, 1)
    figure.add_trace(go.Scatter(**_only(moving[5]), line={"color": BLUE, "width": 2}, showlegend=False), 3, 1)
    figure.add_trace(go.Scatter(**_only(moving[6]), mode="lines", line=dashed, showlegend=False), 3, 1)
    here = {"symbol": "cross", "size": 13, "color": RED, "line": {"color": "white", "width": 1.5}}
    figure.add_trace(go.Scatter(**_only(moving[7]), mode="markers", marker=here, showlegend=False), 3, 1)
    sharp, soft = (laws.loc[laws["sigma"] == end(laws["sigma"]), "length"].max() for end in (min, max))
    figure.update_layout(
        height=760,
        barmode="overlay",
        bargap=0,
        legend={"orientation": "h", "y": 1.01, "yanchor": "bottom"},
        margin={"l": 60, "r": 16, "t": 90, "b": 40},
        meta={
            "alt": f"The law of the next token at three neighbouring values, with sliders for the width sigma and the "
            f"number of bins K; the length of the path of laws from 0 to m, a staircase "
            f"for small sigma K and a line for large; and its whole length against K. With 64 bins it is {sharp:.0f} "
            f"at the smallest sigma and {soft:.1f} at the largest."
        },
    )
    figure.update_xaxes(title_text="next value, by bin", range=[0, 1], row=1, col=1)
    figure.update_yaxes(title_text="probability", range=[0, 1.05], row=1, col=1)
    figure.update_xaxes(title_text="value m", range=[0, 1], row=2, col=1)
    figure.update_yaxes(title_text="length so far", rangemode="tozero", row=2, col=1)
    figure.update_xaxes(title_text="bins K", type="log", tickvals=whole["K"].tolist(), row=3, col=1)
    figure.update_yaxes(title_text="length Λ", type="log", tickvals=[5, 10, 20, 50, 100, 200, 500], row=3, col=1)
    given = {"neighbours": places, "codes": whole["K"].tolist()}
    return computed(figure, Path(__file__).with_suffix(".js"), AXES, start, **given)


def drawn(law: pd.DataFrame, path: pd.DataFrame, whole: pd.DataFrame, position: tuple[float, int]) -> list[dict]:
    """What a setting changes: three laws, the path and its line, lengths, bounds, and the cross."""
    sigma, K = position
    found = []
    for _, part in law.groupby("m"):
        centres = (part["bin"] + 0.5) / K
        bars = {"x": centres.tolist(), "y": part["p"].tolist(), "width": [1 / K] * len(part)}
        found.append({"type": "bar", **bars})
    end = min(1 / sigma, path["path"].iloc[-1] * 1.5)
    found.append(_line(path["m"], path["path"]))
    found.append(_line([0, end * sigma], [0, end]))
    found.append(_line(whole["K"], whole["length"]))
    found.append(_line(whole["K"], np.minimum(whole["blur_cap"], whole["steps_cap"])))
    return [*found, _line([K], whole.loc[whole["K"] == K, "length"])]


def _line(x, y) -> dict:
    return {"type": "scatter", "x": list(x), "y": list(y)}


def _only(trace: dict) -> dict:
    return {name: value for name, value in trace.items() if name != "type"}
