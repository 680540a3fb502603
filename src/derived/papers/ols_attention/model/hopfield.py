"""Dense associative memory: energies, retrieval, the flip field in one product with the patterns, and capacities.

symbol    name          meaning                                              axes
sigma     state         spins +-1, or a continuous state xi                  (..., T, N)
Xi        patterns      stored patterns                                      (..., K, N)
O         overlap       state . patterns                                     (..., T, K)
F         interaction   integer degree n >= 2 for u^n, "exp", a function of a tensor; "lse" for softmax attention
g         field         sigma_i h_i: what the energy gains if spin i flips   (..., T, N)
w         weights       multiplicity of each pattern, 1 unless given         (..., K)
beta      beta          inverse temperature of softmax                       scalar
R, G      replicates, trials   independent estimates, and draws in each of them

T states share the patterns of their batch entry; a tensor (N,) is one state.
"""

import math
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.linalg import vector_norm

from derived.lab.checks import (
    check_choice,
    check_count,
    check_dtype,
    check_fraction,
    check_one_dtype,
    check_positive,
    check_within,
)

from .capacity import Interaction, check_interaction, evaluate
from .checks import check_columns, check_matrix, check_spins

TILE = 2**22  # overlaps held at once, 32 MiB in float64: large enough for GEMM, small enough for a laptop


def _as_states(state: Tensor, patterns: Tensor, *, spins: bool) -> Tensor:
    """The states as (..., T, N) after checking both arguments."""
    check_matrix("patterns", patterns)
    check_one_dtype(state=state, patterns=patterns)
    states = state.unsqueeze(-2) if state.ndim == 1 else state
    check_matrix("state", states)
    check_columns("state", states, "patterns", patterns)
    if spins:
        check_spins("state", states)
        check_spins("patterns", patterns)
    return states


def energy(
    state: Float[Tensor, "*batch N"],
    patterns: Float[Tensor, "*shared K N"],
    interaction: Interaction | Literal["lse"],
    *,
    beta: float = 1.0,
) -> Float[Tensor, "*batch"]:
    """E = -sum_mu F(xi_mu . sigma), or for "lse" the energy whose concave-convex step is softmax attention.

    "lse": E = -(1/beta) ln sum_mu e^{beta x_mu . xi} + ||xi||^2 / 2 + (1/beta) ln K + M^2 / 2, M = max ||x_mu||, the
    constants making E >= 0 (Cauchy-Schwarz). For "exp" e^u is summed as it stands.

    Shapes: state (N,) or (..., T, N), patterns (..., K, N); entries are +1 and -1, but for "lse" and for a function F
    of real overlaps. Raises ValueError for unfitting shapes, NaN, other entries, beta <= 0, degree < 2, and where e^u
    overflows. [prior: Krotov and Hopfield; Demircigil et al.; Ramsauer et al.]

    >>> patterns = torch.tensor([[1.0, 1.0, 1.0, 1.0, 1.0], [1.0, -1.0, 1.0, -1.0, 1.0]])

    >>> energy(patterns, patterns, 2)  # -(5^2 + 1^2) at both
    tensor([-26., -26.])
    """
    states = _as_states(state, patterns, spins=interaction != "lse" and not callable(interaction))
    overlap = states @ patterns.mT
    if interaction == "lse":
        check_positive("beta", beta)
        largest = patterns.square().sum(dim=-1).amax(dim=-1)
        constant = math.log(patterns.shape[-2]) / beta + largest / 2
        values = -torch.logsumexp(beta * overlap, dim=-1) / beta + states.square().sum(dim=-1) / 2
        values = values + constant.unsqueeze(-1)
    else:
        check_interaction(interaction)
        values = -evaluate(interaction, overlap, 0.0).sum(dim=-1)
        if not bool(torch.isfinite(values).all()):
            raise ValueError(f"F overflows at overlap {float(overlap.max()):g}; give 'lse' or smaller patterns")
    return values.squeeze(-1) if state.ndim == 1 else values


