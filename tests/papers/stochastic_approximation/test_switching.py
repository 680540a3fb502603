"""Topic switching: constant steps in a world that changes, for one number and for a small transformer."""

import math

import numpy as np
import pandas as pd
import pytest
import torch

from derived.lab import training
from derived.lab.rng import stream
from derived.papers.stochastic_approximation import (
    TinyAttention,
    telegraph_variance,
)
from derived.papers.stochastic_approximation import switching as topic
from derived.papers.stochastic_approximation.data import switching_stream
from derived.papers.stochastic_approximation.switching import COINS, Switches, Tracking, ages, excess_on

EXPERIMENTS = (Tracking, Switches)
ENTROPY = -(0.8 * math.log(0.8) + 0.2 * math.log(0.2))


def test_the_variance_is_that_of_its_own_rate_of_change():
    facts = {"seed": 0, "device": torch.device("cpu"), "dtype": torch.float64}
    table = Tracking(replicas=400, steps=600, burn_in=300).run({"epsilon": 0.1, "a": 0.1}, **facts)
    error = table["ratio"].std() / 20
    assert abs(table["ratio"].mean() - 1) <= 4 * error
    wrong = table["square"] / float(telegraph_variance(0.1, 0.15))
    assert abs(wrong.mean() - 1) > 4 * error


def test_ages_are_counted_from_the_last_change():
    heard = torch.randint(2, (3, 50), generator=stream(0, "heard"))
    for row, found in zip(heard.tolist(), ages(heard).tolist(), strict=True):
        age = 0
        for n, coin in enumerate(row):
            age = age + 1 if n and coin == row[n - 1] else 1
            assert found[n] == age


def test_a_network_that_knows_nothing_is_a_fair_coin():
    net = TinyAttention(2, 5, num_networks=2)
    with torch.no_grad():
        net.readout.zero_()
        net.readout_bias[1] = torch.tensor([math.log(0.8), math.log(0.2)])  # the second network is the first coin
    texts = torch.zeros(2, 2, 3, 5, dtype=torch.long)
    found = excess_on(net, texts)
    assert (found[0] - (math.log(2) - ENTROPY)).abs().max() < 1e-6
    assert found[1].tolist() == pytest.approx([0.0, 0.6 * math.log(4)], abs=1e-6)


def test_each_model_is_judged_on_texts_of_its_own_at_all_its_rates():
    """Networks r and r + 2 are one model at two rates: with one set of weights they have one excess."""
    texts = Switches(models=2, texts=3).probes(6, seed=0)
    assert texts.shape == (2, 2, 3, 6)
    assert not torch.equal(texts[0], texts[1])
    net = TinyAttention(2, 6, num_networks=1, copies=4)
    with torch.no_grad():
        for weight in net.parameters():
            weight.copy_(weight[:1].expand_as(weight))
    found = excess_on(net, texts)
    assert torch.equal(found[:2], found[2:])
    assert not torch.equal(found[0], found[1])


def test_without_a_past_there_is_one_prediction_for_both_coins(rows):
    """KL(0.2 | p) and KL(0.8 | p) of one p, the probability of token 1: their difference is 0.6 times its log-odds."""
    blind = rows[Switches].query("arm == 'blind'")
    one, two = (blind["current"].where(blind["heard"] == coin, blind["other"]) for coin in (0, 1))
    p = 1 / (1 + np.exp((two - one) / 0.6))
    assert np.allclose(one, -ENTROPY - 0.8 * np.log(1 - p) - 0.2 * np.log(p), atol=1e-6)
    assert np.allclose(two, -ENTROPY - 0.2 * np.log(1 - p) - 0.8 * np.log(p), atol=1e-6)


def test_an_update_is_a_step_down_the_gradient_of_each_network_alone():
    """Slow twin: one network, its own rate as torch's, the same texts; networks beside it change nothing."""
    small = Switches(models=2, rates=(0.05, 0.2), updates=4, every=4, texts=2, context=6)
    drawn = [switching_stream(COINS, 48, 0.1, stream(0, "life", r)).tokens for r in range(2)]
    texts = torch.stack(drawn).view(2, 4, 2, 6)
    net = TinyAttention(2, 6, num_networks=2, copies=2)
    start = [weight.detach().clone() for weight in net.parameters()]
    (found,) = small.live(net, texts, seed=0)
    assert found.shape == (4, 2)
    for r, (rate, model) in enumerate(((0.05, 0), (0.05, 1), (0.2, 0), (0.2, 1))):
        alone = TinyAttention(2, 6)
        with torch.no_grad():
            for weight, first in zip(alone.parameters(), start, strict=True):
                weight.copy_(first[r : r + 1])
        for update in range(4):
            tokens = texts[model : model + 1, update]
            gradients = torch.autograd.grad(
                training.mean_cross_entropy(alone(tokens), tokens).sum(), alone.parameters()
            )
            with torch.no_grad():
                for weight, gradient in zip(alone.parameters(), gradients, strict=True):
                    weight -= rate * gradient
        for weight, moved in zip(alone.parameters(), net.parameters(), strict=True):
            assert (weight[0] - moved[r]).abs().max() < 1e-6


