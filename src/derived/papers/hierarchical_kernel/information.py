"""Information through the pyramid: entropies in nats, the Gaussian value, and the exact correction to it.

symbol       name                  meaning                                                        axes
h(U)         entropy               differential entropy
J(U)         negentropy            h of the Gaussian with U's covariance, minus h(U); >= 0
I, I_G       mutual_information    mutual information, and its value from second moments
U            LatentMixture         U = s m + N(0, Sigma), s = +-1 with P(s = 1) = weight          (p,)
delta        separation            sqrt(m^T Sigma^-1 m), all that J(U) depends on, with weight
kappa        excess kurtosis       E (u - Eu)^4 / Var^2 - 3

A mixture of two Gaussians with one covariance stays one under every linear map, and whitened it is a scalar mixture
times standard normals: its entropy in any dimension is one integral over the line. [ours]
"""

import itertools
import math
from typing import Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from scipy.interpolate import BSpline
from scipy.special import gammaln, psi
from torch import Tensor

from .checks import check_choice, check_count, check_square, check_within
from .mechanism import Pooling, pyramid

REACH, POINTS = 12.0, 4001  # trapezoid rule: a normal tail beyond 12 is 1e-33, a step of ~ 0.01 resolves it to rounding


def gaussian_mutual_information(covariance: Float[Tensor, "*batch n n"], first: int) -> Float[Tensor, "*batch"]:
    """I_G = (log det S_UU + log det S_YY - log det S) / 2, U the first ``first`` variables, Y the others; nats.

    Raises ValueError unless 0 < first < n and the covariance is symmetric and positive definite. [prior]
    """
    check_square("covariance", covariance)
    if not 0 < first < covariance.shape[-1]:
        raise ValueError(f"first = {first} of {covariance.shape[-1]} variables; leave at least one on each side")
    if not bool(torch.allclose(covariance, covariance.mT, rtol=1e-9, atol=0)):
        raise ValueError("the covariance is not symmetric; give E (u - Eu)(u - Eu)^T")
    U, Y = covariance[..., :first, :first], covariance[..., first:, first:]
    return (log_determinant(U) + log_determinant(Y) - log_determinant(covariance)) / 2


def log_determinant(covariance: Float[Tensor, "*batch n n"]) -> Float[Tensor, "*batch"]:
    """log det by Cholesky; raises ValueError unless positive definite."""
    factor, info = torch.linalg.cholesky_ex(covariance)
    if bool((info > 0).any()):
        raise ValueError("the covariance is not positive definite; drop variables that others determine")
    return 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(dim=-1)


# --- a family that is not Gaussian and still exact ------------------------------------------------------------------


class LatentMixture(NamedTuple):
    """The law of s m + N(0, Sigma), s = 1 with probability ``weight`` and -1 otherwise."""

    m: Tensor  # (p,)
    Sigma: Tensor  # (p, p), positive definite
    weight: float = 0.5

    @property
    def covariance(self) -> Float[Tensor, "p p"]:
        """Sigma + 4 w (1 - w) m m^T."""
        return self.Sigma + 4 * self.weight * (1 - self.weight) * torch.outer(self.m, self.m)

    @property
    def separation(self) -> float:
        """delta = sqrt(m^T Sigma^-1 m): half the distance of the two centres once Sigma is whitened."""
        return math.sqrt(max(0.0, float(self.m @ torch.linalg.solve(self.Sigma, self.m))))

    def project(self, B: Float[Tensor, "q p"]) -> "LatentMixture":
        """The law of B U."""
        return LatentMixture(B @ self.m, B @ self.Sigma @ B.mT, self.weight)

    def sample(self, num: int, generator: torch.Generator) -> Float[Tensor, "num p"]:
        """Independent draws, on the generator's device."""
        facts = {"generator": generator, "device": generator.device, "dtype": self.m.dtype}
        sign = torch.where(torch.rand(num, 1, **facts) < self.weight, 1.0, -1.0)
        noise = torch.randn(num, len(self.m), **facts) @ torch.linalg.cholesky(self.Sigma).mT.to(generator.device)
        return sign * self.m.to(generator.device) + noise


def scalar_entropy(separation: float, weight: float = 0.5) -> float:
    """h of w N(delta, 1) + (1 - w) N(-delta, 1) by the trapezoid rule, whose error falls faster than any power."""
    check_within("weight", weight, 0.0, 1.0)
    check_within("separation", separation, 0.0, 50.0)
    u = np.linspace(-separation - REACH, separation + REACH, POINTS)
    with np.errstate(divide="ignore"):
        logs = np.log([weight, 1 - weight])[:, None] - (u - separation * np.array([[1.0], [-1.0]])) ** 2 / 2
    log_p = np.logaddexp(*logs) - math.log(2 * math.pi) / 2
    return float(-np.sum(np.exp(log_p) * log_p, axis=0) * (u[1] - u[0]))


