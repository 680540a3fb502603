"""Distortion and its formulas, jump and spread, and distances with their ranks."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg, spatial
from scipy.stats import rankdata, spearmanr

from derived.lab.rng import stream
from derived.papers.geometric_tax import jump_and_spread, procrustes_distortion, rdm_similarity
from derived.papers.geometric_tax.data.systems import lorenz
from derived.papers.geometric_tax.fits import Bins
from derived.papers.geometric_tax.model import metrics
from derived.papers.geometric_tax.model.metrics import noise_law, pooled_law

EPSILON = 2.0**-52
examples = settings(derandomize=True, max_examples=40, deadline=None, database=None)


def normals(*shape: int, name: str = "cloud") -> torch.Tensor:
    return torch.randn(*shape, generator=stream(0, name), dtype=torch.float64)


def orthogonal(p: int, name: str) -> torch.Tensor:
    return torch.linalg.qr(normals(p, p, name=name)).Q


@examples
@given(st.integers(1, 12), st.integers(0, 30), st.sampled_from((1e-12, 1e-6, 1e-3, 0.3, 10.0)))
def test_distortion_is_the_residual_after_the_best_rotation(p, more, size):
    """`gt-nuclear`: SciPy's rotation, and its other routine, which lets the scale be free, also for small D."""
    n = p + 1 + more
    X = normals(n, p)
    Y = 2 * X @ orthogonal(p, "turn") + size * normals(n, p, name="E") + 5
    x, y = ((each - each.mean(dim=0)).numpy() for each in (X, Y))
    x, y = x / np.linalg.norm(x), y / np.linalg.norm(y)
    residual = np.linalg.norm(x @ linalg.orthogonal_procrustes(x, y)[0] - y) / 2**0.5
    found = procrustes_distortion(X, Y).item()
    assert abs(found - residual) <= 1e-9 * max(found, 1e-6) + 64 * (n + p) * EPSILON
    if p > 1:
        disparity = spatial.procrustes(x, y)[2]
        assert abs(found**2 - (1 - math.sqrt(max(0.0, 1 - disparity)))) <= 64 * (n + p) * EPSILON


@examples
@given(st.integers(1, 6), st.floats(0.01, 100), st.floats(-5, 5))
def test_moves_of_either_cloud_change_nothing(p, scale, shift):
    """`gt-nuclear`: what it does not see."""
    X, Y = normals(20, p), normals(20, p) + 0.5 * normals(20, p, name="Y")
    found = procrustes_distortion(
        scale * X @ orthogonal(p, "Q") + shift, Y @ orthogonal(p, "R").flip(0) / scale - shift
    )
    assert abs(found - procrustes_distortion(X, Y)) <= 1e-9
    copy = procrustes_distortion(X, -scale * X @ orthogonal(p, "Q") + shift)
    assert copy <= 1e-12
    assert procrustes_distortion(X, Y + 3 * X.flip(0)) > 1e-3  # and it is no constant


@pytest.mark.parametrize("s", [0.02, 0.2, 2.0])
def test_independent_noise_of_any_covariance(s):
    """`gt-noise`: D for large n, and it is none of the formulas nearby."""
    k = torch.arange(1, 9).double()
    X, E = normals(6000, 8) / k, normals(6000, 8, name="E") * k
    E = E * (s * (1 / k**2).sum() / (k**2).sum()).sqrt()
    found = procrustes_distortion(X, X + E).item()
    law = noise_law(torch.tensor(s)).item()
    assert abs(found / law - 1) <= 0.02
    assert abs(found / noise_law(torch.tensor(2 * s)).item() - 1) > 0.1


