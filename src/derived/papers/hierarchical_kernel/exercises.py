"""The exercises of the chapter: what is right, where it is tried, and what often goes wrong.

T, d, L     length, width, levels
r           tokens of a row over tokens of the rows below it; 2 in the chapter
x           tokens                                            (T, d)
W_Q, W_K    projections of each level                         (L, d, d_k)
alpha       weights of the levels                             (L,)
n, m        arguments of a list, and of the lists inside it
"""

from collections.abc import Callable

import numpy as np
import torch

from derived.lab.exercises import FLOAT32, Wrong, ask, call, checker, close, holds, ranges
from derived.lab.rng import stream

from .data import shallow
from .model import attention, layers, mutations, theory
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


def _lengths(q, k):
    return np.linalg.norm(q) * np.linalg.norm(k)


def _both(q, k, size):
    return (np.dot(q, k) + np.array([-1, 1]) * size) / 2


inertia = close(
    lambda q, k: np.linalg.eigvalsh((np.outer(q, k) + np.outer(k, q)) / 2),
    _two_vectors,
    digits=3,
    mistakes={
        "that is for q k^T plus k q^T, without the half": lambda q, k: 2 * _both(q, k, _lengths(q, k)),
        "those are the eigenvalues of q k^T": lambda q, k: np.sort([0.0, np.dot(q, k)]),
    },
)


def _entries(r, L):
    rows = [r ** (L - 1 - level) for level in range(L)]
    return sum(each**2 for each in rows) / rows[0] ** 2


entries = close(
    _entries,
    ranges(r=(2, 7), L=(2, 6)),
    mistakes={
        "a table has two sides": lambda r, L: (1 - r ** -float(L)) / (1 - 1 / r),
        "that is the limit of many levels": lambda r, L: r**2 / (r**2 - 1),
    },
)


def _sizes(generator: torch.Generator) -> dict:
    """Lengths that the coarsest row divides."""
    L, blocks, d = (int(torch.randint(*each, (), generator=generator)) for each in ((2, 6), (1, 40), (8, 200)))
    return {"T": 2 ** (L - 1) * blocks, "d": d, "L": L}


def _over_one_level(T, d, L, parts=lambda products: products.total):
    return parts(theory.attention_flops(T, d, d, L)) / parts(theory.attention_flops(T, d, d, 1))


products = close(
    _over_one_level,
    _sizes,
    mistakes={
        "those are score entries alone": lambda T, d, L: 4 / 3 * (1 - 4.0**-L),
        "projections are a part of the layer": lambda T, d, L: _over_one_level(
            T, d, L, lambda each: each.scores + each.averaging
        ),
    },
)


def _zero(n, m, inside):
    digits = np.full((1, m, 10), 0.1)
    return shallow.combine("MIN", np.repeat(shallow.combine(inside, digits)[:, None], n, axis=1))[0, 0]


