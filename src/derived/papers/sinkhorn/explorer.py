"""The temperature as a slider: a Plotly figure that needs neither kernel nor network.

mark            meaning
heat map        a plan between two sorted texts, mass over that of independence
bars below      cost and its least, over that of independence; entropy, 0 assignment and 1 independence; iterations
"""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from derived.lab.explorer import sliders
from derived.lab.plot import MUTED

NUMBERS = ("cost", "least cost", "entropy", "iterations")


def _drawn(part: pd.DataFrame, independent: float) -> tuple[np.ndarray, list[float], list[str]]:
    """The plan over independence, lengths of the bars, none for a count, and their words."""
    n = int(part["i"].max()) + 1
    table = part.pivot(index="i", columns="j", values="P").to_numpy() * n * n
    one = part.iloc[0]
    spread = (one["entropy"] - np.log(n)) / np.log(n)
    lengths = [one["cost"] / independent, one["assignment"] / independent, spread, 0.0]
    words = [f"{each:.3f}" for each in lengths[:3]] + [f"{int(one['iterations'])}"]
    return table.round(3), [float(f"{each:.4f}") for each in lengths], words


def explorer(rows: pd.DataFrame) -> go.Figure:
    """One slider, the temperature; rows of ``PlanGrid``."""
    groups = dict(iter(rows.groupby("epsilon")))
    largest = groups[max(groups)]
    independent = float(((largest["x"] - largest["y"]) ** 2).mean())
    drawn = {(float(f"{key:.3g}"),): _drawn(part, independent) for key, part in groups.items()}
    start = sorted(drawn)[len(drawn) // 2]
    table, lengths, words = drawn[start]
    titles = ("who looks at whom, from cold to hot ε", "cold ε: cheap but slow; hot: independent")
    layout = {"rows": 2, "cols": 1, "vertical_spacing": 0.2, "row_heights": [0.66, 0.34]}
    figure = make_subplots(**layout, subplot_titles=titles).update_annotations(font_size=13)
    scale = {"colorscale": "Viridis", "zmin": 0, "zmax": 4, "colorbar": {"title": "P / ab", "len": 0.62, "y": 0.7}}
    figure.add_trace(go.Heatmap(z=table, **scale), 1, 1)
    bars = {"orientation": "h", "marker": {"color": MUTED}, "text": words, "textposition": "outside"}
    figure.add_trace(go.Bar(x=lengths, y=list(NUMBERS), **bars), 2, 1)
    sizes = [len(each) for each in (groups, table)]
    figure.update_layout(
        height=620,
        margin={"l": 16, "r": 16, "t": 40, "b": 40},
        showlegend=False,
        meta={
            "alt": f"Heat map of the plan between two texts of {sizes[1]} sorted points at {sizes[0]} temperatures, "
            "with its cost, entropy and number of iterations. Cold, the plan is an assignment of least cost and "
            "takes many iterations; hot, it is independence and takes few."
        },
    )
    figure.update_xaxes(title_text="token of the second text", row=1, col=1)
    figure.update_yaxes(title_text="token of the first text", autorange="reversed", row=1, col=1)  # as in the figures
    figure.update_xaxes(range=[0, 1.25], row=2, col=1)
    figure.update_yaxes(autorange="reversed", automargin=True, row=2, col=1)
    frames = {
        key: {"data": [{"type": "heatmap", "z": z}, {"type": "bar", "x": x, "text": text}], "traces": [0, 1]}
        for key, (z, x, text) in drawn.items()
    }
    return sliders(figure, frames, {"ε = ": sorted(key[0] for key in drawn)}, start)
