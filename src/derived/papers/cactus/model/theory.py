"""Closed forms: what each rule targets, what its budget is worth, and how fast blocks are.

symbol       name            meaning                                                      axes
p, q         p, q            draft's and verifier's distribution at a position            (..., V)
n            n               drafted token                                                (...)
delta        delta           budget of Cactus, 0 = exact                                  scalar or (...)
gamma_n      gamma_*         the target's probability of the drafted token                (...)
a, b         a, b            band of the KL-optimal distribution, b q <= h <= a q         (...)
V_+          num_overdrafted number of tokens with p > q                                  (...)
epsilon      epsilon         total variation that the emitted distribution may spend      scalar
alpha        alpha           acceptance probability, or a rule's own knob                 scalar
m            m               drafted tokens per block                                     scalar

Everything is torch, float64; scalars may be given as numbers.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from derived.lab.checks import check_at_least, check_count, check_positive, check_within

from .divergences import bisected, divergence, searched
from .laws import as_float64, as_probability, check_pair


def gamma_cactus(q_n: Tensor | float, delta: Tensor | float) -> Tensor:
    """gamma = min(q_n + sqrt(2 delta q_n (1 - q_n)), 1).

    The second-order solution for KL(h || q) <= delta, and the exact one for chi2(h || q) <= 2 delta (O1).
    Shapes: broadcast; delta in nats. Raises ValueError for a delta that is negative, NaN or infinite and for
    a q_n outside [0, 1]. [digest, Cor. 5; chi2 ours]

    >>> gamma_cactus(1 / 3, 1 / 16)
    tensor(0.5000, dtype=torch.float64)
    """
    check_at_least("delta", delta, 0)
    q_n = as_probability("q_n", q_n)
    return (q_n + (2 * delta * q_n * (1 - q_n)).clamp(min=0.0).sqrt()).clamp(max=1.0)


class Filling:
    """Solves sum_i min(cap_i, x slope_i) = total for x >= 0, exactly, after one sort; cap, slope (..., V) >= 0.

    The left side is concave and piecewise linear with kinks at cap_i / slope_i. Entries with cap or slope 0 add
    nothing and are left out. A total beyond the largest value gives the last kink. [ours]
    """

    def __init__(self, cap: Float[Tensor, "*batch V"], slope: Float[Tensor, "*batch V"]) -> None:
        used = (cap > 0) & (slope > 0)
        cap, slope = torch.where(used, cap, 0.0), torch.where(used, slope, 0.0)
        self.kinks, order = torch.where(used, cap / torch.where(used, slope, 1.0), 0.0).sort(dim=-1)
        cap, slope = cap.gather(-1, order), slope.gather(-1, order)
        self.filled = cap.cumsum(dim=-1) - cap  # by entries whose kink lies before
        self.open = slope.flip(-1).cumsum(dim=-1).flip(-1)  # slope of this entry and those after
        self.values = self.filled + self.kinks * self.open  # at each kink
        self.most = self.values[..., -1]

    def level(self, total: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """The smallest x that reaches min(total, the largest value)."""
        total = torch.minimum(total, self.most).unsqueeze(-1)
        k = (self.values < total).sum(dim=-1, keepdim=True).clamp(max=self.values.shape[-1] - 1)
        kink, filled, slope = (x.gather(-1, k) for x in (self.kinks, self.filled, self.open))
        x = (total - filled) / torch.where(slope > 0, slope, 1.0)
        return torch.minimum(x.clamp(min=0.0), kink).squeeze(-1)


def mentored_band(p: Float[Tensor, "*batch V"], q: Float[Tensor, "*batch V"], budget: Tensor | float) -> tuple:
    """(a, b), b <= 1 <= a, such that h = clip(p, b q, a q) is a distribution with KL(h || q) = budget.

    The KL is less than the budget where even the largest such h spends less.

    The distributions clip(p, b q, a q) form one family, indexed by t = TV(h, q): a and b fill t above and below the
    verifier. KL grows with t, at rate ln(a / b), so halving t finds the budget. Shapes: p, q (..., V), returns (...).
    [ours]
    """
    check_at_least("budget", budget, 0)
    p, q = as_float64(p), as_float64(q)
    # t = sum_{p > q} min(p - q, (a - 1) q) = sum_{p < q} min(q - p, (1 - b) q)
    sides = Filling(torch.stack([p - q, q - p]).clamp(min=0.0), q)

    def at(t: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        over, under = sides.level(t.expand(2, *t.shape))
        a, b = 1 + over, 1 - under
        h = torch.maximum(torch.minimum(p, a.unsqueeze(-1) * q), b.unsqueeze(-1) * q)
        return a, b, divergence(h, q)

    most = sides.most.amin(dim=0)
    with torch.no_grad():
        t, _ = bisected(lambda t: at(t)[2] <= budget, torch.zeros_like(most), most, halvings=60)
    return at(searched(t, p, q, *([budget] if isinstance(budget, Tensor) else [])))[:2]


def mentored_law(p: Float[Tensor, "*batch V"], q: Float[Tensor, "*batch V"], budget: Tensor | float) -> Tensor:
    """h = clip(p, b q, a q): the distribution with the largest sum_i min(p_i, h_i) with KL(h || q) <= budget.

    No rule whose output distribution is within the budget accepts more. Shapes: p, q (..., V), returns (..., V).
    Raises ValueError for rows that are no distributions and for a bad budget. [prior: Tran-Thien 2023; proof ours]

    >>> mentored_law(torch.tensor([0.5, 0.5, 0.0]), torch.full((3,), 1 / 3), 0.02)
    tensor([0.3792, 0.3792, 0.2416], dtype=torch.float64)
    """
    check_pair(p, q)
    a, b = (side.unsqueeze(-1) for side in mentored_band(p, q, budget))
    p, q = as_float64(p), as_float64(q)
    return torch.maximum(torch.minimum(p, a * q), b * q)


def delta_calibrated(p: Float[Tensor, "*batch V"], q: Float[Tensor, "*batch V"], epsilon: Tensor | float) -> Tensor:
    """The delta with which Cactus' emitted distribution is at TV(h_alg, q) = epsilon, or as near to it as Cactus comes.

    TV = sum_{p > q} min(p - q, x sqrt(q (1 - q))) with x = sqrt(2 delta): one sort, no search.
    Shapes: p, q (..., V), returns (...). [ours]
    """
    check_within("epsilon", epsilon, 0, 1)
    p, q = as_float64(p), as_float64(q)
    filling = Filling((p - q).clamp(min=0.0), (q * (1 - q)).clamp(min=0.0).sqrt())
    epsilon = torch.as_tensor(epsilon, dtype=torch.float64, device=p.device)
    return filling.level(epsilon.expand(filling.most.shape)).square() / 2


def sharp_budget(delta: Tensor | float) -> Tensor:
    """ln(1 + 2 delta), the least upper bound of KL(h^(n) || q) over q_n: reached at q_n = 1 / (1 + 2 delta) (O2)."""
    check_at_least("delta", delta, 0)
    return torch.log1p(2 * as_float64(delta))


def num_overdrafted(p: Float[Tensor, "*batch V"], q: Float[Tensor, "*batch V"]) -> Tensor:
    """V_+, the number of tokens with p > q > 0; tokens with q = 0 are never accepted and cost nothing. [ours]"""
    return ((p > q) & (q > 0)).sum(dim=-1)


def emitted_tv_bound(delta: Tensor | float, V_plus: Tensor | float) -> Tensor:
    """TV(h_alg, q) <= sqrt(2 delta V_+) (O7). Shapes: broadcast. [ours]"""
    check_at_least("delta", delta, 0)
    return (2 * as_float64(delta) * as_float64(V_plus)).sqrt()


def emitted_kl_bound(delta: Tensor | float, V_plus: Tensor | float) -> Tensor:
    """KL(h_alg || q) <= ln(1 + 2 delta V_+ + sqrt(2 delta V_+)) (O7). Shapes: broadcast. [ours]"""
    tv = emitted_tv_bound(delta, V_plus)
    return torch.log1p(tv.square() + tv)


def fixed_budget_family(V: int, delta: float) -> tuple[Tensor, Tensor]:
    """(p, q): q uniform on V tokens, p uniform on ceil(1 / gamma) of them, gamma the raised probability of each.

    Then p_n <= gamma, and Cactus emits p itself: KL(h_alg || q) = ln(V / ceil(1 / gamma)), which grows without bound in
    V at one delta > 0. Shapes: (V,), float64. Raises ValueError for V < 1 and a delta that is not positive. [ours]
    """
    check_count("V", V)
    check_positive("delta", delta)
    q = torch.full((V,), 1 / V, dtype=torch.float64)
    num_drafted = math.ceil(1 / gamma_cactus(q[0], delta).item())
    return (torch.arange(V) < num_drafted).to(torch.float64) / num_drafted, q


def expected_accepted(alpha: Tensor | float, m: int) -> Tensor:
    """AL_m = sum_{i=1}^m alpha^i, the accepted drafts per block of m if each is accepted independently. [prior]

    Shapes: alpha (...), returns (...). Raises ValueError for an alpha outside [0, 1] and m < 1.

    >>> expected_accepted(0.5, 3)
    tensor(0.8750, dtype=torch.float64)
    """
    check_within("alpha", alpha, 0, 1)
    check_count("m", m)
    alpha = as_float64(alpha)
    return (alpha.unsqueeze(-1) ** torch.arange(1, m + 1, dtype=torch.float64, device=alpha.device)).sum(dim=-1)


def nearest_with_top(q: Float[Tensor, "V"], b: int) -> Float[Tensor, "V"]:
    """The p of least KL(q || p) whose likeliest token is b: b shares evenly with the tokens above their common mean.

    Shapes: q (V,), returns (V,). [ours]

    >>> nearest_with_top(torch.tensor([0.6, 0.3, 0.1]), 1)
    tensor([0.4500, 0.4500, 0.1000], dtype=torch.float64)
    """
    q = as_float64(q)
    sums = q[b] + q[q > q[b]].sort(descending=True).values.cumsum(dim=0)  # of b and of the likeliest 1, 2, ...
    level = (sums / torch.arange(2, len(sums) + 2)).amax() if len(sums) else q[b]
    return torch.where(torch.arange(len(q)) == b, level, q.clamp(max=level))
