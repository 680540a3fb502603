"""Topic procrustes: distortion and its laws, distances, and the scores that measure nothing."""

import math
from itertools import pairwise, permutations

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg, spatial
from scipy.stats import rankdata, spearmanr

from derived.lab.rng import stream
from derived.papers.geometric_tax import procrustes, procrustes_distortion, procrustes_ratio, rdm_similarity
from derived.papers.geometric_tax.model import metrics
from derived.papers.geometric_tax.model.metrics import noise_law, pooled_law, unrelated_law
from derived.papers.geometric_tax.procrustes import Pooled, codes

EXPERIMENTS = (Pooled,)
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


def test_no_other_rotation_leaves_less():
    X, Y = normals(30, 4), normals(30, 4, name="Y")
    x, y = ((each - each.mean(dim=0)) for each in (X, Y))
    x, y = x / x.norm(), y / y.norm()
    best = procrustes_distortion(X, Y)
    others = [((x @ orthogonal(4, f"R{i}") - y).norm() / 2**0.5) for i in range(50)]
    assert all(other >= best for other in others)
    assert procrustes_distortion(X, Y, scale=False) <= (X - X.mean(dim=0) - Y + Y.mean(dim=0)).norm()


@examples
@given(st.integers(1, 6), st.floats(0.01, 100), st.floats(-5, 5))
def test_moves_of_either_cloud_change_nothing(p, scale, shift):
    """`gt-invariant`."""
    X, Y = normals(20, p), normals(20, p) + 0.5 * normals(20, p, name="Y")
    found = procrustes_distortion(
        scale * X @ orthogonal(p, "Q") + shift, Y @ orthogonal(p, "R").flip(0) / scale - shift
    )
    assert abs(found - procrustes_distortion(X, Y)) <= 1e-9
    copy = procrustes_distortion(X, -scale * X @ orthogonal(p, "Q") + shift)
    assert copy <= 1e-12
    assert procrustes_distortion(X, Y + 3 * X.flip(0)) > 1e-3  # and it is no constant


def test_batches_are_what_their_clouds_are():
    X, Y = normals(2, 3, 20, 4), normals(2, 3, 20, 4, name="Y")
    found = procrustes_distortion(X, Y)
    assert found.shape == (2, 3)
    assert (found[1, 2] - procrustes_distortion(X[1, 2], Y[1, 2])).abs() <= 1e-12


def test_unrelated_clouds_follow_the_quarter_circle():
    """`gt-unrelated`: at two ratios p / n, within 1 %, and far from 1."""
    for n, p in ((2000, 16), (2000, 128)):
        found = procrustes_distortion(normals(3, n, p), normals(3, n, p, name="Y")).mean().item()
        assert abs(found / unrelated_law(n, p) - 1) <= 0.01
        assert found < 0.97


@pytest.mark.parametrize("s", [0.02, 0.2, 2.0])
def test_independent_noise_of_any_covariance(s):
    """`gt-noise`: D for large n, and it is none of the near-by laws."""
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
    """`gt-bias`: sequences of 512 tokens, each with a mean displacement of its own; 4.0 times the law at 30 %."""
    n, L, p, r, J = 2000, 512, 8, 0.1, 1e-3
    X, m = normals(n, p), normals(n, p, name="m") * (share * J / p) ** 0.5
    hits = torch.rand(n, L, generator=stream(0, "hits")).lt(r).sum(dim=1, keepdim=True).double()
    free = (hits * (1 - share) * J / p).sqrt() * normals(n, p, name="free")
    found = procrustes_distortion(X, X + (hits * m + free) / L)
    V = X.var(dim=0).sum()
    assert abs(found / pooled_law(r, L, torch.tensor(J), V, share * J) - 1) <= 0.03
    plain = found / pooled_law(r, L, torch.tensor(J), V)
    assert abs(plain / (1 + r * (L - 1) * share) ** 0.5 - 1) <= 0.03


def test_the_law_of_small_noise():
    s = torch.tensor([1e-12, 1e-6, 1e-3], dtype=torch.float64)
    assert ((noise_law(s) / (s / 2).sqrt() - 1).abs() <= s + 1e-9).all()


def test_pooled_states(rows):
    """`gt-pooled`: three codes at all shares; the slope in r is a half."""
    table = rows[Pooled]
    mean = table.groupby(["code", "r"])[["D", "law"]].mean()
    assert ((mean["D"] / mean["law"] - 1).abs() <= 0.15).all()
    for _, part in mean.reset_index().groupby("code"):
        slope = np.polyfit(np.log(part["r"]), np.log(part["D"]), 1)[0]
        assert abs(slope - 0.5) <= 0.08
    J, V = torch.tensor(2.0), torch.tensor(3.0)
    assert pooled_law(0.1, 100, J, V) == noise_law(torch.tensor(0.1 * 2 / 300))


