"""Random heads, the attention field, one layer, and the tokens to start from.

symbol         name            meaning                                                      axes
X              X               tokens, rows on the unit sphere of R^d                       (..., n, d)
R              leading axis    independent replicas, each with its weights and tokens
V, A           V, A            value matrix, collapsed query-key matrix                     (..., H, d, d)
sigma_V        value_std       standard deviation of the entries of V, 1/sqrt(d)
sigma_A        sigma_a         standard deviation of the entries of W, W'; A = W W'^T, W, W' (d, d)
beta           beta            inverse temperature; <A x, y> beta are the logits
lambda         logit_std       beta sigma_A^2 sqrt(d), the standard deviation of a logit of two unit vectors
eta, H         eta, H          residual step, heads; h = eta^2 / H

B(x) = V m(x),  m(x) = sum_k softmax_k(beta <A x, x_k>) x_k,  x <- N(x + (eta / H) sum_h B_h(x)),  N(v) = v / |v|.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from derived.lab.checks import check_at_least, check_count, check_dtype, check_one_dtype

from .checks import check_dimension, check_on_sphere, check_overlap


class Heads(NamedTuple):
    """The H heads of one layer, with the temperature at which they attend."""

    V: Tensor  # (..., H, d, d)
    A: Tensor  # (..., H, d, d)
    beta: float


@dataclass(frozen=True, kw_only=True)
class HeadLaw:
    """The distribution of a random head: V of normal entries and A = W W'^T, all independent and of mean zero. [digest]

    Equation: V_ij ~ N(0, 1/d), the standard initialisation, and W_ij, W'_ij ~ N(0, sigma_A^2), i, j = 1 .. d.
    ValueError for d < 2 and a negative deviation.

    >>> law = HeadLaw(d=16, sigma_a=0.5)
    >>> law.value_std, law.logit_std(beta=2.0)
    (0.25, 2.0)
    """

    d: int
    sigma_a: float

    def __post_init__(self):
        check_dimension(self.d)
        check_at_least("sigma_a", self.sigma_a, 0)

    @property
    def value_std(self) -> float:
        """sigma_V = 1/sqrt(d)."""
        return 1 / math.sqrt(self.d)

    def logit_std(self, beta: float) -> float:
        """lambda = beta sigma_A^2 sqrt(d), the standard deviation of beta <W W'^T x, y> for unit x, y. [ours]"""
        return beta * self.sigma_a**2 * math.sqrt(self.d)

    def draw(
        self,
        generator: torch.Generator,
        shape: tuple[int, ...],
        *,
        beta: float,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float64,
    ) -> Heads:
        """Independent heads, ``shape`` of them: usually (R, H)."""
        check_dtype(dtype)
        factory = {"generator": generator, "device": device, "dtype": dtype}
        V, W, W_ = (torch.randn(*shape, self.d, self.d, **factory) for _ in range(3))
        return Heads(self.value_std * V, self.sigma_a**2 * (W @ W_.mT), beta)


def matched_law(d: int, logit_std: float) -> HeadLaw:
    """The Gaussian heads whose logits have standard deviation ``logit_std`` at the inverse temperature 1. [ours]

    Equation: sigma_A^2 = lambda / sqrt(d). ValueError for a negative number.

    >>> round(matched_law(64, 3.0).logit_std(1.0), 12)
    3.0
    """
    check_at_least("logit_std", logit_std, 0)
    return HeadLaw(d=d, sigma_a=math.sqrt(logit_std / math.sqrt(d)))


def barycentre(X: Float[Tensor, "*#batch n d"], A: Float[Tensor, "*#batch d d"], beta: float) -> Tensor:
    """m(x_i) = sum_k softmax_k(beta <A x_i, x_k>) x_k, shape (*batch, n, d); batch axes broadcast. [digest]"""
    return torch.softmax(beta * (X @ A.mT) @ X.mT, dim=-1) @ X


def attention_field(
    X: Float[Tensor, "*#batch n d"], V: Float[Tensor, "*#batch d d"], A: Float[Tensor, "*#batch d d"], beta: float
) -> Float[Tensor, "*batch n d"]:
    """B(x_i) = V m(x_i), the attention of one head at its own tokens. [digest]

    Equation: m(x_i) = sum_k softmax_k(beta <A x_i, x_k>) x_k. Shapes: X (*batch, n, d), V and A (*batch, d, d) give
    (*batch, n, d); batch axes broadcast. ValueError for dtypes that differ or are not floating; shapes are not checked,
    since it runs in the hot loop.

    >>> X, I = torch.eye(2), torch.eye(2)
    >>> attention_field(X, 2 * I, I, 0.0)
    tensor([[1., 1.],
            [1., 1.]])
    """
    check_one_dtype(X=X, V=V, A=A)
    return barycentre(X, A, beta) @ V.mT


