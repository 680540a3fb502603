"""Windows of a measured series: what trains is never judged, and the last year says what is subtracted."""

import numpy as np
import pandas as pd
import torch
from here import needs

from derived.lab.rng import stream
from derived.papers.geometric_tax.data import carbon

MEASURED = needs("mauna-loa")


def test_a_gap_is_filled_by_a_line():
    weekly = pd.Series(np.arange(120.0))
    gaps = weekly.mask(weekly.index.isin([7, 60, 61, 62]))
    assert torch.equal(carbon.above_last_year(gaps), carbon.above_last_year(weekly))


def test_what_is_subtracted_comes_from_the_52_weeks_before_alone():
    weekly = pd.Series(np.sin(np.arange(200.0)))
    above = carbon.above_last_year(weekly)
    for t in (52, 99, 150):
        assert abs(above[t - 52] - (weekly[t] - weekly[t - 52 : t].mean())) <= 1e-12
    later = carbon.above_last_year(weekly.where(weekly.index <= 99, 1e3))
    assert torch.equal(later[:48], above[:48])
    assert later[48] != above[48]


@MEASURED
def test_no_week_is_in_windows_of_two_parts(monkeypatch):
    monkeypatch.setattr(carbon, "above_last_year", lambda weekly: torch.arange(len(weekly) - 52))
    seen = {}
    for part in ("train", "choose", "judge"):
        ordered = carbon.windows(part, 4000, 33, stream(0, part))
        assert (ordered.diff(dim=-1) == 1).all()
        mixed = carbon.windows(part, 4000, 33, stream(0, part), in_order=False)
        assert not (mixed.diff(dim=-1) == 1).all(dim=-1).any()
        assert {*ordered.unique().tolist()} == {*mixed.unique().tolist()}
        seen[part] = ordered
    assert seen["train"].min() == 0
    assert seen["train"].max() + 1 == 30 * 52 == seen["choose"].min()
    assert seen["choose"].max() + 1 == seen["judge"].min()
    assert seen["judge"].max() == 2284 - 52 - 1