def test_codes_without_training(rows):
    """`gt-untrained`: random codes jump by twice their variance whenever the bin changes, a linear one by its slope."""
    table = rows[Pooled]
    random = table[table["code"] == "random"]
    assert (random["J"] / random["J_law"] - 1).abs().mean() <= 0.05
    assert (table[table["code"] == "linear"].eval("J / J_law - 1").abs() <= 1e-9).all()
    assert procrustes.without_training(table).value > 4
    linear = codes("linear", 8, 3, 0, 0)
    assert torch.allclose(linear.diff(dim=0), linear.diff(dim=0)[:1].expand(7, 3), atol=1e-12)


def test_the_ratio_of_errors_before_and_after_a_motion():
    X = normals(40, 3)
    motion = procrustes_ratio(X, 2 * X @ orthogonal(3, "Q") + 1)
    assert motion.aligned <= 1e-12
    assert motion.repaired >= 1 - 1e-12
    broken = procrustes_ratio(X, X + 0.01 * normals(40, 3, name="E"))
    assert broken.repaired < 0.3
    assert procrustes_ratio(X, X).ratio == 1
    # the author's own lines
    Y = X + 0.5 * normals(40, 3, name="E")
    x, y = ((each - each.mean(dim=0)).numpy() for each in (X, Y))
    turned = y @ linalg.orthogonal_procrustes(y / np.linalg.norm(y), x / np.linalg.norm(x))[0]
    aligned = x - turned * np.trace(x.T @ turned) / np.trace(turned.T @ turned)
    assert abs(procrustes_ratio(X, Y).aligned - np.linalg.norm(aligned) / 40**0.5) <= 1e-12