_lists = ranges(n=(2, 6), m=(2, 5))
same_lists = close(
    lambda n, m: _zero(n, m, "MIN"),
    _lists,
    digits=3,
    mistakes={
        "the arguments are lists": lambda n, m: 1 - 0.9**n,
        "each of the n lists has m digits": lambda n, m: 1 - 0.9 ** (n + m),
    },
)
mixed_lists = close(
    lambda n, m: _zero(n, m, "MAX"),
    _lists,
    digits=3,
    mistakes={
        "a maximum is zero for zeros alone": lambda n, m: 1 - 0.9 ** (n * m),
        "one list of zeros is enough": lambda n, m: 0.1 ** (n * m),
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
    """A row is a law on the tokens up to its own."""
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


def _mutated(name: str = "", pooling: str = "average") -> Callable:
    """A change of the chapter, or another pooling, on the weights of a point."""

    def attend(x, W_Q, W_K, alpha):
        scores = layers.HierarchicalScores(x.shape[1], levels=len(alpha), pooling=pooling, dtype=torch.float64)
        with torch.no_grad():
            for mine, given in ((scores.W_Q, W_Q), (scores.W_K, W_K)):
                for l, W in enumerate(given):
                    mine[l].copy_(torch.as_tensor(W).T)
            scores.a.copy_(torch.as_tensor(alpha).log())
            tokens = torch.as_tensor(x)[None]
            return mutations.mutated(scores, tokens)[name or mutations.HARMLESS][0, 0].numpy()

    return attend


CHANGES = ("no mask", "the coarse row after the right one", "no scaling", "level 0 only", "equal weights")
CHANGES += ("the root of alpha on one side only", "softmax before mixing")
layer_attention = holds(
    (_looks_back, _does_not_know_the_future, _follows_its_scores),
    ranges(half=(2, 5), L=(2, 3), layer=(1, 999)),
    mistakes={name: _mutated(name) for name in [*CHANGES][:1]} | {"means of blocks": _mutated(pooling="block")},
)

# Implement: a detector of leaks -------------------------------------------------------------------------------------


def _of_scores(name: str, seed: int, pooling: str = "average") -> Callable:
    """The layer of the chapter with one change, as a function of tokens (T, 4)."""
    options = {"levels": 2, "pooling": pooling, "seed": seed, "dtype": torch.float64}
    scores = layers.HierarchicalScores(4, **options)

    def layer(x):
        A = mutations.mutated(scores, x[None])[name][0, 0]
        return A @ x

    return layer


def _says(answer: Callable, layer: Callable, T: int) -> bool:
    said = call(answer, layer=layer, T=T, d=4)
    if not isinstance(said, bool | np.bool_) and not (isinstance(said, torch.Tensor) and said.dtype == torch.bool):
        raise Wrong(f"True or False is asked for, yours is of type {type(said).__name__}")
    return bool(said)


def _finds_what_leaks(answer, half, seed):
    """`hkt-leak`, the chapter's mutations, and leaks that are small or in one row alone."""
    T = 2 * half
    weight = torch.linspace(0, 1, T, dtype=torch.float64)[:, None]
    leaking = {name: _of_scores(name, seed) for name in ("no mask", "the coarse row after the right one")}
    leaking["means of blocks"] = _of_scores(mutations.HARMLESS, seed, "block")
    leaking["a millionth of the next token"] = lambda x: x.cumsum(dim=0) + 1e-6 * x.roll(-1, dims=0) * (weight < 1)
    leaking["the row before the last reads the last token"] = lambda x: torch.cat([x[:-2], x[-1:], x[-1:]])
    leaking["all rows read the mean"] = lambda x: x - x.mean(dim=0)
    leaking["the product of two later tokens"] = lambda x: x + torch.cat([x[-1:] * x[-2:-1], 0 * x[1:]])
    missed = [name for name, layer in leaking.items() if not _says(answer, layer, T)]
    return f"a leak is not seen: {missed[0]}" if missed else None


def _accuses_no_causal_layer(answer, half, seed):
    """`hkt-causal`, and changes of the chapter that lose something else."""
    causal = {name: _of_scores(name, seed) for name in ("no scaling", "level 0 only", "softmax before mixing")}
    causal["the layer itself"] = _of_scores(mutations.HARMLESS, seed)
    causal["running sums, times a thousand"] = lambda x: 1000 * x.cumsum(dim=0)
    causal["nothing but zeros"] = lambda x: 0 * x
    accused = [name for name, layer in causal.items() if _says(answer, layer, 2 * half)]
    return f"a causal layer is accused: {accused[0]}" if accused else None


def _moving(rows: Callable, tokens: Callable, tolerance: float = 1e-9) -> Callable:
    """Changes some tokens and looks at some rows."""

    def leaks(layer, T, d):
        x = torch.randn(T, d, generator=stream(0, "a try"), dtype=torch.float64)
        other = x.clone()
        other[tokens(T)] += 1.0
        return bool((layer(other) - layer(x))[rows(T)].abs().max() > tolerance)

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
    "hkt-ex-entries": entries,
    "hkt-ex-leak": leak,
    "hkt-ex-inertia": inertia,
    "hkt-ex-products": products,
    "hkt-ex-root": (same_lists, mixed_lists),
    "hkt-ex-attention": layer_attention,
    "hkt-ex-detector": leaks,
}
check = checker(EXERCISES)
