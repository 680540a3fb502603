"""Environments with known answers: stationary data, Markov or not, ergodic or not.

symbol   name        meaning                                                              axes
Y_n      y           the data, time first                                                 (N, R)
k        component   ergodic component that was drawn; -1 where there is only one         (R,), integers
w        weights     probabilities of the components                                      (K,)
beta     beta        tail of the sojourns, P(tau > t) = t^-beta for t = 1, 2, ...         scalar
H        H           Hurst exponent                                                       scalar
epsilon  epsilon     1 - correlation at lag one                                           scalar

Every environment is a frozen description whose ``draw(steps, replicas, generator)`` makes all replicas at once; where
the next value needs the past, time alone is a loop. All streams are stationary, ``AbsorbingChain`` and
``DoublingBlocks`` apart, and float64 on the CPU. ValueError for sizes below one and parameters outside their range.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from scipy.special import zeta
from torch import Tensor

from derived.lab.checks import check_at_least, check_choice, check_count, check_fraction, check_positive, check_within

from ..model.attention import self_fed_attention
from ..model.chains import check_chain, closed_classes, invariant_laws
from ..model.theory import check_chain_of_infinite_order, fractional_autocovariance, renewal_mean


class Draw(NamedTuple):
    """Streams side by side, and the component of each."""

    y: Tensor  # (N, R)
    component: Tensor  # (R,), -1 where the process is ergodic


def _uniform(*shape: int, generator: torch.Generator) -> Tensor:
    return torch.rand(*shape, generator=generator, dtype=torch.float64)


def _pick(weights: tuple[float, ...] | np.ndarray, uniform: Tensor) -> Tensor:
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
    """i.i.d. N(means_k, noise_k^2) around the mean of a component drawn once: the simplest non-ergodic process.

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
        component = _pick(self.weights, _uniform(replicas, generator=generator))
        y = torch.randn(steps, replicas, generator=generator, dtype=torch.float64)
        mean, noise = (torch.tensor(each, dtype=torch.float64)[component] for each in (self.means, self.noise))
        return Draw(y.mul_(noise).add_(mean), component)


def _walk(P: np.ndarray, start: Tensor, steps: int, generator: torch.Generator) -> Tensor:
    """States (steps, R) of chains P (R, S, S), or (S, S) for all, after ``start`` (R,)."""
    edges = torch.as_tensor(np.cumsum(P, axis=-1)[..., :-1]).contiguous()
    if not np.ptp(P, axis=-2).any():  # equal rows: the next state forgets the present one, and time is no loop
        drawn = _uniform(steps, len(start), 1, generator=generator)
        return (drawn >= (edges[0] if edges.ndim == 2 else edges[:, 0])).sum(dim=-1)
    replicas, state = torch.arange(len(start)), start
    states, uniform = torch.empty(steps, len(start), dtype=torch.long), _uniform(steps, len(start), generator=generator)
    for n in range(steps):
        row = edges[state] if edges.ndim == 2 else edges[replicas, state]
        state = (uniform[n].unsqueeze(-1) >= row).sum(dim=-1)
        states[n] = state
    return states


@dataclass(frozen=True)
class MarkovMixture:
    """One of several irreducible chains on states 0..S-1, drawn once and started from its invariant law.

    >>> swap = ((0.0, 1.0), (1.0, 0.0))
    >>> drawn = MarkovMixture((swap,), (1.0,)).draw(3, 1, torch.Generator().manual_seed(0))
    >>> bool((drawn.y[0] == drawn.y[2]).all() and (drawn.y[0] != drawn.y[1]).all())
    True
    """

    chains: tuple[tuple[tuple[float, ...], ...], ...]  # (K, S, S)
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        _check_weights(self.weights, len(self.chains))
        for k, P in enumerate(self.matrices):
            check_chain(f"chains[{k}]", P)
            if len(closed_classes(P)[0]) < len(P):
                raise ValueError(f"chains[{k}] is not irreducible; give one whose states all reach each other")

    @property
    def matrices(self) -> np.ndarray:
        """(K, S, S)."""
        return np.asarray(self.chains, dtype=float)

    def draw(self, steps: int, replicas: int, generator: torch.Generator) -> Draw:
        _sizes(steps, replicas)
        component = _pick(self.weights, _uniform(replicas, generator=generator))
        edges = torch.as_tensor(np.stack([np.cumsum(invariant_laws(P)[0])[:-1] for P in self.matrices]))
        first = (_uniform(replicas, 1, generator=generator) >= edges[component]).sum(dim=-1)
        states = first.unsqueeze(0)
        if steps > 1:
            walked = _walk(self.matrices[component.numpy()], first, steps - 1, generator)
            states = torch.cat([states, walked])
        return Draw(states.double(), component)


