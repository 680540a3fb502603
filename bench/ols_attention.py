"""Races of the least-squares chapter: ``python bench/ols_attention.py [--quick] [--threads 1] [--output FILE]``.

1. One step of a dense associative memory: the flip field in one product against 2 K N evaluations of F.
2. Batched least squares: the package's two routes against torch.linalg.lstsq with the driver that torch's
   documentation recommends for the case: "gels" for well-conditioned full rank, "gelsd" where the rank is unknown.
3. Linear attention in its two association orders.
4. Softmax retrieval against torch's scaled_dot_product_attention.

Results are compared before anything is timed. The full run writes results/ols_attention/bench.json; a quick run, whose
sizes are too small to report, writes under _build/.
"""

from collections.abc import Iterator

import harness
import torch

from derived.lab.rng import stream
from derived.papers.ols_attention.data.problems import random_regression
from derived.papers.ols_attention.model.hopfield import kh_step, random_signs, retrieve
from derived.papers.ols_attention.model.mechanism import linear_attention
from derived.papers.ols_attention.model.theory import ols_coefficients, rounding_bound

EPS = torch.finfo(torch.float64).eps


def build_memory(num_patterns: int, num_spins: int, num_states: int) -> tuple:
    patterns = random_signs(num_patterns, num_spins, generator=stream(0, "bench memory"))
    return patterns[:num_states], patterns


def cubic_one_product(inputs: tuple) -> torch.Tensor:
    """flip field in one product, F = u^3"""
    return kh_step(*inputs, 3)


def exponential_one_product(inputs: tuple) -> torch.Tensor:
    """flip field in one product, F = e^u"""
    return kh_step(*inputs, "exp")


def naive_step(states: torch.Tensor, patterns: torch.Tensor, F) -> torch.Tensor:
    moved = []
    for state in states:
        rest = (patterns @ state).unsqueeze(-1) - patterns * state
        field = (F(rest + patterns) - F(rest - patterns)).sum(dim=0)
        moved.append(torch.where(field == 0, state, field.sign()))
    return torch.stack(moved)


def cubic_naive(inputs: tuple) -> torch.Tensor:
    """2KN evaluations of F = u^3 per state"""
    return naive_step(*inputs, lambda u: u**3)


def exponential_naive(inputs: tuple) -> torch.Tensor:
    """2KN evaluations of F = e^(u - N) per state"""
    return naive_step(*inputs, lambda u: torch.exp(u - inputs[1].shape[-1]))


def same_decisions(inputs: tuple, ours: torch.Tensor, peer: torch.Tensor) -> float:
    if not torch.equal(ours, peer):
        raise SystemExit(f"the two steps disagree on {int((ours != peer).sum())} of {ours.numel()} spins")
    return 0.0


def build_regression(num_problems: int, n: int, p: int) -> tuple:
    data = random_regression(n, p, kappa=100.0, batch=(num_problems,), generator=stream(0, "bench regression"))
    return data.X, data.Y


def triangular(inputs: tuple) -> torch.Tensor:
    """ols_coefficients(method="qr"), triangular factor of [X Y]"""
    return ols_coefficients(*inputs, method="qr")


def singular_values(inputs: tuple) -> torch.Tensor:
    """ols_coefficients(method="svd")"""
    return ols_coefficients(*inputs)


def lstsq_gels(inputs: tuple) -> torch.Tensor:
    """torch.linalg.lstsq(driver="gels")"""
    return torch.linalg.lstsq(*inputs, driver="gels").solution


def lstsq_gelsd(inputs: tuple) -> torch.Tensor:
    """torch.linalg.lstsq(driver="gelsd")"""
    return torch.linalg.lstsq(*inputs, driver="gelsd").solution


def same_coefficients(inputs: tuple, ours: torch.Tensor, peer: torch.Tensor) -> float:
    X, Y = inputs
    s_min = torch.linalg.svdvals(X)[..., -1]
    tolerance = 2 * rounding_bound(X) * torch.linalg.matrix_norm(Y) / s_min
    return within(torch.linalg.matrix_norm(ours - peer) / tolerance)


def build_tokens(num_tokens: int, width: int) -> tuple:
    g = stream(0, "bench tokens")
    return tuple(torch.randn(num_tokens, width, generator=g, dtype=torch.float64) for _ in range(3))


def state_order(inputs: tuple) -> torch.Tensor:
    """q (k^T v)"""
    return linear_attention(*inputs, order="state")


