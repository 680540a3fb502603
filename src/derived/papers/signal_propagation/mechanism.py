"""The mechanism of the chapter in one place: random transformers, their tokens, and the estimators of the APJN.

module        holds
transformer   RandomTransformer, equiangular tokens, their statistics
jacobian      the APJN: exact, one backward for all layers, one forward-mode pass
"""

from .jacobian import Apjn, apjn_exact, apjn_hutchinson, apjn_jvp, apjn_per_layer, gmfe, gradient_moments
from .transformer import (
    BlockWeights,
    RandomTransformer,
    Sigmas,
    attention_weights,
    equiangular_tokens,
    normalise,
    token_moments,
)

__all__ = [
    "Apjn",
    "BlockWeights",
    "RandomTransformer",
    "Sigmas",
    "apjn_exact",
    "apjn_hutchinson",
    "apjn_jvp",
    "apjn_per_layer",
    "attention_weights",
    "equiangular_tokens",
    "gmfe",
    "gradient_moments",
    "normalise",
    "token_moments",
]
