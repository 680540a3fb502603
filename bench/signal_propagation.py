"""Races of signal propagation: ``python bench/signal_propagation.py [--quick] [--threads 1] [--output FILE]``.

1. The mean-field engine on many curves at once against the same recurrences compiled by numba, one curve after another,
   and for scale against the scalar loop that numba compiles, in plain Python with the functions of ``math``. A loop
   costs the same for each curve, so the plain one runs on every k-th curve and its time is multiplied by k.
2. The engine in the limit of many tokens against the author's code, which has this limit of the weights.
3. The Jacobian norm of all layers, all probes in one batched backward pass, against one ``autograd.grad(scalar,
   states)`` per probe and against one backward pass through copies of the input, with the same probes.
4. The same against the author's code, which makes one backward pass for each layer and probe.

numba is left out where it is not installed. The author's code is run unmodified where $AUTHORS/transformers-apjn is a
clone of github.com/labofdoubt/transformers-apjn (commit d7255d6), and left out elsewhere.

Results are compared before anything is timed. The full run writes results/signal_propagation/bench.json; a quick run,
whose sizes are too small to report, writes under _build/.
"""

import functools
import importlib.util
import math
import sys
import types
from collections.abc import Callable, Iterator

import harness
import numpy as np
import torch
from harness import Peer, Race, require, within

from derived.lab.rng import stream
from derived.papers.signal_propagation.model.jacobian import apjn_hutchinson, gradient_moments
from derived.papers.signal_propagation.model.kernels import ErfKernel, LayerNormKernel
from derived.papers.signal_propagation.model.meanfield import propagate
from derived.papers.signal_propagation.model.transformer import RandomTransformer, equiangular_tokens

TOKENS, START = 197, 0.2
AGREE = 1e-10
FAR = 4.5  # standard errors between two estimates of one number, at most


def build_curves(num_curves: int, depth: int, every: int = 1) -> tuple:
    """alpha, a, s of each curve, the depth and which curves a scalar peer runs."""
    draw = torch.rand(3, num_curves, generator=stream(0, "bench curves"), dtype=torch.float64).numpy()
    return 0.1 + 1.9 * draw[0], 0.02 + draw[1], 0.1 + 2 * draw[2], depth, slice(None, None, every)


def engine_erf(inputs: tuple) -> tuple:
    """propagate, all curves at once"""
    alpha, a, s, depth, _ = inputs
    return columns(propagate(1.0, START, kernel=ErfKernel(alpha), a=a, s=s, n=TOKENS, depth=depth))


def engine_many_tokens(inputs: tuple) -> tuple:
    """propagate(attention="infinite"), all curves at once"""
    alpha, a, s, depth, _ = inputs
    kernel = ErfKernel(alpha)
    course = propagate(1.0, START, kernel=kernel, a=a, s=s, n=math.inf, depth=depth, attention="infinite")
    return columns(course)[:4]


def engine_layernorm(inputs: tuple) -> tuple:
    """propagate, all curves at once"""
    _, a, s, depth, _ = inputs
    return columns(propagate(1.0, START, kernel=LayerNormKernel(), a=a, s=s, n=TOKENS, depth=depth))


def columns(course) -> tuple[np.ndarray, ...]:
    return course.q, course.p, course.log_J_backward, course.log_J_forward, course.ratio_backward, course.ratio_forward


# The recurrence of one curve after another, in the subset of Python that numba compiles as it stands.


def moments(q: float, p: float, c: float) -> tuple[float, float, float, float]:
    """q~, p~, q^, p^ of Derf with c = 2 alpha^2, or of LayerNorm with c = 0."""
    if c == 0:
        return 1.0, p / q, 1 / q, 1 / q
    total = 1 + c * q
    return (
        2 / math.pi * math.asin(min(c * q / total, 1.0)),
        2 / math.pi * math.asin(max(min(c * p / total, 1.0), -1.0)),
        2 * c / math.pi / math.sqrt(total + c * q),
        2 * c / math.pi / math.sqrt(total**2 - (c * p) ** 2),
    )


