"""Sliders over three worlds in the simplex and a price, computed in the browser by explorer.js.

mark               meaning
corners            the three tokens; a world stands nearer to the tokens that it says more often
coloured points    the worlds; a line joins worlds that share a cell of the best code
lines below        J_beta of each code less that of the code of three cells, against the price
filled, ring       at the price of the slider: the best code, and codes that no single step improves
"""

from pathlib import Path

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from derived.lab.explorer import computed, stops
from derived.lab.plot import BLUE, COLOURS, INK, MUTED, RED, apart

from .data.triangles import FIXED, triangles

NAMES = {"012": "1|2|3", "001": "12|3", "010": "13|2", "011": "1|23", "000": "123"}
SHADES = dict(zip(NAMES, COLOURS, strict=False))
START = (0.5, 0.333, 0.055)
AXES = {
    "world 3, along = ": stops(np.arange(0, 0.501, 0.01)),
    "world 3, away = ": stops([*np.arange(0, 0.651, 0.01), START[1]]),
    "price β = ": stops(np.arange(0.01, 0.1301, 0.001)),
}
TOP = AXES["price β = "][-1]
ALT = (
    "Three worlds as points in the triangle of three tokens and, below, five lines: the value of each code against the "
    "price, less that of the code that keeps all three apart. Where they are equally far apart all merge at once."
)
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.75**0.5]])


def explorer() -> go.Figure:
    """Sliders for the place of the third world and the price. Two panels."""
    rows = pd.DataFrame(triangles())
    titles = ("worlds that share a code are joined", "the lowest line is the best code")
    layout = {"rows": 2, "cols": 1, "vertical_spacing": 0.12}
    figure = make_subplots(**layout, subplot_titles=titles).update_annotations(font_size=13)
    border = CORNERS[[0, 1, 2, 0]]
    figure.add_trace(_line(border[:, 0], border[:, 1], MUTED, 1), 1, 1)
    corners = {"mode": "text", "text": ["token 1", "token 2", "token 3"], "hoverinfo": "skip", "cliponaxis": False}
    places = {"textposition": ["middle left", "middle right", "middle right"]}
    figure.add_trace(go.Scatter(x=CORNERS[:, 0], y=CORNERS[:, 1], **corners, **places), 1, 1)
    part = rows[(rows[["along", "height", "beta"]] == list(START)).all(axis=1)]
    first = drawn(part, START[2])
    for trace, panel in zip(first, (1, 1, 1, *[2] * (len(first) - 3)), strict=True):
        figure.add_trace(trace, panel, 1)
    figure.update_layout(height=820, showlegend=False, meta={"alt": ALT})
    figure.update_layout(margin={"l": 60, "r": 16, "t": 40, "b": 40})
    figure.update_xaxes(visible=False, range=[-0.5, 1.5], constrain="domain", row=1, col=1)
    figure.update_yaxes(visible=False, range=[-0.25, 0.95], scaleanchor="x", constrain="domain", row=1, col=1)
    figure.update_xaxes(title_text="price β", range=[0, TOP * 1.16], row=2, col=1)
    figure.update_yaxes(title_text="J less that of 1|2|3", range=[-0.16, 0.2], row=2, col=1)
    given = {"fixed": FIXED.tolist(), "corners": CORNERS.tolist(), "colours": COLOURS[:3], "top": TOP}
    given |= {"codes": list(NAMES), "names": list(NAMES.values()), "shades": [SHADES[code] for code in NAMES]}
    return computed(figure, Path(__file__).with_suffix(".js"), AXES, START, **given)


def _scatter(**style) -> dict:
    return {"type": "scatter", **style}


def _line(x, y, color: str, width: float) -> dict:
    return _scatter(x=list(x), y=list(y), mode="lines", line={"color": color, "width": width}, hoverinfo="skip")


def drawn(part: pd.DataFrame, beta: float) -> list[dict]:
    """What a setting changes: cell joins, worlds, the verdict; five lines, the best code and other local minima."""
    part = part.set_index("code").loc[list(NAMES)]
    laws = np.vstack([FIXED, part[["token_1", "token_2", "token_3"]].to_numpy()[0]])
    places = laws @ CORNERS
    best = part.index[part["best"]][-1]  # of equals the coarser
    joined = [(i, j) for j in range(3) for i in range(j) if best[i] == best[j]]
    x, y = ([each for i, j in joined for each in (places[i, axis], places[j, axis], None)] for axis in (0, 1))
    traces = [_line(x or [None], y or [None], RED, 3)]
    dots = {"size": 13, "color": [COLOURS[int(cell)] for cell in best], "line": {"color": INK, "width": 1}}
    words = {"text": ["1", "2", "3"], "textposition": ["middle left", "middle right", "top center"]}
    traces.append(_scatter(x=places[:, 0].tolist(), y=places[:, 1].tolist(), mode="markers+text", marker=dots, **words))
    stuck = [NAMES[code] for code in part.index[part["local"] & ~part["best"]]]
    verdict = f"best: {NAMES[best]}" + (f"; metastable: {', '.join(stuck)}" if stuck else "")
    traces.append(_scatter(x=[0.5], y=[-0.17], mode="text", text=[verdict], hoverinfo="skip", textfont={"size": 14}))
    saved = part["complexity"] - part["complexity"].iloc[0]  # against the code of three cells: not positive
    for code, name in NAMES.items():
        ends = [part.at[code, "excess"] + price * saved[code] for price in (0, TOP)]
        line = {"color": SHADES[code], "width": 3 if code == best else 1.2}
        traces.append(_scatter(x=[0, TOP], y=ends, mode="lines", line=line, name=name))
    ends = part["excess"] + TOP * saved
    label = {"mode": "text", "text": list(NAMES.values()), "textposition": "middle right", "hoverinfo": "skip"}
    traces.append(_scatter(x=[TOP] * 5, y=apart(ends, 0.05).tolist(), **label))
    now = part["excess"] + beta * saved
    held = part.index[part["local"] & (part.index != best)]
    ring = {"symbol": "circle-open", "size": 15, "color": INK}
    for codes, marker in ((held, ring), ([best], {"size": 12, "color": BLUE, "line": {"color": INK, "width": 1}})):
        heights = now.loc[list(codes)].tolist()
        traces.append(_scatter(x=[beta] * len(heights) or [None], y=heights or [None], mode="markers", marker=marker))
    return traces
