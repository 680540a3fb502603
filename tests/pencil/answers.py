"""What the package says to each program of *Try it*, as it stands and after one edit.

Of each chapter: what to replace in the program and by what, and the package's answers before and after, which are what
the program calls ``result``.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch


def _tensor(values: object) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def _ols_attention(factor: float) -> list[float]:
    from derived.papers import ols_attention as package

    X, Y = _tensor([[1.0], [1.0], [5.0]]), _tensor([[1.0], [2.0], [3.0]])
    return package.OLSTransformer.from_data(X, Y)(factor * X).flatten().tolist()


def _signal_propagation(alpha: float) -> list[float]:
    from derived.papers import signal_propagation as package

    return [
        float(package.propagate(1.0, 0.2, kernel=kernel, a=1.0, s=1.0, n=math.inf, depth=1000).J_backward[0])
        for kernel in (package.LayerNormKernel(), package.ErfKernel(alpha))
    ]


def _homogenized(d: int) -> list[float]:
    from derived.papers import homogenized as package

    return [float(package.logistic_overlap(3.0, 0.25)), float(package.simplex_drift(0.0, f=0.5, g=0.5, d=d))]


def _sinkhorn(temperature: float) -> list[float]:
    from derived.papers import sinkhorn as package

    scores = _tensor([[2.0, 1.0, 0.0], [1.5, 0.5, 0.2], [1.0, 0.9, 0.1]]) / temperature
    return package.half_steps(scores, 101, _tensor([1 / 3] * 3), _tensor([1 / 3] * 3)).exp().flatten().tolist()


def _hierarchical_kernel(alpha: Sequence[float]) -> list[float]:
    from derived.papers import hierarchical_kernel as package

    x = _tensor([1.0, -0.5, 2.0, 0.3, -1.2, 0.8, 1.5, -0.7])[None, :, None]
    levels = package.HierarchicalScores(1, levels=3, pooling="average", dtype=torch.float64)
    with torch.no_grad():
        for weight in (*levels.W_Q, *levels.W_K):
            weight.fill_(1.0)
        alone = [table[0, 0] for table in levels.tables(x)]
    total = sum(
        w * S.repeat_interleave(2**k, 0).repeat_interleave(2**k, 1)
        for k, (w, S) in enumerate(zip(alpha, alone, strict=True))
    )
    return total.flatten().tolist()


def _stochastic_approximation(w: Sequence[float]) -> list[float]:
    from derived.papers import stochastic_approximation as package

    A, b = [2.0, 0.5], [1.0, 2.0]
    many = float(package.mean_field_root(A, b, weights=list(w)))
    return [*map(float, package.mean_field_root(A, b)), many, float(package.telegraph_variance(0.1, 0.1))]


def _in_place_ttt(chunk: int) -> list[float]:
    from derived.papers import in_place_ttt as package

    s = _tensor([[float(a == b) for b in "abc"] for a in "abcabcabc"])
    kernel = _tensor([[0.0, 0.0, 0.0, 1.0, 0.0]] * 3)
    values = package.depthwise_target(s[None], kernel, chunk=chunk)
    start = torch.zeros(3, 3, dtype=torch.float64)
    return package.in_place_ttt(s[None], values, start, 1.0, chunk)[0].flatten().tolist()


def _cactus(delta: float) -> list[float]:
    from derived.papers import cactus as package

    p, q, rule = _tensor([0.2, 0.3, 0.5]), _tensor([0.5, 0.3, 0.2]), package.Cactus(delta)
    return [*package.output_law(p, q, rule).tolist(), float(package.acceptance_rate(p, q, rule))]


def _task_ecologies(beta: float) -> list[float]:
    from derived.papers import task_ecologies as package

    ecology = package.FiniteEcology([1 / 3] * 3, [1.0], [[[1.0, 0.0]], [[0.5, 0.5]], [[0.0, 1.0]]])
    code = [int(c) for c in package.optimal_partition(ecology, beta).labels]
    cells = [sum(1 / 3 for c in code if c == cell) for cell in set(code)]
    lost, kept = float(ecology.js_excess(code)), -sum(p * math.log(p) for p in cells)
    return [lost, kept, float(package.split_gain(ecology, [0], [1]))]


def _geometric_tax(wrong: int) -> list[float]:
    from derived.papers import geometric_tax as package
    from derived.papers.geometric_tax.model.labels import staircase_floor, staircase_length

    clean, noisy = torch.arange(4), torch.tensor([wrong, 1, 2, 3])
    ordered = package.procrustes_distortion(clean.double()[:, None], noisy.double()[:, None])
    one_hot = torch.eye(4, dtype=torch.float64)
    free = package.procrustes_distortion(one_hot[clean], one_hot[noisy])
    low, high = staircase_floor(8, 0.05), min(staircase_length(8), 1 / 0.05)
    return [float(ordered), float(free), float(low), float(high)]


@dataclass(frozen=True)
class Try:
    """A program's answers as it stands and after an edit, by the package."""

    answer: Callable[..., list[float]]
    now: object
    old: str
    new: str
    after: object


TRIES = {
    "ols_attention": Try(_ols_attention, 2.0, "factor = 2.0", "factor = -1.5", -1.5),
    "signal_propagation": Try(_signal_propagation, 0.5, "alpha = 0.5", "alpha = 0.25", 0.25),
    "homogenized": Try(_homogenized, 24, "n, d = 4, 24", "n, d = 4, 16", 16),
    "sinkhorn": Try(_sinkhorn, 1.0, "temperature = 1.0", "temperature = 0.5", 0.5),
    "hierarchical_kernel": Try(
        _hierarchical_kernel, (0.5, 0.3, 0.2), "[0.5, 0.3, 0.2]", "[1.0, 0.0, 0.0]", (1.0, 0.0, 0.0)
    ),
    "stochastic_approximation": Try(
        _stochastic_approximation, (0.3, 0.7), "w = [0.3, 0.7]", "w = [0.5, 0.5]", (0.5, 0.5)
    ),
    "in_place_ttt": Try(_in_place_ttt, 2, "chunk = 2", "chunk = 3", 3),
    "cactus": Try(_cactus, 0.1, "delta = 0.1", "delta = 0.4", 0.4),
    "task_ecologies": Try(_task_ecologies, 0.3, "beta = 0.3", "beta = 0.4", 0.4),
    "geometric_tax": Try(_geometric_tax, 1, "wrong = 1", "wrong = 3", 3),
}
