"""Tokens on a sphere over depth, on paper and with sliders. Small, live in every build, and the evidence of no claim.

Places and overlaps are rounded, so that the page stays small. The spheres are turned so that the places where the
panels end lie in front, as far as they can: right, up and front are the coordinates of a view.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import torch
from matplotlib.colors import LinearSegmentedColormap, to_hex
from plotly.subplots import make_subplots

from derived.lab.experiment import rows
from derived.lab.explorer import computed
from derived.lab.plot import BLUE, MUTED, ORANGE, RED
from derived.lab.rng import stream

from .model.chain import simulate_chain
from .model.heads import matched_law, normalise

BY_START = LinearSegmentedColormap.from_list("", [BLUE, "#7a4fb0", RED, ORANGE])  # a token's colour by its first place
TURNS = tuple(range(-180, 181, 15))


def sphere_rows(
    seed: int, n: int = 60, L: int = 480, h: float = 0.05, bias: float = 0.6, every: int = 12
) -> pd.DataFrame:
    """Tokens of R^3 over L layers: one prompt under two draws of weights, another prompt under the first draw.

    The prompts are i.i.d. from one distribution. Rows: panel, layer, token, x, y, z.
    """
    law, tables = matched_law(3, 1.0), []
    centre = torch.tensor([0.0, -bias, 0.0], dtype=torch.float64)
    for panel, prompt, weights in (
        ("prompt A, weights 1", "A", 1),
        ("prompt A, weights 2", "A", 2),
        ("prompt B, weights 1", "B", 1),
    ):
        noise = torch.randn(1, n, 3, generator=stream(seed, "sphere", prompt), dtype=torch.float64)
        X, layers = normalise(centre + noise / math.sqrt(3)), list(range(0, L + 1, every))
        g = stream(seed, "sphere weights", weights)
        chain = simulate_chain(
            X, L, math.sqrt(h), 1, law, 1.0, generator=g, method="literal", record=layers, keep_tokens=True
        )
        index = {"panel": panel, "layer": layers, "token": range(n)}
        tables.append(rows(index, dict(zip("xyz", chain.tokens[:, 0].unbind(dim=-1), strict=True))))
    return pd.concat(tables, ignore_index=True)


def viewed(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with right, up and front, and the colour of each token by its rank from left to right at first."""
    places = rows[["x", "y", "z"]].to_numpy()
    last = rows["layer"] == rows["layer"].max()
    ends = pd.DataFrame(places[last]).groupby(rows.loc[last, "panel"].to_numpy()).mean().to_numpy()
    front = (ends / np.linalg.norm(ends, axis=1, keepdims=True)).sum(axis=0)
    front /= np.linalg.norm(front)
    right = np.cross([0.0, 0.0, 1.0], front)
    right /= np.linalg.norm(right)
    view = places @ np.column_stack([right, np.cross(front, right), front])
    rows = rows.assign(right=view[:, 0], up=view[:, 1], front=view[:, 2])
    first = rows[rows["layer"] == rows["layer"].min()].set_index(["panel", "token"])["right"]
    colours = first.groupby("panel").rank(pct=True).map(BY_START).map(to_hex).rename("colour")
    return rows.join(colours, on=["panel", "token"])


def overlap(part: pd.DataFrame) -> float:
    """The mean overlap of the tokens of one panel and layer."""
    return float((part[["x", "y", "z"]].mean() ** 2).sum())


