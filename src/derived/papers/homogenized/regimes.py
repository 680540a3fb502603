"""Which limit a depth, a step and a number of heads belong to.

symbol         name           meaning
varsigma^2     proxy          sigma_V^2 (d - 1), the largest variance of a projected increment
alpha          alpha          eta varsigma^2 / H, the strength of the noise
t_L            drift_time     eta L, for which the drift acts
alpha eta L    noise_time     eta^2 varsigma^2 L / H, for which the noise acts
eta^2 L        corrector      size of what the corrector of order eta contributes
eta^3 L        remainder      size of what even the modified equation leaves out
"""

import math
from typing import Literal, NamedTuple

from .checks import check_nonnegative, check_sizes

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
    noise_time * eta^2 / H. ``sigma_v`` None is 1/sqrt(d). Small means below 0.1, of order 1 below 10.
    """
    check_sizes(L=L, H=H, d=d)
    check_nonnegative(eta=eta, sigma_v=0.0 if sigma_v is None else sigma_v)
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
    """The number of layers after which the clock eta^2 L / H shows tau, rounded to whole layers. [ours]"""
    check_nonnegative(tau=tau, eta=eta)
    check_sizes(H=H)
    if eta == 0:
        raise ValueError("eta = 0: nothing moves, no number of layers reaches tau")
    return math.floor(tau * H / eta**2 + 0.5)
