"""Streams with known answers: stationary data, in one world or in several that never mix.

symbol   name       meaning                                                              axes
Y_n      y          the data, time first                                                 (N, R)
k        world      the world that was drawn; -1 where there is only one                 (R,), integers
w_k      weights    probabilities of the worlds                                          (K,)
beta     beta       tail of the stays, P(tau > t) = t^-beta for t = 1, 2, ...            scalar
epsilon  epsilon    probability per step that the world is redrawn                      scalar

A stream is a frozen description whose ``draw(steps, replicas, generator)`` makes all replicas at once, in float64 on the
CPU. ValueError for sizes below one and parameters outside their range.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from scipy.special import zeta
from torch import Tensor

from derived.lab.checks import check_at_least, check_count, check_fraction, check_positive, check_within

from .model.theory import renewal_mean


class Draw(NamedTuple):
    """Streams side by side, and the world of each."""

    y: Tensor  # (N, R)
    world: Tensor  # (R,), -1 where the process is ergodic


class Tokens(NamedTuple):
    """Tokens and the world that made them, of each text or at each time."""

    tokens: Tensor
    world: Tensor


def _uniform(*shape: int, generator: torch.Generator) -> Tensor:
    return torch.rand(*shape, generator=generator, dtype=torch.float64)


def _pick(weights: tuple[float, ...], uniform: Tensor) -> Tensor:
    """The index at which the running sum of probabilities passes each number."""
    edges = torch.as_tensor(np.cumsum(weights), dtype=torch.float64)[:-1]
    return torch.bucketize(uniform, edges, right=True)


def _check_weights(weights: tuple[float, ...], count: int) -> None:
    check_within("weights", np.asarray(weights, dtype=float), 0, 1)
    if len(weights) != count or abs(sum(weights) - 1) > 1e-12:
        raise ValueError(f"weights = {weights}; give {count} probabilities that sum to one")


def _sizes(steps: int, replicas: int) -> None:
    check_count("steps", steps)
    check_count("replicas", replicas)


@dataclass(frozen=True)
class Mixture:
    """i.i.d. N(means_k, noise_k^2) around the mean of a world that is drawn once and kept.

    >>> Mixture((0.0, 5.0), (0.0, 0.0), (0.0, 1.0)).draw(2, 1, torch.Generator()).y.flatten().tolist()
    [5.0, 5.0]
    """

    means: tuple[float, ...]
    noise: tuple[float, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        _check_weights(self.weights, len(self.means))
        check_at_least("noise", np.asarray(self.noise, dtype=float), 0)
        if not np.isfinite(self.means).all():
            raise ValueError(f"means = {self.means}; give finite numbers")
        if len(self.noise) != len(self.means):
            raise ValueError(f"{len(self.noise)} noise levels for {len(self.means)} means; give one each")

    def draw(self, steps: int, replicas: int, generator: torch.Generator) -> Draw:
        _sizes(steps, replicas)
        world = _pick(self.weights, _uniform(replicas, generator=generator))
        y = torch.randn(steps, replicas, generator=generator, dtype=torch.float64)
        mean, noise = (torch.tensor(each, dtype=torch.float64)[world] for each in (self.means, self.noise))
        return Draw(y.mul_(noise).add_(mean), world)


@dataclass(frozen=True)
class Coins:
    """Tosses (0 or 1) of one of several coins, which is drawn once and kept: the worlds of this chapter.

    >>> Coins((0.0, 1.0), (0.0, 1.0)).draw(2, 1, torch.Generator()).y.flatten().tolist()
    [1.0, 1.0]
    """

    biases: tuple[float, ...] = (0.8, 0.2)  # P(Y = 1)
    weights: tuple[float, ...] = (0.5, 0.5)

    def __post_init__(self) -> None:
        _check_weights(self.weights, len(self.biases))
        check_within("biases", np.asarray(self.biases, dtype=float), 0, 1)

    def draw(self, steps: int, replicas: int, generator: torch.Generator) -> Draw:
        _sizes(steps, replicas)
        world = _pick(self.weights, _uniform(replicas, generator=generator))
        return Draw(self.toss(world.expand(steps, -1), generator), world)

    def toss(self, world: Tensor, generator: torch.Generator) -> Tensor:
        """One toss of the coin that ``world`` names at each place."""
        tails = 1 - torch.tensor(self.biases, dtype=torch.float64)[world]
        return (_uniform(*world.shape, generator=generator) >= tails).double()


@dataclass(frozen=True)
class HeavyTailedRenewal:
    """0 and 1 in turn, with independent stays P(tau > t) = t^-beta, t = 1, 2, ...: ergodic, for beta > 1 only.

    Stationary: the first value is a fair coin and the first stay has the residual distribution P(R > r) =
    sum_{t >= r} P(tau > t) / mu, a tail of the zeta function, inverted by bisection.

    >>> y = HeavyTailedRenewal(1.5).draw(50, 4, torch.Generator().manual_seed(0)).y
    >>> sorted(set(y.flatten().tolist()))
    [0.0, 1.0]
    """

    beta: float

    def __post_init__(self) -> None:
        renewal_mean(self.beta)

    def draw(self, steps: int, replicas: int, generator: torch.Generator) -> Draw:
        """Stays in bulk: as many rounds of draws for all replicas as the shortest stream needs."""
        _sizes(steps, replicas)
        first = _uniform(replicas, generator=generator) < 0.5
        ends = [self._residual(_uniform(replicas, generator=generator))]
        while int(ends[-1].min()) < steps:
            more = max(8, int(1.1 * (steps - int(ends[-1].min())) / renewal_mean(self.beta)))
            stays = self._stay(_uniform(more, replicas, generator=generator))
            ends.extend((ends[-1] + stays.cumsum(dim=0)).unbind(0))
        # A switch at time t changes every later value: mark it, and count switches modulo two.
        switches = torch.zeros(steps, replicas, dtype=torch.int8)
        times = torch.stack(ends)
        inside = times < steps
        switches.scatter_add_(0, times.clamp(max=steps - 1), inside.to(torch.int8))
        odd = switches.cumsum(dim=0, dtype=torch.uint8).add_(first).bitwise_and_(1)
        return Draw(odd.double(), torch.full((replicas,), -1))

    def _stay(self, u: Tensor) -> Tensor:
        """ceil(U^(-1/beta)): longer than t >= 1 with probability t^-beta; capped where it outlasts any run."""
        return (1 - u).pow(-1 / self.beta).clamp(max=2.0**52).ceil().long().clamp(min=2)

    def _residual(self, u: Tensor) -> Tensor:
        """The least r with P(R > r) <= 1 - u; P(R > r) = sum_{t >= r} P(tau > t) / mu is Hurwitz's zeta, bisected."""
        tail, mean = (1 - u).numpy(), renewal_mean(self.beta)
        low, high = np.zeros(len(tail)), np.full(len(tail), 2.0**52)  # P(R > low) > tail >= P(R > high)
        while (high - low > 1).any():
            middle = np.floor((low + high) / 2)
            above = zeta(self.beta, np.maximum(middle, 1)) / mean > tail
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return torch.as_tensor(high).long()


