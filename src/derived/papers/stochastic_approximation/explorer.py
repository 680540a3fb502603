"""Sliders over the phase diagram: a Plotly figure that needs neither kernel nor network.

mark              meaning
blue line         the learner's path at the step exponent alpha
grey              the stream, 0 or 1, with tail exponent beta
map, cross        share of streams with an excursion in [N, 2N], and where the sliders stand
line, title       alpha = 1/beta, and the mean shares on its two sides
"""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from derived.lab.explorer import sliders
from derived.lab.plot import BLUE, MUTED, RED, SEQUENTIAL, largest

from .memory import sides


def explorer(diagram: pd.DataFrame, paths: pd.DataFrame) -> go.Figure:
    """Sliders beta and alpha; rows of ``PhaseDiagram`` and ``SamplePaths``. Two panels, one above the other."""
    shares, paths = largest(diagram), largest(paths)
    shares = shares[shares["N"] == shares["N"].max()]
    groups = dict(iter(paths.sort_values("n").groupby(["beta", "alpha"])))
    axes = {
        "tail of the stays β = ": sorted(paths["beta"].unique()),
        "step exponent α = ": sorted(paths["alpha"].unique()),
    }
    axes = {words: [float(each) for each in values] for words, values in axes.items()}
    start = (1.5, 0.55)
    low, high = sides(shares)
    titles = (
        "a learner (blue) on its stream (grey)",
        f"share of streams that swing late: {100 * low:.0f} % on and<br>below the line, {100 * high:.0f} % above it",
    )
    layout = {"rows": 2, "cols": 1, "vertical_spacing": 0.22, "row_heights": [0.45, 0.55]}
    figure = make_subplots(**layout, subplot_titles=titles).update_annotations(font_size=13)
    stream, path, cross = _moving(groups[start], start)
    n = groups[start]["n"].tolist()
    figure.add_trace(go.Scatter(x=n, y=stream["y"], line={"color": MUTED, "width": 1, "shape": "vh"}, name="Y"), 1, 1)
    figure.add_trace(go.Scatter(x=n, y=path["y"], line={"color": BLUE, "width": 2}, name="x"), 1, 1)
    wide = shares.pivot_table(index="alpha", columns="beta", values="share").round(3)
    grid = {"x": wide.columns.tolist(), "y": wide.index.tolist(), "z": wide.to_numpy().tolist()}
    bar = {"len": 0.46, "y": 0.2, "thickness": 12}
    figure.add_trace(go.Heatmap(**grid, colorscale=SEQUENTIAL, zmin=0, zmax=1, colorbar=bar, name="share"), 2, 1)
    line = np.linspace(wide.columns.min(), 2, 60).round(4)
    figure.add_trace(
        go.Scatter(x=line, y=(1 / line).round(4), line={"color": "white", "width": 3}, name="α = 1/β"), 2, 1
    )
    figure.add_trace(go.Scatter(**_point(cross), mode="markers", name="here", marker=_cross()), 2, 1)
    named = {"text": ["α = 1/β"], "textfont": {"color": "white"}, "textposition": "middle right", "hoverinfo": "skip"}
    figure.add_trace(go.Scatter(x=[1.6], y=[0.64], mode="text", **named), 2, 1)
    figure.update_layout(
        height=660,
        showlegend=False,
        margin={"l": 60, "r": 16, "t": 40, "b": 40},
        meta={
            "alt": f"A learner's path on a stream of zeros and ones, at {len(axes['tail of the stays β = '])} tail exponents beta "
            f"of its stays and {len(axes['step exponent α = '])} step exponents alpha, and below it the phase diagram. On "
            f"and below the line alpha = 1/beta a mean share of {low:.2f} of the streams has a late excursion, "
            f"above it {high:.2f}: there the path settles at one half."
        },
    )
    figure.update_yaxes(title_text="x and Y", range=[-0.05, 1.05], row=1, col=1)
    figure.update_xaxes(title_text="n", row=1, col=1)
    figure.update_xaxes(title_text="tail exponent β (small: long stays)", row=2, col=1)
    figure.update_yaxes(title_text="step exponent α", row=2, col=1)
    frames = {key: {"data": _moving(part, key), "traces": [0, 1, 4]} for key, part in groups.items()}
    return sliders(figure, frames, axes, start)


def _moving(part: pd.DataFrame, position: tuple[float, float]) -> list[dict]:
    """What changes from setting to setting: the stream, the path, and the cross."""
    heights = [{"type": "scatter", "y": part[name].round(3).tolist()} for name in ("y", "x")]
    return [*heights, {"type": "scatter", "x": [position[0]], "y": [position[1]]}]


def _point(trace: dict) -> dict:
    return {"x": trace["x"], "y": trace["y"]}


def _cross() -> dict:
    return {"symbol": "cross", "size": 13, "color": RED, "line": {"color": "white", "width": 1.5}}
