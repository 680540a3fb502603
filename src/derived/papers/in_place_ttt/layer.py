"""The layer itself: what the check cells of the page decide, and the pictures of who reads whom.

mark   meaning
blue   the answer at the row's token depends on the column's token
red    it does, and that token comes later: a leak
"""

import itertools

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from derived.lab.claims import on_page, unseen
from derived.lab.explorer import sliders
from derived.lab.plot import BLUE, RED

from .model.theory import lag, reach

CLAIMS = (
    on_page(
        "IPT-2.a",
        source="paper",
        where="Section 3.4, Algorithm 1",
        plain="The memory can be computed for all chunks at once, with the result of reading one after the other.",
    ),
    on_page("IPT-3.b", source="paper", where="Section 3.4 has the reset; the grid is ours"),
    on_page(
        "IPT-4.a",
        source="paper",
        where="Section 3.4; centred taps on each chunk: released code",
        plain="Although it writes what comes next, the layer never sees the future.",
    ),
    on_page("IPT-4.b"),
    on_page("IPT-5", source="repo", where="inference_model; Section 3.4 for machines"),
    on_page(
        "IPT-6.a",
        source="paper",
        where="Section 3.4; random weights here",
        plain="Converting a pretrained model changes nothing until it is trained.",
    ),
    on_page(
        "IPT-7.a",
        source="paper",
        where="Theorem 1",
        plain="If the keys of other tokens are independent and centred, writing the next token raises the right logit.",
    ),
    unseen(
        "IPT-15",
        "Continual training with In-Place TTT raises RULER scores of Qwen3-4B, LLaMA-3.1-8B and Qwen3-14B by 0.5 to "
        "4.4 points, mostly at 64k tokens and beyond, and prefill stays about as fast and as small. From scratch, models "
        "of 4 billion weights score higher with it at 4k, 8k and 16k tokens, on full and on window attention; window "
        "models have a lower loss on real text with it, one that still falls at 32k tokens; and at 1.7 billion weights "
        "chunks of 512 and 1024 tokens are the best of four sizes, and more layers that write are better.",
        "it needs models of up to 14 billion weights and up to 120 billion tokens; IPT-10 and IPT-13.a ask small models for "
        "the mechanism, and the page counts the operations of one layer and says why a best chunk exists",
        source="paper",
        where="Tables 1 to 3, Figures 2 to 4, the labels of Figure 3 from a summary",
        paper_value="Qwen3-4B: 74.3 to 78.7 at 64k, 96.6 to 96.1 at 4k; from scratch at 8k: 38.1 to 43.8 with full "
        "attention, 9.9 to 26.8 with windows",
        plain="Large models gain by In-Place TTT, after continual training and from scratch, at no visible cost.",
    ),
    on_page("IPT-16.b"),
)

COLOURS = [[0.0, "rgba(127,127,127,0.12)"], [0.5, "rgba(127,127,127,0.12)"], [0.5, BLUE], [0.75, BLUE]]
COLOURS += [[0.75, RED], [1.0, RED]]


def table(n: int, chunk: int, ahead: int, crossing: bool) -> np.ndarray:
    """0 where nothing is read, 2 where it is, 3 for a leak: output (row) by input (column)."""
    seen = reach(n, chunk, 2, ahead, crossing).numpy()
    return np.where(seen, np.where(np.triu(np.ones_like(seen), 1), 3, 2), 0)


def explorer(n: int = 16, chunks: tuple[int, ...] = (1, 2, 4, 8, 16), most: int = 3) -> go.Figure:
    """Sliders for the chunk and for how far values look ahead; taps inside their chunk and taps that cross its edge."""
    figure = make_subplots(rows=1, cols=2, subplot_titles=("taps stay in their chunk", "taps cross its edge"))
    axes, frames = {"chunk C = ": list(chunks), "tokens ahead = ": list(range(most + 1))}, {}
    for chunk, ahead in itertools.product(*axes.values()):
        tables = [table(n, chunk, ahead, crossing) for crossing in (False, True)]
        leaks = int((tables[1] == 3).sum())
        said = f"{leaks} leak{'s' * (leaks != 1)}" if leaks else "no leak"
        missed = lag(n, chunk).numpy()
        words = f"inside: no leak · crossing: {said}<br>a token misses the last {missed.min()} to {missed.max()} tokens"
        data = [{"type": "heatmap", "z": each.tolist()} for each in tables]
        frames[chunk, ahead] = {"data": data, "traces": [0, 1], "layout": {"title": {"text": words}}}
    start = (4, 2)
    for column, each in enumerate(frames[start]["data"], start=1):
        heat = go.Heatmap(z=each["z"], colorscale=COLOURS, zmin=0, zmax=3, showscale=False, xgap=1, ygap=1)
        figure.add_trace(heat, 1, column)
        figure.update_xaxes(title_text="depends on token", row=1, col=column)
        figure.update_yaxes(autorange="reversed", row=1, col=column)
    alt = (
        f"Two tables of {n} by {n} squares, who depends on whom through the memory, for {len(frames)} settings of the "
        "chunk and of the tokens ahead. Leaks, in red, appear only where taps cross an edge and look two ahead or more."
    )
    title = {"text": frames[start]["layout"]["title"]["text"], "font": {"size": 14}}
    figure.update_layout(height=420, margin={"l": 50, "r": 16, "t": 96, "b": 40}, title=title, meta={"alt": alt})
    figure.update_yaxes(title_text="answer at token", row=1, col=1)
    return sliders(figure, frames, axes, start)
