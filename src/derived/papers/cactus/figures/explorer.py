"""Sliders over one position, computed in the browser by explorer.js: a figure that needs neither kernel nor network.

mark                   meaning
blue, orange, green    verifier q, draft p, emitted law
"""

from pathlib import Path

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from derived.lab.explorer import computed, stops
from derived.lab.plot import BLUE, GREEN, MUTED, RED

LAWS = (("q", "verifier q", BLUE), ("p", "draft p", RED), ("emitted", "emitted", GREEN))
NUMBERS = {
    "acceptance": "acceptance",
    "exact": "exact acc.",
    "tv": "TV spent",
    "kl": "KL emitted",
    "draft_kl": "KL draft",
}


AXES = {
    "δ = ": stops(np.linspace(0, 1, 51) ** 2, digits=2),
    "temperature = ": stops(np.arange(0.25, 2.01, 0.025)),
    "draft noise = ": stops(np.arange(0, 4.01, 0.05)),
}


def explorer(rows: pd.DataFrame) -> go.Figure:
    """Sliders delta, temperature and noise. Two panels, one above the other.

    Rows of the first setting: token, logit of the verifier, push (what one unit of noise adds to the draft's), delta,
    temperature, noise, p, q, emitted, acceptance, exact, tv, kl, draft_kl.
    """
    first = rows.iloc[0]
    figure = make_subplots(rows=2, cols=1, vertical_spacing=0.2, row_heights=[0.55, 0.45])
    for column, name, colour in LAWS:
        heights = {"x": rows["token"].tolist(), "y": rows[column].tolist()}
        figure.add_trace(go.Bar(**heights, name=name, marker_color=colour), 1, 1)
    numbers = first[[*NUMBERS]].astype(float).tolist()
    base = [0.0, 0.0, float(first["exact"]), 0.0, 0.0]  # what is spent begins where the exact rate ends: it is the gain
    style = {"orientation": "h", "showlegend": False, "base": base, "textposition": "outside"}
    style["marker"] = {"color": [BLUE, MUTED, RED, MUTED, MUTED]}
    words = [f"{each:.3f}" for each in numbers]
    figure.add_trace(go.Bar(x=numbers, y=[*NUMBERS.values()], text=words, cliponaxis=False, **style), 2, 1)
    figure.update_layout(
        height=560,
        margin={"l": 90, "r": 16, "t": 40, "b": 40},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"},
        barmode="group",
        meta={
            "alt": f"Bars of verifier, draft and emitted law over {len(rows)} tokens, and below them the acceptance "
            f"rate, its exact value, TV and KL. At the budget δ = {first['delta']:g}, temperature "
            f"{first['temperature']:g} and draft noise {first['noise']:g} the acceptance rises from "
            f"{first['exact']:.2f} to {first['acceptance']:.2f} for a TV of {first['tv']:.2f}. A larger δ moves the "
            "emitted law from verifier to draft; acceptance gained equals TV spent at every setting."
        },
    )
    figure.update_yaxes(title_text="probability", range=[0, 1], row=1, col=1)
    figure.update_xaxes(title_text="token", dtick=1, row=1, col=1)
    figure.update_xaxes(range=[0, max(1.4, 1.15 * max(numbers))], row=2, col=1)
    figure.update_yaxes(autorange="reversed", row=2, col=1)
    start = tuple(float(first[name]) for name in ("delta", "temperature", "noise"))
    known = {"logits": rows["logit"].tolist(), "push": rows["push"].tolist()}
    return computed(figure, Path(__file__).with_suffix(".js"), AXES, start, **known)
