"""Streams: shapes, seeds, refusals, and the distributions that they must have."""

import math

import numpy as np
import pytest
import torch

from derived.lab.rng import stream
from derived.papers.stochastic_approximation import Coins, HeavyTailedRenewal, Mixture, Telegraph
from derived.papers.stochastic_approximation.data import multi_stream, single_stream, switching_stream
from derived.papers.stochastic_approximation.model.theory import (
    expected_freezes,
    filtered_variance,
    fractional_autocovariance,
    renewal_autocovariance,
    renewal_mean,
)

MIXTURE = {"means": (0.0, 1.0), "noise": (1.0, 1.0), "weights": (0.5, 0.5)}
STREAMS = [(Mixture, MIXTURE), (Coins, {}), (HeavyTailedRenewal, {"beta": 1.5}), (Telegraph, {"epsilon": 0.1})]


@pytest.mark.parametrize(("kind", "facts"), STREAMS)
@pytest.mark.parametrize(("steps", "replicas"), [(20, 1), (20, 3)])
def test_a_stream_has_its_shapes_and_its_seed(kind, facts, steps, replicas):
    world = kind(**facts)
    drawn, again = (world.draw(steps, replicas, stream(3, "same")) for _ in "12")
    assert drawn.y.shape == (steps, replicas)
    assert drawn.y.dtype == torch.float64
    assert drawn.world.shape == (replicas,)
    assert torch.equal(drawn.y, again.y)
    other = world.draw(steps, 40, stream(4, "other")).y
    assert not torch.equal(other, world.draw(steps, 40, stream(5, "other")).y)
    for bad in ((0, 1), (1, 0), (True, 1)):
        with pytest.raises(ValueError, match="give an integer >= 1"):
            world.draw(*bad, stream(0, "bad"))


@pytest.mark.parametrize(
    ("kind", "changed", "words"),
    [
        (Mixture, {"weights": (0.5, 0.4)}, "probabilities that sum to one"),
        (Mixture, {"noise": (1.0,)}, "noise"),
        (Mixture, {"noise": (-1.0, 1.0)}, r"noise\[0\] = -1"),
        (Mixture, {"means": (math.nan, 0.0)}, "means"),
        (Coins, {"biases": (0.5, 1.2)}, r"biases\[1\] = 1.2"),
        (Coins, {"biases": (0.5,)}, "give 1 probabilities"),
        (HeavyTailedRenewal, {"beta": 1.0}, "finite number > 1"),
        (Telegraph, {"epsilon": 0.0}, "epsilon = 0"),
    ],
)
def test_a_stream_refuses(kind, changed, words):
    with pytest.raises(ValueError, match=words):
        kind(**(MIXTURE if kind is Mixture else {}) | changed)


def test_worlds_come_with_their_weights_and_their_distributions():
    mixture = Mixture((0.0, 3.0), (1.0, 0.5), (0.3, 0.7)).draw(200, 3000, stream(0, "mixture"))
    coins = Coins((0.9, 0.4), (0.3, 0.7)).draw(200, 3000, stream(0, "coins"))
    for drawn, facts in ((mixture, ((0.0, 1.0), (3.0, 0.5))), (coins, ((0.9, 0.3), (0.4, 0.24**0.5)))):
        assert abs(drawn.world.double().mean() - 0.7) <= 4 * (0.21 / 3000) ** 0.5
        for k, (mean, noise) in enumerate(facts):
            of_k = drawn.y[:, drawn.world == k]
            assert abs(of_k.mean() - mean) <= 4 * noise / of_k.numel() ** 0.5
            assert abs(of_k.var() / noise**2 - 1) <= 4 * (2 / of_k.numel()) ** 0.5


@pytest.mark.parametrize("beta", [1.2, 1.5, 2.5])
def test_the_covariance_of_a_renewal_stream_by_counting_switches(beta):
    """Slow twin: the law of the number of switches, one stay after the other."""
    lags = 12
    longer = np.append(1.0, np.arange(1.0, lags + 1) ** -beta)
    law = longer[:-1] - longer[1:]  # P(tau = t + 1), t = 0..
    residual = np.append([0.0], longer[:lags]) / renewal_mean(beta)  # P(R = r) at r = 0..lags
    found = renewal_autocovariance(beta, lags)
    for k in range(lags):
        parity, at = 0.0, residual.copy()  # at[r]: probability that a switch, the j-th, happens at r
        none = 1 - residual[: k + 1].sum()
        sign, parity = -1.0, none
        for _ in range(k):
            after = [1 - law[: k - r].sum() for r in range(k + 1)]  # no further switch up to k
            parity += sign * sum(at[r] * after[r] for r in range(1, k + 1))
            nxt = np.zeros_like(at)
            for r in range(1, k + 1):
                for tau in range(1, k - r + 1):
                    nxt[r + tau] += at[r] * law[tau - 1]
            at, sign = nxt, -sign
        assert abs(found[k] - parity / 4) <= 1e-13