def test_every_row_is_there_once_and_the_rate_is_the_best_of_validation(rows):
    table = rows[Switches]
    assert (table.groupby(["arm", "rate", "model", "tokens"]).size() == 1).all()
    assert table["tokens"].max() == 12 * 2 * 8
    both = table.assign(both=table["current"] + table["other"]).query("part == 'validation'")
    for arm, part in both.groupby("arm"):
        best = part.groupby("rate")["both"].mean().idxmin()
        assert table.loc[(table["arm"] == arm) & table["chosen"], "rate"].unique().tolist() == [best]


def test_arms_have_the_same_start_and_the_same_tokens(rows):
    """Before the first update both see a text's first token alike: the same network, which has read nothing."""
    one, many = TinyAttention(2, 1, num_networks=2), TinyAttention(2, 32, num_networks=2)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), many.parameters(), strict=True))
    heard = rows[Switches].query("rate == 0.1").pivot(index=["tokens", "model"], columns="arm", values="heard")
    assert (heard["blind"] == heard["context"]).all()


def lives(here: dict[float, float], there: dict[float, float], relief: float = 0.25) -> pd.DataFrame:
    """Rows of Switches with known excesses and little noise; the context's are lower by ``relief`` on both coins."""
    noise = np.random.default_rng(0).normal(scale=1e-3, size=(2, 8))
    cells = [
        {"arm": arm, "rate": rate, "model": m, "chosen": rate == 1e-3, "part": part, "current": c, "other": o}
        for row, arm in enumerate(("blind", "context"))
        for rate in here
        for m in range(8)
        for part, c, o in (
            ("test", here[rate] + noise[row, m] - row * relief, there[rate] + 0.01 * m - row * relief),
            ("validation", 5.0, 5.0),
            ("first", 0.4 + noise[row, m], 0.4),
        )
    ]
    return pd.DataFrame(cells)


CLAIM = next(claim for claim in topic.CLAIMS if claim.id == "SA-11.g")


def test_to_beat_the_network_without_a_context_is_not_enough_where_an_even_guess_is_better():
    assert topic.guess() == pytest.approx(np.log(2) + 0.8 * np.log(0.8) + 0.2 * np.log(0.2), abs=1e-15)
    for relief, verdict in ((0.25, "holds"), (0.12, "fails"), (0.01, "fails")):  # means of 0.07, 0.20 and 0.31
        table = lives({1e-3: 0.30, 1e-1: 0.20}, {1e-3: 0.30, 1e-1: 0.33}, relief=relief)
        assert CLAIM.judge(CLAIM.measure(table))[0] == verdict
        assert CLAIM.measure(table).value == pytest.approx(topic.guess() - 0.3175 + relief, abs=2e-3)


def test_the_control_is_a_network_that_has_hardly_learned():
    table = lives({1e-3: 0.30, 1e-1: 0.20}, {1e-3: 0.30, 1e-1: 0.33})
    assert CLAIM.judge(CLAIM.control(table))[0] == "fails"
    early = table["part"].replace({"first": "test", "test": "first"})
    assert CLAIM.judge(CLAIM.control(table.assign(part=early)))[0] == "holds"  # one that has learned soon


def test_a_network_without_a_loss_leaves_the_claim_undecided():
    once = lives({1e-3: 0.30, 1e-1: 0.20}, {1e-3: 0.30, 1e-1: 0.33})
    table = pd.concat([once, once], ignore_index=True)  # two looks at each network, one of them without a number
    at = table.index[(table["part"] == "test") & table["chosen"] & (table["model"] == 3)][0]
    for column in ("current", "other"):
        with pytest.raises(ValueError, match="rows have no number"):
            CLAIM.measure(table.assign(**{column: table[column].drop(at)}))


def test_what_is_heard_is_learned():
    """One coin all the way: the network comes near to it, and goes away from the other."""
    small = Switches(models=3, rates=(0.1,), epsilon=1e-6, context=8, batch=8, updates=80, every=80, texts=2)
    table = small.run({"arm": "blind"}, seed=0, device=torch.device("cpu"), dtype=torch.float32)
    assert set(table["age"]) == {80 * 64}
    assert table["current"].max() < 0.05
    assert table["other"].min() > 0.5


def test_a_missing_number_decides_nothing(rows, undecided_without):
    undecided_without(rows)
