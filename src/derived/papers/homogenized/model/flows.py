"""Deterministic limits: flows on the sphere, the equation one order closer, single tokens, and which limit holds.

symbol         name         meaning                                                          axes
b_rho          field        the mean attention field, a function of the tokens               (..., n, d) -> (..., n, d)
b              (inside)     P_x b_rho, the drift                                             (..., n, d)
eta, h         eta, h       residual step; h = eta^2 / H
gamma          gamma        common overlap
varsigma^2     proxy        sigma_V^2 (d - 1), the largest variance of a projected increment
alpha          alpha        eta varsigma^2 / H, the strength of the noise
t_L            drift_time   eta L, for which the drift acts
alpha eta L    noise_time   eta^2 varsigma^2 L / H, for which the noise acts
eta^2 L        corrector    size of what the corrector of order eta contributes
eta^3 L        remainder    size of what even the modified equation leaves out
"""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy import integrate
from torch import Tensor

from derived.lab.checks import check_at_least, check_choice, check_count, check_positive, check_within

from .checks import check_dimension, check_on_sphere
from .heads import attention_field, normalise, tangent
from .overlaps import runge_kutta
from .two_token import gamma_nodes

Field = Callable[[Tensor], Tensor]
Corrector = Literal["none", "retold", "full"]


def self_attention(X: Float[Tensor, "*batch n d"], beta: float) -> Float[Tensor, "*batch n d"]:
    """sum_k softmax_k(beta <x_i, x_k>) x_k, the field of V = A = I. [prior]"""
    eye = torch.eye(X.shape[-1], dtype=X.dtype, device=X.device)
    return attention_field(X, eye, eye, beta)


def sa_rate(gamma: ArrayLike, beta: float, n: int = 2) -> np.ndarray:
    """gamma' = 2 e^{beta gamma} (1 - gamma)((n-1) gamma + 1) / (e^beta + (n-1) e^{beta gamma}), n equiangular tokens
    under the flow of V = A = I; ValueError for |gamma| > 1, beta < 0. [prior]"""
    check_count("n", n)
    gamma = np.asarray(gamma, dtype=float)
    check_within("gamma", gamma, -1, 1)
    check_at_least("beta", beta, 0)
    return _sa_rate(gamma, beta, n)


def _sa_rate(gamma: np.ndarray, beta: float, n: int) -> np.ndarray:
    """``sa_rate`` without its checks: a solver tries points beyond 1."""
    others = np.exp(beta * (gamma - 1))
    return 2 * others * (1 - gamma) * ((n - 1) * gamma + 1) / (1 + (n - 1) * others)


def sa_flow(gamma0: float, time: float, beta: float, n: int = 2, *, rtol: float = 1e-11) -> float:
    """gamma(time) from gamma0, the solution of gamma' = ``sa_rate``(gamma). [prior]"""
    path = integrate.solve_ivp(lambda _, y: _sa_rate(y, beta, n), (0, time), [gamma0], rtol=rtol, atol=1e-12)
    return float(path.y[0, -1])


def modified_drift(field: Field, eta: float, corrector: Corrector = "full") -> Field:
    """The drift whose flow over a time eta is one layer x -> N(x + eta b_rho) up to O(eta^3). [ours]

    "full": b - (eta/2) nabla_b b - eta <x, b_rho> b. "retold": without the last term, as version 1 is retold; right
    for projected velocities N(x + eta P_x b_rho). "none": b.
    Deterministic heads; random ones add -(eta/H) E[<x, xi> P_x xi], which is 0 for centred i.i.d. value matrices.
    """
    check_choice("corrector", corrector, get_args(Corrector))

    def b(X: Tensor) -> Tensor:
        return tangent(X, field(X))

    def drift(X: Tensor) -> Tensor:
        ambient = field(X)
        velocity = tangent(X, ambient)
        if corrector == "none":
            return velocity
        change = torch.autograd.functional.jvp(b, X, velocity)[1]  # torch.func.jvp compiles by a deprecated path
        modified = velocity - eta / 2 * tangent(X, change)
        if corrector == "full":
            modified = modified - eta * (X * ambient).sum(dim=-1, keepdim=True) * velocity
        return modified

    return drift


def sphere_flow(
    drift: Field, X0: Float[Tensor, "*batch n d"], time: float, *, steps: int
) -> Float[Tensor, "*batch n d"]:
    """The flow X' = drift(X) of a tangent field at ``time``: Runge and Kutta's fourth-order steps, then N. [ours]

    Errors: tokens off the sphere, a negative time, steps < 1.
    """
    check_on_sphere(X0)
    check_at_least("time", time, 0)
    check_count("steps", steps)
    X, h = X0, time / steps
    for _ in range(steps):
        X = normalise(runge_kutta(X, h, drift))
    return X


