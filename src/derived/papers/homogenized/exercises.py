"""The exercises of the chapter: what is right, where it is tried, and what often goes wrong.

d, n        width, tokens
R, gamma    overlaps: of two tokens or of all pairs (n, n); of equiangular tokens
pi          attention, rows that sum to one                    (n, n)
k           Gaussian factors of the query-key matrix
eta         step of the residual stream
"""

import math
from collections.abc import Callable
from types import MappingProxyType

import numpy as np
import torch
from scipy import special

from derived.lab.exercises import FLOAT32, Derive, Implement, ask, call, checker, described, number, ranges
from derived.lab.rng import stream

from .model.flows import modified_drift, self_attention, sphere_flow
from .model.heads import attention_field, equiangular_tokens, normalise, tangent, uniform_tokens
from .model.overlaps import overlap_drift, time_to_overlap
from .model.two_token import two_token_coefficients

# Derive -------------------------------------------------------------------------------------------------------------


def _trace(d, R):
    x, y = np.zeros((2, d))
    x[0], y[0], y[1] = 1, R, math.sqrt(1 - R**2)
    product = (np.eye(d) - np.outer(x, x)) @ (np.eye(d) - np.outer(y, y))
    return np.trace(product @ product)


trace = Derive(
    _trace,
    ranges(d=(2, 40), R=(-1.0, 1.0)),
    mistakes={
        "that is the trace of P_x P_y, without the square": lambda d, R: d - 2 + R**2,
        "the trace of a square is not the square of the trace": lambda d, R: (d - 2 + R**2) ** 2,
        "the plane of x and y has its share too": lambda d, R: d - 2,
        "P_x P_y is no projection": lambda d, R: d - 1 + R**4,
    },
)

clock = Derive(
    lambda n, start, target: time_to_overlap(n, 0.0, start=start, target=target),
    ranges(n=(2, 40), start=(0.02, 0.45), target=(0.5, 0.95)),
    low=0,
    mistakes={
        "the overlap is logistic for infinitely many tokens only": lambda n, start, target: math.log(
            target * (1 - start) / (start * (1 - target))
        ),
        "that is the way from orthogonal tokens": lambda n, start, target: math.log(
            (1 + (n - 1) * target) / (1 - target)
        ),
        "that is the way from orthogonal tokens to 1/2": lambda n, start, target: math.log(n + 1),
        "the mean overlap counts each token with itself": lambda n, start, target: math.log(
            (1 + n * target) * (1 - start) / ((1 + n * start) * (1 - target))
        ),
    },
)


def _moment_rate(d, p):
    """-ln E e^(-2 p (y(1) - y(0))) for large y, where y has the drift and the variance rate of its end."""
    drift, variance = (float(rule(np.array([8.0]))[0]) for rule in two_token_coefficients(d, 0.0, 0.0))
    z, w = np.polynomial.hermite_e.hermegauss(40)
    return -math.log(w @ np.exp(-2 * p * (drift + math.sqrt(variance) * z)) / w.sum())


moment = Derive(
    _moment_rate,
    ranges(d=(12, 64), p=(0.1, 1.5)),
    digits=3,
    mistakes={
        "the mean of a power is not the power of a typical value": lambda d, p: p * (1 - 1 / d),
        "the mean of a power is not the power of the mean": lambda d, p: p * (1 - 3 / d),
        "the exponent is -2 p y, and its variance has the square of 2 p": lambda d, p: p * (1 - 1 / d) - p**2 / d,
        "noise slows a mean down": lambda d, p: p * (1 - 1 / d) + 2 * p**2 / d,
    },
)

factors = Derive(
    lambda k, v: special.betainc(0.5, (k / 2 - 1) / 2, v**2),  # of tanh^2 y under the density cosh^(1 - kappa) y
    ranges(k=(3, 8), v=(0.1, 0.9)),
    low=0,
    high=1,
    digits=3,
    mistakes={
        "the stationary law is not uniform": lambda k, v: v,
        "each factor counts one half": lambda k, v: special.betainc(0.5, (k - 1) / 2, v**2),
        "that is a density of y, and not of u": lambda k, v: special.betainc(0.5, (k / 2 + 1) / 2, v**2),
        "both signs count": lambda k, v: special.betainc(0.5, (k / 2 - 1) / 2, v**2) / 2,
    },
)


