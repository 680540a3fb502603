"""The training loop: R networks side by side are R networks alone, and AdamW is the algorithm of its paper."""

import math

import pytest
import torch
from torch import nn

from derived.lab.nets import Draws, linear
from derived.lab.rng import stream
from derived.lab.training import adamw, evaluate, mean_cross_entropy, train

R, ITEMS, WIDTH, CLASSES, STEPS = 3, 12, 4, 5, 8
BETAS = (0.9, 0.99)


class Linear(nn.Module):
    """R linear classifiers with biases; those of ``networks`` alone where they are given."""

    def __init__(self, networks: slice = slice(None)):
        super().__init__()
        draws = Draws(num_networks=R, dtype=torch.float64)
        self.W = nn.Parameter(draws.matrix("W", CLASSES, WIDTH).detach()[networks].clone())
        self.b = nn.Parameter(draws.normal("b", 1, CLASSES, std=1.0)[networks].clone())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return linear(x, self.W) + self.b


def rate(step: int) -> float:
    return 0.1 * (1 - step / STEPS)


def data() -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.randn(R, ITEMS, WIDTH, generator=stream(0, "x"), dtype=torch.float64)
    return x, torch.randint(CLASSES, (R, ITEMS), generator=stream(0, "y"))


def trained(model: Linear, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    optimiser = adamw(model, betas=BETAS, weight_decay=0.1, decays=lambda name, _: name == "W")
    return train(lambda step: mean_cross_entropy(model(x), labels), optimiser, steps=STEPS, rate=rate)


def test_networks_side_by_side_are_networks_alone():
    """Up to the rounding of batched products: 20 operations a step, which steps of Adam carry on."""
    x, labels = data()
    together = Linear()
    losses = trained(together, x, labels)
    assert losses.shape == (R, STEPS)
    for r in range(R):
        alone = Linear(slice(r, r + 1))
        torch.testing.assert_close(trained(alone, x[r : r + 1], labels[r : r + 1])[0], losses[r], rtol=0, atol=1e-12)
        torch.testing.assert_close(alone.W[0], together.W[r], rtol=0, atol=1e-12)


def test_a_network_that_diverges_leaves_the_others_alone():
    x, labels = data()
    good = trained(Linear(), x, labels)
    x[1] = math.inf
    bad = trained(Linear(), x, labels)
    assert bad[1].isnan().all()
    assert torch.equal(bad[[0, 2]], good[[0, 2]])


def test_the_steps_are_those_of_adamw():
    """Loshchilov and Hutter's algorithm 2 with the rate in both terms, by hand; the bias is not decayed."""
    x, labels = data()
    model, by_hand = Linear(), {name: weight.detach().clone() for name, weight in Linear().named_parameters()}
    trained(model, x, labels)
    m = {name: torch.zeros_like(weight) for name, weight in by_hand.items()}
    v = {name: torch.zeros_like(weight) for name, weight in by_hand.items()}
    for step in range(STEPS):
        logits = linear(x, by_hand["W"]) + by_hand["b"]
        error = (torch.softmax(logits, dim=-1) - nn.functional.one_hot(labels, CLASSES)) / ITEMS
        gradient = {"W": error.mT @ x, "b": error.sum(dim=1, keepdim=True)}
        for name, g in gradient.items():
            m[name] = BETAS[0] * m[name] + (1 - BETAS[0]) * g
            v[name] = BETAS[1] * v[name] + (1 - BETAS[1]) * g**2
            first, second = m[name] / (1 - BETAS[0] ** (step + 1)), v[name] / (1 - BETAS[1] ** (step + 1))
            decay = 0.1 if name == "W" else 0.0
            by_hand[name] = by_hand[name] - rate(step) * (first / (second.sqrt() + 1e-8) + decay * by_hand[name])
    for name, weight in model.named_parameters():
        torch.testing.assert_close(weight.detach(), by_hand[name], rtol=0, atol=1e-12)


def test_losses_are_those_before_each_step_and_a_network_alone_may_lack_the_axis():
    w = nn.Parameter(torch.tensor(2.0))
    losses = train(lambda step: (1 + step) * w, torch.optim.SGD([w]), steps=3, rate=lambda step: 1.0)
    assert losses.tolist() == [2.0, 2.0, -3.0]  # 2, then 2 (2 - 1), then 3 (1 - 2)
    assert losses.dtype == torch.float64


@pytest.mark.parametrize("shape", [(R, ITEMS), (R, ITEMS, 3), (ITEMS,)])
def test_cross_entropy_is_the_mean_of_minus_the_logarithm(shape):
    """A label per item, per token, or shared by the networks."""
    full = shape if len(shape) > 1 else (R, *shape)
    logits = torch.randn(*full, CLASSES, generator=stream(0, "logits"), dtype=torch.float64)
    labels = torch.randint(CLASSES, shape, generator=stream(0, "labels"))
    law = torch.softmax(logits, dim=-1).gather(-1, labels.expand(full).unsqueeze(-1))
    torch.testing.assert_close(mean_cross_entropy(logits, labels), -law.log().flatten(1).mean(dim=1))


@pytest.mark.parametrize("tokens", [(), (3,)])
@pytest.mark.parametrize("sizes", [(ITEMS,), (5, 5, 2), (1,) * ITEMS])
def test_a_set_in_batches_is_the_set_at_once(sizes, tokens):
    logits = torch.randn(R, ITEMS, *tokens, CLASSES, generator=stream(0, "logits"), dtype=torch.float64)
    labels = torch.randint(CLASSES, (R, ITEMS, *tokens), generator=stream(0, "labels"))
    loss, right = evaluate(zip(logits.split(sizes, dim=1), labels.split(sizes, dim=1), strict=True))
    torch.testing.assert_close(loss, mean_cross_entropy(logits, labels))
    torch.testing.assert_close(right, (logits.argmax(dim=-1) == labels).double().flatten(1).mean(dim=1))


def test_nothing_to_train_or_to_evaluate_is_refused():
    with pytest.raises(ValueError, match="steps = 0"):
        train(lambda step: torch.zeros(1), torch.optim.SGD([nn.Parameter(torch.zeros(1))]), steps=0, rate=rate)
    with pytest.raises(ValueError, match="weight_decay = -1"):
        adamw(Linear(), betas=BETAS, weight_decay=-1.0)
    with pytest.raises(ValueError, match="at least one"):
        evaluate([])
