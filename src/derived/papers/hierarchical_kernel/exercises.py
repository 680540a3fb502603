"""The exercises of the chapter: what is right, where it is tried, and what often goes wrong.

T, d, L     length, width, levels
x           tokens                                            (T, d)
W_Q, W_K    projections of each level                         (L, d, d_k)
alpha       weights of the levels                             (L,)
"""

from collections.abc import Callable

import numpy as np
import torch

from derived.lab.exercises import FLOAT32, ask, call, checker, close, holds, ranges
from derived.lab.rng import stream

from .model import attention, layers
from .model.pyramid import pyramid

# Derive -------------------------------------------------------------------------------------------------------------


def _second_output(t):
    x = torch.tensor([1.0, 0.0, 1.0, t], dtype=torch.float64).view(1, 4, 1)
    rows = pyramid(x, 2, "block")
    return attention.attend_reference(rows, rows, x, torch.tensor([[0.0, 1.0]], dtype=torch.float64))[0, 2, 0]


def _attends(scores, values=(1.0, 0.0, 1.0)):
    weights = np.exp(scores)
    return weights @ np.array(values) / weights.sum()


leak = close(
    _second_output,
    ranges(t=(-3.0, 3.0)),
    mistakes={
        "a causal pyramid would not know t": lambda t: _attends([0.25, 0.25, 0.25]),
        "a key is a mean of its block too": lambda t: _attends([(1 + t) / 2, 0, (1 + t) / 2]),
    },
)


def _two_vectors(generator: torch.Generator) -> dict:
    q, k = (2 * torch.randn(2, 2, generator=generator, dtype=torch.float64)).round(decimals=1).numpy()
    return {"q": q, "k": k}


def _both(q, k):
    return (np.dot(q, k) + np.array([-1, 1]) * np.linalg.norm(q) * np.linalg.norm(k)) / 2


inertia = close(
    lambda q, k: np.linalg.eigvalsh((np.outer(q, k) + np.outer(k, q)) / 2),
    _two_vectors,
    digits=3,
    mistakes={
        "that is for q k^T plus k q^T, without the half": lambda q, k: 2 * _both(q, k),
        "those are the eigenvalues of q k^T": lambda q, k: np.sort([0.0, np.dot(q, k)]),
    },
)


# Implement: the layer's attention -----------------------------------------------------------------------------------


def _layer(half: int, L: int, layer: int) -> dict:
    """Tokens, projections and weights of levels; an even number of tokens."""
    draw, d = stream(layer, "a layer"), 4
    size = {"generator": draw, "dtype": torch.float64}
    x, W_Q, W_K = torch.randn(2 * half, d, **size), torch.randn(L, d, d, **size), torch.randn(L, d, d, **size)
    alpha = torch.randn(L, **size).softmax(dim=-1)
    return {"x": x.numpy(), "W_Q": W_Q.numpy() * 0.7, "W_K": W_K.numpy() * 0.7, "alpha": alpha.numpy()}


def _attend(answer: Callable, given: dict) -> np.ndarray:
    T = len(given["x"])
    return ask(answer, (T, T), **given)


def _looks_back(answer, half, L, layer):
    """A row is a distribution on the tokens up to its own."""
    A = _attend(answer, _layer(half, L, layer))
    if not np.abs(np.triu(A, 1)).max() <= 1e-12:
        return "a row attends to a later token"
    gap = np.abs(A.sum(axis=1) - 1).max()
    return None if gap <= FLOAT32 else f"a row sums to {A.sum(axis=1)[np.abs(A.sum(axis=1) - 1).argmax()]:.5g}"


def _does_not_know_the_future(answer, half, L, layer):
    """`hkt-causal`: what comes after token i moves no row up to i."""
    given = _layer(half, L, layer)
    A = _attend(answer, given)
    for i in range(len(A) - 1):
        later = {**given, "x": np.r_[given["x"][: i + 1], -given["x"][i + 1 :]]}
        moved = np.abs((_attend(answer, later) - A)[: i + 1]).max()
        if not moved <= FLOAT32:
            return f"tokens after {i} move the attention of token {i} or one before it, by {moved:.2g}"
    return None


def _follows_its_scores(answer, half, L, layer):
    """`hkt-layer`: ln A_ij / A_ii is S_ij - S_ii, entry by entry."""
    given = _layer(half, L, layer)
    A, x, T = _attend(answer, given), given["x"], 2 * half
    row = lambda j, l: x[max(0, (j - 1) * 2**l + 1) : j * 2**l + 1].sum(axis=0) / 2**l  # noqa: E731
    for i in range(T):
        S = np.zeros(i + 1)
        for l in range(L):
            q = given["W_Q"][l].T @ row(i >> l, l)
            keys = [given["W_K"][l].T @ row(j >> l, l) for j in range(i + 1)]
            S += given["alpha"][l] * np.array([q @ k for k in keys]) / len(q) ** 0.5
        odds, right = np.log(A[i, : i + 1]) - np.log(A[i, i]), S - S[i]
        j = np.abs(odds - right).argmax()
        if not np.abs(odds - right).max() <= FLOAT32 * max(1, np.abs(S).max()):
            return f"ln A_ij/A_ii is {odds[j]:.4g} at i = {i}, j = {j}, which is not the difference of the mixed scores"
    return None


