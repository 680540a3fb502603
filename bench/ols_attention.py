"""Races of the least-squares chapter: ``python bench/ols_attention.py [--quick] [--threads 1] [--output FILE]``.

1. One step of a dense associative memory: the flip field in one product, for any F, against 2 K N evaluations of F;
   and what generality and checks cost over the same algebra written out by hand for one F in two lines.
2. Least squares of full rank: the package's Cholesky with one step of refinement against LAPACK's QR,
   torch.linalg.lstsq(driver="gels"). Each has its error beside its time, against a solution refined in extended
   precision. Cholesky without the step is there for scale: its error grows like the square of the condition number,
   which is about 10 here.

Results are compared before anything is timed. The full run writes results/ols_attention/bench.json; a quick run, whose
sizes are too small to report, writes under _build/.
"""

import math
from collections.abc import Iterator

import harness
import numpy as np
import torch
from harness import Peer, Race, require, within

from derived.lab.rng import stream
from derived.papers.ols_attention.data.problems import random_regression
from derived.papers.ols_attention.model.hopfield import kh_step, random_signs
from derived.papers.ols_attention.model.theory import ols_coefficients, rounding_bound

EPS = torch.finfo(torch.float64).eps
KAPPA = 100.0  # condition number of the second moment; its root is that of X


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


def refined(inputs: tuple) -> torch.Tensor:
    """ols_coefficients(method="full rank"), Cholesky and one step of refinement"""
    return ols_coefficients(*inputs, method="full rank")


def lstsq_gels(inputs: tuple) -> torch.Tensor:
    """torch.linalg.lstsq(driver="gels")"""
    return torch.linalg.lstsq(*inputs, driver="gels").solution


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


def memory_work(inputs: tuple) -> tuple[float, float]:
    """Patterns are read, and multiplied twice by the states."""
    states, patterns = inputs
    return patterns.nbytes, 4 * len(states) * patterns.numel()


def regression_work(inputs: tuple) -> tuple[float, float]:
    """X is read, and multiplied by itself."""
    X, Y = inputs
    return X.nbytes + Y.nbytes, 2 * X.numel() * X.shape[-1]


TWO_PRODUCTS = "These two lines are the operation itself, for one separation function; what ours adds are its checks."
SQUARED = "It squares the condition number and does not refine: its error is larger, as the script prints."


def memory_races(K: int, N: int, T: int) -> Iterator[Race]:
    for law, ours, lines, naive in (
        ("cubic", cubic_one_product, cubic_two_lines, cubic_naive),
        ("exponential", exponential_one_product, exponential_two_lines, exponential_naive),
    ):
        peers = (
            Peer(run=naive, gap=same_decisions, role="plain", target=10.0),
            Peer(run=lines, gap=same_decisions, why=TWO_PRODUCTS),
        )
        sizes = {"num_patterns": K, "num_spins": N, "num_states": T}
        name = f"{law} memory, {T} states, K = {K}, N = {N}"
        yield Race(name=name, build=build_memory, sizes=sizes, ours=ours, peers=peers, work=memory_work)


def races(quick: bool) -> Iterator[Race]:
    yield from memory_races(*((512, 64, 8) if quick else (4096, 256, 16)))
    peers = (
        Peer(run=lstsq_gels, gap=same_coefficients),
        Peer(run=cholesky, gap=same_coefficients, why=SQUARED),
    )
    for batch, n, p in ((16, 60, 8), (1, 2000, 16)) if quick else ((512, 100, 10), (1, 50_000, 20)):
        name, sizes = f"least squares, {batch} of {n} x {p}", {"num_problems": batch, "n": n, "p": p}
        facts = {"error": error_of, "work": regression_work}
        yield Race(name=name, build=build_regression, sizes=sizes, ours=refined, peers=peers, **facts)


if __name__ == "__main__":
    harness.command("ols_attention", harness.contests(races), rounds=21, quick_rounds=6, dtype="float64")