def _missing(gamma, eta):
    X = equiangular_tokens(2, 3, gamma)
    full, retold = (modified_drift(lambda Y: self_attention(Y, 0.0), eta, name)(X) for name in ("full", "retold"))
    extra = (full - retold)[0]
    return extra[0] @ X[0, 1] + X[0, 0] @ extra[1]


corrector = Derive(
    _missing,
    ranges(gamma=(-0.9, 0.95), eta=(0.01, 0.5)),
    mistakes={
        "both tokens move": lambda gamma, eta: -eta / 4 * (1 + gamma) * (1 - gamma**2),
        "the term slows the tokens down": lambda gamma, eta: eta / 2 * (1 + gamma) * (1 - gamma**2),
        "a token is not at the mean of the two": lambda gamma, eta: -eta * (1 - gamma**2),
        "only the tangent part of the field moves a token": lambda gamma, eta: -eta / 2 * (1 + gamma) ** 2,
    },
)

# The drift with one thing changed, as "What breaks it" compares them with a measured layer ----------------------------


def _pair(s: torch.Tensor) -> torch.Tensor:
    """s_ii + s_jj."""
    own = s.diagonal(dim1=-2, dim2=-1)
    return own.unsqueeze(-1) + own.unsqueeze(-2)


def infinite_width(gram: torch.Tensor, s: torch.Tensor, d: int) -> torch.Tensor:
    """d = infinity in the drift."""
    return s - gram * _pair(s) / 2


def without_normalisation(gram: torch.Tensor, s: torch.Tensor, d: int) -> torch.Tensor:
    """The Itô term of the normalisation is dropped."""
    return (d - 2 + gram.square()) / d * s


def private_noise(gram: torch.Tensor, s: torch.Tensor, d: int) -> torch.Tensor:
    """The bracket of two tokens is dropped: each has a noise of its own."""
    return -(d - 1) / (2 * d) * gram * _pair(s)


def flat_trace(gram: torch.Tensor, s: torch.Tensor, d: int) -> torch.Tensor:
    """tr P_x P_y = d - 1."""
    return (d - 1) / d * (s - gram * _pair(s) / 2)


def only_oneself(gram: torch.Tensor, s: torch.Tensor, d: int) -> torch.Tensor:
    """Every token attends to itself alone, so that s = R."""
    return overlap_drift(gram, gram, d)


def unit_variance(gram: torch.Tensor, s: torch.Tensor, d: int) -> torch.Tensor:
    """sigma_V^2 = 1 in place of 1/d."""
    return d * overlap_drift(gram, s, d)


