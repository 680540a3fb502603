"""Cost, kernels, the two parts of a score table, what a head cannot do."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from random_tensors import TOLERANCE, normal
from scipy import optimize

from derived.papers.hierarchical_kernel.model import theory
from derived.papers.hierarchical_kernel.model.attention import causal_mask, mix, score_tables
from derived.papers.hierarchical_kernel.model.layers import HKTAttention
from derived.papers.hierarchical_kernel.model.pyramid import pyramid
from derived.papers.hierarchical_kernel.model.theory import (
    attention_flops,
    bilinear_form,
    entry_ratio,
    inertia,
    reaching_tokens,
    symmetric_antisymmetric,
    tied_keys,
)

examples = settings(derandomize=True, max_examples=25, deadline=None, database=None)
EPS = torch.finfo(torch.float64).eps


def least(M: torch.Tensor) -> float:
    """The least eigenvalue of the symmetric part over the largest modulus, by numpy."""
    eigenvalues = np.linalg.eigvalsh((M + M.mT).numpy() / 2)
    return eigenvalues[0] / np.abs(eigenvalues).max()


def mixed_scores(X: torch.Tensor, M: torch.Tensor, alpha: torch.Tensor, pooling: str = "average") -> torch.Tensor:
    """S from the forms M (L, d, d), not from projections."""
    tables = [rows @ form @ rows.mT for rows, form in zip(pyramid(X, len(M), pooling), M, strict=True)]
    return mix(tables, alpha)


def test_products_of_a_layer():
    """Against a count of every product that the layer's matrix multiplications make, and the worked ratios."""
    for T, d, ratio in ((512, 64, 1.275), (512, 128, 325 / 240), (1024, 64, 11 / 9), (1024, 128, 1.275)):
        cost = [attention_flops(T, d, d, levels) for levels in (3, 1)]
        assert cost[0].total / cost[1].total == pytest.approx(ratio, rel=1e-12)
        both = [each.scores + each.averaging for each in cost]
        assert both[0] / both[1] == (1 + 21 / 16) / 2  # 1.15625
    T, d, d_k, L = 10, 3, 2, 3
    rows, products = pyramid(torch.zeros(T, 1), L), 0
    sizes = [len(each) for each in rows]
    products += sum(2 * n * d * d_k + n * n * d_k for n in sizes) + sum(2 * n * d * d for n in sizes[1:])
    products += 2 * T * d * d + T * T * d
    assert attention_flops(T, d, d_k, L).total == products


@examples
@given(st.integers(4, 14), st.integers(1, 4), st.integers(1, 3), st.sampled_from(["average", "block"]))
def test_psd_forms_make_a_kernel(T, d, levels, pooling):
    """`hkt-psd`: sym(M_l) psd on every level makes sym(S) psd, and exp(sym(S)) entrywise as well."""
    skew, root = normal(levels, d, d, name="skew"), normal(levels, d, d, name="root")
    M = root @ root.mT + skew - skew.mT
    alpha = torch.softmax(normal(levels, name="a"), dim=-1)
    S = symmetric_antisymmetric(mixed_scores(normal(T, d), M, alpha, pooling)).symmetric
    scaled = S / S.abs().max()
    for table in (scaled, scaled.exp()):
        eigenvalues = torch.linalg.eigvalsh(table)
        assert float(eigenvalues[0]) > -TOLERANCE * float(eigenvalues[-1])


@examples
@given(st.integers(1, 4), st.integers(0, 3), st.integers(2, 4))
def test_one_bad_level_is_found_by_some_input(d, bad, levels):
    """`hkt-psd`: tokens that show the bad level its negative direction and every other level zero."""
    bad %= levels
    M = torch.eye(d, dtype=torch.float64).repeat(levels, 1, 1)
    M[bad, 0, 0] = -0.01
    alpha = torch.full((levels,), 1 / levels, dtype=torch.float64)
    T, targets = 2**levels, torch.zeros(levels, d, dtype=torch.float64)
    targets[bad, 0] = 1.0
    for i in range(2 ** (levels - 1), T):
        X = reaching_tokens(targets, T, i)
        for l, rows in enumerate(pyramid(X, levels)):
            torch.testing.assert_close(rows[i >> l], targets[l], rtol=0, atol=TOLERANCE)
        value = mixed_scores(X, M, alpha)[i, i]
        assert float(value) == pytest.approx(-0.01 / levels, rel=1e-9)
    with pytest.raises(ValueError, match="give 2"):
        reaching_tokens(targets, T, 2 ** (levels - 1) - 1)


