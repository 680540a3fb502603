"""Topic worlds: which limit is found, what early data say of it, and what the figures say."""

import pytest
import torch

from derived.lab.plot import COLOURS
from derived.lab.rng import stream
from derived.papers.stochastic_approximation.data import Coins
from derived.papers.stochastic_approximation.model.theory import agreement, coupled_worlds
from derived.papers.stochastic_approximation.worlds import EarlyData, Mixtures, Worlds, lives

FACTS = {"seed": 0, "device": torch.device("cpu"), "dtype": torch.float64}
EXPERIMENTS = (Mixtures, Worlds, EarlyData)


def test_limits_lie_at_the_roots(rows):
    last = rows[Mixtures][rows[Mixtures]["n"] == 400]
    kept = rows[Mixtures].query("n < 400").groupby(["feed", "n"])["replicate"].agg(list)
    assert kept.map(lambda each: each == [*range(5)]).all()
    assert last.groupby("feed")["replicate"].agg(list).map(lambda each: each == [*range(60)]).all()
    for feed, root, other in (("one", "root", "annealed"), ("many", "annealed", "root")):
        table = last[last["feed"] == feed]
        assert (table["x"] - table[root]).abs().mean() < 0.15
        assert (table["x"] - table[other]).abs().mean() > 0.8


def test_the_lives_of_the_picture_are_means_of_their_own_coin(tells):
    y, coin = Coins().draw(50, 3, stream(1, "lives"))
    ends = [*zip(y.mean(dim=0).tolist(), coin.tolist(), strict=True)]
    figure = lives(1, learners=3, steps=50)
    tells(figure, *(f"{end:.2f} on the coin {Coins().biases[k]:g}" for end, k in ends))
    drawn = [(line.get_color(), line.get_ydata()[-1]) for line in figure.axes[0].lines]
    assert all((COLOURS[k], pytest.approx(end)) in drawn for end, k in ends)


def test_the_first_step_in_one_of_two_worlds_by_hand():
    table = Worlds(replicas=5, steps=4).run({"c": 4.0, "learner": "first"}, **FACTS).query("n == 1")
    x = 1 + 4 * torch.rand(5, 2, generator=stream(0, "starts"), dtype=torch.float64)
    after = x + 1 - x @ coupled_worlds(4.0)[0].mT
    assert table[["x1", "x2"]].to_numpy() == pytest.approx(after.numpy(), abs=1e-12)


def test_a_coin_that_is_kept_and_one_that_changes():
    """Slow twin of the changes: the share that has changed; the tosses are those of the coin that is heard."""
    early, coins = EarlyData(), Coins()
    kept, last = early.listen(coins, torch.tensor([0, 1]).repeat(500), 400, 0.0, stream(0, "kept"))
    for coin, bias in enumerate(coins.biases):
        assert abs(kept[:, coin::2].mean() - bias) <= 4 * (0.16 / 2e5) ** 0.5
    assert torch.equal(last, torch.tensor([0, 1]).repeat(500))
    _, last = early.listen(coins, torch.zeros(2000, dtype=torch.long), 300, 0.01, stream(0, "switch"))
    switched = (1 - 0.99**300) / 2
    assert abs(last.double().mean() - switched) <= 4 * (switched / 2000) ** 0.5
    _, last = early.listen(coins, torch.zeros(2000, dtype=torch.long), 1, 1.0, stream(0, "first"))
    assert abs(last.double().mean() - 0.5) <= 4 * (0.25 / 2000) ** 0.5  # the very first step may be drawn


def test_early_data_say_less_the_longer_the_gap():
    """`sa-gap` in simulation: shares within five standard errors of the exact ones, falling to one half; at a rate of
    change ten times smaller they would not be."""
    small = EarlyData(replicas=3000, early=21, gaps=(0, 100, 3000), late=101)
    for epsilon in (0.0, 1e-2):
        table = small.run({"epsilon": epsilon}, **FACTS)
        shares = table.groupby("gap")[["agrees", "predicted"]].mean()
        error = (shares["predicted"] * (1 - shares["predicted"]) / 3000) ** 0.5
        assert (abs(shares["agrees"] - shares["predicted"]) <= 5 * error + 1e-3).all()
    assert abs(shares.loc[3000, "predicted"] - 0.5) < 1e-9
    assert abs(shares.loc[100, "agrees"] - agreement(21, 100, 101, 1e-3)) > 0.1
    with pytest.raises(ValueError, match="late = 10; give an odd number"):
        agreement(3, 1, 10, 0.1)


def test_a_missing_number_decides_nothing(rows, undecided_without):
    undecided_without(rows)