DRIFTS = MappingProxyType(
    {
        "none": overlap_drift,
        "$d=\\infty$ in the drift": infinite_width,
        "drop the Itô term of the normalisation": without_normalisation,
        "drop the common noise": private_noise,
        "$\\operatorname{tr}P_xP_y=d-1$": flat_trace,
        "attention only to oneself, $f=1,g=0$": only_oneself,
        "$\\sigma_V^2=1$ for $1/d$": unit_variance,
    }
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
    """`ht-gauss` and Itô's formula, by second derivatives."""
    X, R, pi = _prompt(d, prompt)
    given, right = ask(drift, R.shape, R=R, pi=pi, d=d), ito_drift(X, torch.from_numpy(pi)).numpy()
    gap = np.abs(given - right)
    i, j = np.unravel_index(gap.argmax(), gap.shape)
    where = f"for R_{i + 1}{j + 1} = {R[i, j]:.3g} yours is {given[i, j]:.4g}, and small layers move it otherwise"
    return where if gap.max() > FLOAT32 else None


def _mutated(change: Callable, kernel: Callable = lambda gram, pi: pi @ gram @ pi.mT) -> Callable:
    return lambda R, pi, d: change(torch.as_tensor(R), kernel(torch.as_tensor(R), torch.as_tensor(pi)), d)


overlaps = Implement(
    (_tokens_keep_their_length, _equal_tokens_stay, _names_do_not_matter, _as_a_layer_moves_them),
    ranges(d=(3, 9), prompt=(1, 999)),
    mistakes={
        **{name: _mutated(change) for name, change in DRIFTS.items() if change is not overlap_drift},
        "attention on one side only": _mutated(overlap_drift, lambda gram, pi: pi @ gram),
    },
)

# Implement: a flow that a layer follows to order two ----------------------------------------------------------------


def _head(head: int) -> tuple[torch.Tensor, Callable]:
    """Three tokens in three dimensions, and the field of a head that is the same in every layer."""
    generator = stream(head, "a head")
    X = uniform_tokens(3, 3, generator=generator)[0]
    V, A = torch.randn(2, 3, 3, generator=generator, dtype=X.dtype)
    return X, lambda Y: attention_field(Y, V, A, 1.0)


def _corrected(answer: Callable, field: Callable, eta: float) -> Callable:
    made = call(answer, field=field, eta=eta)
    return lambda X: torch.as_tensor(number(made(X)))


def _starts_from_the_drift(corrected, head):
    X, field = _head(head)
    gap = (_corrected(corrected, field, 0.0)(X) - tangent(X, field(X))).abs().max()
    return "for a step of zero yours is not the tangent part of the field" if gap > FLOAT32 else None


def _is_tangent(corrected, head):
    X, field = _head(head)
    out = (_corrected(corrected, field, 0.1)(X) * X).sum(dim=-1).abs().max()
    return f"yours points out of the sphere, by {out:.2g} at eta = 0.1" if out > FLOAT32 else None


def _follows_a_layer(corrected, head):
    """`ht-modified`: one layer errs by eta^3, so half the step leaves an eighth."""
    (X, field), left = _head(head), []
    for eta in (0.04, 0.02):
        flow = sphere_flow(_corrected(corrected, field, eta), X, eta, steps=4)
        left.append(float((normalise(X + eta * field(X)) - flow).norm()))
    ratio = left[0] / left[1]
    said = f"half the step leaves 1/{described(ratio)} of what a layer differs from the flow; order two leaves 1/8"
    return said if ratio < 6 else None


def _with(signs: tuple[float, float]) -> Callable:
    """b - signs[0] (eta/2) nabla_b b - signs[1] eta <x, b_*> b."""

    def corrected(field, eta):
        def drift(X):
            velocity = tangent(X, field(X))
            change = torch.autograd.functional.jvp(lambda Y: tangent(Y, field(Y)), X, velocity)[1]
            outward = (X * field(X)).sum(dim=-1, keepdim=True)
            return velocity - signs[0] * eta / 2 * tangent(X, change) - signs[1] * eta * outward * velocity

        return drift

    return corrected


def _not_tangent(field, eta):
    def drift(X):
        velocity = tangent(X, field(X))
        change = torch.autograd.functional.jvp(lambda Y: tangent(Y, field(Y)), X, velocity)[1]
        return velocity - eta / 2 * change - eta * (X * field(X)).sum(dim=-1, keepdim=True) * velocity

    return drift


second_order = Implement(
    (_starts_from_the_drift, _is_tangent, _follows_a_layer),
    ranges(head=(1, 999)),
    mistakes={
        "no corrector": lambda field, eta: modified_drift(field, eta, "none"),
        "the corrector as retold": lambda field, eta: modified_drift(field, eta, "retold"),
        "the second term alone": _with((0.0, 1.0)),
        "a sign": _with((-1.0, 1.0)),
        "a factor of two": _with((2.0, 1.0)),
        "the derivative along the sphere has a part across it": _not_tangent,
    },
)

EXERCISES = {
    "ht-ex-trace": trace,
    "ht-ex-start": clock,
    "ht-ex-speed": moment,
    "ht-ex-factors": factors,
    "ht-ex-corrector": corrector,
    "ht-ex-drift": overlaps,
    "ht-ex-order": second_order,
}
check = checker(EXERCISES)