def entropy(law: LatentMixture) -> float:
    """h(U) = log det(Sigma)/2 + (p - 1) log(2 pi e)/2 + h(scalar mixture), in nats."""
    p = len(law.m)
    normal = math.log(2 * math.pi * math.e) / 2
    return float(log_determinant(law.Sigma)) / 2 + (p - 1) * normal + scalar_entropy(law.separation, law.weight)


def negentropy(law: LatentMixture) -> float:
    """J(U) = h(Gaussian of U's covariance) - h(U) = log(1 + 4 w (1-w) delta^2)/2 + log(2 pi e)/2 - h(scalar) >= 0.

    Invariant under invertible linear maps, 0 iff U is Gaussian.
    """
    variance = 1 + 4 * law.weight * (1 - law.weight) * law.separation**2
    return math.log(2 * math.pi * math.e * variance) / 2 - scalar_entropy(law.separation, law.weight)


def mutual_information(law: LatentMixture, first: int) -> float:
    """I(U; Y) = h(U) + h(Y) - h(U, Y) for U the first ``first`` coordinates and Y the others, in nats."""
    U, Y = _sides(law, first)
    return entropy(U) + entropy(Y) - entropy(law)


def non_gaussian_correction(law: LatentMixture, first: int) -> float:
    """J(U, Y) - J(U) - J(Y), which is I(U; Y) - I_G(U; Y), of either sign. [ours]"""
    U, Y = _sides(law, first)
    return negentropy(law) - negentropy(U) - negentropy(Y)


def _sides(law: LatentMixture, first: int) -> tuple[LatentMixture, LatentMixture]:
    p = len(law.m)
    if not 0 < first < p:
        raise ValueError(f"first = {first} of {p} coordinates; leave at least one on each side")
    identity = torch.eye(p, dtype=law.m.dtype)
    return law.project(identity[:first]), law.project(identity[first:])


class InformationBudget(NamedTuple):
    """The three terms of I(X; Y) - I_G(BZ; Y), Z the coarsest level."""

    total: float  # I(X; Y)
    gaussian: float  # I_G(B Z; Y)
    resolution: tuple[float, ...]  # I(X^(l-1); Y | X^(l)), l = 1 .. L - 1
    head_width: float  # I(Z; Y | B Z)
    correction: float  # J(BZ, Y) - J(BZ) - J(Y)

    @property
    def gap(self) -> float:
        """What the identity leaves over: 0 up to rounding."""
        return self.total - self.gaussian - sum(self.resolution) - self.head_width - self.correction


def information_budget(
    law: LatentMixture, T: int, levels: int, B: Float[Tensor, "q rows"], pooling: Pooling = "block"
) -> InformationBudget:
    """The decomposition for scalar tokens X (the first T coordinates), a target Y (the others) and a linear head B.

    I(X;Y) - I_G(BZ;Y) = sum_l I(X^(l-1);Y|X^(l)) + I(Z;Y|BZ) + J(BZ,Y) - J(BZ) - J(Y). Entropies give the first three
    pieces and negentropies the last, so ``gap`` tests the identity. The pyramid must lose rows without repeating any:
    "block" with 2^(L-1) | T. [ours]
    """
    check_count("levels", levels)
    p = len(law.m)
    check_within("T", T, 1, p - 1)
    maps = pyramid(torch.eye(T, dtype=law.m.dtype), levels, pooling)
    if B.ndim != 2 or B.shape[-1] != len(maps[-1]):
        raise ValueError(f"B has shape {tuple(B.shape)}; give (q, {len(maps[-1])}), a map of the coarsest rows")
    seen = [_beside(law, P, T) for P in (*maps, B @ maps[-1])]
    information = [mutual_information(each, first) for each, first in seen]
    last, width = seen[-1]
    return InformationBudget(
        total=information[0],
        gaussian=float(gaussian_mutual_information(last.covariance, width)),
        resolution=tuple(a - b for a, b in itertools.pairwise(information[:-1])),
        head_width=information[-2] - information[-1],
        correction=non_gaussian_correction(last, width),
    )


def _beside(law: LatentMixture, P: Tensor, T: int) -> tuple[LatentMixture, int]:
    """The law of (P X, Y) and the number of rows of P."""
    rest = torch.eye(len(law.m) - T, dtype=law.m.dtype)
    return law.project(torch.block_diag(P, rest)), len(P)


