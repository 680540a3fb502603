"""Relatives of the layer, as plain recurrences over tokens or chunks, and the closed forms that the small models train.

symbol      name       meaning                                                    axes
q, k        q, k       queries, keys                                              (*B, n, d_k)
v           v          values                                                     (*B, n, d_v)
S           S          the state; S q is read                                     (*B, d_v, d_k)
alpha_t     decay      forgetting of each key feature, in [0, 1]                  (*B, n, d_k)
beta_t      beta       strength of a write, in [0, 1]                             (*B, n)

Linear attention, its gated kind and the delta rule write token t, then read it.
"""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad, silu

from derived.lab.checks import check_count, check_within

from .forms import chunk_grid


def _recurrence(q, k, v, write):
    S, outputs = v.new_zeros(*v.shape[:-2], v.shape[-1], k.shape[-1]), []
    for t in range(k.shape[-2]):
        S = write(S, k[..., t, :], v[..., t, :], t)
        outputs.append((S @ q[..., t, :].unsqueeze(-1)).squeeze(-1))
    return torch.stack(outputs, dim=-2)


def _outer(v: Tensor, k: Tensor) -> Tensor:
    return v.unsqueeze(-1) * k.unsqueeze(-2)


def linear_attention(
    q: Float[Tensor, "*B n k"], k: Float[Tensor, "*B n k"], v: Float[Tensor, "*B n d"]
) -> Float[Tensor, "*B n d"]:
    """Unnormalised causal linear attention, S <- S + v k^T, o = S q.

    >>> linear_attention(torch.ones(3, 1), torch.ones(3, 1), torch.ones(3, 1)).flatten()
    tensor([1., 2., 3.])
    """
    return _recurrence(q, k, v, lambda S, k, v, t: S + _outer(v, k))


def gated_linear_attention(
    q: Float[Tensor, "*B n k"], k: Float[Tensor, "*B n k"], v: Float[Tensor, "*B n d"], decay: Float[Tensor, "*B n k"]
) -> Float[Tensor, "*B n d"]:
    """Gated linear attention, S <- S Diag(alpha_t) + v k^T. ValueError unless 0 <= alpha <= 1. [Yang et al., 2023]

    >>> gated_linear_attention(*[torch.ones(3, 1)] * 3, torch.full((3, 1), 0.5)).flatten()
    tensor([1.0000, 1.5000, 1.7500])
    """
    check_within("decay", decay, 0, 1)
    return _recurrence(q, k, v, lambda S, k, v, t: S * decay[..., t, :].unsqueeze(-2) + _outer(v, k))


def delta_rule(
    q: Float[Tensor, "*B n k"], k: Float[Tensor, "*B n k"], v: Float[Tensor, "*B n d"], beta: Float[Tensor, "*B n"]
) -> Float[Tensor, "*B n d"]:
    """DeltaNet, S <- S + beta_t (v - S k) k^T: one gradient step on the squared loss. Source: Yang et al. (2024).

    >>> delta_rule(*[torch.ones(3, 1)] * 3, torch.full((3,), 0.5)).flatten()
    tensor([0.5000, 0.7500, 0.8750])
    """

    def write(S: Tensor, k: Tensor, v: Tensor, t: int) -> Tensor:
        return S + _outer(beta[..., t, None] * (v - (S @ k.unsqueeze(-1)).squeeze(-1)), k)

    return _recurrence(q, k, v, write)


