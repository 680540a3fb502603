"""Sliders over one position: a Plotly figure that needs neither kernel nor network.

mark                   meaning
blue, orange, green    verifier q, draft p, emitted law
"""

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from derived.lab.explorer import sliders
from derived.lab.plot import BLUE, GREEN, MUTED, RED

LAWS = (("q", "verifier q", BLUE), ("p", "draft p", RED), ("emitted", "emitted", GREEN))
NUMBERS = {
    "acceptance": "acceptance",
    "exact": "exact acc.",
    "tv": "TV spent",
    "kl": "KL emitted",
    "draft_kl": "KL draft",
}


def _bars(part: pd.DataFrame) -> list[go.Bar]:
    """The three laws of a setting, and its five numbers."""
    laws = [
        go.Bar(x=part["token"].tolist(), y=part[column].round(4).tolist(), name=name, marker={"color": color})
        for column, name, color in LAWS
    ]
    numbers = part[[*NUMBERS]].iloc[0].round(4).tolist()
    style = {"orientation": "h", "showlegend": False, "text": numbers, "marker": {"color": MUTED}}
    return [*laws, go.Bar(x=numbers, y=[*NUMBERS.values()], **style)]


def explorer(rows: pd.DataFrame) -> go.Figure:
    """Sliders delta, temperature and noise; rows: the three names, token, p, q, emitted, and per setting acceptance,
    exact, tv, kl, draft_kl. Two panels, one above the other."""
    groups = dict(iter(rows.groupby(["delta", "temperature", "noise"])))
    labels = {"δ = ": "delta", "temperature = ": "temperature", "draft noise = ": "noise"}
    axes = {label: sorted(rows[name].unique().tolist()) for label, name in labels.items()}
    start = tuple(each[len(each) // 2] for each in axes.values())
    figure = make_subplots(rows=2, cols=1, vertical_spacing=0.2, row_heights=[0.55, 0.45])
    for place, bar in enumerate(_bars(groups[start])):
        figure.add_trace(bar, 1 if place < len(LAWS) else 2, 1)
    figure.update_layout(
        height=560,
        margin={"l": 90, "r": 16, "t": 40, "b": 40},
        legend={"orientation": "h", "y": 1.1, "x": 0},
        barmode="group",
        meta={
            "alt": f"Bars of verifier, draft and emitted law over {rows['token'].nunique()} tokens, and below them the "
            f"acceptance rate, its exact value, TV and KL, at {' × '.join(str(len(each)) for each in axes.values())} "
            "values of the budget δ, the temperature and the draft's noise. A larger δ moves the emitted law from "
            "verifier to draft; acceptance gained equals TV spent at every setting."
        },
    )
    figure.update_yaxes(title_text="probability", range=[0, 1], row=1, col=1)
    figure.update_xaxes(title_text="token", row=1, col=1)
    figure.update_xaxes(range=[0, 1.4], row=2, col=1)
    figure.update_yaxes(autorange="reversed", row=2, col=1)
    frames = {key: {"data": _moving(part), "traces": [0, 1, 2, 3]} for key, part in groups.items()}
    return sliders(figure, frames, axes, start)


def _moving(part: pd.DataFrame) -> list[dict]:
    """What changes from setting to setting: heights of the laws, lengths and words of the numbers."""
    *laws, numbers = _bars(part)
    return [*({"type": "bar", "y": bar.y} for bar in laws), {"type": "bar", "x": numbers.x, "text": numbers.text}]