def pyramid_information(
    covariance: Float[Tensor, "n n"], T: int, levels: int, pooling: Pooling = "block"
) -> list[float]:
    """I(X^(l); Y), l = 0 .. L - 1, for jointly Gaussian scalar tokens (the first T variables) and Y (the others)."""
    found = []
    for P in pyramid(torch.eye(T, dtype=covariance.dtype), levels, pooling):
        A = torch.block_diag(P, torch.eye(len(covariance) - T, dtype=covariance.dtype))
        found.append(float(gaussian_mutual_information(A @ covariance @ A.mT, len(P))))
    return found


# --- Gaussianisation ----------------------------------------------------------------------------------------------


def mean_negentropy(law: Literal["uniform", "exponential"], num_terms: int) -> float:
    """J of a mean of n i.i.d. terms, exactly: a cardinal B-spline (uniform) or a Gamma law (exponential).

    J ~ kappa^2 / (48 n^2) for symmetric terms (uniform: kappa = -6/5), gamma^2 / (12 n) otherwise (exponential: gamma =
    2). The spline's p log p is integrated by Gauss-Legendre between knots, up to n = 64. [ours]
    """
    check_choice("law", law, ("uniform", "exponential"))
    check_count("num_terms", num_terms)
    n = num_terms
    if law == "exponential":
        return float(math.log(2 * math.pi * math.e * n) / 2 - (n + gammaln(n) + (1 - n) * psi(n)))
    check_within("num_terms", n, 1, 64)
    nodes, weights = np.polynomial.legendre.leggauss(80)
    s, weights = (nodes + 1) / 2, 2 * (nodes + 1) ** 3 / 8 * weights  # u = knot + s^4 smooths the logarithm at u = 0
    u = (np.arange((n + 1) // 2)[:, None] + s**4).ravel()  # half the knots: the density is even about n / 2
    p = BSpline.basis_element(np.arange(n + 1), extrapolate=False)(u) if n > 1 else np.ones_like(u)
    mirrored = np.where(u < n // 2, 1.0, 0.5)  # an odd number has a middle piece, which is its own image
    terms = np.where(p > 0, -p * np.log(np.where(p > 0, p, 1.0)), 0.0)
    h = float(np.sum(2 * mirrored * terms * np.tile(weights, (n + 1) // 2), axis=0))
    return math.log(2 * math.pi * math.e * n / 12) / 2 - h


def excess_kurtosis(x: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch"]:
    """m_4 / m_2^2 - 3 over the last axis, moments about the mean with divisor n."""
    centred = x - x.mean(dim=-1, keepdim=True)
    square = centred.square()
    return square.square().mean(dim=-1) / square.mean(dim=-1).square() - 3


def excess_kurtosis_by_level(
    x: Float[Tensor, "*batch T d"], levels: int, pooling: Pooling = "block"
) -> Float[Tensor, "L *batch d"]:
    """Excess kurtosis of the rows of each level, per feature: kappa / 2^l for i.i.d. tokens. (L, *batch, d). [ours]"""
    return torch.stack([excess_kurtosis(rows.mT) for rows in pyramid(x, levels, pooling)])


class Mardia(NamedTuple):
    """Mardia's test of multivariate normality."""

    b: Tensor  # (...,), mean fourth power of the Mahalanobis distances
    z: Tensor  # (...,), b minus its mean under normality over its asymptotic deviation


def mardia_kurtosis(X: Float[Tensor, "*batch n p"]) -> Mardia:
    """b = (1/n) sum_i d_i^4, d_i^2 = (x_i - xbar)^T Sigma^-1 (x_i - xbar), Sigma with 1/n; z from mean and variance.

    Under normality E b = p (p + 2)(n - 1)/(n + 1) and Var b ~ 8 p (p + 2)/n. At n = p + 1 every d_i^2 is p, so b = p^2
    whatever the data. Raises ValueError for n <= p, where Sigma is singular. [prior: Mardia 1970]
    """
    if X.ndim < 2 or X.shape[-2] <= X.shape[-1]:
        raise ValueError(f"X has shape {tuple(X.shape)}; give (..., n, p) with more samples n than variables p")
    n, p = X.shape[-2:]
    centred = X - X.mean(dim=-2, keepdim=True)
    Q = torch.linalg.qr(centred).Q  # d_i^2 = n |Q_i|^2, without squaring the condition number
    b = (n * Q.square().sum(dim=-1)).square().mean(dim=-1)
    return Mardia(b, (b - p * (p + 2) * (n - 1) / (n + 1)) / math.sqrt(8 * p * (p + 2) / n))
