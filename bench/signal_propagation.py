"""Races of signal propagation: ``python bench/signal_propagation.py [--quick] [--threads 1] [--output FILE]``.

1. The mean-field engine on many curves at once against scalar recurrences, one curve and one block at a time: once with
   numpy's functions on single numbers, as the author's repository runs them, once with the standard library's math.
   A scalar loop costs the same for each curve, so the peer runs on every k-th curve and its time is multiplied by k;
   a full run also checks the math version on every curve.
2. The Jacobian norm of all layers from one backward pass against one backward pass per layer and probe, as the author's
   repository does it, with the same probes.

Results are compared before anything is timed. The full run writes results/signal_propagation/bench.json; a quick run,
whose sizes are too small to report, writes under _build/.
"""

import dataclasses
import math
from collections.abc import Iterator

import harness
import numpy as np
import torch

from derived.lab.rng import stream
from derived.papers.signal_propagation.model.jacobian import apjn_hutchinson, gradient_moments
from derived.papers.signal_propagation.model.kernels import ErfKernel, LayerNormKernel
from derived.papers.signal_propagation.model.meanfield import propagate
from derived.papers.signal_propagation.model.transformer import RandomTransformer, equiangular_tokens

TOKENS, START = 197, 0.2
AGREE = 1e-10


def build_curves(num_curves: int, depth: int, every: int = 1) -> tuple:
    """alpha, a, s of each curve, the depth and which curves a scalar peer runs."""
    draw = torch.rand(3, num_curves, generator=stream(0, "bench curves"), dtype=torch.float64).numpy()
    return 0.1 + 1.9 * draw[0], 0.02 + draw[1], 0.1 + 2 * draw[2], depth, slice(None, None, every)


def engine_erf(inputs: tuple) -> np.ndarray:
    """propagate, all curves at once"""
    alpha, a, s, depth, _ = inputs
    return columns(propagate(1.0, START, kernel=ErfKernel(alpha), a=a, s=s, n=TOKENS, depth=depth))


def engine_layernorm(inputs: tuple) -> np.ndarray:
    """propagate, all curves at once"""
    _, a, s, depth, _ = inputs
    return columns(propagate(1.0, START, kernel=LayerNormKernel(), a=a, s=s, n=TOKENS, depth=depth))


def columns(course) -> tuple:
    return course.q, course.p, course.log_J_backward, course.log_J_forward, course.ratio_backward, course.ratio_forward


# The scalar recurrence with a library of functions of one number: numpy's, or math's.
NUMPY = (np.sqrt, np.arcsin, np.arccos, lambda x: np.clip(x, -1.0, 1.0))
MATH = (math.sqrt, math.asin, math.acos, lambda x: min(max(x, -1.0), 1.0))


def erf_moments(q: float, p: float, alpha: float, library: tuple) -> tuple:
    sqrt, arcsin, _, clip = library
    c = 2 * alpha**2
    return (
        2 / math.pi * arcsin(clip(c * q / (1 + c * q))),
        2 / math.pi * arcsin(clip(c * p / (1 + c * q))),
        2 * c / math.pi / sqrt(1 + 2 * c * q),
        2 * c / math.pi / sqrt((1 + c * q) ** 2 - (c * p) ** 2),
    )


def layernorm_moments(q: float, p: float, alpha: float, library: tuple) -> tuple:
    return 1.0, library[3](p / q), 1 / q, 1 / q