def scores_order(inputs: tuple) -> torch.Tensor:
    """(q k^T) v"""
    return linear_attention(*inputs, order="scores")


def same_attention(inputs: tuple, ours: torch.Tensor, peer: torch.Tensor) -> float:
    q, k, v = inputs
    tolerance = 2 * (len(k) + q.shape[-1]) * EPS * q.norm() * k.norm() * v.norm() / len(k)
    return within((ours - peer).norm() / tolerance)


def build_retrieval(num_patterns: int, dimension: int, num_states: int) -> tuple:
    g = stream(0, "bench retrieval")
    patterns = torch.randn(num_patterns, dimension, generator=g, dtype=torch.float64)
    return patterns[:num_states] + 0.1, patterns


def softmax_retrieval(inputs: tuple) -> torch.Tensor:
    """retrieve(..., "lse")"""
    return retrieve(*inputs, "lse", beta=0.5).state


def fused_attention(inputs: tuple) -> torch.Tensor:
    """scaled_dot_product_attention(scale=beta)"""
    state, patterns = inputs[0][None, None], inputs[1][None, None]
    return torch.nn.functional.scaled_dot_product_attention(state, patterns, patterns, scale=0.5)[0, 0]


def same_retrieval(inputs: tuple, ours: torch.Tensor, peer: torch.Tensor) -> float:
    state, patterns = inputs
    scores = 0.5 * float((state @ patterns.T).abs().max())
    tolerance = 4 * sum(patterns.shape) * EPS * (1 + scores) * patterns.norm() * len(state) ** 0.5
    return within((ours - peer).norm() / tolerance)


def within(ratio: torch.Tensor) -> float:
    worst = float(ratio.max())
    if not worst <= 1:
        raise SystemExit(f"the results differ by {worst:.3g} times the rounding bound")
    return worst


def races(quick: bool) -> list[tuple]:
    K, N, T = (512, 64, 8) if quick else (4096, 256, 16)
    batch, n, p, tall = (16, 60, 8, 2000) if quick else (512, 100, 10, 50_000)
    tokens, width = (512, 32) if quick else (4096, 64)
    memory = {"num_patterns": K, "num_spins": N, "num_states": T}
    single = memory | {"num_states": 1}
    small = {"num_problems": batch, "n": n, "p": p}
    large = {"num_problems": 1, "n": tall, "p": 2 * p}
    of = f"K = {K}, N = {N}"
    return [
        (f"cubic memory, {T} states, {of}", build_memory, memory, cubic_one_product, cubic_naive, same_decisions, 10),
        (f"cubic memory, 1 state, {of}", build_memory, single, cubic_one_product, cubic_naive, same_decisions, 10),
        (
            f"exponential memory, {T} states, {of}",
            build_memory,
            memory,
            exponential_one_product,
            exponential_naive,
            same_decisions,
            10,
        ),
        (
            f"least squares, full rank, {batch} of {n} x {p}",
            build_regression,
            small,
            triangular,
            lstsq_gels,
            same_coefficients,
            1,
        ),
        (
            f"least squares, full rank, one of {tall} x {2 * p}",
            build_regression,
            large,
            triangular,
            lstsq_gels,
            same_coefficients,
            1,
        ),
        (
            f"least squares, any rank, {batch} of {n} x {p}",
            build_regression,
            small,
            singular_values,
            lstsq_gelsd,
            same_coefficients,
            1,
        ),
        (
            f"least squares, any rank, one of {tall} x {2 * p}",
            build_regression,
            large,
            singular_values,
            lstsq_gelsd,
            same_coefficients,
            1,
        ),
        (
            f"linear attention, n = {tokens}, d = {width}",
            build_tokens,
            {"num_tokens": tokens, "width": width},
            state_order,
            scores_order,
            same_attention,
            10,
        ),
        (
            f"softmax retrieval, {T} states, K = {K}, d = {width}",
            build_retrieval,
            {"num_patterns": K, "dimension": width, "num_states": T},
            softmax_retrieval,
            fused_attention,
            same_retrieval,
            1,
        ),
    ]


def timed(quick: bool, rounds: int, threads: int) -> Iterator[harness.Row]:
    for name, build, sizes, ours, peer, gap, target in races(quick):
        yield harness.race(name, build, sizes, ours, peer, gap=gap, target=target, rounds=rounds, threads=threads)


if __name__ == "__main__":
    harness.command("ols_attention", timed, rounds=21, quick_rounds=5, dtype="float64")