@examples
@given(st.integers(1, 6), st.integers(0, 40), st.sampled_from((1e-3, 0.1, 1.0, 30.0)), st.booleans())
def test_the_noise_law_of_any_two_clouds(p, more, size, orthogonal_noise):
    """`gt-noise`: the gap is below three times what noise and cloud share; none where they share nothing."""
    n = 2 * p + 2 + more
    X, E = normals(n, p), size * normals(n, p, name="E")
    X, E = X - X.mean(dim=0), E - E.mean(dim=0)
    if orthogonal_noise:
        E = E - X @ torch.linalg.lstsq(X, E).solution
    s = (E.norm() / X.norm()).square()
    shared = torch.linalg.svdvals(X.mT @ E).sum() / (X.norm() * (X + E).norm())
    gap = (procrustes_distortion(X, X + E).square() - noise_law(s).square()).abs()
    assert gap <= 3 * shared + 1e-13
    assert gap <= 1e-12 or not orthogonal_noise


@pytest.mark.parametrize("share", [0.0, 0.02, 0.3])
def test_a_bias_of_the_displacements(share):
    """`gt-pooled` (b): sequences of 512 tokens, each with its own mean displacement; 4.0 times the formula at 30 %."""
    n, L, p, r, J = 2000, 512, 8, 0.1, 1e-3
    X, m = normals(n, p), normals(n, p, name="m") * (share * J / p) ** 0.5
    hits = torch.rand(n, L, generator=stream(0, "hits")).lt(r).sum(dim=1, keepdim=True).double()
    free = (hits * (1 - share) * J / p).sqrt() * normals(n, p, name="free")
    found = procrustes_distortion(X, X + (hits * m + free) / L)
    V = X.var(dim=0).sum()
    assert abs(found / pooled_law(r, L, torch.tensor(J), V, share * J) - 1) <= 0.03
    plain = found / pooled_law(r, L, torch.tensor(J), V)
    assert abs(plain / (1 + r * (L - 1) * share) ** 0.5 - 1) <= 0.03


def tokens(n, L, p, q, name):
    """Independent tokens of n sequences, each with its own mean, and the same with one token drawn again, q times."""
    level, own = normals(n, 1, p, name=f"level {name}"), normals(n, L, p, name=f"own {name}")
    states = 0.7 * level + own
    where = torch.arange(L) == torch.randint(L, (q, n, 1), generator=stream(0, "where", name))
    struck = states + where.unsqueeze(-1) * normals(q, n, 1, p, name=f"jump {name}")
    return states, struck


def test_jump_and_spread_by_loops():
    """`gt-pooled` (c): sums over sequences, strikes and positions, one number at a time."""
    states, struck = tokens(6, 4, 3, 3, "loops")
    found = jump_and_spread(states, struck)
    h, g = states.numpy(), struck.numpy()
    moves = np.array([[g[i, k].sum(axis=0) - h[k].sum(axis=0) for k in range(6)] for i in range(3)])
    assert found.J.item() == pytest.approx((moves**2).sum(axis=-1).mean())
    pairs = [(moves[a, k] * moves[b, k]).sum() for a, b in itertools.permutations(range(3), 2) for k in range(6)]
    assert found.bias.item() == pytest.approx(np.mean(pairs))
    assert found.V.item() == pytest.approx(np.cov(h.mean(axis=1).T, bias=True).trace())
    assert found.T.item() == pytest.approx(np.cov(h.reshape(-1, 3).T, bias=True).trace())


@examples
@given(st.integers(2, 9), st.integers(1, 6), st.floats(0.01, 50), st.floats(-9, 9))
def test_the_two_ratios_have_no_unit_and_the_spread_is_a_share(n, L, scale, shift):
    """`gt-pooled` (c): scaled, shifted and rotated states have the same J/T and V/T, and V/T is in [0, 1]."""
    states, struck = tokens(n, L, 3, 2, f"unit {n} {L}")
    turn = orthogonal(3, "turn")
    one, other = (
        jump_and_spread(states, struck),
        jump_and_spread(scale * states @ turn + shift, scale * struck @ turn + shift),
    )
    assert (one.J / one.T - other.J / other.T).abs() <= 1e-8 * (1 + shift**2 / scale**2) * one.J / one.T
    assert (one.V / one.T - other.V / other.T).abs() <= 1e-8 * (1 + shift**2 / scale**2)
    assert one.V <= one.T * (1 + 1e-12)
    if L == 1:
        assert pytest.approx(one.T.item()) == one.V


