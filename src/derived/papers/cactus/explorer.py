"""Sliders over one position, computed in the browser by explorer.js: a figure that needs neither kernel nor network.

mark                   meaning
blue, orange, green    verifier q, draft p, emitted distribution
orange bar below       what is gained in acceptance, which is what is spent in TV
"""

from pathlib import Path

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from derived.lab.explorer import computed, stops
from derived.lab.plot import BLUE, GREEN, MUTED, RED

LAWS = (("q", "verifier q", BLUE), ("p", "draft p", RED), ("emitted", "emitted", GREEN))
BARS = ("acceptance", "exact", "gained", "KL")  # the last one, which may be above 1, in words

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
    titles = ("one position: probability of each token", "acceptance gained = distance spent (TV)")
    layout = {"rows": 2, "cols": 1, "vertical_spacing": 0.24, "row_heights": [0.6, 0.4]}
    figure = make_subplots(**layout, subplot_titles=titles).update_annotations(font_size=13)
    for column, name, colour in LAWS:
        heights = {"x": rows["token"].tolist(), "y": rows[column].tolist()}
        figure.add_trace(go.Bar(**heights, name=name, marker_color=colour), 1, 1)
    lengths = [*first[["acceptance", "exact", "tv"]].astype(float), 0.0]
    base = [0.0, 0.0, float(first["exact"]), 0.0]  # what is spent begins where the exact rate ends: it is the gain
    style = {"orientation": "h", "showlegend": False, "base": base, "textposition": "outside"}
    style["marker"] = {"color": [BLUE, MUTED, RED, MUTED]}
    far = f"{first['kl']:.3f} nats, the draft {first['draft_kl']:.3f}"
    words = [f"{each:.3f}" for each in lengths[:3]] + [far]
    figure.add_trace(go.Bar(x=lengths, y=list(BARS), text=words, cliponaxis=False, **style), 2, 1)
    figure.update_layout(
        height=560,
        margin={"l": 90, "r": 16, "t": 70, "b": 40},
        legend={"orientation": "h", "y": 1.09, "yanchor": "bottom"},
        barmode="group",
        meta={
            "alt": f"Bars of verifier, draft and emitted distribution over {len(rows)} tokens, and below them the "
            "acceptance rate, its exact value and the TV spent, with KL in numbers. At the budget δ = "
            f"{first['delta']:g}, temperature {first['temperature']:g} and draft noise {first['noise']:g} the "
            f"acceptance rises from {first['exact']:.2f} to {first['acceptance']:.2f} for a TV of {first['tv']:.2f}. "
            "A larger δ moves what is emitted from verifier to draft; acceptance gained equals TV spent at every "
            "setting."
        },
    )
    figure.update_yaxes(range=[0, 1], row=1, col=1)
    figure.update_xaxes(title_text="token", dtick=1, row=1, col=1)
    figure.update_xaxes(range=[0, 1.15], row=2, col=1)
    figure.update_yaxes(autorange="reversed", row=2, col=1)
    start = tuple(float(first[name]) for name in ("delta", "temperature", "noise"))
    known = {"logits": rows["logit"].tolist(), "push": rows["push"].tolist()}
    return computed(figure, Path(__file__).with_suffix(".js"), AXES, start, **known)
