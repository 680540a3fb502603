"""Information through the pyramid: entropies in nats, the Gaussian value, and the exact correction to it.

symbol       name                  meaning                                                        axes
h(U)         entropy               differential entropy
J(U)         negentropy            h of the Gaussian with U's covariance, minus h(U); >= 0
I, I_G       mutual_information    mutual information, and its value from second moments
U            LatentMixture         U = s m + N(0, Sigma), s = +-1 with P(s = 1) = weight          (p,)
delta        separation            sqrt(m^T Sigma^-1 m), all that J(U) depends on, with weight
P U          seen                  a linear map of U that is given in I(U; Y | P U)                (r,)
kappa        excess kurtosis       E (u - Eu)^4 / Var^2 - 3

A mixture of two Gaussians with one covariance stays one under every linear map, and whitened it is a scalar mixture
times standard normals: its entropy in any dimension is one integral over the line. [ours]
"""

import math
from typing import Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from scipy.interpolate import BSpline
from scipy.special import expit, gammaln, logit, psi
from torch import Tensor

from derived.lab.checks import check_choice, check_count, check_finite, check_within

from .pyramid import Pooling, check_levels, pyramid

# Trapezoid rule. A normal tail beyond 12 is 1e-33. Two centres at +-delta have the integrand's singularities at height
# pi / (2 delta) over a point of density e^{-delta^2/2}: the error e^{-delta^2/2 - pi^2/(delta STEP)} is 1e-16 at most.
REACH, STEP = 12.0, 0.08


def gaussian_mutual_information(covariance: Float[Tensor, "*batch n n"], first: int) -> Float[Tensor, "*batch"]:
    """Mutual information of jointly Gaussian variables: I_G = (log det S_UU + log det S_YY - log det S) / 2, in nats.

    S is the covariance, (*batch, n, n), U the first ``first`` variables, Y the others. ValueError unless 0 < first < n
    and the covariance is symmetric and positive definite. [prior]

    >>> gaussian_mutual_information(torch.tensor([[1.0, 0.6], [0.6, 1.0]]), 1)  # -ln(1 - 0.6^2) / 2
    tensor(0.2231)
    """
    check_finite("covariance", covariance)
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
    """The law of s m + N(0, Sigma), s = 1 with probability ``weight`` and -1 otherwise: not Gaussian, and still exact.

    m has p entries, Sigma is (p, p) and positive definite. [ours]

    >>> law = LatentMixture(torch.tensor([1.0, 0.0]), torch.eye(2))
    >>> law.covariance.tolist(), law.separation
    ([[2.0, 0.0], [0.0, 1.0]], 1.0)
    """

    m: Tensor  # (p,)
    Sigma: Tensor  # (p, p), positive definite
    weight: float | np.ndarray = 0.5  # an array stands for one law per entry; entropies then have its shape

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


def line(separation: float) -> np.ndarray:
    """The points, STEP apart, on which a mixture with centres +-separation is summed: (n,)."""
    half = math.ceil((separation + REACH) / STEP)
    return STEP * np.arange(-half, half + 1)


def log_density(u: np.ndarray, separation: float, weight: float | np.ndarray) -> np.ndarray:
    """The logarithm of w N(delta, 1) + (1 - w) N(-delta, 1) at u, a row per weight."""
    weight = np.asarray(weight)[..., None]
    with np.errstate(divide="ignore"):
        centres = (np.log(w) - (u - c) ** 2 / 2 for w, c in ((weight, separation), (1 - weight, -separation)))
        return np.logaddexp(*centres) - math.log(2 * math.pi) / 2


def scalar_entropy(separation: float, weight: float | np.ndarray = 0.5) -> np.ndarray:
    """h of w N(delta, 1) + (1 - w) N(-delta, 1), by the trapezoid rule; of the shape of ``weight``."""
    check_within("weight", weight, 0.0, 1.0)
    check_within("separation", separation, 0.0, 50.0)
    log_p = log_density(line(separation), separation, weight)
    return -np.sum(np.exp(log_p) * log_p, axis=-1) * STEP


def entropy(law: LatentMixture) -> np.ndarray:
    """h(U) = log det(Sigma)/2 + (p - 1) log(2 pi e)/2 + h(scalar mixture), in nats; of the shape of the weight."""
    p = len(law.m)
    normal = math.log(2 * math.pi * math.e) / 2
    return float(log_determinant(law.Sigma)) / 2 + (p - 1) * normal + scalar_entropy(law.separation, law.weight)


