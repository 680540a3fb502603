"""Topic codebooks: quantisers, what they must lose, and bins with a constant each."""

import math
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import minimize_scalar
from sklearn.cluster import KMeans

from derived.lab.rng import stream
from derived.papers.geometric_tax import KMeansCodebook, LloydMax, UniformQuantizer, codebooks, shannon_lower_bound
from derived.papers.geometric_tax.codebooks import Channel, Clouds, Regressogram, Windows
from derived.papers.geometric_tax.model.codebooks import (
    Codebook,
    LearnedCodebook,
    best_bins,
    gaussian_lloyd_max,
    regressogram_risk,
    zador_constant,
    zador_law,
)

EXPERIMENTS = (Clouds, Windows, Channel, Regressogram)
examples = settings(derandomize=True, max_examples=40, deadline=None, database=None)


def uniforms(*shape: int, name: str = "points") -> torch.Tensor:
    return torch.rand(*shape, generator=stream(0, name), dtype=torch.float64)


@examples
@given(st.integers(2, 50), st.floats(-10, 10), st.floats(0.1, 100), st.sampled_from(("middle", "left")))
def test_a_uniform_quantiser_answers_within_a_bin(K, low, width, rule):
    bins = UniformQuantizer(K, low, low + width, rule)
    x = low + width * uniforms(200)
    k = bins.encode(x)
    assert k.min() >= 0
    assert k.max() < K
    reach = bins.width / 2 if rule == "middle" else bins.width
    assert (bins.decode(k) - x).abs().max() <= reach * (1 + 1e-9)
    again = bins.encode(bins.decode(k) + (1e-9 * bins.width if rule == "left" else 0.0))
    assert (again == k).all()


def test_the_left_edge_costs_four_times_the_middle():
    """`gt-left-edge`: E (x - edge)^2 = w^2 / 3 against w^2 / 12."""
    u = (torch.arange(2**16, dtype=torch.float64) + 0.5) / 2**16
    for K in (2, 5, 17):
        bins = UniformQuantizer(K, 0.0, 1.0, "left")
        error = (u - bins.decode(bins.encode(u))).square().mean().item()
        assert abs(error / (bins.width**2 / 12) - 4) <= 1e-2
        middle = UniformQuantizer(K, 0.0, 1.0)
        assert abs((u - middle.decode(middle.encode(u))).square().mean().item() * 12 * K**2 - 1) <= 1e-2


def test_lloyd_max_by_brute_force():
    """Three codes for nine numbers: all ways to cut them."""
    x = torch.tensor([0.0, 0.1, 0.25, 0.9, 1.0, 1.4, 3.0, 3.1, 3.3], dtype=torch.float64)
    best = min(
        sum(float((part - part.mean()).square().sum()) for part in (x[:a], x[a:b], x[b:]))
        for a in range(1, 8)
        for b in range(a + 1, 9)
    )
    book = LloydMax.fit(x.flip(0), 3)
    assert abs(book.distortion(x).item() * 9 - best) <= 1e-12
    codes, cells = book.codes, book.encode(x)
    for k in range(3):
        assert abs(codes[k] - x[cells == k].mean()) <= 1e-12
    assert LloydMax.fit(x, 9).distortion(x) <= 1e-24


def test_k_means_against_scikit_learn():
    x = uniforms(400, 2)
    ours = KMeansCodebook.fit(x, 10, stream(0, "start"), sweeps=200)
    centre = ours.codes
    near = torch.cdist(x, centre).argmin(dim=1)
    assert (ours.encode(x) == near).all()
    for k in range(10):
        assert (x[near == k].mean(dim=0) - centre[k]).abs().max() <= 1e-9
    theirs = KMeans(10, init=centre.numpy(), n_init=1, max_iter=300).fit(x.numpy())
    assert abs(theirs.inertia_ / 400 - ours.distortion(x).item()) <= 1e-9
    best = KMeans(10, n_init=5, random_state=0).fit(x.numpy()).inertia_ / 400
    assert ours.distortion(x).item() <= 1.15 * best