def scalar_curve(moments, alpha: float, a: float, s: float, depth: int, library: tuple) -> tuple:
    """One curve, block by block: (q, p) and the forward J, K, then the backward J, K."""
    sqrt, _, arccos, clip = library
    n, tau = TOKENS, 2 * math.pi
    q, p, J, K = (np.zeros(depth + 1) for _ in range(4))
    J_forward, K_forward, facts = np.zeros(depth + 1), np.zeros(depth + 1), []
    q[0], p[0], J_forward[0] = 1.0, START, 1.0
    for b in range(depth):
        q_t, p_t, q_h, p_h = moments(float(q[b]), float(p[b]), alpha, library)
        mixed = p_t + (q_t - p_t) / n
        q_half, p_half = q[b] + a * mixed, p[b] + a * mixed
        q_t, p_t, q_m, p_m = moments(float(q_half), float(p_half), alpha, library)
        rho = clip(p_t / q_t)
        angle = math.pi - arccos(rho)
        q[b + 1] = q_half + s / 2 * q_t
        p[b + 1] = p_half + s * q_t * (sqrt(max(1 - rho**2, 0.0)) + rho * angle) / tau
        gain_J, gain_K = 1 + s / 2 * q_m, 1 + s * angle / tau * p_m
        facts.append((q_h, p_h, gain_J, gain_K))
        norm, cross = J_forward[b], K_forward[b]
        J_forward[b + 1] = gain_J * ((1 + a * q_h / n) * norm + a * p_h / n * cross)
        K_forward[b + 1] = gain_K * (a * q_h * (n - 1) / n * norm + (1 + a * p_h * (n - 1) / n) * cross)
    J[depth] = 1.0
    for b in range(depth - 1, -1, -1):
        q_h, p_h, gain_J, gain_K = facts[b]
        j, k = gain_J * J[b + 1], gain_K * K[b + 1]
        J[b] = (1 + a * q_h / n) * j + a * q_h * (n - 1) / n * k
        K[b] = a * p_h / n * j + (1 + a * p_h * (n - 1) / n) * k
    return q, p, J, J_forward, K, K_forward


def scalar_curves(inputs: tuple, moments, library: tuple) -> tuple:
    alpha, a, s, depth, picked = inputs
    facts = zip(*(x[picked].tolist() for x in (alpha, a, s)), strict=True)
    curves = [scalar_curve(moments, *fact, depth, library) for fact in facts]
    q, p, J, J_forward, K, K_forward = (np.stack(rows) for rows in zip(*curves, strict=True))
    return q, p, np.log(J), np.log(J_forward), K / J, K_forward / J_forward


def numpy_erf(inputs: tuple) -> tuple:
    """scalar loop with numpy's functions"""
    return scalar_curves(inputs, erf_moments, NUMPY)


def math_erf(inputs: tuple) -> tuple:
    """scalar loop with math's functions"""
    return scalar_curves(inputs, erf_moments, MATH)


def numpy_layernorm(inputs: tuple) -> tuple:
    """scalar loop with numpy's functions"""
    return scalar_curves(inputs, layernorm_moments, NUMPY)


def math_layernorm(inputs: tuple) -> tuple:
    """scalar loop with math's functions"""
    return scalar_curves(inputs, layernorm_moments, MATH)


def same_curves(inputs: tuple, ours: tuple, peer: tuple) -> float:
    """The largest relative gap of q, both J and both 1 + K/J, and |dp|/q, over the curves that the peer ran."""
    q, p, backward, forward, *ratios = (x[inputs[-1]] for x in ours)
    gaps = [np.abs(q / peer[0] - 1), np.abs(p - peer[1]) / q, np.abs(np.expm1(backward - peer[2]))]
    gaps += [np.abs(np.expm1(forward - peer[3]))]
    gaps += [np.abs((x - y) / (1 + y)) for x, y in zip(ratios, peer[4:], strict=True)]
    return within(float(max(gap.max() for gap in gaps)), AGREE)


def build_network(width: int, depth: int, num_tokens: int, num_probes: int) -> tuple:
    num_tokens = max(num_tokens, 2)  # the warm-up divides the sizes
    width = max(width, num_tokens)
    model = RandomTransformer(width=width, depth=depth, norm="erf", generator=stream(0, "bench network"))
    x = equiangular_tokens(num_tokens, width, 1.0, START, batch=(1,), generator=stream(0, "bench tokens"))
    return model, x, num_probes


