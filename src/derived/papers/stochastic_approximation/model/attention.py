"""Softmax attention over the whole past, as an average over the component, and attention that feeds on itself.

symbol      name        meaning                                                             axes
y_n         y           token n                                                             (R, d)
K, V        key, value  linear keys and values, k = K y and v = V y                         (m, d), (p, d)
q           query       the query, fixed                                                    (m,)
theta       theta       K^T q: what the scores are linear in, s_n = theta . y_n             (d,)
Lambda      -           cumulant generating function ln E exp(theta . y) of a component     number
L           -           limit of the read-out, V grad Lambda(theta)                         (p,)
"""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from derived.lab.checks import check_count, check_positive, check_within


class RunningSoftmaxAttention:
    """sum_i e^{q.Ky_i} V y_i / sum_i e^{q.Ky_i} over all tokens seen, in memory that does not grow with their number.

    Numerator (R, p) and denominator (R,) are kept relative to the largest score so far, so that no exponential
    overflows. ValueError for shapes that do not fit, a token that is not finite, and a read-out before any token.
    [prior: Milakov and Gimelshein 2018, the online softmax]

    >>> head = RunningSoftmaxAttention(torch.zeros(1), torch.ones(1, 1), torch.ones(1, 1))
    >>> for y in (1.0, 2.0, 6.0):
    ...     head.update(torch.tensor([[y]]))
    >>> head.read()
    tensor([[3.]])
    """

    def __init__(self, query: Float[Tensor, "m"], key: Float[Tensor, "m d"], value: Float[Tensor, "p d"]) -> None:
        if (
            query.ndim != 1
            or key.ndim != 2
            or value.ndim != 2
            or len(query) != len(key)
            or key.shape[1] != value.shape[1]
        ):
            raise ValueError(
                f"query {tuple(query.shape)}, key {tuple(key.shape)}, value {tuple(value.shape)}; "
                "give (m,), (m, d) and (p, d)"
            )
        self.theta, self.value = key.mT @ query, value
        self.top = self.denominator = self.numerator = None

    def update(self, y: Float[Tensor, "R d"]) -> None:
        """One more token in each replica."""
        if y.ndim != 2 or y.shape[1] != len(self.theta):
            raise ValueError(f"y {tuple(y.shape)}; give (R, {len(self.theta)})")
        if self.top is not None and len(y) != len(self.top):
            raise ValueError(f"{len(y)} replicas after {len(self.top)}; give as many tokens each time")
        score = y @ self.theta
        if not bool(torch.isfinite(score).all()):
            raise ValueError("a token is not finite; give finite tokens")
        if self.top is None:
            self.top, self.denominator, self.numerator = score, torch.ones_like(score), y @ self.value.mT
            return
        top = torch.maximum(self.top, score)
        old, new = torch.exp(self.top - top), torch.exp(score - top)
        self.top, self.denominator = top, old * self.denominator + new
        self.numerator = old.unsqueeze(-1) * self.numerator + new.unsqueeze(-1) * (y @ self.value.mT)

    def read(self) -> Float[Tensor, "R p"]:
        """What the head reads from the past."""
        if self.top is None:
            raise ValueError("no token was seen; call update first")
        return self.numerator / self.denominator.unsqueeze(-1)


def tilted_mean_gaussian(mean: Tensor, covariance: Tensor, theta: Tensor) -> Tensor:
    """grad Lambda(theta) = m + Sigma theta, the limit of attention with identity values on a Gaussian component.

    >>> tilted_mean_gaussian(torch.tensor([1.0]), torch.tensor([[2.0]]), torch.tensor([0.5]))
    tensor([2.])
    """
    return mean + (covariance @ theta.unsqueeze(-1)).squeeze(dim=-1)


def tilted_mean_discrete(
    probabilities: Float[np.ndarray, "S"], scores: Float[np.ndarray, "S"], values: Float[np.ndarray, "S"]
) -> float:
    """sum_s p_s e^{score_s} v_s / sum_s p_s e^{score_s}: the same limit where a component has finitely many tokens.

    >>> float(tilted_mean_discrete(np.array([0.5, 0.5]), np.log([1.0, 3.0]), np.array([0.0, 1.0])))
    0.75
    """
    check_within("probabilities", probabilities, 0, 1)
    weight = probabilities * np.exp(scores - np.max(scores))
    return float(weight @ values / weight.sum())


def readout_covariance_gaussian(covariance: Tensor, theta: Tensor) -> Tensor:
    """lim t Cov(read-out after t tokens) = e^{theta.Sigma theta} (Sigma + Sigma theta theta^T Sigma), i.i.d. Gaussian.

    The delta method for a ratio of means: E[e^{2 theta.y} (y - L)(y - L)^T] / (E e^{theta.y})^2.

    >>> readout_covariance_gaussian(torch.eye(1), torch.zeros(1))
    tensor([[1.]])
    """
    pulled = covariance @ theta
    return torch.exp(theta @ pulled) * (covariance + torch.outer(pulled, pulled))


def self_fed_attention(
    ones: float, zeros: float, steps: int, replicas: int, *, generator: torch.Generator
) -> tuple[Float[Tensor, "N R"], Float[Tensor, "N R"]]:
    """A head of equal scores that reads the share of ones among a prompt and its own samples: Polya's urn.

    The prompt has ``ones`` tokens of value 1 and ``zeros`` of value 0 (weights, so fractions may be given). Returns
    what it wrote and what it read before each token. ValueError for ones or zeros <= 0. [prior: Eggenberger and Polya]

    >>> written, read = self_fed_attention(1, 3, 2, 1, generator=torch.Generator().manual_seed(0))
    >>> read[0].item(), (read[1] == (1 + written[0]) / 5).item()
    (0.25, True)
    """
    check_positive("ones", ones)
    check_positive("zeros", zeros)
    check_count("steps", steps)
    check_count("replicas", replicas)
    written, read = torch.empty(2, steps, replicas, dtype=torch.float64)
    uniform = torch.rand(steps, replicas, generator=generator, dtype=torch.float64)
    seen = torch.zeros(replicas, dtype=torch.float64)
    for n in range(steps):
        read[n] = (ones + seen) / (ones + zeros + n)
        written[n] = (uniform[n] < read[n]).double()
        seen += written[n]
    return written, read
