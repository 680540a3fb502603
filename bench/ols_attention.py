"""Races of the least-squares chapter: ``python bench/ols_attention.py [--quick] [--threads 1] [--output FILE]``.

1. One step of a dense associative memory: the flip field in one product, for any F, against the same algebra written
   out by hand for one F in two lines, without checks; and against 2 K N evaluations of F.
2. Least squares of full rank: the package's QR against torch.linalg.lstsq(driver="gels") and against Cholesky of the
   normal equations. Each has its error beside its time, against a solution refined in extended precision: Cholesky's
   grows like the square of the condition number, which is about 10 here.
3. Least squares of unknown rank, on inputs that lack two directions: the package's SVD against
   torch.linalg.lstsq(driver="gelsd") and scipy's "gelsy". torch's own "gelsy" is no contender: in torch 2.13.0 its
   answers on these inputs change from call to call, and the comparison refuses it.
4. Linear attention against torch.linalg.multi_dot, which finds the better order of association by itself.
5. Softmax retrieval against torch's scaled_dot_product_attention and against the two lines that define it.

Results are compared before anything is timed. The full run writes results/ols_attention/bench.json; a quick run, whose
sizes are too small to report, writes under _build/.
"""

import math
from collections.abc import Iterator

import harness
import numpy as np
import torch
from harness import Peer, Race, require, within
from scipy import linalg

from derived.lab.rng import stream
from derived.papers.ols_attention.data.problems import random_regression
from derived.papers.ols_attention.model.hopfield import kh_step, random_signs, retrieve
from derived.papers.ols_attention.model.mechanism import linear_attention
from derived.papers.ols_attention.model.theory import ols_coefficients, rounding_bound

EPS = torch.finfo(torch.float64).eps
KAPPA = 100.0  # condition number of the second moment; its root is that of X
BETA = 0.5


def build_memory(num_patterns: int, num_spins: int, num_states: int) -> tuple:
    """Random states, so that about half of the spins move: stored patterns would stay where they are."""
    g = stream(0, "bench memory")
    return random_signs(num_states, num_spins, generator=g), random_signs(num_patterns, num_spins, generator=g)


def cubic_one_product(inputs: tuple) -> torch.Tensor:
    """flip field in one product, F = u^3"""
    return kh_step(*inputs, 3)


def exponential_one_product(inputs: tuple) -> torch.Tensor:
    """flip field in one product, F = e^u"""
    return kh_step(*inputs, "exp")


def cubic_two_lines(inputs: tuple) -> torch.Tensor:
    """two matrix products, written out for F = u^3"""
    states, patterns = inputs
    overlap = states @ patterns.T
    field = (6 * overlap.square() + 8) @ patterns - 12 * states * overlap.sum(dim=-1, keepdim=True)
    return torch.where(field == 0, states, field.sign())


def exponential_two_lines(inputs: tuple) -> torch.Tensor:
    """two matrix products, written out for F = e^u"""
    states, patterns = inputs
    overlap = states @ patterns.T
    level = (overlap - overlap.amax(dim=-1, keepdim=True)).exp()
    field = math.cosh(1) * (level @ patterns) - math.sinh(1) * states * level.sum(dim=-1, keepdim=True)
    return torch.where(field == 0, states, field.sign())


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
    """Every spin: all sums are integers for u^3, and no field of these inputs is near zero for e^u."""
    require(0.2 < float((ours != inputs[0]).double().mean()) < 0.8, "too few or too many spins move for a comparison")
    require(torch.equal(ours, peer), f"the two steps disagree on {int((ours != peer).sum())} of {ours.numel()} spins")
    return 0.0


def build_regression(num_problems: int, n: int, p: int) -> tuple:
    data = random_regression(n, p, kappa=KAPPA, batch=(num_problems,), generator=stream(0, "bench regression"))
    return data.X, data.Y


def build_deficient(num_problems: int, n: int, p: int) -> tuple:
    """The last two of the p columns are sums of others: of the many solutions the shortest is asked for."""
    X, Y = build_regression(num_problems, n, max(p - 2, 2))
    return torch.cat([X, X[..., :1] + X[..., 1:2], X[..., :1] - X[..., 1:2]], dim=-1)[..., :p], Y


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


def lstsq_gelsy(inputs: tuple) -> torch.Tensor:
    """scipy.linalg.lstsq(lapack_driver="gelsy")"""
    X, Y = (x.numpy() for x in inputs)
    cut = max(X.shape[-2:]) * EPS  # as all others cut
    return torch.from_numpy(linalg.lstsq(X, Y, cut, lapack_driver="gelsy", check_finite=False)[0])


def cholesky(inputs: tuple) -> torch.Tensor:
    """Cholesky of the normal equations"""
    X, Y = inputs
    return torch.cholesky_solve(X.mT @ Y, torch.linalg.cholesky(X.mT @ X))


def same_coefficients(inputs: tuple, ours: torch.Tensor, peer: torch.Tensor) -> float:
    """The distance of the coefficients over the sum of two rounding bounds of the chapter."""
    X, Y = inputs
    s = torch.linalg.svdvals(X)
    least = torch.where(s > max(X.shape[-2:]) * EPS * s[..., :1], s, torch.inf).amin(dim=-1)
    tolerance = 2 * rounding_bound(X) * torch.linalg.matrix_norm(Y) / least
    return within(float((torch.linalg.matrix_norm(ours - peer) / tolerance).max()))


