"""Races of the geometric tax: ``python bench/geometric_tax.py [--quick] [--threads 1] [--output FILE]``.

1. Lorenz paths in bulk: 10,000 starts on the attractor, one unit of time, 20 kept points, float64. Everybody has the
   coarsest setting of its own that meets the same largest error, 1e-3 of coordinates of size 20, against a path of 4
   times as many steps; what it then misses is printed beside its time. Peers: numba, a compiled loop, parallel over
   paths, the method of Runge and Kutta as ours; diffrax, jitted, fixed steps of Dopri8 over all paths at once;
   torchdiffeq's fixed rk4. scipy's solve_ivp (DOP853), one path after the other, is a witness and a row for scale: it
   does one path in ``every``. Ours is the steps between two kept points, compiled by torch into one pass over the
   paths; without compiler: a row for scale.

2. The metrics: RDM similarity (cosine distances of all pairs, correlation of their ranks), Procrustes distortion (which
   is LAPACK's work for all and heads no race), feature split with the same random halves, and the cosine steps along a
   walk, float64. Peers: the routines of SciPy and scikit-learn, put together as their documentation says; the author's
   package ``shesha-geometry`` from 0.3.0 on is a row for scale (before, its Procrustes is another number).

3. The author's notebooks on our inputs, where there is a clone of them (``geometric_tax_author``). Rows for scale:
   their field of velocities in the solver that they call, at a tolerance that meets the error, their Procrustes
   distance and their cosine steps.

Before anything is timed every path must agree with the reference, and every number of a metric with ours to 1e-9.
numba, diffrax, torchdiffeq and shesha are imported where they are used.
"""

from collections.abc import Callable, Iterator
from functools import cache, lru_cache, partial
from importlib.util import find_spec

import harness
import torch
from geometric_tax_author import TAX, author_distortion, author_steps, check_notebooks, notebook, number

from derived.lab.rng import stream
from derived.papers.geometric_tax.data.systems import lorenz as lorenz_paths
from derived.papers.geometric_tax.model import metrics
from derived.papers.geometric_tax.model.integrators import lorenz, rk4, rk4_coordinates

SPAN, KEPT, AGREE = 1.0, 20, 1e-3
STEPS = 180  # of RK4, ours and numba's: the coarsest multiple of KEPT that meets AGREE
FUSED = STEPS // KEPT  # steps that are compiled together: from one kept point to the next
FINER = 4  # times as many steps for the reference, whose error is 4^4 times smaller


def build(paths: int) -> torch.Tensor:
    """Starts on the attractor, (3, paths)."""
    return lorenz_paths(max(paths, 2), 2, time=0.01, burn_in=5.0, generator=stream(0, "bench"))[:, -1].T.contiguous()


