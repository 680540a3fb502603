"""The rules of acceptance: one frozen object each, with everything that the sampler and the exact tools need.

symbol     name       meaning                                                                axes
p, q       p, q       draft's and verifier's distribution                                    (..., V)
p_n, q_n   p_n, q_n   their values at the drafted token                                      (...)
gamma      gamma      a draft is kept with probability min(1, gamma / p_n)                   (...)
-          summaries  what a rule reads from whole rows, one number per position each        (...)
s          scale      after a rejection the token is drawn from (s q - p)_+, normalised      (...)

A rule that reads no rows judges a draft by two numbers. For Cactus, h^(n)_i = s q_i off n and h^(n)_n = gamma < p_n
when n is rejected, so (h^(n) - p)_+ is (s q - p)_+ everywhere; for the fixed clip(p, b q, a q) it is (b q - p)_+.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from derived.lab.checks import check_at_least, check_count, check_within

from .laws import as_float64, as_probability, check_share
from .theory import delta_calibrated, gamma_cactus, mentored_band

Summaries = tuple[Tensor, ...]


class Rule(ABC):
    """What every rule answers: how a draft is judged, and what replaces it if it is rejected.

    A rule gives ``gamma``. It recovers from (s q - p)_+ with s = 1 unless it says otherwise.
    """

    name: ClassVar[str]
    #: The rule is exact speculative sampling whenever q is one-hot, whatever the draft.
    inert_when_greedy: ClassVar[bool] = True
    #: ``summaries`` looks at whole rows; otherwise a draft is judged by two numbers.
    reads_rows: ClassVar[bool] = False
    #: The recovery distribution depends on the drafted token.
    per_draft: ClassVar[bool] = False

    def summaries(self, p: Tensor, q: Tensor) -> Summaries:
        """What the rule reads from whole rows (..., V): tensors (...), none for most rules."""
        return ()

    @abstractmethod
    def gamma(self, p_n: Tensor | float, q_n: Tensor | float, *summaries: Tensor) -> Tensor:
        """The target's probability of the drafted token, float64; broadcasts."""

    def scale(self, q_n: Tensor | float, gamma: Tensor, *summaries: Tensor) -> Tensor:
        """The factor s of the recovery distribution (s q - p)_+; broadcasts."""
        return torch.ones_like(gamma)

    def recovery(self, p: Tensor, q: Tensor, scale: Tensor) -> Tensor:
        """Weights (..., V), not normalised, of the token that replaces a rejected draft; ``scale`` (...)."""
        # (p - s q) and then its negative in place: the row of a large vocabulary is allocated once.
        return torch.addcmul(p, q, -scale.to(q.dtype).unsqueeze(-1)).neg_().clamp_(min=0.0)


@dataclass(frozen=True)
class SpS(Rule):
    """Exact speculative sampling: keep with min(1, q_n / p_n), else draw from (q - p)_+. The emitted distribution is q.

    [prior: Leviathan et al. 2023; Chen et al. 2023]

    >>> SpS().gamma(0.5, 0.25)
    tensor(0.2500, dtype=torch.float64)
    """

    name: ClassVar[str] = "sps"

    def gamma(self, p_n: Tensor | float, q_n: Tensor | float, *summaries: Tensor) -> Tensor:
        return as_float64(q_n)


class Raised(Rule):
    """Targets h^(n) that raise the draft to gamma >= q_n and shrink the others in proportion."""

    per_draft: ClassVar[bool] = True

    def scale(self, q_n: Tensor | float, gamma: Tensor, *summaries: Tensor) -> Tensor:
        rest = 1 - as_float64(q_n)
        return torch.where(rest > 0, (1 - gamma) / torch.where(rest > 0, rest, 1.0), 1.0)


