"""What can be known of the next token: the exact Bayes predictor of a mixture of coins.

symbol   name      meaning                                      axes
y        tokens    tosses, 0 or 1                               (*batch, T)
p_k      biases    probability of a one, world by world         (K,)
w_k      weights   prior probabilities of the worlds            (K,)
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def both(one: Tensor) -> Float[Tensor, "*batch 2"]:
    """The distribution over 0 and 1, from the probability of 1."""
    return torch.stack([1 - one, one], dim=-1)


def bayes_predictive(
    tokens: Int[Tensor, "*batch T"], biases: tuple[float, ...], weights: tuple[float, ...]
) -> Float[Tensor, "*batch T 2"]:
    """P(Y_t | y_0..y_{t-1}) = sum_k posterior_k p_k, the least log loss that any predictor can have.

    posterior_k is in proportion to w_k times the likelihood of what was seen, in the log domain.

    >>> bayes_predictive(torch.tensor([1, 1]), (0.2, 0.8), (0.5, 0.5))[:, 1]
    tensor([0.5000, 0.6800], dtype=torch.float64)
    """
    worlds = [-1, *[1] * tokens.ndim]
    p, prior = (torch.tensor(each, dtype=torch.float64, device=tokens.device) for each in (biases, weights))
    each = torch.where(tokens == 1, p.view(worlds), 1 - p.view(worlds)).log()
    zero = torch.zeros_like(each[..., :1])
    before = torch.cat([zero, each[..., :-1].cumsum(dim=-1)], dim=-1)  # no difference: a likelihood may be 0
    posterior = torch.softmax(before + prior.log().view(worlds), dim=0)
    return both((posterior * p.view(worlds)).sum(dim=0))