def _flip_field(
    states: Tensor, patterns: Tensor, interaction: Interaction, weights: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The field (..., T, N) and a bound (..., T, 1) on its rounding error; see ``flip_field``."""
    batch = math.prod(torch.broadcast_shapes(states.shape[:-2], patterns.shape[:-2]))
    tile = max(1, TILE // (batch * states.shape[-2]))
    total, leaning, size, top = 0.0, 0.0, 0.0, None
    for start in range(0, patterns.shape[-2], tile):
        block = patterns[..., start : start + tile, :]
        overlap = states @ block.mT
        if interaction == "exp":  # A = (1 - cosh 2) e^O, B = sinh(2) e^O, relative to the largest overlap so far
            new_top = overlap.amax(dim=-1, keepdim=True)
            new_top = new_top if top is None else torch.maximum(top, new_top)
            if top is not None:
                shrink = torch.exp(top - new_top)
                total, leaning, size = total * shrink, leaning * shrink, size * shrink
            top = new_top
            level = overlap.sub_(top).exp_()
            A, B = level * (1 - math.cosh(2)), level * math.sinh(2)
        elif isinstance(interaction, int):
            A, B = _parts_of_a_power(interaction, overlap)
        else:
            up, down = evaluate(interaction, overlap + 2, 0.0), evaluate(interaction, overlap - 2, 0.0)
            A, B = evaluate(interaction, overlap, 0.0) - (up + down) / 2, (up - down) / 2
        if weights is not None:
            w = weights[..., start : start + tile].unsqueeze(-2)
            A, B = A * w, B * w
        total = total + A.sum(dim=-1, keepdim=True)
        size = size + vector_norm(A, 1, dim=-1, keepdim=True) + vector_norm(B, 1, dim=-1, keepdim=True)
        leaning = leaning + B @ block
    rounding = (patterns.shape[-2] + 8) * torch.finfo(states.dtype).eps * size
    return total + states * leaning, rounding


def _parts_of_a_power(n: int, overlap: Tensor) -> tuple[Tensor, Tensor]:
    """A and B of u^n: (O+2)^n by the binomial theorem, its even powers of 2 but the first in -A, its odd ones in B."""
    square, parts = overlap * overlap, []
    for first, sign in ((2, -1), (1, 1)):
        factors = [sign * math.comb(n, j) * 2.0**j for j in range(first, n + 1, 2)]  # of O^(n - j), in steps of O^2
        part = torch.full_like(overlap, factors[0])
        for factor in factors[1:]:
            part.mul_(square).add_(factor)
        parts.append(part.mul_(overlap) if (n - first) % 2 else part)
    return parts[0], parts[1]


def flip_field(
    state: Float[Tensor, "*batch N"],
    patterns: Float[Tensor, "*shared K N"],
    interaction: Interaction,
    weights: Float[Tensor, "*shared K"] | None = None,
) -> Float[Tensor, "*batch N"]:
    """g_i = E(sigma with spin i flipped) - E(sigma) = sum_mu [F(O_mu) - F(O_mu - 2 x_mu i)], x_mu i = xi_mu i sigma_i.

    Since x = +-1, F(O) - F(O - 2x) = A + x B with A = F(O) - (F(O-2) + F(O+2)) / 2 and B = (F(O+2) - F(O-2)) / 2, so
    g = sum_mu w_mu A_mu + sigma (Xi^T w B): 3 K evaluations of F and one product with Xi instead of 2 K N evaluations.
    For "exp" g is divided by e^{max O}, which changes no sign. Patterns stream in tiles, so memory stays bounded.

    Shapes: state (N,) or (..., T, N), patterns (..., K, N), weights (..., K); returns the shape of state. Raises
    ValueError for entries other than +-1, unfitting shapes and degree < 2. [prior: Krotov and Hopfield 2016; one
    product ours]

    >>> patterns = torch.tensor([[1.0, 1.0, 1.0, 1.0, 1.0], [1.0, -1.0, 1.0, -1.0, 1.0]])

    >>> flip_field(patterns[0], patterns, 2)  # 25 - 9 + 1 - 1 where they agree, 25 - 9 + 1 - 9 where not
    tensor([16.,  8., 16.,  8., 16.])
    """
    check_interaction(interaction)
    states = _as_states(state, patterns, spins=True)
    if weights is not None and weights.shape[-1] != patterns.shape[-2]:
        raise ValueError(f"weights {tuple(weights.shape)} must hold one multiplicity per pattern: {patterns.shape[-2]}")
    field, _ = _flip_field(states, patterns, interaction, weights)
    return field.squeeze(-2) if state.ndim == 1 else field


def _flips(states: Tensor, patterns: Tensor, interaction: Interaction, weights: Tensor | None = None) -> Tensor:
    """Where a flip lowers the energy by more than the rounding error of the field; ties keep their spin."""
    field, rounding = _flip_field(states, patterns, interaction, weights)
    return field < -rounding


def kh_step(
    state: Float[Tensor, "*batch N"], patterns: Float[Tensor, "*shared K N"], interaction: Interaction
) -> Float[Tensor, "*batch N"]:
    """One synchronous step: every spin takes the sign of its local field, a tie keeps it.

    Shapes and errors as in ``flip_field``. [prior: Krotov and Hopfield 2016]

    >>> patterns = torch.tensor([[1.0, 1.0, 1.0, 1.0, 1.0], [1.0, -1.0, 1.0, -1.0, 1.0]])

    >>> kh_step(torch.tensor([1.0, 1.0, 1.0, 1.0, -1.0]), patterns, 3)  # the last bit is repaired
    tensor([1., 1., 1., 1., 1.])
    """
    check_interaction(interaction)
    states = _as_states(state, patterns, spins=True)
    moved = torch.where(_flips(states, patterns, interaction), -states, states)
    return moved.squeeze(-2) if state.ndim == 1 else moved


class Retrieval(NamedTuple):
    """The state after the last step, the norm of that step's change, and the number of steps."""

    state: Tensor  # (..., T, N)
    residual: Tensor  # (..., T)
    steps: int


def retrieve(
    state: Float[Tensor, "*batch N"],
    patterns: Float[Tensor, "*shared K N"],
    interaction: Interaction | Literal["lse"],
    *,
    beta: float = 1.0,
    steps: int = 1,
) -> Retrieval:
    """``steps`` steps of xi <- X^T softmax(beta X xi) = xi - grad E for "lse", of ``kh_step`` for any other F.

    The "lse" step is softmax attention with keys = values = patterns and scale beta. Raises ValueError for steps < 1,
    beta <= 0, and as ``flip_field``. [prior: Ramsauer et al. 2021; Krotov and Hopfield 2016]

    >>> retrieve(torch.tensor([0.9, 0.2]), torch.eye(2), "lse", beta=20.0).state
    tensor([1.0000e+00, 8.3153e-07])
    """
    check_count("steps", steps)
    softmax = interaction == "lse"
    if softmax:
        check_positive("beta", beta)
    else:
        check_interaction(interaction)
    states = before = _as_states(state, patterns, spins=not softmax)
    for _ in range(steps):
        before = states
        if softmax:
            states = torch.softmax(beta * (states @ patterns.mT), dim=-1) @ patterns
        else:
            states = torch.where(_flips(states, patterns, interaction), -states, states)
    residual = torch.linalg.vector_norm(states - before, dim=-1)
    if state.ndim == 1:
        states, residual = states.squeeze(-2), residual.squeeze(-1)
    return Retrieval(states, residual, steps)


def linear_read_out(
    state: Float[Tensor, "*batch T d"], patterns: Float[Tensor, "*batch K d"], kind: Literal["hebb", "projection"]
) -> Float[Tensor, "*batch T d"]:
    """Hebb X^T X xi, which is linear attention, or the projection X^+ X xi on the span: the whitened layer. [ours]"""
    check_choice("kind", kind, ("hebb", "projection"))
    states = _as_states(state, patterns, spins=False)
    scores = states @ (patterns.mT if kind == "hebb" else torch.linalg.pinv(patterns))
    return scores @ patterns


def random_signs(*shape: int, generator: torch.Generator, dtype: torch.dtype = torch.float64) -> Float[Tensor, "..."]:
    """Independent fair signs +-1."""
    bits = torch.randint(0, 2, shape, generator=generator, dtype=torch.int8, device=generator.device)
    return bits.to(dtype).mul_(2).sub_(1)


def corrupt(state: Float[Tensor, "*batch N"], rho: float, *, generator: torch.Generator) -> Float[Tensor, "*batch N"]:
    """Flip round(rho N) spins of each state, a uniformly random set of them. Raises ValueError unless 0 <= rho <= 1."""
    check_within("rho", rho, 0, 1)
    order = torch.rand(state.shape, generator=generator, device=generator.device).argsort(dim=-1)
    return torch.where(order < round(rho * state.shape[-1]), -state, state)


def bit_error_rate(
    N: int,
    K: int,
    interaction: Interaction,
    *,
    rho: float = 0.0,
    num_tests: int = 64,
    trials: int = 1,
    generator: torch.Generator,
    dtype: torch.dtype = torch.float64,
) -> Float[Tensor, "trials"]:
    """The fraction of wrong bits after one step from min(K, num_tests) stored patterns with round(rho N) flips.

    Each trial draws its own K patterns, so that the trials are independent. [ours]
    """
    for name, value in (("N", N), ("K", K), ("num_tests", num_tests), ("trials", trials)):
        check_count(name, value)
    check_interaction(interaction)
    check_dtype(dtype)
    patterns = random_signs(trials, K, N, generator=generator, dtype=dtype)
    stored = patterns[:, :num_tests]
    probes = corrupt(stored, rho, generator=generator) if rho else stored
    moved = torch.where(_flips(probes, patterns, interaction), -probes, probes)
    return (moved != stored).to(dtype).mean(dim=(-2, -1))


def all_fixed(
    N: int, K: int, interaction: Interaction, *, trials: int, generator: torch.Generator
) -> Bool[Tensor, "trials"]:
    """Whether one step leaves all K stored patterns where they are, for each of ``trials`` draws. [ours]"""
    for name, value in (("N", N), ("K", K), ("trials", trials)):
        check_count(name, value)
    check_interaction(interaction)
    patterns = random_signs(trials, K, N, generator=generator)
    return ~_flips(patterns, patterns, interaction).any(dim=-1).any(dim=-1)


class Capacity(NamedTuple):
    """Estimates of the K at which the one-step bit error reaches a level, one per replicate."""

    K: Tensor  # (R,), interpolated in ln K inside the last bracket
    bracket: Tensor  # (2, R), integers with error below and not below the level
    error: Tensor  # (2, R), the errors there


def capacity(
    N: int,
    interaction: Interaction,
    error: float = 0.01,
    *,
    replicates: int = 1,
    trials: int = 16,
    num_tests: int = 64,
    resolution: float = 0.01,
    generator: torch.Generator,
    dtype: torch.dtype = torch.float64,
) -> Capacity:
    """The number of patterns at which a fraction ``error`` of the bits of stored patterns moves in one step.

    K doubles and is then bisected, for all replicates at once. A replicate averages ``trials`` draws, and within one
    draw the patterns are nested (K uses the first K of a pool), so that its error is compared at different K on
    common patterns. Bisection stops at brackets of relative width ``resolution`` or of width 1.

    Raises ValueError for counts < 1, degree < 2, an error outside (0, 1/2) and one that no K reaches. [ours]

    >>> estimate = capacity(16, 2, trials=8, generator=torch.Generator())
    >>> estimate.bracket.flatten().tolist(), 3 < float(estimate.K) < 4
    ([3, 4], True)
    """
    for name, value in (("N", N), ("replicates", replicates), ("trials", trials), ("num_tests", num_tests)):
        check_count(name, value)
    check_interaction(interaction)
    check_fraction("error", error, below=0.5)
    check_fraction("resolution", resolution)
    check_dtype(dtype)
    pool = random_signs(replicates, trials, 2, N, generator=generator, dtype=dtype)

    def moved(K: Tensor) -> Tensor:
        used = pool[..., : int(K.max()), :]
        index = torch.arange(used.shape[-2], device=used.device)
        weights = (index < K[:, None, None]).to(dtype)
        tests = used[..., :num_tests, :]
        flipped = _flips(tests, used, interaction, weights).to(dtype).mean(dim=-1)
        tested = weights[..., :num_tests]
        return (flipped * tested).sum(dim=(-2, -1)) / (trials * tested.sum(dim=(-2, -1)))

    low = torch.ones(replicates, dtype=torch.int64, device=pool.device)
    error_low = torch.zeros(replicates, dtype=dtype, device=pool.device)
    high, error_high = 2 * low, moved(2 * low)
    while bool((error_high < error).any()):
        rising = error_high < error
        if int(high.max()) >= 2 ** (N + 4):
            raise ValueError(f"the error stays below {error} up to K = {int(high.max())}; give a smaller error")
        low, error_low = torch.where(rising, high, low), torch.where(rising, error_high, error_low)
        high = torch.where(rising, 2 * high, high)
        more = int(high.max()) - pool.shape[-2]
        if more > 0:
            pool = torch.cat(
                [pool, random_signs(replicates, trials, more, N, generator=generator, dtype=dtype)], dim=-2
            )
        error_high = torch.where(rising, moved(high), error_high)
    while bool((high - low > torch.clamp(resolution * low, min=1)).any()):
        middle = (low + high) // 2
        at_middle = moved(middle)
        below = at_middle < error
        low, error_low = torch.where(below, middle, low), torch.where(below, at_middle, error_low)
        high, error_high = torch.where(below, high, middle), torch.where(below, error_high, at_middle)
    share = (error - error_low) / (error_high - error_low)
    K = low * (high / low) ** share
    return Capacity(K, torch.stack([low, high]), torch.stack([error_low, error_high]))
