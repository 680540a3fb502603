"""The theory of the chapter in one place: Gaussian kernels, the mean-field engine and the asymptotic regimes.

module        holds
kernels       Gaussian moments q~, p~, q^, p^ of LayerNorm, Derf, DyT and any other map
meanfield     the recurrences of (q, p) and of (J, K)
asymptotics   zeta, c_*, lambda, mu, b_*
"""

from .asymptotics import (
    crossover_depth,
    growth_rate,
    lambda_stretched,
    local_exponent,
    overlap_fixed_point,
    relaxation_exponent,
    sign_overlap,
    stretch_constant,
    stretched_slope,
    vit_variances,
    window_rates,
    zeta,
)
from .kernels import (
    ElementwiseKernel,
    ErfKernel,
    LayerNormKernel,
    Moments,
    NormKernel,
    TanhKernel,
    arccos_kernel,
    arccos_kernel_prime,
    arcsine_kernel,
    erf_prime_kernel,
    gaussian_cross_moment,
    gaussian_moment,
    tanh_mixture,
)
from .meanfield import MeanFieldTrajectory, attention_overlaps, propagate

__all__ = [
    "ElementwiseKernel",
    "ErfKernel",
    "LayerNormKernel",
    "MeanFieldTrajectory",
    "Moments",
    "NormKernel",
    "TanhKernel",
    "arccos_kernel",
    "arccos_kernel_prime",
    "arcsine_kernel",
    "attention_overlaps",
    "crossover_depth",
    "erf_prime_kernel",
    "gaussian_cross_moment",
    "gaussian_moment",
    "growth_rate",
    "lambda_stretched",
    "local_exponent",
    "overlap_fixed_point",
    "propagate",
    "relaxation_exponent",
    "sign_overlap",
    "stretch_constant",
    "stretched_slope",
    "tanh_mixture",
    "vit_variances",
    "window_rates",
    "zeta",
]
