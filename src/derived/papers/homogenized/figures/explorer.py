"""Tokens on a sphere over depth, on paper and with a slider, and the collapse over three parameters with sliders.

Rows in, figures out. Positions and overlaps are rounded, so that the page stays small.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import plotly.graph_objects as go
import seaborn as sns
from matplotlib.figure import Figure
from plotly.subplots import make_subplots

from derived.lab.explorer import sliders
from derived.lab.plot import BLUE, MUTED, panel_label


def sphere_panels(rows: pd.DataFrame) -> Figure:
    """Tokens of R^3 seen from the front at three depths; rows: panel, layer, token, x, y, z."""
    panels, layers = list(dict.fromkeys(rows["panel"])), sorted(rows["layer"].unique())
    figure, axes = plt.subplots(len(layers), len(panels), figsize=(7.4, 1.95 * len(layers)), squeeze=False)
    words, angle = [], np.linspace(0, 2 * np.pi, 100)
    for line, layer in zip(axes, layers, strict=True):
        for ax, panel in zip(line, panels, strict=True):
            part = rows[(rows["panel"] == panel) & (rows["layer"] == layer)]
            front = part["y"] < 0
            ax.plot(np.cos(angle), np.sin(angle), color=MUTED, linewidth=0.8)
            for side, alpha in ((~front, 0.25), (front, 0.9)):
                ax.scatter(part.loc[side, "x"], part.loc[side, "z"], s=10, color=BLUE, alpha=alpha, linewidths=0)
            ax.set(aspect="equal", xticks=[], yticks=[], xlim=(-1.1, 1.1), ylim=(-1.1, 1.1))
            sns.despine(ax=ax, left=True, bottom=True)
            mean = part[["x", "y", "z"]].mean().to_numpy()
            words.append(f"{panel} at layer {layer} {mean @ mean:.2f}")
        line[0].set_ylabel(f"layer {layer}")
    for ax, panel in zip(axes[0], panels, strict=True):
        panel_label(ax, panel)
    figure.set_label(f"Tokens on a sphere. Mean overlap: {'; '.join(words)}. They gather where the weights decide.")
    return figure


def sphere_explorer(rows: pd.DataFrame) -> go.Figure:
    """Tokens over depth, one slider; rows: panel, layer, token, x, y, z. Three panels seen from the front."""
    panels, layers = list(dict.fromkeys(rows["panel"])), sorted(rows["layer"].unique())
    figure = make_subplots(rows=1, cols=len(panels), subplot_titles=panels, horizontal_spacing=0.03)
    angle = np.linspace(0, 2 * np.pi, 60).round(3)
    groups = {key: part for key, part in rows.groupby(["panel", "layer"])}

    def tokens(panel: str, layer: int) -> dict:
        part = groups[panel, layer]
        return {
            "x": part["x"].round(3).tolist(),
            "y": part["z"].round(3).tolist(),
            "opacity": (0.95 - 0.35 * (part["y"] + 1)).round(2).tolist(),
        }

    for column in range(1, len(panels) + 1):
        ring = {"mode": "lines", "line": {"color": MUTED, "width": 1}, "hoverinfo": "skip", "showlegend": False}
        figure.add_trace(
            go.Scatter(x=np.cos(angle).round(3).tolist(), y=np.sin(angle).round(3).tolist(), **ring), 1, column
        )
    for column, panel in enumerate(panels, start=1):
        place = tokens(panel, layers[0])
        marker = {"color": BLUE, "size": 7, "opacity": place["opacity"]}
        figure.add_trace(
            go.Scatter(x=place["x"], y=place["y"], mode="markers", marker=marker, showlegend=False), 1, column
        )
    count = len(panels)
    frames = {}
    for layer in layers:
        places = (tokens(panel, layer) for panel in panels)
        data = [{"x": each["x"], "y": each["y"], "marker": {"opacity": each["opacity"]}} for each in places]
        frames[layer,] = {"traces": list(range(count, 2 * count)), "data": data}
    sliders(figure, frames, {"layer ": layers}, start=(layers[0],))
    means = [groups[panel, layers[-1]][["x", "y", "z"]].mean().to_numpy() for panel in panels]
    last = "; ".join(f"{panel}: {mean @ mean:.2f}" for panel, mean in zip(panels, means, strict=True))
    angles = [np.degrees(np.arccos(means[0] @ mean / np.sqrt(means[0] @ means[0] * (mean @ mean)))) for mean in means]
    figure.update_layout(
        height=340,
        margin={"l": 10, "r": 10, "t": 40, "b": 10},
        meta={
            "play": True,
            "alt": f"{len(groups[panels[0], layers[0]])} tokens on a sphere over {layers[-1]} layers, in {count} "
            f"panels. Mean overlap at the end: {last}. The mean directions of the other panels lie "
            f"{' and '.join(f'{angle:.0f}' for angle in angles[1:])} degrees from that of the first.",
        },
    )
    axis = {"visible": False, "range": [-1.08, 1.08], "constrain": "domain"}
    figure.update_xaxes(**axis)
    figure.update_yaxes(**axis)
    for index in range(1, count + 1):
        number = "" if index == 1 else str(index)
        figure.update_layout({f"yaxis{number}": {"scaleanchor": f"x{number}", "scaleratio": 1}})
    return figure


NAMES = {"d": "width d", "logit_std": "logit deviation", "eta": "step η"}


def collapse_explorer(rows: pd.DataFrame) -> go.Figure:
    """Overlap over layers, three sliders; rows: d, logit_std, eta, path (-1: the ODE), layer, gamma."""
    groups = {key: part for key, part in rows.groupby(list(NAMES))}
    values = [sorted(rows[name].unique()) for name in NAMES]
    start = tuple(each[len(each) // 2] for each in values)

    def lines(part: pd.DataFrame) -> list[list[float]]:
        return [line["gamma"].round(3).tolist() for _, line in part.groupby("path")]

    figure, layers = go.Figure(), sorted(rows["layer"].unique().tolist())
    for index, line in enumerate(lines(groups[start])):
        style = {"color": MUTED if index == 0 else BLUE, "width": 3 if index == 0 else 1.2}
        name = "ODE" if index == 0 else "sampled paths"
        figure.add_trace(go.Scatter(x=layers, y=line, mode="lines", line=style, name=name, showlegend=index < 2))
    frames = {key: {"data": [{"type": "scatter", "y": y} for y in lines(part)]} for key, part in groups.items()}
    sliders(figure, frames, {f"{words} = ": each for words, each in zip(NAMES.values(), values, strict=True)}, start)
    figure.update_layout(
        height=400,
        margin={"l": 50, "r": 20, "t": 30, "b": 40},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"},
        meta={
            "alt": "Mean overlap of initially orthogonal tokens against layers, the ODE and sampled paths, over "
            f"{' × '.join(str(len(each)) for each in values)} values of {', '.join(NAMES.values())}. Larger steps "
            "collapse sooner, colder attention later; small widths scatter."
        },
    )
    figure.update_xaxes(title_text="layer")
    figure.update_yaxes(title_text="mean overlap", range=[-0.25, 1.02])
    return figure
