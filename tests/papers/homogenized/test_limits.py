"""Limits with a drift: measures and figures."""

import numpy as np
import pandas as pd
import torch

from derived.lab.rng import stream
from derived.papers.homogenized import limits
from derived.papers.homogenized.limits import Interpolation, noise_power

EXPERIMENTS = (Interpolation,)


COLUMNS = {
    Interpolation: {"kind", "eta", "L", "H", "replicate", "m", "m_ode"},
}


def test_rows_have_the_promised_columns_and_no_failure(rows, complete):
    complete(rows, COLUMNS)


def test_noise_slope_sees_one_over_h():
    normal = torch.randn(480, 3, generator=stream(7, "heads"), dtype=torch.float64).numpy()
    heads = np.array([1, 16, 256])
    table = pd.DataFrame({"H": np.tile(heads, 480), "replicate": np.repeat(range(480), 3), "kind": "heads"})
    found = noise_power(table.assign(m=(normal / heads**0.5).ravel()))
    assert found.low < -1 < found.high
    assert found.n == 24


def test_figures_say_in_words_what_they_show(rows, follows):
    follows(limits.phase_diagram, rows[Interpolation], "m", "m_ode")
    follows(limits.heads_to_ode, rows[Interpolation], "m")