def negentropy(law: LatentMixture) -> float:
    """How much entropy a law lacks to the Gaussian of its covariance: J(U) = h(Gaussian) - h(U) >= 0, in nats.

    Here log(1 + 4 w (1-w) delta^2)/2 + log(2 pi e)/2 - h(scalar mixture). Invariant under invertible linear maps, 0 iff
    U is Gaussian. ValueError for a weight outside [0, 1] and a separation above 50. [prior; the closed form ours]

    >>> round(negentropy(LatentMixture(torch.tensor([2.0, 0.0]), torch.eye(2))), 4)
    0.172
    """
    variance = 1 + 4 * law.weight * (1 - law.weight) * law.separation**2
    return math.log(2 * math.pi * math.e * variance) / 2 - float(scalar_entropy(law.separation, law.weight))


def mutual_information(law: LatentMixture, first: int) -> np.ndarray:
    """I(U; Y) = h(U) + h(Y) - h(U, Y) for U the first ``first`` coordinates and Y the others, in nats."""
    U, Y = _sides(law, first)
    return entropy(U) + entropy(Y) - entropy(law)


def conditional_information(law: LatentMixture, P: Float[Tensor, "r first"]) -> float:
    """I(U; Y | P U) for U the first coordinates and Y the others: the mean, over what P U shows, of what is left.

    Given P U = z the rest is a mixture once more, with other centres and the sign's posterior weight, which depends on
    z through u = m_z^T Sigma_zz^-1 z / delta alone, a scalar mixture with centres +-delta. P has full row rank. No
    chain rule is used. [ours]
    """
    r, first = P.shape
    if r == first:
        return 0.0
    hidden = torch.linalg.qr(P.mT, mode="complete").Q[:, r:].mT  # a complement of the rows of P
    rest = torch.eye(len(law.m) - first, dtype=law.m.dtype, device=law.m.device)
    m, Sigma, weight = law.project(torch.block_diag(torch.cat([P, hidden]), rest))
    delta = LatentMixture(m[:r], Sigma[:r, :r]).separation
    u, gain = line(delta), torch.linalg.solve(Sigma[:r, :r], Sigma[:r, r:]).mT
    posterior = expit(logit(weight) + 2 * delta * u)
    left = LatentMixture(m[r:] - gain @ m[:r], Sigma[r:, r:] - gain @ Sigma[:r, r:], posterior)
    return float(np.sum(np.exp(log_density(u, delta, weight)) * mutual_information(left, first - r), axis=0) * STEP)


def non_gaussian_correction(law: LatentMixture, first: int) -> float:
    """J(U, Y) - J(U) - J(Y), which is I(U; Y) - I_G(U; Y), of either sign. [ours]"""
    U, Y = _sides(law, first)
    return negentropy(law) - negentropy(U) - negentropy(Y)


