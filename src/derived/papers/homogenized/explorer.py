"""Rows for the two figures with sliders: tokens on a sphere, and the collapse over three parameters.

Small, live in every build, and the evidence of no claim.
"""

import itertools
import math
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import plotly.graph_objects as go
import torch
from matplotlib.colors import LinearSegmentedColormap, to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from plotly.subplots import make_subplots

from derived.lab.experiment import rows
from derived.lab.explorer import computed, sliders
from derived.lab.plot import BLUE, INK, MUTED, ORANGE, RED, panel_label
from derived.lab.rng import stream

from .model.chain import simulate_chain
from .model.gram import default_record, gram_step
from .model.heads import HeadLaw, matched_law, normalise, simplex_gram
from .model.overlaps import simplex_flow

GRID = {
    "d": (8, 12, 16, 24, 32, 48, 64, 128, 256, 1024),
    "logit_std": (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0),
    "eta": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
}


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


def collapse_rows(
    seed: int, n: int = 8, H: int = 1, L: int = 96, paths: int = 3, points: int = 13, grid: dict = GRID
) -> pd.DataFrame:
    """Mean overlap of n initially orthogonal tokens over layers: the ODE (path -1) and sampled chains of overlaps.

    All steps are run in one batch. Rows: the names of ``grid``, path, layer, gamma.
    """
    tables, layers = [], np.array(default_record(L, points))
    steps = torch.tensor(grid["eta"], dtype=torch.float64).repeat_interleave(paths).reshape(-1, 1, 1)
    clocks = {eta: eta**2 / H * layers for eta in grid["eta"]}
    times = np.unique(np.concatenate(list(clocks.values())))
    for d, s in itertools.product(grid["d"], grid["logit_std"]):
        flow = simplex_flow(0.0, times, n, s, d)
        sampled = sampled_overlaps(n, matched_law(d, s), steps, H, layers, stream(seed, "collapse", n, d, str(s), H))
        for eta, chains in zip(grid["eta"], sampled.unflatten(-1, (-1, paths)).unbind(dim=1), strict=True):
            curves = np.column_stack([flow[np.searchsorted(times, clocks[eta])], chains.numpy()])
            setting = {"d": d, "logit_std": s, "eta": eta}
            tables.append(rows(setting | {"layer": layers, "path": range(-1, paths)}, {"gamma": curves}))
    return pd.concat(tables, ignore_index=True)


def sampled_overlaps(n: int, law: HeadLaw, steps: torch.Tensor, H: int, layers, generator) -> torch.Tensor:
    """Mean overlaps (layers, replicas) of pairs of initially orthogonal tokens, each replica with a step of its own."""
    G, kept = simplex_gram(n, 0.0).expand(len(steps), n, n), []
    for layer in range(layers[-1] + 1):
        G = gram_step(G, steps, H, law, 1.0, generator=generator) if layer else G
        if layer in layers:
            kept.append((G.sum(dim=(-2, -1)) / n - 1) / (n - 1))
    return torch.stack(kept)


# Figures: Tokens on a sphere over depth, on paper and with sliders, and the collapse over three parameters with
# sliders.
#
# Rows in, figures out. Places and overlaps are rounded, so that the page stays small. The spheres are turned so that
# the places where the panels end lie in front, as far as they can: right, up and front are the coordinates of a view.

BALL = ("#aab8c4", "#f3f6f8")  # from its rim to where the light falls
BY_START = LinearSegmentedColormap.from_list("", [BLUE, "#7a4fb0", RED, ORANGE])  # a token's colour by its first place
WAY = "#4d5a66"  # seen on the ball in the dark, too, where lines are lifted
_FLAT = ["right", "up"]
TURNS = tuple(range(-180, 181, 15))


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


def sphere_panels(rows: pd.DataFrame, layers: Sequence[int]) -> Figure:
    """Tokens of R^3 at these layers, with their way since the row before; rows: panel, layer, token, x, y, z."""
    rows = viewed(rows)
    panels, recorded = list(dict.fromkeys(rows["panel"])), sorted(rows["layer"].unique())
    figure, axes = plt.subplots(len(layers), len(panels), figsize=(7.4, 2.25 * len(layers)), squeeze=False)
    words = []
    for line, layer in zip(axes, layers, strict=True):
        for ax, panel in zip(line, panels, strict=True):
            _ball(ax)
            part = rows[rows["panel"] == panel].set_index("layer")
            now = part.loc[layer]
            before = part.loc[recorded[max(recorded.index(layer) - 1, 0)]]
            for side, alpha in ((now["front"] > 0, 0.7), (now["front"] <= 0, 0.25)):
                ways = (np.column_stack([before[name], now[name], 0 * now[name] + np.nan])[side] for name in _FLAT)
                ax.plot(*(way.ravel() for way in ways), color=WAY, linewidth=0.6, alpha=alpha, clip_on=False)
            alpha = np.where(now["front"] > 0, 1.0, 0.3)
            ax.scatter(
                now["right"], now["up"], s=22, c=now["colour"], alpha=alpha, linewidths=0, zorder=3, clip_on=False
            )
            ax.set(aspect="equal", xlim=(-1.1, 1.1), ylim=(-1.1, 1.1))
            ax.axis("off")
            said = f"overlap {overlap(now):.2f}"
            ax.annotate(said, (0.5, 0), (0, -7), xycoords="axes fraction", textcoords="offset points", ha="center")
            words.append(f"{panel} at layer {layer} {overlap(now):.2f}")
        line[0].annotate(f"layer {layer}", (-0.05, 0.5), xycoords="axes fraction", ha="right", va="center", color=INK)
    for ax, panel in zip(axes[0], panels, strict=True):
        panel_label(ax, panel)
    figure.set_label(f"Tokens on a sphere. Mean overlap: {'; '.join(words)}. They gather where the weights decide.")
    return figure


def _ball(ax: plt.Axes) -> None:
    shades = LinearSegmentedColormap.from_list("", BALL)
    for share in np.linspace(0, 1, 7):
        centre = (-0.25 * share, 0.3 * share)
        style = {"color": to_hex(shades(share)), "linewidth": 0, "zorder": 0, "clip_on": False}
        ax.add_patch(Circle(centre, 1 - 0.8 * share, **style))


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


NAMES = {"d": "width d", "logit_std": "logit deviation", "eta": "step η"}


def collapse_explorer(rows: pd.DataFrame) -> go.Figure:
    """Overlap over layers, three sliders; rows: d, logit_std, eta, path (-1: the ODE), layer, gamma."""
    table = rows.pivot(index=[*NAMES, "path"], columns="layer", values="gamma").round(3)
    lines = {key: part.to_numpy().tolist() for key, part in table.groupby(list(NAMES))}
    values = [sorted(rows[name].unique()) for name in NAMES]
    start = (
        *(each[len(each) // 2] for each in values[:2]),
        values[2][len(values[2]) // 4],
    )
    figure, layers = go.Figure(), table.columns.tolist()
    for index, line in enumerate(lines[start]):
        style = {"color": MUTED if index == 0 else BLUE, "width": 3 if index == 0 else 1.2}
        name = "ODE" if index == 0 else "sampled paths"
        figure.add_trace(go.Scatter(x=layers, y=line, mode="lines", line=style, name=name, showlegend=index < 2))
    frames = {key: {"data": [{"type": "scatter", "y": y} for y in each]} for key, each in lines.items()}
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