def test_the_distortion_of_struck_sequences_is_that_of_their_jump_over_their_spread():
    """`gt-pooled`: 20,000 sequences of which a tenth of the tokens moves, against D itself; V alone in place of T and V
    alone would be off."""
    n, L, p, r = 20_000, 16, 4, 0.1
    states = normals(n, 1, p, name="means") + normals(n, L, p, name="own")
    hit = torch.rand(n, L, 1, generator=stream(0, "hit")) < r
    noisy = states + hit * 0.8 * normals(n, L, p, name="moved")
    struck = states + (torch.arange(L) == 3).view(L, 1) * 0.8 * normals(n, 1, p, name="one")
    found = jump_and_spread(states, struck[None])
    D = procrustes_distortion(states.mean(dim=1), noisy.mean(dim=1)).item()
    ratio = (found.J / found.T) / (found.V / found.T)
    assert pytest.approx(math.sqrt(1 - (1 + r * ratio / L) ** -0.5), rel=0.02) == D
    assert abs(D / math.sqrt(r * found.J / found.T / (2 * L)) - 1) > 0.02


def test_positions_of_one_mean_leave_a_spread_of_one_over_L_and_others_less():
    """`gt-pooled` (c)."""
    independent = normals(40_000, 5, 2, name="independent")
    found = jump_and_spread(independent, independent[None])
    assert (found.V / found.T).item() == pytest.approx(1 / 5, rel=0.02)
    apart = independent + 2 * torch.arange(5.0).view(5, 1)
    found = jump_and_spread(apart, apart[None])
    assert (found.V / found.T).item() < 0.6 / 5


def test_strikes_of_other_sequences_are_refused():
    states = normals(4, 3, 2)
    for struck, words in ((states, "struck has the shape"), (states[None, :3], "beside states")):
        with pytest.raises(ValueError, match=words):
            jump_and_spread(states, struck)
    with pytest.raises(ValueError, match="= nan"):
        jump_and_spread(states, states[None] * math.nan)
    assert jump_and_spread(states, states[None]).bias.isnan()


def test_codes_without_training():
    """`gt-untrained`: a Lorenz path in 64 bins; random codes jump by twice their variance where the bin changes,
    however far, a linear code by its slope."""
    x = lorenz(60, 64, time=3.0, generator=stream(0, "paths"))[..., 0]
    bins = Bins.uniform(x.view(1, -1), 64)
    moved = x + 0.1 * (x.max() - x.min()) * normals(*x.shape, name="noise")
    k, other = (bins.encode(each[None])[0] for each in (x, moved))
    change = (k != other).double().mean()
    jumps = []
    for replicate in range(30):
        code = normals(64, 8, name=f"code {replicate}")
        jumps.append((code[other] - code[k]).square().sum(dim=-1).mean())
    assert torch.stack(jumps).mean().item() == pytest.approx(2 * 8 * change.item(), rel=0.1)
    line = torch.arange(64.0)[:, None] / 64 * normals(8, name="line")
    found = (line[other] - line[k]).square().sum(dim=-1).mean()
    slope = normals(8, name="line").square().sum() / 64**2
    assert found.item() == pytest.approx((slope * (other - k).double().square().mean()).item())


@pytest.mark.parametrize(
    ("X", "Y", "words"),
    [
        (torch.ones(5, 2), torch.zeros(5, 2), "X is a constant cloud"),
        (normals(5, 2), torch.full((5, 2), 0.1).double(), "Y is a constant cloud"),
        (normals(5, 2), normals(6, 2), r"Y has the shape \(6, 2\) beside X \(5, 2\)"),
        (normals(5, 2) * math.nan, normals(5, 2), "= nan"),
        (torch.ones(5, dtype=torch.long), torch.ones(5, dtype=torch.long), "dtype torch.int64; give a floating"),
    ],
)
def test_a_cloud_without_geometry_is_refused(X, Y, words):
    with pytest.raises(ValueError, match=words):
        procrustes_distortion(X, Y)