def one_backward(inputs: tuple) -> torch.Tensor:
    """apjn_hutchinson, one backward pass for all layers"""
    model, x, num_probes = inputs
    return apjn_hutchinson(model, x, num_probes=num_probes, generator=stream(0, "bench probes")).J


def backward_per_layer(inputs: tuple) -> torch.Tensor:
    """one backward pass per layer and probe"""
    model, x, num_probes = inputs
    probe = torch.randn(1, num_probes, *x.shape[1:], generator=stream(0, "bench probes"), dtype=x.dtype)
    states = model.states(x.clone().requires_grad_())
    draws = []
    for i in range(num_probes):
        scalar = (states[-1] * probe[:, i]).sum()
        layers = [torch.autograd.grad(scalar, h, retain_graph=True)[0] for h in states]
        draws.append(gradient_moments(layers).J)
    return torch.stack(draws, dim=1)


def same_norms(inputs: tuple, ours: torch.Tensor, peer: torch.Tensor) -> float:
    """The same probes: equal up to float32 rounding through 2 depth sublayers, each a sum of up to 4 width terms."""
    model = inputs[0]
    bound = 2 * model.depth * math.sqrt(4 * model.width) * torch.finfo(torch.float32).eps
    return within(float((ours / peer - 1).abs().max()), bound)


def within(gap: float, bound: float) -> float:
    if not gap <= bound:
        raise SystemExit(f"the results differ by {gap:.3g}, more than {bound:.3g}")
    return gap


def curve_races(quick: bool, rounds: int, threads: int) -> Iterator[harness.Row]:
    num, depth, every = (200, 50, 10) if quick else (10_000, 1000, 500)
    if not quick:  # the cheaper peer on every curve, once
        inputs = build_curves(num, depth)
        print("every curve: largest gap", same_curves(inputs, engine_erf(inputs), math_erf(inputs)), flush=True)
    for name, ours, peer in (
        ("Derf", engine_erf, numpy_erf),
        ("Derf", engine_erf, math_erf),
        ("LayerNorm", engine_layernorm, numpy_layernorm),
        ("LayerNorm", engine_layernorm, math_layernorm),
    ):
        sizes = {"num_curves": num, "depth": depth, "every": every}
        facts = {"gap": same_curves, "target": 300.0, "rounds": rounds, "threads": threads}
        row = harness.race(f"{name}, {num} curves of {depth} blocks", build_curves, sizes, ours, peer, **facts)
        scaled = {field: every * getattr(row, field) for field in ("peer_ms", "ratio", "ratio_low", "ratio_high")}
        peer_name = f"{row.peer} (every {every}th curve, time x {every})"
        yield dataclasses.replace(row, peer=peer_name, met=scaled["ratio"] >= row.target, **scaled)


def estimator_races(quick: bool, rounds: int, threads: int) -> Iterator[harness.Row]:
    sizes = {"width": 32, "depth": 8, "num_tokens": 8, "num_probes": 2}
    if not quick:
        sizes = {"width": 192, "depth": 32, "num_tokens": 64, "num_probes": 4}
    name = "Jacobian norm at {depth} + 1 depths, width {width}, {num_tokens} tokens, {num_probes} probes".format(
        **sizes
    )
    facts = {"gap": same_norms, "target": 8.0, "rounds": rounds, "threads": threads}
    yield harness.race(name, build_network, sizes, one_backward, backward_per_layer, **facts)


def races(quick: bool, rounds: int, threads: int) -> Iterator[harness.Row]:
    yield from estimator_races(quick, rounds, threads)
    yield from curve_races(quick, rounds, threads)


if __name__ == "__main__":
    dtype = "float64 (curves), float32 (networks)"
    harness.command("signal_propagation", races, rounds=11, quick_rounds=3, dtype=dtype)