@examples
@given(st.integers(1, 6), st.integers(0, 8))
def test_inertia_of_generic_heads(d_k, more):
    """`hkt-inertia`: 2 d_k <= d gives d_k positive and d_k negative eigenvalues; numpy's solver says the same."""
    d = 2 * d_k + more
    W_Q, W_K = normal(20, d, d_k, name="Q"), normal(20, d, d_k, name="K")
    M = bilinear_form(W_Q, W_K)
    found = inertia(M)
    assert set(found.positive.tolist()) == set(found.negative.tolist()) == {d_k}
    assert set(found.zero.tolist()) == {d - 2 * d_k}
    eigenvalues = np.linalg.eigvalsh((M + M.mT).numpy() / 2)
    assert np.all(np.sum(eigenvalues < -1e-12, axis=1) == d_k)


def test_inertia_in_two_dimensions():
    """`hkt-inertia` at d = 2, d_k = 1: eigenvalues (q . k +- |q||k|) / 2; `hkt-tied`: psd for k = r q, r >= 0."""
    q, k = normal(50, 2, 1, name="q"), normal(50, 2, 1, name="k")
    product, size = (q * k).sum(dim=(1, 2)), q.norm(dim=1)[:, 0] * k.norm(dim=1)[:, 0]
    eigenvalues = torch.linalg.eigvalsh(symmetric_antisymmetric(bilinear_form(q, k)).symmetric)
    torch.testing.assert_close(eigenvalues[:, 0], (product - size) / 2, rtol=0, atol=TOLERANCE)
    torch.testing.assert_close(eigenvalues[:, 1], (product + size) / 2, rtol=0, atol=TOLERANCE)
    assert float(eigenvalues[:, 0].max()) < -1e-6
    along = normal(50, 1, 1, name="r") * q
    tied = inertia(bilinear_form(q, along)).negative == 0
    assert tied.tolist() == ((q * along).sum(dim=(1, 2)) >= 0).tolist()
    assert 0 < tied.sum() < 50


@examples
@given(st.integers(1, 5), st.integers(0, 4))
def test_tied_keys_and_no_others(d_k, more):
    """`hkt-tied`: W_K = W_Q R with R + R^T psd passes; R with a negative direction, or keys outside col W_Q, fail."""
    d = d_k + more
    W_Q, skew, root = normal(d, d_k, name="Q"), normal(d_k, d_k, name="s"), normal(d_k, d_k, name="r")
    W_K = tied_keys(W_Q, skew, root)
    R = torch.linalg.lstsq(W_Q, W_K).solution
    assert float(torch.linalg.eigvalsh(R + R.mT)[0]) > -1e-9 * float(R.abs().max())
    assert least(bilinear_form(W_Q, W_K)) > -1e-11  # d_k products one in another, W_Q far from singular
    bad = W_Q @ (skew - skew.mT - 1e-3 * torch.eye(d_k, dtype=torch.float64))
    assert least(bilinear_form(W_Q, bad)) < -1e-6
    if more:
        outside = torch.linalg.svd(W_Q).U[:, -1:]
        assert float((outside.mT @ W_Q).abs().max()) < TOLERANCE
        tilted = W_K + 0.1 * outside @ torch.ones(1, d_k, dtype=torch.float64)
        assert least(bilinear_form(W_Q, tilted)) < -1e-9


