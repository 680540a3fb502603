"""The cost: one layer timed in all its implementations, compared within rounds."""

import pandas as pd
import pytest
import torch
from random_tensors import TOLERANCE

from derived.papers.hierarchical_kernel.claims import CLAIMS
from derived.papers.hierarchical_kernel.cost import AttentionInputs, attention_seconds, layer_ratio

CLAIM = {one.id: one for one in CLAIMS}


def test_timed_contenders_compute_one_layer():
    inputs = AttentionInputs(33, d_k=4, levels=3, heads=2, dtype=torch.float64)
    for impl in ("fused", "tables"):
        torch.testing.assert_close(inputs.attend(impl), inputs.attend("reference"), rtol=0, atol=TOLERANCE)
    torch.testing.assert_close(inputs.attend("plain"), inputs.attend("sdpa"), rtol=0, atol=TOLERANCE)
    assert float((inputs.attend("plain") - inputs.attend("fused")).abs().max()) > 1e-3
    seconds = attention_seconds(inputs, ("fused", "sdpa"), rounds=3)
    assert set(seconds) == {"fused", "sdpa"}
    assert all(len(each) == 3 and min(each) > 0 for each in seconds.values())


def test_overhead_compares_within_rounds():
    table = pd.DataFrame({"T": 8, "impl": ["fused", "sdpa"] * 3, "round": [0, 0, 1, 1, 2, 2]})
    table = table.assign(seconds=[2.0, 1.0, 4.0, 2.0, 20.0, 10.0])
    assert CLAIM["HKT-E4.c"].measure(table).value == pytest.approx(2.0)


def test_multiply_adds_of_a_whole_layer_lie_between_their_limits():
    """37/32 for long texts and 7/4 for wide layers, by the closed form of the page."""
    for T, d in ((64, 4096), (512, 64), (2**22, 8)):
        assert layer_ratio(T, d) == pytest.approx((7 * d + 37 / 16 * T) / (4 * d + 2 * T), rel=1e-12)
        assert 37 / 32 < layer_ratio(T, d) < 7 / 4
