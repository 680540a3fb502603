"""The stopwatch: one layer timed in all its implementations, compared within rounds."""

import numpy as np
import pandas as pd
import pytest
import torch

from derived.lab.experiment import run_experiment
from derived.papers.hierarchical_kernel.claims import CLAIMS
from derived.papers.hierarchical_kernel.clock import IMPLS, AttentionInputs, attention_seconds, cost_bars
from derived.papers.hierarchical_kernel.layer import MultiplyAdds

CLAIM = {one.id: one for one in CLAIMS}

# Every compared number is a sum of at most 10^3 products of standard normal numbers, each rounded a few times.
TOLERANCE = 1e-12


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
    table = pd.DataFrame({"T": 8, "impl": ["tables", "sdpa"] * 3, "round": [0, 0, 1, 1, 2, 2]})
    table = table.assign(seconds=[2.0, 1.0, 4.0, 2.0, 20.0, 10.0])
    assert CLAIM["HKT-E4.c"].measure(table).value == pytest.approx(2.0)


def test_what_is_timed_is_the_layer_with_equal_weights_by_plain_loops():
    """A score is the mean over the levels of q k / sqrt(d_k), read at the rows that stand for the two tokens."""
    inputs = AttentionInputs(7, d_k=2, levels=3, dtype=torch.float64)
    q, k = ([level[0, 0].numpy() for level in levels] for levels in (inputs.q, inputs.k))
    for t, found in enumerate(inputs.attend("fused")[0, 0].numpy()):
        scores = [np.mean([q[l][t >> l] @ k[l][s >> l] for l in range(3)]) / 2**0.5 for s in range(t + 1)]
        weights = np.exp(scores) / np.exp(scores).sum()
        np.testing.assert_allclose(found, weights @ inputs.v[0, 0, : t + 1].numpy(), rtol=0, atol=TOLERANCE)


def test_the_sizes_and_the_range_that_a_claim_on_multiply_adds_names_are_those_of_its_rows():
    claim, counts = CLAIM["HKT-1.f"], run_experiment(MultiplyAdds.at("ci"), seed=0, device="cpu").query("levels == 3")
    found = claim.measure(run_experiment(MultiplyAdds.at("ci"), seed=0, device="cpu"))
    assert (found.value, found.n, found.low) == (pytest.approx(counts["layer"].mean()), 6, None)
    T, d = counts["T"], counts["d"]
    assert counts["layer"].to_numpy() == pytest.approx((7 * d + 37 / 16 * T) / (4 * d + 2 * T))  # 37/32 to 7/4
    assert f"$T$ from {T.min()} to {T.max():,} and $d$ {d.min()} or {d.max()}" in claim.statement
    assert f"between ${37 / 32:.2f}$ and ${7 / 4}$" in claim.statement


def test_the_figure_of_costs_says_counts_and_seconds(words_of):
    counts = run_experiment(MultiplyAdds.at("ci"), seed=0, device="cpu")
    seconds = pd.DataFrame({"T": 8, "impl": [*IMPLS, "sdpa"] * 2, "round": np.repeat([0, 1], 5), "seconds": 1.0})
    words = words_of(cost_bars(counts, seconds.assign(tier="ci", recorded=False)))
    assert "1.3125 of the entries" in words
    assert "wide features 1.00" in words


def test_the_figure_of_costs_tells_the_mean_and_interval_of_the_claims(words_of):
    counts = run_experiment(MultiplyAdds.at("ci"), seed=0, device="cpu")
    seconds = pd.DataFrame({"T": 8, "impl": [*IMPLS, "sdpa"] * 4, "round": np.repeat(range(4), 5), "seconds": 1.0})
    seconds.loc[seconds["impl"] == "tables", "seconds"] = [2.0, 2.0, 2.0, 4.0]
    found = CLAIM["HKT-E4.c"].measure(seconds)
    figure = cost_bars(counts, seconds.assign(tier="ci", recorded=False))
    words = words_of(figure)
    assert "timed: 1 slower than torch's" in [text.get_text() for text in figure.axes[1].texts]
    assert "seconds of the attention alone" in words
    assert f"coarse tables {found.value:.2f} ± {found.high - found.value:.2f}" in words
