"""The explorer: a frame for every position, its words and its leaks."""

import itertools

import numpy as np
import pandas as pd

from derived.papers.in_place_ttt.explorer import explorer
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


def test_every_position_of_the_sliders_has_its_frame_with_both_tables():
    figure = explorer(table())
    assert {frame.name for frame in figure.frames} == {
        "|".join(map(str, each)) for each in itertools.product((1, 3), (1, 2))
    }
    assert "6 × 6" in figure.layout.meta["alt"]
    inside, crossing = ({frame.name: np.array(frame.data[k].z) for frame in figure.frames} for k in (0, 1))
    for chunk, ahead in itertools.product((1, 3), (1, 2)):
        for cross, tables in ((False, inside), (True, crossing)):
            seen = reach(6, chunk, 2, ahead, cross).numpy()
            assert ((tables[f"{chunk}|{ahead}"] > 0) == seen).all()


def test_a_frame_counts_its_leaks_and_its_lag():
    titles = {frame.name: frame.layout.title.text for frame in explorer(table()).frames}
    assert leaks(6, 3, 2, 2, crossing=True) == 1
    assert titles["3|2"] == "crossing: 1 leak, inside: none<br>mean lag 2.0 tokens, largest 3"
    assert titles["1|1"].startswith("crossing: no leak, inside: none")


def test_the_page_offers_ten_stops_a_slider_and_counts_the_leaks_of_the_closed_form():
    figure = explorer(table(n=24, chunks=(1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24), aheads=range(10)))
    assert all(len(slider.steps) >= 10 for slider in figure.layout.sliders)
    titles = {frame.name: frame.layout.title.text for frame in figure.frames}
    assert titles["6|4"].startswith(f"crossing: {leaks(24, 6, 2, 4, crossing=True)} leaks, inside: none")