def test_fewer_points_than_dimensions_are_compared_in_the_space_that_they_span():
    """Three clouds of 5 points in 20 dimensions: D is that of their coordinates in a basis of what both span."""
    X = normals(5, 20)
    Y = X + 0.5 * normals(5, 20, name="E")
    basis = torch.linalg.qr(torch.cat([X - X.mean(dim=0), Y - Y.mean(dim=0)]).mT).Q
    low = [torch.cat([each @ basis, torch.zeros(5, 1)], dim=1) for each in (X, Y)]
    assert procrustes_distortion(X, Y) == pytest.approx(procrustes_distortion(*low).item(), abs=1e-12)
    turn = torch.linalg.qr(normals(20, 20, name="turn")).Q
    assert procrustes_distortion(X, 2 * X @ turn + 1) < 1e-7
    assert procrustes_distortion(X, Y) > 0.05


@examples
@given(st.lists(st.integers(-3, 3), min_size=2, max_size=12))
def test_ranks_and_spearman_are_scipys(values):
    x = np.array(values, dtype=float)
    y = np.sin(3 * np.arange(len(x)))
    assert metrics.ranks(torch.as_tensor(x)).tolist() == rankdata(x).tolist()
    found = metrics.spearman(torch.as_tensor(x), torch.as_tensor(y)).item()
    assert abs(found - (spearmanr(x, y).statistic if np.ptp(x) else 0.0)) <= 1e-12


@pytest.mark.parametrize("metric", metrics.METRICS)
def test_distances_are_scipys(metric):
    X = normals(12, 3)
    assert np.abs(metrics.rdm(X, metric).numpy() - spatial.distance.pdist(X.numpy(), metric)).max() <= 1e-12
    Y = X + 0.3 * normals(12, 3, name="E")
    twin = spearmanr(*(spatial.distance.pdist(each.numpy(), metric) for each in (X, Y))).statistic
    assert abs(rdm_similarity(X, Y, metric).item() - twin) <= 1e-12


GRID = torch.tensor([[i, j] for i in range(1, 6) for j in range(1, 6)], dtype=torch.float64)


def turned(angle):
    one, other = math.cos(angle), math.sin(angle)
    return GRID @ torch.tensor([[one, -other], [other, one]], dtype=torch.float64)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_rotation_changes_no_rank_of_a_grid(dtype):
    """Distances of a grid are equal in many pairs; the right value has their exact squares, which are integers."""
    Y = normals(25, 4, name="x")
    exact = [(GRID[i] - GRID[j]).square().sum().item() for i, j in itertools.combinations(range(25), 2)]
    right = spearmanr(exact, spatial.distance.pdist(Y.numpy())).statistic
    for k in range(6):
        found = rdm_similarity(turned(0.37 * k).to(dtype), Y.to(dtype), metric="euclidean").item()
        assert found == pytest.approx(right, abs=1e-12 if dtype is torch.float64 else 1e-6), k


def test_directions_that_are_equal_up_to_rounding_are_tied():
    """One-hot codes of unequal size: all cosine distances are one, so nothing is ranked."""
    X = torch.eye(8, dtype=torch.float64).repeat(2, 1) * (1 + normals(16, 1).abs())
    Q = orthogonal(8, "turn")
    assert set(metrics.ranks(metrics.rdm(X @ Q), metrics.rounding(X, "cosine")).tolist()) == {4.5, 64.5}


def test_values_without_a_gap_are_tied_by_cells_and_not_all_at_once():
    x = torch.linspace(0, 1, 1001, dtype=torch.float64)[torch.randperm(1001, generator=stream(0, "order"))]
    found = metrics.ranks(x, 0.0101)
    assert (found - metrics.ranks(x)).abs().max() <= 6
    assert found.unique().numel() > 80
    assert metrics.ranks(x, 2.0).unique().tolist() == [501.0]
