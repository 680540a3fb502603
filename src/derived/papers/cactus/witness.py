"""Slow and obvious twins: laws as their definitions have them, and optimisers that know no theory.

symbol    name        meaning                                                               axes
p, q      p, q        laws of draft and verifier                                            (pairs, V)
-         rounding    8 V units in the last place: sums of V probabilities                  scalar
"""

from itertools import pairwise, product

import numpy as np
import torch
from scipy import optimize, sparse, stats
from torch import Tensor

from .model.divergences import all_targets
from .model.theory import gamma_cactus, mentored_law

#: f and f' of each divergence, in numpy: nothing of the package's own divergences is used by the optimiser.
GENERATORS = {
    "kl": (lambda t: t * np.log(t), lambda t: np.log(t) + 1),
    "chi2": (lambda t: (t - 1) ** 2, lambda t: 2 * (t - 1)),
    "hellinger": (lambda t: (np.sqrt(t) - 1) ** 2 / 2, lambda t: (1 - t**-0.5) / 2),
    "js": (
        lambda t: (t * np.log(2 * t / (1 + t)) + np.log(2 / (1 + t))) / 2,
        lambda t: np.log(2 * t / (1 + t)) / 2,
    ),
}


def rounding(V: int) -> float:
    """The bound on the rounding of sums of V probabilities."""
    return 8 * V * float(np.finfo(float).eps)


def drafted_law(p: Tensor, q: Tensor, gamma: Tensor) -> Tensor:
    """The emitted law token by token as the definition has it: every draft n, its target h^(n), its recovery law.

    A slow twin of ``output_law``, which never builds a target. Shapes: (pairs, V), returns (pairs, V).
    """
    recovery = (all_targets(q, gamma) - p.unsqueeze(-2)).clamp(min=0)
    total = recovery.sum(dim=-1, keepdim=True)
    recovery = recovery / torch.where(total > 0, total, 1.0)
    kept = p * torch.where(p > 0, gamma / torch.where(p > 0, p, 1.0), 0.0).clamp(max=1)
    return kept + ((p - kept).unsqueeze(-1) * recovery).sum(dim=-2)


def law_by_definition(name: str, knob: float, p: Tensor, q: Tensor) -> Tensor:
    """The law that a rule of ``pairs.rule_of`` should emit, by definition: its acceptance and its recovery written out.

    Typical acceptance has alpha = sqrt(epsilon); top-k is that of laws without zeros. Shapes: (pairs, V), same.
    """
    if name == "cactus":
        return drafted_law(p, q, gamma_cactus(q, knob))
    if name == "interp":
        return knob * p + (1 - knob) * q
    if name == "mentored":
        return mentored_law(p, q, knob)
    if name == "lenience":
        kept, weights = torch.minimum(p, q / knob), (q - p).clamp(min=0)
    elif name == "tas":
        least = torch.exp(torch.xlogy(q, q).sum(dim=-1, keepdim=True)) * knob**0.5  # alpha e^{-H}
        kept, weights = torch.where(q > least.clamp(max=knob), p, 0.0), (q == q.amax(dim=-1, keepdim=True)).to(q.dtype)
    else:
        rank = (q.unsqueeze(-2) > q.unsqueeze(-1)).sum(dim=-1)  # how many tokens are likelier
        kept, weights = torch.where(rank < knob, p, 0.0), ((rank < knob).to(q.dtype) - p).clamp(min=0)
    total = weights.sum(dim=-1, keepdim=True)
    return kept + (p - kept).sum(dim=-1, keepdim=True) * weights / torch.where(total > 0, total, 1.0)


def best_coupling(p: np.ndarray, h: np.ndarray) -> float:
    """The largest P(N = Y) over joint laws of N ~ p and Y ~ h: a linear program over V x V matrices."""
    V = len(p)
    margins = sparse.vstack(
        [sparse.kron(sparse.eye_array(V), np.ones((1, V))), sparse.kron(np.ones((1, V)), sparse.eye_array(V))]
    )
    exactly = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    solution = optimize.linprog(
        -np.eye(V).ravel(), A_eq=margins, b_eq=np.concatenate([p, h]), bounds=(0, 1), options=exactly
    )
    if not solution.success:
        raise RuntimeError(f"the linear program was not solved: {solution.message}")
    return -solution.fun


