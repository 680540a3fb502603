"""Sliders over the width of a label and the number of bins: a Plotly figure that needs neither kernel nor network.

mark                 meaning
bars, three colours  law of the bin of the next value, at three neighbouring values m
blue line            length of the path of laws from 0 to m; grey, the line of slope 1 / sigma
below                length of the whole path against K at this sigma, its two bounds, and where the sliders stand
"""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from derived.lab.explorer import sliders
from derived.lab.plot import BLUE, GREEN, INK, MUTED, ORANGE, RED, largest

COLOURS = (BLUE, ORANGE, GREEN)


def explorer(laws: pd.DataFrame, paths: pd.DataFrame) -> go.Figure:
    """Sliders sigma and K; rows of ``LawGrid`` and ``Path``. Three panels, one above the other."""
    laws, paths = largest(laws), largest(paths)
    axes = {"width σ = ": sorted(laws["sigma"].unique()), "bins K = ": sorted(laws["K"].unique())}
    axes = {words: [float(each) for each in values] for words, values in axes.items()}
    start = (0.005, 16.0)
    law = dict(iter(laws.groupby(["sigma", "K"])))
    path = dict(iter(paths.sort_values("m").groupby(["sigma", "K"])))
    whole = laws.drop_duplicates(["sigma", "K"]).sort_values("K").set_index("sigma")
    figure = make_subplots(rows=3, cols=1, vertical_spacing=0.11, row_heights=[0.3, 0.35, 0.35])
    places = sorted(laws["m"].unique())
    moving = _moving(law[start], path[start], whole.loc[start[0]], start)
    named = zip(moving[:3], places, COLOURS, strict=True)
    for bars, m, colour in named:
        figure.add_trace(go.Bar(**_only(bars), name=f"m = {m:g}", marker_color=colour, opacity=0.6), 1, 1)
    figure.add_trace(go.Scatter(**_only(moving[3]), line={"color": BLUE, "width": 2}, showlegend=False), 2, 1)
    dashed = {"color": MUTED, "width": 1.5, "dash": "dash"}
    figure.add_trace(go.Scatter(**_only(moving[4]), line=dashed, showlegend=False), 2, 1)
    figure.add_trace(go.Scatter(**_only(moving[5]), line={"color": BLUE, "width": 2}, showlegend=False), 3, 1)
    figure.add_trace(go.Scatter(**_only(moving[6]), line=dashed, showlegend=False), 3, 1)
    here = {"symbol": "cross", "size": 13, "color": RED, "line": {"color": "white", "width": 1.5}}
    figure.add_trace(go.Scatter(**_only(moving[7]), mode="markers", marker=here, showlegend=False), 3, 1)
    widths = axes["width σ = "]
    sharp, soft = (laws.loc[laws["sigma"] == width, "length"].max() for width in (widths[0], widths[-1]))
    figure.update_layout(
        height=760,
        barmode="overlay",
        bargap=0,
        legend={"orientation": "h", "y": 1.06, "x": 0},
        margin={"l": 60, "r": 16, "t": 30, "b": 40},
        font={"color": INK},
        meta={
            "alt": f"The law of the next token at three neighbouring values, at {len(axes['width σ = '])} widths sigma "
            f"and {len(axes['bins K = '])} numbers of bins K; the length of the path of laws from 0 to m, a staircase "
            f"for small sigma K and a line for large; and its whole length against K. With 64 bins it is {sharp:.0f} "
            f"at the smallest sigma and {soft:.1f} at the largest."
        },
    )
    figure.update_xaxes(title_text="next value, by bin", range=[0, 1], row=1, col=1)
    figure.update_yaxes(title_text="probability", range=[0, 1.02], row=1, col=1)
    figure.update_xaxes(title_text="value m", range=[0, 1], row=2, col=1)
    figure.update_yaxes(title_text="length so far", rangemode="tozero", row=2, col=1)
    figure.update_xaxes(title_text="bins K", type="log", tickvals=axes["bins K = "], row=3, col=1)
    figure.update_yaxes(title_text="length Λ", type="log", row=3, col=1)
    traces = list(range(8))
    frames = {
        key: {"data": _moving(law[key], path[key], whole.loc[key[0]], key), "traces": traces} for key in sorted(law)
    }
    return sliders(figure, frames, axes, start)


def _moving(law: pd.DataFrame, path: pd.DataFrame, whole: pd.DataFrame, position: tuple[float, float]) -> list[dict]:
    """What changes from setting to setting: three laws, the path and its line, lengths, bounds, and the cross."""
    sigma, K = position
    found = []
    for _, part in law.groupby("m"):
        centres = (part["bin"] + 0.5) / K
        bars = {"x": centres.round(4).tolist(), "y": part["p"].round(4).tolist(), "width": [1 / K] * len(part)}
        found.append({"type": "bar", **bars})
    found.append(_line(path["m"], path["path"]))
    found.append(_line([0, 1], [0, min(1 / sigma, path["path"].iloc[-1] * 1.5)]))
    found[-1]["x"][1] = found[-1]["y"][1] * sigma
    found.append(_line(whole["K"], whole["length"]))
    found.append(_line(whole["K"], np.minimum(whole["blur_cap"], whole["steps_cap"])))
    return [*found, _line([K], whole.loc[whole["K"] == K, "length"])]


def _line(x, y) -> dict:
    return {"type": "scatter", "x": np.round(x, 3).tolist(), "y": np.round(y, 3).tolist()}


def _only(trace: dict) -> dict:
    return {name: value for name, value in trace.items() if name != "type"}