def lact_swiglu(
    q: Float[Tensor, "*B n d"],
    k: Float[Tensor, "*B n d"],
    v: Float[Tensor, "*B n d"],
    weights: tuple[Tensor, Tensor, Tensor],
    rates: Float[Tensor, "*B n"],
    chunk: int,
) -> Float[Tensor, "*B n d"]:
    """LaCT by plain gradient descent: f(x) = W_2 (SiLU(W_1 x) * W_3 x) reads a chunk, then takes one step on
    -sum_t rate_t <f(k_t), v_t>, after which each row gets the norm back that it had. Source: Zhang et al. (2025).

    ``weights`` are W_1, W_3 (*#B, h, d) and W_2 (*#B, d, h).

    >>> w = torch.ones(1, 1)
    >>> lact_swiglu(*[torch.ones(2, 1)] * 3, (w, w, w), torch.ones(2), 1).flatten()
    tensor([0.7311, 0.7311])
    """
    W1, W3, W2 = weights
    norms = [each.norm(dim=-1, keepdim=True) for each in weights]
    outputs = []
    for one in chunk_grid(k.shape[-2], chunk):
        Q, K, V = (each[..., one.start : one.stop, :] for each in (q, k, v))
        outputs.append((silu(Q @ W1.mT) * (Q @ W3.mT)) @ W2.mT)
        gate, up = K @ W1.mT, K @ W3.mT
        V = V * rates[..., one.start : one.stop, None]
        back, slope = V @ W2, torch.sigmoid(gate)  # SiLU'(x) = s + x s (1 - s)
        steps = (
            (back * up * slope * (1 + gate * (1 - slope))).mT @ K,
            (back * silu(gate)).mT @ K,
            V.mT @ (silu(gate) * up),
        )
        moved = [W + step for W, step in zip((W1, W3, W2), steps, strict=True)]
        W1, W3, W2 = (W * (norm / W.norm(dim=-1, keepdim=True)) for W, norm in zip(moved, norms, strict=True))
    return torch.cat(outputs, dim=-2)


def gated_linear_attention_closed(q, k, v, log_decay: Float[Tensor, "*B n k"]) -> Float[Tensor, "*B n d"]:
    """``gated_linear_attention`` as one masked product: q_t^T k_s exp(b_t - b_s), b the running sum of ln alpha.

    For short texts: exp(-b) must not overflow.

    >>> gated_linear_attention_closed(*[torch.ones(3, 1)] * 3, torch.full((3, 1), 0.5).log()).flatten()
    tensor([1.0000, 1.5000, 1.7500])
    """
    b = log_decay.cumsum(dim=-2)
    return ((q * b.exp()) @ (k * (-b).exp()).mT).tril() @ v


def delta_rule_chunked(q, k, v, beta: Float[Tensor, "*B n"], chunk: int = 64) -> Float[Tensor, "*B n d"]:
    """``delta_rule`` by triangular systems, one a chunk and all at once, and one state from chunk to chunk.

    With S before a chunk and A = I + tril(beta K K^T, -1), the chunk writes U = A^-1 beta V - (A^-1 beta K) S^T, its
    outputs are Q S^T + tril(Q K^T) U, and S + U^T K goes on. Tokens that fill the last chunk have beta 0: they write
    nothing. ValueError for chunk < 1. Source: Yang et al. (2024).

    >>> delta_rule_chunked(*[torch.ones(3, 1)] * 3, torch.full((3,), 0.5), chunk=2).flatten()
    tensor([0.5000, 0.7500, 0.8750])
    """
    check_count("chunk", chunk)
    n, chunk = k.shape[-2], min(chunk, k.shape[-2])
    q, k, v, beta = (pad(x, (0, 0, 0, -n % chunk)).unflatten(-2, (-1, chunk)) for x in (q, k, v, beta.unsqueeze(-1)))
    system = torch.eye(chunk, dtype=k.dtype, device=k.device) + (beta * (k @ k.mT)).tril(-1)
    U, W = (torch.linalg.solve_triangular(system, beta * x, upper=False, unitriangular=True) for x in (v, k))
    S, outputs = v.new_zeros(*v.shape[:-3], v.shape[-1], k.shape[-1]), []
    parts = (each.unbind(dim=-3) for each in (q, k, U, W, (q @ k.mT).tril()))
    for Q, K, new, seen, scores in zip(*parts, strict=True):
        written = new - seen @ S.mT
        outputs.append(Q @ S.mT + scores @ written)
        S = S + written.mT @ K
    return torch.cat(outputs, dim=-2)[..., :n, :]
