"""One layer of In-Place Test-Time Training: keys, values, and four equal forms of a memory that writes while it reads.

symbol    name              meaning                                                            axes
n, C, T   n, chunk, T       tokens, tokens per chunk, number of chunks                         scalar
H         x                 input of the gated MLP                                             (*B, n, d)
Z         keys              phi(H W_gate^T) * (H W_up^T), phi = SiLU                           (*B, n, h)
X_0       source            what the target is made of: embeddings, or H itself [repo]         (*B, n, d)
w, P      kernel, projection  depthwise taps, centred, and a matrix from the right             (d, K), (d, d)
V         values            Conv_w(X_0) P, the convolution inside each chunk                   (*B, n, d)
W_i       w_down            the state with which chunk i is read; W_0 is the trained matrix    (*B, d, h)
eta       lr                inner step                                                         scalar

Chunk i is read with W_i, then written: O_i = Z_i W_i^T, W_(i+1) = W_i + eta V_i^T Z_i. A chunk that is not full is
never written. Weights may have the batch axes of the tokens in front (1 where they are shared).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import pad, silu

from derived.lab.checks import check_choice, check_count, check_one_dtype, check_positive


class Chunk(NamedTuple):
    """Tokens start <= t < stop; the first chunk of a document is read with W_0."""

    start: int
    stop: int
    first: bool


def documents(n: int, starts: Sequence[int]) -> list[tuple[int, int]]:
    """The spans of the documents that begin at ``starts``; ValueError unless 0 = starts[0] < starts[1] < … < n.

    >>> documents(9, (0, 5))
    [(0, 5), (5, 9)]
    """
    starts = list(starts)
    for i, each in enumerate(starts):
        check_count(f"starts[{i}]", each, least=0)
    if not starts or starts[0] != 0 or sorted(set(starts)) != starts or starts[-1] >= max(n, 1):
        raise ValueError(f"starts = {starts} for {n} tokens; give the first tokens of the documents, rising from 0")
    return list(zip(starts, [*starts[1:], n], strict=True))


def chunk_grid(n: int, chunk: int, starts: Sequence[int] = (0,)) -> list[Chunk]:
    """The chunks of n tokens; the grid begins again where a document does.

    >>> chunk_grid(7, 3, starts=(0, 5))
    [Chunk(start=0, stop=3, first=True), Chunk(start=3, stop=5, first=False), Chunk(start=5, stop=7, first=True)]
    """
    check_count("chunk", chunk)
    return [
        Chunk(start, min(start + chunk, end), start == begin)
        for begin, end in documents(n, starts)
        for start in range(begin, end, chunk)
    ]


def read_mask(
    n: int, chunk: int, starts: Sequence[int] = (0,), *, device: torch.device | str = "cpu"
) -> Bool[Tensor, "n n"]:
    """Who reads whom: entry (n, t) where token n sees the write of token t, an earlier chunk of its document.

    >>> read_mask(4, 2).int()
    tensor([[0, 0, 0, 0],
            [0, 0, 0, 0],
            [1, 1, 0, 0],
            [1, 1, 0, 0]], dtype=torch.int32)
    """
    grid = chunk_grid(n, chunk, starts)
    sizes = torch.tensor([each.stop - each.start for each in grid], dtype=torch.long, device=device)
    index = torch.arange(len(grid), device=device).repeat_interleave(sizes)
    document = torch.tensor([each.first for each in grid], dtype=torch.long, device=device).cumsum(dim=0)[index]
    return (index < index.unsqueeze(-1)) & (document == document.unsqueeze(-1))


def gated_mlp_keys(
    x: Float[Tensor, "*B n d"], w_gate: Float[Tensor, "*#B h d"], w_up: Float[Tensor, "*#B h d"]
) -> Float[Tensor, "*B n h"]:
    """The keys of the memory: the inner activations Z = SiLU(x W_gate^T) * (x W_up^T) of a gated MLP.

    >>> gated_mlp_keys(torch.ones(1, 3, 2), torch.zeros(4, 2), torch.ones(4, 2)).abs().max()
    tensor(0.)
    """
    return silu(x @ w_gate.mT) * (x @ w_up.mT)


def depthwise_target(
    source: Float[Tensor, "*B n d"],
    kernel: Float[Tensor, "*#B d K"],
    projection: Float[Tensor, "*#B d d"] | None = None,
    *,
    chunk: int,
    starts: Sequence[int] = (0,),
    cross: bool = False,
) -> Float[Tensor, "*B n d"]:
    """The values v_t = (sum_k w_k * x_{t+k}) P, taps k from -(K-1)/2 to (K-1)/2, zero beyond the edges of a chunk.

    ``cross`` lets the taps read over the edges of the chunks (not of the documents), which leaks where K > 3.
    ValueError for an even K. [repo: Conv1d(kernel 5, padding 2) on each chunk]

    >>> x = torch.arange(1.0, 5.0).view(1, 4, 1)
    >>> depthwise_target(x, torch.tensor([[0.0, 0.0, 1.0]]), chunk=2).flatten().tolist()
    [2.0, 0.0, 4.0, 0.0]
    """
    check_count("chunk", chunk)
    K = kernel.shape[-1]
    if K % 2 == 0:
        raise ValueError(f"kernel {tuple(kernel.shape)} has {K} taps; give an odd number, the middle one for the token")
    check_one_dtype(source=source, kernel=kernel, **({} if projection is None else {"projection": projection}))
    spans = documents(source.shape[-2], starts)
    parts = [_taps(source[..., begin:end, :], kernel, max(end - begin, 1) if cross else chunk) for begin, end in spans]
    values = parts[0] if len(parts) == 1 else torch.cat(parts, dim=-2)
    return values if projection is None else values @ projection


def _taps(x: Float[Tensor, "*B n d"], kernel: Float[Tensor, "*#B d K"], chunk: int) -> Float[Tensor, "*B n d"]:
    full = x.shape[-2] // chunk * chunk
    parts = [_inside(x[..., :full, :].unflatten(-2, (-1, chunk)), kernel).flatten(-3, -2)] if full else []
    if full < x.shape[-2] or not parts:
        parts.append(_inside(x[..., full:, :].unsqueeze(-3), kernel).squeeze(-3))
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-2)


def _inside(x: Float[Tensor, "*B T C d"], kernel: Float[Tensor, "*#B d K"]) -> Float[Tensor, "*B T C d"]:
    """sum_k w_k * x_{t+k} inside chunks, added up in place, so that no shifted copy of the text is kept."""
    taps, size, K = kernel.mT.unsqueeze(-2).unsqueeze(-2), x.shape[-2], kernel.shape[-1]  # taps (*B, K, 1, 1, d)
    outputs = x * taps[..., K // 2, :, :, :]
    for k, shift in ((k, k - K // 2) for k in range(K)):
        if 0 < abs(shift) < size:
            to, of, num = max(-shift, 0), max(shift, 0), size - abs(shift)
            outputs.narrow(-2, to, num).addcmul_(taps[..., k, :, :, :], x.narrow(-2, of, num))
    return outputs


def in_place_ttt(
    keys: Float[Tensor, "*B n h"],
    values: Float[Tensor, "*B n d"],
    w_down: Float[Tensor, "*#B d h"],
    lr: float | Float[Tensor, ""],
    chunk: int,
    *,
    impl: str = "lean",
    starts: Sequence[int] = (0,),
    tau: float | None = None,
    return_state: bool = False,
    memory_off: bool = False,
) -> Any:
    """Outputs O (*B, n, d) of a down-projection that is written chunk by chunk, from W_0 = ``w_down``.

    ``impl``: "loop" (the definition), "scan" (all increments, one exclusive prefix sum: T d h numbers), "attention"
    (W_0 z + eta sum of <z_t, z_n> v_t over earlier chunks: n^2 numbers) or "lean" (the loop with one running state and
    a backward pass written by hand: d h numbers). All are equal up to rounding. ``starts`` are the first tokens of
    packed documents. A write eta V_i^T Z_i of Frobenius norm above ``tau`` is scaled down to it. With ``return_state``
    also the state (*B, d, h) after the last full chunk of the last document, from which reading goes on. ``memory_off``
    reads every chunk with W_0: all is written as before, and nothing of it is read. "lean" has first derivatives only
    and raises RuntimeError on a second one; "scan" has all. ValueError for dtypes that do not fit. Source: equation 1
    and Algorithm 1; the clip, with Table 1.

    >>> Z = V = torch.eye(2).repeat(2, 1)  # four tokens, chunks of two
    >>> in_place_ttt(Z, V, torch.zeros(2, 2), 1.0, 2)
    tensor([[0., 0.],
            [0., 0.],
            [1., 0.],
            [0., 1.]])
    """
    check_choice("impl", impl, FORMS)
    check_count("chunk", chunk)
    check_one_dtype(keys=keys, values=values, w_down=w_down)
    if isinstance(lr, Tensor):  # the writes are linear in the values
        values, lr = lr.to(values.dtype) * values, 1.0
    form, parts, state = FORMS[impl], [], w_down
    for begin, end in documents(keys.shape[-2], starts):
        last = return_state and end == keys.shape[-2]
        Z, V = keys[..., begin:end, :], values[..., begin:end, :]
        V = V if tau is None else clip_writes(Z, V, lr, chunk, tau)
        out, state = form(Z, V, w_down, lr, chunk, last)
        parts.append(Z @ w_down.mT if memory_off else out)
    outputs = parts[0] if len(parts) == 1 else torch.cat(parts, dim=-2)
    return (outputs, state) if return_state else outputs


def written(n: int, chunk: int, last: bool) -> int:
    """How many chunks of a document are written: the full ones, and the very last only where somebody reads on."""
    return n // chunk - (n % chunk == 0 and n > 0 and not last)


def increments(keys: Float[Tensor, "*B n h"], values: Float[Tensor, "*B n d"], chunk: int) -> Float[Tensor, "*B T d h"]:
    """V_i^T Z_i of each full chunk: what eta multiplies.

    >>> increments(torch.ones(5, 1), torch.ones(5, 1), 2).flatten()
    tensor([2., 2.])
    """
    full = keys.shape[-2] // chunk * chunk
    Z, V = (each[..., :full, :].unflatten(-2, (-1, chunk)) for each in (keys, values))
    return V.mT @ Z


def clip_writes(
    keys: Float[Tensor, "*B n h"], values: Float[Tensor, "*B n d"], lr: float, chunk: int, tau: float
) -> Float[Tensor, "*B n d"]:
    """Values that write as they did, but no full chunk a matrix eta V_i^T Z_i of a Frobenius norm above tau. [paper]

    The norm is that of two products of a chunk's tokens, sum of Z Z^T * V V^T, so that no write is made for it.

    >>> clip_writes(torch.ones(4, 1), torch.tensor([[3.0], [5.0], [0.1], [0.3]]), 1.0, 2, 4.0).flatten()
    tensor([1.5000, 2.5000, 0.1000, 0.3000])
    """
    check_positive("tau", tau)
    full = keys.shape[-2] // chunk * chunk
    Z, V = (each[..., :full, :].unflatten(-2, (-1, chunk)) for each in (keys, values))
    squares = ((Z @ Z.mT) * (V @ V.mT)).sum(dim=(-2, -1), keepdim=True) * (lr / tau) ** 2
    return torch.cat([(V * squares.clamp(min=1).rsqrt()).flatten(-3, -2), values[..., full:, :]], dim=-2)


def _loop(keys, values, w_down, lr, chunk, last):
    W, outputs = w_down, []
    for i, one in enumerate(chunk_grid(keys.shape[-2], chunk)):
        Z, V = (each[..., one.start : one.stop, :] for each in (keys, values))
        outputs.append(Z @ W.mT)  # apply …
        if i < written(keys.shape[-2], chunk, last):
            W = W + lr * V.mT @ Z  # … then update
    return torch.cat([values[..., :0, :], *outputs], dim=-2), W


def _scan(keys, values, w_down, lr, chunk, last):
    n, batch = keys.shape[-2], keys.shape[:-2]
    num = written(n, chunk, last)
    deltas = increments(keys[..., : num * chunk, :], values[..., : num * chunk, :], chunk)
    start = w_down.expand(*batch, *w_down.shape[-2:]).unsqueeze(-3)
    states = torch.cat([start, lr * deltas], dim=-3).cumsum(dim=-3)  # W_0 + the increments of all chunks before
    Z = pad(keys, (0, 0, 0, -n % chunk)).unflatten(-2, (-1, chunk))
    return (Z @ states[..., : Z.shape[-3], :, :].mT).flatten(-3, -2)[..., :n, :], states[..., -1, :, :]


def _attention(keys, values, w_down, lr, chunk, last):
    n = keys.shape[-2]
    scores = (keys @ keys.mT) * read_mask(n, chunk, device=keys.device).to(keys)
    full = written(n, chunk, last) * chunk
    state = w_down + lr * values[..., :full, :].mT @ keys[..., :full, :] if last else w_down
    return keys @ w_down.mT + lr * scores @ values, state


class _Lean(torch.autograd.Function):
    """The loop with one running state (B, d, h) over tokens (B, n, .); adjoint A_i = sum over j > i of G_j^T Z_j.

    Backward walks twice: forwards for G_i W_i with the states computed again (bit for bit as before), then backwards
    for dV_i = eta Z_i A_i^T and dZ_i += eta V_i A_i.
    """

    @staticmethod
    def forward(ctx, keys, values, w_down, lr, chunk, num):
        W, outputs = w_down.clone(), torch.empty_like(values)
        for i, start in enumerate(range(0, keys.shape[1], chunk)):
            Z, V = keys[:, start : start + chunk], values[:, start : start + chunk]
            outputs[:, start : start + chunk] = torch.bmm(Z, W.mT)
            if i < num:
                W.baddbmm_(V.mT, Z, alpha=lr)
        ctx.save_for_backward(keys, values, w_down)
        ctx.lr, ctx.chunk, ctx.num = lr, chunk, num
        return outputs, W

    @staticmethod
    def backward(ctx, grad, grad_state):
        if torch.is_grad_enabled():  # of create_graph=True: what follows would not be differentiated
            raise RuntimeError('impl="lean" has no second derivative: call in_place_ttt with impl="scan", which has')
        keys, values, w_down = ctx.saved_tensors
        lr, chunk, num = ctx.lr, ctx.chunk, ctx.num
        grad_keys, grad_values = torch.empty_like(keys), torch.zeros_like(values)
        W, starts = w_down.clone(), range(0, keys.shape[1], chunk)
        for i, start in enumerate(starts):
            span = slice(start, start + chunk)
            grad_keys[:, span] = torch.bmm(grad[:, span], W)
            if i < num:
                W.baddbmm_(values[:, span].mT, keys[:, span], alpha=lr)
        A = grad_state.clone()
        for i, start in reversed(list(enumerate(starts))):
            span = slice(start, start + chunk)
            if i < num:
                grad_values[:, span] = lr * torch.bmm(keys[:, span], A.mT)
                grad_keys[:, span].baddbmm_(values[:, span], A, alpha=lr)
            A.baddbmm_(grad[:, span].mT, keys[:, span])
        return grad_keys, grad_values, A, None, None, None


def _lean(keys, values, w_down, lr, chunk, last):
    batch, (n, h), d = keys.shape[:-2], keys.shape[-2:], values.shape[-1]
    B = batch.numel()  # a text may have no token, so no size is left to be inferred
    state = w_down.expand(*batch, d, h).reshape(B, d, h)
    tokens = (keys.reshape(B, n, h), values.reshape(B, n, d))
    outputs, W = _Lean.apply(*tokens, state, lr, chunk, written(n, chunk, last))
    return outputs.view(*batch, n, d), W.view(*batch, d, h)


FORMS = {"loop": _loop, "scan": _scan, "attention": _attention, "lean": _lean}