def largest_rate(p: np.ndarray, q: np.ndarray, budget: float) -> float:
    """The largest sum_i min(p_i, h_i) over laws h with KL(h || q) <= budget: sequential quadratic programming in (h, m)
    with m <= min(p, h), which makes the aim linear. It stops 1e-12 from where it would go next.

    At so small a step the search often reports that it cannot go on; what counts is that its end keeps the limits to
    1e-9, so that its rate is one that can be had. RuntimeError where it does not.
    """
    V = len(p)
    limits = [
        {"type": "eq", "fun": lambda x: x[:V].sum() - 1},
        {"type": "ineq", "fun": lambda x: x[:V] - x[V:]},
        {"type": "ineq", "fun": lambda x: budget - stats.entropy(x[:V], q)},
    ]
    bounds = [(1e-12, 1)] * V + [(0, top) for top in p]
    start = np.concatenate([q, np.minimum(p, q)])
    found = optimize.minimize(
        lambda x: -x[V:].sum(),
        start,
        method="SLSQP",
        bounds=bounds,
        constraints=limits,
        options={"ftol": 1e-12, "maxiter": 500},
    )
    short = [min(float(np.min(limit["fun"](found.x))), 0.0) for limit in limits[1:]] + [-abs(limits[0]["fun"](found.x))]
    if not min(short) > -1e-9:
        raise RuntimeError(f"the search left its limits by {-min(short):.1e}: {found.message}")
    return -found.fun


def largest_target(q: np.ndarray, n: int, budget: float, name: str) -> float:
    """max h_n over laws h with D_f(h || q) <= budget by SLSQP, the best of three starts; f and f' written out anew.

    The search runs over h = x^2 / sum x^2, where no slope is infinite at the boundary.
    """
    f, slope = GENERATORS[name]
    point, best = np.eye(len(q))[n], []

    def law(x: np.ndarray) -> np.ndarray:
        return np.maximum(x * x / (x @ x), 1e-300)

    def pulled(x: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        return 2 * x / (x @ x) * (gradient - law(x) @ gradient)

    within = {"type": "ineq", "fun": lambda x: budget - q @ f(law(x) / q)}
    within["jac"] = lambda x: -pulled(x, slope(law(x) / q))
    for step in (0.0, 0.2, 0.5):
        options = {"constraints": [within], "options": {"ftol": 1e-14, "maxiter": 1000}}
        start = np.sqrt((1 - step) * q + step * point)
        x = optimize.minimize(lambda x: -law(x)[n], start, jac=lambda x: -pulled(x, point), method="SLSQP", **options).x
        best.append(law(x))
    kept = [h[n] for h in best if q @ f(h / q) < budget + 1e-7]
    if not kept:
        raise RuntimeError(f"none of {len(best)} searches ended within the budget of {budget:g}")
    return max(kept)


def largest_by_cross_entropy(q: np.ndarray, budget: float) -> float:
    """The largest h_0 over laws h with -sum_i h_i ln q_i <= budget: a linear program."""
    V = len(q)
    solution = optimize.linprog(-np.eye(V)[0], [-np.log(q)], [budget], np.ones((1, V)), [1.0], bounds=(0, 1))
    if not solution.success:
        raise RuntimeError(f"the linear program was not solved: {solution.message}")
    return -solution.fun


def law_by_paths(p: Tensor, q: Tensor, delta: float, m: int, tokens: int) -> tuple[dict, Tensor]:
    """Cactus' law of the texts of a Markov chain, by every path of drafts, rejections and bonuses: {text: (R,)}; and
    the expected sum, over drafted positions, of the KL of what is emitted. Shapes: p, q (R, V + 1, V), the last row
    begins a text."""
    law, spend, V = {}, torch.zeros(len(p), dtype=p.dtype), q.shape[-1]

    def walk(text: tuple[int, ...], place: int, weight: Tensor) -> None:
        if len(text) == tokens:
            law[text] = law.get(text, 0) + weight
            return
        here = text[-1] if text else V
        draft, verifier = p[:, here], q[:, here]
        if place == m:  # the bonus
            for y in range(V):
                walk((*text, y), 0, weight * verifier[:, y])
            return
        emitted = drafted_law(draft, verifier, gamma_cactus(verifier, delta))
        kept = torch.minimum(draft, gamma_cactus(verifier, delta))
        spend.add_(weight * (torch.xlogy(emitted, emitted) - torch.xlogy(emitted, verifier)).sum(dim=-1))
        for y in range(V):
            walk((*text, y), place + 1, weight * kept[:, y])
            walk((*text, y), 0, weight * (emitted - kept)[:, y])

    walk((), 0, torch.ones(len(p), dtype=p.dtype))
    return law, spend


def text_law(q: Tensor, tokens: int) -> dict[tuple[int, ...], Tensor]:
    """The law of the texts that a Markov chain writes alone, {text: (R,)}. Shapes: as in ``law_by_paths``."""
    V = q.shape[-1]
    texts = product(range(V), repeat=tokens)
    return {text: torch.stack([q[:, a, b] for a, b in pairwise((V, *text))]).prod(dim=0) for text in texts}
