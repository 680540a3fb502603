"""The chain of overlaps: factors of matrices that may be singular, and a cost and a law that no width changes."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from derived.lab.rng import stream
from derived.papers.homogenized.model.gram import bartlett, pivoted_factor, psd_factor, value_factor
from derived.papers.homogenized.model.heads import simplex_gram

examples = settings(derandomize=True, max_examples=20, deadline=None, database=None)
EPS = torch.finfo(torch.float64).eps


@examples
@given(st.integers(1, 7), st.integers(1, 7), st.integers(0, 10_000))
def test_factors_of_singular_matrices(n, rank, seed):
    """C C^T = S up to rounding whatever the rank, with as many columns as asked; regular ones by Cholesky."""
    rank = min(n, rank)
    Y = torch.randn(3, n, rank, generator=stream(seed, "Y"), dtype=torch.float64)
    Y[0] = Y[0, :1]  # coinciding rows
    S = Y @ Y.mT
    for C in (pivoted_factor(S, rank), psd_factor(S, n)):
        assert (C @ C.mT - S).abs().max() < 20 * n * EPS * S.abs().max()


@pytest.mark.parametrize(("q", "dof"), [(1, 1), (1, 9), (3, 3), (3, 8), (4, 2)])
def test_bartlett_factor_is_a_wishart_factor(q, dof):
    """First and second moments of T T^T against sums over normals: E W = dof I, E W_ij W_kl = dof^2 d_ij d_kl + dof
    (d_ik d_jl + d_il d_jk); one more degree of freedom is rejected."""
    T = bartlett((60_000,), q, dof, generator=stream(5, q, dof))
    assert T.shape == (60_000, q, min(q, dof))
    W = T @ T.mT
    I = torch.eye(q, dtype=torch.float64)
    expected = dof**2 * torch.einsum("ij,kl->ijkl", I, I) + dof * (
        torch.einsum("ik,jl->ijkl", I, I) + torch.einsum("il,jk->ijkl", I, I)
    )
    second = torch.einsum("rij,rkl->rijkl", W, W)
    z = (second.mean(0) - expected) / (second.std(0) / math.sqrt(len(W)))
    assert z.abs().max() < 5
    trace = W.diagonal(dim1=-2, dim2=-1).sum(-1)
    assert abs(trace.mean() - q * dof) < 5 * trace.std() / math.sqrt(len(W))
    assert abs(trace.mean() - q * (dof + 1)) > 5 * trace.std() / math.sqrt(len(W))


def test_value_factor_against_a_loop_over_heads():
    """F F^T = sum_h Pi_h G Pi_h^T for one, few and many heads; without common noise its diagonal."""
    C = psd_factor(simplex_gram(3, 0.2).expand(2, 3, 3), 3)
    for H in (1, 2, 7):
        Pi = torch.softmax(torch.randn(2, H, 3, 3, generator=stream(6, H), dtype=torch.float64), -1)
        S = sum(Pi[:, h] @ C @ C.mT @ Pi[:, h].mT for h in range(H))
        F = value_factor(C, Pi, H, common=True)
        assert F.shape[-1] == 3
        assert torch.allclose(F @ F.mT, S, atol=1e-13)
        F = value_factor(C, Pi, H, common=False)
        assert torch.allclose(F @ F.mT, torch.diag_embed(S.diagonal(dim1=-2, dim2=-1)), atol=1e-13)
        for common in (True, False):  # one attention that all heads share
            F = value_factor(C, Pi[:, :1], H, common=common)
            every = value_factor(C, Pi[:, :1].expand(2, H, 3, 3), H, common=common)
            assert F.shape == every.shape
            assert torch.allclose(F @ F.mT, every @ every.mT, atol=1e-13)
