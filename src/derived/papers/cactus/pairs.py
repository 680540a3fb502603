"""Random pairs of laws, the best coupling of two laws, and rules whose knobs are set to accept equally often.

symbol   name    meaning                                             axes
p, q     p, q    laws of draft and verifier at a position            (pairs, V)
A        target  mean acceptance rate that a knob is set to          scalar
"""

import numpy as np
import torch
from jaxtyping import Float
from scipy import optimize, sparse, special
from torch import Tensor

from .divergences import target_given
from .exact import acceptance_rate
from .rules import Rule, make_rule

KINDS = ("noised", "independent")


def dirichlet(concentration: Float[Tensor, "pairs"], V: int, generator: torch.Generator) -> Float[Tensor, "pairs V"]:
    """Symmetric Dirichlet laws, one per concentration: normalised gamma variables, by the inverse of their law."""
    u = torch.rand(len(concentration), V, generator=generator, dtype=torch.float64)
    gamma = torch.from_numpy(special.gammaincinv(concentration.unsqueeze(-1).numpy(), u.numpy()))
    return gamma / gamma.sum(dim=-1, keepdim=True)


def random_pairs(pairs: int, V: int, kind: str, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """(p, q): q Dirichlet with log-uniform concentration in [0.1, 10]; p tempered and noised from it, or unrelated.

    "noised": p proportional to q^beta e^{noise}, beta uniform in [0.6, 1.4], noise N(0, 0.5^2). "independent": p is
    another draw of the same Dirichlet law.
    """
    if kind not in KINDS:
        raise ValueError(f"kind {kind!r} is unknown: give one of {', '.join(KINDS)}")
    concentration = 10 ** (2 * torch.rand(pairs, generator=generator, dtype=torch.float64) - 1)
    q = dirichlet(concentration, V, generator)
    if kind == "independent":
        return dirichlet(concentration, V, generator), q
    beta = 0.6 + 0.8 * torch.rand(pairs, 1, generator=generator, dtype=torch.float64)
    noise = 0.5 * torch.randn(pairs, V, generator=generator, dtype=torch.float64)
    return torch.softmax(beta * q.log() + noise, dim=-1), q


def best_coupling(p: np.ndarray, h: np.ndarray) -> float:
    """The largest P(N = Y) over joint laws of N ~ p and Y ~ h: a linear program over V x V matrices."""
    V = len(p)
    margins = sparse.vstack(
        [sparse.kron(sparse.eye_array(V), np.ones((1, V))), sparse.kron(np.ones((1, V)), sparse.eye_array(V))]
    )
    exactly = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = optimize.linprog(
        -np.eye(V).ravel(), A_eq=margins, b_eq=np.concatenate([p, h]), bounds=(0, 1), options=exactly
    )
    return -found.fun


#: The rules that are set to Cactus' acceptance, each with the range of its knob, least accepting end first.
KNOBS = {
    "cactus": (0.0, 50.0),
    "interp": (0.0, 1.0),
    "lenience": (1.0, 1e-6),
    "mentored": (0.0, 20.0),
    "tas": (0.99, 1e-6),
}
RIVALS = ("interp", "lenience", "mentored", "tas", "topk")


def rule_of(name: str, knob: float) -> Rule:
    """The rule of one knob; typical acceptance has alpha = sqrt(epsilon), as in the authors' code. [repo]"""
    if name == "tas":
        return make_rule(name, knob, knob**0.5)
    if name == "topk":
        return make_rule(name, int(knob))
    return make_rule(name, knob)


def match(name: str, p: Float[Tensor, "pairs V"], q: Float[Tensor, "pairs V"], target: float) -> float:
    """The knob whose mean acceptance rate over the pairs is the target, or as near to it as the rule comes.

    Every rule accepts more as its knob moves along its range, so the interval is halved (lenience and typical
    acceptance on a logarithmic scale); top-k takes the nearest of its V values.
    """

    def accepts(knob: float) -> float:
        return acceptance_rate(p, q, rule_of(name, knob)).mean().item()

    if name == "topk":
        return min(range(1, p.shape[-1] + 1), key=lambda k: abs(accepts(k) - target))
    first, last = KNOBS[name]
    geometric = first > last
    low, high = (np.log(first), np.log(last)) if geometric else (first, last)
    for _ in range(25):
        middle = (low + high) / 2
        if accepts(float(np.exp(middle) if geometric else middle)) < target:
            low = middle
        else:
            high = middle
    ends = [float(np.exp(each) if geometric else each) for each in (low, high)]
    return min(ends, key=lambda knob: abs(accepts(knob) - target))


def all_targets(q: Float[Tensor, "pairs V"], gamma: Float[Tensor, "pairs V"]) -> Float[Tensor, "pairs V V"]:
    """h^(n) for every token n that may be drafted, (pairs, n, y)."""
    n = torch.arange(q.shape[-1], device=q.device).expand(q.shape)
    return target_given(q.unsqueeze(-2).expand(*q.shape, q.shape[-1]), n, gamma)