def sphere_euler(
    field: Field, X0: Float[Tensor, "*batch n d"], time: float, *, steps: int, projected: bool = False
) -> Float[Tensor, "*batch n d"]:
    """``steps`` deterministic layers of eta = time / steps: x <- N(x + eta b_rho), or N(x + eta P_x b_rho). [digest]"""
    check_on_sphere(X0)
    check_at_least("time", time, 0)
    check_count("steps", steps)
    X, eta = X0, time / steps
    for _ in range(steps):
        move = field(X)
        X = normalise(X + eta * (tangent(X, move) if projected else move))
    return X


def observed_order(steps: ArrayLike, errors: ArrayLike) -> float:
    """The slope of log error against log step size, least squares."""
    return float(np.polyfit(np.log(steps), np.log(errors), 1)[0])


class TokenRates(NamedTuple):
    """Decay rates per unit tau of E<x, x0> and of E<x, x0>^2 - 1/d."""

    first: float
    second: float


def sphere_rates(d: int) -> TokenRates:
    """(d-1)/(2d) and 1: harmonics of degree k decay at k (k + d - 2) / (2d) under Laplace-Beltrami / (2d). [ours]"""
    check_dimension(d)
    return TokenRates((d - 1) / (2 * d), 1.0)


def one_token_rates(h: float, d: int) -> TokenRates:
    """The same rates of the chain with Gaussian values, -ln(factor of one layer) / h, by quadrature. [ours]

    One layer: x' = N(x + sqrt(h/d) z), z normal, whatever the heads. With c = <x', x>: factors E c and
    (d E c^2 - 1)/(d - 1). Errors: h <= 0, d < 2.
    """
    check_dimension(d)
    check_positive("h", h)
    z, w = np.polynomial.hermite_e.hermegauss(80)
    halves, mix = gamma_nodes((d - 1) / 2, 60)
    along = 1 + math.sqrt(h / d) * z[:, None]
    c = along / np.hypot(along, np.sqrt(2 * h / d * halves))
    first, second = ((w / w.sum()) @ value @ mix for value in (c, (d * c**2 - 1) / (d - 1)))
    return TokenRates(-math.log(first) / h, -math.log(second) / h)


SMALL = 0.1  # what counts as o(1)
LARGE = 10.0  # what no longer counts as O(1)


class Regime(NamedTuple):
    """The limit and the numbers that decide it."""

    name: Literal["ballistic", "modified", "diffusive", "none"]
    drift_time: float
    noise_time: float
    corrector: float
    remainder: float
    alpha: float
    reason: str


def scaling_regime(eta: float, L: int, H: int, sigma_v: float | None, d: int, *, centred: bool = False) -> Regime:
    """The regime of (eta, L, H): ballistic, modified or diffusive, and its small parameters. [digest]

    ballistic: noise_time and eta^2 L small; modified: noise_time and eta^3 L small; diffusive: noise_time of order 1
    and eta^3 L small. ``centred`` heads (zero mean values) have no drift, so the remainder that counts is
    noise_time * eta^2 / H. ``sigma_v`` None is 1/sqrt(d). Small means below 0.1, of order 1 below 10. ValueError for
    negative or fractional sizes.

    >>> [scaling_regime(0.01, L, H, None, 64).name for L, H in ((100, 16), (10_000, 1))]
    ['ballistic', 'diffusive']
    """
    check_count("L", L, 0)
    check_count("H", H)
    check_dimension(d)
    check_at_least("eta", eta, 0)
    check_at_least("sigma_v", 0.0 if sigma_v is None else sigma_v, 0)
    proxy = (1 / d if sigma_v is None else sigma_v**2) * (d - 1)
    alpha = eta * proxy / H
    noise, corrector = alpha * eta * L, eta**2 * L
    remainder = noise * alpha * eta if centred else eta**3 * L
    numbers = (eta * L, noise, corrector, remainder, alpha)
    if remainder > SMALL:
        what = "noise time * step noise" if centred else "eta^3 L"
        return Regime("none", *numbers, f"{what} = {remainder:.3g} is not small: the step is too large for any limit")
    if noise > LARGE:
        return Regime("none", *numbers, f"eta^2 varsigma^2 L / H = {noise:.3g} is beyond order 1: take fewer layers")
    if noise > SMALL:
        return Regime("diffusive", *numbers, f"the noise acts for a time {noise:.3g} of order 1")
    if corrector > SMALL and not centred:
        return Regime("modified", *numbers, f"eta^2 L = {corrector:.3g} is not small: the corrector counts")
    return Regime("ballistic", *numbers, "noise and corrector are small: the drift alone remains")


def layers_for(tau: float, eta: float, H: int) -> int:
    """The number of layers after which the clock eta^2 L / H shows tau, to the nearest whole layer. [ours]

    ValueError for tau < 0, eta <= 0, H < 1.

    >>> layers_for(1.0, eta=0.1, H=4)
    400
    """
    check_at_least("tau", tau, 0)
    check_positive("eta", eta)
    check_count("H", H)
    return math.floor(tau * H / eta**2 + 0.5)
