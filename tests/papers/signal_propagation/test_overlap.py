"""The overlap through many blocks of networks: rows and measure of SP-10.c."""

import numpy as np
import pandas as pd
import pytest
import torch

from derived.lab.rng import stream
from derived.papers.signal_propagation.model.asymptotics import vit_variances
from derived.papers.signal_propagation.overlap import CLAIMS, DeepOverlap

EXPERIMENTS = (DeepOverlap,)


def test_deep_networks_start_on_their_recurrence_which_is_that_by_hand(rows, by_hand):
    a, s = vit_variances()
    for norm, table in rows[DeepOverlap].groupby("norm"):
        course = by_hand(norm, 1.0, 1.0, 0.2, a=a, s=s, n=DeepOverlap.at("ci").n, depth=4)
        curve = table.query("replicate == 0")
        for column in ("q", "p"):
            np.testing.assert_allclose(curve[f"{column}_theory"], course[column], rtol=1e-12)
        end = table.query("b == 4")
        np.testing.assert_allclose(end["q"].mean(), course["q"][-1], rtol=0.2)  # three networks of width 32
    first = rows[DeepOverlap].query("b == 0")
    np.testing.assert_allclose(first[["q", "q_theory"]], 1.0, rtol=1e-5)
    np.testing.assert_allclose(first[["p", "p_theory"]], 0.2, rtol=1e-5)


def noise(*shape: int) -> np.ndarray:
    return torch.randn(*shape, generator=stream(5, "noise", *shape), dtype=torch.float64).numpy()


def test_overlap_of_networks_is_of_the_norm_farthest_off_at_the_last_block():
    (claim,) = CLAIMS
    off = {"layernorm": 0.001, "erf": -0.05}
    tables = []
    for norm, gap in off.items():
        overlap = 0.5 + gap + 0.001 * noise(10, 1)
        table = pd.DataFrame({"b": np.tile([0, 4], 10), "q": 2.0, "q_theory": 4.0, "p_theory": 2.0, "norm": norm})
        tables.append(table.assign(p=np.where(table["b"] == 4, 2 * np.repeat(overlap, 2), 99.0)))
    assert claim.measure(pd.concat(tables)).value == pytest.approx(-0.05, abs=0.002)
