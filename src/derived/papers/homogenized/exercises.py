"""The exercises of the chapter: what is right, where it is tried, and what often goes wrong.

d, n        width, tokens
R           overlaps of all pairs                              (n, n)
pi          attention, rows that sum to one                    (n, n)
h, L        eta^2 / H, layers
"""

import math
from collections.abc import Callable

import numpy as np
import torch

from derived.lab.exercises import FLOAT32, ask, checker, close, holds, ranges
from derived.lab.rng import stream

from .model.heads import normalise, uniform_tokens
from .model.overlaps import wide_layer
from .model.two_token import two_token_coefficients

# Derive -------------------------------------------------------------------------------------------------------------


def _after(n: int, h: float, L: int) -> float:
    """The overlap of two of n tokens, layer by layer."""
    R = torch.eye(n, dtype=torch.float64)
    for _ in range(L):
        R = wide_layer(R, R.mean().expand(n, n), h)
    return R[0, 1].item()


start = close(
    _after,
    ranges(n=(2, 40), h=(0.1, 1.0), L=(1, 9)),
    mistakes={
        "that is the mean overlap, which counts each token with itself": lambda n, h, L: (
            (1 + h) ** L / ((1 + h) ** L + n - 1)
        ),
        "the step is not small": lambda n, h, L: math.expm1(h * L) / (math.exp(h * L) + n - 1),
    },
)


def _moment_rate(d, p):
    """-ln E e^(-2 p (y(1) - y(0))) for large y, where y has the drift and the variance rate of its end."""
    drift, variance = (float(rule(np.array([8.0]))[0]) for rule in two_token_coefficients(d, 0.0, 0.0))
    z, w = np.polynomial.hermite_e.hermegauss(40)
    return -math.log(w @ np.exp(-2 * p * (drift + math.sqrt(variance) * z)) / w.sum())


moment = close(
    _moment_rate,
    ranges(d=(12, 64), p=(0.1, 1.5)),
    digits=3,
    mistakes={
        "the mean of a power is not the power of a typical value": lambda d, p: p * (1 - 1 / d),
        "the mean of a power is not the power of the mean": lambda d, p: p * (1 - 3 / d),
    },
)

# Implement: the drift of all overlaps -------------------------------------------------------------------------------


def _prompt(d: int, prompt: int) -> tuple[torch.Tensor, np.ndarray, np.ndarray]:
    """Four tokens of width d, their overlaps, and attention of theirs."""
    generator = stream(prompt, "a prompt")
    X = uniform_tokens(4, d, generator=generator)[0]
    pi = (2 * torch.randn(4, 4, generator=generator, dtype=X.dtype)).softmax(dim=-1)
    return X, (X @ X.mT).fill_diagonal_(1.0).numpy(), pi.numpy()


def ito_drift(X: torch.Tensor, pi: torch.Tensor) -> torch.Tensor:
    """E tr Hess/2 of every overlap under the common noise x_k <- N(x_k + V m_k): the drift without its formula."""
    (n, d), s = X.shape, pi @ X @ X.mT @ pi.mT
    covariance = torch.kron(s / d, torch.eye(d, dtype=X.dtype))  # of (V m_1, ..., V m_n), V_ij of variance 1/d
    bend = torch.func.hessian(lambda Y: normalise(Y) @ normalise(Y).mT)(X).reshape(n, n, n * d, n * d)
    return torch.einsum("ijab,ab->ij", bend, covariance) / 2


def _tokens_keep_their_length(drift, d, prompt):
    """`ht-overlap`: the tokens stay on the sphere."""
    _, R, pi = _prompt(d, prompt)
    moved = np.abs(np.diag(ask(drift, R.shape, R=R, pi=pi, d=d))).max()
    return f"R_ii moves by {moved:.2g}, and a token leaves the sphere" if moved > FLOAT32 else None


def _equal_tokens_stay(drift, d, prompt):
    _, R, pi = _prompt(d, prompt)
    moved = np.abs(ask(drift, R.shape, R=np.ones_like(R), pi=pi, d=d)).max()
    return f"tokens that coincide move apart, by {moved:.2g}" if moved > FLOAT32 else None


def _names_do_not_matter(drift, d, prompt):
    _, R, pi = _prompt(d, prompt)
    turned = ask(drift, R.shape, R=R[::-1, ::-1].copy(), pi=pi[::-1, ::-1].copy(), d=d)[::-1, ::-1]
    gap = np.abs(turned - ask(drift, R.shape, R=R, pi=pi, d=d)).max()
    return "tokens in another order have another drift" if gap > FLOAT32 else None


