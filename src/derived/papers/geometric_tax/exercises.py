"""The exercises of the chapter: what is right, where it is tried, and what often goes wrong.

symbol    name             meaning                                                   axes
s, c      s, c             variance of noise over that of the signal; factor of shrinking
K, eps    K, eps           labels; share of a smoothed label
h, g      states, struck   hidden states, and with one token struck                  (n, L, p), (strikes, n, L, p)
"""

import math

import numpy as np
import torch
from scipy.integrate import quad

from derived.lab.exercises import FLOAT32, ask, checker, close, holds, ranges

from .model.metrics import jump_and_spread, noise_law

# Noise that shrinks, and noise on both --------------------------------------------------------------------------------


def _law(s: float) -> float:
    return noise_law(torch.tensor(s, dtype=torch.float64)).item()


shrunk = (
    close(
        lambda s, c: _law(s / c**2),
        ranges(s=(0.02, 1.5), c=(0.3, 0.9)),
        mistakes={
            "a smaller cloud drowns in the same noise": lambda s, c: _law(s),
            "variances shrink with the square": lambda s, c: _law(s / c),
        },
    ),
    close(
        lambda s: _law((1 + s) ** 2 - 1),
        ranges(s=(0.02, 1.5)),
        mistakes={
            "the clean cloud is noisy, too": _law,
            "both norms grow, and each by itself": lambda s: _law(2 * s),
        },
    ),
)

# A smoothed label -----------------------------------------------------------------------------------------------------


def _ends(K: int, eps: float) -> tuple[float, float]:
    """What a smoothed label gives to its own bin and to any other."""
    return 1 - eps + eps / K, eps / K


def _crossing(K: int, eps: float) -> float:
    """The length by quadrature, over an angle that takes the steep ends away: p = low + (high - low) sin^2."""
    high, low = _ends(K, eps)

    def speed(angle: float) -> float:
        one, other = (low + (high - low) * f(angle) ** 2 for f in (math.sin, math.cos))
        slope = (high - low) * 2 * math.sin(angle) * math.cos(angle)
        return slope * math.sqrt(1 / one + 1 / other)

    return quad(speed, 0, math.pi / 2)[0]


def _arc(one: float, other: float, radius: float) -> float:
    return radius * 2 * (math.asin(math.sqrt(one)) - math.asin(math.sqrt(other)))


smoothed = close(
    _crossing,
    ranges(K=(3, 60), eps=(0.02, 0.6)),
    digits=3,
    mistakes={
        "that is the hard label": lambda K, eps: math.pi,
        "the other bins hold a part of the probability": lambda K, eps: _arc(*_ends(K, eps), 1.0),
    },
)

# Jump and spread ------------------------------------------------------------------------------------------------------


def _states(generator: torch.Generator) -> dict:
    """States in some unit and with some origin, and the same with one token struck in each sequence, three times."""
    n, L, p, q = 12, 5, 3, 3
    draw = lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)  # noqa: E731
    states = draw(n, 1, p) + draw(L, p) + draw(n, L, p)
    where = torch.arange(L) == torch.randint(L, (q, n, 1), generator=generator)
    unit = 10 ** draw(1)
    struck = states + where.unsqueeze(-1) * draw(q, n, 1, p)
    return {"states": unit * (states + 7), "struck": unit * (struck + 7)}


def _by_loops(split, states, struck):
    """`gt-pooled`: sequence by sequence, strike by strike."""
    h, g = states.numpy(), struck.numpy()
    moves = [np.sum((g[i, k].sum(axis=0) - h[k].sum(axis=0)) ** 2) for i in range(len(g)) for k in range(len(h))]
    means = np.array([each.mean(axis=0) for each in h])
    single = h.reshape(-1, h.shape[-1])
    V, T = (np.mean(np.sum((each - each.mean(axis=0)) ** 2, axis=1)) for each in (means, single))
    off = np.abs(ask(split, (2,), states=states, struck=struck) / np.array([np.mean(moves) / T, V / T]) - 1)
    name = ("J/T", "V/T")[int(off.argmax())]
    return f"{name} is off by {off.max():.1%}" if off.max() > 100 * FLOAT32 else None


def _from(change):
    """The right function with one of J, V and T changed."""

    def split(states, struck):
        found = jump_and_spread(states, struck)
        J, V, T = change(states, found.J, found.V, found.T)
        return torch.stack([J / T, V / T])

    return split


split_states = holds(
    (_by_loops,),
    _states,
    mistakes={
        "the mean moves by J over L squared": _from(lambda h, J, V, T: (J / h.shape[1] ** 2, V, T)),
        "the variance of means about the origin": _from(
            lambda h, J, V, T: (J, h.mean(dim=1).square().sum(dim=-1).mean(), T)
        ),
    },
)

EXERCISES = {"gt-ex-noise": shrunk, "gt-ex-jump": split_states, "gt-ex-smoothed": smoothed}
check = checker(EXERCISES)