def fill(path: np.ndarray, facts: np.ndarray, q: float, p: float, c: float, a: float, s: float, n: float) -> None:
    """One curve, block by block, into ``path`` (6, depth + 1): q, p, J and K backward, then forward."""
    depth, tau = len(facts), 2 * math.pi
    J, K = 1.0, 0.0
    path[0, 0], path[1, 0], path[4, 0], path[5, 0] = q, p, J, K
    for b in range(depth):
        q_t, p_t, q_h, p_h = moments(q, p, c)
        mixed = p_t + (q_t - p_t) / n
        q, p = q + a * mixed, p + a * mixed
        q_t, p_t, q_m, p_m = moments(q, p, c)
        rho = max(min(p_t / q_t, 1.0), -1.0)
        angle = math.pi - math.acos(rho)
        q = q + s / 2 * q_t
        p = p + s * q_t * (math.sqrt(1 - rho**2) + rho * angle) / tau
        gain_J, gain_K = 1 + s / 2 * q_m, 1 + s * angle / tau * p_m
        facts[b, 0], facts[b, 1], facts[b, 2], facts[b, 3] = q_h, p_h, gain_J, gain_K
        J, K = (
            gain_J * ((1 + a * q_h / n) * J + a * p_h / n * K),
            gain_K * (a * q_h * (n - 1) / n * J + (1 + a * p_h * (n - 1) / n) * K),
        )
        path[0, b + 1], path[1, b + 1], path[4, b + 1], path[5, b + 1] = q, p, J, K
    J, K = 1.0, 0.0
    path[2, depth], path[3, depth] = J, K
    for b in range(depth - 1, -1, -1):
        q_h, p_h = facts[b, 0], facts[b, 1]
        j, k = facts[b, 2] * J, facts[b, 3] * K
        J = (1 + a * q_h / n) * j + a * q_h * (n - 1) / n * k
        K = a * p_h / n * j + (1 + a * p_h * (n - 1) / n) * k
        path[2, b], path[3, b] = J, K


def fill_all(paths: np.ndarray, facts: np.ndarray, c: np.ndarray, a: np.ndarray, s: np.ndarray) -> None:
    """``paths`` (curves, 6, depth + 1), one curve after another."""
    for i in range(len(paths)):
        fill(paths[i], facts, 1.0, START, c[i], a[i], s[i], float(TOKENS))


@functools.cache
def compiled() -> Callable:
    """``fill_all`` as machine code, for one thread."""
    from numba import njit

    inner = {"math": math, "START": START, "TOKENS": TOKENS}
    for function in (moments, fill, fill_all):  # each sees the compiled version of the one before it
        plain = types.FunctionType(function.__code__, inner, function.__name__)
        inner[function.__name__] = njit(fastmath=True)(plain)
    return inner["fill_all"]


def looped(fill_curves: Callable, alpha: np.ndarray, a: np.ndarray, s: np.ndarray, depth: int) -> tuple:
    """q, p, log J backward and forward, K / J backward and forward of all curves, as ``columns`` gives them."""
    paths = np.empty((len(a), 6, depth + 1))
    fill_curves(paths, np.empty((depth, 4)), 2 * alpha**2, a, s)
    q, p, J, K, J_forward, K_forward = paths.swapaxes(0, 1)
    K /= J
    K_forward /= J_forward
    return q, p, np.log(J, out=J), np.log(J_forward, out=J_forward), K, K_forward


def numba_erf(inputs: tuple) -> tuple:
    """the scalar loop compiled by numba"""
    alpha, a, s, depth, _ = inputs
    return looped(compiled(), alpha, a, s, depth)


def numba_layernorm(inputs: tuple) -> tuple:
    """the scalar loop compiled by numba"""
    _, a, s, depth, _ = inputs
    return looped(compiled(), np.zeros_like(a), a, s, depth)


def math_erf(inputs: tuple) -> tuple:
    """the scalar loop in Python"""
    alpha, a, s, depth, picked = inputs
    return looped(fill_all, alpha[picked], a[picked], s[picked], depth)


def math_layernorm(inputs: tuple) -> tuple:
    """the scalar loop in Python"""
    _, a, s, depth, picked = inputs
    return looped(fill_all, np.zeros_like(a[picked]), a[picked], s[picked], depth)