@pytest.mark.parametrize("beta", [1.3, 1.7])
def test_a_renewal_stream_is_stationary_and_has_its_covariance(beta):
    y = HeavyTailedRenewal(beta).draw(300, 4000, stream(0, "renewal")).y
    assert set(y.unique().tolist()) == {0.0, 1.0}
    assert abs(y[0].mean() - 0.5) <= 4 * 0.5 / 4000**0.5
    gamma = renewal_autocovariance(beta, 300)
    for start in (0, 290):  # replicas are independent: errors are those of 4000 coins
        for k in (1, 2, 5):
            product = (y[start] - 0.5) * (y[start + k] - 0.5)
            assert abs(product.mean() - gamma[k]) <= 4 * 0.25 / 4000**0.5
    square = (y.mean(dim=0) - 0.5).square()
    assert abs(square.mean() - filtered_variance(np.full(300, 1 / 300), gamma)) <= 4 * square.std() / 4000**0.5


def test_stays_have_their_tail():
    y = HeavyTailedRenewal(1.5).draw(2000, 500, stream(0, "tail")).y
    stays = []
    for column in y.mT.numpy():
        stays.extend(np.diff(np.flatnonzero(np.diff(column))[:40]))  # early ones: none is cut off by the end
    stays = np.array(stays)
    for t in (1, 2, 5):
        share, exact = (stays > t).mean(), t**-1.5
        assert abs(share - exact) <= 4 * (exact * (1 - exact) / len(stays)) ** 0.5 + 1e-9
    assert stays.min() >= 2


def test_expected_freezes_are_the_sum_of_tails():
    exact = sum(max(1, int(n**0.6)) ** -1.5 for n in range(50, 100)) / renewal_mean(1.5)
    assert abs(expected_freezes(1.5, 0.6, 1.0, 50) - exact) <= 1e-12
    for bad in ({"c": -1.0}, {"alpha": float("nan")}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            expected_freezes(**{"beta": 1.5, "alpha": 0.6, "c": 1.0, "N": 50} | bad)


def test_refusals_of_closed_forms():
    assert abs(renewal_mean(2.0) - 1 - np.pi**2 / 6) <= 1e-14
    for beta in (1.0, 0.5, np.inf, np.nan):
        with pytest.raises(ValueError, match="beta"):
            renewal_mean(beta)
    with pytest.raises(ValueError, match="H = 0"):
        fractional_autocovariance(0.0, 3)
    with pytest.raises(ValueError, match="lags"):
        filtered_variance(np.ones(4), np.ones(3))


def test_sums_of_fractional_noise_scale():
    """Var(Y_1 + ... + Y_n) = n^{2H}, exactly."""
    for H in (0.2, 0.5, 0.9):
        assert abs(filtered_variance(np.ones(500), fractional_autocovariance(H, 500)) / 500 ** (2 * H) - 1) <= 1e-10


def test_a_telegraph_has_its_correlation():
    y = Telegraph(0.2).draw(40, 5000, stream(0, "telegraph")).y
    assert y.unique().tolist() == [-1.0, 1.0]
    for start in (0, 30):
        assert abs(y[start].mean()) <= 4 / 5000**0.5
        for k in (1, 4):
            assert abs((y[start] * y[start + k]).mean() - 0.8**k) <= 4 / 5000**0.5


def test_token_streams_are_of_their_coins():
    coins = Coins((0.2, 0.8))
    texts = multi_stream(coins, 3000, 40, stream(0, "many"))
    share = texts.tokens.double().mean(dim=1)
    for k, p in enumerate(coins.biases):
        assert abs(share[texts.world == k].mean() - p) <= 4 * (p * (1 - p) / (1400 * 40)) ** 0.5
        one = single_stream(coins, k, 5, 2000, stream(0, "one")).tokens
        assert abs(one.double().mean() - p) <= 4 * (p * (1 - p) / 10_000) ** 0.5
    with pytest.raises(ValueError, match="world = 3; there are worlds 0 to 1"):
        single_stream(coins, 3, 1, 1, stream(0, "bad"))
    with pytest.raises(ValueError, match="texts = 0"):
        single_stream(coins, 0, 0, 1, stream(0, "bad"))


def test_a_switching_stream_changes_its_coin_at_its_rate():
    coins = Coins((0.2, 0.8))
    tokens, world = switching_stream(coins, 20_000, 0.1, stream(0, "switch"))
    changes = world.diff().ne(0).double().mean()
    assert abs(changes - 0.05) <= 4 * (0.05 / 20_000) ** 0.5  # half of the new draws change it
    for k, p in enumerate(coins.biases):
        assert abs(tokens[world == k].double().mean() - p) <= 0.02
    with pytest.raises(ValueError, match="epsilon = 1"):
        switching_stream(coins, 5, 1.0, stream(0, "bad"))
