"""The explorer: a frame for every position, its words and its leaks."""

import itertools

import numpy as np
import pandas as pd

from derived.papers.in_place_ttt.figures.explorer import explorer
from derived.papers.in_place_ttt.model.theory import lag, leaks, reach


def table(n=6, chunks=(1, 3), aheads=(1, 2)):
    parts = []
    for chunk, ahead, crossing in itertools.product(chunks, aheads, (0, 1)):
        seen = reach(n, chunk, 2, ahead, bool(crossing))
        reader, read = np.indices((n, n)).reshape(2, -1)
        kind = np.where(seen, np.where(np.triu(np.ones((n, n)), 1) > 0, 3, 2), 0).ravel()
        keys = {"chunk": chunk, "ahead": ahead, "crossing": crossing}
        parts.append(pd.DataFrame({**keys, "reader": reader, "read": read, "kind": kind, "lag": lag(n, chunk)[reader]}))
    return pd.concat(parts, ignore_index=True)


def test_every_position_of_the_sliders_has_its_frame():
    figure = explorer(table())
    assert {frame.name for frame in figure.frames} == {
        "|".join(map(str, each)) for each in itertools.product((1, 3), (1, 2), (0, 1))
    }
    assert "6 × 6" in figure.layout.meta["alt"]


def test_a_frame_counts_its_leaks_and_its_lag():
    titles = {frame.name: frame.layout.title.text for frame in explorer(table()).frames}
    assert leaks(6, 3, 2, 2, crossing=True) == 1
    assert titles["3|2|1"] == "1 leak; mean lag 2.0 tokens, largest 3"
    assert titles["3|2|0"] == "no leak; mean lag 2.0 tokens, largest 3"
    assert titles["1|1|1"].startswith("no leak")
