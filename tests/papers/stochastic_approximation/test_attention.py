"""Topic attention: the running head, its limits, and heads that feed on themselves."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch.nn.functional import scaled_dot_product_attention

from derived.lab.rng import stream
from derived.papers.stochastic_approximation import RunningSoftmaxAttention, self_fed_attention
from derived.papers.stochastic_approximation import attention as topic
from derived.papers.stochastic_approximation.attention import Readout, SelfFed
from derived.papers.stochastic_approximation.model.attention import readout_covariance_gaussian, tilted_mean_discrete

EXPERIMENTS = (Readout, SelfFed)
EPSILON = 2.0**-52
examples = settings(derandomize=True, max_examples=30, deadline=None, database=None)


def normals(*shape: int, name: str = "tokens") -> torch.Tensor:
    return torch.randn(*shape, generator=stream(0, name), dtype=torch.float64)


@examples
@given(st.integers(1, 40), st.integers(1, 3), st.integers(1, 4), st.sampled_from((0.0, 1.0, 1000.0)))
def test_the_running_head_is_attention_over_stored_tokens(tokens, replicas, d, size):
    """Scores of some thousands would overflow an exponential."""
    y = normals(tokens, replicas, d)
    query, key, value = size * normals(2, name="q"), normals(2, d, name="K"), normals(3, d, name="V")
    head = RunningSoftmaxAttention(query, key, value)
    for token in y:
        head.update(token)
    past = y.transpose(0, 1)
    stored = scaled_dot_product_attention(query.expand(replicas, 1, 2), past @ key.mT, past @ value.mT, scale=1.0)
    scores = past.abs() @ key.mT.abs() @ query.abs()
    allowed = 8 * EPSILON * (tokens + scores.max()) * (past @ value.mT).abs().max()
    assert (head.read() - stored.squeeze(dim=1)).abs().max() <= allowed


def test_a_head_refuses():
    eye = torch.eye(2)
    with pytest.raises(ValueError, match=r"key has the shape .* beside query "):
        RunningSoftmaxAttention(torch.ones(3), eye, eye)
    with pytest.raises(ValueError, match="key"):
        RunningSoftmaxAttention(torch.ones(2), torch.ones(2), eye)
    head = RunningSoftmaxAttention(torch.ones(2), eye, eye)
    with pytest.raises(ValueError, match="no token was seen"):
        head.read()
    with pytest.raises(ValueError, match=r"give \(R, 2\)"):
        head.update(torch.ones(1, 3))
    head.update(torch.ones(3, 2))
    with pytest.raises(ValueError, match="1 replicas after 3"):
        head.update(torch.ones(1, 2))
    with pytest.raises(ValueError, match="not finite"):
        head.update(torch.full((3, 2), math.nan))


def test_a_steep_query_reads_the_largest_token_and_a_law_is_asked_for():
    state = np.array([-1.0, 0.0, 2.0])
    assert tilted_mean_discrete(np.array([0.2, 0.5, 0.3]), 1e4 * state, state) == 2.0
    with pytest.raises(ValueError, match="probabilities"):
        tilted_mean_discrete(np.array([1.5, -0.5]), np.zeros(2), np.zeros(2))


def test_the_cost_of_a_query_is_the_delta_method_by_quadrature():
    """In one dimension: E[e^{2 theta y} (y - L)^2] / (E e^{theta y})^2."""
    m, s, theta = 0.3, 0.8, 0.9
    node, mass = np.polynomial.hermite_e.hermegauss(80)
    y, mass = m + s * node, mass / mass.sum()
    weight = np.exp(theta * y)
    limit = mass @ (weight * y) / (mass @ weight)
    slow = mass @ (weight**2 * (y - limit) ** 2) / (mass @ weight) ** 2
    square, tilt = torch.tensor([[s**2]], dtype=torch.float64), torch.tensor([theta], dtype=torch.float64)
    found = readout_covariance_gaussian(square, tilt)
    assert abs(found.item() / slow - 1) <= 1e-9


def test_gradients_of_the_head_are_those_of_softmax():
    """Of query, keys, values and tokens; also where all weights are zero, and for a view with gaps."""
    y = normals(2, 10, 3).transpose(0, 1)[::2]
    assert not y.is_contiguous()

    def running(query, key, value, tokens):
        head = RunningSoftmaxAttention(query, key, value)
        for token in tokens:
            head.update(token)
        return head.read()

    def stored(query, key, value, tokens):
        weights = torch.softmax(tokens @ key.mT @ query, dim=0)
        return (weights.unsqueeze(-1) * (tokens @ value.mT)).sum(dim=0)

    for size in (0.0, 1.0, 30.0):
        facts = [size * normals(2, name="q"), normals(2, 3, name="K"), normals(2, 3, name="V"), y]
        facts = [each.detach().requires_grad_() for each in facts]
        found, wanted = (torch.autograd.grad(one(*facts).square().sum(), facts) for one in (running, stored))
        for mine, theirs in zip(found, wanted, strict=True):
            assert (mine - theirs).abs().max() <= 1e-10 * (1 + theirs.abs().max())


@pytest.mark.parametrize("bad", [{"ones": 0.0}, {"zeros": -1.0}, {"steps": 0}, {"replicas": 0}])
def test_an_urn_refuses(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        self_fed_attention(**{"ones": 1.0, "zeros": 1.0, "steps": 2, "replicas": 1} | bad, generator=stream(0, "bad"))


def test_the_distance_of_distributions_is_that_of_kolmogorov():
    """Against scipy, on levels that are uniform and on some that are not; a draw without a level is refused."""
    measured = topic.distribution_distance("level", "feed == 'a'")
    for power in (1.0, 1.3):
        table = pd.DataFrame({"level": np.random.default_rng(0).uniform(size=500) ** power, "feed": "a"})
        found = measured(pd.concat([table, table.assign(feed="b", level=0.5)]))
        assert found.value == pytest.approx(stats.kstest(table["level"], "uniform").statistic)
        assert found.high - found.value == pytest.approx(math.sqrt(math.log(2 / 0.001) / 1000))
    with pytest.raises(ValueError, match="1 of 500 draws"):
        measured(table.assign(level=table["level"].where(table.index != 7)))


def test_rows_of_read_outs_and_urns(rows):
    spread = rows[SelfFed].groupby("feed")["x"].var()
    assert spread["own words"] > 3 * spread["prompt alone"]
    assert abs(rows[SelfFed].query("feed == 'prompt alone'")["x"].mean() - 0.4) < 5 * (0.24 / 300 / 200) ** 0.5
    assert (rows[Readout]["apart"] > 0).all()


def test_a_missing_number_decides_nothing(rows, undecided_without):
    undecided_without(rows)