def _changed(scores: layers.HierarchicalScores, x: torch.Tensor, name: str) -> torch.Tensor:
    """The attention (R, heads, T, T) of the layer with one line of it changed; without a name the layer's own."""
    q, k, alpha = scores.features(x)
    one = torch.eye(x.shape[-2], dtype=x.dtype)  # with values e_1, ..., e_T the output is A itself
    if name == "no mask":
        return torch.softmax(attention.mix(attention.score_tables(q, k), alpha), dim=-1)
    if name == "no scaling":
        q = [a * a.shape[-1] ** 0.5 for a in q]
    elif name == "level 0 only":
        q, k, alpha = q[:1], k[:1], torch.ones_like(alpha[..., :1])
    return attention.attend_reference(q, k, one, alpha)


def _mutated(name: str = "", pooling: str = "average") -> Callable:
    """A change of the layer, or another pooling, on the weights of a point."""

    def attend(x, W_Q, W_K, alpha):
        scores = layers.HierarchicalScores(x.shape[1], levels=len(alpha), pooling=pooling, dtype=torch.float64)
        with torch.no_grad():
            for mine, given in ((scores.W_Q, W_Q), (scores.W_K, W_K)):
                for l, W in enumerate(given):
                    mine[l].copy_(torch.as_tensor(W).T)
            scores.a.copy_(torch.as_tensor(alpha).log())
            return _changed(scores, torch.as_tensor(x)[None], name)[0, 0].numpy()

    return attend


layer_attention = holds(
    (_looks_back, _does_not_know_the_future, _follows_its_scores),
    ranges(half=(2, 5), L=(2, 3), layer=(1, 999)),
    mistakes={"no mask": _mutated("no mask"), "means of blocks": _mutated(pooling="block")},
)

# Implement: a detector of leaks -------------------------------------------------------------------------------------


def _of_scores(seed: int, name: str = "", pooling: str = "average") -> Callable:
    """The layer of the chapter with one change, as a function of tokens (T, 4)."""
    scores = layers.HierarchicalScores(4, levels=2, pooling=pooling, seed=seed, dtype=torch.float64)

    def layer(x):
        return _changed(scores, x[None], name)[0, 0] @ x

    return layer


def _finds_what_leaks(answer, half, seed):
    """`hkt-leak`, and leaks that are small or in one row alone."""
    T = 2 * half
    leaking = {"no mask": _of_scores(seed, "no mask"), "means of blocks": _of_scores(seed, pooling="block")}
    leaking["a millionth of the next token"] = lambda x: x.cumsum(dim=0) + 1e-6 * torch.cat([x[1:], x[-1:]])
    leaking["the row before the last reads the last token"] = lambda x: torch.cat([x[:-2], x[-1:], x[-1:]])
    leaking["the product of two later tokens"] = lambda x: x + torch.cat([x[-1:] * x[-2:-1], 0 * x[1:]])
    missed = [name for name, layer in leaking.items() if not call(answer, layer=layer, T=T, d=4)]
    return f"a leak is not seen: {missed[0]}" if missed else None


def _accuses_no_causal_layer(answer, half, seed):
    """`hkt-causal`, and changes of the layer that lose something else."""
    causal = {name or "the layer itself": _of_scores(seed, name) for name in ("", "no scaling", "level 0 only")}
    causal["running sums, times a thousand"] = lambda x: 1000 * x.cumsum(dim=0)
    accused = [name for name, layer in causal.items() if call(answer, layer=layer, T=2 * half, d=4)]
    return f"a causal layer is accused: {accused[0]}" if accused else None


def _moving(rows: Callable, tokens: Callable) -> Callable:
    """Changes some tokens and looks at some rows."""

    def leaks(layer, T, d):
        x = torch.randn(T, d, generator=stream(0, "a try"), dtype=torch.float64)
        other = x.clone()
        other[tokens(T)] += 1.0
        return bool((layer(other) - layer(x))[rows(T)].abs().max() > 1e-9)

    return leaks


leaks = holds(
    (_finds_what_leaks, _accuses_no_causal_layer),
    ranges(half=(3, 6), seed=(1, 999)),
    mistakes={
        "the first row alone": _moving(lambda T: slice(0, 1), lambda T: slice(1, T)),
        "the last token alone": _moving(lambda T: slice(0, T - 2), lambda T: slice(T - 1, T)),
    },
)

EXERCISES = {
    "hkt-ex-leak": leak,
    "hkt-ex-inertia": inertia,
    "hkt-ex-attention": layer_attention,
    "hkt-ex-detector": leaks,
}
check = checker(EXERCISES)
