"""The theory of the chapter in one place: equations for the overlaps and their limits.

module      holds
moments     attention among equiangular tokens, the random energy model, the von Mises-Fisher mean
overlaps    drift and bracket of overlaps, equiangular and Gram flows, the logistic
two_token   the closed diffusion of two tokens, Fokker-Planck
slow        the slow overlap at low temperature
flows       deterministic limits, the modified equation, one-token rates
regimes     the phase diagram
"""

from .flows import (
    TokenRates,
    modified_drift,
    observed_order,
    one_token_rates,
    sa_rate,
    self_attention,
    sphere_euler,
    sphere_flow,
    sphere_rates,
)
from .moments import (
    AttentionMoments,
    attention_moments,
    rem_participation,
    sampled_moments,
    vmf_mean_ratio,
)
from .overlaps import (
    Correlation,
    barycenter_correlation,
    gram_flow,
    logistic_overlap,
    moment_curves,
    overlap_bracket,
    overlap_drift,
    simplex_drift,
    simplex_flow,
    time_to_overlap,
    uniform_correlation,
)
from .regimes import Regime, layers_for, scaling_regime
from .slow import mean_cosine, return_probability, slow_bracket, slow_drift, slow_overlap_sde
from .two_token import TwoTokenLaw, fokker_planck, two_token_attention_moments, two_token_coefficients, two_token_pde

__all__ = [
    "AttentionMoments",
    "Correlation",
    "Regime",
    "TokenRates",
    "TwoTokenLaw",
    "attention_moments",
    "barycenter_correlation",
    "fokker_planck",
    "gram_flow",
    "layers_for",
    "logistic_overlap",
    "mean_cosine",
    "modified_drift",
    "moment_curves",
    "observed_order",
    "one_token_rates",
    "overlap_bracket",
    "overlap_drift",
    "rem_participation",
    "return_probability",
    "sa_rate",
    "sampled_moments",
    "scaling_regime",
    "self_attention",
    "simplex_drift",
    "simplex_flow",
    "slow_bracket",
    "slow_drift",
    "slow_overlap_sde",
    "sphere_euler",
    "sphere_flow",
    "sphere_rates",
    "time_to_overlap",
    "two_token_attention_moments",
    "two_token_coefficients",
    "two_token_pde",
    "uniform_correlation",
    "vmf_mean_ratio",
]
