"""Cost, kernels, the two parts of a score table, what a head cannot do (HKT-1, 4, 5, 6)."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from derived.lab.rng import stream
from derived.papers.hierarchical_kernel.model import theory
from derived.papers.hierarchical_kernel.model.attention import causal_mask, mix, score_tables
from derived.papers.hierarchical_kernel.model.pyramid import pyramid
from derived.papers.hierarchical_kernel.model.theory import (
    attention_flops,
    bilinear_form,
    entry_ratio,
    geometric_ratio,
    inertia,
    mixture_counterexample,
    psd_defect,
    reaching_tokens,
    symmetric_antisymmetric,
    tied_keys,
)

examples = settings(derandomize=True, max_examples=25, deadline=None, database=None)
EPS = torch.finfo(torch.float64).eps
TOLERANCE = 1e-12  # sums of at most 10^3 products of numbers of order one, each rounded a few times


def normal(*shape: int, name: object = "x") -> torch.Tensor:
    return torch.randn(*shape, generator=stream(0, str(name), *shape), dtype=torch.float64)


def mixed_scores(X: torch.Tensor, M: torch.Tensor, alpha: torch.Tensor, pooling: str = "average") -> torch.Tensor:
    """S from the forms M (L, d, d), not from projections."""
    tables = [rows @ form @ rows.mT for rows, form in zip(pyramid(X, len(M), pooling), M, strict=True)]
    return mix(tables, alpha)


@examples
@given(st.integers(1, 40), st.integers(1, 7))
def test_entries_form_a_geometric_series(multiple, levels):
    """`hkt-cost`: T_l = T / 2^l gives (4/3)(1 - 4^-L) exactly, counted on the tables themselves."""
    T = multiple * 2 ** (levels - 1)
    assert entry_ratio(T, levels, "exact") == entry_ratio(T, levels) == geometric_ratio(levels) < Fraction(4, 3)
    if T <= 128:
        rows = pyramid(torch.zeros(T, 1, dtype=torch.float64), levels)
        entries = sum(table.numel() for table in score_tables(rows, rows))
        assert Fraction(entries, T * T) == geometric_ratio(levels)


def test_entries_of_three_levels_and_roundings():
    """`hkt-cost`, `hkt-cost-up`: 1.3125 at L = 3; down stays below 4/3, up reaches 38/25 and 8, never its bound."""
    assert geometric_ratio(3) == Fraction(21, 16) == Fraction(13125, 10_000)
    assert all(entry_ratio(T, L, "down") < Fraction(4, 3) for T in range(1, 200) for L in range(1, 9))
    assert all(entry_ratio(T, L, "down") <= geometric_ratio(L) for T in range(1, 200) for L in range(1, 9))
    assert entry_ratio(3, 3) == Fraction(14, 9) > Fraction(4, 3)
    assert max(entry_ratio(T, L) for T in range(1, 200) for L in range(1, 9)) == 8  # one token, eight tables
    assert max(entry_ratio(T, L) for T in range(2, 200) for L in range(1, 9)) == Fraction(11, 4)
    allowed = [entry_ratio(T, L) for T in range(1, 200) for L in range(1, 9) if 2 ** (L - 1) <= T]
    assert max(allowed) == Fraction(38, 25)  # T = 5, L = 3: 25 + 9 + 4
    for T in range(1, 200):
        assert all(3 * entry_ratio(T, L) * T**2 <= 4 * (T - 1) ** 2 + 12 * (T - 1) + 3 * L for L in range(1, 12))
    assert entry_ratio(1, 8) == 8  # where the bound is reached


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
    assert attention_flops(T, d, d_k, L, impl="fused").scores == 3 * T * T * d_k


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
    assert float(psd_defect(S)) < TOLERANCE


@examples
@given(st.integers(1, 4), st.integers(0, 3), st.integers(2, 4))
def test_one_bad_level_is_found_by_some_input(d, bad, levels):
    """`hkt-necessary`: tokens that show the bad level its negative direction and every other level zero."""
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


def test_psd_mixture_is_not_enough():
    """`hkt-mixture`: the counterexample, in integers over two: no rounding takes part."""
    witness = mixture_counterexample()
    assert [inertia(M)[:2] for M in witness.M] == [(1, 1), (1, 1)]
    mixture = sum(alpha * M for alpha, M in zip(witness.alpha, witness.M, strict=True))
    assert torch.equal(mixture, torch.eye(2).double() / 2)
    S = mixed_scores(witness.X, witness.M, witness.alpha)
    assert float(witness.z @ S @ witness.z) == witness.value == -0.5
    X = [[Fraction(int(entry)) for entry in row] for row in witness.X.tolist()]
    coarse = [[entry / 2 for entry in X[0]]] * 2  # (0 + x_0) / 2 stands for both tokens
    total = Fraction(0)
    for rows, diagonal in ((X, (2, -1)), (coarse, (-1, 2))):
        seen = [rows[0][m] - rows[1][m] for m in range(2)]  # z = (1, -1)
        total += Fraction(1, 2) * sum(c * s * s for c, s in zip(diagonal, seen, strict=True))
    assert total == Fraction(-1, 2)


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
    assert bool((psd_defect(M) > 0).all())


def test_inertia_in_two_dimensions():
    """`hkt-inertia` at d = 2, d_k = 1: eigenvalues (q . k +- |q||k|) / 2."""
    q, k = normal(50, 2, 1, name="q"), normal(50, 2, 1, name="k")
    product, size = (q * k).sum(dim=(1, 2)), q.norm(dim=1)[:, 0] * k.norm(dim=1)[:, 0]
    eigenvalues = torch.linalg.eigvalsh(symmetric_antisymmetric(bilinear_form(q, k)).symmetric)
    torch.testing.assert_close(eigenvalues[:, 0], (product - size) / 2, rtol=0, atol=TOLERANCE)
    torch.testing.assert_close(eigenvalues[:, 1], (product + size) / 2, rtol=0, atol=TOLERANCE)
    torch.testing.assert_close(
        psd_defect(bilinear_form(q, k)), ((size - product) / (size + product.abs())).clamp(0, 1), rtol=1e-9, atol=0
    )


@examples
@given(st.integers(1, 5), st.integers(0, 4))
def test_tied_keys_and_no_others(d_k, more):
    """`hkt-tied`: W_K = W_Q R with R + R^T psd passes; R with a negative direction, or keys outside col W_Q, fail."""
    d = d_k + more
    W_Q, skew, root = normal(d, d_k, name="Q"), normal(d_k, d_k, name="s"), normal(d_k, d_k, name="r")
    W_K = tied_keys(W_Q, skew, root)
    R = torch.linalg.lstsq(W_Q, W_K).solution
    assert float(torch.linalg.eigvalsh(R + R.mT)[0]) > -1e-9 * float(R.abs().max())
    assert float(psd_defect(bilinear_form(W_Q, W_K))) < 1e-11  # d_k products one in another, W_Q far from singular
    bad = W_Q @ (skew - skew.mT - 1e-3 * torch.eye(d_k, dtype=torch.float64))
    assert float(psd_defect(bilinear_form(W_Q, bad))) > 1e-6
    if more:
        outside = torch.linalg.svd(W_Q).U[:, -1:]
        assert float((outside.mT @ W_Q).abs().max()) < TOLERANCE
        tilted = W_K + 0.1 * outside @ torch.ones(1, d_k, dtype=torch.float64)
        assert float(psd_defect(bilinear_form(W_Q, tilted))) > 1e-9


@pytest.mark.parametrize(("d", "share"), [(1, 1 / 2), (2, 1 / 2 - math.pi / 8)])
def test_square_heads_are_psd_by_luck_only(d, share):
    """Square Gaussian heads are psd with probability 1/2 at d = 1 and 1/2 - pi/8 at d = 2, within 4.5 standard errors.

    At d = 2, R = W_Q^-1 W_K has density ~ det(I + R R^T)^-2; in the coordinates of R = s I + t J + (a symmetric
    traceless part of size u), R + R^T is psd iff s >= u, and the integral over them is 1/2 - pi/8. d = d_k is no head
    with 2 d_k <= d, so `hkt-inertia` does not speak of it.
    """
    num = 20_000
    M = bilinear_form(normal(num, d, d, name="Q"), normal(num, d, d, name="K"))
    found = float((psd_defect(M) < 1e-14).double().mean())
    assert abs(found - share) < 4.5 * math.sqrt(share * (1 - share) / num)


def test_psd_defect_is_a_relative_size():
    M = torch.diag(torch.tensor([3.0, -1.0, 0.0])).double()
    assert float(psd_defect(M)) == pytest.approx(1 / 3, rel=1e-14)
    assert float(psd_defect(-2 * M)) == 1
    assert float(psd_defect(0 * M)) == 0
    assert [int(n) for n in inertia(M)] == [1, 1, 1]
    assert [int(n) for n in inertia(torch.diag(torch.tensor([1.0, 1e-13, -1e-13])).double())] == [2, 1, 0]
    assert [int(n) for n in inertia(torch.diag(torch.tensor([1.0, 1e-17, -1e-17])).double())] == [1, 0, 2]


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
    """`hkt-logratio`: products and ratios of reciprocal weights, from the softmax itself; and not with a mask."""
    S = normal(7, 7)
    A, z = torch.softmax(S, dim=-1), torch.logsumexp(S, dim=-1)
    s, a = symmetric_antisymmetric(S)
    torch.testing.assert_close((A / A.mT).log(), 2 * a - (z.unsqueeze(-1) - z), rtol=0, atol=TOLERANCE)
    torch.testing.assert_close((A * A.mT).log(), 2 * s - (z.unsqueeze(-1) + z), rtol=0, atol=TOLERANCE)


def test_outputs_with_wide_values_give_the_differences_of_their_scores():
    """`hkt-mask`: numpy recovers A from Y = A V and A 1 = 1, and S_ij - S_ii from it; not with d_v < T - 1."""
    S, V = normal(6, 6), normal(6, 5, name="V")
    Y = torch.softmax(causal_mask(S), dim=-1) @ V
    W, right = (torch.cat([each, torch.ones(6, 1).double()], dim=-1).numpy() for each in (V, Y))
    A = torch.from_numpy(np.linalg.lstsq(W.T, right.T, rcond=None)[0].T)
    i, j = torch.tril_indices(6, 6)
    found = (A[i, j] / A[i, i]).log()
    torch.testing.assert_close(found, S[i, j] - S[i, i], rtol=0, atol=1e-9)
    assert np.linalg.matrix_rank(W[:, 1:]) < 6  # one column fewer: another A has the same output


def test_mask_hides_the_split():
    """`hkt-mask`: adding a strictly upper triangular table changes both parts and nothing that the layer returns."""
    S, N = normal(7, 7), normal(7, 7, name="N").triu(1)
    outputs = [torch.softmax(causal_mask(table), dim=-1) for table in (S, S + N)]
    assert torch.equal(*outputs)
    assert float((outputs[0] * outputs[0].mT).tril(-1).abs().max()) == 0  # no reciprocal pair is left
    for before, after in zip(symmetric_antisymmetric(S), symmetric_antisymmetric(S + N), strict=True):
        assert float((after - before).abs().max()) > 0.5


def test_one_head_cannot_take_a_difference():
    """`hkt-signs`: closed form against a search over w and p; 1 for (1, -1), 0 iff the taps have one sign."""
    assert float(theory.softmax_head_gap(torch.tensor([1.0, -1.0]).double())) == 1
    w = torch.linspace(-4, 4, 1601, dtype=torch.float64)
    p = torch.linspace(0, 1, 401, dtype=torch.float64)
    for taps in normal(30, 2, name="taps"):
        first, second = w.unsqueeze(-1) * p - taps[0], w.unsqueeze(-1) * (1 - p) - taps[1]
        found, closed = float((first**2 + second**2).min()), float(theory.softmax_head_gap(taps))
        assert closed - TOLERANCE <= found <= closed + 4 * (0.005**2 + 0.01 * float(taps.abs().max()))
        assert (closed == 0) == bool((taps > 0).all() or (taps < 0).all())


def test_constant_tokens_force_the_value_weight():
    """`hkt-signs`, `hkt-channels`: on constant sequences every score table gives w x, so a difference needs w = 0."""
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


@examples
@given(st.lists(st.floats(0, 5), min_size=0, max_size=4), st.floats(0.1, 5), st.integers(1, 9))
def test_positional_logits_reach_positive_kernels(rest, first, T):
    """`hkt-convolution`: softmax of log kappa is the convolution with kappa, cut and rescaled at the start."""
    kernel = torch.tensor([first, *rest], dtype=torch.float64)
    kernel = kernel / kernel.sum(dim=0)
    A, k = torch.softmax(theory.kernel_logits(kernel, T), dim=-1), len(kernel)
    for i in range(T):
        row = [float(kernel[i - j]) if i - j < k else 0.0 for j in range(i + 1)]
        expected = torch.tensor(row, dtype=torch.float64) / (1.0 if i >= k - 1 else sum(row))
        torch.testing.assert_close(A[i, : i + 1], expected, rtol=0, atol=1e-14)
        assert float(A[i, i + 1 :].sum()) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: entry_ratio(12, 4, "exact"), "T = 12 is no multiple .* = 8; give T = 16"),
        (lambda: entry_ratio(0, 1), "T = 0"),
        (lambda: entry_ratio(8, 2, "near"), "rounding = 'near'"),
        (lambda: geometric_ratio(0), "levels = 0"),
        (lambda: attention_flops(8, 0, 1, 1), "d = 0"),
        (lambda: attention_flops(8, 1, 1, 1, impl="gpu"), "impl = 'gpu'"),
        (lambda: psd_defect(torch.full((2, 2), math.nan)), "give a finite number"),
        (lambda: theory.kernel_logits(torch.tensor([0.5, 0.6]), 4), "sum 1"),
        (lambda: theory.kernel_logits(torch.tensor([1.5, -0.5]), 4), ">= 0"),
        (lambda: theory.kernel_logits(torch.tensor([0.0, 1.0]), 4), "lag 0 positive"),
        (lambda: theory.channel_gap(torch.tensor([[1.0], [-1.0]])), "kernels"),
        (lambda: theory.tail_bound(1.0, 1.5, torch.ones(2), 1), "rho = 1.5"),
        (lambda: theory.tail_bound(-1.0, 0.5, torch.ones(2), 1), "B = -1;"),
        (lambda: theory.tail_bound(1.0, 0.5, torch.tensor([0.5, -0.5]), 1), "alpha"),
        (lambda: theory.score_bound([torch.ones(2, 2)], 0.0), "rho = 0"),
        (lambda: theory.fgn_covariance(4, 1.0), "H = 1;"),
        (lambda: theory.fgn_variance(-1, 0.5), "level = -1"),
        (lambda: theory.fgn_variance(2, 1.5), "H = 1.5"),
        (lambda: theory.block_variance(torch.eye(4), 3), "T = 4 tokens are fewer than the 8"),
        (lambda: theory.pyramid_matrix(3, 2), "T = 3 tokens are fewer than the 4"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
