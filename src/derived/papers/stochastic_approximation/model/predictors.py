"""What can be known of the next token: the exact Bayes predictor of a mixture of Markov chains.

symbol   name      meaning                                                                   axes
y        tokens    tokens 0..S-1                                                             (*batch, T)
P_k      chains    transition matrices of the components; equal rows make i.i.d. tokens      (K, S, S)
w        weights   prior probabilities of the components                                     (K,)
"""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from .chains import invariant_laws


def component_predictives(tokens: Int[Tensor, "*batch T"], chains: np.ndarray) -> Float[Tensor, "K *batch T S"]:
    """P_k(Y_t = s | y_{t-1}) for every component; the first token by the component's invariant law."""
    matrices = torch.as_tensor(chains, device=tokens.device)
    first = torch.as_tensor(np.stack([invariant_laws(P)[0] for P in chains]), device=tokens.device)
    later = matrices[:, tokens[..., :-1]]  # (K, *batch, T - 1, S)
    shape = (*later.shape[:-2], 1, later.shape[-1])
    return torch.cat([first.view(len(chains), *[1] * tokens.ndim, -1).expand(shape), later], dim=-2)


def bayes_predictive(
    tokens: Int[Tensor, "*batch T"], chains: np.ndarray, weights: tuple[float, ...]
) -> Float[Tensor, "*batch T S"]:
    """P(Y_t = s | y_0..y_{t-1}) = sum_k posterior_k P_k(s | y_{t-1}), the least log loss that any predictor can have.

    posterior_k is in proportion to w_k times the likelihood of what was seen, in the log domain.

    >>> coins = np.array([[[0.8, 0.2]] * 2, [[0.2, 0.8]] * 2])
    >>> bayes_predictive(torch.tensor([1, 1]), coins, (0.5, 0.5))[:, 1]
    tensor([0.5000, 0.6800], dtype=torch.float64)
    """
    each = component_predictives(tokens, chains)
    seen = each.gather(-1, tokens.expand(len(chains), *tokens.shape).unsqueeze(-1)).squeeze(dim=-1).log()
    zero = torch.zeros_like(seen[..., :1])
    before = torch.cat([zero, seen[..., :-1].cumsum(dim=-1)], dim=-1)  # no difference: a likelihood may be 0
    prior = torch.tensor(weights, dtype=each.dtype, device=tokens.device).log()
    posterior = torch.softmax(before + prior.view(-1, *[1] * tokens.ndim), dim=0)
    return (posterior.unsqueeze(-1) * each).sum(dim=0)