def _as_a_layer_moves_them(drift, d, prompt):
    """`ht-gauss` and second derivatives."""
    X, R, pi = _prompt(d, prompt)
    given, right = ask(drift, R.shape, R=R, pi=pi, d=d), ito_drift(X, torch.from_numpy(pi)).numpy()
    gap = np.abs(given - right)
    i, j = np.unravel_index(gap.argmax(), gap.shape)
    where = (
        f"yours moves R_{i + 1}{j + 1} by {given[i, j]:.4g}, small layers by {right[i, j]:.4g}, for\nR =\n{R.round(3)}\n"
        f"pi =\n{pi.round(3)}"
    )
    return where if gap.max() > FLOAT32 else None


def _wrong(change: Callable) -> Callable:
    """A drift with one thing changed; ``change`` takes (R, s, s_ii + s_jj, d)."""

    def drift(R, pi, d):
        s = pi @ R @ pi.T
        own = np.diag(s)
        return change(R, s, own[:, None] + own, d)

    return drift


overlaps = holds(
    (_tokens_keep_their_length, _equal_tokens_stay, _names_do_not_matter, _as_a_layer_moves_them),
    ranges(d=(3, 9), prompt=(1, 999)),
    mistakes={
        "infinite width": _wrong(lambda R, s, pair, d: s - R * pair / 2),
        "no normalisation": _wrong(lambda R, s, pair, d: (d - 2 + R**2) / d * s),
    },
)

# Implement: a wide layer with a causal mask -------------------------------------------------------------------------


def _gram(prompt: int, n: int = 5) -> np.ndarray:
    X = uniform_tokens(n, 4, generator=stream(prompt, "causal"))[0]
    return (X @ X.mT).fill_diagonal_(1.0).numpy()


def _length_one(layer, h, prompt):
    R = _gram(prompt)
    gap = np.abs(np.diag(ask(layer, R.shape, R=R, h=h)) - 1).max()
    return f"a token's overlap with itself differs from 1 by {gap:.2g}" if gap > FLOAT32 else None


def _no_look_ahead(layer, h, prompt):
    """`ht-wide` with a mask: what the first tokens do is no matter of the later ones."""
    R = _gram(prompt)
    gap = np.abs(ask(layer, R.shape, R=R, h=h)[:3, :3] - ask(layer, (3, 3), R=R[:3, :3].copy(), h=h)).max()
    return "the first three tokens move otherwise when two more follow" if gap > FLOAT32 else None


def masked_layer(R: np.ndarray, h: float, d: int, generator: torch.Generator) -> np.ndarray:
    """One layer of tokens with these overlaps in d dimensions, literally but for V, of which only V m_i is drawn."""
    n = len(R)
    values, vectors = np.linalg.eigh(R)
    factor = torch.from_numpy(vectors * np.sqrt(np.maximum(values, 0)))
    reads = torch.stack([factor[: i + 1].mean(dim=0) for i in range(n)])
    noise = torch.randn(n, d, generator=generator, dtype=factor.dtype) * math.sqrt(h / d)
    moved = normalise(torch.nn.functional.pad(factor, (0, d - n)) + reads @ noise)
    return (moved @ moved.mT).numpy()


def _as_a_masked_layer(layer, h, prompt):
    R = _gram(prompt)
    drawn = masked_layer(R, h, 60_000, stream(prompt, "masked layer"))
    gap = np.abs(ask(layer, R.shape, R=R, h=h) - drawn)
    i, j = np.unravel_index(gap.argmax(), gap.shape)
    said = f"in a layer of width 60,000 the overlap of tokens {i + 1} and {j + 1} becomes {drawn[i, j]:.3f}, not yours"
    return said if gap.max() > 6 / 60_000**0.5 else None


def _masked(reads: Callable, power: float = 0.5) -> Callable:
    """A layer with one thing changed: what tokens read, or the length."""

    def layer(R, h):
        P = reads(len(R))
        moved = R + h * P @ R @ P.T
        length = np.diag(moved) ** power
        return moved / np.outer(length, length)

    return layer


def _rows(mask: np.ndarray) -> np.ndarray:
    return mask / np.maximum(mask.sum(axis=1, keepdims=True), 1)


causal = holds(
    (_length_one, _no_look_ahead, _as_a_masked_layer),
    ranges(h=(0.5, 1.0), prompt=(1, 999)),
    mistakes={
        "no mask": _masked(lambda n: np.full((n, n), 1 / n)),
        "the token itself is left out": _masked(lambda n: _rows(np.tril(np.ones((n, n)), -1))),
    },
)

EXERCISES = {"ht-ex-start": start, "ht-ex-speed": moment, "ht-ex-drift": overlaps, "ht-ex-causal": causal}
check = checker(EXERCISES)
