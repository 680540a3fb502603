"""f-divergences and the constrained problem: the largest h_n that a budget around q allows.

symbol       name          meaning                                                    axes
q            q             verifier's distribution at a position                      (..., V)
h            h             any distribution                                           (..., V)
n            n             drafted token                                              (...)
q_n          q_n           verifier's probability of the drafted token                (...)
D_f(h||q)    divergence    sum_i q_i f(h_i / q_i), f convex, f(1) = 0                 (...)
phi(gamma)   binary_divergence   D_f between (gamma, 1 - gamma) and (q_n, 1 - q_n)    (...)
gamma        gamma         the target's probability of the drafted token              (...)

Every f is written with f'(1) = 0: adding c (t - 1) to f changes no divergence between distributions, and makes each
term nonnegative. Where q_i = 0 < h_i the term is h_i f'(infinity).
"""

from collections.abc import Callable
from types import MappingProxyType
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from derived.lab.checks import check_at_least

from .laws import as_float64, as_probability, check_same_vocabulary

Name = Literal["kl", "chi2", "hellinger", "js", "tv"]
HALVINGS = 64  # of an interval inside [0, 1]: below the spacing of float64 there
Inside = Callable[[Tensor], Tensor]


def _kl_terms(h: Tensor, q: Tensor) -> Tensor:
    """h ln(h / q) - h + q, with 0 ln 0 = 0; infinite where q = 0 < h, NaN where an entry is NaN or negative.

    Near q, h ln(1 + (h - q) / q) loses no digits. Below q / 2 the shift nears -1 and has few left: there it is
    h ln h - h ln q.
    """
    shift = (h - q) / q
    near = h * torch.log1p(shift)
    apart = torch.xlogy(h, h) - torch.xlogy(h, q)
    return (torch.where((shift >= -0.5) & (shift < torch.inf), near, apart) - (h - q)).clamp(min=0.0)


def _chi2_terms(h: Tensor, q: Tensor) -> Tensor:
    """(h - q)^2 / q, 0 where both are 0, infinite where q = 0 < h."""
    return torch.where((h == 0) & (q == 0), 0.0, (h - q).square() / q)


def _js_terms(h: Tensor, q: Tensor) -> Tensor:
    middle = (h + q) / 2
    return (_kl_terms(h, middle) + _kl_terms(q, middle)) / 2


TERMS: MappingProxyType[str, Callable[[Tensor, Tensor], Tensor]] = MappingProxyType(
    {
        "kl": _kl_terms,
        "chi2": _chi2_terms,
        "hellinger": lambda h, q: (h.sqrt() - q.sqrt()).square() / 2,
        "js": _js_terms,
        "tv": lambda h, q: (h - q).abs() / 2,
    }
)


def _terms(name: str) -> Callable[[Tensor, Tensor], Tensor]:
    if name not in TERMS:
        raise ValueError(f"divergence {name!r} is not known; give one of {', '.join(TERMS)}")
    return TERMS[name]


def divergence(h: Float[Tensor, "*batch V"], q: Float[Tensor, "*#batch V"], name: Name = "kl") -> Tensor:
    """D_f(h || q) = sum_i q_i f(h_i / q_i) in nats, computed in float64.

    f(t): kl t ln t, chi2 (t - 1)^2, hellinger (sqrt t - 1)^2 / 2, tv |t - 1| / 2,
    js [t ln(2t / (1 + t)) + ln(2 / (1 + t))] / 2.

    Shapes: h, q (..., V), returns (...). Raises ValueError for an unknown name or different vocabularies. [prior]

    >>> divergence(torch.tensor([0.5, 0.5, 0.0]), torch.full((3,), 1 / 3))  # ln(3/2)
    tensor(0.4055, dtype=torch.float64)
    """
    check_same_vocabulary("h", h.shape[-1], "q", q.shape[-1])
    return _terms(name)(as_float64(h), as_float64(q)).sum(dim=-1)


def binary_divergence(gamma: Tensor | float, q_n: Tensor | float, name: Name = "kl") -> Tensor:
    """phi(gamma) = q_n f(gamma / q_n) + (1 - q_n) f((1 - gamma) / (1 - q_n)), the cost of h_n = gamma.

    Convex in gamma with its minimum 0 at q_n. Shapes: broadcast. [digest, Thm 2]
    """
    terms = _terms(name)
    gamma, q_n = torch.broadcast_tensors(as_float64(gamma), as_float64(q_n))
    return terms(gamma, q_n) + terms(1 - gamma, 1 - q_n)