def test_a_codebook_in_one_dimension_is_the_same_as_in_a_column():
    x = uniforms(300)
    flat = KMeansCodebook.fit(x, 6, stream(0, "start"))
    column = KMeansCodebook.fit(x[:, None], 6, stream(0, "start"))
    assert torch.allclose(flat.codes, column.codes.squeeze(dim=-1).sort().values)
    assert abs(flat.distortion(x) - column.distortion(x[:, None])) <= 1e-12
    assert Codebook(torch.tensor([0.0, 1.0])).encode(torch.tensor([0.5])).item() == 0


def test_running_means_learn_a_codebook():
    x = uniforms(3000, 2)
    learned = LearnedCodebook.fit(x, 16, stream(0, "start"))
    fitted = KMeansCodebook.fit(x, 16, stream(0, "start"))
    assert learned.K == 16
    assert learned.distortion(x) <= 1.25 * fitted.distortion(x)


@pytest.mark.parametrize("fit", [KMeansCodebook.fit, LearnedCodebook.fit, lambda x, K, _: LloydMax.fit(x[..., 0], K)])
def test_more_codes_than_points_are_refused(fit):
    x = torch.tensor([[0.0], [1.0], [1.0], [0.0]], dtype=torch.float64)
    with pytest.raises(ValueError, match="3 codes for 2 distinct points"):
        fit(x, 3, stream(0, "start"))
    with pytest.raises(ValueError, match="= nan; give a finite number"):
        fit(x * math.nan, 1, stream(0, "start"))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: UniformQuantizer(1, 0.0, 1.0), "K = 1"),
        (lambda: UniformQuantizer(4, 1.0, 1.0), "high - low = 0"),
        (lambda: UniformQuantizer(4, 0.0, 1.0, "right"), "rule = 'right'"),
        (lambda: UniformQuantizer(4, 0.0, 1.0).encode(torch.tensor([math.nan])), "= nan"),
        (lambda: zador_constant(4), "d = 4"),
        (lambda: shannon_lower_bound(0.0, 0.0, 4), "d = 0"),
    ],
)
def test_bad_codebooks_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@examples
@given(st.integers(1, 3), st.integers(1, 12), st.integers(0, 5))
def test_no_codebook_loses_less_than_shannon_says(d, K, seed):
    """`gt-shannon`: random and fitted codebooks on a cube; hexagons lose 1.37 times it."""
    x = torch.rand(600, d, generator=stream(seed, "cube", d, K), dtype=torch.float64)
    fresh = torch.rand(4000, d, generator=stream(seed, "fresh", d, K), dtype=torch.float64)
    bound = shannon_lower_bound(0.0, d, K)
    assert KMeansCodebook.fit(x, K, stream(seed, "start")).distortion(fresh) >= bound
    assert Codebook(x[:K]).distortion(fresh) >= bound
    assert zador_constant(d) >= shannon_lower_bound(0.0, d, 1)


def test_the_bound_of_a_gaussian_is_reached_by_its_own_test_channel():
    """d = 1: at rate ln K the distortion-rate function of N(0, 1) is K^-2, and the bound is equal to it."""
    for K in (1, 4, 64):
        assert abs(shannon_lower_bound(0.5 * math.log(2 * math.pi * math.e), 1, K) - K**-2.0) <= 1e-15


def test_the_high_resolution_laws():
    """`gt-zador`: Panter and Dite, two codes exactly, K^-2 on the line, and k-means in the plane near hexagons."""
    assert abs(gaussian_lloyd_max(2).distortion - (1 - 2 / math.pi)) <= 1e-12
    assert gaussian_lloyd_max(1).distortion == 1.0
    limit = math.sqrt(3) * math.pi / 2
    assert abs(512**2 * gaussian_lloyd_max(512).distortion / limit - 1) <= 0.01
    grid = np.linspace(-12, 12, 20001)
    norm = np.trapezoid(stats.norm.pdf(grid) ** (1 / 3), grid) ** 3
    assert abs(zador_constant(1) * norm / limit - 1) <= 1e-6
    x = uniforms(6000, 2)
    found = KMeansCodebook.fit(x, 64, stream(0, "start")).distortion(uniforms(6000, 2, name="fresh")).item()
    assert 1.0 <= found / zador_law(1.0, 2, 64) <= 1.15