@dataclass(frozen=True)
class Telegraph:
    """+1 and -1, equally likely, that change with probability epsilon/2 a step: correlation (1 - epsilon)^j.

    >>> Telegraph(1e-9).draw(3, 1, torch.Generator().manual_seed(0)).y.std(dim=0).tolist()
    [0.0]
    """

    epsilon: float

    def __post_init__(self) -> None:
        check_positive("epsilon", self.epsilon)
        check_within("epsilon", self.epsilon, 0, 2)

    def draw(self, steps: int, replicas: int, generator: torch.Generator) -> Draw:
        _sizes(steps, replicas)
        changes = _uniform(steps, replicas, generator=generator) < self.epsilon / 2
        changes[0] = _uniform(replicas, generator=generator) < 0.5
        odd = changes.cumsum(dim=0, dtype=torch.uint8).bitwise_and_(1)  # bytes wrap around, and keep odd from even
        return Draw(odd.double().mul_(-2).add_(1), torch.full((replicas,), -1))


# Tokens for a network -------------------------------------------------------------------------------------------------


def multi_stream(coins: Coins, texts: int, length: int, generator: torch.Generator) -> Tokens:
    """Texts that each draw a coin: (texts, length), (texts,).

    >>> multi_stream(Coins(), 3, 5, torch.Generator().manual_seed(0)).tokens.shape
    torch.Size([3, 5])
    """
    y, world = coins.draw(length, texts, generator)
    return Tokens(y.long().mT.contiguous(), world)


def single_stream(coins: Coins, world: int, texts: int, length: int, generator: torch.Generator) -> Tokens:
    """One long stream of one coin, cut into consecutive texts: (texts, length), (texts,).

    ValueError for a coin that is not there.
    """
    check_count("texts", texts)
    if not 0 <= world < len(coins.biases):
        raise ValueError(f"world = {world}; there are worlds 0 to {len(coins.biases) - 1}")
    _uniform(1, generator=generator)  # the draw of the coin, which is given here
    y = coins.toss(torch.full((texts * length,), world), generator)
    return Tokens(y.long().view(texts, length), torch.full((texts,), world))


def switching_stream(coins: Coins, length: int, epsilon: float, generator: torch.Generator) -> Tokens:
    """One stream whose coin is redrawn with probability epsilon a step: (length,), (length,).

    Every coin is tossed at every step, and one is heard. ValueError unless 0 < epsilon < 1.
    """
    check_fraction("epsilon", epsilon)
    tosses = torch.stack([single_stream(coins, k, 1, length, generator).tokens[0] for k in range(len(coins.biases))])
    redrawn = _uniform(length, generator=generator) < epsilon
    redrawn[0] = True
    picks = torch.multinomial(torch.tensor(coins.weights), length, replacement=True, generator=generator)
    world = picks[torch.where(redrawn, torch.arange(length), 0).cummax(dim=0).values]
    return Tokens(tosses.gather(0, world[None])[0], world)