def test_split_is_unique_orthogonal_and_levelwise():
    """`hkt-split`: the two parts are the only such pair, are orthogonal, and are the mixtures of the levels' parts."""
    X, M, alpha = normal(9, 4), normal(3, 4, 4, name="M"), torch.softmax(normal(3, name="a"), dim=-1)
    S = mixed_scores(X, M, alpha)
    s, a = symmetric_antisymmetric(S)
    size = float(S.square().sum())
    assert torch.equal(s, s.mT)
    assert torch.equal(a, -a.mT)
    torch.testing.assert_close(s + a, S, rtol=0, atol=4 * EPS * float(S.abs().max()))
    assert abs(float((s * a).sum())) < TOLERANCE * size
    assert abs(float(s.square().sum() + a.square().sum()) - size) < TOLERANCE * size
    parts = [symmetric_antisymmetric(rows @ form @ rows.mT) for rows, form in zip(pyramid(X, 3), M, strict=True)]
    for whole, each in zip((s, a), zip(*parts, strict=True), strict=True):
        torch.testing.assert_close(mix(list(each), alpha), whole, rtol=0, atol=TOLERANCE * float(S.abs().max()))
    # the linear map (S_s, S_a) -> S_s + S_a on symmetric and antisymmetric matrices has full rank: uniqueness
    basis = []
    for i in range(3):
        for j in range(i, 3):
            E = torch.zeros(3, 3)
            E[i, j] = 1
            basis += [(E + E.mT).flatten()] + ([(E - E.mT).flatten()] if i < j else [])
    assert torch.linalg.matrix_rank(torch.stack(basis)) == 9


def test_log_ratios():
    """`hkt-split`: products and ratios of reciprocal weights, from the softmax itself; and not with a mask."""
    S = normal(7, 7)
    A, z = torch.softmax(S, dim=-1), torch.logsumexp(S, dim=-1)
    s, a = symmetric_antisymmetric(S)
    torch.testing.assert_close((A / A.mT).log(), 2 * a - (z.unsqueeze(-1) - z), rtol=0, atol=TOLERANCE)
    torch.testing.assert_close((A * A.mT).log(), 2 * s - (z.unsqueeze(-1) + z), rtol=0, atol=TOLERANCE)


def test_mask_hides_the_split():
    """`hkt-split`: adding a strictly upper triangular table changes both parts and nothing that the layer returns."""
    S, N = normal(7, 7), normal(7, 7, name="N").triu(1)
    outputs = [torch.softmax(causal_mask(table), dim=-1) for table in (S, S + N)]
    assert torch.equal(*outputs)
    assert float((outputs[0] * outputs[0].mT).tril(-1).abs().max()) == 0  # no reciprocal pair is left
    for before, after in zip(symmetric_antisymmetric(S), symmetric_antisymmetric(S + N), strict=True):
        assert float((after - before).abs().max()) > 0.5


def test_constant_tokens_force_the_value_weight():
    """`hkt-channels`: on constant sequences every score table gives w x, so a difference needs w = 0."""
    x = torch.full((6, 1), 1.7, dtype=torch.float64)
    for i in range(5):
        A = torch.softmax(causal_mask(normal(6, 6, name=i)), dim=-1)
        torch.testing.assert_close(A @ (0.3 * x), 0.3 * x, rtol=1e-14, atol=0)


def test_one_head_has_one_kernel_for_all_channels():
    """`hkt-channels`: scipy's search over w and p >= 0 against the closed form; the two taps of the page by hand."""
    pair = torch.tensor([[1.0, 0.5], [0.0, 0.5]]).double()
    assert float(theory.channel_gap(pair)) == pytest.approx((3 - 5**0.5) / 4, rel=1e-12)
    for lags, channels in ((2, 2), (3, 2), (4, 3)):
        kernels = normal(lags, channels, name="kernels").abs()

        def missed(parts, taps=kernels, lags=lags):
            return np.square(np.outer(parts[:lags] ** 2, parts[lags:]) - taps.numpy()).sum()

        starts = normal(8, lags + channels, name="starts").abs().numpy()
        found = min(optimize.minimize(missed, start, options={"gtol": 1e-9}).fun for start in starts)
        assert float(theory.channel_gap(kernels)) == pytest.approx(found, rel=1e-5)
    alike = normal(3, 1, name="one").abs() * normal(4, name="sizes").abs()
    assert float(theory.channel_gap(alike)) < 1e-28
    # of every attention, on x_0 = (1, 1) and x_1 = 0, the output (a, a) misses (0, 1/2) by at least 1/8
    a = np.linspace(0, 1, 1001)
    assert min(a**2 + (a - 0.5) ** 2) == pytest.approx(1 / 8, abs=1e-15)


