"""The S&P 500 as tokens: the layer's error is the formula's, `ols-held-out`."""

import torch
from here import needs
from torch.linalg import matrix_norm as norm

from derived.papers.ols_attention.data.market import absolute_returns
from derived.papers.ols_attention.experiments.real import Quarters
from derived.papers.ols_attention.model import theory


@needs("arch")
def test_the_series_is_daily_and_positive():
    days, changes = absolute_returns()
    assert len(days) == len(changes) > 5000
    assert days.is_monotonic_increasing
    assert 0 <= changes.min() < 0.5 < changes.mean() < changes.max() < 15


@needs("arch")
def test_the_error_of_a_quarter_is_that_of_the_formula():
    """The frozen layer has the coefficients Sigma^-1 Sigma' B, where Sigma' is the quarter's own second moment."""
    experiment = Quarters.at("ci")
    rows = experiment.run({}, seed=0, device=torch.device("cpu"), dtype=torch.float64)
    series = torch.tensor(absolute_returns()[1])
    tokens = series.unfold(0, 5, 1)[:-1]
    X, Y, fresh = tokens[:1000], series[5:1005, None], tokens[1000:1063]
    B = torch.linalg.lstsq(X, Y).solution
    effective = torch.linalg.solve(theory.second_moment(X), theory.second_moment(fresh)) @ B
    expected = norm(fresh @ (effective - B)) / norm(fresh @ B)
    first = rows[rows["quarter"] == 0].set_index("method")["error"]
    assert abs(first["self"] - float(expected)) < 1e-9
    assert first["cross"] < 1e-12 < 0.05 < first["self"]
    assert rows["quarter"].nunique() == (len(tokens) - 1000) // 63