def _sides(law: LatentMixture, first: int) -> tuple[LatentMixture, LatentMixture]:
    p = len(law.m)
    if not 0 < first < p:
        raise ValueError(f"first = {first} of {p} coordinates; leave at least one on each side")
    identity = torch.eye(p, dtype=law.m.dtype, device=law.m.device)
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

    I(X;Y) - I_G(BZ;Y) = sum_l I(X^(l-1);Y|X^(l)) + I(Z;Y|BZ) + J(BZ,Y) - J(BZ) - J(Y). The total comes from entropies,
    the Gaussian value from determinants, conditional informations from quadratures over what is given, the correction
    from negentropies: no piece is a difference of others, so ``gap`` tests the identity. The pyramid must lose rows
    without repeating any: "block" with 2^(L-1) | T. All in nats; B is (q, T / 2^(L-1)). ValueError for T that leaves no
    target or is shorter than 2^(L-1), and for B of another shape. [ours]

    >>> law = LatentMixture(torch.tensor([1.0, 0.5, 1.0]).double(), torch.eye(3).double())
    >>> budget = information_budget(law, T=2, levels=2, B=torch.ones(1, 1).double())
    >>> round(budget.total, 4), round(budget.gaussian, 4), abs(budget.gap) < 1e-12
    (0.1985, 0.1537, True)
    """
    check_count("levels", levels)
    p = len(law.m)
    check_within("T", T, 1, p - 1)
    check_levels(T, levels)
    maps = pyramid(torch.eye(T, dtype=law.m.dtype, device=law.m.device), levels, pooling)
    if B.ndim != 2 or B.shape[-1] != len(maps[-1]):
        raise ValueError(f"B has shape {tuple(B.shape)}; give (q, {len(maps[-1])}), a map of the coarsest rows")
    finer, coarsest = [_beside(law, P, T) for P in maps[:-1]], _beside(law, maps[-1], T)
    last = _beside(law, B @ maps[-1], T)
    steps = (pyramid(torch.eye(len(P), dtype=law.m.dtype, device=law.m.device), 2, pooling)[1] for P in maps[:-1])
    return InformationBudget(
        total=float(mutual_information(law, T)),
        gaussian=float(gaussian_mutual_information(last.covariance, len(B))),
        resolution=tuple(conditional_information(each, step) for each, step in zip(finer, steps, strict=True)),
        head_width=conditional_information(coarsest, B),
        correction=non_gaussian_correction(last, len(B)),
    )


def _beside(law: LatentMixture, P: Tensor, T: int) -> LatentMixture:
    """The law of (P X, Y)."""
    return law.project(torch.block_diag(P, torch.eye(len(law.m) - T, dtype=law.m.dtype, device=law.m.device)))


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
    """Excess kurtosis of the rows of each level, per feature: kappa / 2^l in the mean for i.i.d. tokens.

    (*batch, T, d) to (L, *batch, d), over the rows of a level, moments with divisor T_l. ValueError as in ``pyramid``.
    [ours]

    >>> excess_kurtosis_by_level(torch.tensor([0.0, 0.0, 0.0, 4.0]).view(4, 1), 2).flatten()
    tensor([-0.6667, -2.0000])
    """
    return torch.stack([excess_kurtosis(rows.mT) for rows in pyramid(x, levels, pooling)])


class Mardia(NamedTuple):
    """Mardia's test of multivariate normality."""

    b: Tensor  # (...,), mean fourth power of the Mahalanobis distances
    z: Tensor  # (...,), b minus its mean under normality over its asymptotic deviation


def mardia_kurtosis(X: Float[Tensor, "*batch n p"]) -> Mardia:
    """b = (1/n) sum_i d_i^4, d_i^2 = (x_i - xbar)^T Sigma^-1 (x_i - xbar), Sigma with 1/n; z from mean and variance.

    Mardia's statistic of multivariate normality, (*batch, n, p) to (*batch,). Under normality E b is p (p + 2)(n - 1) /
    (n + 1) and Var b ~ 8 p (p + 2)/n. At n = p + 1 every d_i^2 is p, so b = p^2 whatever the data. ValueError for n <=
    p, where Sigma is singular. [prior: Mardia 1970]

    >>> mardia_kurtosis(torch.eye(4)[:, :3]).b  # n = p + 1: the data say nothing
    tensor(9.0000)
    """
    if X.ndim < 2 or X.shape[-2] <= X.shape[-1]:
        raise ValueError(f"X has shape {tuple(X.shape)}; give (..., n, p) with more samples n than variables p")
    n, p = X.shape[-2:]
    centred = X - X.mean(dim=-2, keepdim=True)
    Q = torch.linalg.qr(centred).Q  # d_i^2 = n |Q_i|^2, without squaring the condition number
    b = (n * Q.square().sum(dim=-1)).square().mean(dim=-1)
    return Mardia(b, (b - p * (p + 2) * (n - 1) / (n + 1)) / math.sqrt(8 * p * (p + 2) / n))


def mardia_rounding(X: Float[Tensor, "*batch n p"]) -> Float[Tensor, "*batch"]:
    """How far ``mardia_kurtosis`` may be from b: 8 n^2 p^(5/2) eps (1 + kappa), kappa = |X| / s_min(centred X).

    Centring and Householder's QR give the exact factor of data changed by 2 n p^(3/2) eps |X| (Higham 2002, theorem
    19.4), which turns its columns by eta = 2 n p^(3/2) eps (1 + kappa). So d_i^2 = n |Q_i|^2 moves by 2 n eta at most,
    and b, a mean of squares of numbers of mean p, by 4 n p eta. To first order. [ours]
    """
    n, p = X.shape[-2:]
    centred = X - X.mean(dim=-2, keepdim=True)
    kappa = torch.linalg.matrix_norm(X, ord=2) / torch.linalg.svdvals(centred)[..., p - 1]
    return 8 * n**2 * p**2.5 * torch.finfo(X.dtype).eps * (1 + kappa)