@pytest.mark.parametrize("levels", range(1, 8))
def test_entries_are_counted_on_the_tables(levels):
    """`hkt-cost`: by tables of pyramids, by fractions, and by the two formulas of the page."""
    for T in range(1, 130):
        rows = pyramid(torch.zeros(T, 1, dtype=torch.float64), levels)
        entries = sum(table.numel() for table in score_tables(rows, rows))
        assert entry_ratio(T, levels) == Fraction(entries, T * T)
        assert 3 * entries <= 4 * (T - 1) ** 2 + 12 * (T - 1) + 3 * levels
        if T % 2 ** (levels - 1) == 0:
            assert entry_ratio(T, levels) == Fraction(4, 3) * (1 - Fraction(1, 4**levels)) < Fraction(4, 3)
    assert entry_ratio(3, 2) == Fraction(13, 9) > Fraction(4, 3)
    assert entry_ratio(1024, 3) == Fraction(21, 16)


def test_a_positive_definite_mixture_is_not_enough():
    """`hkt-psd`: the counterexample of the page in fractions, by hand and by the layer."""
    M0, M1, X = np.diag([2, -1]), np.diag([-1, 2]), np.array([[1, 1], [1, 0]])
    seen, coarse = X[0] - X[1], 0 * X[0]  # z = (1, -1); both tokens use the same row of level 1
    assert Fraction(int(seen @ M0 @ seen + coarse @ M1 @ coarse), 2) == Fraction(-1, 2)
    S = mixed_scores(
        torch.tensor(X).double(), torch.tensor(np.stack([M0, M1])).double(), torch.tensor([0.5, 0.5]).double()
    )
    z = torch.tensor([1.0, -1.0]).double()
    assert float(z @ S @ z) == -0.5
    assert (np.linalg.eigvalsh((M0 + M1) / 2) > 0).all()


def test_a_head_of_fixed_attention_takes_no_difference():
    """`hkt-channels`: scipy over the value weight and the attention; 1 away from (1, -1)."""
    starts = normal(20, 2, name="starts").numpy()
    missed = lambda z: (z[0] * np.sin(z[1]) ** 2 - 1) ** 2 + (z[0] * np.cos(z[1]) ** 2 + 1) ** 2  # noqa: E731
    assert min(optimize.minimize(missed, start).fun for start in starts) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("zero", [False, True])
def test_a_head_of_the_layer_convolves(zero):
    """`hkt-convolution`: a layer whose positions are one-hot, against numpy's own convolution."""
    T, kappa, b = 9, np.array([0.5, 0.2, 0.3 * (not zero)]), 25.0
    lag = np.arange(T)[:, None] - np.arange(T)
    logits = np.where((lag >= 0) & (lag < 3), np.log(np.maximum(kappa[np.clip(lag, 0, 2)], 1e-300)), -b).clip(-b)
    head = HKTAttention(T + 1, 1, 2, impl="reference", dtype=torch.float64)
    with torch.no_grad():
        for weight in (*head.scores.W_Q, *head.scores.W_K, head.W_V, head.W_O):
            weight.zero_()
        head.scores.W_Q[0][0, :T, :T] = (T + 1) ** 0.5 / head.scores.alpha()[0, 0, 0] * torch.tensor(logits).mT
        head.scores.W_K[0][0, :T, :T] = torch.eye(T)
        head.W_V[0, T, T] = head.W_O[0, T, T] = 1.0
        x = normal(T, 1, name="signal")
        found = head(torch.cat([torch.eye(T).double(), x], dim=-1)[None])[0, :, T].numpy()
    signal = x[:, 0].numpy()
    wanted = np.convolve(signal, kappa)[:T] / np.convolve(np.ones(T), kappa)[:T]
    assert np.abs(found - wanted).max() <= 2 * (T - 1) / kappa[0] * np.exp(-b) * np.abs(signal).max() + 1e-12


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: entry_ratio(0, 1), "T = 0"),
        (lambda: attention_flops(8, 0, 1, 1), "d = 0"),
        (lambda: symmetric_antisymmetric(torch.full((2, 2), math.nan)), "give a finite number"),
        (lambda: theory.channel_gap(torch.tensor([[1.0], [-1.0]])), "kernels"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