@functools.cache
def authors_module(name: str) -> types.ModuleType:
    """One file of the author's package, without those of it that need data, images and timm."""
    folder = harness.authors_code("transformers-apjn", "apjn")
    package = sys.modules.setdefault("apjn", types.ModuleType("apjn"))
    package.__path__ = [str(folder)]
    models = sys.modules.setdefault("apjn.models", types.ModuleType("apjn.models"))
    models.capture_X_list_and_logits = None  # asks for a timm model; the states are ours
    spec = importlib.util.spec_from_file_location(f"apjn.{name}", folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def authors_curves(inputs: tuple) -> tuple:
    """the author's simulate_recursions_full"""
    alpha, a, s, depth, picked = inputs
    run, found = authors_module("theory").simulate_recursions_full, []
    for each, attention, mlp in zip(*(x[picked].tolist() for x in (alpha, a, s)), strict=True):
        sizes = {"sigma_w1": mlp**0.5, "sigma_w2": 1.0, "sigma_o": attention**0.5, "sigma_v": 1.0, "alpha": each}
        found.append(run(depth, START, 10**18, "erf", **sizes))
    q, p, J, J_forward = (np.stack([one[name] for one in found]) for name in ("q", "p", "J", "J_forward"))
    return q, p, np.log(J), np.log(J_forward)


def same_curves(inputs: tuple, ours: tuple, peer: tuple) -> float:
    """The largest relative gap of q, both J and both 1 + K/J, and |dp|/q, over the curves that the peer ran."""
    picked = inputs[-1] if len(peer[0]) < len(ours[0]) else slice(None)
    q, p, backward, forward, *ratios = (x[picked] for x in ours)
    gaps = [np.abs(q / peer[0] - 1), np.abs(p - peer[1]) / q, np.abs(np.expm1(backward - peer[2]))]
    gaps += [np.abs(np.expm1(forward - peer[3]))]
    gaps += [np.abs((x - y) / (1 + y)) for x, y in zip(ratios, peer[4:], strict=True)]
    return within(float(max(gap.max() for gap in gaps)), AGREE)


def build_network(width: int, depth: int, num_tokens: int, num_probes: int) -> tuple:
    """A network with Derf, one prompt of equiangular tokens, and how many probes."""
    num_tokens = max(num_tokens, 2)  # the warm-up divides the sizes
    width = max(width, num_tokens)
    model = RandomTransformer(width=width, depth=depth, norm="erf", generator=stream(0, "bench network"))
    x = equiangular_tokens(num_tokens, width, 1.0, START, batch=(1,), generator=stream(0, "bench tokens"))
    return model, x, num_probes


def all_probes(inputs: tuple) -> torch.Tensor:
    """apjn_hutchinson, all probes in one backward pass"""
    model, x, num_probes = inputs
    return apjn_hutchinson(model, x, num_probes=num_probes, generator=stream(0, "bench probes")).J


def probes_of(inputs: tuple) -> torch.Tensor:
    """The probes that ``apjn_hutchinson`` draws from this stream, (1, probes, n, d)."""
    _, x, num_probes = inputs
    return torch.randn(1, num_probes, *x.shape[1:], generator=stream(0, "bench probes"), dtype=x.dtype)


def pass_per_probe(inputs: tuple) -> torch.Tensor:
    """one autograd.grad(scalar, states) per probe"""
    model, x, num_probes = inputs
    probe = probes_of(inputs)
    states = model.states(x.clone().requires_grad_())
    draws = [
        gradient_moments(torch.autograd.grad((states[-1] * probe[:, i]).sum(), states, retain_graph=True)).J
        for i in range(num_probes)
    ]
    return torch.stack(draws, dim=1)


def pass_of_copies(inputs: tuple) -> torch.Tensor:
    """one backward pass, the input copied for each probe"""
    model, x, num_probes = inputs
    probe = probes_of(inputs)
    states = model.states(x.unsqueeze(1).repeat(1, num_probes, 1, 1).requires_grad_())
    return gradient_moments(torch.autograd.grad((states[-1] * probe).sum(), states)).J


def authors_passes(inputs: tuple) -> torch.Tensor:
    """the author's Hutchinson loop, one backward pass per layer and probe"""
    model, x, num_probes = inputs
    estimate = authors_module("measurements")._estimate_backward_J_from_x_list_batched
    states = model.states(x.clone().requires_grad_())
    layers = range(len(states))
    found = estimate(states, l0_list=layers, j_num_draws=num_probes, j_normalize_by="Y")
    return torch.tensor([[found[b].item() if b < len(states) - 1 else 1.0 for b in layers]], dtype=torch.float64)


def same_norms(inputs: tuple, ours: torch.Tensor, peer: torch.Tensor) -> float:
    """The same probes: equal up to float32 rounding through 2 depth sublayers, each a sum of up to 4 width terms."""
    model = inputs[0]
    bound = 2 * model.depth * math.sqrt(4 * model.width) * torch.finfo(torch.float32).eps
    return within(float((ours / peer - 1).abs().max()), bound)


def as_many_layers(inputs: tuple, ours: torch.Tensor, peer: torch.Tensor) -> float:
    """Other probes: here the numbers of depths alone; ``same_mean_norms`` compares the rest."""
    require(ours.shape[-1] == peer.shape[-1], f"{ours.shape[-1]} and {peer.shape[-1]} depths")
    return 0.0


def same_mean_norms(ours: Callable, theirs: Callable) -> float:
    """The means of 200 probes at each depth of a small network, in standard errors of their difference."""
    inputs = (*build_network(16, 3, 6, 1)[:2], 200)
    with torch.random.fork_rng():
        torch.manual_seed(0)  # the author's code draws from torch's own generator
        means = theirs(inputs)
    draws = ours(inputs)
    error = (2 * draws.var(dim=1) / draws.shape[1]).sqrt()[:, :-1]
    return within(float(((draws.mean(dim=1) - means)[:, :-1].abs() / error).max()), FAR)


def curve_races(quick: bool) -> Iterator[Race]:
    num, depth, every = (200, 50, 10) if quick else (10_000, 1000, 500)
    sizes = {"num_curves": num, "depth": depth, "every": every}
    numba = importlib.util.find_spec("numba") is not None
    if not numba:
        print("numba is not installed: it is left out")
    for name, ours, fast, slow in (
        ("Derf", engine_erf, numba_erf, math_erf),
        ("LayerNorm", engine_layernorm, numba_layernorm, math_layernorm),
    ):
        peers = (Peer(run=slow, gap=same_curves, role="plain", target=300.0, every=every),)
        peers += (Peer(run=fast, gap=same_curves),) if numba else ()
        name = f"{name}, {num} curves of {depth} blocks"
        yield Race(name=name, build=build_curves, sizes=sizes, ours=ours, peers=peers)
    if harness.authors_code("transformers-apjn", "apjn"):
        author = Peer(run=authors_curves, gap=same_curves, role="author", target=300.0, every=every)
        name = f"Derf, many tokens, {num} curves of {depth} blocks"
        yield Race(name=name, build=build_curves, sizes=sizes, ours=engine_many_tokens, peers=(author,))


def estimator_races(quick: bool) -> Iterator[Race]:
    sizes = {"width": 32, "depth": 8, "num_tokens": 8, "num_probes": 2}
    if not quick:
        sizes = {"width": 192, "depth": 32, "num_tokens": 64, "num_probes": 4}
    name = "Jacobian norm at {depth} + 1 depths, width {width}, {num_tokens} tokens, {num_probes} probes".format(
        **sizes
    )
    peers = tuple(Peer(run=run, gap=same_norms) for run in (pass_per_probe, pass_of_copies))
    yield Race(name=name, build=build_network, sizes=sizes, ours=all_probes, peers=peers)
    if harness.authors_code("transformers-apjn", "apjn"):
        author = Peer(run=authors_passes, gap=as_many_layers, law=same_mean_norms, role="author", target=8.0)
        yield Race(
            name=f"{name}: the author's code",
            build=build_network,
            sizes=sizes,
            ours=all_probes,
            peers=(author,),
            rounds=6,
        )


def races(quick: bool) -> Iterator[Race]:
    yield from estimator_races(quick)
    yield from curve_races(quick)


if __name__ == "__main__":
    dtype = "float64 (curves), float32 (networks)"
    harness.command("signal_propagation", harness.contests(races), rounds=31, quick_rounds=6, dtype=dtype)
