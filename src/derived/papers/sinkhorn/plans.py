"""One plan: what softmax and Sinkhorn make of the same scores, and the plan at every temperature."""

import math

import matplotlib.pyplot as plt
import numpy as np
import plotly.graph_objects as go
import torch
from matplotlib.figure import Figure
from plotly.subplots import make_subplots
from scipy import optimize
from torch import Tensor

from derived.lab.claims import on_page, unseen
from derived.lab.explorer import sliders
from derived.lab.plot import BLUE, MUTED, RED, THEORY, panel_label
from derived.lab.rng import stream

from .model.plan import sinkhorn

CLAIMS = (
    on_page(
        "SK-1",
        plain="Normalising rows and columns gives the coupling that solves entropic optimal transport; the normaliser decides the kind of relation.",
        source="paper",
        where="abstracts of v1 and v3, and introduction",
    ),
    on_page(
        "SK-2.a",
        plain="Normalising rows alone is softmax: the same problem with half of its constraints.",
        source="paper",
        where="abstract (a natural connection); the exact statement is earlier",
    ),
    on_page("SK-6.a"),
    on_page("SK-13.a", source="prior", where="Luise et al. 2018, Eisenberger et al. 2022"),
    on_page(
        "SK-14",
        where="the module for texts of the public code of Sinkformers detaches so; before 28 November 2026 this id bore the opposite, that the gradient stays as it was to 2 %, which was refuted as expected",
    ),
    on_page("SK-15.a", source="prior", where="Sander et al. 2022"),
    unseen(
        "SK-22",
        "That every continuous relation can be approximated explains why transformers model contextual relations well.",
        "nothing that could be run decides it; the chapter argues against it, since the same proof serves any normaliser",
        source="paper",
        where="last sentence of the abstract",
    ),
)


# Figures: Scores and their two normalisations: tables in, a figure with its alt text as label out.
#
# mark                 meaning
# sequential colours   an entry of a matrix, 1 where attention is even
# bars below           column sums; the line is 1


def three_matrices(tables: dict[str, Tensor]) -> Figure:
    """Matrices side by side as dots, each under its name and above the means of its columns."""
    sizes = {"height_ratios": [2, 1], "hspace": 0.08}
    figure, axes = plt.subplots(2, len(tables), figsize=(5.4, 2.5), sharex=True, sharey="row", gridspec_kw=sizes)
    high, words = float(torch.cat([*tables.values()]).max()), []
    for (top, below), (name, table) in zip(axes.T, tables.items(), strict=True):
        sums, places = table.mean(dim=0).tolist(), range(table.shape[1])
        for i, row in enumerate(table.tolist()):
            top.scatter(places, [i] * len(row), [110 * each / high for each in row], RED, linewidth=0)
        below.bar(places, sums, 0.75, color=BLUE)
        below.axhline(1.0, **THEORY)
        top.set(yticks=[], ylim=(len(table) - 0.4, -0.6))
        below.set(xlabel="token looked at", xticks=places, xticklabels=[str(j + 1) for j in places])
        panel_label(top, name)
        words.append(f"{name.replace('$', '')}: {min(sums):.2f} to {max(sums):.2f}")
    axes[0, 0].set(ylabel="token looking")
    axes[1, 0].set(ylabel="receives")
    title = "Softmax gives some tokens more attention, Sinkhorn gives all the same"
    figure.suptitle(title, x=0.02, ha="left", size=10)
    figure.set_label(f"Matrices from the same scores, and the means of their columns: {'; '.join(words)}.")
    return figure


# Explorer: the temperature as a slider.


def explorer(seed: int = 0, n: int = 12, points: int = 29, tol: float = 1e-3, iterations: int = 4000) -> go.Figure:
    """One slider, the temperature, between two texts of n points, the second on half the line, with uniform weights.

    The two do not lie on top of each other, so that softmax alone is no assignment however cold it is. Iterations are
    counted to the first with a column error of at most ``tol``, or all that were run.
    """
    noise = torch.rand(2, n, generator=stream(seed, "grid"), dtype=torch.float64)
    x, y = (torch.arange(n) + 0.5 + 0.25 * noise) / n
    cost, epsilons = (x.unsqueeze(-1) - y / 2).square(), np.logspace(-3.5, 0, points)
    least, independent = cost.numpy()[optimize.linear_sum_assignment(cost.numpy())].mean(), cost.mean()
    drawn = {}
    for epsilon in epsilons:
        found = sinkhorn(-cost / epsilon, tol=tol, max_iterations=iterations)
        spread = torch.special.entr(found.plan).sum() / math.log(n) - 1
        numbers = [float(each) for each in ((cost * found.plan).sum() / independent, least / independent, spread)]
        words = [f"{each:.3f}" for each in numbers] + [f"{found.iterations}"]
        lengths = [round(each, 4) for each in numbers] + [0.0]  # none for a count
        drawn[(float(f"{epsilon:.3g}"),)] = (n * n * found.plan).numpy().round(3), lengths, words
    heights, title = [0.66, 0.34], ["cold ε: cheap but slow; hot: independent"]
    figure = make_subplots(2, 1, vertical_spacing=0.2, row_heights=heights, subplot_titles=title)
    alt = (
        f"Heat map of the plan between two texts of {n} sorted points at {points} temperatures, with its cost, entropy "
        "and number of iterations. Cold, the plan is an assignment of least cost and takes many iterations; hot, it is "
        "independence and takes few."
    )
    figure.update_layout(height=520, margin_t=40, meta={"alt": alt})
    figure.update_xaxes(title_text="token of the second text", row=1, col=1)
    figure.update_yaxes(title_text="token of the first text", autorange="reversed", row=1, col=1)  # as in the figures
    figure.update_xaxes(range=[0, 1.25], row=2, col=1)
    scale = {"zmin": 0, "zmax": 4, "colorbar": {"title": "P / ab", "len": 0.62, "y": 0.7}}
    names, start = ["cost", "least cost", "entropy", "iterations"], sorted(drawn)[len(drawn) // 2]
    return map_and_bars(figure, (1, 1), drawn, names, "ε = ", start, **scale)


def map_and_bars(
    figure: go.Figure, place: tuple[int, int], drawn: dict, names: list[str], words: str, start: tuple, **scale
) -> go.Figure:
    """The figure with a heat map at ``place``, bars in its second row, and a slider: position -> table, lengths, words."""
    heat = len(figure.data)
    bar = {"y": names, "orientation": "h", "marker": {"color": MUTED}, "textposition": "outside"}
    table, lengths, numbers = drawn[start]
    figure.add_trace(go.Heatmap(z=table, colorscale="Viridis", **scale), *place)
    figure.add_trace(go.Bar(x=lengths, text=numbers, **bar), 2, 1)
    figure.update_layout(margin={"l": 16, "r": 16, "b": 40}, showlegend=False)
    figure.update_yaxes(autorange="reversed", automargin=True, row=2, col=1)
    figure.update_annotations(font_size=13)
    frames = {
        key: {"data": [{"type": "heatmap", "z": z}, {"type": "bar", "x": x, "text": text}], "traces": [heat, heat + 1]}
        for key, (z, x, text) in drawn.items()
    }
    return sliders(figure, frames, {words: sorted(key[0] for key in drawn)}, start)