@dataclass(frozen=True)
class AbsorbingChain:
    """One chain from one state, seen through a value per state; the component is the closed class that it ends in.

    It begins outside its classes, so it is stationary only from absorption on.

    >>> P = ((0.0, 0.5, 0.5), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    >>> drawn = AbsorbingChain(P, 0, (0.0, 1.0, 2.0)).draw(1, 4, torch.Generator().manual_seed(0))
    >>> bool((drawn.y[0] - 1 == drawn.component).all())
    True
    """

    P: tuple[tuple[float, ...], ...]
    start: int
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        check_chain("P", np.asarray(self.P, dtype=float))
        if len(self.values) != len(self.P) or not 0 <= self.start < len(self.P):
            raise ValueError(f"{len(self.values)} values and start {self.start} for {len(self.P)} states")

    def draw(self, steps: int, replicas: int, generator: torch.Generator) -> Draw:
        """ValueError where a replica has not been absorbed by the last step: it has no component yet."""
        _sizes(steps, replicas)
        P = np.asarray(self.P, dtype=float)
        states = _walk(P, torch.full((replicas,), self.start), steps, generator)
        home = torch.full((len(P),), -1)
        for k, states_of in enumerate(closed_classes(P)):
            home[list(states_of)] = k
        component = home[states[-1]]
        if (component < 0).any():
            left = int((component < 0).sum())
            raise ValueError(f"{left} of {replicas} replicas are not absorbed after {steps} steps; give more steps")
        return Draw(torch.tensor(self.values, dtype=torch.float64)[states], component)


@dataclass(frozen=True)
class InfiniteOrderLinear:
    """P(Y_{n+1} = 1 | past) = c + sum_j theta_j Y_{n-j}: unlimited memory as theta grows long, and yet ergodic.

    Started by ``burn_in`` steps from zeros: the mean misses its limit by e_n = sum_j theta_j e_{n-1-j}, e = m before.
    [prior: chains with complete connections]

    >>> InfiniteOrderLinear(0.25, (0.5,)).draw(3, 2, torch.Generator().manual_seed(0)).y.shape
    torch.Size([3, 2])
    """

    c: float
    theta: tuple[float, ...]
    burn_in: int = 1000

    def __post_init__(self) -> None:
        check_chain_of_infinite_order(self.c, np.asarray(self.theta, dtype=float))
        check_count("burn_in", self.burn_in, 0)

    def draw(self, steps: int, replicas: int, generator: torch.Generator) -> Draw:
        _sizes(steps, replicas)
        order = len(self.theta)
        oldest_first = torch.tensor(self.theta[::-1], dtype=torch.float64)
        y = torch.zeros(order + self.burn_in + steps, replicas, dtype=torch.float64)
        for n in range(order, len(y)):
            probability = self.c + oldest_first @ y[n - order : n]
            y[n] = (_uniform(replicas, generator=generator) < probability).double()
        return Draw(y[-steps:], torch.full((replicas,), -1))


@dataclass(frozen=True)
class PolyaUrn:
    """P(Y_{n+1} = 1 | past) = (ones + sum of Y) / (ones + zeros + n): a coin of random bias Beta(ones, zeros).

    Exchangeable, hence stationary; full memory and non-ergodic at once, with a continuum of components. The bias shows
    only in the limit, so ``component`` is -1. [prior: de Finetti]

    >>> PolyaUrn(1.0, 1.0).draw(2, 3, torch.Generator().manual_seed(0)).y.shape
    torch.Size([2, 3])
    """

    ones: float
    zeros: float

    def __post_init__(self) -> None:
        check_positive("ones", self.ones)
        check_positive("zeros", self.zeros)

    def draw(self, steps: int, replicas: int, generator: torch.Generator) -> Draw:
        written, _ = self_fed_attention(self.ones, self.zeros, steps, replicas, generator=generator)
        return Draw(written, torch.full((replicas,), -1))