def sphere_explorer(rows: pd.DataFrame) -> go.Figure:
    """Tokens over depth, computed in the browser: sliders for the layer and for turning all spheres; rows: panel,
    layer, token, x, y, z."""
    rows = viewed(rows)
    panels, layers = list(dict.fromkeys(rows["panel"])), sorted(rows["layer"].unique().tolist())
    figure = make_subplots(rows=1, cols=len(panels), subplot_titles=panels, horizontal_spacing=0.03)
    thousandths = (1000 * rows[["right", "up", "front"]]).round().astype(int)
    groups = {key: thousandths.loc[part.index].to_numpy() for key, part in rows.groupby(["panel", "layer"])}
    net = [(1000 * line).round().astype(int) for line in _net()]
    for column, panel in enumerate(panels, start=1):
        colours = rows[(rows["panel"] == panel) & (rows["layer"] == layers[0])]["colour"].tolist()
        for trace in _sphere(groups[panel, layers[0]], net, colours):
            figure.add_trace(trace, 1, column)
    last = {panel: rows[(rows["panel"] == panel) & (rows["layer"] == layers[-1])] for panel in panels}
    ends = "; ".join(f"{panel}: {overlap(part):.2f}" for panel, part in last.items())
    means = [part[["x", "y", "z"]].mean().to_numpy() for part in last.values()]
    angles = [np.degrees(np.arccos(means[0] @ mean / np.sqrt(means[0] @ means[0] * (mean @ mean)))) for mean in means]
    figure.update_layout(
        height=360,
        showlegend=False,
        margin={"l": 10, "r": 10, "t": 40, "b": 10},
        meta={
            "play": 150,
            "alt": f"{len(groups[panels[0], layers[0]])} tokens on a sphere over {layers[-1]} layers, in {len(panels)} "
            f"panels. Mean overlap at the end: {ends}. The mean directions of the other panels lie "
            f"{' and '.join(f'{angle:.0f}' for angle in angles[1:])} degrees from that of the first.",
        },
    )
    axis = {"visible": False, "constrain": "domain"}
    figure.update_xaxes(**axis, range=[-1.08, 1.08])
    figure.update_yaxes(**axis, range=[-1.4, 1.08])
    for index in range(1, len(panels) + 1):
        number = "" if index == 1 else str(index)
        figure.update_layout({f"yaxis{number}": {"scaleanchor": f"x{number}", "scaleratio": 1}})
    places = [[groups[panel, layer].ravel().tolist() for layer in layers] for panel in panels]
    given = {"layers": layers, "places": places, "net": [line.ravel().tolist() for line in net]}
    axes = {"layer ": layers, "turned by degrees: ": TURNS}
    return computed(figure, Path(__file__).with_suffix(".js"), axes, (layers[0], 0), **given)


def _net() -> list[np.ndarray]:
    """Lines of longitude and latitude, each 30 degrees, as rows right, up, front."""
    along = np.radians(np.arange(-90, 91, 6))
    lines = [
        np.column_stack([np.cos(along) * np.sin(at), np.sin(along), np.cos(along) * np.cos(at)])
        for at in np.radians(np.arange(0, 360, 30))
    ]
    around = np.radians(np.arange(0, 361, 6))
    for at in np.radians(np.arange(-60, 61, 30)):
        up = np.full_like(around, np.sin(at))
        lines.append(np.column_stack([np.cos(at) * np.sin(around), up, np.cos(at) * np.cos(around)]))
    return lines


def _sphere(tokens: np.ndarray, net: Sequence[np.ndarray], colours: Sequence[str]) -> list[dict]:
    """Net, tokens and overlap of one sphere that is not turned, as explorer.js draws them."""
    points = [at if at[2] >= 0 else (None, None) for line in net for at in (*line / 1000, (None, None, -1))]
    lines = {"x": [at[0] for at in points], "y": [at[1] for at in points], "mode": "lines", "hoverinfo": "skip"}
    at = tokens / 1000
    marker = {"color": list(colours), "size": 8, "opacity": (0.6 + 0.4 * at[:, 2]).round(2).tolist()}
    dots = {"x": at[:, 0].tolist(), "y": at[:, 1].tolist(), "mode": "markers", "marker": marker, "hoverinfo": "skip"}
    said = {"text": [f"overlap {(at.mean(axis=0) ** 2).sum():.2f}"], "mode": "text", "hoverinfo": "skip"}
    line = {"color": MUTED, "width": 0.5}
    return [go.Scatter(**lines, line=line), go.Scatter(**dots), go.Scatter(x=[0], y=[-1.25], **said)]
