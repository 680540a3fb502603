"""Attention over a pyramid: score tables mixed over the levels, and three ways to attend with them.

symbol    name          meaning                                                   axes
q, k      queries, keys per level, X^(l) W_Q^(l), X^(l) W_K^(l)                   L of (*lead, T_l, d_k)
S^(l)     tables[l]     level-l scores q^(l) k^(l)T / sqrt(d_k)                   (*lead, T_l, T_l)
U_l       repeated      each row 2^l times: row i of U_l X is row floor(i / 2^l)
alpha     alpha         convex weights of the levels                              (*lead, L), broadcast
S         scores        sum_l alpha_l U_l S^(l) U_l^T                             (*lead, T, T)
A, Y      A, output     softmax(mask(S)), A V                                     (*lead, T, T), (*lead, T, d_v)

A level that has T rows already, as those of a pyramid without stride, is not repeated. All attention is causal. No
definition of the paper was visible: the construction fits its abstract. [ours]
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

from derived.lab.checks import check_count

TILE = 128  # queries that the coarse-table implementation treats at once; their scores stay in the cache


def _check_levels(queries: int, keys: int, alpha: Tensor | None = None) -> None:
    """ValueError unless queries, keys and weights are of equally many levels."""
    if queries != keys or (alpha is not None and alpha.shape[-1] != queries):
        weights = "" if alpha is None else f" and {alpha.shape[-1]} weights alpha"
        raise ValueError(f"{queries} levels of queries, {keys} of keys{weights}; give as many of each")


def score_tables(q: Sequence[Tensor], k: Sequence[Tensor]) -> list[Tensor]:
    """S^(l) = q^(l) k^(l)T / sqrt(d_k), L of (*lead, T_l, T_l). ValueError for unequal numbers of levels."""
    _check_levels(len(q), len(k))
    return [a @ b.mT / math.sqrt(a.shape[-1]) for a, b in zip(q, k, strict=True)]


def repeated(rows: Tensor, level: int, dim: int, num: int, skip: int = 0) -> Tensor:
    """Each row 2^l times along ``dim``, the first ``skip`` of all left out, then ``num``; rows that suffice as they are.

    >>> repeated(torch.tensor([1.0, 5.0]), 1, 0, 3)
    tensor([1., 1., 5.])
    """
    whole = level == 0 or (rows.shape[dim] == num and not skip)
    return rows if whole else rows.repeat_interleave(2**level, dim=dim).narrow(dim, skip, num)


def mix(tables: Sequence[Tensor], alpha: Float[Tensor, "*heads L"]) -> Float[Tensor, "*lead T T"]:
    """S = sum_l alpha_l U_l S^(l) U_l^T, materialised. ValueError unless there is one weight per table."""
    if alpha.shape[-1] != len(tables):
        raise ValueError(f"{alpha.shape[-1]} weights alpha for {len(tables)} score tables; give one weight per level")
    T, weights = tables[0].shape[-1], alpha.unsqueeze(-1).unsqueeze(-1)  # (*heads, L, 1, 1)
    spread = (repeated(repeated(table, l, -1, T), l, -2, T) for l, table in enumerate(tables))
    return sum(weights[..., l, :, :] * table for l, table in enumerate(spread))


def causal_mask(S: Float[Tensor, "*lead T T"]) -> Float[Tensor, "*lead T T"]:
    """S with -inf where the key comes after the query."""
    T = S.shape[-1]
    future = torch.ones(T, T, dtype=torch.bool, device=S.device).triu(1)
    return S.masked_fill(future, -math.inf)


def concatenated_features(
    q: Sequence[Tensor], k: Sequence[Tensor], alpha: Float[Tensor, "*heads L"], *, split: bool = False
) -> tuple[Tensor, Tensor]:
    """Queries and keys of one ordinary attention that has the mixed scores: q~_i . k~_j = S_ij.

    q~_i is (alpha_l / sqrt(d_k)) q^(l)_{floor(i / 2^l)}, side by side over the levels, and k~_j likewise without the
    factor; with ``split`` the factor's root stands on both sides, as in the theorem, but has no derivative at alpha_l =
    0. Returns two tensors (*lead, T, L d_k). ValueError where q, k and alpha have different numbers of levels. [ours]

    >>> q = [torch.linspace(-1, 1, 24).view(8, 3), torch.linspace(-1, 2, 12).view(4, 3)]
    >>> alpha = torch.tensor([0.25, 0.75])
    >>> left, right = concatenated_features(q, q, alpha)
    >>> left.shape, torch.allclose(left @ right.mT, mix(score_tables(q, q), alpha))
    (torch.Size([8, 6]), True)
    """
    _check_levels(len(q), len(k), alpha)
    T, queries, keys = q[0].shape[-2], [], []
    for l, (a, b) in enumerate(zip(q, k, strict=True)):
        # block l: c (U_l q^(l))_i and c' (U_l k^(l))_j with c c' = alpha_l / sqrt(d_k)
        factor = (alpha[..., l] / math.sqrt(a.shape[-1])).unsqueeze(-1).unsqueeze(-1)
        left, right = (factor.sqrt(), factor.sqrt()) if split else (factor, 1.0)
        queries.append(repeated(left * a, l, -2, T))
        keys.append(repeated(right * b, l, -2, T))
    return torch.cat(queries, dim=-1), torch.cat(keys, dim=-1)


# --- three implementations of one layer ------------------------------------------------------------------------------


def attend_reference(
    q: Sequence[Tensor], k: Sequence[Tensor], v: Float[Tensor, "*lead T d_v"], alpha: Float[Tensor, "*heads L"]
) -> Float[Tensor, "*lead T d_v"]:
    """softmax(mask(S)) V with every table materialised: the definition. Memory O(T^2 L). [ours]"""
    return torch.softmax(causal_mask(mix(score_tables(q, k), alpha)), dim=-1) @ v


def attend_plain(q: Tensor, k: Tensor, v: Tensor, *, scale: float) -> Float[Tensor, "*lead T d_v"]:
    """softmax(mask(scale q k^T)) v, by torch's fused kernel or, for unequal widths on a CPU, tile by tile.

    ValueError where there is no token. On a CPU torch's kernel answers zeros where a score is NaN: there ValueError for
    queries or keys that are not finite. [prior]
    """
    check_count("T", v.shape[-2], why="attention over no token has no weights")
    if q.shape[-1] != v.shape[-1] and not q.is_cuda:
        return _attend_in_tiles([scale * q], [k], v, TILE)  # costs less than padding
    if not q.is_cuda and not all(bool(torch.isfinite(a).all()) for a in (q, k)):
        raise ValueError("queries or keys are not finite; torch's kernel would answer zeros, give finite ones")
    width = v.shape[-1]
    lead = torch.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    v = pad(v, (0, max(0, q.shape[-1] - width)))  # the kernel asks for equal widths
    q, k = (pad(a, (0, v.shape[-1] - a.shape[-1])) for a in (q, k))

    def four(a: Tensor) -> Tensor:
        return a.expand(*lead, *a.shape[-2:]).reshape(-1, lead[-1] if lead else 1, *a.shape[-2:])

    output = scaled_dot_product_attention(four(q), four(k), four(v), is_causal=True, scale=scale)
    return output.reshape(*lead, *v.shape[-2:])[..., :width]


def attend_fused(
    q: Sequence[Tensor], k: Sequence[Tensor], v: Float[Tensor, "*lead T d_v"], alpha: Float[Tensor, "*heads L"]
) -> Float[Tensor, "*lead T d_v"]:
    """The same as one ordinary attention of width L d_k on concatenated features; memory O(T L d_k).

    On a GPU that is torch's fused kernel. On a CPU, where its padding would cost more, the wide scores are made tile by
    tile, so L T^2 d_k products and no (T, T) table either way. [ours]
    """
    return attend_plain(*concatenated_features(q, k, alpha), v, scale=1.0)


def attend_tables(
    q: Sequence[Tensor],
    k: Sequence[Tensor],
    v: Float[Tensor, "*lead T d_v"],
    alpha: Float[Tensor, "*heads L"],
    *,
    tile: int = TILE,
) -> Float[Tensor, "*lead T d_v"]:
    """The same with the true count of products, sum_l T_l^2 d_k: coarse scores once, then spread over a tile.

    No (T, T) table exists: a tile holds tile x T scores, and where gradients are asked for it is computed again on the
    way back. The keys after a tile are left out. Level l has ceil(T / 2^l) rows, else ValueError. [ours]
    """
    check_count("tile", tile)
    check_count("T", v.shape[-2], why="attention over no token has no weights")
    _check_levels(len(q), len(k), alpha)
    rows = [a.shape[-2] for a in q]
    if rows != [-(-v.shape[-2] // 2**l) for l in range(len(q))]:
        raise ValueError(f"levels of {rows} rows for {v.shape[-2]} tokens; tables are for ceil(T / 2^l) rows, stride 2")
    scaled = [(alpha[..., l] / math.sqrt(a.shape[-1])).unsqueeze(-1).unsqueeze(-1) * a for l, a in enumerate(q)]
    return _attend_in_tiles(scaled, k, v, tile)


def _attend_in_tiles(q: Sequence[Tensor], k: Sequence[Tensor], v: Tensor, tile: int) -> Tensor:
    """All rows of the output; q carries alpha_l / sqrt(d_k)."""
    T, outputs = v.shape[-2], []
    again = tile < T and torch.is_grad_enabled() and any(a.requires_grad for a in (*q, *k, v))
    for start in range(0, T, tile):
        arguments = (q, k, v, start, min(start + tile, T))
        if again:
            outputs.append(checkpoint(_attend_tile, *arguments, use_reentrant=False, preserve_rng_state=False))
        else:
            outputs.append(_attend_tile(*arguments))
    return torch.cat(outputs, dim=-2)


def _attend_tile(q: Sequence[Tensor], k: Sequence[Tensor], v: Tensor, start: int, stop: int) -> Tensor:
    """Rows start .. stop - 1 of the output; q carries alpha_l / sqrt(d_k)."""
    S = q[0][..., start:stop, :] @ k[0][..., :stop, :].mT  # level 0 of the tile, (stop - start, stop)
    for l in range(1, len(q)):  # += alpha_l U_l S^(l) U_l^T, from the few coarse rows that the tile meets
        first, past = start >> l, ((stop - 1) >> l) + 1
        wide = repeated(q[l][..., first:past, :] @ k[l][..., :past, :].mT, l, -1, stop)
        S += repeated(wide, l, -2, stop - start, start - (first << l))
    future = torch.ones(stop - start, stop - start, dtype=torch.bool, device=v.device).triu(1)
    S[..., start:].masked_fill_(future, -math.inf)
    return torch.softmax(S, dim=-1) @ v[..., :stop, :]


IMPLEMENTATIONS = {"reference": attend_reference, "fused": attend_fused, "tables": attend_tables}
