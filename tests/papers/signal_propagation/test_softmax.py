"""What softmax adds: sums over all indices, a second-order expansion, and gradients of attention itself."""

import re

import numpy as np
import pytest
import torch

from derived.lab.rng import stream
from derived.papers.signal_propagation.model.kernels import ErfKernel, LayerNormKernel
from derived.papers.signal_propagation.model.meanfield import propagate, softmax_growth
from derived.papers.signal_propagation.model.softmax import first_order, softmax_terms


def by_sums(z: torch.Tensor, q: float, p: float, sigma_squared: float) -> torch.Tensor:
    """The six numbers of one table of logits, index by index as the proposition writes them."""
    n, D = len(z), q - p
    A, eye = torch.softmax(z, dim=-1), torch.eye(n, dtype=z.dtype)
    G = D * eye + p
    read = (A[:, None] * A[None]).sum(dim=-1)  # sum_m A_im A_jm
    C = D * (eye[None, None] - A[None, :, :, None] - A[:, None, None] + read[:, :, None, None])  # i, j, k, l
    found = []
    for Gamma in (eye, 1 - eye):
        S = torch.einsum("ij,ik,jl,ijkl->kl", Gamma, A, A, 1 + sigma_squared * G[:, :, None, None] * C)
        S = S + sigma_squared * Gamma * torch.einsum("kj,lm,jm,kljm->kl", A, A, G, C)
        found.append((S.trace() / n, (S.sum() - S.trace()) / (n * (n - 1))))
    f, g = read.trace() / n, (read.sum() - read.trace()) / (n * (n - 1))
    (JJ, KJ), (JK, KK) = found
    return torch.stack([f, g, JJ, JK, KJ, KK])


@pytest.mark.parametrize(("q", "p", "n", "sigma"), [(1.0, 0.2, 4, 1.3), (0.6, -0.1, 3, 2.5), (0.4, 0.4, 2, 1.0)])
def test_matrix_products_are_the_sums_of_the_proposition(q, p, n, sigma):
    """`sp-softmax` (a): the same tables through sums over all four indices."""
    found = softmax_terms(q, p, n, sigma, draws=3, generator=stream(0, "tables"))
    drawn = torch.randn(3, n, n, generator=stream(0, "tables"), dtype=torch.float64)
    values, vectors = np.linalg.eigh((q - p) * np.eye(n) + p)
    root = torch.as_tensor(vectors @ np.diag(np.sqrt(np.maximum(values, 0))) @ vectors.T)
    wanted = torch.stack([by_sums(sigma * root @ z @ root, q, p, sigma**2) for z in drawn]).mean(dim=0)
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("q", "p", "n"), [(1.0, 0.2, 2), (0.9, 0.5, 3), (0.3, -0.05, 4)])
def test_the_first_order_is_that_of_the_sums(q, p, n):
    """`sp-softmax` (b): derivative in sigma^2 of (a), plus half the trace of its Hessian in z times the covariance."""
    G = (q - p) * torch.eye(n, dtype=torch.float64) + p
    covariance = torch.kron(G, G)  # of the entries of z, row by row, per sigma^2
    flat, step = torch.zeros(n * n, dtype=torch.float64), 1e-3
    steep = (by_sums(flat.view(n, n), q, p, step) - by_sums(flat.view(n, n), q, p, 0.0)) / step
    wanted = []
    for which in range(6):
        curved = torch.autograd.functional.hessian(lambda z, k=which: by_sums(z.view(n, n), q, p, 0.0)[k], flat)
        wanted.append(steep[which] + (curved * covariance).sum() / 2)
    sigma = 0.1
    found = np.subtract(first_order(q, p, n, sigma), first_order(q, p, n, 0.0)) / sigma**2
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("pooled", [False, True])
def test_gradients_of_attention_itself(pooled):
    """`sp-softmax` (a) by autograd: one branch of width 128 without a normaliser, three tokens, sharp logits.

    Frozen attention, whose weights are 1/n, must miss.
    """
    n, d, R, sigma, q, p = 3, 128, 900, 1.5, 1.0, 0.2
    g = stream(0, "autograd", int(pooled))
    frame = torch.linalg.qr(torch.randn(R, d, n, generator=g, dtype=torch.float64))[0].mT * d**0.5
    values, vectors = np.linalg.eigh((q - p) * np.eye(n) + p)
    x = (torch.as_tensor(vectors @ np.diag(np.sqrt(values)) @ vectors.T) @ frame).requires_grad_()
    draw = lambda: torch.randn(R, d, d, generator=g, dtype=torch.float32).double() / d**0.5  # noqa: E731
    Q, K, VO = draw() * sigma**0.5, draw() * sigma**0.5, draw()
    A = torch.softmax((x @ Q.mT) @ (x @ K.mT).mT / d**0.5, dim=-1)
    xi = torch.randn(R, 1 if pooled else n, d, generator=g, dtype=torch.float64).expand(R, n, d)
    (back,) = torch.autograd.grad(A @ x @ VO.mT, x, xi)  # without the residual path
    gram = back @ back.mT / d
    eye = torch.eye(n, dtype=torch.bool)
    terms = softmax_terms(q, p, n, sigma, draws=40_000, generator=stream(0, "many tables"))
    wanted = (terms.JJ + pooled * terms.JK, terms.KJ + pooled * terms.KK)
    frozen = (1.0, 1.0) if pooled else (1 / n, 1 / n)
    for found, right, wrong in zip((gram[:, eye].mean(-1), gram[:, ~eye].mean(-1)), wanted, frozen, strict=True):
        error = float(found.std()) / R**0.5
        assert abs(float(found.mean()) - right) < 5 * error + 0.03 * abs(right)
        assert abs(float(found.mean()) - wrong) > 8 * error


@pytest.mark.parametrize("kernel", [LayerNormKernel(), ErfKernel(1.0)])
def test_growth_with_all_terms_is_near_the_first_order_where_sigma_is_small(kernel):
    """`sp-softmax`: at 0.1 they differ by the square of the correction; pooled gradients feel more than others."""
    net = {"kernel": kernel, "a": 1.0, "s": 1.0, "n": 6, "depth": 4}
    for kind in ("independent", "pooled"):
        paths = [propagate(1.0, 0.2, **net, sigma=sigma, output_gradient=kind) for sigma in (0.0, 0.1, 0.3)]
        full = softmax_growth(
            1.0, 0.2, **net, sigma=0.1, draws=20_000, output_gradient=kind, generator=stream(0, "growth", kind)
        )
        even, first, larger = (path.log_J_backward[0] for path in paths)
        assert first - even > 0.0005
        assert abs(full.log_J_backward[0] - first) < 0.05 * (first - even)
        assert larger - even == pytest.approx(9 * (first - even), rel=0.1)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n": 1}, "n = 1"),
        ({"sigma": -1.0}, "sigma = -1"),
        ({"draws": 0}, "draws = 0"),
        ({"p": 1.2}, "is no covariance"),
    ],
)
def test_bad_input_is_named(wrong, message):
    given = {"q": 1.0, "p": 0.2, "n": 4, "sigma": 1.0, "draws": 2} | wrong
    with pytest.raises(ValueError, match=re.escape(message)):
        softmax_terms(**given, generator=torch.Generator())
