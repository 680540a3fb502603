"""Sliders over one position: a Plotly figure that needs neither kernel nor network.

mark                   meaning
blue, orange, green    verifier q, draft p, emitted law
"""

import pandas as pd

from derived.lab.plot import MUTED

from .marks import BLUE, GREEN, RED


def explorer(rows: pd.DataFrame):
    """Plotly figure with sliders delta, temperature and noise; rows: the three names, token, p, q, emitted, and per
    setting acceptance, exact, tv, kl, draft_kl. Two panels, one above the other."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    names = ["delta", "temperature", "noise"]
    groups = dict(iter(rows.groupby(names)))
    values = [sorted(rows[name].unique()) for name in names]
    start = tuple(each[len(each) // 2] for each in values)
    laws = (("q", "verifier q", BLUE), ("p", "draft p", RED), ("emitted", "emitted", GREEN))
    bars = ("acceptance", "exact", "tv", "kl", "draft_kl")
    words = ["acceptance", "exact acc.", "TV spent", "KL emitted", "KL draft"]
    figure = make_subplots(rows=2, cols=1, vertical_spacing=0.2, row_heights=[0.55, 0.45])
    first = groups[start]
    for column, name, color in laws:
        figure.add_trace(
            go.Bar(x=first["token"].tolist(), y=first[column].round(4).tolist(), name=name, marker={"color": color}),
            1,
            1,
        )
    numbers = [round(float(first[name].iloc[0]), 4) for name in bars]
    figure.add_trace(
        go.Bar(x=numbers, y=words, orientation="h", showlegend=False, text=numbers, marker={"color": MUTED}), 2, 1
    )
    frames = []
    for key, part in groups.items():
        data = [{"type": "bar", "y": part[column].round(4).tolist()} for column, _, _ in laws]
        numbers = [round(float(part[name].iloc[0]), 4) for name in bars]
        data.append({"type": "bar", "x": numbers, "text": numbers})
        frames.append(go.Frame(name="|".join(f"{value:g}" for value in key), data=data, traces=[0, 1, 2, 3]))
    figure.frames = frames
    labels = {"delta": "δ", "temperature": "temperature", "noise": "draft noise"}
    figure.update_layout(
        height=560,
        margin={"l": 90, "r": 16, "t": 40, "b": 40},
        legend={"orientation": "h", "y": 1.1, "x": 0},
        barmode="group",
        sliders=[
            {
                "active": len(each) // 2,
                "currentvalue": {"prefix": f"{labels[name]} = "},
                "steps": [{"label": f"{value:g}", "method": "skip", "args": []} for value in each],
            }
            for name, each in zip(names, values, strict=True)
        ],
        meta={
            "alt": f"Bars of verifier, draft and emitted law over {rows['token'].nunique()} tokens, and below them the "
            f"acceptance rate, its exact value, TV and KL, at {' × '.join(str(len(each)) for each in values)} values "
            "of the budget δ, the temperature and the draft's noise. A larger δ moves the emitted law from verifier "
            "to draft; acceptance gained equals TV spent at every setting."
        },
    )
    figure.update_yaxes(title_text="probability", range=[0, 1], row=1, col=1)
    figure.update_xaxes(title_text="token", row=1, col=1)
    figure.update_xaxes(range=[0, 1.4], row=2, col=1)
    figure.update_yaxes(autorange="reversed", row=2, col=1)
    return figure
