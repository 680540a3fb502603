"""Topic information: the variational bound, and critics in and out of sample."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from derived.lab.nets import Draws
from derived.lab.rng import stream
from derived.papers.geometric_tax import information, mine
from derived.papers.geometric_tax.information import Mine, Regimes, channel_information, descriptors
from derived.papers.geometric_tax.model.information import (
    Critic,
    donsker_varadhan,
    gaussian_information,
    standardise,
    table_information,
)

EXPERIMENTS = (Mine, Regimes)
examples = settings(derandomize=True, max_examples=40, deadline=None, database=None)


@examples
@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 9))
def test_a_critic_falls_short_by_a_divergence(i, j, seed):
    """`gt-dv`: exactly KL(P || G), for tables of any shape; the best critic reaches the information."""
    g = stream(seed, "table", i, j)
    p = torch.rand(i, j, generator=g, dtype=torch.float64) + 1e-3
    p = p / p.sum()
    q = p.sum(dim=1, keepdim=True) * p.sum(dim=0, keepdim=True)
    T = torch.randn(i, j, generator=g, dtype=torch.float64)
    value = (p * T).sum() - (q * T.exp()).sum().log()
    tilted = q * T.exp() / (q * T.exp()).sum()
    short = table_information(p) - value
    assert abs(short - (p * (p / tilted).log()).sum()) <= 1e-12
    assert short >= -1e-12
    best = (p / q).log() + 3
    assert abs((p * best).sum() - (q * best.exp()).sum().log() - table_information(p)) <= 1e-12


def test_the_estimator_is_the_formula_for_samples():
    joint, product = torch.tensor([0.5, 1.5]).double(), torch.tensor([[0.0, 2.0, 3.0]]).double()
    slow = 1.0 - math.log((1 + math.e**2 + math.e**3) / 3)
    assert abs(donsker_varadhan(joint.expand(1, 2), product).item() - slow) <= 1e-12
    large = torch.full((2,), 900.0, dtype=torch.float64)  # its exponential overflows
    assert abs(donsker_varadhan(large, large)) <= 1e-12


@pytest.mark.parametrize("N", [2, 7, 400])
def test_a_free_critic_on_its_own_pairs(N):
    """`gt-insample`: ln N if the own pairs are among the N^2, and no end if they are not."""
    for height in (50.0, 700.0):
        own = torch.full((N,), height, dtype=torch.float64)
        table = height * torch.eye(N, dtype=torch.float64)
        among = donsker_varadhan(own, table.flatten())
        assert abs(among - math.log(N)) <= 1e-9
        shuffled = donsker_varadhan(own, torch.zeros(N, dtype=torch.float64))
        assert abs(shuffled - height) <= 1e-9
    random = torch.randn(N, N, generator=stream(0, "critic", N), dtype=torch.float64)
    assert donsker_varadhan(random.diagonal(), random.flatten()) <= math.log(N) + 1e-12


def test_known_informations():
    assert abs(gaussian_information(0.6, 3) + 1.5 * math.log(1 - 0.36)) <= 1e-12
    A = torch.tensor([[[2.0, 0.0]]])  # one coordinate through a channel of gain 2: rho^2 = 4 / (4 + 9)
    assert abs(channel_information(A, 3.0).item() + 0.5 * math.log(1 - 4 / 13)) <= 1e-12


def test_a_critic_in_a_batch_is_the_critic_alone():
    x, y = torch.randn(3, 10, 4, generator=stream(0, "x")), torch.randn(3, 10, 2, generator=stream(0, "y"))
    many = Critic(6, hidden=(5, 4), dropout=0.0, draws=Draws(num_networks=3, layer="critic"))
    scores = many(x, y)
    for r in range(3):
        h = torch.cat([x[r], y[r]], dim=-1)
        h = torch.relu(h @ many.W1[r].T + many.b1[r])
        h = torch.relu(h @ many.W2[r].T + many.b2[r])
        assert ((h @ many.W3[r].T + many.b3[r]).squeeze(dim=-1) - scores[r]).abs().max() <= 1e-6
    drop = Critic(6, hidden=(5, 4), dropout=0.5, draws=Draws(num_networks=3, layer="critic"))
    assert torch.equal(drop(x, y), many(x, y))
    assert not torch.equal(drop(x, y, stream(0, "drop")), many(x, y))


def test_columns_are_standardised():
    x = torch.tensor([[[1.0, 5.0], [3.0, 5.0]]])
    assert standardise(x).tolist() == [[[-1.0, 0.0], [1.0, 0.0]]]


def test_held_out_pairs_are_no_training_pairs():
    """A critic that could memorise everything: in-sample it soars on independent data, held out it does not."""
    x, y = (torch.randn(2, 128, 8, generator=stream(0, name)) for name in "xy")
    found = mine(x, y, epochs=150, batch=32, rate=5e-3, hidden=(64, 32), dropout=0.0)
    assert found.in_sample.min() > 1.0
    assert found.held_out.max() < 0.05
    same = mine(x, x + 0.1 * y, epochs=60, batch=32, rate=5e-3, hidden=(64, 32), dropout=0.0)
    assert same.held_out.min() > 0.5  # the control can pass
    assert found.course.shape == (2, 150 * 2)


def test_a_replicate_does_not_depend_on_its_neighbours_first_steps():
    x, y = (torch.randn(2, 64, 3, generator=stream(0, name)) for name in "xy")
    settings_ = {"epochs": 1, "batch": 32, "hidden": (8, 4), "dropout": 0.0}
    once, again = (mine(x, y, seed=3, **settings_) for _ in range(2))
    assert torch.equal(once.course, again.course)
    assert not torch.equal(once.course, mine(x, y, seed=4, **settings_).course)


@pytest.mark.parametrize(
    ("shapes", "facts", "words"),
    [
        (((1, 20, 2), (1, 19, 2)), {}, "Y has N = 19, but X has N = 20"),
        (((1, 12, 2), (1, 12, 2)), {}, "at least eight"),
        (((1, 40, 2), (1, 40, 2)), {"holdout": 1.0}, "holdout = 1"),
        (((1, 40, 2), (1, 40, 2)), {"epochs": 0}, "epochs = 0"),
    ],
)
def test_mine_refuses(shapes, facts, words):
    with pytest.raises(ValueError, match=words):
        mine(*(torch.zeros(shape) for shape in shapes), **facts)


def test_descriptors_are_shares():
    found = descriptors(0, "test", 2, 50)
    assert (found >= 0).all()
    assert (found.sum(dim=-1) - 1).abs().max() <= 1e-5
    assert abs(found.mean() - 1 / 25) <= 1e-6


def test_rows_are_whole(rows):
    table = rows[Mine]
    assert set(table["case"]) == {"isotropic", "curve", "dependent"}
    assert (table.loc[table["case"] == "dependent", "truth"] > 1).all()
    assert np.isfinite(table[["in_sample", "held_out"]]).all(axis=None)
    regimes = rows[Regimes]
    assert len(regimes) == 2 * 5
    assert regimes.groupby("what")["knows"].first().to_dict() == {
        "after": True,
        "floor": False,
        "global": False,
        "local": True,
        "smooth": False,
    }
    of = {"local": "I", "global": "I", "after": "II", "smooth": "III", "floor": "floor"}
    assert (regimes["regime"] == regimes["what"].map(of)).all()
    after = regimes[regimes["what"] == "after"]
    assert (after["D"] > 0.5).all()
    assert regimes[regimes["what"] != "after"]["D"].isna().all()
    assert information.shape(table).n == 2


def test_the_margin_of_a_table_with_known_answers():
    """A critic that answers -1 to everything fails on dependent data, one that answers 1 on independent data."""
    cases = [case for case in ("isotropic", "curve", "dependent") for _ in range(3)]
    for answer, least in ((-1.0, -1.5), (1.0, -0.95)):
        table = pd.DataFrame({"case": cases, "held_out": answer + np.tile([-0.001, 0.0, 0.001], 3)})
        assert information.margin(table).value == pytest.approx(least)
    good = pd.DataFrame({"case": cases, "held_out": np.repeat([-0.3, -0.2, 2.0], 3) + np.tile([-0.001, 0.0, 0.001], 3)})
    assert information.margin(good).low > 0