def layer_step(X: Float[Tensor, "*batch n d"], eta: float, heads: Heads) -> Float[Tensor, "*batch n d"]:
    """One layer of H heads: x <- N(x + (eta/H) sum_h B_h(x)), N(v) = v / |v|. [digest]

    Shapes: X (*batch, n, d), heads.V and heads.A (*batch, H, d, d) give (*batch, n, d). ValueError for
    tokens off the sphere and a negative step.

    >>> X = equiangular_tokens(2, 3, 0.0)
    >>> heads = Heads(V=torch.eye(3).double()[None, None], A=torch.eye(3).double()[None, None], beta=0.0)
    >>> Y = layer_step(X, 1.0, heads)  # both tokens move to their mean: x <- N(x + (x + y)/2)
    >>> round(float((Y[0, 0] * Y[0, 1]).sum()), 12)
    0.6
    """
    check_on_sphere(X)
    check_at_least("eta", eta, 0)
    return normalise(X + eta * attention_field(X.unsqueeze(-3), heads.V, heads.A, heads.beta).mean(dim=-3))


def normalise(X: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n d"]:
    """N(v) = v / |v|, row by row."""
    return X / torch.linalg.vector_norm(X, dim=-1, keepdim=True)


def tangent(X: Float[Tensor, "*#batch n d"], Z: Float[Tensor, "*#batch n d"]) -> Float[Tensor, "*batch n d"]:
    """P_x z = z - <x, z> x, row by row."""
    return Z - (X * Z).sum(dim=-1, keepdim=True) * X


def simplex_gram(n: int, gamma: float, *, device: torch.device | str = "cpu", dtype=torch.float64) -> Tensor:
    """(1 - gamma) I + gamma 1 1^T, the Gram matrix (n, n) of n equiangular tokens. Errors: gamma outside its range."""
    check_count("n", n)
    check_dtype(dtype)
    check_overlap(gamma, n)
    G = torch.full((n, n), float(gamma), device=device, dtype=dtype)
    return G.fill_diagonal_(1.0)


def equiangular_tokens(n: int, d: int, gamma: float, *, replicas: int = 1, device="cpu", dtype=torch.float64) -> Tensor:
    """n unit vectors of R^d with all overlaps gamma, the same in each replica: (R, n, d). [digest]

    Equation: <x_i, x_j> = gamma for i != j. ValueError unless n <= d, or n = d + 1 at gamma = -1/(n-1), or gamma = 1,
    and for an overlap that n unit vectors cannot share.

    >>> X = equiangular_tokens(3, 5, 0.2, replicas=4)
    >>> X.shape, round(float(X[0, 0] @ X[0, 1]), 12)
    (torch.Size([4, 3, 5]), 0.2)
    """
    check_count("n", n)
    check_dimension(d)
    check_count("replicas", replicas)
    check_dtype(dtype)
    spectrum, basis = torch.linalg.eigh(simplex_gram(n, gamma))
    keep = spectrum > 8 * n * torch.finfo(spectrum.dtype).eps
    if (rank := int(keep.sum().item())) > d:
        raise ValueError(f"{n} tokens of overlap {gamma:g} span {rank} dimensions: need d >= {rank}, but d = {d}")
    X = torch.zeros(n, d, dtype=spectrum.dtype)
    X[:, :rank] = basis[:, keep] * spectrum[keep].sqrt()
    return normalise(X).to(device=device, dtype=dtype).expand(replicas, n, d).clone()


def uniform_tokens(n: int, d: int, *, generator: torch.Generator, replicas: int = 1, dtype=torch.float64) -> Tensor:
    """Independent uniform points of the sphere: (R, n, d) on the generator's device."""
    check_count("n", n)
    check_dimension(d)
    check_count("replicas", replicas)
    check_dtype(dtype)
    factory = {"generator": generator, "device": generator.device, "dtype": dtype}
    return normalise(torch.randn(replicas, n, d, **factory))