def field(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Lorenz' system with its coordinates apart."""
    return 10.0 * (y - x), x * (28.0 - z) - y, x * y - 8 / 3 * z


@cache
def some_steps() -> Callable:
    """FUSED steps in one pass over the paths, compiled by torch where it has a compiler."""

    def steps(*state: torch.Tensor) -> tuple[torch.Tensor, ...]:
        for _ in range(FUSED):
            state = rk4_coordinates(field, state, SPAN / STEPS)
        return state

    return torch.compile(steps, fullgraph=True, dynamic=True)  # one kernel for all sizes


def ours_rk4(start: torch.Tensor) -> torch.Tensor:
    """rk4_coordinates, all paths at once, compiled"""
    kept, state = [], tuple(each.clone() for each in start)
    for _ in range(KEPT):
        state = some_steps()(*state)
        kept.extend(state)
    return torch.stack(kept).view(KEPT, *start.shape)


def eager_rk4(start: torch.Tensor) -> torch.Tensor:
    """rk4, all paths at once, as it is called without a compiler"""
    return rk4(lorenz, start, dt=SPAN / STEPS, steps=STEPS, every=STEPS // KEPT)[1:]


@cache
def compiled() -> Callable:
    """numba's loop: paths in parallel, time inside."""
    import numba
    import numpy as np

    @numba.njit(inline="always")
    def velocity(x, y, z):
        return 10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z

    @numba.njit(parallel=True, fastmath=True)
    def loop(start, kept, every, h):
        paths = start.shape[1]
        out = np.empty((kept, 3, paths))
        for n in numba.prange(paths):
            x, y, z = start[0, n], start[1, n], start[2, n]
            for k in range(kept):
                for _ in range(every):
                    a, b, c = velocity(x, y, z)
                    d, e, f = velocity(x + h / 2 * a, y + h / 2 * b, z + h / 2 * c)
                    g, i, j = velocity(x + h / 2 * d, y + h / 2 * e, z + h / 2 * f)
                    p, q, r = velocity(x + h * g, y + h * i, z + h * j)
                    x += h / 6 * (a + 2 * (d + g) + p)
                    y += h / 6 * (b + 2 * (e + i) + q)
                    z += h / 6 * (c + 2 * (f + j) + r)
                out[k, 0, n], out[k, 1, n], out[k, 2, n] = x, y, z
        return out

    return loop


def with_numba(start: torch.Tensor) -> torch.Tensor:
    """numba, a compiled loop over paths"""
    import numba

    numba.set_num_threads(torch.get_num_threads())
    return torch.from_numpy(compiled()(start.numpy(), KEPT, STEPS // KEPT, SPAN / STEPS))


@cache
def jitted() -> Callable:
    """diffrax, jitted: fixed steps of Dopri8."""
    import diffrax
    import jax
    from jax import numpy

    jax.config.update("jax_enable_x64", True)

    def velocity(t, s, args):
        x, y, z = s
        return numpy.stack([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8 / 3 * z])

    @jax.jit
    def solve(start):
        times = diffrax.SaveAt(ts=numpy.linspace(SPAN / KEPT, SPAN, KEPT))
        term, solver = diffrax.ODETerm(velocity), diffrax.Dopri8()
        return diffrax.diffeqsolve(term, solver, 0.0, SPAN, SPAN / KEPT, start, saveat=times).ys

    return solve


def with_diffrax(start: torch.Tensor) -> torch.Tensor:
    """diffrax, Dopri8, jitted"""
    import numpy as np

    return torch.from_numpy(np.array(jitted()(start.numpy())))


def with_torchdiffeq(start: torch.Tensor) -> torch.Tensor:
    """torchdiffeq.odeint, rk4"""
    from torchdiffeq import odeint

    times = torch.linspace(0, SPAN, KEPT + 1, dtype=start.dtype)
    with torch.no_grad():
        return odeint(lambda t, s: lorenz(s), start, times, method="rk4", options={"step_size": SPAN / STEPS})[1:]


def solved(start: torch.Tensor, every: int, velocity: Callable, **options) -> torch.Tensor:
    """One path in ``every`` by scipy.integrate.solve_ivp."""
    import numpy as np
    from scipy.integrate import solve_ivp

    times = np.linspace(SPAN / KEPT, SPAN, KEPT)
    some = start[:, ::every].numpy().T
    each = [solve_ivp(velocity, (0, SPAN), one, t_eval=times, **options).y.T for one in some]
    return torch.from_numpy(np.stack(each, axis=-1))


def one_by_one(start: torch.Tensor, every: int) -> torch.Tensor:
    """scipy.integrate.solve_ivp, DOP853, path by path"""
    return solved(start, every, lambda t, s: field(*s), method="DOP853", rtol=1e-7, atol=1e-7)


def author_paths(start: torch.Tensor, every: int) -> torch.Tensor:
    """the author's velocities in solve_ivp, RK45, at a finer tolerance, path by path"""
    return solved(start, every, notebook(TAX)._lorenz_rhs, method="RK45", max_step=0.05, rtol=3e-7, atol=3e-7)


@lru_cache(maxsize=4)
def reference(start: torch.Tensor, every: int) -> torch.Tensor:
    """One path in ``every``, by many more steps; a tensor is known by what it is, not by its numbers."""
    start = start[:, ::every].contiguous()
    return rk4(lorenz, start, dt=SPAN / STEPS / FINER, steps=FINER * STEPS, every=FINER * STEPS // KEPT)[1:]


def error(start: torch.Tensor, found: torch.Tensor) -> float:
    """The largest error of a coordinate over all kept points; a contender may do one path in ``every``."""
    every = -(-start.shape[1] // found.shape[-1])
    there = reference(start, every)
    if found.shape != there.shape:
        raise SystemExit(f"paths of shape {tuple(found.shape)}; there should be {tuple(there.shape)}")
    return float((found - there).abs().max())


def same(start: torch.Tensor, ours: torch.Tensor, peer: torch.Tensor) -> float:
    """The larger error of the two; every number of both must be near the other's, where both have the path."""
    worst = max(error(start, ours), error(start, peer))
    every = -(-start.shape[1] // peer.shape[-1])
    apart = float((ours[..., ::every] - peer).abs().max())
    if not (worst <= AGREE and apart <= 2 * AGREE):
        raise SystemExit(f"paths differ by {apart:.3g} and miss the reference by {worst:.3g}; allowed is {AGREE:g}")
    return worst


METRIC, SPLITS = 1e-9, 10


def clouds(points: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A cloud and its copy with noise, (n, p) each."""
    X = torch.randn(max(points, 8), max(width, 4), generator=stream(0, "cloud"), dtype=torch.float64)
    return X, X + 0.3 * torch.randn(*X.shape, generator=stream(0, "noise"), dtype=torch.float64)


def ours_similarity(both: tuple) -> torch.Tensor:
    """rdm_similarity"""
    return number(metrics.rdm_similarity(*both))


def scipy_similarity(both: tuple) -> torch.Tensor:
    """scipy: pdist and spearmanr"""
    from scipy.spatial.distance import pdist
    from scipy.stats import spearmanr

    return number(spearmanr(*(pdist(each.numpy(), "cosine") for each in both)).statistic)


def shesha_similarity(both: tuple) -> torch.Tensor:
    """shesha-geometry: rdm_similarity"""
    import shesha

    return number(shesha.rdm_similarity(*(each.numpy() for each in both), metric="cosine"))


def ours_distortion(both: tuple) -> torch.Tensor:
    """procrustes_distortion"""
    return number(metrics.procrustes_distortion(*both))


def scipy_distortion(both: tuple) -> torch.Tensor:
    """scipy: orthogonal Procrustes"""
    import numpy as np
    from scipy.linalg import orthogonal_procrustes

    x, y = (each.numpy() - each.numpy().mean(axis=0) for each in both)
    x, y = x / np.linalg.norm(x), y / np.linalg.norm(y)
    _, total = orthogonal_procrustes(x, y)  # its second answer is the sum of the singular values
    return number((1 - total) ** 0.5)


def spatial_distortion(both: tuple) -> torch.Tensor:
    """scipy: procrustes in its spatial part"""
    from scipy.spatial import procrustes

    return number((1 - (1 - procrustes(*(each.numpy() for each in both))[2]) ** 0.5) ** 0.5)


def shesha_distortion(both: tuple) -> torch.Tensor:
    """shesha-geometry: procrustes_similarity"""
    from shesha.sim import procrustes_similarity

    return number((1 - procrustes_similarity(*(each.numpy() for each in both))) ** 0.5)


def ours_steps(both: tuple) -> torch.Tensor:
    """lipschitz_profile"""
    return metrics.lipschitz_profile(both[1], "cosine")


def sklearn_steps(both: tuple) -> torch.Tensor:
    """scikit-learn: paired cosine distances"""
    from sklearn.metrics.pairwise import paired_cosine_distances

    walk = both[1].numpy()
    return torch.from_numpy(paired_cosine_distances(walk[:-1], walk[1:]))


def halves(width: int) -> torch.Tensor:
    """The random halves that shesha draws with seed 0."""
    import numpy as np

    g = np.random.default_rng(0)
    orders = np.stack([g.permutation(width) for _ in range(SPLITS)])
    return torch.from_numpy(orders[:, : width // 2 * 2].reshape(SPLITS, 2, -1))


def ours_split(both: tuple) -> torch.Tensor:
    """feature_split"""
    return number(metrics.feature_split(both[0], halves(both[0].shape[1])))


def scipy_split(both: tuple) -> torch.Tensor:
    """scipy: pdist and spearmanr, split by split"""
    import numpy as np

    x = both[0]
    found = [float(scipy_similarity((x[:, a], x[:, b]))) for a, b in halves(x.shape[1])]
    return number(np.mean(found))


def shesha_split(both: tuple) -> torch.Tensor:
    """shesha-geometry: feature_split"""
    import shesha

    options = {"n_splits": SPLITS, "metric": "cosine", "seed": 0, "max_samples": None}
    return number(shesha.feature_split(both[0].numpy(), **options))


def equal(_: tuple, ours: torch.Tensor, peer: torch.Tensor) -> float:
    """The distance of two numbers."""
    return harness.within(float((ours - peer).abs().max()), METRIC)


def metric_races(quick: bool) -> Iterator[harness.Race]:
    cases = {
        "RDM similarity": ((2000, 256), (200, 32), ours_similarity, (scipy_similarity,), shesha_similarity),
        "Procrustes": (
            (10_000, 256),
            (300, 32),
            ours_distortion,
            (scipy_distortion, spatial_distortion),
            shesha_distortion,
        ),
        "feature split": ((500, 256), (60, 32), ours_split, (scipy_split,), shesha_split),
        "cosine steps": ((10_000, 256), (300, 32), ours_steps, (sklearn_steps,), None),
    }
    by_notebook = {
        "Procrustes": author_distortion,
        "cosine steps": author_steps,
    }
    for name, (full, small, ours, theirs, author) in cases.items():
        points, width = small if quick else full
        why = "The singular values of one matrix, by LAPACK for all." if name == "Procrustes" else ""
        peers = [harness.Peer(run=run, gap=equal, why=why) for run in theirs]
        if author and find_spec("shesha"):
            peers.append(harness.Peer(run=author, gap=equal, role="author"))
        if name in by_notebook and notebook(TAX):
            peers.append(harness.Peer(run=by_notebook[name], gap=equal, role="author"))
        yield harness.Race(
            name=f"{name}, {points:,} points in {width} dimensions",
            build=clouds,
            sizes={"points": points, "width": width},
            ours=ours,
            peers=tuple(peers),
        )


def races(quick: bool) -> Iterator[harness.Race]:
    if notebook(TAX):
        check_notebooks(AGREE)
    needs = {"numba": with_numba, "diffrax": with_diffrax, "torchdiffeq": with_torchdiffeq}
    peers = [harness.Peer(run=run, gap=same) for name, run in needs.items() if find_spec(name)]
    every = 10 if quick else 100
    scipy = partial(one_by_one, every=every)
    scipy.__doc__ = one_by_one.__doc__
    peers.append(harness.Peer(run=eager_rk4, gap=same, role="plain"))
    peers.append(harness.Peer(run=scipy, gap=same, role="plain", every=every))
    if notebook(TAX):
        author = partial(author_paths, every=every)
        author.__doc__ = author_paths.__doc__
        peers.append(harness.Peer(run=author, gap=same, role="author", every=every))
    yield harness.Race(
        name=f"Lorenz paths, one unit of time to within {AGREE:g}",
        build=build,
        sizes={"paths": 200 if quick else 10_000},
        ours=ours_rk4,
        peers=tuple(peers),
        error=error,
    )
    yield from metric_races(quick)


if __name__ == "__main__":
    harness.command("geometric_tax", harness.contests(races), rounds=9, quick_rounds=3, dtype="float64")