@dataclass(frozen=True)
class Cactus(Raised):
    """Cactus with the second-order step: gamma = min(q_n + sqrt(2 delta q_n (1 - q_n)), 1). [repo]

    delta >= 0 in nats. At temperature 0 (q one-hot) gamma = q_n: inert for every delta. Raises ValueError for a delta
    that is negative or not finite.

    >>> Cactus(1 / 16).gamma(0.5, 1 / 3)
    tensor(0.5000, dtype=torch.float64)
    """

    delta: float
    name: ClassVar[str] = "cactus"

    def __post_init__(self) -> None:
        check_at_least("delta", self.delta, 0)

    def gamma(self, p_n: Tensor | float, q_n: Tensor | float, *summaries: Tensor) -> Tensor:
        return gamma_cactus(q_n, self.delta)


@dataclass(frozen=True)
class Calibrated(Raised):
    """Cactus whose delta is chosen at each position so that TV(h_alg, q) = epsilon, or all that Cactus can spend.

    epsilon is a promise about the distribution that is emitted. It reads both rows of every position. Raises ValueError
    for an epsilon outside [0, 1]. [ours]

    >>> p, q = torch.tensor([0.5, 0.5, 0.0]), torch.full((3,), 1 / 3)
    >>> Calibrated(0.1).summaries(p, q)  # the delta of the position
    (tensor(0.0056, dtype=torch.float64),)
    """

    epsilon: float
    name: ClassVar[str] = "calibrated"
    reads_rows: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_within("epsilon", self.epsilon, 0, 1)

    def summaries(self, p: Tensor, q: Tensor) -> Summaries:
        return (delta_calibrated(p, q, self.epsilon),)

    def gamma(self, p_n: Tensor | float, q_n: Tensor | float, *summaries: Tensor) -> Tensor:
        return gamma_cactus(q_n, summaries[0])


@dataclass(frozen=True)
class Lenience(Rule):
    """Keep with min(1, q_n / (ell p_n)), 0 < ell <= 1, else draw from (q - p)_+. [prior: Leviathan et al. 2023]

    Raises ValueError for an ell outside (0, 1].

    >>> Lenience(0.5).gamma(0.5, 0.2)
    tensor(0.4000, dtype=torch.float64)
    """

    ell: float
    name: ClassVar[str] = "lenience"

    def __post_init__(self) -> None:
        check_share("ell", self.ell)

    def gamma(self, p_n: Tensor | float, q_n: Tensor | float, *summaries: Tensor) -> Tensor:
        return as_probability("q_n", q_n) / self.ell


@dataclass(frozen=True)
class Interp(Rule):
    """Exact speculative sampling from h = alpha p + (1 - alpha) q; (h - p)_+ is proportional to (q - p)_+. [repo]

    The public code also keeps drafts that truncation excludes from the verifier, q_n = 0. With ``inside`` it keeps none
    of them, as the other rules do. [ours] Raises ValueError for an alpha outside [0, 1].

    >>> Interp(0.5).gamma(0.5, 0.25)
    tensor(0.3750, dtype=torch.float64)
    >>> Interp(0.5).gamma(0.5, 0.0), Interp(0.5, inside=True).gamma(0.5, 0.0)
    (tensor(0.2500, dtype=torch.float64), tensor(0., dtype=torch.float64))
    """

    alpha: float
    inside: bool = False
    name: ClassVar[str] = "interp"
    inert_when_greedy: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_within("alpha", self.alpha, 0, 1)

    def gamma(self, p_n: Tensor | float, q_n: Tensor | float, *summaries: Tensor) -> Tensor:
        gamma = self.alpha * as_probability("p_n", p_n) + (1 - self.alpha) * as_probability("q_n", q_n)
        return torch.where(as_float64(q_n) > 0, gamma, 0.0) if self.inside else gamma


