"""Sliders over three worlds in the simplex and a price: a Plotly figure that needs neither kernel nor network.

mark               meaning
corners            the three tokens; a world stands nearer to the tokens that it says more often
coloured points    the worlds; a line joins those that share a cell of the best code
lines below        J_beta of each code less that of the code of three cells, against the price
filled, ring       at the price of the slider: the best code, and codes that no single step improves
"""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from derived.lab.explorer import sliders
from derived.lab.plot import BLUE, COLOURS, INK, MUTED, RED, apart

FIXED = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]])
NAMES = {"012": "1|2|3", "001": "12|3", "010": "13|2", "011": "1|23", "000": "123"}
SHADES = dict(zip(NAMES, COLOURS, strict=False))
START = (0.5, 1 / 3, 0.055)
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.75**0.5]])


def explorer(rows: pd.DataFrame) -> go.Figure:
    """Sliders for the place of the third world and the price; rows of ``data.triangles``. Two panels."""
    groups = {tuple(map(float, key)): part for key, part in rows.groupby(["along", "height", "beta"])}
    names = ("world 3, along = ", "world 3, away = ", "price β = ")
    axes = {name: sorted({key[place] for key in groups}) for place, name in enumerate(names)}
    figure = make_subplots(rows=2, cols=1, vertical_spacing=0.08, row_heights=[0.6, 0.4])
    border = CORNERS[[0, 1, 2, 0]]
    figure.add_trace(_line(border[:, 0], border[:, 1], MUTED, 1), 1, 1)
    label = {"mode": "text", "text": ["token 1", "token 2", "token 3"], "hoverinfo": "skip"}
    places = {"textposition": ["bottom center", "bottom center", "top center"]}
    figure.add_trace(go.Scatter(x=CORNERS[:, 0], y=CORNERS[:, 1], **label, **places), 1, 1)
    top = max(axes[names[2]])
    first = _moving(groups[START], START[2], top)
    for trace, panel in zip(first, (1, 1, 1, *[2] * (len(first) - 3)), strict=True):
        figure.add_trace(trace, panel, 1)
    moving = list(range(2, 2 + len(first)))
    figure.update_layout(height=820, showlegend=False, font={"color": INK}, meta={"alt": _alt(rows)})
    figure.update_layout(margin={"l": 60, "r": 16, "t": 24, "b": 40})
    figure.update_xaxes(visible=False, range=[-0.15, 1.15], constrain="domain", row=1, col=1)
    figure.update_yaxes(visible=False, range=[-0.16, 0.94], scaleanchor="x", constrain="domain", row=1, col=1)
    figure.update_xaxes(title_text="price β", range=[0, top * 1.16], row=2, col=1)
    figure.update_yaxes(title_text="J less that of 1|2|3", range=[-0.1, 0.2], row=2, col=1)
    frames = {key: {"data": _moving(part, key[2], top), "traces": moving} for key, part in groups.items()}
    return sliders(figure, frames, axes, START)


def _scatter(**style) -> dict:
    """A trace as plain data: thousands of validated objects cost seconds."""
    return {"type": "scatter", **style}


def _line(x, y, color: str, width: float) -> dict:
    return _scatter(x=list(x), y=list(y), mode="lines", line={"color": color, "width": width}, hoverinfo="skip")


def _moving(part: pd.DataFrame, beta: float, top: float) -> list[dict]:
    """What changes: cell joins, worlds, the verdict in words; five lines, the best code and the other local minima."""
    part = part.set_index("code").loc[list(NAMES)]
    laws = np.vstack([FIXED, part[["token_1", "token_2", "token_3"]].to_numpy()[0]])
    places = (laws @ CORNERS).round(3)
    best = part.index[part["best"]][-1]  # of equals the coarser
    joined = [(i, j) for j in range(3) for i in range(j) if best[i] == best[j]]
    x, y = ([each for i, j in joined for each in (places[i, axis], places[j, axis], None)] for axis in (0, 1))
    traces = [_line(x or [None], y or [None], RED, 3)]
    dots = {"size": 13, "color": [COLOURS[int(cell)] for cell in best], "line": {"color": INK, "width": 1}}
    words = {"text": ["1", "2", "3"], "textposition": ["middle left", "middle right", "top center"]}
    traces.append(_scatter(x=places[:, 0].tolist(), y=places[:, 1].tolist(), mode="markers+text", marker=dots, **words))
    stuck = [NAMES[code] for code in part.index[part["local"] & ~part["best"]]]
    verdict = f"best: {NAMES[best]}" + (f"; metastable: {', '.join(stuck)}" if stuck else "")
    traces.append(_scatter(x=[0.5], y=[-0.13], mode="text", text=[verdict], hoverinfo="skip", textfont={"size": 14}))
    saved = part["complexity"] - part["complexity"].iloc[0]  # against the code of three cells: not positive
    for code, name in NAMES.items():
        ends = [round(part.at[code, "excess"] + price * saved[code], 4) for price in (0, top)]
        line = {"color": SHADES[code], "width": 3 if code == best else 1.2}
        traces.append(_scatter(x=[0, top], y=ends, mode="lines", line=line, name=name))
    ends = part["excess"] + top * saved
    label = {"mode": "text", "text": list(NAMES.values()), "textposition": "middle right", "hoverinfo": "skip"}
    traces.append(_scatter(x=[top] * 5, y=apart(ends, 0.02).round(4).tolist(), **label))
    now = part["excess"] + beta * saved
    held = part.index[part["local"] & (part.index != best)]
    ring = {"symbol": "circle-open", "size": 15, "color": INK}
    for codes, marker in ((held, ring), ([best], {"size": 12, "color": BLUE, "line": {"color": INK, "width": 1}})):
        heights = now.loc[list(codes)].round(4).tolist()
        traces.append(_scatter(x=[beta] * len(heights) or [None], y=heights or [None], mode="markers", marker=marker))
    return traces


def _alt(rows: pd.DataFrame) -> str:
    """What there is to see, counted over the settings."""
    settings = rows.groupby(["along", "height", "beta"])
    stuck = (rows["local"] & ~rows["best"]).groupby([rows[name] for name in ("along", "height", "beta")]).any()
    return (
        "Three worlds as points in the triangle of three tokens and, below, five lines: the value of each code against "
        f"the price, less that of the code that keeps all three apart. Over {settings.ngroups} settings of the third "
        f"world and the price, {stuck.mean():.0%} have a code that no single step improves and that is not the best."
    )