def test_the_best_scalar_quantiser_by_lloyds_own_iteration():
    codes = stats.norm.ppf((np.arange(6) + 0.5) / 6)
    for _ in range(3000):
        edges = np.concatenate([[-np.inf], (codes[1:] + codes[:-1]) / 2, [np.inf]])
        codes = -np.diff(stats.norm.pdf(edges)) / np.diff(stats.norm.cdf(edges))
    assert np.abs(codes - gaussian_lloyd_max(6).codes).max() <= 1e-9


def test_lorenz_makes_few_bits(rows):
    """`gt-bits`: 0.906 nats per unit of time, and ln K times what K codes lose has no end but 0."""
    table = rows[Channel]
    assert abs(table["exponent"].mean() - 0.906) <= 4 * table["exponent"].std() / 8**0.5 + 0.03
    assert table["bits"].max() < 0.2
    assert (table["capacity"] == math.log2(256)).all()
    lost = [math.log(K) * gaussian_lloyd_max(K).distortion for K in (4, 16, 64, 256)]  # a / ln K would keep it
    assert all(fine < 0.25 * coarse for coarse, fine in pairwise(lost))


def test_the_risk_of_a_regressogram(rows):
    """`gt-regressogram`: the minimum by search, its exponent in N, and the simulated one near it."""
    for d in (1, 2, 3):
        found = minimize_scalar(
            lambda K, d=d: 2.0 * K ** (-2 / d) + 0.09 * K / 5000,
            bounds=(1, 1e5),
            method="bounded",
            options={"xatol": 1e-8},
        )
        assert abs(found.x / best_bins(2.0, 0.3, 5000, d) - 1) <= 1e-4
        assert abs(math.log(best_bins(2.0, 0.3, 8000, d) / best_bins(2.0, 0.3, 1000, d), 8) - d / (d + 2)) <= 1e-12
    A = math.pi**2 / 6  # int f'^2 / 12 of sin(2 pi x): 4 pi^2 / 24
    table = rows[Regressogram].groupby("N")[["K_best", "risk"]].mean()
    for N, row in table.iterrows():
        K = best_bins(A, 0.5, N)
        assert abs(row["K_best"] / K - 1) <= 0.15
        assert abs(row["risk"] / regressogram_risk(A, round(K), 0.5, N) - 1) <= 0.2
    part = rows[Regressogram].query("N == 2000 and group == 0")
    assert part["mean_risk"].idxmin() not in (part.index[0], part.index[-1])  # U-shaped
    assert part.query("K >= 8")["reconstruction"].is_monotonic_decreasing


def test_rows_of_codebooks(rows):
    clouds = rows[Clouds].dropna(subset="slb")
    assert (clouds["distortion"] >= clouds["slb"]).all()
    assert set(rows[Clouds]["codebook"]) == {"k-means", "learned"}
    windows = rows[Windows].set_index(["K", "replicate", "window"])["share"].unstack()
    assert (windows[1] == 1).all()
    assert (windows[9] < 0.95).all()


def test_misfits_of_exact_curves():
    """A power fits itself and not a / ln K + b; the other way round the ratio is zero."""
    K = np.array([8, 16, 32, 64, 128, 256])
    power = pd.DataFrame({"source": "lorenz", "codebook": "k-means", "K": K, "distortion": 5.0 / K})
    rival, own, n = codebooks.misfits(power)
    assert own <= 1e-12
    assert rival > 0.1
    assert n == 6
    other = power.assign(distortion=3 / np.log(K) + 1)
    assert codebooks.misfits(other)[0] <= 1e-12
    assert codebooks.misfits(other)[1] > 1e-3
    assert codebooks.rival_misfit(other).value < 1


def test_a_missing_number_decides_nothing(rows, lacks):
    lacks(codebooks.CLAIMS, "GT-6.a", rows[Clouds], "distortion", "source == 'lorenz' and codebook == 'k-means'")