@dataclass(frozen=True)
class Mentored(Rule):
    """Exact speculative sampling from the KL-optimal clip(p, b q, a q) at KL = budget. [prior: Tran-Thien 2023]

    The budget is in nats. It reads both rows of every position, sorts them and searches for the band. Raises ValueError
    for a budget that is negative or not finite.

    >>> p, q = torch.tensor([0.5, 0.5, 0.0]), torch.full((3,), 1 / 3)
    >>> a, b = Mentored(0.02).summaries(p, q)
    >>> a, b
    (tensor(1.1376, dtype=torch.float64), tensor(0.7249, dtype=torch.float64))
    """

    budget: float
    name: ClassVar[str] = "mentored"
    reads_rows: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_at_least("budget", self.budget, 0)

    def summaries(self, p: Tensor, q: Tensor) -> Summaries:
        return mentored_band(p, q, self.budget)

    def gamma(self, p_n: Tensor | float, q_n: Tensor | float, *summaries: Tensor) -> Tensor:
        a, b = summaries
        q_n = as_float64(q_n)
        return torch.maximum(torch.minimum(as_float64(p_n), a * q_n), b * q_n)

    def scale(self, q_n: Tensor | float, gamma: Tensor, *summaries: Tensor) -> Tensor:
        return summaries[1].expand(gamma.shape)


@dataclass(frozen=True)
class Typical(Rule):
    """Typical acceptance: keep iff q_n > min(epsilon, alpha e^{-H(q)}), else emit argmax q. [prior: Medusa, vLLM]

    It reads the verifier's row of every position. The emitted distribution need not lie between p and q. Raises
    ValueError for knobs outside (0, 1], and for both at 1, where nothing would be kept.

    >>> Typical(0.3, 0.9).summaries(torch.tensor([0.5, 0.5, 0.0]), torch.tensor([0.8, 0.1, 0.1]))  # its threshold
    (tensor(0.3000, dtype=torch.float64),)
    """

    epsilon: float = 0.09
    alpha: float = 0.3
    name: ClassVar[str] = "tas"
    reads_rows: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_share("epsilon", self.epsilon)
        check_share("alpha", self.alpha)
        if self.epsilon == self.alpha == 1.0:
            raise ValueError("epsilon = alpha = 1 rejects every draft; give one of them below 1")

    def summaries(self, p: Tensor, q: Tensor) -> Summaries:
        nats = torch.special.entr(q).sum(dim=-1)
        return (as_float64((self.alpha * torch.exp(-nats)).clamp(max=self.epsilon)),)

    def gamma(self, p_n: Tensor | float, q_n: Tensor | float, *summaries: Tensor) -> Tensor:
        return (as_float64(q_n) > summaries[0]).to(torch.float64)

    def recovery(self, p: Tensor, q: Tensor, scale: Tensor) -> Tensor:
        best = q.argmax(dim=-1, keepdim=True)
        return torch.zeros_like(q).scatter_(-1, best, 1.0).expand(torch.broadcast_shapes(p.shape, q.shape))


@dataclass(frozen=True)
class TopK(Rule):
    """Keep iff q_n > 0 is at least the k-th largest of q, else draw from (1[top k] - p)_+. [repo]

    Ties at the k-th place are all kept; where truncation leaves fewer than k tokens, those that it leaves. [ours] It
    reads the verifier's row of every position. Raises ValueError for a k that is no positive integer.

    >>> TopK(2).summaries(torch.tensor([0.5, 0.5, 0.0]), torch.tensor([0.7, 0.2, 0.1]))  # the least that is kept
    (tensor(0.2000, dtype=torch.float64),)
    """

    k: int
    name: ClassVar[str] = "topk"
    reads_rows: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_count("k", self.k)

    def summaries(self, p: Tensor, q: Tensor) -> Summaries:
        return (as_float64(self._least(q)),)

    def _least(self, q: Tensor) -> Tensor:
        """The smallest probability that is kept: the k-th largest, or the smallest positive one if that is 0."""
        positive = torch.where(q > 0, q, torch.inf).amin(dim=-1)
        return torch.maximum(q.topk(min(self.k, q.shape[-1]), dim=-1).values[..., -1], positive)

    def gamma(self, p_n: Tensor | float, q_n: Tensor | float, *summaries: Tensor) -> Tensor:
        return (as_float64(q_n) >= summaries[0]).to(torch.float64)

    def recovery(self, p: Tensor, q: Tensor, scale: Tensor) -> Tensor:
        kept = q >= self._least(q).unsqueeze(-1)
        return (kept.to(q.dtype) - p).clamp_(min=0.0)