@dataclass(frozen=True)
class HeavyTailedRenewal:
    """0 and 1 in turn, with independent sojourns P(tau > t) = t^-beta, t = 1, 2, ...: ergodic, for beta > 1 only.

    Stationary: the first value is a fair coin and the first sojourn has the residual law P(R > r) = sum_{t >= r}
    P(tau > t) / mu, a tail of the zeta function, inverted by bisection.

    >>> y = HeavyTailedRenewal(1.5).draw(50, 4, torch.Generator().manual_seed(0)).y
    >>> sorted(set(y.flatten().tolist()))
    [0.0, 1.0]
    """

    beta: float

    def __post_init__(self) -> None:
        renewal_mean(self.beta)

    def draw(self, steps: int, replicas: int, generator: torch.Generator) -> Draw:
        """Sojourns in bulk: as many rounds of draws for all replicas as the shortest stream needs."""
        _sizes(steps, replicas)
        first = _uniform(replicas, generator=generator) < 0.5
        ends = [self._residual(_uniform(replicas, generator=generator))]
        while int(ends[-1].min()) < steps:
            more = max(8, int(1.1 * (steps - int(ends[-1].min())) / renewal_mean(self.beta)))
            sojourns = self._sojourn(_uniform(more, replicas, generator=generator))
            ends.extend((ends[-1] + sojourns.cumsum(dim=0)).unbind(0))
        # A switch at time t changes every later value: mark it, and count switches modulo two.
        switches = torch.zeros(steps, replicas, dtype=torch.int8)
        times = torch.stack(ends)
        inside = times < steps
        where = times.clamp(max=steps - 1)
        switches.scatter_add_(0, where, inside.to(torch.int8))
        return Draw(((switches.cumsum(dim=0) + first) % 2).double(), torch.full((replicas,), -1))

    def _sojourn(self, u: Tensor) -> Tensor:
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
class FractionalGaussian:
    """Stationary Gaussian data of variance one whose correlations fall as k^{2H-2}: for H > 1/2 their sum is infinite.

    Exact, by the Fourier transform of a circulant covariance. [prior: Davies and Harte 1987]

    >>> FractionalGaussian(0.7).draw(4, 3, torch.Generator().manual_seed(0)).y.shape
    torch.Size([4, 3])
    """

    H: float

    def __post_init__(self) -> None:
        check_fraction("H", self.H)

    def draw(self, steps: int, replicas: int, generator: torch.Generator) -> Draw:
        _sizes(steps, replicas)
        gamma = fractional_autocovariance(self.H, steps + 1)
        circle = np.concatenate([gamma, gamma[-2:0:-1]])  # (2 steps,)
        spectrum = torch.as_tensor(np.fft.fft(circle).real).clamp(min=0)  # non-negative but for rounding
        shape = (len(circle), (replicas + 1) // 2)  # the real and the imaginary part are independent streams
        white = torch.complex(*(torch.randn(*shape, generator=generator, dtype=torch.float64) for _ in range(2)))
        y = torch.fft.fft((spectrum / len(circle)).sqrt().unsqueeze(-1) * white, dim=0)[:steps]
        return Draw(torch.cat([y.real, y.imag], dim=1)[:, :replicas].contiguous(), torch.full((replicas,), -1))


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
        return Draw(1.0 - 2.0 * (changes.cumsum(dim=0) % 2).double(), torch.full((replicas,), -1))


@dataclass(frozen=True)
class DoublingBlocks:
    """A 0, two 1s, four 0s, eight 1s, ...: not stationary, no averages, nothing random.

    >>> DoublingBlocks().draw(8, 1, torch.Generator()).y.flatten().tolist()
    [0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    """

    def draw(self, steps: int, replicas: int, generator: torch.Generator) -> Draw:
        """The generator is not used: all replicas are the same."""
        _sizes(steps, replicas)
        block = np.frexp(np.arange(1, steps + 1, dtype=float))[1] - 1  # floor(log2 n), exact
        y = torch.as_tensor(block % 2, dtype=torch.float64)
        return Draw(y.unsqueeze(-1).repeat(1, replicas), torch.full((replicas,), -1))


@dataclass(frozen=True)
class Alternating:
    """Y_n = (-1)^n xi with one fair sign xi: stationary and ergodic, though its remote past tells xi for ever.

    >>> Alternating().draw(3, 1, torch.Generator().manual_seed(0)).y.sum(dim=0).abs().tolist()
    [1.0]
    """

    def draw(self, steps: int, replicas: int, generator: torch.Generator) -> Draw:
        _sizes(steps, replicas)
        sign = 1.0 - 2.0 * (_uniform(replicas, generator=generator) < 0.5).double()
        return Draw(
            (-1.0) ** torch.arange(steps, dtype=torch.float64).unsqueeze(-1) * sign, torch.full((replicas,), -1)
        )


ENVIRONMENTS = {
    "mixture": Mixture,
    "markov_mixture": MarkovMixture,
    "absorbing_chain": AbsorbingChain,
    "infinite_order": InfiniteOrderLinear,
    "polya_urn": PolyaUrn,
    "renewal": HeavyTailedRenewal,
    "fractional": FractionalGaussian,
    "telegraph": Telegraph,
    "doubling_blocks": DoublingBlocks,
    "alternating": Alternating,
}


def environment(name: str, **parameters):
    """An environment by its name; ValueError that lists the names for one that there is not.

    >>> environment("telegraph", epsilon=0.5)
    Telegraph(epsilon=0.5)
    """
    check_choice("environment", name, ENVIRONMENTS)
    return ENVIRONMENTS[name](**parameters)