def bisected(inside: Inside, low: Tensor, high: Tensor, halvings: int = HALVINGS) -> tuple[Tensor, Tensor]:
    """A short interval around the last x in [low, high] for which ``inside(x)`` holds, by halving.

    ``inside`` holds up to some point of each interval and not beyond; where it holds at ``high``, both ends are that.
    Shapes: all alike, any. [prior]

    >>> low, high = bisected(lambda x: x * x <= 2, torch.zeros(1), torch.full((1,), 2.0), halvings=20)
    >>> low
    tensor([1.4142])
    """
    low = torch.where(inside(high), high, low)
    for _ in range(halvings):
        middle = (low + high) / 2
        kept = inside(middle)
        low, high = torch.where(kept, middle, low), torch.where(kept, high, middle)
    return low, high


class _Searched(torch.autograd.Function):
    """A root that was searched: it depends on the other arguments, and nobody has its derivative."""

    @staticmethod
    def forward(ctx, root: Tensor, *of: Tensor) -> Tensor:
        return root.view_as(root)

    @staticmethod
    def backward(ctx, _: Tensor) -> None:
        raise RuntimeError(
            "a root that is found by halving cannot be differentiated; take a divergence with a closed form (chi2, tv), "
            "or differences"
        )


searched = _Searched.apply


def _by_halving(q_n: Tensor, budget: Tensor, name: Name) -> Tensor:
    """The largest gamma in [q_n, 1] with phi(gamma) <= budget; phi increases there, so halving finds it."""
    inside = lambda gamma: binary_divergence(gamma, q_n, name) <= budget  # noqa: E731
    with torch.no_grad():
        root, _ = bisected(inside, q_n, torch.ones_like(q_n))
    return searched(root, q_n, budget)


def gamma_constrained(q_n: Tensor | float, budget: Tensor | float, name: Name = "kl") -> Tensor:
    """gamma* = max {h_n : D_f(h || q) <= budget}, for any f-divergence, in [q_n, 1].

    The cheapest distribution with h_n = gamma is the proportional one (Jensen), so gamma* is the right end of
    {phi <= budget}. In closed form for chi2, q_n + sqrt(budget q_n (1 - q_n)), and for tv, q_n + budget, each capped at
    1. Otherwise the root of phi by halving, and a RuntimeError where that is differentiated.

    At q_n = 0 it is 0 exactly if f'(infinity) is infinite (kl, chi2). For hellinger, js and tv a
    budget buys tokens that the verifier excludes.

    Shapes: broadcast. Raises ValueError for a budget that is negative or not finite and for a q_n outside [0, 1].
    [digest, Thm 2; q_n = 0 ours]

    >>> gamma_constrained(0.3, 0.1, "tv")
    tensor(0.4000, dtype=torch.float64)
    """
    check_at_least("budget", budget, 0)
    q_n = as_probability("q_n", q_n)
    q_n, budget = torch.broadcast_tensors(q_n, as_float64(budget).to(q_n.device))
    if name == "chi2":  # (gamma - q_n)^2 / (q_n (1 - q_n)) = budget
        return (q_n + (budget * q_n * (1 - q_n)).clamp(min=0.0).sqrt()).clamp(max=1.0)
    if name == "tv":
        return (q_n + budget).clamp(max=1.0)
    return _by_halving(q_n, budget, name)


def target_given(
    q: Float[Tensor, "*batch V"], n: Int[Tensor, "*batch"], gamma: Float[Tensor, "*batch"]
) -> Float[Tensor, "*batch V"]:
    """h^(n): h_n = gamma and h_i = (1 - gamma) / (1 - q_n) q_i for i != n; q itself where q_n = 1.

    The solution of the constrained problem for every f-divergence, and the only one if f is strictly convex and the
    budget binds. Shapes: q (..., V), n and gamma (...), returns (..., V). [digest, Thm 2]
    """
    q, gamma = as_float64(q), as_float64(gamma)
    n = n.unsqueeze(-1)
    q_n = q.gather(-1, n)
    rest = 1 - q_n
    scale = torch.where(rest > 0, (1 - gamma.unsqueeze(-1)) / torch.where(rest > 0, rest, 1.0), 1.0)
    h = (q * scale).scatter(-1, n, gamma.unsqueeze(-1))
    return torch.where(rest > 0, h, q)


def all_targets(q: Float[Tensor, "pairs V"], gamma: Float[Tensor, "pairs V"]) -> Float[Tensor, "pairs V V"]:
    """h^(n) for every token n that may be drafted, (pairs, n, y)."""
    n = torch.arange(q.shape[-1], device=q.device).expand(q.shape)
    return target_given(q.unsqueeze(-2).expand(*q.shape, q.shape[-1]), n, gamma)