@pytest.mark.parametrize(
    ("X", "Y", "words"),
    [
        (torch.ones(5, 2), torch.zeros(5, 2), "X is a constant cloud"),
        (normals(5, 2), torch.full((5, 2), 0.1).double(), "Y is a constant cloud"),
        (normals(5, 2), normals(6, 2), "Y has n = 6, but X has n = 5"),
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
    padded = [torch.nn.functional.pad(each, (0, 0, 0, 0)) for each in low]
    assert procrustes_distortion(X, Y) == pytest.approx(procrustes_distortion(*padded).item(), abs=1e-12)
    turn = torch.linalg.qr(normals(20, 20, name="turn")).Q
    assert procrustes_distortion(X, 2 * X @ turn + 1) < 1e-7
    assert procrustes_distortion(X, Y) > 0.05


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_compared_in_single(dtype):
    X = normals(40, 3)
    Y = X + 0.5 * normals(40, 3, name="E")
    found = procrustes_distortion(X.to(dtype), Y.to(dtype))
    assert found.dtype == torch.float32
    assert abs(found.item() - procrustes_distortion(X, Y).item()) < 20 * torch.finfo(dtype).eps


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


def test_steps_along_a_path():
    path = normals(6, 4)
    for metric in metrics.METRICS:
        twin = [spatial.distance.pdist([a, b], metric)[0] for a, b in pairwise(path.numpy())]
        assert np.abs(metrics.lipschitz_profile(path, metric).numpy() - twin).max() <= 1e-12
    for bad in ({"path": path[:1]}, {"path": path, "metric": "city"}):
        with pytest.raises(ValueError, match=r"steps|metric"):
            metrics.lipschitz_profile(**bad)


def test_unmatched_entries_average_to_zero():
    """`gt-split`: over all orders of the second set, on two kinds of cloud; the same points matched score one."""
    orders = torch.tensor([*permutations(range(5))])
    first = torch.arange(5).expand(len(orders), 5)
    for cloud in (normals(12, 3), normals(12, 3) * torch.tensor([5.0, 1.0, 0.1]) + 3):
        pairs = torch.stack([first, 5 + orders], dim=1)
        assert metrics.sample_split(cloud, pairs).abs() <= 1e-13
        assert metrics.anchor_stability(cloud, torch.tensor([10, 11]), pairs).abs() <= 1e-13
        alone = torch.stack([first[:1], first[:1]], dim=1)
        assert abs(metrics.sample_split(cloud, alone) - 1) <= 1e-12
        assert abs(metrics.anchor_stability(cloud, torch.tensor([10, 11]), alone) - 1) <= 1e-12


def test_a_half_has_two_coordinates_at_least():
    assert metrics.random_halves(4, 1, stream(0, "halves")).shape == (1, 2, 2)
    with pytest.raises(ValueError, match="size = 3"):
        metrics.random_halves(3, 1, stream(0, "halves"))


def test_a_rotation_moves_feature_split():
    """`gt-rotation`, `gt-shape`: every distance is kept."""
    halves = metrics.random_halves(24, 10, stream(0, "halves"))
    for i in range(3):
        cloud = 0.02 * normals(100, 24, name=f"small {i}")
        cloud[:, :3] += normals(100, 3, name=f"large {i}")
        turned = cloud @ orthogonal(24, f"turn {i}")
        kept = metrics.rdm(turned, "euclidean") / metrics.rdm(cloud, "euclidean")
        assert (kept - 1).abs().max() <= 1e-10
        assert metrics.feature_split(cloud, halves) < 0.3
        assert metrics.feature_split(turned, halves) > 0.7


def test_the_scores_are_the_authors_lines():
    """The algorithm of shesha-geometry 0.2.27, with the same random choices."""
    X, g = normals(60, 8), np.random.default_rng(3)
    halves, subsets = [], []
    for _ in range(5):
        order = g.permutation(8)
        halves.append(np.stack([order[:4], order[4:]]))
        subsets.append(np.stack([g.choice(60, 24, replace=False) for _ in range(2)]))

    def score(a: np.ndarray, b: np.ndarray) -> float:
        return spearmanr(spatial.distance.pdist(a, "cosine"), spatial.distance.pdist(b, "cosine")).statistic

    x = X.numpy()
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    split = np.mean([score(unit[:, a], unit[:, b]) for a, b in halves])
    sample = np.mean([score(x[a], x[b]) for a, b in subsets])
    assert abs(metrics.feature_split(X, torch.tensor(np.array(halves))).item() - split) <= 1e-9
    assert abs(metrics.sample_split(X, torch.tensor(np.array(subsets))).item() - sample) <= 1e-9
    anchors, rest = np.arange(10), g.permutation(np.arange(10, 60))
    sets = np.stack([rest[:25], rest[25:]])[None]
    ranked = [np.apply_along_axis(rankdata, 1, spatial.distance.cdist(x[anchors], x[s], "cosine")) for s in sets[0]]
    found = metrics.anchor_stability(X, torch.as_tensor(anchors), torch.tensor(sets)).item()
    assert abs(found - spearmanr(ranked[0].ravel(), ranked[1].ravel()).statistic) <= 1e-9
    Y = X + 1
    shift = (Y - X.mean(dim=0)).numpy()
    cosines = shift @ shift.mean(axis=0) / np.linalg.norm(shift, axis=1) / np.linalg.norm(shift.mean(axis=0))
    assert abs(metrics.perturbation_coherence(X, Y).item() - cosines.mean()) <= 1e-12
    assert abs(metrics.shift_magnitude(X, Y).item() - 8**0.5) <= 1e-12


def test_scores_refuse():
    with pytest.raises(ValueError, match="at least three points"):
        rdm_similarity(normals(2, 3), normals(2, 3))
    with pytest.raises(ValueError, match="no direction"):
        rdm_similarity(torch.eye(3).double() - torch.diag(torch.tensor([1.0, 0, 0])).double(), normals(3, 3))
    with pytest.raises(ValueError, match="Y has n = 5, but X has n = 4"):
        rdm_similarity(normals(4, 3), normals(5, 3))


def test_measures_on_tables_with_known_answers():
    table = pd.DataFrame({"code": ["random", "linear"] * 4, "r": [0.1, 0.1] * 2 + [0.2, 0.2] * 2})
    table = table.assign(replicate=[0, 0, 1, 1] * 2, D=[9.0, 1.0, 9.0, 1.0, 8.0, 2.0, 4.0, 1.0])
    assert procrustes.without_training(table).value == pytest.approx(4.0)


def test_the_two_subsets_of_a_split_are_independent_draws_without_repetition():
    """Of 20 numbers 6 in each: a subset has no number twice, and two share 6 * 6 / 20 in the mean (hypergeometric)."""
    found = metrics.random_subsets(20, 0.3, 4000, stream(0, "subsets"))
    assert found.shape == (4000, 2, 6)
    held = torch.zeros(4000, 2, 20).scatter_(-1, found, 1.0)
    assert (held.sum(dim=-1) == 6).all()
    shared = held.prod(dim=1).sum(dim=-1)
    variance = 6 * 0.3 * 0.7 * 14 / 19
    assert abs(shared.mean().item() - 1.8) < 4 * (variance / 4000) ** 0.5
    assert abs(shared.var().item() / variance - 1) < 0.1
    assert (held.mean(dim=(0, 1)) - 0.3).abs().max() < 4 * (0.21 / 8000) ** 0.5
