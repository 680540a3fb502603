"""The recurrences with sliders, computed in the browser by explorer.js.

panel                  meaning
q, overlap             second moment and p / q of the stream entering block b
ln J                   logarithm of J^{B,b}, the gradient from the output of B blocks back to block b
"""

from pathlib import Path

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from derived.lab.explorer import computed, stops
from derived.lab.plot import BLUE, MUTED

from .marks import NAMES

NORM_COLOURS = {"layernorm": MUTED, "erf": BLUE}
SWEPT = ("alpha", "attn", "mlp", "tokens", "depth")  # columns of the rows, in the order of the sliders
AXES = {
    "squashing α = ": stops(np.arange(0.1, 2.01, 0.02)),
    "attention σ = ": stops(np.arange(0, 1.501, 0.01)),
    "MLP σ = ": stops(np.arange(0, 1.501, 0.01)),
    "tokens n = ": stops([*np.geomspace(2, 256, 90).round(), 16, 197]),
    "depth B = ": list(range(4, 129)),
}
PANELS = {"q": "second moment q", "rho": "overlap p/q", "log_J": "ln J, from B back to b"}


def _curves(part: pd.DataFrame) -> list[dict]:
    """The traces of one slider position: each panel for each normaliser, with the axes they belong to."""
    return [
        {
            "x": curve["b"].tolist(),
            "y": [float(f"{value:.4g}") for value in curve[column]],
            "xaxis": f"x{number or ''}",
            "yaxis": f"y{number or ''}",
        }
        for number, column in zip((0, 2, 3), PANELS, strict=True)
        for _, curve in part.groupby("norm", sort=False)
    ]


def _ranges(part: pd.DataFrame) -> dict:
    """Axes that begin at zero and hold this position's curves."""
    depth = int(part["depth"].iloc[0])
    tops = (1.05 * float(part["q"].max()), 1.03, 1.05 * float(part["log_J"].max()))
    axes = {f"yaxis{number}": {"range": [0, float(f"{top:.3g}")]} for number, top in zip(("", 2, 3), tops, strict=True)}
    return axes | {f"xaxis{number}": {"range": [0, depth]} for number in ("", 2, 3)}


def recurrences(rows: pd.DataFrame, q0: float = 1.0, p0: float = 0.2) -> go.Figure:
    """q, overlap and J against depth with sliders alpha, sigma_OV, sigma_21, n and B; rows of ``recurrence_grid``."""
    figure = make_subplots(rows=1, cols=3, subplot_titles=list(PANELS.values()), horizontal_spacing=0.09)
    values = [sorted(rows[name].unique()) for name in SWEPT]
    start = tuple(float(each[len(each) // 2]) for each in values)
    first = rows[(rows[list(SWEPT)] == list(start)).all(axis=1)]
    norms = list(first["norm"].unique())
    for index, curve in enumerate(_curves(first)):
        norm = norms[index % len(norms)]
        line = {"color": NORM_COLOURS[norm], "width": 2.5}
        figure.add_trace(go.Scatter(**curve, name=NAMES[norm], line=line, mode="lines", showlegend=index < len(norms)))
    ends = first.query("b == 0").set_index("norm")["log_J"]
    figure.update_layout(
        height=430,
        margin={"l": 50, "r": 20, "t": 80, "b": 45},
        legend={"orientation": "h", "y": 1.12, "yanchor": "bottom"},
        meta={
            "alt": "Second moment, overlap and ln J against the block for LayerNorm and Derf, with sliders for α, "
            "the deviations σ of attention and of the MLP, the number of tokens n and the depth B. At the first "
            "position ln J at the input is "
            + " and ".join(f"{ends[norm]:.2f} for {NAMES[norm]}" for norm in norms)
            + "; a larger α or a deeper network raises that of Derf."
        },
        **_ranges(first),
    )
    figure.update_xaxes(title_text="block b")
    return computed(figure, Path(__file__).with_suffix(".js"), AXES, start, q0=q0, p0=p0)