def error_of(inputs: tuple, B: torch.Tensor) -> float:
    """The largest ||B - B*|| / ||B*||, with B* refined by Newton's steps whose residuals are in extended precision."""
    X, Y = (x.numpy().astype(np.longdouble) for x in inputs)
    Xt, gram, best = X.swapaxes(-1, -2), (inputs[0].mT @ inputs[0]).numpy(), B.numpy().astype(np.longdouble)
    for _ in range(3):
        best = best + np.linalg.solve(gram, (Xt @ (Y - X @ best)).astype(float))
    apart, size = (np.square(each).sum(axis=(-2, -1)) ** 0.5 for each in (B.numpy() - best, best))
    return float((apart / size).max())


def build_tokens(num_tokens: int, width: int) -> tuple:
    g = stream(0, "bench tokens")
    return tuple(torch.randn(num_tokens, width, generator=g, dtype=torch.float64) for _ in range(3))


def state_order(inputs: tuple) -> torch.Tensor:
    """q (k^T v)"""
    return linear_attention(*inputs, order="state")


def best_order(inputs: tuple) -> torch.Tensor:
    """torch.linalg.multi_dot"""
    q, k, v = inputs
    return torch.linalg.multi_dot([q, k.mT, v]) / len(k)


def same_attention(inputs: tuple, ours: torch.Tensor, peer: torch.Tensor) -> float:
    """The distance over the rounding of two sums, of n and of d terms."""
    q, k, v = inputs
    tolerance = 2 * (len(k) + q.shape[-1]) * EPS * q.norm() * k.norm() * v.norm() / len(k)
    return within(float((ours - peer).norm() / tolerance))


def build_retrieval(num_patterns: int, dimension: int, num_states: int) -> tuple:
    g = stream(0, "bench retrieval")
    patterns = torch.randn(num_patterns, dimension, generator=g, dtype=torch.float64)
    return patterns[:num_states] + 0.1, patterns


def softmax_retrieval(inputs: tuple) -> torch.Tensor:
    """retrieve(..., "lse")"""
    return retrieve(*inputs, "lse", beta=BETA).state


def fused_attention(inputs: tuple) -> torch.Tensor:
    """scaled_dot_product_attention(scale=beta)"""
    state, patterns = inputs[0][None, None], inputs[1][None, None]
    return torch.nn.functional.scaled_dot_product_attention(state, patterns, patterns, scale=BETA)[0, 0]


def softmax_in_a_line(inputs: tuple) -> torch.Tensor:
    """softmax(beta * state @ patterns.T) @ patterns"""
    state, patterns = inputs
    return torch.softmax(BETA * state @ patterns.T, dim=-1) @ patterns


def same_retrieval(inputs: tuple, ours: torch.Tensor, peer: torch.Tensor) -> float:
    """The distance over the rounding of the scores, which softmax passes on, and of the sum over patterns."""
    state, patterns = inputs
    scores = BETA * float((state @ patterns.T).abs().max())
    tolerance = 4 * sum(patterns.shape) * EPS * (1 + scores) * patterns.norm() * len(state) ** 0.5
    return within(float((ours - peer).norm() / tolerance))


def memory_races(K: int, N: int, T: int) -> Iterator[Race]:
    of = f"K = {K}, N = {N}"
    for law, ours, lines, naive in (
        ("cubic", cubic_one_product, cubic_two_lines, cubic_naive),
        ("exponential", exponential_one_product, exponential_two_lines, exponential_naive),
    ):
        peers = (
            Peer(run=lines, gap=same_decisions),
            Peer(run=naive, gap=same_decisions, role="plain", target=10.0),
        )
        for states in (T, 1):
            name = f"{law} memory, {states} state{'s' if states > 1 else ''}, {of}"
            sizes = {"num_patterns": K, "num_spins": N, "num_states": states}
            yield Race(name=name, build=build_memory, sizes=sizes, ours=ours, peers=peers, rounds=11)


def regression_races(batch: int, n: int, p: int, tall: int) -> Iterator[Race]:
    sizes = (
        (f"{batch} of {n} x {p}", {"num_problems": batch, "n": n, "p": p}),
        (f"one of {tall} x {2 * p}", {"num_problems": 1, "n": tall, "p": 2 * p}),
    )
    for rank, build, ours, contenders, error in (
        ("full rank", build_regression, triangular, (lstsq_gels, cholesky), error_of),
        ("any rank", build_deficient, singular_values, (lstsq_gelsy, lstsq_gelsd), None),
    ):
        peers = tuple(Peer(run=run, gap=same_coefficients) for run in contenders)
        for shape, size in sizes:
            name = f"least squares, {rank}, {shape}"
            yield Race(name=name, build=build, sizes=size, ours=ours, peers=peers, error=error)


def races(quick: bool) -> Iterator[Race]:
    K, N, T = (512, 64, 8) if quick else (4096, 256, 16)
    tokens, width = (512, 32) if quick else (4096, 64)
    yield from memory_races(K, N, T)
    yield from regression_races(*((16, 60, 8, 2000) if quick else (512, 100, 10, 50_000)))
    yield Race(
        name=f"linear attention, n = {tokens}, d = {width}",
        build=build_tokens,
        sizes={"num_tokens": tokens, "width": width},
        ours=state_order,
        peers=(Peer(run=best_order, gap=same_attention),),
    )
    yield Race(
        name=f"softmax retrieval, {T} states, K = {K}, d = {width}",
        build=build_retrieval,
        sizes={"num_patterns": K, "dimension": width, "num_states": T},
        ours=softmax_retrieval,
        peers=tuple(Peer(run=run, gap=same_retrieval) for run in (fused_attention, softmax_in_a_line)),
    )


if __name__ == "__main__":
    harness.command("ols_attention", harness.contests(races), rounds=21, quick_rounds=6, dtype="float64")
